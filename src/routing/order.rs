//! The order in which a gateway tries routes and applies modules, whatever the request (D42). A trace shows the same for
//! one request.

use super::{selector::Selector, table::KnownRoute};
use crate::model::traffic::{Stage, TracedRequest};
use crate::model::{AnyModule, AnyResource, Slot};

/// Returns the routes of an edge so that the first one that matches a request handles it. Routes that match no request
/// are left out.
pub(crate) fn in_match_order<'s>(
    passes_through: bool,
    routes: impl IntoIterator<Item = KnownRoute<'s>>,
) -> Vec<(KnownRoute<'s>, Selector<'s>)> {
    let selected = routes.into_iter().filter_map(|known| Some((known, Selector::from_route(known.1)?)));
    let mut ordered: Vec<(KnownRoute<'s>, Selector<'s>)> =
        selected.filter(|(_, selector)| !passes_through || selector.takes_every_path()).collect();
    ordered.sort_by(|one, other| other.1.precedence().cmp(&one.1.precedence()).then_with(|| one.0.0.cmp(other.0.0)));
    ordered
}

/// An enabled module, and the stages at which it takes effect.
pub(crate) struct OrderedModule<'a> {
    pub(crate) slot: &'static Slot,
    pub(crate) module: &'a dyn AnyModule,
    pub(crate) stages: Vec<Stage>,
}

/// Returns the enabled modules of a resource in the order in which they take effect. Modules without an effect on a
/// request are left out.
pub(crate) fn in_traffic_order(resource: &dyn AnyResource) -> Vec<OrderedModule<'_>> {
    // Stages do not depend on the request.
    let request = TracedRequest::default();
    let enabled = resource.modules().filter(|(_, module)| module.enabled());
    let staged = enabled.map(|(slot, module)| {
        let stages: Vec<Stage> = module.steps(&request).iter().map(|step| step.stage).collect();
        OrderedModule { slot, module, stages }
    });
    let mut ordered: Vec<OrderedModule<'_>> = staged.filter(|ordered| !ordered.stages.is_empty()).collect();
    ordered.sort_by_key(|ordered| ordered.stages.first().copied());
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HttpsEdgeRoute;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};
    use crate::routing::table::RouteTable;
    use crate::routing::table::tests::routes;

    const MATCHES: [(MatchType, &str); 15] = [
        (PathPrefix, "/"),
        (PathPrefix, "/a"),
        (PathPrefix, "/a"),
        (ExactPath, "/a/b"),
        (PathPrefix, "/a/b"),
        (PathPrefix, "b.example.com/c"),
        (ExactPath, "b.example.com/c"),
        (ExactPath, "*.example.org"),
        (PathPrefix, "*.example.com/c"),
        (PathPrefix, "*.eu.example.com"),
        (PathPrefix, "B.example.com.:443/c/d"),
        (PathPrefix, "b.example.com"),
        (PathPrefix, "*.example.com:8443"),
        (PathPrefix, "*"),
        (PathPrefix, ""),
    ];

    #[test]
    fn the_first_route_in_order_that_matches_is_the_one_that_a_trace_takes() {
        let routes = routes(&MATCHES);
        let known = || routes.iter().map(|(key, route)| (key, route));
        for passes_through in [false, true] {
            let (ordered, table) = (in_match_order(passes_through, known()), RouteTable::new(passes_through, known()));
            let mut taken = 0;
            for host in ["b.example.com", "x.example.org", "a.eu.example.com", "eu.example.com", "other.test"] {
                for path in ["/", "/a", "/a/b", "/a/b/c", "/c", "/c/d", "/cd", "/A"] {
                    for port in [443, 8443] {
                        let matches =
                            |it: &&(KnownRoute<'_>, Selector<'_>)| it.1.rank(host, port, path, passes_through).is_ok();
                        let first = ordered.iter().find(matches).map(|it| it.0.0);
                        assert_eq!(first, table.serving(host, port, path).map(|it| it.0), "{host}:{port}{path}");
                        taken += usize::from(first.is_some());
                    }
                }
            }
            assert_eq!(taken, 80, "one of the routes takes everything");
        }
        // The empty match is left out, and with it every path that an edge cannot see.
        assert_eq!((in_match_order(false, known()).len(), in_match_order(true, known()).len()), (14, 6));
    }

    #[test]
    fn modules_are_in_the_order_of_their_stages_and_disabled_ones_are_left_out() {
        let examples = HttpsEdgeRoute::SLOTS.iter().map(|slot| (slot.name.to_owned(), (slot.example)()));
        let mut examples: serde_json::Map<_, _> = examples.collect();
        examples.insert("circuit_breaker".into(), serde_json::json!({"enabled": false}));
        examples
            .insert("policies".into(), serde_json::json!({"inbound": [{"name": "in"}], "outbound": [{"name": "out"}]}));
        let route: HttpsEdgeRoute = serde_json::from_value(serde_json::Value::Object(examples)).unwrap_or_default();
        let ordered = in_traffic_order(&route);
        let names: Vec<&str> = ordered.iter().map(|it| it.slot.name).collect();
        let expected = [
            "ip_restriction",
            "user_agent_filter",
            "webhook_verification",
            "oauth",
            "saml",
            "oidc",
            "jwt_validation",
            "policies",
            "request_headers",
            "websocket_tcp_converter",
            "backend",
            "response_headers",
            "compression",
        ];
        assert_eq!(names, expected);
        let policies = ordered.iter().find(|it| it.slot.name == "policies").map(|it| it.stages.clone());
        assert_eq!(policies, Some(vec![Stage::Inbound, Stage::Outbound]));
    }
}
