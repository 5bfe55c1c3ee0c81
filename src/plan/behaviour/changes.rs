//! Classes of requests with the same difference, as one change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::diff::{BehaviourChange, BehaviourDiff, RequestPattern};
use super::patterns::ChangedPaths;
use super::unrouted::{unrouted_changes, worded_change};
use super::wording::WordedDifference;
use crate::model::{Entry, Key, Snapshot};
use crate::plan::change::Plan;
use crate::routing::behaviour::{ClassScope, HostClass, UnvisitedEdge, each_difference, url_of};
use crate::syntax::text::printable;

/// The most groups of hosts whose paths are told apart in a class. More are told together.
const MOST_GROUPS: usize = 100;
/// The most paths that are told, with those inside of them.
const MOST_PATHS: usize = 1_000_000;

/// The common key of the classes of a change: the difference, and the edges before and after it.
type Alike<'s> = (WordedDifference, Option<&'s Key>, Option<&'s Key>);

/// The classes of a change.
struct ChangedClasses<'s> {
    edges: [Option<&'s Entry>; 2],
    /// The paths for each set of hosts.
    paths: BTreeMap<Arc<[String]>, ChangedPaths>,
    example: String,
}

impl Plan {
    /// Notes how the plan treats requests differently, from the states before and after it.
    pub(crate) fn note_behaviour(&mut self, before: &Snapshot, after: &Snapshot) {
        self.effects.behaviour = Some(compare(before, after, &self.changed_keys()));
    }
}

/// Compares how requests are treated before and after a change of some resources.
fn compare(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> BehaviourDiff {
    let mut found: BTreeMap<Alike<'_>, ChangedClasses<'_>> = BTreeMap::new();
    let (mut origins, mut left, mut opens_more) = (LastOrigins::default(), MOST_PATHS, false);
    let unvisited = each_difference(before, after, ClassScope::Changed(changed), |class, then, now| {
        let port = class.port();
        let difference = WordedDifference::new(&then, &now, port);
        opens_more |= left == 0 && difference.opens;
        let edges: [Option<&Entry>; 2] = [then.edge, now.edge].map(|edge| edge.map(AsRef::as_ref));
        let [from, to] = edges.map(|edge| edge.map(|edge| &edge.key));
        let classes = found.entry((difference, from, to)).or_insert_with(|| {
            let example = class.example().map_or_else(|| class.pattern(), |request| url_of(&request));
            ChangedClasses { edges, paths: BTreeMap::new(), example }
        });
        let together = if class.groups.len() > MOST_GROUPS { class.groups.len() } else { 1 };
        for groups in class.groups.chunks(together) {
            if left > 0 {
                let added = classes.paths.entry(origins.shown_for(groups)).or_default().add(class.path);
                left = left.saturating_sub(added);
            }
        }
    });
    let mut changes: Vec<BehaviourChange> =
        found.into_iter().map(|((difference, ..), classes)| classes.change(difference, [before, after])).collect();
    changes.extend(unvisited.iter().map(|edge| uncompared(edge, [before, after])));
    if left == 0 {
        let change = "not told: too many different matches".to_owned();
        changes.push(worded_change("more requests".to_owned(), opens_more, change));
    }
    changes.extend(unrouted_changes(before, after, changed));
    let first = |change: &BehaviourChange| change.requests.first().map(|it| (it.origins.clone(), it.path.clone()));
    changes.sort_by_cached_key(|change| (!change.opens, !change.weakens_tls, first(change)));
    BehaviourDiff { changes, ..BehaviourDiff::default() }
}

/// The change of an edge whose requests are too many to compare. It may open them, if edges serve them before and after it.
fn uncompared(unvisited: &UnvisitedEdge<'_, 2>, states: [&Snapshot; 2]) -> BehaviourChange {
    let ([then, now], [former, current]) = (unvisited.fates, states);
    let before = edge_name(then.edge.map(AsRef::as_ref), former);
    let after = edge_name(now.edge.map(AsRef::as_ref), current);
    let requests = format!("all hosts of `{}`", if after.is_empty() { &before } else { &after });
    let opens = then.edge.is_some() && now.edge.is_some();
    let change = worded_change(requests, opens, format!("not compared: {unvisited}"));
    BehaviourChange { before, after, ..change }
}

/// The name of an edge of a state for a message; empty without one.
fn edge_name(edge: Option<&Entry>, state: &Snapshot) -> String {
    edge.map(|edge| printable(&state.full_name(edge))).unwrap_or_default()
}

impl ChangedClasses<'_> {
    fn change(self, difference: WordedDifference, states: [&Snapshot; 2]) -> BehaviourChange {
        let [from, to] = self.edges;
        let [before, after] = states;
        let requests = self.paths.iter().flat_map(|(origins, paths)| {
            let patterns = paths.patterns().into_iter();
            patterns.map(move |(path, except)| RequestPattern { origins: origins.to_vec(), path, except })
        });
        BehaviourChange {
            opens: difference.opens,
            weakens_tls: difference.weakens_tls,
            change: difference.words,
            before: edge_name(from, before),
            after: edge_name(to, after),
            requests: requests.collect(),
            example: self.example,
        }
    }
}

/// The hosts of the last groups as they are shown: many classes in a row have the same ones.
#[derive(Default)]
struct LastOrigins {
    hosts: Vec<HostClass>,
    shown: Arc<[String]>,
}

impl LastOrigins {
    fn shown_for(&mut self, groups: &[&[HostClass]]) -> Arc<[String]> {
        let hosts = || groups.iter().flat_map(|group| group.iter());
        if !self.hosts.iter().eq(hosts()) {
            self.shown = hosts().map(ToString::to_string).collect();
            self.hosts = hosts().cloned().collect();
        }
        Arc::clone(&self.shown)
    }
}
