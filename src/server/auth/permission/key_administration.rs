//! Key administration: which API keys, owners and roles a caller may create, change and delete (D99, D101).

use std::borrow::Borrow;

use super::refusals::{needs, only_admins, refusal};
use crate::model::{ApiKey, KeyScope, Operation, Owner, Path};
use crate::server::auth::caller::Caller;
use crate::server::prelude::*;

/// Whether a caller may administer the keys of owners with a role, and give them this role. A gateway reads every secret,
/// so only admins do so for gateways.
fn may_administer(caller: Role, target: Role) -> bool {
    match caller {
        Role::Admin => true,
        Role::Editor => matches!(target, Role::Editor | Role::Planner | Role::Viewer),
        Role::Planner | Role::Viewer | Role::Gateway => false,
    }
}

/// Whether an operation is about a key or an owner.
pub(super) fn concerns(operation: &Operation) -> bool {
    matches!(operation.key().kind, Kind::ApiKey | Kind::Owner)
}

/// Checks the changes of keys, owners and roles among the operations of a caller.
pub(super) fn check<O: Borrow<Operation>>(caller: &Caller, current: &Snapshot, operations: &[O]) -> Result<(), Fault> {
    let operations = operations.iter().map(Borrow::<Operation>::borrow);
    operations.filter(|operation| concerns(operation)).try_for_each(|operation| match &caller.scope {
        None => check_one(caller, current, operation),
        Some(scope) => check_limited(caller, scope, current, operation),
    })
}

/// Checks an operation of a caller whose key has no scope.
fn check_one(caller: &Caller, current: &Snapshot, operation: &Operation) -> Result<(), Fault> {
    let (key, role) = (operation.key(), caller.role);
    let created = operation.spec_as::<ApiKey>().filter(|_| matches!(operation, Operation::Create { .. }));
    if let Some(created) = created {
        check_creation(caller, created, current)?;
    }
    // The role of the owner who has it now, and the one that the operation gives. A person with the role of the configuration can
    // be an owner with another one, which is the role of a new key.
    let now = match key.kind {
        Kind::Owner => rules::role_of(current, key.id.as_str()),
        _ => {
            let present = || current.get(key).and_then(|entry| entry.spec_as::<ApiKey>());
            created.or_else(present).and_then(|entry| rules::role_of(current, &entry.owner_id))
        }
    };
    let next = operation.spec_as::<Owner>().map(|owner| owner.role);
    match now.into_iter().chain(next).find(|target| !may_administer(role, *target)) {
        None => Ok(()),
        Some(target) => Err(refused(key, role, target, current)),
    }
}

/// Checks an operation of a caller whose key has a scope: it gives and takes no more than it has, and leaves owners alone.
fn check_limited(caller: &Caller, own: &KeyScope, current: &Snapshot, operation: &Operation) -> Result<(), Fault> {
    let key = operation.key();
    if key.kind == Kind::Owner {
        let message = match operation {
            Operation::Create { .. } if caller.role != Role::Admin => only_admins(key.id.as_str()),
            _ => "an API key with a scope cannot create owners or change their roles".to_owned(),
        };
        return Err(refusal(message, current));
    }
    // Also in the plan of a source: a manifest can declare a key.
    if !own.may_write(Kind::ApiKey) {
        return Err(needs(caller, "`ApiKey` in `kinds`", "manage API keys", current));
    }
    let present = current.get(key).and_then(|entry| entry.spec_as::<ApiKey>());
    if let Some(present) = present {
        let message = "only admins may change or delete the keys of another owner with a key that has a scope";
        check_owner(caller, &present.owner_id, message, current)?;
        within(caller, own, current, &present.owner_id, present.scope.as_deref())?;
    }
    match (operation, operation.spec_as::<ApiKey>()) {
        (Operation::Create { .. }, Some(created)) => {
            check_creation(caller, created, current)?;
            within(caller, own, current, &created.owner_id, created.scope.as_deref())
        }
        (Operation::Patch { fields, .. }, patch) if fields.iter().any(|field| field == "scope") => {
            let owner = present.map(|present| present.owner_id.as_str()).unwrap_or_default();
            within(caller, own, current, owner, patch.and_then(|key| key.scope.as_deref()))
        }
        _ => Ok(()),
    }
}

