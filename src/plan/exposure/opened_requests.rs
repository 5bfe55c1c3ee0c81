//! The requests that meet less that restricts access after a plan than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Exposure;
use crate::model::module::admission::AccessChange;
use crate::model::{Entry, Key, Snapshot};
use crate::plan::change::Plan;
use crate::plan::weakened_invariant::weakened_invariants;
use crate::routing::behaviour::{AccessDifference, ClassScope, Fate, RequestClass, each_difference, url_of};
use crate::syntax::text::printable;
use crate::tenancy::certificates::lost_certificates;

/// The resource that restricted requests, the one that has them now, what it lacks, and what may admit more there.
type Loss<R> = (R, R, Vec<&'static str>, Vec<(&'static str, AccessChange)>);

impl Plan {
    /// Notes what the plan opens, weakens and takes from others, from the states before and after it.
    pub(crate) fn note_effects(&mut self, before: &Snapshot, after: &Snapshot) {
        let changed = self.changed_keys();
        let mut opened = self.opened_tls_edges(before, after);
        opened.extend(self.opened_restrictions(before, after));
        opened.extend(opened_requests(&changed, before, after));
        let weakened = weakened_invariants(&changed, before, after);
        self.effects.warnings = opened.into_iter().map(Exposure::warning).chain(weakened).collect();
        self.effects.lost_certificates =
            lost_certificates(self.changes.iter().map(|change| &change.key), before, after);
    }

    /// The resources that the plan changes.
    pub(crate) fn changed_keys(&self) -> BTreeSet<Key> {
        self.changes.iter().map(|change| change.key.clone()).collect()
    }
}

/// Returns an exposure for each resource that no longer restricts requests as it did, and each one that takes them over: of those
/// that a behaviour diff marks. A route with other requests than before is compared with itself. Takes the resources that differ
/// between two states.
pub(crate) fn opened_requests(changed: &BTreeSet<Key>, before: &Snapshot, after: &Snapshot) -> Vec<Exposure> {
    let mut found: BTreeMap<Loss<Key>, Exposure> = BTreeMap::new();
    let unvisited = each_difference(before, after, ClassScope::ChangedAndServed(changed), |class, then, now| {
        // Without a backend, requests are refused.
        if now.reached_backend().is_none() {
            return;
        }
        let mut access = AccessDifference::new(&then, &now, class.port());
        let mut all = losses(&then, &now, &access);
        if all.is_empty()
            && let Some((former, moved)) = AccessDifference::of_moved_route(&then, &now, class.port())
        {
            (all, access) = (losses(&former, &now, &moved), moved);
        }
        let (kept, gained) = (access.kept(), access.gained());
        for loss in all {
            let (from, to, lost, widened) = &loss;
            let known = found.entry((from.key.clone(), to.key.clone(), lost.clone(), widened.clone()));
            let exposure = known.or_insert_with(|| exposure([before, after], loss, &access, class));
            exposure.left.retain(|module| kept.contains(module));
            exposure.gained.retain(|module| gained.contains(module));
            exposure.is_open |= access.has.is_empty();
        }
    });
    let uncompared = unvisited.iter().filter_map(|edge| {
        let [_, now] = edge.fates;
        let now = now.edge?;
        let exposure = Exposure::new(now.key.clone(), named(after, now), &AccessDifference::default());
        Some(Exposure { unknown: edge.to_string(), ..exposure })
    });
    found.into_values().chain(uncompared).collect()
}

/// The kind and name of an edge or route.
fn named(state: &Snapshot, it: &Entry) -> String {
    format!("{} {}", it.key.kind, printable(&state.full_name(it)))
}

/// The losses of requests, by the edge or route that has them now: each sort of restriction that they no longer meet, and each module
/// that may admit more. Without any, they are those that a route refused, and that nothing restricts.
fn losses<'s>(then: &Fate<'s>, now: &Fate<'s>, access: &AccessDifference) -> Vec<Loss<&'s Arc<Entry>>> {
    let (Some(edge), Some(route)) = (now.edge, now.route) else { return Vec::new() };
    if !access.opens(then.reached_backend().is_none()) {
        return Vec::new();
    }
    let (lost, widened) = (access.lost(), access.widened());
    if lost.is_empty() && widened.is_empty() {
        return then.route.map(|from| (from, route, Vec::new(), Vec::new())).into_iter().collect();
    }
    let has = |fate: &Fate<'s>, host: &Arc<Entry>, name: &str| {
        fate.modules().iter().any(|it| it.slot.name == name && it.host.key == host.key)
    };
    let of = |from: Option<&'s Arc<Entry>>, to: &'s Arc<Entry>| {
        let from = from?;
        let lost: Vec<_> = lost.iter().copied().filter(|name| has(then, from, name)).collect();
        let widened: Vec<_> = widened.iter().copied().filter(|(name, _)| has(now, to, name)).collect();
        (!lost.is_empty() || !widened.is_empty()).then_some((from, to, lost, widened))
    };
    [of(then.edge, edge), of(then.route, route)].into_iter().flatten().collect()
}

