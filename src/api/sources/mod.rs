//! `/sources`: the sources that the server follows, and their status (D83).

pub(crate) mod document;
pub(crate) mod view;

use std::{collections::HashMap, sync::Arc};

use axum::{body::Body, http::Request, response::Response};

use super::{
    App,
    answer::{self, ApiError},
    auth, query,
};
use crate::{
    model::{code::Code, json, secret::Secrets},
    reconcile::{following::Following, status::SourceStatus},
    text::printable,
};
use view::{SourceList, SourceView};

/// Lists the sources in the order of the configuration.
pub(super) async fn list(app: Arc<App>, request: Request<Body>) -> Result<Response, ApiError> {
    admit(&app, &request)?;
    blocking(app, move |app| {
        let list = SourceList { sources: views(app), uri: format!("{}/sources", app.site.base_url) };
        let rendered = answer::rendered(json::bytes(&list, Secrets::Masked)?);
        Ok(answer::conditional(request.headers(), &rendered))
    })
    .await
}

/// Returns the status of a source.
pub(super) async fn get(app: Arc<App>, name: String, request: Request<Body>) -> Result<Response, ApiError> {
    admit(&app, &request)?;
    blocking(app, move |app| {
        let found = views(app).into_iter().find(|source| source.name == name).ok_or_else(|| unknown(&name))?;
        let rendered = answer::rendered(json::bytes(&found, Secrets::Masked)?);
        Ok(answer::conditional(request.headers(), &rendered))
    })
    .await
}

fn admit(app: &App, request: &Request<Body>) -> Result<(), ApiError> {
    auth::admit(app, &app.store.snapshot(), request.method(), request.headers())?;
    query::check(request.uri().query(), &[])
}

fn unknown(name: &str) -> ApiError {
    ApiError::of(Code::NotFound, format!("this server follows no source `{}`", printable(name)))
}

/// Counts the resources on a blocking thread, which takes long in a large store.
async fn blocking(
    app: Arc<App>,
    respond: impl FnOnce(&App) -> Result<Response, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let answer = tokio::task::spawn_blocking(move || respond(&app)).await;
    answer.map_err(|_| ApiError::of(Code::Internal, "internal error while handling the request"))?
}

fn views(app: &App) -> Vec<SourceView> {
    let snapshot = app.store.snapshot();
    let mut owned: HashMap<&str, usize> = HashMap::new();
    for claim in snapshot.iter().filter_map(|entry| entry.claim.as_ref()) {
        *owned.entry(claim.source.as_str()).or_default() += 1;
    }
    let all: Vec<(&str, SourceStatus)> =
        app.following.iter().map(|following| (following.source.as_str(), following.status.current())).collect();
    let view = |following: &Arc<Following>| {
        let count = owned.get(following.source.as_str()).copied().unwrap_or_default();
        SourceView::of(following, &all, count, &app.site.base_url)
    };
    app.following.iter().map(view).collect()
}
