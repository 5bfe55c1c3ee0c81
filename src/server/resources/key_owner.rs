//! The owner of a new API key, which its request creates if needed (D23), and keys that could never work.

use super::endpoint::OWNER_ROLE;
use crate::model::{AnyResource, ApiKey, Path};
use crate::server::handler_prelude::*;

/// The role that a request gives the owner of its key. The owner and the key are one commit, so that no key has another role
/// in between.
pub(super) fn requested_role(query: Option<&str>) -> Result<Option<Role>, ApiError> {
    let message = |_: &str| format!("`{OWNER_ROLE}` must be one of {}", Role::ALL.map(Role::as_str).join(", "));
    query::parsed(query, OWNER_ROLE, Role::from_name, message)
}

/// The fault of a request that gives an API key an expiry in the past. A manifest whose key has expired is still applied.
pub(super) fn past_expiry(key: Option<&dyn AnyResource>, before: Option<&dyn AnyResource>) -> Option<Fault> {
    let scope = |key: Option<&dyn AnyResource>| key?.as_any().downcast_ref::<ApiKey>()?.scope.clone();
    let fault = scope(key)?.past_expiry(scope(before).as_deref(), clock::now())?;
    Some(fault.at(Path::root().join("scope").join("expires_at")))
}

/// Adds the operation that creates the owner of a new key if there is none, as an editor by default. It is decided at the revision
/// that changes: another request may have created the owner since this one began, with another role. Returns that conflict
/// beside the operations, since only those who may create the key learn it. The commit checks who may create the owner.
pub(super) fn with_owner(
    operations: Vec<Operation>,
    role: Option<Role>,
    current: &Snapshot,
) -> (Vec<Operation>, Option<ApiError>) {
    let of_key = |operation: &Operation| match operation {
        Operation::Create { .. } => operation.spec_as::<ApiKey>().map(|key| (key.owner_id.clone(), key.scope.clone())),
        _ => None,
    };
    let Some((owner, scope)) = operations.iter().find_map(of_key) else { return (operations, None) };
    match rules::new_owner(current, &owner, role) {
        Ok(created) => {
            let is_gateway = role.or_else(|| rules::role_of(current, &owner)) == Some(Role::Gateway);
            let fault = scope.filter(|_| is_gateway).and_then(|scope| scope.gateway_fault());
            let conflict = fault.map(|fault| ApiError::new(fault.at("scope")));
            (created.into_iter().chain(operations).collect(), conflict)
        }
        Err(has) => {
            let message = format!("`{}` already has the role `{}`", printable(&owner), has.as_str());
            let fault = Fault::new(Code::Conflict, message).at(OWNER_ROLE);
            let help = "omit the role, or change it with `edgewright owners set-role`";
            (operations, Some(ApiError::new(fault.help(help))))
        }
    }
}
