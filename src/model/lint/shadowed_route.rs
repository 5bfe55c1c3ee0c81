//! Lint: a route whose every request is taken by others.
//!
//! Host and port choose the edge, an `exact_path` is tried before any `path_prefix`, and the longest prefix wins. So a
//! shorter prefix takes nothing from a longer one, an exact path leaves the prefix all that lies below it, and finitely
//! many longer prefixes never use up a shorter one. Only a match that is equal in type and path can take everything:
//!
//! - with the same host, or both without one, it is `duplicate-match`'s case;
//! - a match without a host means every host of the edge. If each of them has a route of its own with that type and
//!   path, or one with a wildcard of one label, nothing is left for it. (Were it tried first, nothing would be left for
//!   the others; one of them is dead in any case.) A host that the edge serves as a wildcard needs a route with that
//!   wildcard, since one of its names is only one of many.
//!
//! An edge that passes TLS through sees the name of the host and no path. There all routes with one host are the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    Findings, Level, Lint, Subject, World,
    duplicate_hostport::{host_port, wildcard_over},
    duplicate_match::Selector,
};
use crate::model::{
    check::shown,
    fault::Path,
    id::Id,
    key::Key,
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
    rules,
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "shadowed-route",
    default: Level::Warn,
    says: "Other routes of the edge already take every request of this route.",
    why: "The route is never used, so neither are its backend and its modules. Who reads the manifest believes otherwise.",
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
      oauth: {provider: {google: {}}}
    - name: shop-checkout
      match_type: path_prefix
      match: shop.example.com/checkout
      backend: {backend_id: bkd_shop}
"#,
    cure: "Remove the route, or give it a host or path that no other route has. On an edge that passes TLS through, use one route for each host.",
    check,
};

#[derive(Default)]
struct Routes<'a> {
    routes: Vec<(&'a Key, &'a HttpsEdgeRoute)>,
    selectors: Vec<Selector<'a>>,
}

fn check(world: &World<'_>, findings: &mut Findings) {
    let mut edges: HashMap<&Id, Routes<'_>> = HashMap::new();
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        if let (Some(edge), Some(selector)) = (&key.parent, Selector::of(route)) {
            let of_edge = edges.entry(edge).or_default();
            of_edge.routes.push((key, route));
            of_edge.selectors.push(selector);
        }
    }
    for (key, edge) in world.all::<HttpsEdge>() {
        let hosts = edge.hostports.iter().map(|text| host_port(text).map(|(host, _)| host)).collect::<Option<_>>();
        let (Some(Routes { routes, selectors }), Some(hosts)) = (edges.get(&key.id), hosts) else { continue };
        let is_on = edge.tls_termination.as_ref().is_some_and(|tls| tls.enabled);
        let sees_paths = !(is_on && rules::passes_through(edge));
        for (shadowed, taker) in never_taken(&hosts, sees_paths, selectors) {
            let (Some((key, route)), Some((other, _))) = (routes.get(shadowed), routes.get(taker)) else { continue };
            let text = shown(&route.r#match);
            let message = if sees_paths {
                format!("every host of this edge has a route of its own for `{text}`")
            } else {
                format!(
                    "this edge passes TLS through and sees no paths, so another route takes all that `{text}` could"
                )
            };
            let other = (Subject::Resource((*other).clone()), Path::root().join("match"), "the route that takes it");
            findings.report(key, ["match"], message).related = Some(other);
        }
    }
}

/// The positions of the selectors that others leave nothing for, each with one of those others.
fn never_taken(hosts: &BTreeSet<String>, sees_paths: bool, selectors: &[Selector<'_>]) -> BTreeMap<usize, usize> {
    let seen = selectors.iter().map(|it| if sees_paths { (it.match_type, it.path) } else { ("", "") });
    let seen: Vec<(&Selector<'_>, &str, &str)> = selectors.iter().zip(seen).map(|(it, (a, b))| (it, a, b)).collect();
    let mut found = BTreeMap::new();
    let mut first: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (position, (selector, match_type, path)) in seen.iter().enumerate() {
        let earlier = *first.entry((&selector.host, match_type, path)).or_insert(position);
        if selectors.get(earlier).is_some_and(|earlier| earlier != *selector) {
            found.insert(position, earlier);
        }
    }
    let hosts: Vec<_> = hosts.iter().map(|host| (host.as_str(), wildcard_over(host))).collect();
    for (position, (_, match_type, path)) in seen.iter().enumerate().filter(|(_, (it, ..))| it.host.is_empty()) {
        let own = hosts.iter().map(|(host, wildcard)| {
            let own = first.get(&(*host, *match_type, *path));
            own.or_else(|| first.get(&(wildcard.as_deref()?, *match_type, *path))).copied()
        });
        if let Some(taker) = own.collect::<Option<Vec<_>>>().and_then(|takers| takers.first().copied()) {
            found.entry(position).or_insert(taker);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};

    fn dead(hosts: &[&str], sees_paths: bool, routes: &[(MatchType, &str)]) -> Vec<usize> {
        let hosts = hosts.iter().map(ToString::to_string).collect();
        let selectors: Vec<_> = routes.iter().map(|(how, text)| Selector::new(*how, text)).collect();
        never_taken(&hosts, sees_paths, &selectors).into_keys().collect()
    }

    #[test]
    fn only_equal_matches_on_every_host_leave_nothing() {
        let wider = [(PathPrefix, "/"), (PathPrefix, "/x"), (ExactPath, "/x"), (PathPrefix, "a.example.com/x/y")];
        assert!(dead(&["a.example.com"], true, &wider).is_empty());
        let both = [(PathPrefix, "/x"), (PathPrefix, "A.example.com/x"), (ExactPath, "/x")];
        assert_eq!(dead(&["a.example.com"], true, &both), [0]);
        assert!(dead(&["a.example.com", "b.example.com"], true, &both).is_empty());
        assert!(dead(&["*.example.com"], true, &both).is_empty() && dead(&[], true, &both).is_empty());
        let wildcard = [(ExactPath, "/x"), (ExactPath, "*.example.com/x")];
        assert_eq!(dead(&["a.example.com", "*.example.com"], true, &wildcard), [0]);
        assert!(dead(&["a.b.example.com"], true, &wildcard).is_empty());
    }

    #[test]
    fn without_paths_one_route_takes_a_host() {
        let routes = [(PathPrefix, "/x"), (PathPrefix, "/y"), (PathPrefix, "/x"), (ExactPath, "b.example.com/x")];
        assert_eq!(dead(&["a.example.com", "b.example.com"], false, &routes), [1]);
    }
}
