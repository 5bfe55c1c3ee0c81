//! Responses: bytes with an ETag, JSON, and what every response has.

use axum::http::header::IntoHeaderName;

use super::api_error::{ApiResult, JSON, REQUEST_ID};
use crate::model::{Rendered, json};
use crate::server::prelude::*;
use crate::server::telemetry::security::note::SecurityNote;
use crate::store::ids;

/// The header of a response to a PATCH that may have had another effect than its client meant (D65).
pub(super) const WARNING: &str = "edgewright-warning";
/// The warning about an API token in a path.
pub(crate) const TOKEN_SEEN: &str =
    "the path contains an API token, which proxies may have logged; delete its key, and use key IDs in paths";
/// The header of a response from a local copy of the store, which says since when it stands in for the database (D115).
pub(super) const LOCAL_COPY: &str = "edgewright-local-copy";

/// Creates a response with a JSON body without an ETag. Secrets are masked.
pub(crate) fn json_response(status: StatusCode, body: &impl Serialize) -> ApiResult {
    Ok((status, JSON, json::bytes(body, Secrets::Masked)?).into_response())
}

/// Sets a header, unless the text cannot be its value.
pub(crate) fn set_header(headers: &mut HeaderMap, name: impl IntoHeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Gives a response an id, unless it is an error, which has the id of its body (D8).
pub(crate) fn add_request_id(headers: &mut HeaderMap) {
    if !headers.contains_key(REQUEST_ID) {
        set_header(headers, REQUEST_ID, ids::fresh("op_").as_str());
    }
}

/// A body with its strong ETag (D25).
pub(crate) fn rendered(body: Vec<u8>) -> Rendered {
    let digest = blake3::hash(&body).to_hex();
    Rendered { etag: Arc::from(format!("\"{digest:.32}\"")), body: body.into_boxed_slice().into() }
}

/// The most headers of an ordinary response.
const HEADERS: usize = 8;

/// Creates the response for a resource, module or list.
pub(crate) fn resource(status: StatusCode, rendered: &Rendered) -> Response {
    let mut response = Response::new(Body::from(rendered.body.clone()));
    *response.status_mut() = status;
    // A map that grows moves all its headers.
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    set_header(headers, header::ETAG, &rendered.etag);
    response
}

/// Adds a note for the security log, if there is one.
pub(crate) fn noted(mut response: Response, note: impl Into<Option<SecurityNote>>) -> Response {
    if let Some(note) = note.into() {
        response.extensions_mut().insert(note);
    }
    response
}

/// Adds a warning header for each warning. Characters that a header cannot have are escaped, except the mark of a shortened text.
pub(crate) fn warn(response: &mut Response, warnings: &[String]) {
    let in_header = |c: char| match c {
        ' '..='~' => c.to_string(),
        '…' => "...".to_owned(),
        _ => c.escape_unicode().to_string(),
    };
    let values = warnings.iter().map(|warning| warning.chars().map(in_header).collect::<String>());
    for value in values.filter_map(|text| HeaderValue::try_from(text).ok()) {
        response.headers_mut().append(WARNING, value);
    }
}
