//! `If-Match`: a change that is based on the state that the client has read (D25).

use axum::http::{HeaderMap, header};

use super::api_error::ApiError;
use crate::model::{Code, Rendered};

/// The ETags of which a client expects one; none if it expects nothing.
pub(crate) struct Precondition(Vec<String>);

impl Precondition {
    /// Reads the headers of a request.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::IF_MATCH).iter().map(|value| value.to_str().unwrap_or_default());
        Self(values.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect())
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
