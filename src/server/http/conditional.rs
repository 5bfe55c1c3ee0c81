//! Conditional reads: 304 in place of a body that the client has (D25).

use super::api_error::ApiResult;
use super::response::{rendered, resource, set_header};
use crate::model::{Rendered, json};
use crate::server::prelude::*;

/// Responds to a GET, with 304 if the client's copy is current (D25).
pub(crate) fn response(headers: &HeaderMap, rendered: &Rendered) -> Response {
    not_modified(headers, &rendered.etag).unwrap_or_else(|| resource(StatusCode::OK, rendered))
}

/// Responds to a GET with a JSON body, or with 304 if the client's copy is current (D25). Secrets are masked.
pub(crate) fn json_response(headers: &HeaderMap, body: &impl Serialize) -> ApiResult {
    Ok(response(headers, &rendered(json::bytes(body, Secrets::Masked)?)))
}

/// Responds with 304 if the client's copy is current (D25).
pub(crate) fn not_modified(headers: &HeaderMap, etag: &str) -> Option<Response> {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    known.any(|tag| tag == "*" || tag == etag).then(|| {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        set_header(response.headers_mut(), header::ETAG, etag);
        response
    })
}
