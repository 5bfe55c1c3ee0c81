//! Lint: two routes of one edge that match the same requests.
//!
//! A match is a path, a host, or a host and a path. Hosts are the same in any case and with or without a final dot. A
//! prefix that ends with its host takes every path, as `/` does; of an exact match that is not certain, so there the
//! two stay apart. Everything else is compared as it is written.

use crate::text::printable;
use std::collections::{HashMap, hash_map::Entry};

use super::{Findings, Level, Lint, Subject, World, duplicate_hostport::host_name};
use crate::model::{
    fault::Path,
    kind::https_edge_route::{HttpsEdgeRoute, MatchType},
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "duplicate-match",
    default: Level::Deny,
    says: "Two routes of one edge have the same `match_type` and `match`.",
    why: "Only one of them can ever take a request, and nothing says which: a login that is configured on the other one protects nothing.",
    example: r#"apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ["shop.example.com:443"]
  routes:
    - name: checkout
      match_type: path_prefix
      match: /checkout
      backend: {backend_id: bkd_shop}
    - name: payment
      match_type: path_prefix
      match: /checkout
      backend: {backend_id: bkd_payment}
"#,
    cure: "Remove one of the two, or change its match. Teams that share an edge can agree on a prefix for each.",
    check,
};

/// What a route matches, in a form in which equal means the same requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Selector<'a> {
    pub(super) match_type: &'static str,
    /// Empty where the match names none: it is any host of the edge.
    pub(super) host: String,
    pub(super) path: &'a str,
}

impl<'a> Selector<'a> {
    pub(super) fn new(match_type: MatchType, text: &'a str) -> Self {
        let (host, path) = text.find('/').map_or((text, ""), |slash| text.split_at(slash));
        let path = if path.is_empty() && match_type == MatchType::PathPrefix { "/" } else { path };
        Self { match_type: match_type.as_str(), host: host_name(host), path }
    }

    /// Whether the host alone decides.
    pub(super) fn takes_every_path(&self) -> bool {
        self.path.is_empty() || (self.path == "/" && self.match_type == MatchType::PathPrefix.as_str())
    }

    pub(super) fn of(route: &'a HttpsEdgeRoute) -> Option<Self> {
        Some(Self::new(route.match_type?, &route.r#match))
    }
}

fn check(world: &World<'_>, findings: &mut Findings) {
    let mut first = HashMap::new();
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let Some(selector) = Selector::of(route) else { continue };
        match first.entry((&key.parent, selector)) {
            Entry::Vacant(place) => {
                place.insert(key);
            }
            Entry::Occupied(place) => {
                let other = Subject::Resource((*place.get()).clone());
                let message =
                    format!("another route of this edge matches `{}` in the same way", printable(&route.r#match));
                let finding = findings.report(key, ["match"], message);
                finding.related = Some((other, Path::root().join("match"), "the other route"));
            }
        }
    }
    for (other, route, source) in world.of_others::<HttpsEdgeRoute>() {
        let own = Selector::of(route).and_then(|selector| first.get(&(&other.parent, selector)));
        if let Some(key) = own {
            let text = printable(&route.r#match);
            let message = format!("{other} of the source `{source}` matches `{text}` on this edge in the same way");
            findings.report(key, ["match"], message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_selectors_are_the_same_requests() {
        let same =
            |one, other| Selector::new(MatchType::PathPrefix, one) == Selector::new(MatchType::PathPrefix, other);
        assert!(same("/a", "/a"));
        assert!(same("Shop.example.com./a", "shop.example.com/a"));
        assert!(same("shop.example.com", "shop.example.com/"));
        for (one, other) in [("/a", "/A"), ("/a", "/a/"), ("/a", "shop.example.com/a"), ("a", "/a")] {
            assert!(!same(one, other), "{one} {other}");
        }
        assert_ne!(Selector::new(MatchType::ExactPath, "a"), Selector::new(MatchType::ExactPath, "a/"));
        assert_ne!(Selector::new(MatchType::ExactPath, "/a"), Selector::new(MatchType::PathPrefix, "/a"));
    }
}
