//! Rules that span several resources, which a single Spec cannot check.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use rayon::prelude::*;

use super::{Snapshot, has_own_id};
use crate::background::yield_to_requests;
use crate::model::diagnostics::{Code, Fault, FaultTarget, Path};
use crate::model::id::Id;
use crate::model::key::Key;
use crate::model::key_scope::KeyScope;
use crate::model::kind::Kind;
use crate::model::kind::api_key::ApiKey;
use crate::model::kind::https_edge::HttpsEdge;
use crate::model::kind::owner::{Owner, Role};
use crate::model::module::Slot;
use crate::model::module::tls_termination::TerminateAt;
use crate::model::operation::Operation;
use crate::model::reference::Reference;
use crate::model::resource::any_resource::AnyResource;
use crate::syntax::text::printable;

/// The most admins that a refusal names, and how many of the newest and of the oldest keys are looked at for them.
const MOST_NAMED: usize = 3;
const MOST_LOOKED_AT: usize = 500;

/// Returns the first of the changed resources that is wrong together with its neighbours, and its faults. Paths are
/// inside its Spec.
pub(crate) fn check(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> Option<(Key, Vec<Fault>)> {
    let of_people = |key: &&Key| matches!(key.kind, Kind::ApiKey | Kind::Owner);
    // One pass over all keys covers every changed key.
    let last_admin = changed.iter().find(of_people).map(|key| (key, last_admin_faults(before, after)));
    let is_found = |(_, faults): &(&Key, Vec<Fault>)| !faults.is_empty();
    let keys: Vec<&Key> = changed.iter().collect();
    let others = || {
        let faults = |key: &&Key| {
            yield_to_requests();
            match key.kind {
                Kind::HttpsEdge => edge_faults(before, after, key),
                Kind::HttpsEdgeRoute => route_faults(after, key),
                _ => Vec::new(),
            }
        };
        keys.par_iter().with_min_len(256).map(|key| (*key, faults(key))).find_first(is_found)
    };
    let found = last_admin.filter(is_found).or_else(others).or_else(|| taken_id(before, after, changed));
    found.map(|(key, faults)| (key.clone(), faults))
}

/// Returns the first new child whose ID a child of another parent has, and its fault. An ID alone would mean either of them, and two
/// routes of one ID have one SAML key (D36).
fn taken_id<'c>(before: &Snapshot, after: &Snapshot, changed: &'c BTreeSet<Key>) -> Option<(&'c Key, Vec<Fault>)> {
    let is_new = |key: &&Key| has_own_id(key.kind) && before.get(key).is_none() && after.get(key).is_some();
    let mut new: HashMap<(Kind, &Id), &Key> = HashMap::new();
    changed.iter().filter(is_new).find_map(|key| {
        yield_to_requests();
        let old = before.find_child(key.kind, &key.id).map(|entry| &entry.key);
        // A rollback creates first, and deletes after that.
        let old = old.filter(|old| after.get(old).is_some());
        let parent = new.insert((key.kind, &key.id), key).or(old)?.parent_key()?;
        let message = format!("{key} already exists in {}", after.name_of(&parent));
        Some((key, vec![Fault::new(Code::Conflict, message)]))
    })
}

/// Creates the fault of a reference to a missing resource (D20).
pub(crate) fn unknown_reference(reference: &Reference) -> Fault {
    Fault::new(Code::UnknownReference, format!("{} not found", reference.target)).at(reference.path.clone())
}

/// Whether an edge passes TLS through to the upstream.
pub(crate) fn passes_through(edge: &HttpsEdge) -> bool {
    edge.tls_termination.as_ref().is_some_and(|tls| tls.terminate_at == TerminateAt::Upstream)
}

/// Returns the modules of an edge or of its route that the edge cannot apply because it passes TLS through, and their faults.
fn unreadable(edge: &HttpsEdge, host: &dyn AnyResource, message: fn(&str) -> String) -> Vec<(&'static Slot, Fault)> {
    if !passes_through(edge) {
        return Vec::new();
    }
    let fault = |slot: &'static Slot| {
        let fault = Fault::new(Code::NotAllowed, message(slot.name)).at(slot.name).of_key();
        (slot, fault.help("remove it, or set `terminate_at: edge`"))
    };
    host.modules().filter(|(slot, _)| slot.needs_termination).map(|(slot, _)| fault(slot)).collect()
}

