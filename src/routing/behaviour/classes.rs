//! The visit of the classes: which hosts the same edges serve, and how their routes split hosts and paths further.
//!
//! A visit ends in a time that grows with the hosts and matches, and with the classes that differ. Two matches can make a class of
//! requests that no other one has, so there can be as many classes as pairs of matches. A wildcard at many ports also has a class
//! for each host in matches at each port. Beyond a limit, an edge is not visited.
//!
//! Several sets of scopes, such as those of each invariant, are visited together: most share their classes. Scopes with different
//! hosts do not: the same matches make classes for each of them. If these are too many, the edge is visited for each set apart, which
//! has as many classes as if there were no other set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use super::affected::Affected;
use super::edge_side::EdgeSide;
use super::fate::{Fate, keeps_edge};
use super::host_class::HostClass;
use super::host_level::{HostLevels, LevelKey, matched_hosts};
use super::host_tree::HostTree;
use super::path_beginnings::PathBeginnings;
use super::request_class::RequestClass;
use super::request_scope::RequestScope;
use super::served_edges::{EdgesAt, ServedEdges, hostports};
use crate::background::yield_to_requests;
use crate::model::traffic::PLAIN_HTTP;
use crate::model::{Entry, Key, Snapshot};

/// The most classes of a visit, and of its hosts alone, for each hostport, each host in matches or scopes, and each match of
/// an edge, beside those of [`MOST_CLASSES`].
const CLASSES_PER_PART: usize = 16;
/// The classes beyond these, of all edges of a visit: for all sets of scopes together, and for each set that is visited apart.
const MOST_CLASSES: usize = if cfg!(test) { 20_000 } else { 200_000 };
/// The most of these for all sets that are visited apart.
const MOST_APART: usize = 20 * MOST_CLASSES;

/// The classes to visit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClassScope<'a> {
    /// All classes that an edge serves in one of the states.
    Everything,
    /// The classes that a change of these resources can affect.
    Changed(&'a BTreeSet<Key>),
    /// The classes that a change of these resources can affect, and that an edge serves that is in each state or takes the
    /// place of others.
    ChangedAndServed(&'a BTreeSet<Key>),
}

/// An edge that is not visited, because its hosts and matches split its requests into too many classes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnvisitedEdge<'s, const N: usize> {
    /// The edge in each state, without a route.
    pub(crate) fates: [Fate<'s>; N],
    /// The place of the set of scopes for which it is not visited; 0 without any.
    pub(crate) set: usize,
    /// The classes of its hosts, as far as they were counted.
    hosts: usize,
    /// The matches of its routes in all states.
    matches: usize,
}

/// Why it is not visited.
impl<const N: usize> fmt::Display for UnvisitedEdge<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too many different matches ({} hosts × {} matches)", self.hosts, self.matches)
    }
}

/// Visits all classes of a state that have an example.
#[cfg(test)]
pub(crate) fn each_class<'s>(state: &'s Snapshot, mut visit: impl FnMut(&RequestClass<'_>, Fate<'s>)) {
    let visit = &mut |class: &RequestClass<'_>, [fate]: [Fate<'s>; 1], _: Range<usize>| {
        if class.example().is_some() {
            visit(class, fate);
        }
    };
    Visit::new([state], ClassScope::Everything, &[]).run(visit);
}

/// Visits the classes of a state that are inside of some scope, with the places of the sets of scopes for which this is done: each
/// class is inside or outside of each scope of these. A set has each of its requests in one class. Not all have an example. Returns the
/// edges that are not visited, for each set.
pub(crate) fn each_class_in<'s>(
    state: &'s Snapshot,
    sets: &[Vec<RequestScope>],
    mut visit: impl FnMut(&RequestClass<'_>, Fate<'s>, Range<usize>),
) -> Vec<UnvisitedEdge<'s, 1>> {
    if sets.is_empty() {
        return Vec::new();
    }
    let visit = &mut |class: &RequestClass<'_>, [fate]: [Fate<'s>; 1], places: Range<usize>| visit(class, fate, places);
    Visit::new([state], ClassScope::Everything, sets).run(visit)
}

/// Like [`each_class_in`], with the fates in two states, whether they differ or not.
pub(crate) fn each_pair_in<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    scope: ClassScope<'_>,
    sets: &[Vec<RequestScope>],
    mut visit: impl FnMut(&RequestClass<'_>, [Fate<'s>; 2], Range<usize>),
) -> Vec<UnvisitedEdge<'s, 2>> {
    if sets.is_empty() {
        return Vec::new();
    }
    Visit::new([before, after], scope, sets).run(&mut visit)
}

