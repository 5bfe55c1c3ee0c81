//! The checks of every request before its handler, in the order of D3: path, API key, version, permission and query by
//! [`admit`], and then the body by [`RequestBody`] and [`JsonBody`].

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::operation::{ApiOperation, ForwardedRequests};
use crate::model::decode::{Decoded, decode};
use crate::model::diagnostics::Check;
use crate::model::diagnostics::fault::add_new_faults;
use crate::reconcile::run::cancel::Cancel;
use crate::server::auth::caller::Caller;
use crate::server::http::api_error::{ApiError, ApiResult};
use crate::server::http::body::{self, Limits};
use crate::server::http::{body_fields, query};
use crate::server::limits::blocking_task::with_body;
use crate::server::net::peer::safe_peer;
use crate::server::prelude::*;
use crate::server::replicas::forwarder::OutgoingRequest;
use crate::server::state::{AppState, ServedStore};
use crate::syntax::yaml::Tape;

/// How long the server that writes may take for a read that this server can answer, too, with the wait for a turn.
const READ: Duration = Duration::from_secs(2);

/// Checks the requests of an operation.
#[derive(Clone)]
pub(in crate::server) struct OperationGate {
    operation: &'static ApiOperation,
    /// The query parameters; none if any are ignored.
    known: Option<Arc<[&'static str]>>,
    app: AppState,
}

impl OperationGate {
    /// Prepares the checks of an operation.
    pub(in crate::server) fn new(operation: &'static ApiOperation, app: AppState) -> Self {
        let known = operation.parameters().map(|all| all.into_iter().map(|(name, _)| name).collect());
        Self { operation, known, app }
    }
}

/// A request that was admitted.
#[derive(Clone)]
struct AdmittedRequest {
    operation: &'static ApiOperation,
    /// The parameter of the path; empty if it has none.
    parameter: String,
}

/// The middleware of every operation. The handler can extract the [`Caller`].
pub(in crate::server) async fn admit(State(gate): State<OperationGate>, request: Request, next: Next) -> ApiResult {
    let (mut parts, body) = request.into_parts();
    let OperationGate { operation, known, app } = gate;
    let (access, mut body) = (&app.access, body);
    let parameter = path_parameters(&mut parts).await?.into_iter().next().unwrap_or_default();
    if let Some(intent) = operation.intent(&parameter) {
        let caller = access.admit(&access.store.snapshot(), &intent, &parts.headers)?;
        if let Some(secrets) = operation.secrets {
            safe_peer(&parts.extensions, &caller, secrets)?;
        }
        parts.extensions.insert(caller);
    }
    if let Some(known) = known {
        query::check(parts.uri.query(), &known)?;
    }
    if app.forwarder.is_needed() {
        body = match Box::pin(forward(&app, operation, &parts, body)).await? {
            Ok(response) => return Ok(response),
            Err(unforwarded) => unforwarded,
        };
    }
    parts.extensions.insert(AdmittedRequest { operation, parameter });
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// Forwards a request to the server that writes, and returns its response. Returns the body of a request that this server answers
/// itself.
async fn forward(
    app: &AppState,
    operation: &ApiOperation,
    parts: &Parts,
    body: Body,
) -> Result<Result<Response, Body>, ApiError> {
    let owner = parts.extensions.get::<Caller>().map(|caller| &caller.owner);
    let places = &app.admissions.forwards;
    match operation.forwarded(&parts.method) {
        ForwardedRequests::Nothing => Ok(Err(body)),
        ForwardedRequests::IfReached => {
            if app.forwarder.check(parts).is_err() {
                return Ok(Err(body));
            }
            let outgoing = OutgoingRequest { timeout: Some(READ), ..OutgoingRequest::new(owner, parts, Bytes::new()) };
            let read = timeout(READ, app.forwarder.forward(places, outgoing)).await;
            // Another status is about that server, and not about what was asked for.
            let is_answer = |response: &Response| {
                let status = response.status();
                status.is_success() || [StatusCode::NOT_MODIFIED, StatusCode::NOT_FOUND].contains(&status)
            };
            Ok(read.ok().and_then(Result::ok).filter(is_answer).ok_or(body))
        }
        ForwardedRequests::Applying => {
            let bytes = body::take(&parts.headers, body, Limits::RESOURCE).await?;
            if BodyHead::read(&bytes).await?.is_dry_run() {
                return Ok(Err(Body::from(bytes)));
            }
            app.forwarder.forward(places, OutgoingRequest::new(owner, parts, bytes)).await.map(Ok)
        }
        ForwardedRequests::All => app.forwarder.forward_change(places, owner, parts, body).await.map(Ok),
    }
}

/// The fields of a body that decide about its place and about who answers it. All others are skipped.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct BodyHead {
    dry_run: Option<bool>,
    page: Option<bool>,
    pub(super) source: Option<String>,
}

impl BodyHead {
    /// Reads the fields. An invalid body applies nothing: this server finds its errors.
    pub(super) async fn read(bytes: &Bytes) -> Result<Self, ApiError> {
        let (size, bytes) = (bytes.len(), bytes.clone());
        with_body(size, move || Self::parse(&bytes)).await
    }

