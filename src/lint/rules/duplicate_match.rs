//! `duplicate-match`: two routes of an edge that match the same requests.
//!
//! A match is a path, a host, or a host and a path. Hosts compare ignoring case and a trailing dot, and a port does not
//! count if it is the only one of the edge. A host alone matches every path, as the prefix `/` does, with either type.
//! Everything else compares literally.

use foldhash::{HashMap, HashMapExt as _};

use super::prelude::*;
use crate::model::claim::source_in_words;
use crate::routing::selector::Selector;

pub(crate) static LINT: Lint = Lint {
    name: "duplicate-match",
    default: Level::Deny,
    summary: "Two routes of an edge match the same requests.",
    why: "Only one of the two routes receives requests, and it is undefined which one. A login configured on the other protects nothing.",
    cure: "Remove one of the two routes, or change its match. Teams that share an edge can agree on one path prefix per team.",
    check: LintCheck::Host(check),
};

/// The requests that a match selects: host, port, whether the path must be equal, and the path.
pub(super) type Requests<'a> = (String, Option<u16>, bool, &'a str);

/// Returns the requests that a match selects; two matches with equal ones are duplicates.
pub(super) fn requests<'a>(selector: &Selector<'a>, only_port: Option<u16>) -> Requests<'a> {
    let port = selector.port.filter(|port| Some(*port) != only_port);
    (selector.host.clone(), port, selector.is_exact, selector.path)
}

/// Returns the port of an edge's hostports, if all have the same.
pub(super) fn only_port(edge: &HttpsEdge) -> Option<u16> {
    let mut ports = edge.hostports.iter().filter_map(|text| text.rsplit_once(':')?.1.parse::<u16>().ok());
    let first = ports.next()?;
    ports.all(|port| port == first).then_some(first)
}

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let others = view.of_others::<HttpsEdge>().map(|(key, edge, _)| (key, edge));
    let edges: HashMap<&Id, &HttpsEdge> =
        view.all::<HttpsEdge>().chain(others).map(|(key, edge)| (&key.id, edge)).collect();
    let port_of = |route: &Key, selector: &Selector<'_>| -> Option<u16> {
        let edge = route.parent.as_ref().filter(|_| selector.port.is_some());
        edge.and_then(|edge| edges.get(edge)).and_then(|edge| only_port(edge))
    };
    let routes = view.in_order::<HttpsEdgeRoute>();
    let mut first: HashMap<(&Option<Id>, Requests<'_>), &Key> = HashMap::with_capacity(routes.len());
    for (key, route) in routes {
        let Some(selector) = Selector::from_route(route) else { continue };
        let other = *first.entry((&key.parent, requests(&selector, port_of(key, &selector)))).or_insert(key);
        if other != key {
            let message = format!("another route of this edge already matches `{}`", printable(&route.r#match));
            findings.report(key, ["match"], message).relate(other, ["match"], "the other route");
        }
    }
    for (other, route, source) in view.of_others::<HttpsEdgeRoute>() {
        let own = Selector::from_route(route)
            .and_then(|selector| first.get(&(&other.parent, requests(&selector, port_of(other, &selector)))).copied());
        if let Some(key) = own {
            let text = printable(&route.r#match);
            let message = format!("{other} of {} already matches `{text}` on this edge", source_in_words(source));
            findings.report(key, ["match"], message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};

    fn same(one: (MatchType, &str), other: (MatchType, &str)) -> bool {
        let of = |(match_type, text)| Selector::new(match_type, text).map(|it| requests(&it, Some(443)));
        of(one) == of(other)
    }

    #[test]
    fn equal_selectors_are_the_same_requests() {
        let prefixes = |one, other| same((PathPrefix, one), (PathPrefix, other));
        assert!(prefixes("/a", "/a"));
        assert!(prefixes("Shop.example.com./a", "shop.example.com/a"));
        assert!(prefixes("shop.example.com", "shop.example.com/"));
        assert!(prefixes("shop.example.com:443/a", "shop.example.com/a"));
        assert!(!prefixes("shop.example.com:8443/a", "shop.example.com/a"));
        for (one, other) in [("/a", "/A"), ("/a", "/a/"), ("/a", "shop.example.com/a"), ("a", "/a")] {
            assert!(!prefixes(one, other), "{one} {other}");
        }
        assert!(same((PathPrefix, "a"), (ExactPath, "a")), "a host alone takes all paths with either type");
        assert!(!same((ExactPath, "a"), (ExactPath, "a/")));
        assert!(!same((ExactPath, "/a"), (PathPrefix, "/a")));
    }

    #[test]
    fn an_edge_with_two_ports_tells_them_apart() {
        let edge = |hostports: &[&str]| HttpsEdge {
            hostports: hostports.iter().map(ToString::to_string).collect(),
            ..HttpsEdge::default()
        };
        assert_eq!(only_port(&edge(&["a.example.com:443", "b.example.com:443"])), Some(443));
        assert_eq!(only_port(&edge(&["a.example.com:443", "a.example.com:8443"])), None);
        assert_eq!(only_port(&edge(&[])), None);
    }
}
