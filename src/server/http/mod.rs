//! HTTP without what it is about: from the bytes of a request to the handler, and from a result to the bytes of a response.
//!
//! [`service`] is what every request passes, [`endpoint_paths`] and [`router`] find the handler, and the other files are
//! the parts that handlers share: bodies, query parameters, preconditions, pages of lists, errors.

pub(crate) mod api_error;
pub(crate) mod body;
pub(crate) mod body_fields;
pub(crate) mod channel_body;
pub(crate) mod conditional;
pub(crate) mod cors;
mod docs;
mod endpoint_paths;
pub(crate) mod error_body;
pub(crate) mod page;
pub(crate) mod proxy;
pub(crate) mod query;
pub(crate) mod response;
pub(crate) mod router;
pub(crate) mod security_headers;
pub(crate) mod service;
