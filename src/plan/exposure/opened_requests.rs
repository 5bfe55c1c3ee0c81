//! The requests that meet less that restricts access after a plan than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Exposure;
use crate::lint::Level;
use crate::model::{Entry, Key, Snapshot};
use crate::plan::change::Plan;
use crate::plan::weakened_invariant::weakened_invariants;
use crate::routing::behaviour::{
    ClassScope, Fate, Protections, RequestClass, each_difference, missing_protections, url_of,
};
use crate::syntax::text::printable;
use crate::tenancy::certificates::lost_certificates;

/// The resource that restricted requests, the one that has them now, and what it lacks.
type Loss = (Key, Key, Vec<&'static str>);

impl Plan {
    /// Notes what the plan opens, weakens and takes from others, from the states before and after it.
    pub(crate) fn note_effects(&mut self, before: &Snapshot, after: &Snapshot) {
        let changed = self.changed_keys();
        self.opened.extend(self.lost_restrictions(before, after));
        self.opened.extend(opened_requests(&changed, before, after));
        self.weakened = weakened_invariants(&changed, before, after);
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
    let unvisited = each_difference(before, after, ClassScope::ChangedAndServed(changed), |class, then, now| {
        let port = class.port();
        for (from, to, lost) in losses(&then, &now, port) {
            let has = now.protections(port);
            let known = found.entry((from.key.clone(), to.key.clone(), lost.clone()));
            let exposure = known.or_insert_with(|| exposure([before, after], (from, to), lost, &has, class));
            exposure.left.retain(|module| has.values().any(|other| other == module));
        }
    });
    let uncompared = unvisited.iter().filter_map(|edge| {
        let [_, now] = edge.fates;
        let now = now.edge?;
        let (key, name) = (now.key.clone(), named(after, now));
        let (lost, left) = (Vec::new(), Vec::new());
        let unknown = edge.to_string();
        Some(Exposure { key, level: Level::Warn, name, successor: None, lost, left, unknown, example: None })
    });
    found.into_values().chain(uncompared).collect()
}

/// The kind and name of an edge or route.
fn named(state: &Snapshot, it: &Entry) -> String {
    format!("{} {}", it.key.kind, printable(&state.full_name(it)))
}

/// The losses of requests, by the edge or route that restricted them: each sort of restriction that they no longer meet.
/// Without any, they are those that a route refused, and that nothing restricts.
fn losses<'s>(then: &Fate<'s>, now: &Fate<'s>, port: u16) -> Vec<(&'s Arc<Entry>, &'s Arc<Entry>, Vec<&'static str>)> {
    // Without a backend, requests are refused.
    let (Some(edge), Some(route), Some(_)) = (now.edge, now.route, now.reached_backend()) else { return Vec::new() };
    let (had, has) = (then.protections(port), now.protections(port));
    let lost = missing_protections(&had, &has);
    if lost.is_empty() && has.is_empty() && then.reached_backend().is_none() {
        return then.route.map(|from| (from, route, Vec::new())).into_iter().collect();
    }
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
    let [before, after] = states;
    Exposure {
        key: to.key.clone(),
        level: Level::Warn,
        name: named(before, from),
        successor: (from.key != to.key || lost.is_empty()).then(|| named(after, to)),
        lost,
        left: has.values().copied().collect(),
        unknown: String::new(),
        example: class.example().map(|request| url_of(&request)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::routing::tests::{edge_key, route, route_key, state_of_json, with};

    /// A state with an edge that takes all requests.
    fn state(edge: Value) -> Snapshot {
        let route = route("/", Value::Null);
        state_of_json([(edge_key("edghts_1"), edge), (route_key("edghts_1", "edghtsrt_1"), route)])
    }

    #[test]
    fn a_limit_in_the_place_of_a_policy_that_denies_opens() {
        let with = |action: Option<&str>| {
            let modules = match action {
                Some(action) => json!({"policies": {"inbound": [{"actions": [{"type": action}]}]}}),
                None => Value::Null,
            };
            let edge = json!({"hostports": ["a.example:443"]});
            state_of_json([(edge_key("edghts_1"), edge), (route_key("edghts_1", "edghtsrt_1"), route("/", modules))])
        };
        let changed = BTreeSet::from([route_key("edghts_1", "edghtsrt_1")]);
        let opens = |before: Option<&str>, after: Option<&str>| {
            opened_requests(&changed, &with(before), &with(after))
                .iter()
                .any(|it| it.to_string().contains("`policies`"))
        };
        assert!(opens(Some("deny"), Some("rate-limit")) && opens(Some("deny"), None));
        assert!(!opens(Some("rate-limit"), None) && !opens(Some("rate-limit"), Some("deny")));
    }

    #[test]
    fn mutual_tls_restricts_nothing_where_the_edge_does_not_terminate_tls() {
        let changed = BTreeSet::from([edge_key("edghts_1")]);
        let opened = |before: &Value, after: &Value| {
            let found = opened_requests(&changed, &state(before.clone()), &state(after.clone()));
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let restricted = json!({"hostports": ["a.example:443"], "mutual_tls": {}});
        let unterminated =
            json!({"hostports": ["a.example:443"], "mutual_tls": {}, "tls_termination": {"enabled": false}});
        let found = opened(&restricted, &unterminated);
        assert!(found.len() == 1 && found.iter().all(|it| it.contains("loses `mutual_tls`, and nothing")), "{found:?}");
        assert!(opened(&unterminated, &restricted).is_empty());
        let on_80 = |more: Value| with(json!({"hostports": ["a.example:80"]}), more);
        let found = opened(&on_80(json!({"mutual_tls": {}})), &on_80(json!({})));
        assert!(found.is_empty(), "it restricted nothing there");
    }
}
