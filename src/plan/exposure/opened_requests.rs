//! The requests that meet less that restricts access after a plan than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Exposure;
use crate::lint::Level;
use crate::model::{Entry, Key, Snapshot};
use crate::plan::change::Plan;
use crate::routing::behaviour::{ClassScope, Fate, Protections, RequestClass, each_difference, url_of};
use crate::syntax::text::printable;
use crate::tenancy::certificates::lost_certificates;

/// The resource that restricted requests, the one that has them now, and what it lacks.
type Loss = (Key, Key, Vec<&'static str>);

impl Plan {
    /// Notes what the plan opens and takes from others, from the states before and after it.
    pub(crate) fn note_effects(&mut self, before: &Snapshot, after: &Snapshot) {
        self.opened.extend(opened_requests(&self.changed_keys(), before, after));
        self.lost_certificates = lost_certificates(self.changes.iter().map(|change| &change.key), before, after);
    }

    /// The resources that the plan changes.
    pub(crate) fn changed_keys(&self) -> BTreeSet<Key> {
        self.changes.iter().map(|change| change.key.clone()).collect()
    }
}

/// Returns an exposure for each resource that no longer restricts requests as it did, and each one that takes them over. Takes the
/// resources that differ between two states.
pub(crate) fn opened_requests(changed: &BTreeSet<Key>, before: &Snapshot, after: &Snapshot) -> Vec<Exposure> {
    let mut found: BTreeMap<Loss, Exposure> = BTreeMap::new();
    each_difference(before, after, ClassScope::ChangedAndServed(changed), |class, then, now| {
        for (from, to, lost) in losses(&then, &now) {
            let has = now.protections();
            let known = found.entry((from.key.clone(), to.key.clone(), lost.clone()));
            let exposure = known.or_insert_with(|| exposure([before, after], (from, to), lost, &has, class));
            exposure.left.retain(|module| has.values().any(|other| other == module));
        }
    });
    found.into_values().collect()
}

/// What requests lose, by the edge or route that restricted them: each sort of restriction that they no longer meet.
fn losses<'s>(then: &Fate<'s>, now: &Fate<'s>) -> Vec<(&'s Arc<Entry>, &'s Arc<Entry>, Vec<&'static str>)> {
    // Without a backend, requests are refused.
    let (Some(edge), Some(route), Some(_)) = (now.edge, now.route, now.backend()) else { return Vec::new() };
    let (had, has) = (then.protections(), now.protections());
    let lost: Vec<&str> = had.iter().filter(|(sort, _)| !has.contains_key(*sort)).map(|(_, module)| *module).collect();
    let of = |from: Option<&'s Arc<Entry>>, to: &'s Arc<Entry>| {
        let from = from?;
        let own =
            |name: &&'static str| then.modules().iter().any(|it| it.slot.name == *name && it.host.key == from.key);
        let lost: Vec<&'static str> = lost.iter().copied().filter(own).collect();
        (!lost.is_empty()).then_some((from, to, lost))
    };
    [of(then.edge, edge), of(then.route, route)].into_iter().flatten().collect()
}

fn exposure(
    states: [&Snapshot; 2],
    (from, to): (&Entry, &Entry),
    lost: Vec<&'static str>,
    has: &Protections,
    class: &RequestClass<'_>,
) -> Exposure {
    let name = |state: &Snapshot, it: &Entry| format!("{} {}", it.key.kind, printable(&state.full_name(it)));
    let [before, after] = states;
    Exposure {
        key: to.key.clone(),
        level: Level::Warn,
        name: name(before, from),
        successor: (from.key != to.key).then(|| name(after, to)),
        lost,
        left: has.values().copied().collect(),
        example: class.example().map(|request| url_of(&request)),
    }
}
