//! `duplicate-match`: two routes of an edge that match the same requests.
//!
//! A match is a path, a host, or a host and a path. Hosts compare ignoring case and a trailing dot. A prefix match
//! without a path matches every path, as `/` does; for an exact match that is uncertain, so the two count as different.
//! Everything else compares literally.

use crate::text::printable;
use std::collections::{HashMap, hash_map::Entry};

use super::{Findings, Level, Lint, Subject, World, duplicate_hostport::host_name};
use crate::model::{
    fault::Path,
    kind::https_edge_route::{HttpsEdgeRoute, MatchType},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "duplicate-match",
    default: Level::Deny,
    summary: "Two routes of an edge have the same `match_type` and `match`.",
    why: "Only one of the two routes receives requests, and it is undefined which one. A login configured on the other protects nothing.",
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
    cure: "Remove one of the two routes, or change its match. Teams that share an edge can agree on one path prefix per team.",
    check,
};

/// A route's match in a normal form: equal selectors match the same requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Selector<'a> {
    pub(super) match_type: &'static str,
    /// Empty if the match names no host, which means any host of the edge.
    pub(super) host: String,
    pub(super) path: &'a str,
}

impl<'a> Selector<'a> {
    pub(super) fn new(match_type: MatchType, text: &'a str) -> Self {
        let (host, path) = text.find('/').map_or((text, ""), |slash| text.split_at(slash));
        let path = if path.is_empty() && match_type == MatchType::PathPrefix { "/" } else { path };
        Self { match_type: match_type.as_str(), host: host_name(host), path }
    }

    /// Whether the selector matches every path of its host.
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
                let message = format!("another route of this edge already matches `{}`", printable(&route.r#match));
                let finding = findings.report(key, ["match"], message);
                finding.related = Some((other, Path::root().join("match"), "the other route"));
            }
        }
    }
    for (other, route, source) in world.of_others::<HttpsEdgeRoute>() {
        let own = Selector::of(route).and_then(|selector| first.get(&(&other.parent, selector)));
        if let Some(key) = own {
            let text = printable(&route.r#match);
            let message = format!("{other} of source `{source}` already matches `{text}` on this edge");
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
