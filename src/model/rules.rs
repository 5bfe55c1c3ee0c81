//! Rules that span several resources, which a single Spec cannot check.

use std::collections::BTreeSet;

use super::{
    Kind,
    code::Code,
    fault::{Aim, Fault, Path},
    key::Key,
    kind::{
        api_key::ApiKey,
        https_edge::HttpsEdge,
        owner::{Owner, Role},
    },
    module::tls_termination::TerminateAt,
    resource::{AnyResource, Reference},
    snapshot::Snapshot,
};

/// The route modules that work without decrypting traffic (D15).
const PASS_THROUGH: &[&str] = &["backend", "ip_restriction", "policies"];

/// Returns the first of the changed resources that is wrong together with its neighbours, and its faults. Paths are
/// inside its Spec.
pub fn check(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> Option<(Key, Vec<Fault>)> {
    let of_people = |key: &&Key| matches!(key.kind, Kind::ApiKey | Kind::Owner);
    // One pass over all keys covers every changed key.
    let last_admin = changed.iter().find(of_people).map(|key| (key, last_admin_faults(before, after)));
    let others = changed.iter().map(|key| match key.kind {
        Kind::HttpsEdge => (key, edge_faults(before, after, key)),
        Kind::HttpsEdgeRoute => (key, route_faults(after, key)),
        _ => (key, Vec::new()),
    });
    let found = last_admin.into_iter().chain(others).find(|(_, faults)| !faults.is_empty());
    found.map(|(key, faults)| (key.clone(), faults))
}

/// Creates the fault of a reference to a missing resource (D20).
pub fn unknown_reference(reference: &Reference) -> Fault {
    Fault::new(Code::UnknownReference, format!("{} not found", reference.target)).at(reference.path.clone())
}

/// Whether an edge passes TLS through to the upstream.
pub fn passes_through(edge: &HttpsEdge) -> bool {
    edge.tls_termination.as_ref().is_some_and(|tls| tls.terminate_at == TerminateAt::Upstream)
}

/// Returns a fault for each module that an edge cannot apply because it passes TLS through.
pub fn unreadable_modules(edge: &HttpsEdge, route: &dyn AnyResource) -> Vec<Fault> {
    if !passes_through(edge) {
        return Vec::new();
    }
    let slots = route.kind().info().slots.iter();
    slots
        .filter(|slot| route.module(slot).is_some() && !PASS_THROUGH.contains(&slot.name))
        .map(|slot| {
            Fault::new(
                Code::NotAllowed,
                format!(
                    "`{}` requires TLS termination at the edge (`terminate_at: upstream` passes TLS through)",
                    slot.name
                ),
            )
            .at(Path::root().join(slot.name))
            .of_key()
            .help("remove it, or set `terminate_at: edge`")
        })
        .collect()
}

/// Returns the fault of `mutual_tls` on an edge that passes TLS through.
pub fn mutual_tls_fault(edge: &HttpsEdge) -> Option<Fault> {
    (passes_through(edge) && edge.mutual_tls.is_some()).then(|| {
        Fault::new(Code::NotAllowed, "`mutual_tls` cannot be set when `terminate_at` is `upstream`")
            .at(Path::root().join("mutual_tls"))
            .of_key()
            .help("remove it, or set `terminate_at: edge`")
    })
}

fn edge_faults(before: &Snapshot, after: &Snapshot, key: &Key) -> Vec<Fault> {
    let Some(edge) = after.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>()) else { return Vec::new() };
    let terminate_at = Path::root().join("tls_termination").join("terminate_at");
    let former = before.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>());
    let unchanged = former.is_some_and(|former| former.mutual_tls == edge.mutual_tls);
    // Reported at the field that changed, where the author can fix it.
    let mutual_tls = mutual_tls_fault(edge).map(|fault| match unchanged {
        true => Fault { aim: Aim::Value, ..fault }.at(terminate_at.clone()),
        false => fault,
    });
    let mut faults: Vec<Fault> = mutual_tls.into_iter().collect();
    for route in after.children(key, Kind::HttpsEdgeRoute) {
        faults.extend(unreadable_modules(edge, route.spec.as_ref()).into_iter().take(1).map(|fault| {
            Fault::new(Code::NotAllowed, format!("{}: {}", route.key, fault.message)).at(terminate_at.clone())
        }));
    }
    faults
}

fn route_faults(after: &Snapshot, key: &Key) -> Vec<Fault> {
    let edge = key.parent_key().and_then(|parent| after.get(&parent));
    match (after.get(key), edge.and_then(|edge| edge.spec_as::<HttpsEdge>())) {
        (Some(route), Some(edge)) => unreadable_modules(edge, route.spec.as_ref()),
        _ => Vec::new(),
    }
}

/// Rejects the removal of the last admin key: nobody could manage the gateway without it.
fn last_admin_faults(before: &Snapshot, after: &Snapshot) -> Vec<Fault> {
    if has_admin(before) && !has_admin(after) {
        return vec![
            Fault::new(Code::LastAdmin, "the last admin key cannot be removed").help("create another admin key first"),
        ];
    }
    Vec::new()
}

fn has_admin(snapshot: &Snapshot) -> bool {
    snapshot
        .newest_first(Kind::ApiKey, None, u64::MAX)
        .filter_map(|entry| entry.spec_as::<ApiKey>())
        .any(|key| role_of(snapshot, &key.owner_id) == Some(Role::Admin))
}

/// Whether no admin key exists yet.
pub fn has_no_admin(snapshot: &Snapshot) -> bool {
    !has_admin(snapshot)
}

/// Returns an owner's role (D23).
pub fn role_of(snapshot: &Snapshot, owner: &str) -> Option<Role> {
    let key = Key::new(Kind::Owner, super::id::Id::new(owner));
    snapshot.get(&key)?.spec_as::<Owner>().map(|owner| owner.role)
}
