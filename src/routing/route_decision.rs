//! Why a route handles a request, or does not.

use std::fmt;

/// Whether a route handles a request, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteDecision {
    /// The route handles the request.
    Taken,
    /// The `match` is empty, or the `match_type` is unset.
    NoMatch,
    /// The `match` has a different host.
    OtherHost,
    /// The `match` has a different path.
    PathDiffers,
    /// The edge passes TLS through and cannot see the path.
    PathUnread,
    /// The winner's host is more specific.
    CloserHostWins,
    /// The winner is an `exact_path`.
    ExactWins,
    /// The winner has a longer prefix.
    Shorter(String),
    /// The winner has the same match and a lower ID.
    Twin,
}

impl fmt::Display for RouteDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteDecision::Taken => f.write_str("handles the request"),
            RouteDecision::NoMatch => f.write_str("no match"),
            RouteDecision::OtherHost => f.write_str("host differs"),
            RouteDecision::PathDiffers => f.write_str("path differs"),
            RouteDecision::PathUnread => f.write_str("the edge cannot see the path"),
            RouteDecision::CloserHostWins => f.write_str("a more specific host wins"),
            RouteDecision::ExactWins => f.write_str("exact_path wins"),
            RouteDecision::Shorter(than) => write!(f, "shorter prefix than {than}"),
            RouteDecision::Twin => f.write_str("same match, the lower ID wins"),
        }
    }
}
