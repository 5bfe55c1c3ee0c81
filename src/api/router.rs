//! The router and its middleware.

use std::{any::Any, collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{RawPathParams, Request, rejection::RawPathParamsRejection},
    http::{HeaderValue, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, get},
};
use tower::ServiceExt;
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowHeaders, AllowMethods, Any as AnyOrigin, CorsLayer},
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::{
    App,
    answer::{ApiError, REQUEST_ID},
    drain,
    endpoint::{Endpoint, endpoints},
    handle::handle,
    metrics, openapi, query, ready, reconciliation, saml,
};
use crate::{model::code::Code, store::mint};

/// Builds the router of an [`App`].
pub fn router(app: App) -> Router {
    metrics::install();
    let app = Arc::new(app);
    let mut paths: BTreeMap<String, MethodRouter> = BTreeMap::new();
    for endpoint in endpoints() {
        let path = positional(&endpoint.path);
        let routes = paths.remove(&path).unwrap_or_else(|| MethodRouter::new().fallback(method_not_allowed));
        paths.insert(path, with_endpoint(routes, &app, endpoint));
    }
    let mut router = Router::new();
    for (path, routes) in paths {
        router = router.route(&path, routes);
    }
    let metadata = {
        let app = Arc::clone(&app);
        move |Parameters(parameters): Parameters, uri: Uri| async move {
            let parameters = parameters?;
            query::check(uri.query(), &[])?;
            saml::metadata(&app, parameters)
        }
    };
    let document = Arc::<str>::from(openapi::document(&app.settings.version_header).to_string());
    let document = move |uri: Uri| async move {
        query::check(uri.query(), &[])
            .map(|()| ([(header::CONTENT_TYPE, "application/json")], document.as_bytes().to_vec()))
    };
    let reconciliations = {
        let (make, list) = (Arc::clone(&app), Arc::clone(&app));
        get(move |request: Request<Body>| reconciliation::list(list, request))
            .post(move |request: Request<Body>| reconciliation::create(make, request))
            .fallback(method_not_allowed)
    };
    let reconciliation = {
        let app = Arc::clone(&app);
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let id = parameters?.into_iter().next().unwrap_or_default();
            reconciliation::get(app, id, request).await
        };
        get(answer).fallback(method_not_allowed)
    };
    let (measured, probed) = (Arc::clone(&app), Arc::clone(&app));
    let docs = SwaggerUi::new("/docs").config(Config::from("/openapi.json"));
    let router = router
        .route("/openapi.json", get(document).fallback(method_not_allowed))
        .merge(docs)
        .route("/reconciliations", reconciliations)
        .route("/reconciliations/{p0}", reconciliation)
        .route("/saml/{p0}", get(metadata).fallback(method_not_allowed))
        .route("/metrics", get(async move || metrics::page(&measured)).fallback(method_not_allowed))
        .route("/healthz", get(async || "ok\n").fallback(method_not_allowed))
        .route("/readyz", get(async move || ready::page(Arc::clone(&probed)).await).fallback(method_not_allowed))
        .fallback(async || ApiError::of(Code::NotFound, "not found: no endpoint at this path"))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(with_one_error_body))
        .layer(middleware::from_fn(metrics::observe));
    with_cors(router).layer(middleware::from_fn(with_request_id)).layer(middleware::from_fn(drain::drain))
}

/// Allows calls from any web page: the token protects the API, and browsers never send it by themselves. Only preflight
/// requests are answered directly; any other OPTIONS request is handled normally.
fn with_cors(router: Router) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(AnyOrigin)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(AnyOrigin);
    let (plain, open) = (router.clone(), router.layer(cors));
    Router::new().fallback_service(tower::service_fn(move |request: Request| {
        let preflight = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let answering = if request.method() == Method::OPTIONS && !preflight { plain.clone() } else { open.clone() };
        answering.oneshot(request)
    }))
}

/// Unifies parameter names: the router requires one name per segment, but kinds use different ones.
fn positional(path: &str) -> String {
    let mut number = 0;
    let segments = path.split('/').map(|segment| {
        if !segment.starts_with('{') {
            return segment.to_owned();
        }
        number += 1;
        format!("{{p{}}}", number - 1)
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The decoded path parameters in order; a path that is not UTF-8 is not found.
struct Parameters(Result<Vec<String>, ApiError>);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Parameters {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, Self::Rejection> {
        let params: Result<RawPathParams, RawPathParamsRejection> =
            RawPathParams::from_request_parts(parts, state).await;
        Ok(Self(match params {
            Ok(params) => Ok(params.iter().map(|(_, value)| value.to_owned()).collect()),
            Err(_) => Err(ApiError::of(Code::NotFound, "not found: no endpoint at this path")),
        }))
    }
}

fn with_endpoint(routes: MethodRouter, app: &Arc<App>, endpoint: Endpoint) -> MethodRouter {
    let filter = match endpoint.method {
        "POST" => MethodFilter::POST,
        "PATCH" => MethodFilter::PATCH,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    let app = Arc::clone(app);
    routes.on(filter, move |Parameters(parameters): Parameters, request: Request<Body>| async move {
        handle(app, endpoint, parameters?, request).await
    })
}

/// Responds to an unsupported method; the router adds the Allow header.
async fn method_not_allowed() -> ApiError {
    ApiError::of(Code::MethodNotAllowed, "method not allowed for this path")
}

fn panicked(_panic: Box<dyn Any + Send + 'static>) -> Response {
    // The panic's text is not sent to the client; the panic hook has logged it.
    ApiError::of(Code::Internal, "internal error in edgewright; nothing was changed").into_response()
}

/// Gives errors of third-party handlers the common error body (D9).
async fn with_one_error_body(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let code = match response.status() {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        _ => return response,
    };
    if response.headers().contains_key(REQUEST_ID) {
        return response;
    }
    let mut error = ApiError::of(code, "method not allowed for this path").into_response();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        error.headers_mut().insert(header::ALLOW, allow.clone());
    }
    error
}

/// Adds the request id to every response; an error already has the id of its body (D8).
async fn with_request_id(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if !response.headers().contains_key(REQUEST_ID)
        && let Ok(id) = HeaderValue::from_str(mint::fresh("op_").as_str())
    {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    if response.status() == StatusCode::NO_CONTENT {
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}
