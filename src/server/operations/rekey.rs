//! POST `/store/rekey`: encrypts the secrets of the store with a new data key while the server runs (D96). Only admins can
//! use it.

use axum::extract::FromRequest;

use super::checks::RequestBody;
use crate::server::handler_prelude::*;
use crate::server::http::response::add_request_id;
use crate::store::{MasterChange, RekeyResult};

pub(crate) const PATH: &str = "/store/rekey";

pub(super) static CREATE: ApiOperation = ApiOperation::post(PATH, Intent::Rekey, |method| on(method, create))
    .named("Store", "rekeyStore", "Encrypt the store with new keys")
    .described("Encrypts all secrets in the store with a new data key, without blocking other requests. If the master key has been replaced where the server reads it, the new one opens the store from then on. Only admins can send this request, one at a time. It can be repeated after any failure.")
    .documented("400 401 403 408 409 413 415 429 500 503", |operation, schemas| {
        let operation = operation.optional_body(schemas.request::<RekeyRequest>(), json!({"forget_secrets": false}));
        operation.ok(schemas.response::<RekeyReport>())
    });

/// How to treat former data keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RekeyRequest {
    /// Destroy all former data keys now: earlier revisions lose their secrets, and no rollback brings them back.
    #[serde(default)]
    pub forget_secrets: bool,
}

/// The keys of the store after a rotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RekeyReport {
    /// The ID of the new data key.
    pub data_key_id: String,
    /// The number of resources whose secrets were encrypted with it.
    pub encrypted_resources: usize,
    /// The ID of the master key.
    pub master_key_id: String,
    /// Whether the master key has replaced another one.
    pub master_key_changed: bool,
    /// The former data keys that still decrypt the secrets of earlier revisions, oldest first.
    pub former_keys: Vec<FormerKeyView>,
    /// The IDs of the former data keys that were destroyed.
    pub destroyed_key_ids: Vec<String>,
}

/// A former data key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FormerKeyView {
    /// The ID.
    pub id: String,
    /// When the key expires. It is destroyed at the next checkpoint of the store after that.
    pub until: String,
}

impl RekeyReport {
    /// Describes the keys of a store.
    pub(crate) fn new(done: &RekeyResult) -> Self {
        let former = done.former.iter();
        let former = former.map(|key| FormerKeyView { id: key.id.to_string(), until: key.until.to_string() });
        Self {
            data_key_id: done.key.to_string(),
            encrypted_resources: done.records,
            master_key_id: done.master.to_string(),
            master_key_changed: done.is_new_master,
            former_keys: former.collect(),
            destroyed_key_ids: done.destroyed.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Makes a new data key, and takes over a new master key.
async fn create(State(state): State<AppState>, caller: Caller, request: Request) -> ApiResult {
    let origin = state.access.guards.origin(&request);
    let body = RequestBody::from_request(request, &state).await?;
    let RekeyRequest { forget_secrets } = if body.is_empty() { RekeyRequest::default() } else { body.decode()? };
    let turn = state.admissions.rekeys.anonymous().map_err(|_| busy())?;
    // What has begun is done, also if the client goes away. It is logged here, because the router gets no response then.
    let run = move || {
        let _held = turn;
        let (reason, mut response) = match rekey(&state.served.store, forget_secrets) {
            Ok(response) if forget_secrets => ("former keys destroyed", response),
            Ok(response) => ("", response),
            Err(error) => ("failed", error.into_response()),
        };
        add_request_id(response.headers_mut());
        let mut note = caller.note(SecurityEvent::StoreRekeyed, reason);
        note.set_path(&Arc::from(PATH));
        state.access.guards.log(note, &origin, &response);
        Ok(response)
    };
    blocking(run).await
}

fn rekey(store: &Store, forgets: bool) -> ApiResult {
    let done = store.rekey(MasterChange::ReadAgain, forgets).map_err(refused)?;
    let report = RekeyReport::new(&done);
    tracing::info!(
        data_key = report.data_key_id,
        resources = report.encrypted_resources,
        master_key_changed = report.master_key_changed,
        "The secrets are encrypted with a new data key."
    );
    json_response(StatusCode::OK, &report)
}

fn busy() -> ApiError {
    let fault = Fault::new(Code::Conflict, "the store is already being encrypted with new keys");
    ApiError::new(fault.help("wait until this finishes, then send the request again"))
}

fn refused(error: StoreError) -> ApiError {
    match error.code {
        // A store in memory.
        Code::Conflict => ApiError::with_code(error.code, error.message),
        Code::MasterKey => {
            // The reason has local paths.
            tracing::error!(code = %error.code, reason = %error, "cannot read the master key");
            let fault = Fault::new(error.code, "the server cannot read its master key, so nothing was changed");
            ApiError::new(fault.help("see the server log for the reason"))
        }
        _ => error.into(),
    }
}
