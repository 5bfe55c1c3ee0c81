//! The routes of an edge, indexed, so that lints can ask about many requests. The index only narrows the candidates;
//! their rank decides, as in a trace.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Bound;

use foldhash::HashMap;

use super::selector::Selector;
use crate::model::{HttpsEdgeRoute, Key};

/// A route with its key.
pub(crate) type KnownRoute<'w> = (&'w Key, &'w HttpsEdgeRoute);

/// The routes with one host and port, by path.
#[derive(Debug, Default)]
struct PathTable<'w> {
    exact: BTreeMap<&'w str, usize>,
    prefixes: BTreeMap<&'w str, usize>,
}

/// The routes with one host, by port.
type PortPaths<'w> = BTreeMap<Option<u16>, PathTable<'w>>;

impl PathTable<'_> {
    /// The routes that can have the highest rank for a path.
    fn candidates(&self, path: &str, passes_through: bool) -> [Option<usize>; 2] {
        let exact = self.exact.get(path).copied();
        let prefix = if passes_through {
            self.prefixes.get("/").or_else(|| self.prefixes.get("")).copied()
        } else {
            self.longest_prefix(path)
        };
        [exact, prefix]
    }

    /// Whether a route takes every path.
    fn takes_every_path(&self) -> bool {
        ["/", ""].into_iter().any(|prefix| self.prefixes.contains_key(prefix))
    }

    /// The route with the longest prefix that starts a path.
    fn longest_prefix(&self, path: &str) -> Option<usize> {
        let mut rest = path;
        loop {
            let upto = (Bound::Unbounded, Bound::Included(rest));
            let (found, index) = self.prefixes.range::<str, _>(upto).next_back()?;
            if rest.starts_with(*found) {
                return Some(*index);
            }
            // Everything between a prefix and the path starts with the prefix, so it is no longer than what both share.
            let same = rest.chars().zip(found.chars()).take_while(|(one, other)| one == other);
            let length: usize = same.map(|(one, _)| one.len_utf8()).sum();
            rest = rest.get(..length)?;
        }
    }
}

/// The routes of an edge, by host, port and path.
#[derive(Default)]
pub(crate) struct RouteTable<'w> {
    routes: Vec<(KnownRoute<'w>, Selector<'w>)>,
    hosts: HashMap<String, PortPaths<'w>>,
    /// The lengths of the wildcards' suffixes.
    wildcards: BTreeSet<usize>,
    passes_through: bool,
}

impl<'w> RouteTable<'w> {
    /// Creates the table of an edge; one that passes TLS through sees no paths. The routes are in the order of their keys.
    pub(crate) fn new(passes_through: bool, routes: impl IntoIterator<Item = KnownRoute<'w>>) -> Self {
        let selected = routes.into_iter().filter_map(|known| Some((known, Selector::from_route(known.1)?)));
        Self::build(passes_through, selected)
    }

    /// Like [`new`](Self::new), with the selectors of the routes.
    pub(crate) fn build(
        passes_through: bool,
        routes: impl IntoIterator<Item = (KnownRoute<'w>, Selector<'w>)>,
    ) -> Self {
        let mut table = Self { passes_through, ..Self::default() };
        for (known, selector) in routes {
            let index = table.routes.len();
            table.wildcards.extend(selector.host.strip_prefix('*').map(str::len));
            let paths = table.hosts.entry(selector.host.clone()).or_default().entry(selector.port).or_default();
            if selector.is_exact {
                paths.exact.entry(selector.path).or_insert(index);
            } else {
                paths.prefixes.entry(selector.prefix()).or_insert(index);
            }
            table.routes.push((known, selector));
        }
        table
    }

    /// Whether the edge passes TLS through, so that it sees no paths.
    pub(super) fn passes_through(&self) -> bool {
        self.passes_through
    }

    /// The routes that match something, with their selectors.
    pub(crate) fn routes(&self) -> &[(KnownRoute<'w>, Selector<'w>)] {
        &self.routes
    }

