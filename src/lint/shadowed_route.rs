//! `shadowed-route`: a route that never receives a request because other routes match first.
//!
//! Host and port select the edge, an `exact_path` is tried before any `path_prefix`, and the longest prefix wins. So a
//! shorter prefix never shadows a longer one, an exact path leaves a prefix everything below it, and a finite number of
//! longer prefixes never exhausts a shorter one. Only a match with the same type and path can shadow a route:
//!
//! - with the same host, or both without one, `duplicate-match` reports it;
//! - a match without a host applies to every host of the edge. It is shadowed if each host, wildcards included, has its
//!   own route with that type and path, or is covered by one with a wildcard. (If the gateway tried it first instead,
//!   the other routes would be dead.)
//!
//! An edge that passes TLS through sees the host but no path: routes with the same host are equivalent, and the one for
//! all paths wins.

use crate::text::printable;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    Findings, Level, Lint, Subject, World,
    duplicate_hostport::{host_port, wildcard_over},
    duplicate_match::Selector,
};
use crate::model::{
    fault::Path,
    id::Id,
    key::Key,
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
    rules,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "shadowed-route",
    default: Level::Warn,
    summary: "Other routes of the edge match every request of a route first.",
    why: "The route never receives a request, so its backend and modules have no effect, although the manifest suggests otherwise.",
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
    - name: shop-checkout
      match_type: path_prefix
      match: shop.example.com/checkout
      backend: {backend_id: bkd_new_shop}
"#,
    cure: "Remove the route, or change its host or path to one that no other route has. On an edge that passes TLS through, use one route per host.",
    check,
};

#[derive(Default)]
struct Routes<'a> {
    routes: Vec<(&'a Key, &'a str)>,
    selectors: Vec<Selector<'a>>,
}

fn check(world: &World<'_>, findings: &mut Findings) {
    let mut edges: HashMap<&Id, Routes<'_>> = HashMap::new();
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        if let (Some(edge), Some(selector)) = (&key.parent, Selector::of(route)) {
            let Routes { routes, selectors } = edges.entry(edge).or_default();
            routes.push((key, route.r#match.as_str()));
            selectors.push(selector);
        }
    }
    for (key, edge) in world.all::<HttpsEdge>() {
        let hosts = edge.hostports.iter().map(|text| host_port(text).map(|(host, _)| host)).collect::<Option<_>>();
        let (Some(Routes { routes, selectors }), Some(hosts)) = (edges.get(&key.id), hosts) else { continue };
        let sees_paths = !rules::passes_through(edge) || edge.tls_termination.as_ref().is_none_or(|tls| !tls.enabled);
        for (shadowed, taker) in never_taken(&hosts, sees_paths, selectors) {
            let (Some((key, text)), Some((other, _))) = (routes.get(shadowed), routes.get(taker)) else { continue };
            let why = match sees_paths {
                true => "every host of this edge has its own route for",
                false => "this edge passes TLS through and cannot see paths; another route has the same host as",
            };
            let other = Subject::Resource((*other).clone());
            findings.report(key, ["match"], format!("{why} `{}`", printable(text))).related =
                Some((other, Path::root().join("match"), "the other route"));
        }
    }
}

/// Returns the indexes of shadowed selectors, each with the index of a selector that shadows it.
fn never_taken(hosts: &BTreeSet<String>, sees_paths: bool, selectors: &[Selector<'_>]) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    let mut first: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut all: Vec<_> = selectors.iter().enumerate().collect();
    all.sort_by_key(|(_, it)| !sees_paths && !it.takes_every_path());
    for (position, it) in &all {
        let earlier = *first.entry(seen(it, &it.host, sees_paths)).or_insert(*position);
        if selectors.get(earlier).is_some_and(|earlier| earlier != *it) {
            found.insert(*position, earlier);
        }
    }
    let takes = |position: usize| sees_paths || selectors.get(position).is_some_and(Selector::takes_every_path);
    let covered = covered_hosts(hosts, &first, takes);
    for (position, it) in all.iter().filter(|(_, it)| it.host.is_empty()) {
        let (_, how, path) = seen(it, "", sees_paths);
        let count = covered.get(&(how, path)).copied().unwrap_or_default();
        let Some(host) = hosts.first().filter(|_| usize::try_from(count) == Ok(hosts.len())) else { continue };
        let wildcard = wildcard_over(host);
        let own = first.get(&(host.as_str(), how, path));
        if let Some(taker) = own.or_else(|| first.get(&(wildcard.as_deref()?, how, path))) {
            found.entry(*position).or_insert(*taker);
        }
    }
    found
}

/// The number of hosts of an edge with a route for a match type and path, their own or one with a wildcard. Counted by
/// route, because a lookup for each path and host would take quadratic time.
fn covered_hosts<'s>(
    hosts: &BTreeSet<String>,
    first: &HashMap<(&'s str, &'s str, &'s str), usize>,
    takes: impl Fn(usize) -> bool,
) -> HashMap<(&'s str, &'s str), isize> {
    let mut under: HashMap<String, isize> = HashMap::new();
    for wildcard in hosts.iter().filter_map(|host| wildcard_over(host)) {
        *under.entry(wildcard).or_default() += 1;
    }
    let mut covered: HashMap<(&str, &str), isize> = HashMap::new();
    for ((host, how, path), position) in first {
        let wildcard = wildcard_over(host);
        let count = if wildcard.as_deref() == Some(*host) {
            let all = under.get(*host).copied().unwrap_or_default();
            if takes(*position) { all } else { 0 }
        } else if hosts.contains(*host) {
            // A host's own route takes precedence over that of its wildcard, which has counted the host already.
            let of_wildcard = wildcard.as_deref().and_then(|wildcard| first.get(&(wildcard, *how, *path)));
            isize::from(takes(*position)) - isize::from(of_wildcard.is_some_and(|position| takes(*position)))
        } else {
            0
        };
        *covered.entry((*how, *path)).or_default() += count;
    }
    covered
}

/// The parts of a selector that an edge can see, as if for a host.
fn seen<'s>(it: &'s Selector<'_>, host: &'s str, sees_paths: bool) -> (&'s str, &'s str, &'s str) {
    if sees_paths { (host, it.match_type, it.path) } else { (host, "", "") }
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
        let twice = [(ExactPath, "/x"), (ExactPath, "*.example.com/x"), (ExactPath, "a.example.com/x")];
        assert_eq!(dead(&["a.example.com", "b.example.com"], true, &twice), [0]);
        assert!(dead(&["a.example.com", "example.org"], true, &twice).is_empty());
    }

    #[test]
    fn without_paths_one_route_takes_a_host() {
        let routes = [(PathPrefix, "/x"), (PathPrefix, "/y"), (PathPrefix, "/x"), (ExactPath, "b.example.com/x")];
        assert_eq!(dead(&["a.example.com", "b.example.com"], false, &routes), [1]);
        assert_eq!(dead(&["b.example.com"], false, &[(PathPrefix, "/x"), (PathPrefix, "/")]), [0]);
        assert!(dead(&["b.example.com"], false, &[(PathPrefix, "/"), (PathPrefix, "b.example.com/x")]).is_empty());
        let own = [(PathPrefix, "/"), (PathPrefix, "*.example.com"), (PathPrefix, "b.example.com/x")];
        assert!(dead(&["a.example.com", "b.example.com"], false, &own).is_empty());
        assert_eq!(dead(&["a.example.com"], false, &own), [0]);
    }
}
