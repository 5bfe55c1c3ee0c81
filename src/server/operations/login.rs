//! POST `/login/device` and `/login/device/token`: signing in on a command line through the OpenID Connect provider (D117).
//!
//! They are for `edgewright login --sso`, which has no token yet. Nothing is checked before the provider is asked, so few
//! requests ask it at a time, fewer of one address, and each body is small. A page of another site can send no JSON.

use crate::server::auth::oidc::connector::OpenIdConnect;
use crate::server::auth::oidc::device::DeviceProgress;
use crate::server::auth::oidc::person_token::token_of;
use crate::server::handler_prelude::*;
use crate::server::http::body::{self, Limits};
use crate::server::limits::guards::owner_by_address;

/// The path that begins.
pub(crate) const DEVICE: &str = "/login/device";
/// The path that asks for the token.
pub(crate) const DEVICE_TOKEN: &str = "/login/device/token";
/// How somebody has signed in, in the security log.
const DEVICE_FLOW: &str = "OpenID Connect, device code";
/// The limits of a body.
const BODY: Limits =
    Limits { bytes: 16 << 10, time: Duration::from_secs(5), first: Duration::from_secs(3), ..Limits::RESOURCE };

/// The question what has become of a device code.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeviceQuestion {
    pub device_code: String,
}

/// The token of a person, or when to ask again.
#[derive(Serialize, Deserialize)]
pub(crate) struct DeviceToken {
    /// The token; empty until somebody has signed in.
    pub token: String,
    /// When the token ends, or empty.
    pub expires_at: String,
    /// How many seconds to wait before the next question.
    pub interval: u64,
}

/// What `edgewright login` does, rather than operations of other clients: the OpenAPI document does not have them.
pub(super) static BEGIN: ApiOperation =
    ApiOperation::open(MethodFilter::POST, DEVICE, |method| on(method, begin)).any_query();
pub(super) static ASK: ApiOperation =
    ApiOperation::open(MethodFilter::POST, DEVICE_TOKEN, |method| on(method, ask)).any_query();

/// Begins to sign in.
async fn begin(State(app): State<AppState>, headers: HeaderMap, body: Body) -> ApiResult {
    if body::take(&headers, body, BODY).await?.is_empty() {
        return Err(ApiError::with_code(Code::ContentType, "the request body must be `{}`, with its content type"));
    }
    let begun = at_provider(&app, &headers, |access, provider| provider.begin_device(&access.sessions));
    let response = json_response(StatusCode::OK, &begun.await?)?;
    Ok(response::noted(response, SecurityNote::new(SecurityEvent::DeviceSignInBegun, "", None)))
}

/// Answers with the token, once somebody has signed in.
async fn ask(State(app): State<AppState>, headers: HeaderMap, body: Body) -> ApiResult {
    let bytes = body::take(&headers, body, BODY).await?;
    let question: DeviceQuestion = serde_json::from_slice(&bytes)
        .map_err(|_| ApiError::with_code(Code::Syntax, "the request body must be an object with `device_code`"))?;
    let progress = at_provider(&app, &headers, move |access, provider| {
        provider.poll_device(&access.sessions, &question.device_code)
    });
    let person = match progress.await? {
        DeviceProgress::SignedIn(person) => person,
        DeviceProgress::Pending(interval) => {
            let pending = DeviceToken { token: String::new(), expires_at: String::new(), interval };
            return json_response(StatusCode::OK, &pending);
        }
    };
    let note = app.access.sign_in_person(&headers, &person, DEVICE_FLOW)?;
    let (token, until) = token_of(&app.access.sessions, person, clock::now()).ok_or_else(ApiError::internal)?;
    let token = DeviceToken { token: token.expose().to_owned(), expires_at: until.to_string(), interval: 0 };
    Ok(response::noted(json_response(StatusCode::OK, &token)?, note))
}

/// Asks the provider on a thread that may wait for it.
pub(in crate::server) async fn at_provider<T: Send + 'static>(
    app: &AppState,
    headers: &HeaderMap,
    ask: impl FnOnce(&AccessControl, &OpenIdConnect) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if app.access.provider.is_none() {
        let fault = Fault::new(Code::NotFound, "this server has no OpenID Connect provider");
        return Err(ApiError::new(fault.help("sign in with the token of an API key")));
    }
    let place = app.admissions.sign_ins.enter(owner_by_address(headers).as_ref(), SlotPool::Shared)?;
    let access = Arc::clone(&app.access);
    place.render(move || ask(&access, access.provider.as_ref().ok_or_else(ApiError::internal)?)).await
}
