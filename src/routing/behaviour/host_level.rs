//! The hosts of an edge at a port in levels: those for which the same matches compete, below those for which fewer do.
//!
//! # The problem
//!
//! An edge with a match for each of 2,500 hosts, such as `a.example.com/admin/`, and 2,500 matches for all hosts has six million
//! pairs of a host and a path. Nearly all of them are alike: `/docs/` on `a.example.com` goes where `/docs/` on `b.example.com` does.
//!
//! # The idea
//!
//! The matches for every host compete for the requests to each. Those for `*.example.com` come before them, and those for
//! `a.example.com` before both. So the hosts are the nodes of a tree, and each level has the matches of one more host. A level
//! differs from the one above only in paths that its own matches select, and in prefixes that have such paths inside of
//! them. Only these are its own classes. A class of any other path also has the hosts of the levels below:
//!
//! ```text
//! every host      /docs/*     everybody
//!                 /*          all but a.example.com and b.example.com
//! a.example.com   /*          without /admin/
//!                 /admin/*
//! b.example.com   /*          without /admin/
//!                 /admin/*
//! ```
//!
//! A prefix of a level leaves nothing below it to the levels above, so their paths there split none of its classes.
//!
//! # What it never does
//!
//! No class is left out, and none is there twice: the levels have the same requests as all pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::edge_side::EdgeSide;
use super::host_class::HostClass;
use super::path_beginnings::PathBeginnings;
use super::path_class::{PathKey, PathSplit};
use super::request_scope::RequestScope;

/// A host in matches that covers the hosts of a level, and whether there are matches for it in each state: for every port, and for
/// the one of the level.
type MatchedHost<'t, const N: usize> = (&'t str, [[bool; 2]; N]);

/// The common key of the hosts of a level. A level follows the one above it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LevelKey<'t, const N: usize> {
    /// The scopes that have the hosts, by their places.
    pub(super) scopes: Vec<usize>,
    /// The hosts in competing matches, the least specific first.
    pub(super) matched: Vec<MatchedHost<'t, N>>,
}

/// The hosts in matches that compete for the requests to a host and port, the least specific first.
pub(super) fn matched_hosts<'t, const N: usize>(
    sides: &'t [EdgeSide<'_>; N],
    host: &str,
    port: u16,
) -> Vec<MatchedHost<'t, N>> {
    let mut found: BTreeMap<(bool, usize), MatchedHost<'t, N>> = BTreeMap::new();
    for (at, side) in sides.iter().enumerate() {
        for (name, of_port) in side.table.competing(host, port) {
            // Of those that cover a host, a longer one is more specific, and the host itself is the most.
            let is_literal = !name.is_empty() && !name.starts_with('*');
            let (_, has) = found.entry((is_literal, name.len())).or_insert((name, [[false; 2]; N]));
            if let Some(has) = has.get_mut(at).and_then(|has| has.get_mut(usize::from(of_port.is_some()))) {
                *has = true;
            }
        }
    }
    found.into_values().collect()
}

/// Hosts for which the same matches compete.
pub(super) struct HostLevel<'t> {
    /// The scopes that have the hosts, by their places.
    pub(super) scopes: Vec<usize>,
    /// All classes of paths.
    pub(super) split: Arc<PathSplit<'t>>,
    /// The classes of paths that differ from those of the level above.
    pub(super) paths: BTreeSet<PathKey<'t>>,
    hosts: Vec<HostClass>,
    /// The place behind the last level below it.
    end: usize,
}

/// The levels of the hosts at a port, each before those below it.
#[derive(Default)]
pub(super) struct HostLevels<'t> {
    levels: Vec<HostLevel<'t>>,
    /// The levels that differ from those above in a class of paths.
    differing: BTreeMap<PathKey<'t>, Vec<usize>>,
    /// The levels with a prefix of their own: all paths below it differ.
    prefixes: BTreeMap<&'t str, Vec<usize>>,
}

/// The paths of the matches that a level has in addition to those above.
struct LevelPaths<'t> {
    all: BTreeSet<PathKey<'t>>,
    /// The prefixes among them.
    prefixes: PathBeginnings<'t>,
    /// The beginnings of paths of which nothing is left to the levels above, whatever the state.
    taken: PathBeginnings<'t>,
}