    /// Reads the fields of a small body.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|_| Self { dry_run: Some(true), ..Self::default() })
    }

    /// Whether the request changes nothing.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run.unwrap_or_default()
    }

    /// Whether the plan gets a page in the dashboard.
    pub(super) fn wants_page(&self) -> bool {
        self.page.unwrap_or_default()
    }
}

/// The decoded parameters of a path. One that is not UTF-8 is not found.
pub(in crate::server) async fn path_parameters(parts: &mut Parts) -> Result<Vec<String>, ApiError> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.map_err(|_| ApiError::no_endpoint())?;
    Ok(parameters.iter().map(|(_, value)| value.to_owned()).collect())
}

/// A JSON body, which may be missing.
#[derive(Default)]
pub(crate) struct RequestBody {
    content: Tape,
    /// The faults of keys and numbers.
    faults: Vec<Fault>,
    is_empty: bool,
}

impl FromRequest<AppState> for RequestBody {
    type Rejection = ApiError;

    /// Receives the body, and admits the request again: the key may have been revoked meanwhile.
    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let (content, faults, size) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
        let AdmittedRequest { operation, parameter } =
            parts.extensions.get::<AdmittedRequest>().ok_or_else(ApiError::internal)?;
        if let Some(intent) = operation.intent(parameter) {
            state.access.admit_again(&state.served.store.snapshot(), &intent, &parts.headers)?;
        }
        Ok(Self { content, faults, is_empty: size == 0 })
    }
}

impl RequestBody {
    /// Whether the request has no body.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Whether the request has no body, or null.
    pub(super) fn is_null(&self) -> bool {
        self.content.root().is_null()
    }

    /// Decodes the body.
    pub(super) fn decode<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        let (value, faults) = decoded(&self.content, self.faults);
        body_fields::without_faults(value, faults)
    }
}

/// Decodes a body that must not be null, and returns its faults beside those of its keys and numbers.
pub(super) fn decode_required<T: DeserializeOwned>(content: Tape, faults: Vec<Fault>) -> Result<Decoded<T>, ApiError> {
    Ok(decoded(&body_fields::body(content)?, faults))
}

fn decoded<T: DeserializeOwned>(content: &Tape, mut faults: Vec<Fault>) -> Decoded<T> {
    let (value, found) = decode::<T>(content.root(), None);
    add_new_faults(&mut faults, found);
    (value, faults)
}

/// The valid body of a request that must have one.
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned + Check + Send> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let RequestBody { content, faults, .. } = RequestBody::from_request(request, state).await?;
        let (value, mut faults) = decode_required::<T>(content, faults)?;
        if let Some(value) = &value {
            add_new_faults(&mut faults, value.faults());
        }
        body_fields::without_faults(value, faults).map(Self)
    }
}

/// A request that searches in the store.
pub(crate) struct SearchRequest {
    app: AppState,
    caller: Caller,
}

impl FromRequestParts<AppState> for SearchRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        Ok(Self { app: app.clone(), caller: Caller::from_request_parts(parts, app).await? })
    }
}

impl SearchRequest {
    /// Takes a place for a search of the caller, and searches when it is its turn.
    pub(super) async fn run(
        self,
        search: impl FnOnce(&ServedStore, &Cancel) -> ApiResult + Send + 'static,
    ) -> ApiResult {
        let AppState { served, admissions, .. } = self.app;
        let place = admissions.searches.for_owner(&self.caller.owner)?;
        place.run(move |cancel| search(&served, &cancel)).await
    }
}
