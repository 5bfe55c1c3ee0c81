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
    if !then.is_like_at(&now, port) {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::routing::tests::{edge_key, route, route_key, state_of_json};
    use crate::routing::{TracedRequest, trace};

    #[test]
    fn the_words_tell_nobody_whether_secrets_of_two_routes_are_equal() {
        let hook =
            |provider: &str, secret: &str| json!({"webhook_verification": {"provider": provider, "secret": secret}});
        let home = |modules: Value| (route_key("edghts_1", "edghtsrt_1"), route("/", modules));
        let edge = || (edge_key("edghts_1"), json!({"hostports": ["a.example.com:443"]}));
        let told = |had: Value, has: Value| {
            let probe = (route_key("edghts_1", "edghtsrt_2"), route("/probe/", has));
            let states = [state_of_json([edge(), home(had.clone())]), state_of_json([edge(), home(had), probe])];
            let request = TracedRequest::new("GET", "https://a.example.com/probe/x").unwrap();
            let [before, after] = &states;
            let [then, now] = [before, after].map(|state| trace(state, &request));
            request_difference([(before, &then), (after, &now)], request.port)
        };
        for guess in ["right", "wrong"] {
            let of_another = "`webhook_verification` with the secret of another route";
            assert_eq!(told(hook("github", "right"), hook("github", guess)), of_another);
            let differs = "opens access: `webhook_verification` may admit others";
            assert_eq!(told(hook("github", "right"), hook("gitlab", guess)), differs);
        }
        assert_eq!(told(hook("sns", ""), hook("sns", "")), "", "no secret to compare");
    }
}
