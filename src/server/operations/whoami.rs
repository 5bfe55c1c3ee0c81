//! GET `/whoami`: the API key of the request, its owner and the role (D105).

use crate::{model::KeyScope, server::handler_prelude::*};

pub(crate) const PATH: &str = "/whoami";

pub(super) static GET: ApiOperation = ApiOperation::get(PATH, Intent::Identify, |method| on(method, get))
    .named("Administration", "getCaller", "Get the caller")
    .described("Returns the API key of the request, its owner, its role and its scope. Every role can read it.")
    .documented("400 401 429 500", |operation, schemas| operation.ok(schemas.response::<CallerIdentity>()));

/// The caller of the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CallerIdentity {
    /// The ID of the API key, `ak_…`, or `certificate:` or `person:` and a name for a client certificate or a person.
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
async fn get(caller: Caller) -> ApiResult {
    let identity = CallerIdentity {
        key_id: caller.key.to_string(),
        owner_id: caller.owner.to_string(),
        role: caller.role,
        scope: caller.scope,
    };
    json_response(StatusCode::OK, &identity)
}
