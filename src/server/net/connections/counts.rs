//! The metrics of connections.

use super::activity::CloseReason;

const OPEN: &str = "edgewright_connections";
const ACCEPTED: &str = "edgewright_connections_accepted_total";
const REFUSED: &str = "edgewright_connections_refused_total";
const CLOSED: &str = "edgewright_connections_closed_total";
const ACCEPT_FAILURES: &str = "edgewright_connections_accept_failures_total";
const HANDSHAKE_FAILURES: &str = "edgewright_tls_handshake_failures_total";

/// Why a new connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusedFor {
    /// All connections have a request.
    Full,
    /// All connections of its address have a request.
    Address,
}

impl RefusedFor {
    fn label(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Address => "address",
        }
    }
}

/// Describes the metrics, and starts the counters at 0.
pub(in crate::server) fn describe() {
    metrics::describe_gauge!(OPEN, "Open connections.");
    metrics::gauge!(OPEN).increment(0.0);
    for (name, help) in [
        (ACCEPTED, "Accepted connections."),
        (ACCEPT_FAILURES, "Failures to accept a connection, such as too many open files."),
        (HANDSHAKE_FAILURES, "Failed TLS handshakes."),
    ] {
        metrics::describe_counter!(name, help);
        metrics::counter!(name).increment(0);
    }
    metrics::describe_counter!(REFUSED, "Connections that were refused because no other could be closed, by reason.");
    for reason in [RefusedFor::Full, RefusedFor::Address] {
        metrics::counter!(REFUSED, "reason" => reason.label()).increment(0);
    }
    metrics::describe_counter!(CLOSED, "Connections that the server closed early, by reason.");
    for reason in CloseReason::ALL {
        metrics::counter!(CLOSED, "reason" => reason.label()).increment(0);
    }
}

/// Counts a connection.
pub(super) fn opened() {
    metrics::counter!(ACCEPTED).increment(1);
    metrics::gauge!(OPEN).increment(1.0);
}

/// Counts the end of a connection.
pub(super) fn ended() {
    metrics::gauge!(OPEN).decrement(1.0);
}

/// Counts a connection that is refused.
pub(super) fn refused(reason: RefusedFor) {
    metrics::counter!(REFUSED, "reason" => reason.label()).increment(1);
}

/// Counts a connection that is closed early.
pub(super) fn closed(reason: CloseReason) {
    metrics::counter!(CLOSED, "reason" => reason.label()).increment(1);
}

/// Counts a failure to accept a connection.
pub(super) fn accept_failed() {
    metrics::counter!(ACCEPT_FAILURES).increment(1);
}

/// Counts a failed TLS handshake.
pub(super) fn handshake_failed() {
    metrics::counter!(HANDSHAKE_FAILURES).increment(1);
}
