//! Writes over the API to resources that a source owns: which ones are allowed, and what the client is told (D103).

use super::write_policy::WritePolicy;
use crate::model::required_secrets::{has_secrets, required_modules};
use crate::model::{AnyModule, AnyResource, Slot};
use crate::server::handler_prelude::*;
use crate::syntax::text::printable_path;
use crate::tenancy::refused_write;

/// The header that names the source whose manifests a request overrides.
const OVERRIDE: &str = "edgewright-override";

/// A resource of a source that a request writes to.
#[derive(Debug)]
struct OwnedWrite {
    source: String,
    key: Key,
    /// The kind, and the name in the manifests with that of the parent.
    subject: String,
    /// Whether only something inside of it changes.
    only_inside: bool,
}

/// The kind and the full name of a resource.
fn subject(current: &Snapshot, entry: &Entry) -> String {
    format!("{} `{}`", entry.key.kind, printable(&current.full_name(entry)))
}

/// The resources of sources that an operation writes to: the resource itself, its children if they are deleted with it,
/// the parent of a new one, and the edge of a route without a source.
fn written<'s>(current: &'s Snapshot, operation: &Operation) -> Vec<&'s Arc<Entry>> {
    let key = operation.key();
    match operation {
        // A leaked key must be revoked at once, whoever declares it.
        Operation::Delete { key, .. } if key.kind == Kind::ApiKey => Vec::new(),
        Operation::Claim { .. } => Vec::new(),
        Operation::Create { .. } => key.parent_key().and_then(|parent| current.get(&parent)).into_iter().collect(),
        Operation::Delete { .. } => {
            current.get(key).into_iter().chain(edge_of(current, key)).chain(current.children(key)).collect()
        }
        Operation::Patch { .. } | Operation::PutModule { .. } | Operation::DeleteModule { .. } => {
            current.get(key).into_iter().chain(edge_of(current, key)).collect()
        }
    }
}

/// The edge of a route without a source. Whoever could not create the route must not turn it into another one, either.
fn edge_of<'s>(current: &'s Snapshot, key: &Key) -> Option<&'s Arc<Entry>> {
    current.get(key).filter(|entry| entry.claim.is_none() && key.kind == Kind::HttpsEdgeRoute)?;
    current.get(&key.parent_key()?)
}

/// The first written resource of each source.
fn owned_writes(current: &Snapshot, operations: &[Operation]) -> Vec<OwnedWrite> {
    let mut found: Vec<OwnedWrite> = Vec::new();
    let each = |operation| written(current, operation).into_iter().map(move |entry| (operation, entry));
    for (operation, entry) in operations.iter().flat_map(each) {
        let Some(claim) = &entry.claim else { continue };
        let only_inside = operation.key().parent_key().as_ref() == Some(&entry.key);
        let write = || OwnedWrite {
            source: claim.source.clone(),
            key: entry.key.clone(),
            subject: subject(current, entry),
            only_inside,
        };
        match found.iter_mut().find(|known| known.source == claim.source) {
            None => found.push(write()),
            Some(known) if known.only_inside && !only_inside => *known = write(),
            Some(_) => {}
        }
    }
    found
}

/// The module of an edge that an operation would leave out of a route, with the edge. Whoever may write to a route cannot
/// lift what the edge requires of all.
///
/// Unless the caller sees all secrets, a module with secrets cannot be written at all: the answer would tell a right guess.
fn left_out<'s>(current: &'s Snapshot, operation: &Operation, sees_all: bool) -> Option<(&'s Entry, &'static str)> {
    let edge = current.get(&operation.key().parent_key()?)?;
    let required = required_modules(edge)?;
    // Whether a route with this in the slot does not have what is required.
    let lacks = |slot: &Slot, module: Option<&dyn AnyModule>| {
        required.module(slot).is_some_and(|wanted| {
            let is_compared = sees_all || !has_secrets(wanted);
            !module.is_some_and(|module| is_compared && module.same(wanted))
        })
    };
    let slot: Option<&Slot> = match operation {
        Operation::Create { spec, .. } => spec.slots().iter().find(|slot| lacks(slot, spec.module(slot))),
        Operation::Patch { spec, fields, .. } => {
            patched_slots(spec.as_ref(), fields).find(|slot| lacks(slot, spec.module(slot)))
        }
        Operation::PutModule { slot, module, .. } => lacks(slot, Some(&**module)).then_some(*slot),
        Operation::DeleteModule { slot, .. } => lacks(slot, None).then_some(*slot),
        Operation::Delete { .. } | Operation::Claim { .. } => None,
    };
    Some((&**edge, slot?.name))
}

/// The slots of the modules that a patch sets.
fn patched_slots(spec: &dyn AnyResource, fields: &[String]) -> impl Iterator<Item = &'static Slot> {
    spec.slots().iter().filter(move |slot| fields.iter().any(|field| field == slot.name))
}

