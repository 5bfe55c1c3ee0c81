//! The enforced IP restrictions of a type of traffic. Those of endpoints decide about every request, whichever edge and route
//! take it.

use std::collections::BTreeSet;

use super::module_pipeline::PipelineStep;
use super::routed_state::RoutedState;
use crate::model::Key;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::traffic::{Stage, Step, StepEffect, or_none};

/// The name of their step.
pub(super) const OF_ENDPOINTS: &str = "ip_restriction endpoints";

/// The enforced restrictions of a type of traffic in a state.
#[derive(Debug)]
pub(crate) struct EnforcedRestrictions<'s> {
    /// Each with its IP policies. A request must meet each.
    enforced: Vec<(&'s Key, &'s [String])>,
}

impl<'s> EnforcedRestrictions<'s> {
    /// Finds the restrictions of a state.
    pub(crate) fn new(state: RoutedState<'s>, traffic: Traffic) -> Self {
        let enforced = state.ip_restrictions().filter(|(_, it)| it.restricts(traffic));
        Self { enforced: enforced.map(|(key, it)| (key, it.ip_policy_ids.as_slice())).collect() }
    }

    /// Finds the restrictions of all endpoints.
    pub(crate) fn of_endpoints(state: RoutedState<'s>) -> Self {
        Self::new(state, Traffic::Endpoints)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.enforced.is_empty()
    }

    /// The IP policies of each.
    pub(super) fn ip_policies(&self) -> impl Iterator<Item = &'s [String]> {
        self.enforced.iter().map(|(_, ids)| *ids)
    }

    /// Whether they admit the same addresses as those of another state.
    pub(crate) fn admit_like(&self, other: &EnforcedRestrictions<'_>) -> bool {
        self.sets_of_policies() == other.sets_of_policies()
    }

    /// Whether access opens when they take the place of former ones.
    pub(crate) fn open_since(&self, former: &EnforcedRestrictions<'_>) -> bool {
        self.lost_since(former).next().is_some()
    }

    /// Returns the former ones that open access when these take their place: a resource no longer restricts it, and no other has
    /// its policies. As many in the place of others are not enough, because a new one can admit everybody. One that had other
    /// policies before does not count either: with these, nothing restricts access any longer. Other policies of the same
    /// resource open nothing: the entries of lists are not compared (D113).
    pub(crate) fn lost_since<'f>(&self, former: &EnforcedRestrictions<'f>) -> impl Iterator<Item = &'f Key> {
        let stays = |key: &Key| self.policies_of(key).is_some();
        let replaced = |policies: &BTreeSet<&str>| {
            self.enforced.iter().any(|(key, ids)| {
                set_of_policies(ids) == *policies && former.policies_of(key).is_none_or(|had| had == *policies)
            })
        };
        let lost = former.enforced.iter().filter(move |(key, ids)| !stays(key) && !replaced(&set_of_policies(ids)));
        lost.map(|(key, _)| *key)
    }

    /// The IP policies of a restriction, if it is one of these.
    fn policies_of(&self, key: &Key) -> Option<BTreeSet<&'s str>> {
        self.enforced.iter().find(|(other, _)| *other == key).map(|&(_, ids)| set_of_policies(ids))
    }

    /// The different sets of IP policies.
    pub(crate) fn sets_of_policies(&self) -> BTreeSet<BTreeSet<&'s str>> {
        self.ip_policies().map(set_of_policies).collect()
    }

    /// Their step on the way of a request, if there are any. What their policies decide is unknown.
    pub(super) fn step(&self) -> Option<PipelineStep> {
        if self.is_empty() {
            return None;
        }
        let ids: Vec<String> = self.ip_policies().flatten().cloned().collect();
        let note = format!("policies decide: {}", or_none(&ids));
        Some(PipelineStep::new(OF_ENDPOINTS, Step::new(Stage::Source, StepEffect::Depends, note)))
    }
}

fn set_of_policies(ids: &[String]) -> BTreeSet<&str> {
    ids.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::module::agent_patterns::CompiledPatterns;
    use crate::model::traffic::TracedRequest;
    use crate::model::{HttpsEdge, HttpsEdgeRoute, Id, IpRestriction, Kind};
    use crate::routing::module_pipeline::pipeline;

    #[test]
    fn an_enforced_restriction_of_endpoints_acts_after_the_connection() {
        let restricts = |enforced: bool, traffic: Traffic| {
            IpRestriction { enforced, r#type: Some(traffic), ..IpRestriction::default() }.restricts(Traffic::Endpoints)
        };
        assert!(restricts(true, Traffic::Endpoints));
        assert!(!restricts(false, Traffic::Endpoints) && !restricts(true, Traffic::Api));
        let ids = ["ipp_1".to_owned()];
        let key = Key::new(Kind::IpRestriction, Id::new("a"));
        let step = EnforcedRestrictions { enforced: vec![(&key, ids.as_slice())] }.step();
        let edge = HttpsEdge { mutual_tls: Some(Default::default()), ..HttpsEdge::default() };
        let route = HttpsEdgeRoute { oidc: Some(Default::default()), ..HttpsEdgeRoute::default() };
        let told = pipeline(&TracedRequest::default(), [&edge, &route], step, &mut CompiledPatterns::default());
        let names: Vec<(&str, StepEffect)> = told.iter().take(3).map(|it| (it.module, it.effect)).collect();
        let depends = StepEffect::Depends;
        assert_eq!(names, [("mutual_tls", depends), (OF_ENDPOINTS, depends), ("oidc", depends)]);
        assert_eq!(EnforcedRestrictions { enforced: Vec::new() }.step(), None);
    }

    #[test]
    fn access_opens_if_a_restriction_is_gone_and_no_other_has_its_policies() {
        let [a, b] = ["a", "b"].map(|id| Key::new(Kind::IpRestriction, Id::new(id)));
        let [office, vpn] = ["ipp_office", "ipp_vpn"].map(|id| [id.to_owned()]);
        let of = |enforced: &[(&'static str, &'static str)]| {
            let item = |(key, ids): &(&str, &str)| {
                let key = if *key == "a" { &a } else { &b };
                (key, if *ids == "office" { office.as_slice() } else { vpn.as_slice() })
            };
            EnforcedRestrictions { enforced: enforced.iter().map(item).collect() }
        };
        let former = of(&[("a", "office")]);
        for (present, opens, is_alike) in [
            (of(&[]), true, false),
            // One in the place of another can admit anybody.
            (of(&[("b", "vpn")]), true, false),
            (of(&[("b", "office")]), false, true),
            (of(&[("a", "vpn")]), false, false),
            (of(&[("a", "office"), ("b", "office")]), false, true),
            (of(&[("a", "office"), ("b", "vpn")]), false, false),
        ] {
            assert_eq!((present.open_since(&former), present.admit_like(&former)), (opens, is_alike), "{present:?}");
        }
        assert!(former.open_since(&of(&[("a", "office"), ("b", "vpn")])));
        assert!(of(&[("b", "office")]).open_since(&of(&[("a", "office"), ("b", "vpn")])), "nothing has `vpn`");
        assert!(!former.open_since(&of(&[("a", "office"), ("b", "office")])));
    }
}
