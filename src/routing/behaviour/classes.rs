//! The visit of the classes: which hosts the same edges serve, and how their routes split hosts and paths further.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use super::affected::{Affected, AffectedPaths};
use super::fate::{Fate, keeps_edge};
use super::host_class::HostClass;
use super::host_tree::HostTree;
use super::path_class::{PathClass, PathSplit};
use super::request_class::RequestClass;
use super::request_scope::RequestScope;
use super::served_edges::{EdgesAt, ServedEdges, hostports};
use crate::background::yield_to_requests;
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute, Key, Snapshot};
use crate::routing::selector::{Selector, passes_tls_through};
use crate::routing::table::{KnownRoute, RouteTable};

/// The classes to visit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClassScope<'a> {
    /// All classes that an edge serves in one of the states.
    Everything,
    /// The classes that a change of these resources can affect.
    Changed(&'a BTreeSet<Key>),
    /// The classes that a change of these resources can affect and that an edge serves in each state.
    ChangedAndServed(&'a BTreeSet<Key>),
}

/// Visits all classes of a state that have an example.
#[cfg(test)]
pub(crate) fn each_class<'s>(state: &'s Snapshot, mut visit: impl FnMut(&RequestClass<'_>, Fate<'s>)) {
    let visit = &mut |class: &RequestClass<'_>, [fate]: [Fate<'s>; 1]| {
        if class.example().is_some() {
            visit(class, fate);
        }
    };
    Visit::new([state], ClassScope::Everything, &[]).run(visit);
}

/// Visits the classes of a state that are inside of some scope, each of which is inside or outside of each scope. Not
/// all have an example.
pub(crate) fn each_class_in<'s>(
    state: &'s Snapshot,
    scopes: &[RequestScope],
    mut visit: impl FnMut(&RequestClass<'_>, Fate<'s>),
) {
    if !scopes.is_empty() {
        let visit = &mut |class: &RequestClass<'_>, [fate]: [Fate<'s>; 1]| visit(class, fate);
        Visit::new([state], ClassScope::Everything, scopes).run(visit);
    }
}

/// Like [`each_class_in`], with the fates in two states, whether they differ or not.
pub(crate) fn each_pair_in<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    scope: ClassScope<'_>,
    scopes: &[RequestScope],
    mut visit: impl FnMut(&RequestClass<'_>, [Fate<'s>; 2]),
) {
    if !scopes.is_empty() {
        let visit = &mut |class: &RequestClass<'_>, fates: [Fate<'s>; 2]| visit(class, fates);
        Visit::new([before, after], scope, scopes).run(visit);
    }
}

/// Visits the classes with different fates in two states. Needs memory for what changed only. Not all have an example.
pub(crate) fn each_difference<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    scope: ClassScope<'_>,
    mut visit: impl FnMut(&RequestClass<'_>, Fate<'s>, Fate<'s>),
) {
    // Many classes share a few pairs of edges and routes.
    let mut known: HashMap<[Option<*const Entry>; 4], bool> = HashMap::new();
    let visit = &mut |class: &RequestClass<'_>, [then, now]: [Fate<'s>; 2]| {
        let pair = [then.edge, then.route, now.edge, now.route].map(|entry| entry.map(Arc::as_ptr));
        let is_alike = *known.entry(pair).or_insert_with(|| then.is_like(&now));
        if !is_alike {
            visit(class, then, now);
        }
    };
    Visit::new([before, after], scope, &[]).run(visit);
}

/// What is done with a class and its fate in each state.
type Visitor<'v, 's, const N: usize> = &'v mut dyn FnMut(&RequestClass<'_>, [Fate<'s>; N]);

/// The hostports that the same edges serve, with these edges. Edges compare by their keys.
struct EdgeGroup<'s, const N: usize> {
    edges: EdgesAt<'s, N>,
    hosts: BTreeMap<u16, Vec<String>>,
}

/// The hosts of a group at a port for which the same matches compete, and the matches of each state.
type Competition<'t, const N: usize> = [Vec<(&'t str, Option<u16>)>; N];

