//! The metrics of connections.

use super::activity::CloseReason;
use crate::model::names::names;

pub(super) const OPEN: &str = "edgewright_connections";
pub(in crate::server) const ACCEPTED: &str = "edgewright_connections_accepted_total";
pub(super) const REFUSED: &str = "edgewright_connections_refused_total";
pub(super) const CLOSED: &str = "edgewright_connections_closed_total";
pub(in crate::server) const ACCEPT_FAILURES: &str = "edgewright_connections_accept_failures_total";
pub(in crate::server) const HANDSHAKE_FAILURES: &str = "edgewright_tls_handshake_failures_total";

/// Why a new connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalReason {
    /// All connections have a request.
    Full,
    /// All connections of its address have a request.
    Address,
}

names!(RefusalReason: Full "full", Address "address");

/// Describes the metrics with labels, and starts their counters at 0.
pub(in crate::server) fn describe() {
    metrics::describe_gauge!(OPEN, "Open connections.");
    metrics::gauge!(OPEN).increment(0.0);
    metrics::describe_counter!(REFUSED, "Connections that were refused because no other could be closed, by reason.");
    for reason in RefusalReason::ALL {
        metrics::counter!(REFUSED, "reason" => reason.as_str()).increment(0);
    }
    metrics::describe_counter!(CLOSED, "Connections that the server closed early, by reason.");
    for reason in CloseReason::ALL {
        metrics::counter!(CLOSED, "reason" => reason.as_str()).increment(0);
    }
}
