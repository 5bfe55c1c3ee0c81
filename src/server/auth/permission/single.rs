//! The last check of a request that changes a single resource, at the revision that changes.

use std::{borrow::Borrow, net::IpAddr};

use super::{Manner, allows_address, allows_operations};
use crate::{
    model::{diagnostics::fault::Fault, operation::Operation, snapshot::Snapshot},
    server::auth::caller::Caller,
};

/// Whether a caller may make the operations of a request from an address. The scope of its key may have been narrowed while
/// the request waited.
pub(in crate::server) fn allows_request<O: Borrow<Operation>>(
    caller: &Caller,
    address: Option<IpAddr>,
    operations: &[O],
    current: &Snapshot,
) -> Result<(), Fault> {
    if let Ok(caller) = caller.at(current) {
        allows_address(&caller, address)?;
    }
    allows_operations(caller, operations, Manner::Single, current)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        model::{
            Kind,
            diagnostics::code::Code,
            id::Id,
            key::Key,
            key_scope::KeyScope,
            kind::{
                api_key::ApiKey,
                owner::{Owner, Role},
            },
        },
        store::ids_and_clock::now,
    };

    #[test]
    fn a_scope_that_is_narrowed_while_a_request_waits_counts() {
        let (key, owner) = (Id::new("ak_1"), Id::new("usr_1"));
        let before = Caller { key: key.clone(), owner: owner.clone(), role: Role::Editor, scope: None };
        let wide = KeyScope { kinds: vec!["*".into()], ..KeyScope::default() };
        let allowed = |scope: KeyScope| {
            let spec =
                Arc::new(ApiKey { owner_id: owner.to_string(), scope: Some(Arc::new(scope)), ..ApiKey::default() });
            let owner = Operation::Create {
                key: Key::new(Kind::Owner, owner.clone()),
                spec: Arc::new(Owner { role: Role::Editor }),
                claim: None,
                token: None,
            };
            let key = Operation::Create { key: Key::new(Kind::ApiKey, key.clone()), spec, claim: None, token: None };
            let current = Snapshot::default().apply(&[owner, key], now()).unwrap().0;
            let target = Key::new(Kind::IpRestriction, Id::new("ipx_1"));
            let operations = [Operation::Delete { key: target, with_children: true }];
            allows_request(&before, "192.0.2.7".parse().ok(), &operations, &current).map_err(|fault| fault.code)
        };
        assert_eq!(allowed(wide.clone()), Ok(()));
        let expired = KeyScope { expires_at: "2020-01-01T00:00:00Z".into(), ..wide.clone() };
        assert_eq!(allowed(expired), Err(Code::Unauthenticated));
        let elsewhere = KeyScope { addresses: vec!["198.51.100.0/24".into()], ..wide.clone() };
        assert_eq!(allowed(elsewhere), Err(Code::Forbidden));
        let here = KeyScope { addresses: vec!["192.0.2.0/24".into()], ..wide };
        assert_eq!(allowed(here), Ok(()));
    }
}