fn exposure(
    [before, after]: [&Snapshot; 2],
    (from, to, lost, widened): Loss<&Arc<Entry>>,
    access: &AccessDifference,
    class: &RequestClass<'_>,
) -> Exposure {
    let refused = lost.is_empty() && widened.is_empty();
    let successor = (from.key != to.key || refused).then(|| named(after, to));
    let example = class.example().map(|request| url_of(&request));
    Exposure { successor, lost, widened, example, ..Exposure::new(to.key.clone(), named(before, from), access) }
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
    fn what_admits_more_or_takes_the_place_of_another_restriction_is_told_in_the_words_of_a_behaviour_diff() {
        let state = |modules: &Value| {
            let edge = json!({"hostports": ["a.example:443"]});
            state_of_json([
                (edge_key("edghts_1"), edge),
                (route_key("edghts_1", "edghtsrt_1"), route("/", modules.clone())),
            ])
        };
        let changed = BTreeSet::from([route_key("edghts_1", "edghtsrt_1")]);
        let from = |ids: &[&str]| json!({"ip_restriction": {"ip_policy_ids": ids}});
        let github =
            |organizations: &[&str]| json!({"oauth": {"provider": {"github": {"organizations": organizations}}}});
        let oidc = |issuer: &str, secret: &str| json!({"oidc": {"issuer": issuer, "client_secret": secret}});
        let hook = |secret: &str| json!({"webhook_verification": {"provider": "github", "secret": secret}});
        for (before, after, said) in [
            (github(&["bank"]), github(&[]), Some(": `oauth` admits more")),
            (oidc("https://a", "s"), oidc("https://b", "s"), Some(": `oidc` may admit others")),
            (from(&["office"]), from(&["office", "vpn"]), Some(": `ip_restriction` admits more")),
            (oidc("https://a", "s"), github(&[]), Some(": `oauth` may admit others")),
            (from(&["office"]), hook("s"), Some(" loses `ip_restriction`; `webhook_verification` required instead")),
            (
                with(from(&["office"]), oidc("https://a", "s")),
                oidc("https://b", "s"),
                Some(" loses `ip_restriction`; `oidc` stays; `oidc` may admit others"),
            ),
            (
                with(from(&["office"]), oidc("https://a", "s")),
                github(&[]),
                Some(" loses `ip_restriction`; `oauth` may admit others"),
            ),
            (from(&["office", "vpn"]), from(&["office"]), None),
            (oidc("https://a", "s"), oidc("https://a", "another"), None),
            (hook("s"), hook("another"), None),
        ] {
            let found = opened_requests(&changed, &state(&before), &state(&after));
            let told: Vec<String> = found.iter().map(ToString::to_string).collect();
            let is_told = |said: &str| told.len() == 1 && told.iter().all(|it| it.ends_with(said));
            assert!(said.map_or(told.is_empty(), is_told), "{before} {after} {told:?}");
        }
    }

    #[test]
    fn a_route_that_loses_its_restriction_opens_wherever_it_moves() {
        let hook = json!({"webhook_verification": {"provider": "github", "secret": "s"}});
        let state = |host: &str, path: &str, modules: &Value, other: Option<&str>| {
            let edge = (edge_key("edghts_1"), json!({"hostports": [host]}));
            let moved = (route_key("edghts_1", "edghtsrt_1"), route(path, modules.clone()));
            let other = other.map(|backend| {
                let modules = json!({"backend": {"backend_id": backend}});
                (route_key("edghts_1", "edghtsrt_2"), route("/callbacks/", modules))
            });
            state_of_json([edge, moved].into_iter().chain(other))
        };
        let keys = [route_key("edghts_1", "edghtsrt_1"), route_key("edghts_1", "edghtsrt_2")];
        let changed = BTreeSet::from_iter(keys.into_iter().chain([edge_key("edghts_1")]));
        let lost = " loses `webhook_verification`, and nothing else restricts it";
        for (host, path, other, modules, said) in [
            ("a.example:443", "/callbacks/", None, json!({}), Some(lost)),
            ("b.example:443", "/hooks/", None, json!({}), Some(lost)),
            ("a.example:443", "/callbacks/", Some("bkd_2"), json!({}), Some(lost)),
            // These requests reached the backend before.
            ("a.example:443", "/callbacks/", Some("bkd_1"), json!({}), None),
            ("a.example:443", "/callbacks/", None, hook.clone(), None),
            ("a.example:443", "/callbacks/", None, json!({"backend": null}), None),
        ] {
            let before = state("a.example:443", "/hooks/", &hook, other);
            let after = state(host, path, &modules, None);
            let found = opened_requests(&changed, &before, &after);
            let told: Vec<String> = found.iter().map(ToString::to_string).collect();
            let is_told = |said: &str| told.len() == 1 && told.iter().all(|it| it.ends_with(said));
            assert!(said.map_or(told.is_empty(), is_told), "{host}{path} {other:?} {modules} {told:?}");
        }
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