impl<'t> HostLevels<'t> {
    /// Makes the levels of some hosts. Returns none if they have more classes than `most`.
    pub(super) fn new<'s: 't, const N: usize>(
        sides: &'t [EdgeSide<'s>; N],
        port: u16,
        mut hosts: BTreeMap<LevelKey<'t, N>, Vec<HostClass>>,
        scopes: &'t [RequestScope],
        most: usize,
    ) -> Option<Self> {
        add_levels_above(&mut hosts);
        let (mut made, mut classes, mut above) = (Self::default(), 0, Vec::<usize>::new());
        for (at, (key, hosts)) in hosts.into_iter().enumerate() {
            made.close(above.split_off(key.matched.len().min(above.len())));
            let parent = above.last().and_then(|parent| made.levels.get(*parent)).map(|it| Arc::clone(&it.split));
            let (split, paths) = match parent.zip(key.matched.last()) {
                Some((parent, own)) => made.refined(&parent, &LevelPaths::new(sides, own, port), at),
                None => whole(key.scopes.iter().filter_map(|at| scopes.get(*at))),
            };
            classes += paths.len();
            if classes > most {
                return None;
            }
            made.levels.push(HostLevel { scopes: key.scopes, split, paths, hosts, end: at + 1 });
            above.push(at);
        }
        made.close(above);
        Some(made)
    }

    /// Notes that the next level is below none of some levels.
    fn close(&mut self, levels: Vec<usize>) {
        let end = self.levels.len();
        for at in levels {
            if let Some(level) = self.levels.get_mut(at) {
                level.end = end;
            }
        }
    }

    /// The classes of paths of the next level, and those that differ from the ones above it.
    fn refined(
        &mut self,
        above: &Arc<PathSplit<'t>>,
        own: &LevelPaths<'t>,
        at: usize,
    ) -> (Arc<PathSplit<'t>>, BTreeSet<PathKey<'t>>) {
        let split = PathSplit::refining(above, own.all.iter().copied(), own.taken.clone());
        let mut paths = own.all.clone();
        for (_, path) in own.all.iter().copied() {
            paths.extend(beginnings(path).filter(|it| split.has(false, it)).map(|it| (false, it)));
        }
        for prefix in own.prefixes.iter() {
            paths.extend(split.below(prefix));
            self.prefixes.entry(prefix).or_default().push(at);
        }
        for key in &paths {
            self.differing.entry(*key).or_default().push(at);
        }
        (Arc::new(split), paths)
    }

    /// The number of classes, some of which have no hosts.
    pub(super) fn classes(&self) -> usize {
        self.levels.iter().map(|level| level.paths.len()).sum()
    }

    /// The levels with their places.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &HostLevel<'t>)> {
        self.levels.iter().enumerate()
    }

    /// The hosts with a class of paths of a level: its own, and those of the levels below it for which the class is the same.
    pub(super) fn hosts(&self, at: usize, key: PathKey<'_>) -> Vec<&[HostClass]> {
        let (mut groups, mut next) = (Vec::new(), at);
        let end = self.levels.get(at).map_or(at, |level| level.end);
        let mut add = |from: usize, to: usize| {
            let levels = self.levels.get(from..to).unwrap_or_default();
            groups.extend(levels.iter().map(|level| level.hosts.as_slice()).filter(|hosts| !hosts.is_empty()));
        };
        for other in self.differing_below(at, end, key) {
            if other >= next {
                add(next, other);
                next = self.levels.get(other).map_or(end, |level| level.end);
            }
        }
        add(next, end);
        groups
    }

    /// The levels below one for which a class of paths differs, in order.
    fn differing_below(&self, at: usize, end: usize, key: PathKey<'_>) -> Vec<usize> {
        if at + 1 >= end {
            return Vec::new();
        }
        let below = |levels: &'_ Vec<usize>| {
            let from = levels.partition_point(|level| *level <= at);
            let to = levels.partition_point(|level| *level < end);
            levels.get(from..to).map(<[usize]>::to_vec).unwrap_or_default()
        };
        let mut found = self.differing.get(&key).map(below).unwrap_or_default();
        if !self.prefixes.is_empty() {
            let beginning = beginnings(key.1).filter_map(|it| self.prefixes.get(it));
            found.extend(beginning.flat_map(below));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl<'t> LevelPaths<'t> {
    fn new<'s: 't, const N: usize>(sides: &'t [EdgeSide<'s>; N], (host, has): &MatchedHost<'t, N>, port: u16) -> Self {
        let (mut all, mut taken) = (BTreeSet::new(), None::<PathBeginnings<'t>>);
        for (side, has) in sides.iter().zip(has) {
            let ports = [None, Some(port)].into_iter().zip(has).filter(|(_, has)| **has).map(|(port, _)| port);
            let own: BTreeSet<PathKey<'t>> = ports
                .flat_map(|port| side.selectors(host, port))
                .map(|selector| (selector.is_exact, selector.path))
                .collect();
            if side.decides_by_path() {
                let own = prefixes_of(&own);
                taken = Some(taken.map_or_else(|| own.clone(), |taken| taken.both(&own)));
            }
            all.extend(own);
        }
        Self { prefixes: prefixes_of(&all), taken: taken.unwrap_or_default(), all }
    }
}

fn prefixes_of<'t>(paths: &BTreeSet<PathKey<'t>>) -> PathBeginnings<'t> {
    PathBeginnings::new(paths.iter().filter(|(is_exact, _)| !is_exact).map(|(_, path)| *path).collect())
}

/// The classes of paths of hosts for which no match competes.
fn whole<'t>(scopes: impl Iterator<Item = &'t RequestScope>) -> (Arc<PathSplit<'t>>, BTreeSet<PathKey<'t>>) {
    let mut split = PathSplit::whole();
    scopes.flat_map(RequestScope::prefixes).for_each(|prefix| split.add(prefix, false));
    let paths = split.below("");
    (Arc::new(split), paths)
}

/// Adds the levels above those that are given, with no hosts of their own.
fn add_levels_above<const N: usize>(hosts: &mut BTreeMap<LevelKey<'_, N>, Vec<HostClass>>) {
    let given: Vec<LevelKey<'_, N>> = hosts.keys().cloned().collect();
    for mut key in given {
        while key.matched.pop().is_some() && !hosts.contains_key(&key) {
            hosts.insert(key.clone(), Vec::new());
        }
    }
}

/// The beginnings of a path, the shortest first, and the path itself.
fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    (1..=path.len()).filter_map(move |end| path.get(..end))
}
