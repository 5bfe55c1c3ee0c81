//! The owner of a new API key, which its request creates if needed (D23).

use super::endpoint::OWNER_ROLE;
use crate::model::ApiKey;
use crate::server::handler_prelude::*;

/// The role that a request gives the owner of its key. The owner and the key are one commit, so that no key has another role
/// in between.
pub(super) fn requested_role(query: Option<&str>) -> Result<Option<Role>, ApiError> {
    let message = |_: &str| format!("`{OWNER_ROLE}` must be one of {}", Role::ALL.map(Role::as_str).join(", "));
    query::parsed(query, OWNER_ROLE, Role::from_name, message)
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
        Operation::Create { .. } => operation.spec_as::<ApiKey>().map(|key| key.owner_id.clone()),
        _ => None,
    };
    let Some(owner) = operations.iter().find_map(of_key) else { return (operations, None) };
    match rules::new_owner(current, &owner, role) {
        Ok(created) => (created.into_iter().chain(operations).collect(), None),
        Err(has) => {
            let message = format!("`{}` already has the role `{}`", printable(&owner), has.as_str());
            let fault = Fault::new(Code::Conflict, message).at(OWNER_ROLE);
            let help = "omit the role, or change it with `edgewright owners set-role`";
            (operations, Some(ApiError::new(fault.help(help))))
        }
    }
}
