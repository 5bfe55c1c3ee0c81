//! The steps of every request before and after its endpoint: one function instead of a layer for each, because each
//! layer of a router boxes every request and response.

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Version;
use tower::ServiceExt;

use super::api_error::ApiError;
use super::endpoint_paths::EndpointPaths;
use super::response::{LOCAL_COPY, add_request_id};
use super::router;
use super::security_headers::{add_security_headers, is_page};
use crate::server::app::App;
use crate::server::auth::authentication::has_token_of_key;
use crate::server::limits::guards::{RequestOrigin, owner_by_address};
use crate::server::net::connections::ResponseFuture;
use crate::server::net::drain;
use crate::server::prelude::*;
use crate::server::replicas::read_your_writes::{AT_LEAST, add_revision, await_key, catch_up};
use crate::server::state::AppState;
use crate::server::telemetry::access_log_limit::AccessLogLimit;
use crate::server::telemetry::request_labels::note_client;
use crate::server::telemetry::security::note::SecurityNote;
use crate::server::telemetry::{access_log, metrics};

/// Builds the router of an [`App`].
pub fn router(app: App) -> Router {
    let service = ApiService::new(app);
    Router::new().fallback_service(tower::service_fn(move |request: Request| {
        let answering = service.answer(request);
        async move { Ok(answering.await) }
    }))
}

/// Refuses a request over HTTP/1.1 without a host, and one over HTTP/1 with several (RFC 9112, 3.2): a proxy before this server may
/// have taken another one. A program that embeds the API needs no connection and no host.
fn check_host(request: &Request) -> Result<(), ApiError> {
    let is_received = request.extensions().get::<ConnectInfo<SocketAddr>>().is_some();
    let hosts = request.headers().get_all(header::HOST).iter().count();
    let is_refused = match request.version() {
        Version::HTTP_11 => hosts != 1,
        version => version < Version::HTTP_11 && hosts > 1,
    };
    if is_received && is_refused {
        return Err(ApiError::with_code(Code::MalformedRequest, "a request must have exactly one `Host` header"));
    }
    Ok(())
}

/// The API of an [`App`], ready for requests.
pub(crate) struct ApiService {
    state: AppState,
    endpoints: EndpointPaths,
    /// Everything else.
    operation_routes: Router,
    /// Answers preflight requests of pages, if any page may call the API.
    preflights: Option<Router>,
    floods: Arc<AccessLogLimit>,
    /// Since when a local copy stands in for the database, if it does.
    local_copy: Option<HeaderValue>,
}

impl ApiService {
    /// Prepares the API for requests.
    pub(crate) fn new(app: App) -> Arc<Self> {
        metrics::install();
        let state = app.0;
        let caches = Arc::downgrade(&state.caches);
        state.served.store.when_secrets_are_forgotten(Box::new(move |revision| {
            caches.upgrade().map(|caches| caches.pages.forget_before(revision)).is_some()
        }));
        let operation_routes = router::operation_routes(&state);
        let preflights = state.access.guards.cors.preflights().map(|layer| operation_routes.clone().layer(layer));
        let endpoints = EndpointPaths::new(&state);
        let since = state.served.store.stands_in_since();
        let local_copy = since.and_then(|since| HeaderValue::from_str(&since.to_string()).ok());
        Arc::new(Self { state, endpoints, operation_routes, preflights, floods: Arc::default(), local_copy })
    }

    /// Answers a request.
    pub(crate) fn answer(self: &Arc<Self>, request: Request) -> ResponseFuture {
        let service = Arc::clone(self);
        Box::pin(async move {
            let mut request = request;
            let received = service.state.forwarder.receive(&mut request);
            service.state.access.client_certificates.vouch(&mut request);
            let client = service.state.access.guards.note_client(&mut request);
            let floods = Arc::clone(&service.floods);
            access_log::logged(request, floods, |request| service.respond(request, client, received)).await
        })
    }

    /// Handles a request, and adds what all responses have in common. `received` fails if it is not forwarded as it says.
    async fn respond(&self, request: Request, client: RequestOrigin, received: Result<(), ApiError>) -> Response {
        let guards = &self.state.access.guards;
        let is_preflight = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let preflights = self.preflights.as_ref().filter(|_| is_preflight);
        let is_page = is_page(request.uri().path());
        note_client(client.subnet());
        let place = received
            .and_then(|()| check_host(&request))
            .and_then(|()| guards.in_flight.enter(request.uri().path(), client.subnet()));
        let web_origin = guards.cors.origin(request.headers());
        let mut response = match place {
            Ok(place) => place.hold(drain::drain(request, |request| self.handle(preflights, request))).await,
            Err(shed) => drain::drain(request, |_| std::future::ready(shed.into_response())).await,
        };
        let note = response.extensions_mut().remove::<SecurityNote>();
        if note.as_ref().is_some_and(SecurityNote::is_failed_authentication)
            && let Some(refused) = guards.slow_down(&client).await
        {
            response = refused.into_response();
        }
        let status = response.status();
        let headers = response.headers_mut();
        add_revision(&self.state.served.store, status, headers);
        // A layer has added the headers of a preflight request.
        if preflights.is_none() {
            guards.cors.allow(web_origin, headers);
        }
        add_security_headers(headers, is_page);
        add_request_id(headers);
        if let Some(since) = &self.local_copy {
            headers.insert(LOCAL_COPY, since.clone());
        }
        if status == StatusCode::NO_CONTENT {
            headers.remove(header::CONTENT_LENGTH);
        }
        if let Some(note) = note {
            guards.log(note, &client, &response);
        }
        response
    }

    /// Waits until this server has the revision that a request needs. Its handler refuses a client without a valid token.
    async fn catch_up(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let AppState { access, served, admissions, .. } = &self.state;
        if let Some(owner) = access.admit_waiting(headers)? {
            return catch_up(&served.store, headers, &admissions.catch_ups, &owner).await;
        }
        match owner_by_address(headers).filter(|_| has_token_of_key(headers)) {
            Some(client) => await_key(&served.store, headers, &admissions.unknown_keys, &client).await,
            None => Ok(()),
        }
    }

    async fn handle(&self, preflights: Option<&Router>, request: Request) -> Response {
        if request.headers().contains_key(AT_LEAST)
            && let Err(behind) = Box::pin(self.catch_up(request.headers())).await
        {
            return behind.into_response();
        }
        if preflights.is_none()
            && let Some(found) = self.endpoints.find(request.uri().path())
        {
            return found.answer(request).await;
        }
        let router = preflights.unwrap_or(&self.operation_routes).clone();
        // Endpoints need no room for this.
        Box::pin(router.oneshot(request)).await.unwrap_or_else(|never| match never {})
    }
}
