//! The files that pages refer to, inside the program.

use axum::Router;
use axum::routing::{MethodRouter, get};

use crate::server::prelude::*;
use crate::server::state::AppState;

/// The routes of the files.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/ui/style.css", file("text/css; charset=utf-8", include_str!("assets/style.css")))
        .route("/ui/script.js", file("text/javascript; charset=utf-8", include_str!("assets/script.js")))
        .route("/ui/icon.svg", file("image/svg+xml", include_str!("assets/icon.svg")))
}

/// A browser asks again after an hour: the next version of the program may have another file.
fn file(content_type: &'static str, text: &'static str) -> MethodRouter<AppState> {
    get(([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "public, max-age=3600")], text))
}
