//! What a plan changes for one request, in the words of a behaviour diff.

use super::text::marked;
use super::unrouted::endpoints_change;
use super::wording::WordedDifference;
use crate::model::Snapshot;
use crate::routing::Trace;

/// Describes how a request to a port that was traced in the states before and after a plan is treated differently; empty if it is
/// treated alike.
pub(crate) fn request_difference([before, after]: [(&Snapshot, &Trace); 2], port: u16) -> String {
    let [then, now] = [before, after].map(|(state, traced)| traced.fate(state));
    let (mut opens, mut weakens_tls, mut parts) = (false, false, Vec::new());
    if !then.is_like(&now) {
        let difference = WordedDifference::new(&then, &now, port);
        (opens, weakens_tls) = (difference.opens, difference.weakens_tls);
        parts.push(difference.words);
    }
    // They are on the way of every request that a route handles.
    let of_endpoints =
        if then.route.is_some() && now.route.is_some() { endpoints_change(before.0, after.0) } else { None };
    if let Some(change) = of_endpoints {
        opens |= change.opens;
        parts.push(change.change);
    }
    marked(opens, weakens_tls, &parts.join("; "))
}