/// Visits the classes with different fates in two states. Needs memory for what changed only. Not all have an example. Returns
/// the edges that are not visited.
pub(crate) fn each_difference<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    scope: ClassScope<'_>,
    mut visit: impl FnMut(&RequestClass<'_>, Fate<'s>, Fate<'s>),
) -> Vec<UnvisitedEdge<'s, 2>> {
    // Many classes share a few pairs of edges and routes.
    let mut known: HashMap<([Option<*const Entry>; 4], bool), bool> = HashMap::new();
    let visit = &mut |class: &RequestClass<'_>, [then, now]: [Fate<'s>; 2], _: Range<usize>| {
        let pair = [then.edge, then.route, now.edge, now.route].map(|entry| entry.map(Arc::as_ptr));
        let port = class.port();
        let is_alike = *known.entry((pair, port == PLAIN_HTTP)).or_insert_with(|| then.is_like_at(&now, port));
        if !is_alike {
            visit(class, then, now);
        }
    };
    Visit::new([before, after], scope, &[]).run(visit)
}

/// Visits a class and its fate in each state, for the sets of scopes at some places.
type Visitor<'v, 's, const N: usize> = &'v mut dyn FnMut(&RequestClass<'_>, [Fate<'s>; N], Range<usize>);

/// The hostports that the same edges serve, with these edges. Edges compare by their keys.
struct EdgeGroup<'s, const N: usize> {
    edges: EdgesAt<'s, N>,
    hosts: BTreeMap<u16, Vec<String>>,
}

/// How many classes beyond those of an edge's own parts may still be visited.
struct ClassesLeft {
    together: usize,
    /// For each set of scopes.
    apart: Vec<usize>,
    all_apart: usize,
}

/// A visit of classes.
struct Visit<'s, 'q, const N: usize> {
    states: [&'s Snapshot; N],
    /// If there are any, only classes inside of a scope of one of them are visited.
    sets: &'q [Vec<RequestScope>],
    /// The scopes of all sets.
    scopes: Vec<RequestScope>,
    /// None if all edges are visited.
    affected: Option<Affected>,
    served: ServedEdges<'s, N>,
    needs_all: bool,
}

impl<'s, 'q, const N: usize> Visit<'s, 'q, N> {
    fn new(states: [&'s Snapshot; N], scope: ClassScope<'_>, sets: &'q [Vec<RequestScope>]) -> Self {
        let scopes: Vec<RequestScope> = sets.iter().flatten().cloned().collect();
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
        Self { states, sets, scopes, affected, served, needs_all: matches!(scope, ClassScope::ChangedAndServed(_)) }
    }

    fn run(&self, visit: Visitor<'_, 's, N>) -> Vec<UnvisitedEdge<'s, N>> {
        let mut groups: BTreeMap<[Option<&'s Key>; N], EdgeGroup<'s, N>> = BTreeMap::new();
        for (port, host) in self.served.judged().filter(|(_, host)| self.may_meet(host)) {
            let edges = self.served.serving(host, port);
            if self.needs_all && !self.had_edge(&edges) {
                continue;
            }
            let keys = edges.map(|edge| edge.map(|edge| &edge.key));
            let group = groups.entry(keys).or_insert_with(|| EdgeGroup { edges, hosts: BTreeMap::new() });
            group.hosts.entry(port).or_default().push(host.to_owned());
        }
        let apart = vec![MOST_CLASSES; self.sets.len()];
        let mut left = ClassesLeft { together: MOST_CLASSES, apart, all_apart: MOST_APART };
        let mut unvisited = Vec::new();
        for group in groups.values() {
            unvisited.extend(self.visit_group(group, &mut left, visit));
        }
        unvisited
    }

    /// Whether the edge that serves a host in the last state exists in each other one, or another one serves the host there.
    fn had_edge(&self, edges: &EdgesAt<'s, N>) -> bool {
        let Some(last) = edges.last().copied().flatten() else { return false };
        edges.iter().zip(self.states).all(|(edge, state)| edge.is_some() || state.get(&last.key).is_some())
    }

    /// Visits the classes of a group, for each set of scopes apart if they are too many otherwise. Returns the group for each set for
    /// which it is not visited.
    fn visit_group(
        &self,
        group: &EdgeGroup<'s, N>,
        left: &mut ClassesLeft,
        visit: Visitor<'_, 's, N>,
    ) -> Vec<UnvisitedEdge<'s, N>> {
        let affected = self.affected_paths(&group.edges);
        if affected.as_ref().is_some_and(PathBeginnings::is_empty) {
            return Vec::new();
        }
        let mut edges = group.edges.iter();
        let sides = self.states.map(|state| EdgeSide::new(state, edges.next().copied().flatten(), affected.as_ref()));
        let affected = affected.as_ref();
        let all = 0..self.sets.len();
        let together =
            self.visit_scopes((group, &sides), &self.scopes, affected, left.together, &mut |class, fates| {
                visit(class, fates, all.clone());
            });
        match together {
            Ok(used) => {
                left.together = left.together.saturating_sub(used);
                return Vec::new();
            }
            Err(edge) if all.len() < 2 => return vec![edge],
            Err(_) => {}
        }
        let mut unvisited = Vec::new();
        for (set, (scopes, own)) in self.sets.iter().zip(&mut left.apart).enumerate() {
            let most = left.all_apart.min(*own);
            let visited = self.visit_scopes((group, &sides), scopes, affected, most, &mut |class, fates| {
                visit(class, fates, set..set + 1);
            });
            match visited {
                Ok(used) => {
                    *own = own.saturating_sub(used);
                    left.all_apart = left.all_apart.saturating_sub(used);
                }
                Err(edge) => {
                    // The classes were made before they were too many.
                    left.all_apart = left.all_apart.saturating_sub(most);
                    unvisited.push(UnvisitedEdge { set, ..edge });
                }
            }
        }
        unvisited
    }

