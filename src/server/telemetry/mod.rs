//! What a server tells its operators: metrics, the access log, and the security log (D87, D95, D99).

pub(crate) mod access_log;
pub(crate) mod access_log_limit;
pub(crate) mod metrics;
pub(crate) mod request_labels;
mod request_span;
pub(crate) mod security;