/// Only admins administer keys of others.
fn check_owner(caller: &Caller, owner: &str, message: &str, current: &Snapshot) -> Result<(), Fault> {
    let is_allowed = owner == caller.owner.as_str() || caller.role == Role::Admin;
    if is_allowed { Ok(()) } else { Err(refusal(message, current)) }
}

/// Only admins create keys for others.
fn check_creation(caller: &Caller, created: &ApiKey, current: &Snapshot) -> Result<(), Fault> {
    let message = only_admins(&created.owner_id);
    check_owner(caller, &created.owner_id, &message, current).map_err(|fault| fault.at("owner_id"))
}

/// Refuses a key of an owner that may do more than the caller's key.
fn within(
    caller: &Caller,
    own: &KeyScope,
    current: &Snapshot,
    owner: &str,
    scope: Option<&KeyScope>,
) -> Result<(), Fault> {
    let place = Path::root().join("scope");
    let more = |what: String, place: Path| {
        let message = format!("{} cannot manage a key with {what}", caller.described());
        Err(refusal(message, current).at(place))
    };
    let Some(scope) = scope else { return more("no scope, because it has one itself".into(), place) };
    // An owner that does not exist yet becomes an editor.
    let role = rules::role_of(current, owner).unwrap_or_default();
    let role = scope.role.map_or(role, |most| role.min(most));
    if role == Role::Gateway || role > caller.role {
        return more(format!("the role `{}`", role.as_str()), place.join("role"));
    }
    match own.exceeded_by(scope) {
        Some(field) => more(format!("a wider scope than its own: `{field}`"), place.join(field)),
        None => Ok(()),
    }
}