    /// Visits the classes of a group inside of some scopes, or all of them without any. Returns how many they are beyond those of
    /// the group's own parts, at most `left`.
    fn visit_scopes(
        &self,
        (group, sides): (&EdgeGroup<'s, N>, &[EdgeSide<'s>; N]),
        scopes: &[RequestScope],
        affected: Option<&PathBeginnings<'s>>,
        left: usize,
        visit: &mut dyn FnMut(&RequestClass<'_>, [Fate<'s>; N]),
    ) -> Result<usize, UnvisitedEdge<'s, N>> {
        let mut matched = HostTree::default();
        let asked = scopes.iter().flat_map(RequestScope::hosts);
        for host in sides.iter().flat_map(|side| side.table.hosts()).chain(asked) {
            matched.entry(host, ());
        }
        let (mut hosts, matches) = (0, sides.iter().map(|side| side.table.routes().len()).sum::<usize>());
        let hostports: usize = group.hosts.values().map(Vec::len).sum();
        let own = CLASSES_PER_PART.saturating_mul(hostports + matched.len() + matches);
        let most = left.saturating_add(own);
        let unvisited =
            |hosts| UnvisitedEdge { fates: sides.each_ref().map(EdgeSide::unrouted), set: 0, hosts, matches };
        let mut ports = Vec::new();
        for (port, on_port) in &group.hosts {
            let mut alike: BTreeMap<LevelKey<'_, N>, Vec<HostClass>> = BTreeMap::new();
            for host in on_port.iter().flat_map(|hostport| self.split_hosts(hostport, *port, &matched)) {
                let inside: Vec<usize> =
                    scopes.iter().enumerate().filter(|(_, it)| it.has_host(&host)).map(|(at, _)| at).collect();
                if inside.is_empty() && !scopes.is_empty() {
                    continue;
                }
                hosts += 1;
                // Each matched host is one of its own at each port of a wildcard.
                if hosts > most {
                    return Err(unvisited(hosts));
                }
                let key = LevelKey { scopes: inside, matched: matched_hosts(sides, &host.probe(), *port) };
                alike.entry(key).or_default().push(host);
            }
            ports.push((*port, alike));
        }
        let (mut classes, mut levels) = (0, Vec::new());
        for (port, alike) in ports {
            let made = HostLevels::new(sides, port, alike, scopes, most.saturating_sub(classes));
            let made = made.ok_or_else(|| unvisited(hosts))?;
            classes += made.classes();
            levels.push((port, made));
        }
        for (port, levels) in &levels {
            visit_levels(sides, *port, levels, scopes, affected, visit);
        }
        Ok(classes.saturating_sub(own))
    }

    /// Whether hosts of a hostport may be in some scope.
    fn may_meet(&self, hostport: &str) -> bool {
        self.scopes.is_empty() || self.scopes.iter().any(|scope| scope.meets(hostport))
    }

    /// The paths outside of which nothing changes; none if anything may.
    fn affected_paths(&self, edges: &EdgesAt<'s, N>) -> Option<PathBeginnings<'s>> {
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

/// Visits the classes of the hosts of a port.
fn visit_levels<'s, const N: usize>(
    sides: &[EdgeSide<'s>; N],
    port: u16,
    levels: &HostLevels<'_>,
    scopes: &[RequestScope],
    affected: Option<&PathBeginnings<'s>>,
    visit: &mut dyn FnMut(&RequestClass<'_>, [Fate<'s>; N]),
) {
    for (at, level) in levels.all() {
        let asking: Vec<&RequestScope> = level.scopes.iter().filter_map(|at| scopes.get(*at)).collect();
        for key in &level.paths {
            let path = level.split.class(*key);
            let is_asked = scopes.is_empty() || asking.iter().any(|scope| scope.has_path(&path));
            // A path that no changed route selects has the route that it had.
            if !is_asked || !path.may_be_sent() || affected.is_some_and(|paths| !paths.meet(path.path)) {
                continue;
            }
            yield_to_requests();
            let groups = levels.hosts(at, *key);
            let Some(first) = groups.first().and_then(|group| group.first()) else { continue };
            let (host, path_probe) = (first.probe(), path.probe());
            let fates = sides.each_ref().map(|side| side.fate(&host, port, &path_probe));
            visit(&RequestClass { groups: &groups, path }, fates);
        }
    }
}