/// A visit of classes.
struct Visit<'s, 'q, const N: usize> {
    states: [&'s Snapshot; N],
    /// If there are any, only classes inside of one of them are visited.
    scopes: &'q [RequestScope],
    /// None if all edges are visited.
    affected: Option<Affected>,
    served: ServedEdges<'s, N>,
    needs_all: bool,
}

impl<'s, 'q, const N: usize> Visit<'s, 'q, N> {
    fn new(states: [&'s Snapshot; N], scope: ClassScope<'_>, scopes: &'q [RequestScope]) -> Self {
        let mut affected = match scope {
            ClassScope::Everything => None,
            ClassScope::Changed(changed) | ClassScope::ChangedAndServed(changed) => {
                Some(Affected::find(&states, changed))
            }
        };
        if let Some(affected) = affected.as_mut().filter(|_| !scopes.is_empty()) {
            affected.edges.retain(|key| {
                let mut edges = states.iter().filter_map(|state| state.get(key));
                edges.any(|edge| hostports(edge).any(|(host, _)| scopes.iter().any(|scope| scope.meets(&host))))
            });
        }
        let served = match &affected {
            None => ServedEdges::all(states),
            Some(affected) => ServedEdges::judging(states, &affected.edges),
        };
        Self { states, scopes, affected, served, needs_all: matches!(scope, ClassScope::ChangedAndServed(_)) }
    }

    fn run(&self, visit: Visitor<'_, 's, N>) {
        let mut groups: BTreeMap<[Option<&'s Key>; N], EdgeGroup<'s, N>> = BTreeMap::new();
        for (port, host) in self.served.judged().filter(|(_, host)| self.may_meet(host)) {
            let edges = self.served.serving(host, port);
            if self.needs_all && edges.iter().any(Option::is_none) {
                continue;
            }
            let keys = edges.map(|edge| edge.map(|edge| &edge.key));
            let group = groups.entry(keys).or_insert_with(|| EdgeGroup { edges, hosts: BTreeMap::new() });
            group.hosts.entry(port).or_default().push(host.to_owned());
        }
        for group in groups.values() {
            self.visit_group(group, visit);
        }
    }

    fn visit_group(&self, group: &EdgeGroup<'s, N>, visit: Visitor<'_, 's, N>) {
        let affected = self.affected_paths(&group.edges);
        if affected.as_ref().is_some_and(AffectedPaths::is_empty) {
            return;
        }
        let mut edges = group.edges.iter();
        let sides = self.states.map(|state| EdgeSide::new(state, edges.next().copied().flatten(), affected.as_ref()));
        let mut matched = HostTree::default();
        let asked = self.scopes.iter().flat_map(RequestScope::hosts);
        for host in sides.iter().flat_map(|side| side.table.hosts()).chain(asked) {
            matched.entry(host, ());
        }
        for (port, hostports) in &group.hosts {
            let mut alike: BTreeMap<(Competition<'_, N>, Vec<usize>), Vec<HostClass>> = BTreeMap::new();
            for host in hostports.iter().flat_map(|hostport| self.split_hosts(hostport, *port, &matched)) {
                let scopes: Vec<usize> =
                    self.scopes.iter().enumerate().filter(|(_, it)| it.has_host(&host)).map(|(at, _)| at).collect();
                if scopes.is_empty() && !self.scopes.is_empty() {
                    continue;
                }
                let probe = host.probe();
                let competition = sides.each_ref().map(|side| side.table.competing(&probe, *port));
                alike.entry((competition, scopes)).or_default().push(host);
            }
            for ((competition, scopes), hosts) in &alike {
                let scopes: Vec<&RequestScope> = scopes.iter().filter_map(|at| self.scopes.get(*at)).collect();
                visit_paths(&sides, competition, (hosts, &scopes), affected.as_ref(), visit);
            }
        }
    }

    /// Whether hosts of a hostport may be in some scope.
    fn may_meet(&self, hostport: &str) -> bool {
        self.scopes.is_empty() || self.scopes.iter().any(|scope| scope.meets(hostport))
    }

    /// The paths outside of which nothing changes; none if anything may.
    fn affected_paths(&self, edges: &EdgesAt<'s, N>) -> Option<AffectedPaths<'s>> {
        let affected = self.affected.as_ref()?;
        let mut all = self.states.into_iter().zip(edges.iter().copied());
        let (first_state, first) = all.next()?;
        let first = first?;
        let stays = |(state, edge): (&'s Snapshot, Option<&'s Arc<Entry>>)| {
            edge.is_some_and(|edge| edge.key == first.key && keeps_edge((first_state, first), (state, edge)))
        };
        all.all(stays).then(|| affected.paths_of(first, &self.states))
    }

    /// The hosts of a hostport that no narrower one has, split by the hosts in matches.
    fn split_hosts(&self, hostport: &str, port: u16, matched: &HostTree<()>) -> Vec<HostClass> {
        let inside = matched.below(hostport).into_iter().filter(|host| self.served.is_closest(hostport, host, port));
        let patterns = std::iter::once(hostport.to_owned()).chain(inside);
        let classes = patterns.map(|pattern| {
            let mut except = self.served.below(&pattern, port);
            except.extend(matched.below(&pattern));
            except.sort_unstable();
            except.dedup();
            HostClass { pattern, port, except: except.into() }
        });
        classes.collect()
    }
}

/// Visits the classes of hosts for which the same matches compete, and which are in the same scopes.
fn visit_paths<'s, const N: usize>(
    sides: &[EdgeSide<'s>; N],
    competition: &Competition<'_, N>,
    (hosts, scopes): (&[HostClass], &[&RequestScope]),
    affected: Option<&AffectedPaths<'s>>,
    visit: Visitor<'_, 's, N>,
) {
    let Some(first) = hosts.first() else { return };
    let mut split = PathSplit::whole();
    for (side, competing) in sides.iter().zip(competition).filter(|(side, _)| !side.passes_through) {
        for selector in competing.iter().flat_map(|(host, port)| side.table.selectors(host, *port)) {
            split.add(selector.path, selector.is_exact);
        }
    }
    for prefix in scopes.iter().flat_map(|scope| scope.prefixes()) {
        split.add(prefix, false);
    }
    let host = first.probe();
    let is_asked = |path: &PathClass<'_>| scopes.is_empty() || scopes.iter().any(|scope| scope.has_path(path));
    for path in split.classes().filter(|path| path.may_be_sent() && is_asked(path)) {
        yield_to_requests();
        // A path that no changed route selects has the route that it had.
        if affected.is_none_or(|paths| paths.meet(path.path)) {
            let probe = path.probe();
            let fates = sides.each_ref().map(|side| side.fate(&host, first.port, &probe));
            visit(&RequestClass { hosts, path }, fates);
        }
    }
}

/// An edge in a state, with its routes.
struct EdgeSide<'s> {
    state: &'s Snapshot,
    edge: Option<&'s Arc<Entry>>,
    passes_through: bool,
    table: RouteTable<'s>,
}

impl<'s> EdgeSide<'s> {
    /// The routes that select affected paths suffice if nothing else changed.
    fn new(state: &'s Snapshot, edge: Option<&'s Arc<Entry>>, affected: Option<&AffectedPaths<'s>>) -> Self {
        let passes_through = edge.and_then(|edge| edge.spec_as::<HttpsEdge>()).is_some_and(passes_tls_through);
        let routes = edge.into_iter().flat_map(|edge| state.children(&edge.key));
        let known = routes.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)));
        let selected = known.filter_map(|known| Some((known, Selector::from_route(known.1)?)));
        let mut routes: Vec<(KnownRoute<'s>, Selector<'s>)> =
            selected.filter(|(_, selector)| affected.is_none_or(|paths| paths.meet(selector.path))).collect();
        routes.sort_by(|one, other| one.0.0.cmp(other.0.0));
        Self { state, edge, passes_through, table: RouteTable::build(passes_through, routes) }
    }

    fn fate(&self, host: &str, port: u16, path: &str) -> Fate<'s> {
        let route = self.edge.and_then(|_| self.table.serving(host, port, path));
        Fate::new(self.state, self.edge, route.and_then(|(key, _)| self.state.get(key)))
    }
}
