//! Response bodies: rendered once, and kept with their entry until it changes (D71).
//!
//! Most requests read, and the same resources again and again, so a GET sends bytes that are ready. An entry keeps the form
//! with secrets and the form with masks, each with its ETag; equal forms share their bytes. A change of the resource or of a
//! child makes a new entry, or drops the forms of the parent. A request that would have to render many resources waits for
//! its turn on another thread: one large list must not delay the other requests of its thread.

use std::sync::OnceLock;

use crate::model::snapshot::view::view_json;
use crate::model::{Rendered, Slot};
use crate::server::handler_prelude::*;

/// The most resources that a request renders itself: other requests of its thread wait meanwhile.
const FEW: usize = 32;

/// Renders a resource for a caller, unless it is ready.
pub(crate) fn render(
    base_urls: &BaseUrls,
    visibility: &SecretVisibility,
    snapshot: &Snapshot,
    entry: &Entry,
) -> Result<Rendered, ApiError> {
    let shown = visibility.shows(snapshot, entry);
    let cell = cell(shown, entry);
    if let Some(rendered) = cell.get() {
        return Ok(Rendered::clone(rendered));
    }
    let secrets = if shown { Secrets::Revealed } else { Secrets::Masked };
    let rendered = response::rendered(view_json(snapshot, entry, base_urls, secrets)?);
    // Most resources have no secret, so both forms can share their bytes.
    let forms = [&entry.rendered.revealed, &entry.rendered.masked];
    let same = forms.into_iter().filter_map(OnceLock::get).find(|other| other.body == rendered.body).cloned();
    Ok(Rendered::clone(cell.get_or_init(|| same.unwrap_or_else(|| Box::new(rendered)))))
}

/// Renders a module for a caller; `None` if the slot is empty.
pub(super) fn render_module(
    base_urls: &BaseUrls,
    visibility: &SecretVisibility,
    snapshot: &Snapshot,
    host: &Key,
    slot: &Slot,
) -> Result<Option<Rendered>, ApiError> {
    let Some(entry) = snapshot.get(host) else { return Ok(None) };
    let Some(module) = entry.spec().module(slot) else { return Ok(None) };
    Ok(Some(response::rendered(module.view_json(host, base_urls, visibility.secrets(snapshot, entry, slot))?)))
}

/// The place of the form that is shown: with secrets or without.
fn cell(shown: bool, entry: &Entry) -> &OnceLock<Box<Rendered>> {
    if shown { &entry.rendered.revealed } else { &entry.rendered.masked }
}

/// Whether rendering what is not ready of some resources, with their children, would hold up other requests.
pub(super) fn takes_long<'e>(
    visibility: &SecretVisibility,
    snapshot: &Snapshot,
    entries: impl IntoIterator<Item = &'e Arc<Entry>>,
) -> bool {
    let mut resources = 0;
    let is_ready = |entry: &Arc<Entry>| cell(visibility.shows(snapshot, entry), entry).get().is_some();
    for entry in entries.into_iter().filter(|entry| !is_ready(entry)) {
        resources += 1 + snapshot.children(&entry.key).take(FEW).count();
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
    use crate::model::Kind;
    use crate::model::id::Id;
    use crate::model::operation::Operation;
    use crate::server::base_urls;
    use crate::store::{MEMORY, Store, clock};

    fn local_base_urls() -> BaseUrls {
        base_urls(&Store::open(MEMORY).unwrap(), "http://localhost", "http://localhost")
    }

    fn edges(count: usize) -> Snapshot {
        let create = |number| {
            Operation::create(
                Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number}"))),
                (Kind::HttpsEdge.info().empty)(),
            )
        };
        let operations: Vec<Operation> = (0..count).map(create).collect();
        Snapshot::default().apply(&operations, clock::now()).unwrap().0
    }

    #[test]
    fn a_form_is_rendered_once_and_equal_forms_share_their_bytes() {
        let (base_urls, snapshot) = (local_base_urls(), edges(1));
        let entry = snapshot.iter().next().unwrap();
        let forms = [
            SecretVisibility::Everything,
            SecretVisibility::Nothing,
            SecretVisibility::Everything,
            SecretVisibility::Nothing,
        ];
        let forms = forms.map(|visibility| render(&base_urls, &visibility, &snapshot, entry).unwrap());
        let [first, others @ ..] = &forms;
        assert!(others.iter().all(|other| other.body.as_ptr() == first.body.as_ptr() && other.etag == first.etag));
    }

    #[test]
    fn only_resources_that_are_not_ready_take_long() {
        let (base_urls, snapshot) = (local_base_urls(), edges(FEW + 1));
        assert!(takes_long(&SecretVisibility::Nothing, &snapshot, snapshot.iter()));
        assert!(!takes_long(&SecretVisibility::Nothing, &snapshot, snapshot.iter().take(FEW)));
        render(&base_urls, &SecretVisibility::Nothing, &snapshot, snapshot.iter().next().unwrap()).unwrap();
        assert!(!takes_long(&SecretVisibility::Nothing, &snapshot, snapshot.iter()));
        assert!(takes_long(&SecretVisibility::Everything, &snapshot, snapshot.iter()));
    }
}
