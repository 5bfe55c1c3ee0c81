//! Response bodies: rendered once, and kept with their entry until it changes (D71).

use std::sync::{Arc, OnceLock};

use super::{
    App,
    answer::{self, ApiError},
};
use crate::model::{
    key::Key,
    kind::owner::Role,
    module::Slot,
    secret::Secrets,
    snapshot::{Entry, Rendered, Snapshot},
    view::view_json,
};

/// The most resources that a request renders itself: other requests of its thread wait meanwhile.
const FEW: usize = 32;

/// Renders a resource for a role, unless it is ready.
pub(super) fn render(app: &App, role: Role, snapshot: &Snapshot, entry: &Entry) -> Result<Rendered, ApiError> {
    let cell = cell(role, entry);
    if let Some(rendered) = cell.get() {
        return Ok(Rendered::clone(rendered));
    }
    let rendered = answer::rendered(view_json(snapshot, entry, &app.site, secrets(role))?);
    // Most resources have no secret, so both forms can share their bytes.
    let forms = [&entry.rendered.revealed, &entry.rendered.masked];
    let same = forms.into_iter().filter_map(OnceLock::get).find(|other| other.body == rendered.body).cloned();
    Ok(Rendered::clone(cell.get_or_init(|| same.unwrap_or_else(|| Box::new(rendered)))))
}

/// Renders a module for a role; `None` if the slot is empty.
pub(super) fn render_module(
    app: &App,
    role: Role,
    snapshot: &Snapshot,
    host: &Key,
    slot: &Slot,
) -> Result<Option<Rendered>, ApiError> {
    let Some(module) = snapshot.get(host).and_then(|entry| entry.spec().module(slot)) else { return Ok(None) };
    Ok(Some(answer::rendered(module.view_json(host, &app.site, secrets(role))?)))
}

/// Whether a role sees masked secrets.
pub(super) fn is_masked(role: Role) -> bool {
    matches!(role, Role::Viewer | Role::Gateway)
}

fn secrets(role: Role) -> Secrets<'static> {
    if is_masked(role) { Secrets::Masked } else { Secrets::Revealed }
}

/// The place of the form that a role sees.
fn cell(role: Role, entry: &Entry) -> &OnceLock<Box<Rendered>> {
    if is_masked(role) { &entry.rendered.masked } else { &entry.rendered.revealed }
}

/// Whether rendering what is not ready of some resources, with their children, would hold up other requests.
pub(super) fn takes_long<'e>(
    role: Role,
    snapshot: &Snapshot,
    entries: impl IntoIterator<Item = &'e Arc<Entry>>,
) -> bool {
    let mut resources = 0;
    for entry in entries.into_iter().filter(|entry| cell(role, entry).get().is_none()) {
        resources += 1;
        if let Some(kind) = entry.key.kind.info().children {
            resources += snapshot.children(&entry.key, kind).take(FEW).count();
        }
        if resources > FEW {
            return true;
        }
    }
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::{
        api::Settings,
        model::{Kind, id::Id, operation::Operation},
        store::{MEMORY, Store, mint},
    };

    fn app() -> App {
        let url = String::from("http://localhost");
        let settings = Settings { base_url: url.clone(), saml_base_url: url, version_header: String::new() };
        App::new(Arc::new(Store::open(MEMORY).unwrap()), settings)
    }

    fn edges(count: usize) -> Snapshot {
        let create = |number| Operation::Create {
            key: Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number}"))),
            spec: (Kind::HttpsEdge.info().empty)(),
            claim: None,
            token: None,
        };
        let operations: Vec<Operation> = (0..count).map(create).collect();
        Snapshot::default().apply(&operations, mint::now()).unwrap().0
    }

    #[test]
    fn a_form_is_rendered_once_and_equal_forms_share_their_bytes() {
        let (app, snapshot) = (app(), edges(1));
        let entry = snapshot.iter().next().unwrap();
        let forms = [Role::Admin, Role::Viewer, Role::Editor, Role::Viewer];
        let forms = forms.map(|role| render(&app, role, &snapshot, entry).unwrap());
        let [first, others @ ..] = &forms;
        assert!(others.iter().all(|other| other.body.as_ptr() == first.body.as_ptr() && other.etag == first.etag));
    }

    #[test]
    fn only_resources_that_are_not_ready_take_long() {
        let (app, snapshot) = (app(), edges(FEW + 1));
        assert!(takes_long(Role::Viewer, &snapshot, snapshot.iter()));
        assert!(!takes_long(Role::Viewer, &snapshot, snapshot.iter().take(FEW)));
        render(&app, Role::Viewer, &snapshot, snapshot.iter().next().unwrap()).unwrap();
        assert!(!takes_long(Role::Viewer, &snapshot, snapshot.iter()));
        assert!(takes_long(Role::Editor, &snapshot, snapshot.iter()));
    }
}
