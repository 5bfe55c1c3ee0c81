//! The page for browsers at `/docs`, which shows the OpenAPI document. Its URLs are relative, because a reverse proxy may
//! publish it below a path (D13).

use axum::Router;
use axum::response::Redirect;
use axum::routing::{MethodRouter, get};

use crate::server::prelude::*;
use crate::server::state::AppState;

/// The routes of the page and its files.
pub(super) fn page_routes() -> Router<AppState> {
    Router::new()
        .route("/docs", get(Redirect::to("docs/")))
        .route("/docs/", file("text/html; charset=utf-8", include_str!("index.html")))
        .route("/docs/script.js", file("text/javascript; charset=utf-8", include_str!("script.js")))
        .route("/docs/style.css", file("text/css; charset=utf-8", include_str!("style.css")))
}

fn file(content_type: &'static str, text: &'static str) -> MethodRouter<AppState> {
    get(([(header::CONTENT_TYPE, content_type)], text))
}
