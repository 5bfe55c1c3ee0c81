//! The IDs of resources of other services, which a client states instead of getting them from the server (D20).

use crate::model::external_id::ExternalKind;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

/// Checks the ID of an implicit resource, which is created with its first module (D20), unless it exists.
pub(super) fn check_id(snapshot: &Snapshot, kind: Option<Kind>, id: &Id) -> Result<(), ApiError> {
    let Some(kind) = kind else { return Ok(()) };
    let external = ExternalKind::from_implicit(kind).filter(|_| snapshot.get(&Key::new(kind, id.clone())).is_none());
    match external.and_then(|external| external.id_fault(id.as_str())) {
        Some(fault) => Err(ApiError::new(fault)),
        None => Ok(()),
    }
}
