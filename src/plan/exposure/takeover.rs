//! The requests of routes that go or get another match, and of edges that lose hostports: another route may take them,
//! with less that restricts access.
//!
//! # The problem
//!
//! A plan that deletes the route `/admin` takes no module from any resource. But the route `/` without a login takes
//! the requests of `/admin` from then on.
//!
//! # The idea
//!
//! The states before and after the plan are routed as a gateway would route them. One request stands for all of a route
//! and a hostport: the shortest one that the match covers. If it reached the route before and another one after, what
//! restricts the two, with their edges, is compared.
//!
//! # What it never does
//!
//! If no route takes a request, it ends, and nothing opens. What a new route takes from a restricted one that stays is
//! no exposure: exceptions below a login are usual. It needs the state after the plan, so a refused plan tells nothing
//! of this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use super::Exposure;
use super::lost_protection::{Protections, protections};
use crate::background::yield_to_requests;
use crate::model::{AnyResource, Entry, HttpsEdge, HttpsEdgeRoute, Key, Kind, Snapshot, host_port};
use crate::plan::change::Plan;
use crate::routing::selector::Selector;
use crate::routing::table::{KnownRoute, RouteTable};
use crate::routing::{passes_tls_through, rank_host};
use crate::syntax::text::printable;
use crate::tenancy::certificates::lost_certificates;

impl Plan {
    /// Notes what the plan takes from others, from the states before and after it.
    pub(crate) fn note_effects(&mut self, before: &Snapshot, after: &Snapshot) {
        self.takeovers = takeovers(self, before, after);
        self.lost_certificates = lost_certificates(self.changes.iter().map(|change| &change.key), before, after);
    }
}

/// Returns what other routes open because they take requests, from the states before and after a plan.
fn takeovers(plan: &Plan, before: &Snapshot, after: &Snapshot) -> Vec<Exposure> {
    let routes = given_up(plan, before, after);
    if routes.is_empty() {
        return Vec::new();
    }
    let (mut then, mut now) = (ServedRoutes::new(before), ServedRoutes::new(after));
    let mut reported = BTreeSet::new();
    let mut found = Vec::new();
    for entry in routes.into_values() {
        yield_to_requests();
        let Some(edge) = entry.key.parent_key().and_then(|key| before.get(&key)) else { continue };
        let Some(successor) = successor(entry, edge, &mut then, &mut now) else { continue };
        let has = both(successor.edge, successor.route);
        let exposure = |from: &Entry, to: &Entry, had: Protections| {
            let lost: Vec<&str> =
                had.iter().filter(|(sort, _)| !has.contains_key(*sort)).map(|(_, module)| *module).collect();
            let name = |state: &Snapshot, it: &Entry| format!("{} {}", it.key.kind, printable(&state.full_name(it)));
            let (name, successor) = (name(before, from), Some(name(after, to)));
            (!lost.is_empty()).then(|| Exposure {
                key: to.key.clone(),
                name,
                successor,
                lost,
                left: has.values().copied().collect(),
            })
        };
        found.extend(exposure(entry, successor.route, protections_of(entry)));
        // Once for all routes of an edge. A loss of the same edge is reported at that edge.
        if successor.edge.key != edge.key && !reported.contains(&(&edge.key, &successor.edge.key)) {
            let lost = exposure(edge, successor.edge, protections_of(edge));
            if lost.is_some() {
                reported.insert((&edge.key, &successor.edge.key));
            }
            found.extend(lost);
        }
    }
    found
}

/// The restricted routes whose requests a plan may leave to others.
fn given_up<'s>(plan: &Plan, before: &'s Snapshot, after: &Snapshot) -> BTreeMap<&'s Key, &'s Arc<Entry>> {
    let mut found = BTreeMap::new();
    for change in plan.changes.iter().filter(|change| change.before.is_some()) {
        yield_to_requests();
        let Some(entry) = before.get(&change.key) else { continue };
        match change.key.kind {
            Kind::HttpsEdgeRoute if has_other_match(entry, after) => {
                found.insert(&entry.key, entry);
            }
            Kind::HttpsEdge if loses_hostports(entry, after) => {
                found.extend(before.children(&entry.key).map(|route| (&route.key, route)));
            }
            _ => {}
        }
    }
    found.retain(|_, route| {
        let edge = route.key.parent_key().and_then(|key| before.get(&key));
        edge.is_some_and(|edge| !both(edge, route).is_empty())
    });
    found
}