fn refused(key: &Key, caller: Role, target: Role, current: &Snapshot) -> Fault {
    let (caller, target) = (caller.as_str(), target.as_str());
    let message = match key.kind {
        Kind::Owner => format!("the role `{caller}` cannot administer owners with the role `{target}`"),
        _ => format!("the role `{caller}` cannot create, change or delete API keys of owners with the role `{target}`"),
    };
    refusal(message, current)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use super::*;
    use crate::model::diagnostics::code::Code;
    use crate::model::id::Id;
    use crate::server::auth::permission::allows_operations;
    use crate::store::clock::now;

    const ROLES: [Role; 5] = [Role::Gateway, Role::Viewer, Role::Planner, Role::Editor, Role::Admin];

    fn key_of(role: Role) -> Key {
        Key::new(Kind::ApiKey, Id::new(&format!("ak_{}", role.as_str())))
    }

    fn owner_of(role: Role) -> Key {
        Key::new(Kind::Owner, Id::new(&format!("usr_{}", role.as_str())))
    }

    fn new_key(id: &str, owner: &str) -> Operation {
        let spec = Arc::new(ApiKey { owner_id: owner.to_owned(), ..ApiKey::default() });
        Operation::create(Key::new(Kind::ApiKey, Id::new(id)), spec)
    }

    fn with_role(key: Key, role: Role) -> Operation {
        Operation::Patch { key, spec: Arc::new(Owner { role }), fields: vec!["role".into()] }
    }

    /// An owner and a key of each role.
    fn snapshot() -> Snapshot {
        let owners = ROLES.map(|role| Operation::create(owner_of(role), Arc::new(Owner { role })));
        let keys = ROLES.map(|role| new_key(key_of(role).id.as_str(), owner_of(role).id.as_str()));
        let operations: Vec<Operation> = owners.into_iter().chain(keys).collect();
        Snapshot::default().apply(&operations, now()).map(|(snapshot, _)| snapshot).unwrap_or_default()
    }

    fn allowed(caller: Role, snapshot: &Snapshot, operation: Operation) -> Result<(), Code> {
        let caller = Caller { key: key_of(caller).id, owner: owner_of(caller).id, role: caller, scope: None };
        allows_operations(&caller, &[operation], None, snapshot).map_err(|fault| fault.code)
    }

    #[test]
    fn nobody_administers_a_role_above_their_own() {
        let snapshot = snapshot();
        for caller in ROLES {
            for target in ROLES {
                let expected = match (caller, target) {
                    (Role::Admin, _) | (Role::Editor, Role::Editor | Role::Planner | Role::Viewer) => Ok(()),
                    _ => Err(Code::Forbidden),
                };
                let delete = |key: Key| Operation::Delete { key, with_children: true };
                let patch = Operation::Patch {
                    key: key_of(target),
                    spec: Arc::new(ApiKey::default()),
                    fields: vec!["description".into()],
                };
                let claim = Operation::Claim { key: key_of(target), claim: None };
                let named = [patch, claim, delete(key_of(target)), delete(owner_of(target))];
                for operation in named {
                    let shown = operation.to_string();
                    assert_eq!(allowed(caller, &snapshot, operation), expected, "{caller:?} {shown}");
                }
                // Neither the role that an owner has nor the one that it gets is above the caller's.
                let raised = with_role(owner_of(Role::Viewer), target);
                assert_eq!(allowed(caller, &snapshot, raised), expected, "{caller:?} makes a viewer {target:?}");
                let created =
                    Operation::create(Key::new(Kind::Owner, Id::new("usr_new")), Arc::new(Owner { role: target }));
                assert_eq!(allowed(caller, &snapshot, created), expected, "{caller:?} creates {target:?}");
                let own = (caller == target && caller == Role::Editor) || caller == Role::Admin;
                let created = allowed(caller, &snapshot, new_key("ak_new", owner_of(target).id.as_str()));
                assert_eq!(created.is_ok(), own, "{caller:?} creates a key for {target:?}");
            }
        }
    }

    #[test]
    fn a_person_creates_no_key_with_a_role_above_their_own() {
        let snapshot = snapshot();
        for caller in [Role::Editor, Role::Admin] {
            for stored in ROLES {
                let (key, owner) = (Id::new("person:ada"), owner_of(stored).id);
                let create = [new_key("ak_new", owner.as_str())];
                let caller = Caller { key, owner, role: caller, scope: None };
                for stated in [Some(&BTreeSet::new()), None] {
                    let found = allows_operations(&caller, &create, stated, &snapshot);
                    let is_allowed = may_administer(caller.role, stored);
                    assert_eq!(found.is_ok(), is_allowed, "{:?} of {stored:?}: {found:?}", caller.role);
                }
            }
        }
    }

    #[test]
    fn a_certificate_has_the_role_of_its_owner() {
        let (snapshot, key) = (snapshot(), Id::new("certificate:uri:urn:ci"));
        let delete = [Operation::Delete { key: key_of(Role::Viewer), with_children: true }];
        for (owner, expected) in [
            ("usr_admin", None),
            ("usr_editor", None),
            ("usr_viewer", Some(Code::Forbidden)),
            ("usr_gone", Some(Code::Unauthenticated)),
        ] {
            let caller = Caller { key: key.clone(), owner: Id::new(owner), role: Role::Admin, scope: None };
            let found = allows_operations(&caller, &delete, None, &snapshot).err();
            assert_eq!(found.map(|fault| fault.code), expected, "{owner}");
        }
    }

    #[test]
    fn the_role_at_the_revision_that_changes_counts() {
        let lowered = snapshot().apply(&[with_role(owner_of(Role::Editor), Role::Viewer)], now());
        let lowered = lowered.map(|(snapshot, _)| snapshot).unwrap_or_default();
        let delete = |key: Key| Operation::Delete { key, with_children: true };
        assert_eq!(allowed(Role::Editor, &lowered, delete(key_of(Role::Viewer))), Err(Code::Forbidden));
        let revoked = snapshot().apply(&[delete(key_of(Role::Editor))], now());
        let revoked = revoked.map(|(snapshot, _)| snapshot).unwrap_or_default();
        assert_eq!(allowed(Role::Editor, &revoked, delete(key_of(Role::Viewer))), Err(Code::Unauthenticated));
        // Other resources are not its business.
        let edge = delete(Key::new(Kind::HttpsEdge, Id::new("edghts_1")));
        assert_eq!(allowed(Role::Editor, &revoked, edge), Ok(()));
        assert_eq!(allowed(Role::Editor, &snapshot(), delete(Key::new(Kind::ApiKey, Id::new("ak_none")))), Ok(()));
    }

    fn scope(sources: &[&str]) -> KeyScope {
        let apply = sources.iter().map(|source| (*source).to_owned()).collect();
        KeyScope { apply, kinds: vec!["ApiKey".into()], ..KeyScope::default() }
    }

    fn scoped_key(id: &str, owner: Role, scope: Option<KeyScope>) -> Operation {
        let spec = ApiKey { owner_id: owner_of(owner).id.to_string(), scope: scope.map(Arc::new), ..ApiKey::default() };
        let key = Key::new(Kind::ApiKey, Id::new(id));
        Operation::create(key, Arc::new(spec))
    }

    /// Checks an operation of an editor's key that may apply `shop*`.
    fn limited(operation: Operation) -> Result<(), Code> {
        let keys = [
            scoped_key("ak_shop", Role::Editor, Some(scope(&["shop*"]))),
            scoped_key("ak_below", Role::Editor, Some(scope(&["shop-a"]))),
            scoped_key("ak_beside", Role::Editor, Some(scope(&["docs"]))),
            scoped_key("ak_above", Role::Admin, Some(scope(&["shop-a"]))),
        ];
        let snapshot = snapshot().apply(&keys, now()).unwrap().0;
        let key = Key::new(Kind::ApiKey, Id::new("ak_shop"));
        let own = snapshot.get(&key).unwrap().spec_as::<ApiKey>().unwrap().scope.clone();
        let caller = Caller { key: key.id, owner: owner_of(Role::Editor).id, role: Role::Editor, scope: own };
        allows_operations(&caller, &[operation], None, &snapshot).map_err(|fault| fault.code)
    }

    #[test]
    fn a_key_with_a_scope_grants_no_more_than_it_has() {
        let made = |owner: Role, scope: Option<KeyScope>| limited(scoped_key("ak_new", owner, scope));
        let refused = Err(Code::Forbidden);
        assert_eq!(made(Role::Editor, Some(scope(&["shop-a"]))), Ok(()));
        assert_eq!(made(Role::Editor, Some(scope(&["docs"]))), refused);
        assert_eq!(made(Role::Editor, None), refused);
        assert_eq!(made(Role::Viewer, Some(scope(&["shop-a"]))), refused, "only admins make keys for others");
        let change = |id: &str, scope: Option<KeyScope>| {
            let spec = Arc::new(ApiKey { scope: scope.map(Arc::new), ..ApiKey::default() });
            let key = Key::new(Kind::ApiKey, Id::new(id));
            limited(Operation::Patch { key, spec, fields: vec!["scope".into()] })
        };
        assert_eq!(change("ak_shop", Some(scope(&["shop-a"]))), Ok(()), "a key can limit itself");
        for wider in [Some(scope(&["*"])), Some(KeyScope { secrets: true, ..scope(&["shop*"]) }), None] {
            assert_eq!(change("ak_shop", wider.clone()), refused, "{wider:?}");
            assert_eq!(change("ak_below", wider.clone()), refused, "{wider:?}");
        }
        assert_eq!(change("ak_beside", Some(scope(&["shop-a"]))), refused);
        for (id, expected) in [("ak_below", Ok(())), ("ak_shop", Ok(())), ("ak_beside", refused), ("ak_above", refused)]
        {
            let key = Key::new(Kind::ApiKey, Id::new(id));
            assert_eq!(limited(Operation::Delete { key, with_children: true }), expected, "{id}");
        }
        assert_eq!(limited(Operation::Delete { key: key_of(Role::Viewer), with_children: true }), refused, "no scope");
        assert_eq!(limited(with_role(owner_of(Role::Viewer), Role::Editor)), refused);
    }

    #[test]
    fn a_manifest_creates_no_key_without_the_kind() {
        let own = KeyScope { kinds: Vec::new(), ..scope(&["shop"]) };
        let snapshot = snapshot().apply(&[scoped_key("ak_shop", Role::Editor, Some(own.clone()))], now()).unwrap().0;
        let (key, owner) = (Id::new("ak_shop"), owner_of(Role::Editor).id);
        let caller = Caller { key, owner, role: Role::Editor, scope: Some(Arc::new(own.clone())) };
        let created = scoped_key("ak_new", Role::Editor, Some(own));
        for stated in [Some(&BTreeSet::new()), None] {
            let found = allows_operations(&caller, std::slice::from_ref(&created), stated, &snapshot);
            assert_eq!(found.map_err(|fault| fault.code), Err(Code::Forbidden), "{stated:?}");
        }
    }
}
