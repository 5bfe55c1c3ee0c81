//! `bypassed-protection`: a protected backend that another edge opens for the same host on another port.
//!
//! For each protected route, the route is looked up that receives the same request on the other edge. If it leads to the
//! same backend without any protection, the protection can be bypassed. Policies do not count as the protection that is
//! bypassed, because what they do is unknown. Edges that pass TLS through are skipped: they see no paths.

use std::collections::{HashMap, HashSet};

use super::{
    Findings, Level, Lint, Subject, World,
    duplicate_hostport::{host_port, wildcard_over},
    duplicate_match::Selector,
    unprotected_route::is_protected,
};
use crate::{
    model::{
        fault::{Aim, Path},
        id::Id,
        key::Key,
        kind::{
            https_edge::HttpsEdge,
            https_edge_route::{HttpsEdgeRoute, MatchType},
        },
        resource::AnyResource,
        rules,
    },
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "bypassed-protection",
    default: Level::Warn,
    summary: "Another edge serves a protected host on another port and opens the same backend.",
    why: "A login, token, client certificate or IP restriction protects a backend only if every way to it has one. Here, \
          another port of the same host leads to the backend without any.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: wiki}
spec:
  hostports: ['wiki.example.com:443']
  routes:
    - name: wiki
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_wiki}
      ip_restriction: {ip_policy_ids: [ipp_office]}
---
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: wiki-test}
spec:
  hostports: ['wiki.example.com:8443']
  routes:
    - name: wiki
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_wiki}
",
    cure: "Protect the route in the same way, or remove it. A module set shares the configuration of a module.",
    check,
};

/// The most other edges that a hostport is compared with, so that many edges for one host take linear time.
const MOST_EDGES: usize = 16;
/// The longest path that is looked up, in bytes. Servers refuse longer ones.
const LONGEST_PATH: usize = 2048;

type KnownRoute<'w> = (&'w Key, &'w HttpsEdgeRoute);

/// An edge that sees paths.
struct ReadingEdge<'w> {
    edge: &'w HttpsEdge,
    addresses: Vec<(String, u16)>,
    routes: Vec<KnownRoute<'w>>,
}

/// The routes with one host, by path.
#[derive(Default)]
struct PathTable<'w> {
    exact: HashMap<&'w str, KnownRoute<'w>>,
    prefixes: HashMap<&'w str, KnownRoute<'w>>,
}

/// The routes of an edge, by host.
struct RouteTable<'w>(HashMap<String, PathTable<'w>>);

impl<'w> RouteTable<'w> {
    fn of(routes: &[KnownRoute<'w>]) -> Self {
        let mut hosts: HashMap<String, PathTable<'w>> = HashMap::new();
        for &(key, route) in routes {
            let Some(selector) = Selector::of(route) else { continue };
            let table = hosts.entry(selector.host).or_default();
            let is_exact = route.match_type == Some(MatchType::ExactPath);
            let paths = if is_exact { &mut table.exact } else { &mut table.prefixes };
            paths.entry(selector.path).or_insert((key, route));
        }
        Self(hosts)
    }

    /// The route that receives a request.
    fn taker(&self, host: &str, path: &str) -> Option<KnownRoute<'w>> {
        let wildcard = wildcard_over(host).unwrap_or_default();
        let mut tables = [host, wildcard.as_str(), ""].into_iter().filter_map(|host| self.0.get(host));
        tables.find_map(|table| table.taker(path))
    }
}

impl<'w> PathTable<'w> {
    fn taker(&self, path: &str) -> Option<KnownRoute<'w>> {
        let mut prefixes = (0..=path.len()).rev().filter_map(|end| path.get(..end));
        let exact = self.exact.get(path).copied();
        let longest = || prefixes.find_map(|prefix| self.prefixes.get(prefix).copied());
        exact.or_else(longest).or_else(|| self.exact.get("").copied())
    }
}