    /// The route that receives a request.
    pub(crate) fn serving(&self, host: &str, port: u16, path: &str) -> Option<KnownRoute<'w>> {
        self.winner(host, port, path).map(|(known, _)| *known)
    }

    /// The route that receives a request, with its selector.
    pub(crate) fn winner(&self, host: &str, port: u16, path: &str) -> Option<&(KnownRoute<'w>, Selector<'w>)> {
        self.routes.get(self.winning(host, port, path)?)
    }

    /// The place of the route that receives a request, in [`routes`](Self::routes).
    pub(crate) fn winning(&self, host: &str, port: u16, path: &str) -> Option<usize> {
        self.groups(host).find_map(|(_, ports)| {
            let tables = [None, Some(port)].into_iter().filter_map(|port| ports.get(&port));
            let candidates = tables.flat_map(|paths| paths.candidates(path, self.passes_through)).flatten();
            let ranked = candidates.filter_map(|index| {
                let candidate = self.routes.get(index)?;
                let rank = candidate.1.rank(host, port, path, self.passes_through).ok()?;
                Some((rank, Reverse(candidate.0.0), index))
            });
            ranked.max_by_key(|it| (it.0, it.1)).map(|it| it.2)
        })
    }

    /// The routes that receive requests for a host and port.
    pub(crate) fn receiving(&self, host: &str, port: u16) -> impl Iterator<Item = KnownRoute<'w>> {
        let tables = self
            .groups(host)
            .flat_map(move |(_, ports)| [None, Some(port)].into_iter().filter_map(move |port| ports.get(&port)));
        let indexes = tables.flat_map(|paths| paths.exact.values().chain(paths.prefixes.values()).copied());
        indexes.filter_map(move |index| {
            let (known, selector) = self.routes.get(index)?;
            let serving = self.serving(host, port, &selector.probe())?;
            (serving.0 == known.0).then_some(*known)
        })
    }

    /// The hosts in the matches of the routes.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str).filter(|host| !host.is_empty())
    }

    /// The hosts and ports in matches that compete for the requests to a host and port, the most specific first. A host
    /// with a match for all of its paths leaves none to those after it.
    pub(super) fn competing(&self, host: &str, port: u16) -> Vec<(&str, Option<u16>)> {
        let mut competing = Vec::new();
        for (name, ports) in self.groups(host) {
            let mut takes_all = false;
            for own in [None, Some(port)] {
                let Some(paths) = ports.get(&own) else { continue };
                competing.push((name, own));
                takes_all |= paths.takes_every_path();
            }
            if takes_all {
                break;
            }
        }
        competing
    }

    /// The matches with a host and port.
    pub(super) fn selectors(&self, host: &str, port: Option<u16>) -> impl Iterator<Item = &Selector<'w>> {
        let paths = self.hosts.get(host).and_then(|ports| ports.get(&port));
        let indexes = paths.into_iter().flat_map(|paths| paths.exact.values().chain(paths.prefixes.values()));
        indexes.filter_map(move |index| self.routes.get(*index)).map(|(_, selector)| selector)
    }

    /// The routes whose host covers a host, the most specific first.
    fn groups(&self, host: &str) -> impl Iterator<Item = (&str, &PortPaths<'w>)> {
        let wildcards = self.wildcards.iter().rev().filter_map(move |length| {
            let at = host.len().checked_sub(*length).filter(|at| *at > 0)?;
            Some(Cow::<str>::Owned(format!("*{}", host.get(at..)?)))
        });
        let names = iter::once(Cow::Borrowed(host)).chain(wildcards).chain(iter::once(Cow::Borrowed("")));
        names.filter_map(move |name: Cow<'_, str>| {
            self.hosts.get_key_value(&*name).map(|(name, ports)| (name.as_str(), ports))
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};
    use crate::model::{Id, Kind};

    const MATCHES: [(MatchType, &str); 14] = [
        (PathPrefix, "/"),
        (PathPrefix, "/a"),
        (ExactPath, "/a/b"),
        (PathPrefix, "b.example.com/c"),
        (ExactPath, "*.example.org"),
        (PathPrefix, "*.example.com/c"),
        (PathPrefix, "B.example.com.:443/c"),
        (PathPrefix, "b.example.com"),
        (PathPrefix, "b.example.com/"),
        (ExactPath, "b.example.com/c"),
        (PathPrefix, "*.eu.example.com/c"),
        (PathPrefix, "*.example.com:8443"),
        (PathPrefix, "[2001:DB8::1]:443/a"),
        (PathPrefix, "*"),
    ];

    /// Routes with these matches, in the order of their keys.
    pub(in crate::routing) fn routes(matches: &[(MatchType, &str)]) -> Vec<(Key, HttpsEdgeRoute)> {
        let route = |(index, (match_type, text)): (usize, &(MatchType, &str))| {
            let spec = HttpsEdgeRoute {
                match_type: Some(*match_type),
                r#match: (*text).to_owned(),
                ..HttpsEdgeRoute::default()
            };
            (Key::new(Kind::HttpsEdgeRoute, Id::new(&format!("edghtsrt_{index:02}"))), spec)
        };
        matches.iter().enumerate().map(route).collect()
    }

    #[test]
    fn the_closest_host_and_the_longest_prefix_take_a_request() {
        let routes = routes(&MATCHES);
        let table = RouteTable::new(false, routes.iter().map(|(key, route)| (key, route)));
        let serving = |host: &str, path: &str| table.serving(host, 443, path).map(|(_, route)| route.r#match.as_str());
        assert_eq!(serving("localhost", "/x"), Some("*"));
        assert_eq!(serving("b.example.com", "/cd"), Some("b.example.com/c"));
        assert_eq!(serving("b.example.com", "/x"), Some("b.example.com/"));
        assert_eq!(serving("a.eu.example.com", "/c"), Some("*.eu.example.com/c"));
        assert_eq!(serving("a.example.org", "/a"), Some("*.example.org"));
        assert_eq!(serving("2001:db8::1", "/a"), Some("[2001:DB8::1]:443/a"));
    }

    #[test]
    fn the_index_leaves_no_better_route_out() {
        let routes = routes(&MATCHES);
        let hosts = ["a.example.com", "b.example.com", "a.eu.example.com", "x.example.org", "2001:db8::1", "x"];
        for passes_through in [false, true] {
            let table = RouteTable::new(passes_through, routes.iter().map(|(key, route)| (key, route)));
            for host in hosts {
                for port in [443, 8443] {
                    for path in ["/", "/a", "/a/b", "/a/b/c", "/c", "/cd", "/x"] {
                        let ranked = routes.iter().filter_map(|(key, route)| {
                            let rank = Selector::from_route(route)?.rank(host, port, path, passes_through).ok()?;
                            Some((rank, Reverse(key)))
                        });
                        let best = ranked.max().map(|(_, Reverse(key))| key);
                        let serving = table.serving(host, port, path).map(|(key, _)| key);
                        assert_eq!(serving, best, "{host}:{port}{path} {passes_through}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_longest_prefix_of_a_path_is_found_among_its_neighbours() {
        let prefixes = ["", "/", "/a", "/a/b", "/a/bc", "/ab", "/b", "/é"];
        let table = PathTable { prefixes: prefixes.into_iter().zip(0..).collect(), ..PathTable::default() };
        for path in ["", "/", "/a", "/aa", "/a/", "/a/b", "/a/bd/c", "/a/bcd", "/ac", "/c", "/è", "/éa", "x"] {
            let fitting = prefixes.iter().enumerate().filter(|(_, prefix)| path.starts_with(**prefix));
            let longest = fitting.max_by_key(|(_, prefix)| prefix.len()).map(|(at, _)| at);
            assert_eq!(table.longest_prefix(path), longest, "{path}");
        }
    }

    #[test]
    fn a_host_that_takes_every_path_leaves_nothing_to_wider_ones() {
        let routes = routes(&MATCHES);
        let table = RouteTable::new(false, routes.iter().map(|(key, route)| (key, route)));
        let (eu, all) = (("*.eu.example.com", None), ("*.example.com", None));
        assert_eq!(table.competing("b.example.com", 443), [("b.example.com", None), ("b.example.com", Some(443))]);
        assert_eq!(table.competing("a.eu.example.com", 8443), [eu, all, ("*.example.com", Some(8443))]);
        assert_eq!(table.competing("a.eu.example.com", 443), [eu, all, ("*", None)]);
        assert_eq!(table.competing("x.example.org", 443), [("*.example.org", None)]);
    }

    #[test]
    fn only_routes_that_win_receive_requests() {
        let routes = routes(&MATCHES);
        let table = RouteTable::new(false, routes.iter().map(|(key, route)| (key, route)));
        let mut told: Vec<&str> = table.receiving("b.example.com", 443).map(|it| it.1.r#match.as_str()).collect();
        told.sort_unstable();
        assert_eq!(told, ["b.example.com/", "b.example.com/c", "b.example.com/c"]);
    }
}
