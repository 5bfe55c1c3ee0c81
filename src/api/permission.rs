//! Who administers whom: which API keys, owners and roles a caller may create, change and delete (D99).

use std::borrow::Borrow;

use crate::model::{
    Kind,
    code::Code,
    fault::{Fault, Path},
    id::Id,
    key::Key,
    kind::{
        api_key::ApiKey,
        owner::{Owner, Role},
    },
    operation::{CERTIFICATE, Operation},
    rules,
    snapshot::Snapshot,
};

/// Whether a caller may administer the keys of owners with a role, and give them this role. A gateway reads every secret,
/// so only admins do so for gateways.
fn may_administer(caller: Role, target: Role) -> bool {
    match caller {
        Role::Admin => true,
        Role::Editor => matches!(target, Role::Editor | Role::Viewer),
        Role::Viewer | Role::Gateway => false,
    }
}

/// Checks the changes of keys, owners and roles among the operations of a caller. The roles at the revision that changes
/// count: a role may be taken away while a request waits.
pub(super) fn check<O: Borrow<Operation>>(
    caller: (&Id, &Id),
    current: &Snapshot,
    operations: &[O],
) -> Result<(), Fault> {
    let operations = operations.iter().map(Borrow::<Operation>::borrow);
    let mut concerned = operations.filter(|it| matches!(it.key().kind, Kind::ApiKey | Kind::Owner)).peekable();
    if concerned.peek().is_none() {
        return Ok(());
    }
    let (key, owner) = caller;
    // A certificate is in no store.
    let is_certificate = key.as_str().starts_with(CERTIFICATE);
    let has_key = is_certificate || current.get(&Key::new(Kind::ApiKey, key.clone())).is_some();
    let Some(role) = rules::role_of(current, owner.as_str()).filter(|_| has_key) else {
        return Err(Fault::new(Code::Unauthenticated, "the API key was deleted during the request"));
    };
    concerned.try_for_each(|operation| check_one((owner, role), current, operation))
}

fn check_one((owner, role): (&Id, Role), current: &Snapshot, operation: &Operation) -> Result<(), Fault> {
    let key = operation.key();
    if let Operation::Create { spec, .. } = operation
        && let Some(created) = spec.as_any().downcast_ref::<ApiKey>()
    {
        if created.owner_id != owner.as_str() && role != Role::Admin {
            let fault = Fault::new(Code::Forbidden, "only admins may create a key for another owner");
            return Err(fault.help("ask an admin to create the key").at(Path::root().join("owner_id")));
        }
        return Ok(());
    }
    // The role of the owner who has it now, and the one that the operation gives.
    let now = match key.kind {
        Kind::Owner => rules::role_of(current, key.id.as_str()),
        _ => {
            let entry = current.get(key).and_then(|entry| entry.spec_as::<ApiKey>());
            entry.and_then(|entry| rules::role_of(current, &entry.owner_id))
        }
    };
    let next = match operation {
        Operation::Create { spec, .. } | Operation::Patch { spec, .. } => {
            spec.as_any().downcast_ref::<Owner>().map(|owner| owner.role)
        }
        _ => None,
    };
    match now.into_iter().chain(next).find(|target| !may_administer(role, *target)) {
        None => Ok(()),
        Some(target) => Err(refused(key, role, target)),
    }
}

fn refused(key: &Key, caller: Role, target: Role) -> Fault {
    let (caller, target) = (caller.as_str(), target.as_str());
    let message = match key.kind {
        Kind::Owner => format!("the role `{caller}` cannot administer owners with the role `{target}`"),
        _ => format!("the role `{caller}` cannot change or delete API keys of owners with the role `{target}`"),
    };
    Fault::new(Code::Forbidden, message).help("ask an admin")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::mint::now;

    const ROLES: [Role; 4] = [Role::Gateway, Role::Viewer, Role::Editor, Role::Admin];

    fn key_of(role: Role) -> Key {
        Key::new(Kind::ApiKey, Id::new(&format!("ak_{}", role.as_str())))
    }

    fn owner_of(role: Role) -> Key {
        Key::new(Kind::Owner, Id::new(&format!("usr_{}", role.as_str())))
    }

    fn new_key(id: &str, owner: &str) -> Operation {
        let spec = Arc::new(ApiKey { owner_id: owner.to_owned(), ..ApiKey::default() });
        Operation::Create { key: Key::new(Kind::ApiKey, Id::new(id)), spec, claim: None, token: None }
    }

    fn with_role(key: Key, role: Role) -> Operation {
        Operation::Patch { key, spec: Arc::new(Owner { role }), fields: vec!["role".into()] }
    }

    /// An owner and a key of each role.
    fn snapshot() -> Snapshot {
        let owners = ROLES.map(|role| Operation::Create {
            key: owner_of(role),
            spec: Arc::new(Owner { role }),
            claim: None,
            token: None,
        });
        let keys = ROLES.map(|role| new_key(key_of(role).id.as_str(), owner_of(role).id.as_str()));
        let operations: Vec<Operation> = owners.into_iter().chain(keys).collect();
        Snapshot::default().apply(&operations, now()).map(|(snapshot, _)| snapshot).unwrap_or_default()
    }

    fn allowed(caller: Role, snapshot: &Snapshot, operation: Operation) -> Result<(), Code> {
        let (key, owner) = (key_of(caller).id, owner_of(caller).id);
        check((&key, &owner), snapshot, &[operation]).map_err(|fault| fault.code)
    }

    #[test]
    fn nobody_administers_a_role_above_their_own() {
        let snapshot = snapshot();
        for caller in ROLES {
            for target in ROLES {
                let expected = match (caller, target) {
                    (Role::Admin, _) | (Role::Editor, Role::Editor | Role::Viewer) => Ok(()),
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
                let created = Operation::Create {
                    key: Key::new(Kind::Owner, Id::new("usr_new")),
                    spec: Arc::new(Owner { role: target }),
                    claim: None,
                    token: None,
                };
                assert_eq!(allowed(caller, &snapshot, created), expected, "{caller:?} creates {target:?}");
                let own = caller == target || caller == Role::Admin;
                let created = allowed(caller, &snapshot, new_key("ak_new", owner_of(target).id.as_str()));
                assert_eq!(created.is_ok(), own, "{caller:?} creates a key for {target:?}");
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
            let found = check((&key, &Id::new(owner)), &snapshot, &delete).err();
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
}