fn has_other_match(route: &Entry, after: &Snapshot) -> bool {
    let Some(then) = route.spec_as::<HttpsEdgeRoute>() else { return false };
    let now = after.get(&route.key).and_then(|entry| entry.spec_as::<HttpsEdgeRoute>());
    now.is_none_or(|now| now.match_type != then.match_type || now.r#match != then.r#match)
}

fn loses_hostports(edge: &Entry, after: &Snapshot) -> bool {
    let Some(then) = edge.spec_as::<HttpsEdge>() else { return false };
    let now = after.get(&edge.key).and_then(|entry| entry.spec_as::<HttpsEdge>());
    now.is_none_or(|now| then.hostports.iter().any(|hostport| !now.hostports.contains(hostport)))
}

/// The restrictions on the requests of a route.
fn both(edge: &Entry, route: &Entry) -> Protections {
    let mut all = protections_of(edge);
    all.append(&mut protections_of(route));
    all
}

fn protections_of(entry: &Entry) -> Protections {
    let spec: &dyn AnyResource = entry.spec().as_ref();
    protections(spec.modules())
}

/// A route that serves a request, and its edge.
struct ServingRoute<'s> {
    edge: &'s Arc<Entry>,
    route: &'s Arc<Entry>,
}

/// The other route that takes requests from a route, if there is one.
fn successor<'s>(
    route: &Arc<Entry>,
    edge: &Arc<Entry>,
    then: &mut ServedRoutes<'_>,
    now: &mut ServedRoutes<'s>,
) -> Option<ServingRoute<'s>> {
    let selector = Selector::from_route(route.spec_as::<HttpsEdgeRoute>()?)?;
    let path = selector.probe();
    let hostports = edge.spec_as::<HttpsEdge>()?.hostports.iter().filter_map(|text| host_port(text));
    let mut requests = hostports.filter_map(|(pattern, port)| Some((host_of(&selector, &pattern, port)?, port)));
    requests.find_map(|(host, port)| {
        let had = then.serving(&host, port, &path)?;
        let has = now.serving(&host, port, &path)?;
        (had.route.key == route.key && has.route.key != route.key).then_some(has)
    })
}

/// A host that both a match and a hostport cover.
fn host_of(selector: &Selector<'_>, hostport: &str, port: u16) -> Option<String> {
    let example = |pattern: &str| match pattern.strip_prefix('*') {
        Some(suffix) => format!("any{suffix}"),
        None => pattern.to_owned(),
    };
    let fits = |host: &String| rank_host(host, hostport).is_some() && selector.rank_address(host, port).is_some();
    [example(&selector.host), example(hostport)].into_iter().find(fits)
}

/// The edge and route that take a request in a state.
struct ServedRoutes<'s> {
    state: &'s Snapshot,
    edges: HashMap<(String, u16), &'s Arc<Entry>>,
    /// The routes of the edges that were asked for.
    tables: HashMap<&'s Key, RouteTable<'s>>,
}

impl<'s> ServedRoutes<'s> {
    fn new(state: &'s Snapshot) -> Self {
        let mut edges: HashMap<(String, u16), &'s Arc<Entry>> = HashMap::new();
        for entry in state.newest_first(Kind::HttpsEdge, None, u64::MAX) {
            yield_to_requests();
            let Some(edge) = entry.spec_as::<HttpsEdge>() else { continue };
            for address in edge.hostports.iter().filter_map(|text| host_port(text)) {
                let known = edges.entry(address).or_insert(entry);
                // If two edges have a hostport, the lower ID serves it.
                if entry.key < known.key {
                    *known = entry;
                }
            }
        }
        Self { state, edges, tables: HashMap::new() }
    }

    /// The edge with the closest hostport.
    fn edge(&self, host: &str, port: u16) -> Option<&'s Arc<Entry>> {
        let wildcards = host.match_indices('.').filter(|(dot, _)| *dot > 0);
        let wildcards = wildcards.filter_map(|(dot, _)| Some(format!("*{}", host.get(dot..)?)));
        let mut names = std::iter::once(host.to_owned()).chain(wildcards);
        names.find_map(|name| self.edges.get(&(name, port)).copied())
    }

    fn serving(&mut self, host: &str, port: u16, path: &str) -> Option<ServingRoute<'s>> {
        let edge = self.edge(host, port)?;
        let state = self.state;
        let table = self.tables.entry(&edge.key).or_insert_with(|| table(state, edge));
        let (key, _) = table.serving(host, port, path)?;
        Some(ServingRoute { edge, route: state.get(key)? })
    }
}

fn table<'s>(state: &'s Snapshot, edge: &'s Entry) -> RouteTable<'s> {
    let routes = state.children(&edge.key);
    let mut routes: Vec<KnownRoute<'s>> =
        routes.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?))).collect();
    routes.sort_by(|one, other| one.0.cmp(other.0));
    RouteTable::new(edge.spec_as::<HttpsEdge>().is_some_and(passes_tls_through), routes)
}