/// Checks the writes of one request.
pub(super) struct WriteCheck {
    app: AppState,
    /// The sources that the request names in its header.
    overrides: Vec<String>,
    /// The secrets that the caller sees.
    pub(super) visibility: SecretVisibility,
    /// The files and lines of resources, as far as the history has them.
    places: BTreeMap<Key, String>,
}

impl WriteCheck {
    /// Prepares the check of a request.
    pub(super) fn new(app: AppState, headers: &HeaderMap, visibility: &SecretVisibility) -> Self {
        let values = headers.get_all(OVERRIDE).iter();
        let overrides = values.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned()).collect();
        Self { app, overrides, visibility: visibility.clone(), places: BTreeMap::new() }
    }

    /// The message in the history, if the request overrides a source.
    pub(super) fn note(&self) -> String {
        if self.overrides.is_empty() {
            return String::new();
        }
        let named: Vec<String> = self.overrides.iter().map(|source| format!("`{}`", printable(source))).collect();
        format!("overrides source {}", named.join(", "))
    }

    /// Looks up where the resources are declared, in memory or in the history, which is not read inside the commit. Returns whether
    /// all of them were looked up.
    pub(super) fn look_up(&mut self, operations: &[Operation], in_history: bool) -> bool {
        let (store, mut all) = (&self.app.served.store, true);
        for OwnedWrite { source, key, .. } in owned_writes(&store.snapshot(), operations) {
            let place = match in_history {
                // Without the place, the answer is less helpful but not wrong.
                true => Some(store.declared_at(&key, &source).ok().flatten()),
                false => store.known_declaration(&key, &source),
            };
            all &= place.is_some();
            self.places.extend(place.flatten().map(|place| (key, place)));
        }
        all
    }

    /// Returns what to warn of, or why a source does not allow the request.
    pub(super) fn check(
        &self,
        caller: &Caller,
        current: &Snapshot,
        operations: &[Operation],
    ) -> Result<Vec<String>, Fault> {
        let writes = owned_writes(current, operations);
        let is_of = |write: &OwnedWrite, name: &str| write.source.trim() == name;
        // The history has the header, so it must be true.
        if let Some(name) = self.overrides.iter().find(|name| !writes.iter().any(|write| is_of(write, name))) {
            let message = format!(
                "`Edgewright-Override` names source `{}`, which owns none of the resources in this change",
                printable(name)
            );
            let fault = Fault::new(Code::ManagedBySource, message);
            return Err(fault.help("name the source that owns the resource, or remove the header"));
        }
        if let Some(fault) = operations.iter().find_map(|operation| refused_write(current, operation)) {
            return Err(fault);
        }
        let sees_all = self.visibility == SecretVisibility::Everything;
        for (edge, module) in operations.iter().filter_map(|operation| left_out(current, operation, sees_all)) {
            // Without an owner, nobody could lift the requirement.
            let Some(claim) = &edge.claim else { continue };
            // The emergency is one of the edge's owner, who alone lifts it.
            let may_lift = caller.scope.as_ref().is_none_or(|scope| scope.may_apply(&claim.source));
            if !(may_lift && self.is_suspended(&claim.source)) {
                let (edge, source) = (subject(current, edge), printable(&claim.source));
                let message = format!("{edge} of source `{source}` requires its `{module}` module on every route");
                let help = "omit the module from the request, or change `required_modules` in the edge's manifest";
                return Err(Fault::new(Code::RequiredModule, message).help(help));
            }
        }
        if let Some(fault) = operations.iter().find_map(|operation| self.unseen_secret(current, operation)) {
            return Err(fault);
        }
        let mut warnings = Vec::new();
        for write in &writes {
            let policy = self.app.writes.rest_writes.policy(&write.source);
            let is_allowed = match policy {
                WritePolicy::Drift => true,
                WritePolicy::Header if self.overrides.iter().any(|name| is_of(write, name)) => true,
                // An emergency fix that nothing puts back.
                WritePolicy::Refuse | WritePolicy::Header => self.is_suspended(&write.source),
            };
            if !is_allowed {
                return Err(self.refused(write, policy));
            }
            warnings.push(self.warning(write));
        }
        Ok(warnings)
    }

    /// Why a request cannot write a module with a secret that a route has from its edge and that the caller does not see: the
    /// revision or the history would tell a right guess. A sync records that the secret is another source's (D103).
    fn unseen_secret(&self, current: &Snapshot, operation: &Operation) -> Option<Fault> {
        let entry = current.get(operation.key())?;
        let is_unseen = |slot: &Slot| !self.visibility.sees_recorded(current, entry, Some(slot));
        let module = match operation {
            Operation::PutModule { slot, .. } => is_unseen(slot).then_some(slot.name)?,
            Operation::Patch { spec, fields, .. } => {
                patched_slots(spec.as_ref(), fields).find(|slot| is_unseen(slot))?.name
            }
            _ => return None,
        };
        entry.claim.as_deref()?;
        let subject = subject(current, entry);
        let message = format!("`{module}` of {subject} has or may have a secret of its edge, which you cannot replace");
        let help = "omit the module from the request, and change it in the manifest of the route";
        Some(Fault::new(Code::RequiredModule, message).help(help))
    }

    fn is_suspended(&self, source: &str) -> bool {
        self.app.sources.registry.find(source).is_some_and(|it| it.suspension().is_some())
    }

    fn refused(&self, write: &OwnedWrite, policy: WritePolicy) -> Fault {
        let source = printable(&write.source);
        let manifest =
            self.places.get(&write.key).map_or_else(|| "its manifest".to_owned(), |place| printable_path(place));
        let mut help = format!("change {manifest} instead");
        if policy == WritePolicy::Header {
            help += &format!(", or send the header `Edgewright-Override: {source}`");
        }
        if self.app.sources.registry.find(&write.source).is_some() {
            help += &format!(", or suspend the source first: `edgewright suspend {source} --reason TEXT`");
        }
        let message = format!("{} is managed by source `{source}`, which refuses this change", write.subject);
        Fault::new(Code::ManagedBySource, message).help(help)
    }

    fn warning(&self, write: &OwnedWrite) -> String {
        let place =
            self.places.get(&write.key).map(|place| format!(" ({})", printable_path(place))).unwrap_or_default();
        let source = printable(&write.source);
        let meaning = match write.only_inside {
            // Nothing puts it back.
            true => "this request changes only what no source manages",
            false => "change the manifest too, or this change is drift",
        };
        format!("{} is managed by source `{source}`{place}; {meaning}", write.subject)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{Claim, HttpsEdge, HttpsEdgeRoute, Id};
    use crate::store::clock::now;

    fn claim(source: &str, name: &str) -> Option<Arc<Claim>> {
        let claim = r#"{"source": "SOURCE", "name": "NAME"}"#.replace("SOURCE", source).replace("NAME", name);
        Some(serde_json::from_str(&claim).unwrap())
    }

    #[test]
    fn a_request_writes_to_a_resource_its_children_and_the_parent_of_a_new_one() {
        let edge = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        let route = |id: &str| Key::child(Kind::HttpsEdgeRoute, edge.id.clone(), Id::new(id));
        let api_key = Key::new(Kind::ApiKey, Id::new("ak_1"));
        let create = |key: Key, claim: Option<Arc<Claim>>| Operation::Create {
            spec: match key.kind {
                Kind::HttpsEdge => Arc::new(HttpsEdge::default()),
                _ => {
                    let spec: HttpsEdgeRoute =
                        serde_json::from_str(r#"{"match_type": "path_prefix", "match": "/"}"#).unwrap();
                    Arc::new(spec)
                }
            },
            key,
            claim,
            token: None,
        };
        let all = [
            create(edge.clone(), claim("shop", "one")),
            create(route("edghtsrt_1"), claim("docs", "help")),
            create(route("edghtsrt_2"), None),
        ];
        let state = Snapshot::default().apply(&all, now()).unwrap().0;
        let told = |operation: Operation| {
            let found = owned_writes(&state, &[operation]).into_iter();
            found.map(|write| (write.source, write.subject, write.only_inside)).collect::<Vec<_>>()
        };
        let one = ("shop".to_owned(), "HttpsEdge `one`".to_owned(), false);
        let inside = (one.0.clone(), one.1.clone(), true);
        let help = ("docs".to_owned(), "HttpsEdgeRoute `one/help`".to_owned(), false);
        let delete = |key: Key| Operation::Delete { key, with_children: true };
        assert_eq!(told(delete(edge.clone())), [one.clone(), help.clone()]);
        let patch = |field: &str| {
            let patch = r#"{"match_type": "path_prefix", "match": "/moved", "description": "moved"}"#;
            let spec: HttpsEdgeRoute = serde_json::from_str(patch).unwrap();
            Operation::Patch { key: route("edghtsrt_2"), spec: Arc::new(spec), fields: vec![field.to_owned()] }
        };
        assert_eq!(told(patch("match")), std::slice::from_ref(&inside));
        assert_eq!(told(patch("description")), std::slice::from_ref(&inside));
        assert_eq!(told(create(route("edghtsrt_3"), None)), std::slice::from_ref(&inside));
        assert_eq!(told(delete(route("edghtsrt_1"))), [help]);
        assert_eq!(told(delete(route("edghtsrt_2"))), [inside]);
        let both = owned_writes(&state, &[patch("match"), delete(edge.clone())]);
        assert_eq!(both.iter().map(|it| it.only_inside).collect::<Vec<_>>(), [false, false], "{both:?}");
        let owned = Entry { claim: claim("shop", "ci"), ..Entry::clone(state.get(&edge).unwrap()) };
        let owned = Entry { key: api_key.clone(), ..owned };
        let with_key = Snapshot::restore(1, 0, std::iter::empty(), [owned]);
        assert!(owned_writes(&with_key, &[delete(api_key)]).is_empty(), "a key can always be revoked");
    }
}