fn check(world: &World<'_>, findings: &mut Findings) {
    let edges = reading_edges(world);
    let mut serving: HashMap<&str, Vec<(usize, u16)>> = HashMap::new();
    for (index, edge) in edges.iter().enumerate() {
        for (host, port) in &edge.addresses {
            serving.entry(host.as_str()).or_default().push((index, *port));
        }
    }
    let mut tables: HashMap<usize, RouteTable<'_>> = HashMap::new();
    let mut told: HashSet<&Key> = HashSet::new();
    for (index, protected) in edges.iter().enumerate() {
        for (host, port) in &protected.addresses {
            let wildcard = wildcard_over(host).filter(|wildcard| wildcard != host);
            let covering = wildcard.and_then(|wildcard| serving.get(wildcard.as_str()));
            let all = serving.get(host.as_str()).into_iter().chain(covering).flatten().copied();
            let others = all.filter(|(other, other_port)| *other != index && other_port != port);
            for (other, other_port) in others.take(MOST_EDGES) {
                let Some(open) = edges.get(other).filter(|open| !is_protected(open.edge)) else { continue };
                let table = tables.entry(other).or_insert_with(|| RouteTable::of(&open.routes));
                for &(key, route) in &protected.routes {
                    let Some(module) = protection(protected.edge).or_else(|| protection(route)) else { continue };
                    let Some((other, _)) = bypass(host, route, table).filter(|(other, _)| told.insert(*other)) else {
                        continue;
                    };
                    let host = printable(host);
                    let message =
                        format!("`{host}:{other_port}` opens this backend without `{module}`, unlike `{host}:{port}`");
                    let finding = findings.report(other, ["backend"], message);
                    (finding.of_whole, finding.aim) = (true, Aim::Key);
                    let path = Path::root().join("match");
                    finding.related = Some((Subject::Resource(key.clone()), path, "the protected route"));
                }
            }
        }
    }
}

fn reading_edges<'w>(world: &'w World<'_>) -> Vec<ReadingEdge<'w>> {
    let mut routes: HashMap<&Id, Vec<KnownRoute<'w>>> = HashMap::new();
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        if let Some(edge) = &key.parent {
            routes.entry(edge).or_default().push((key, route));
        }
    }
    let mut edges = Vec::new();
    for (key, edge) in world.all::<HttpsEdge>().filter(|(_, edge)| !rules::passes_through(edge)) {
        let addresses = edge.hostports.iter().filter_map(|hostport| host_port(hostport)).collect();
        edges.push(ReadingEdge { edge, addresses, routes: routes.remove(&key.id).unwrap_or_default() });
    }
    edges
}

/// The open route that receives the requests of a protected route, with the same backend.
fn bypass<'w>(host: &str, route: &HttpsEdgeRoute, table: &RouteTable<'w>) -> Option<KnownRoute<'w>> {
    let selector = Selector::of(route).filter(|it| it.path.len() <= LONGEST_PATH)?;
    if !selector.host.is_empty() && selector.host != host {
        return None;
    }
    let (key, taker) = table.taker(host, selector.path)?;
    let backend = |route: &HttpsEdgeRoute| {
        let backend = route.backend.as_ref().filter(|backend| backend.enabled)?;
        Some(backend.backend_id.clone())
    };
    let is_same = backend(route).is_some_and(|id| backend(taker).is_some_and(|other| other == id));
    (is_same && !is_protected(taker)).then_some((key, taker))
}

/// The first enabled module that keeps strangers out.
fn protection(host: &dyn AnyResource) -> Option<&'static str> {
    let mut modules = host.modules();
    let (slot, _) =
        modules.find(|(slot, module)| module.enabled() && module.restricts_access() && slot.name != "policies")?;
    Some(slot.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    #[test]
    fn the_closest_host_and_the_longest_prefix_take_a_request() {
        let matches = [
            (MatchType::PathPrefix, "/"),
            (MatchType::PathPrefix, "/a"),
            (MatchType::ExactPath, "/a/b"),
            (MatchType::PathPrefix, "b.example.com/c"),
            (MatchType::ExactPath, "*.example.org"),
        ];
        let routes: Vec<(Key, HttpsEdgeRoute)> = matches
            .iter()
            .map(|(match_type, text)| {
                let spec = HttpsEdgeRoute {
                    match_type: Some(*match_type),
                    r#match: (*text).to_owned(),
                    ..HttpsEdgeRoute::default()
                };
                (Key::new(Kind::HttpsEdgeRoute, Id::new(text)), spec)
            })
            .collect();
        let known: Vec<KnownRoute<'_>> = routes.iter().map(|(key, route)| (key, route)).collect();
        let table = RouteTable::of(&known);
        let taker = |host: &str, path: &str| table.taker(host, path).map(|(_, route)| route.r#match.as_str());
        assert_eq!(taker("a.example.com", "/x"), Some("/"));
        assert_eq!(taker("a.example.com", "/ab"), Some("/a"));
        assert_eq!(taker("a.example.com", "/a/b"), Some("/a/b"));
        assert_eq!(taker("b.example.com", "/cd"), Some("b.example.com/c"));
        assert_eq!(taker("b.example.com", "/a/b/c"), Some("/a"));
        assert_eq!(taker("a.example.org", "/a"), Some("*.example.org"));
    }
}