/// Returns a fault for each module of a route that its edge cannot apply because it passes TLS through.
pub(crate) fn unreadable_modules(edge: &HttpsEdge, route: &dyn AnyResource) -> Vec<Fault> {
    let message = |name: &str| {
        format!("`{name}` requires TLS termination at the edge (`terminate_at: upstream` passes TLS through)")
    };
    unreadable(edge, route, message).into_iter().map(|(_, fault)| fault).collect()
}

/// Returns a fault for each module of an edge's own that the edge cannot apply because it passes TLS through.
pub(crate) fn unreadable_edge_modules(edge: &HttpsEdge) -> Vec<(&'static Slot, Fault)> {
    unreadable(edge, edge, |name| format!("`{name}` cannot be set when `terminate_at` is `upstream`"))
}

fn edge_faults(before: &Snapshot, after: &Snapshot, key: &Key) -> Vec<Fault> {
    let Some(edge) = after.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>()) else { return Vec::new() };
    let terminate_at = Path::from("tls_termination").join("terminate_at");
    let former = before.get(key).map(|former| former.spec().as_ref());
    let current: &dyn AnyResource = edge;
    let unchanged = |slot: &Slot| match (former.and_then(|former| former.module(slot)), current.module(slot)) {
        (Some(former), Some(current)) => former.same(current),
        _ => false,
    };
    // Reported at the field that changed, where the author can fix it.
    let of_edge = unreadable_edge_modules(edge).into_iter().map(|(slot, fault)| match unchanged(slot) {
        true => Fault { target: FaultTarget::Value, ..fault }.at(terminate_at.clone()),
        false => fault,
    });
    let mut faults: Vec<Fault> = of_edge.collect();
    if !passes_through(edge) {
        // An edge that terminates TLS can have every module, so its routes need not be decoded.
        return faults;
    }
    let owner = after.get(key).and_then(|entry| entry.source());
    for route in after.children(key) {
        let other = route.source().filter(|source| Some(*source) != owner);
        faults.extend(unreadable_modules(edge, route.spec().as_ref()).into_iter().take(1).map(|fault| {
            let message = format!("{}: {}", after.name_of(&route.key), fault.message);
            let fault = Fault::new(Code::NotAllowed, message).at(terminate_at.clone());
            match other {
                Some(source) => fault.help(format!(
                    "ask the owner of source `{}` to remove the module; until then, leave `terminate_at` as it was, so \
                     that everything else is applied",
                    printable(source)
                )),
                None => fault,
            }
        }));
    }
    faults
}

fn route_faults(after: &Snapshot, key: &Key) -> Vec<Fault> {
    let edge = key.parent_key().and_then(|parent| after.get(&parent));
    match (after.get(key), edge.and_then(|edge| edge.spec_as::<HttpsEdge>())) {
        (Some(route), Some(edge)) if passes_through(edge) => unreadable_modules(edge, route.spec().as_ref()),
        _ => Vec::new(),
    }
}

/// Rejects the removal of the last admin key: nobody could manage the gateway without it.
fn last_admin_faults(before: &Snapshot, after: &Snapshot) -> Vec<Fault> {
    if has_admin(before) && !has_admin(after) {
        let keys: Vec<Key> = admins(before).map(|(key, _)| key.clone()).collect();
        let message = format!("the last admin key cannot be removed: {}", before.names_of(&keys));
        let help = "create another one without a scope first, such as with `edgewright keys create --role admin`";
        return vec![Fault::new(Code::LastAdmin, message).help(help)];
    }
    Vec::new()
}

/// Whether an admin key exists.
pub(crate) fn has_admin(snapshot: &Snapshot) -> bool {
    admins(snapshot).next().is_some()
}

