//! Conditional requests: 304 in place of a body that the client has, and changes that are based on the state that it has read
//! (D25).

use super::api_error::{ApiError, ApiResult};
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
    let mut known = tags(headers, header::IF_NONE_MATCH).map(|tag| tag.trim_start_matches("W/"));
    known.any(|tag| tag == "*" || tag == etag).then(|| {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        set_header(response.headers_mut(), header::ETAG, etag);
        response
    })
}

/// The ETags of which a client that changes something expects one; none if it expects nothing.
pub(crate) struct Precondition(Vec<String>);

impl Precondition {
    /// Reads the headers of a request.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        Self(tags(headers, header::IF_MATCH).map(str::to_owned).collect())
    }

    /// The precondition of a request that creates something: that has no ETag yet.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// Fails unless the resource is as the client expects it. It is only rendered if the client expects anything.
    pub(crate) fn check(&self, now: impl FnOnce() -> Result<Option<Rendered>, ApiError>) -> Result<(), ApiError> {
        if self.0.is_empty() {
            return Ok(());
        }
        match now()? {
            Some(now) if self.0.iter().any(|tag| tag == "*" || **tag == *now.etag) => Ok(()),
            _ => {
                let message = "`If-Match` does not match the current state of the resource";
                Err(ApiError::with_code(Code::PreconditionFailed, message))
            }
        }
    }
}

/// The ETags in a header. One that cannot be read is no ETag of anything.
fn tags(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
    values.flat_map(|value| value.split(',')).map(str::trim)
}
