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

/// Sets the owner of a key: the caller by default. Returns the operation that creates the owner if there is none yet, as an
/// editor by default. The commit checks who may create it.
pub(super) fn set_owner(
    key: &mut ApiKey,
    role: Option<Role>,
    caller: &Caller,
    snapshot: &Snapshot,
) -> Result<Option<Operation>, ApiError> {
    if key.owner_id.is_empty() {
        key.owner_id = caller.owner.to_string();
    }
    rules::new_owner(snapshot, &key.owner_id, role).map_err(|has| {
        let message = format!("`{}` already has the role `{}`", printable(&key.owner_id), has.as_str());
        let fault = Fault::new(Code::Conflict, message).at(OWNER_ROLE);
        ApiError::new(fault.help("omit the role, or change it with `edgewright owners set-role`"))
    })
}