fn keys(snapshot: &Snapshot) -> impl Iterator<Item = (&Key, &ApiKey)> {
    let keys = snapshot.newest_first(Kind::ApiKey, None, u64::MAX);
    keys.filter_map(|entry| Some((&entry.key, entry.spec_as::<ApiKey>()?)))
}

/// The keys that may do everything. A key with a scope does not count: it cannot set roles, and may expire.
fn admins(snapshot: &Snapshot) -> impl Iterator<Item = (&Key, &ApiKey)> {
    keys(snapshot).filter(move |(_, key)| is_of_admin(snapshot, key))
}

fn is_of_admin(snapshot: &Snapshot, key: &ApiKey) -> bool {
    key.scope.is_none() && role_of(snapshot, &key.owner_id) == Some(Role::Admin)
}

/// Returns the role of a key: that of its owner, or a lower one that its scope sets (D101).
pub(crate) fn key_role(snapshot: &Snapshot, key: &ApiKey) -> Option<Role> {
    let owner = role_of(snapshot, &key.owner_id)?;
    let most = key.scope.as_ref().and_then(|scope| scope.role);
    Some(most.map_or(owner, |most| owner.min(most)))
}

/// Counts the keys that may apply every source, and are no admin's.
pub(crate) fn keys_of_every_source(snapshot: &Snapshot) -> usize {
    count_wide(keys(snapshot).filter_map(|(_, key)| Some((key.scope.as_deref(), key_role(snapshot, key)?))))
}

/// Counts the scopes and roles that may apply every source, and are no admin's.
pub(crate) fn count_wide<'k>(keys: impl Iterator<Item = (Option<&'k KeyScope>, Role)>) -> usize {
    keys.filter(|(scope, role)| *role == Role::Editor && scope.is_none_or(KeyScope::may_apply_all)).count()
}

/// Returns the description of the newest key of an owner that has one; empty if there is none among the newest keys. It says
/// more than the ID.
pub(crate) fn owner_description<'s>(snapshot: &'s Snapshot, owner: &str) -> &'s str {
    let mut newest = keys(snapshot).take(MOST_LOOKED_AT).map(|(_, key)| key);
    let described = newest.find(|key| key.owner_id == owner && !key.description.is_empty());
    described.map_or("", |key| key.description.as_str())
}

/// Returns the owners of keys that may do everything, at most three. Of many keys, only the newest and the oldest are looked at:
/// a refusal names them, and a page can have one for each row.
pub(crate) fn some_admins(snapshot: &Snapshot) -> Vec<&str> {
    let all = || snapshot.newest_first(Kind::ApiKey, None, u64::MAX);
    let some = all().take(MOST_LOOKED_AT).chain(all().rev().take(MOST_LOOKED_AT));
    let mut found: Vec<&str> = Vec::new();
    for key in some.filter_map(|entry| entry.spec_as::<ApiKey>()).filter(|key| is_of_admin(snapshot, key)) {
        let owner = key.owner_id.as_str();
        if !found.contains(&owner) {
            found.push(owner);
        }
        if found.len() == MOST_NAMED {
            break;
        }
    }
    found
}

/// Returns an owner's role (D23).
pub(crate) fn role_of(snapshot: &Snapshot, owner: &str) -> Option<Role> {
    let key = Key::new(Kind::Owner, Id::new(owner));
    snapshot.get(&key)?.spec_as::<Owner>().map(|owner| owner.role)
}

/// Returns the operation that creates the owner of a new API key if there is none yet, as an editor by default. Fails with the
/// role of the owner if it is not the requested one.
pub(crate) fn new_owner(snapshot: &Snapshot, owner: &str, role: Option<Role>) -> Result<Option<Operation>, Role> {
    match (role_of(snapshot, owner), role) {
        (None, role) => {
            let spec = Arc::new(Owner { role: role.unwrap_or_default() });
            Ok(Some(Operation::create(Key::new(Kind::Owner, Id::new(owner)), spec)))
        }
        (Some(has), Some(role)) if has != role => Err(has),
        (Some(_), _) => Ok(None),
    }
}
