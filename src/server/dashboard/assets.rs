//! The files that pages refer to, inside the program.

use axum::routing::{MethodRouter, get};

use crate::server::prelude::*;
use crate::server::state::AppState;

/// The stylesheet.
pub(super) fn style() -> MethodRouter<AppState> {
    file("text/css; charset=utf-8", include_str!("assets/style.css"))
}

/// The script.
pub(super) fn script() -> MethodRouter<AppState> {
    file("text/javascript; charset=utf-8", include_str!("assets/script.js"))
}

/// The icon.
pub(super) fn icon() -> MethodRouter<AppState> {
    file("image/svg+xml", include_str!("assets/icon.svg"))
}

/// A browser asks again after an hour: the next version of the program may have another file.
fn file(content_type: &'static str, text: &'static str) -> MethodRouter<AppState> {
    get(([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "public, max-age=3600")], text))
}
