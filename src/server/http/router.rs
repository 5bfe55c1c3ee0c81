//! The router of everything but the endpoints of resources.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{RawPathParams, Request, rejection::RawPathParamsRejection},
    http::{HeaderValue, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::{
    query,
    response::{ApiError, REQUEST_ID},
};
use crate::server::{
    gateway_feed,
    operations::{
        backup, export, history, hooks, origin, owners, ready, reconciliation, rekey, rollback, saml, sources, trace,
        transfer, watch, whoami,
    },
    state::AppState,
    telemetry::metrics,
};

/// Everything but the endpoints of resources.
pub(super) fn others(app: &AppState) -> Router {
    let metadata = {
        let app = app.clone();
        move |Parameters(parameters): Parameters, uri: Uri| async move {
            let parameters = parameters?;
            query::check(uri.query(), &[])?;
            saml::metadata(&app, parameters)
        }
    };
    let document = {
        let document = Arc::clone(&app.document);
        move |uri: Uri| async move {
            query::check(uri.query(), &[])?;
            Ok::<_, ApiError>(([(header::CONTENT_TYPE, "application/json")], Bytes::clone(&document)))
        }
    };
    let reconciliations = {
        let (make, list) = (app.clone(), app.clone());
        get(move |request: Request<Body>| reconciliation::list(list, request))
            .post(move |request: Request<Body>| reconciliation::create(make, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let reconciliation = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let id = parameters?.into_iter().next().unwrap_or_default();
            reconciliation::get(app, id, request).await
        };
        get(answer).fallback(async || ApiError::method_not_allowed())
    };
    let changes = {
        let app = app.clone();
        get(move |request: Request<Body>| history::list(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let change = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let revision = parameters?.into_iter().next().unwrap_or_default();
            history::get(app, revision, request).await
        };
        get(answer).fallback(async || ApiError::method_not_allowed())
    };
    let blame = {
        let app = app.clone();
        get(move |request: Request<Body>| history::blame(app, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let rollbacks = {
        let app = app.clone();
        post(move |request: Request<Body>| rollback::create(app, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let list_sources = {
        let app = app.clone();
        get(move |request: Request<Body>| sources::list(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let get_source = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let name = parameters?.into_iter().next().unwrap_or_default();
            sources::get(app, name, request).await
        };
        get(answer).fallback(async || ApiError::method_not_allowed())
    };
    let suspend_source = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let name = parameters?.into_iter().next().unwrap_or_default();
            sources::suspend(app, name, request).await
        };
        post(answer).fallback(async || ApiError::method_not_allowed())
    };
    let resume_source = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let name = parameters?.into_iter().next().unwrap_or_default();
            sources::resume(app, name, request).await
        };
        post(answer).fallback(async || ApiError::method_not_allowed())
    };
    let destroy_source = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let name = parameters?.into_iter().next().unwrap_or_default();
            sources::destroy::create(app, name, request).await
        };
        post(answer).fallback(async || ApiError::method_not_allowed())
    };
    let watch = {
        let app = app.clone();
        get(move |request: Request<Body>| watch::watch(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let get_origin = {
        let app = app.clone();
        let answer = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let id = parameters?.into_iter().next().unwrap_or_default();
            origin::get(app, id, request).await
        };
        get(answer).fallback(async || ApiError::method_not_allowed())
    };
    let list_owners = {
        let app = app.clone();
        get(move |request: Request<Body>| owners::list(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let owner = {
        let (read, change) = (app.clone(), app.clone());
        let shown = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let id = parameters?.into_iter().next().unwrap_or_default();
            owners::get(read, id, request).await
        };
        let changed = move |Parameters(parameters): Parameters, request: Request<Body>| async move {
            let id = parameters?.into_iter().next().unwrap_or_default();
            owners::patch(change, id, request).await
        };
        get(shown).patch(changed).fallback(async || ApiError::method_not_allowed())
    };
    let git_hook = {
        let app = app.clone();
        post(move |request: Request<Body>| hooks::git(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let gateway_configuration = {
        let app = app.clone();
        get(move |request: Request<Body>| gateway_feed::get(app, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let backup = {
        let app = app.clone();
        get(move |request: Request<Body>| backup::get(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let rekeyed = {
        let app = app.clone();
        post(move |request: Request<Body>| rekey::create(app, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let caller = {
        let app = app.clone();
        get(move |request: Request<Body>| whoami::get(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let exported = {
        let app = app.clone();
        get(move |request: Request<Body>| export::get(app, request)).fallback(async || ApiError::method_not_allowed())
    };
    let traced = {
        let app = app.clone();
        post(move |request: Request<Body>| trace::create(app, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let transfers = {
        let app = app.clone();
        post(move |request: Request<Body>| transfer::create(app, request))
            .fallback(async || ApiError::method_not_allowed())
    };
    let (measured, probed) = (app.clone(), app.clone());
    // Relative URLs, because a reverse proxy may publish the pages below a path (D13).
    let docs: Router = SwaggerUi::new("/docs").config(Config::from("../openapi.json")).into();
    let docs = docs.layer(middleware::map_response(with_relative_location));
    Router::<()>::new()
        .route("/openapi.json", get(document).fallback(async || ApiError::method_not_allowed()))
        .merge(docs)
        .route("/reconciliations", reconciliations)
        .route("/reconciliations/{p0}", reconciliation)
        .route("/rollbacks", rollbacks)
        .route(transfer::PATH, transfers)
        .route("/history", changes)
        .route("/history/blame", blame)
        .route("/history/{p0}", change)
        .route("/sources", list_sources)
        .route("/sources/{p0}", get_source)
        .route("/sources/{p0}/suspend", suspend_source)
        .route("/sources/{p0}/resume", resume_source)
        .route("/sources/{p0}/destroy", destroy_source)
        .route("/resources/{p0}", get_origin)
        .route("/owners", list_owners)
        .route("/owners/{p0}", owner)
        .route("/hooks/git", git_hook)
        .route(rekey::PATH, rekeyed)
        .route(gateway_feed::document::PATH, gateway_configuration)
        .route(backup::PATH, backup)
        .route(whoami::PATH, caller)
        .route(export::PATH, exported)
        .route(trace::PATH, traced)
        .route("/saml/{p0}", get(metadata).fallback(async || ApiError::method_not_allowed()))
        .route(watch::document::PATH, watch)
        .route(
            "/metrics",
            get(async move || metrics::page(measured.clone()).await).fallback(async || ApiError::method_not_allowed()),
        )
        .route("/healthz", get(async || "ok\n").fallback(async || ApiError::method_not_allowed()))
        .route(
            "/readyz",
            get(async move || ready::page(probed.clone()).await).fallback(async || ApiError::method_not_allowed()),
        )
        .fallback(async || ApiError::no_endpoint())
        .layer(middleware::from_fn(with_one_error_body))
        .layer(middleware::from_fn(metrics::observe))
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
            Err(_) => Err(ApiError::no_endpoint()),
        }))
    }
}

/// Redirects `/docs` to `docs/` beside it, wherever it is published.
async fn with_relative_location(mut response: Response) -> Response {
    if let Some(location) = response.headers_mut().get_mut(header::LOCATION) {
        *location = HeaderValue::from_static("docs/");
    }
    response
}

/// Gives errors of third-party handlers the common error body (D9).
async fn with_one_error_body(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let error = match response.status() {
        StatusCode::NOT_FOUND => ApiError::no_endpoint(),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::method_not_allowed(),
        _ => return response,
    };
    if response.headers().contains_key(REQUEST_ID) {
        return response;
    }
    let mut error = error.into_response();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        error.headers_mut().insert(header::ALLOW, allow.clone());
    }
    error
}
