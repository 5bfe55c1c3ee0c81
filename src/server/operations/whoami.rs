//! GET `/whoami`: the API key of the request, its owner and the role (D105).

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Request, StatusCode},
    response::Response,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    model::{key_scope::KeyScope, kind::owner::Role},
    server::{
        auth::permission::Intent,
        http::{
            query,
            response::{ApiError, json_response},
        },
        openapi::{extension::ExtensionOperation, schemas::Schemas},
        state::AppState,
    },
};

/// The tag of the operations for administration.
pub(crate) const TAG: &str = "Administration";
/// The path.
pub(crate) const PATH: &str = "/whoami";

/// The caller of the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallerIdentity {
    /// The ID of the API key, `ak_…`, or `certificate:` and a name for a client certificate.
    pub key_id: String,
    /// The owner of the API key, `usr_…` or `bot_…`.
    pub owner_id: String,
    /// The role of the API key: that of the owner, or a lower one that the scope sets.
    pub role: Role,
    /// The scope of the API key, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Arc<KeyScope>>,
}

/// Returns who the caller is. Every role can ask.
pub(crate) async fn get(app: AppState, request: Request<Body>) -> Result<Response, ApiError> {
    let caller = app.access.admit(&app.served.store.snapshot(), &Intent::Identify, request.headers())?;
    query::check(request.uri().query(), &[])?;
    let identity = CallerIdentity {
        key_id: caller.key.to_string(),
        owner_id: caller.owner.to_string(),
        role: caller.role,
        scope: caller.scope,
    };
    Ok(json_response(StatusCode::OK, &identity)?)
}

/// The path with its operation.
pub(crate) fn path(schemas: &mut Schemas) -> (String, Value) {
    let get = ExtensionOperation::new(
        TAG,
        "getCaller",
        "Get the caller",
        "Returns the API key of the request, its owner, its role and its scope. Every role can read it.",
    )
    .ok(schemas.response::<CallerIdentity>())
    .fails(&["400", "401", "429", "500"]);
    (PATH.to_owned(), json!({"get": get.build()}))
}
