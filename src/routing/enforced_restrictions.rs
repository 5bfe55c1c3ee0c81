//! The enforced IP restrictions of a type of traffic. Those of endpoints decide about every request, whichever edge and route
//! take it.

use std::collections::BTreeSet;

use super::module_pipeline::PipelineStep;
use super::routed_state::RoutedState;
use crate::model::Key;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::module::admission::AccessChange;
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
        self.opened_since(former).next().is_some()
    }

    /// Returns the former ones that open access when these take their place: none of these admits only by policies of it. As many in
    /// the place of others are not enough, because a new one can admit everybody. Each has how the resource now differs in whom it
    /// admits, or nothing if it no longer restricts access.
    pub(crate) fn opened_since<'f>(
        &self,
        former: &EnforcedRestrictions<'f>,
    ) -> impl Iterator<Item = (&'f Key, Option<AccessChange>)> {
        let present = self.sets_of_policies();
        let is_opened = move |ids: &[String]| {
            let had = set_of_policies(ids);
            !present.iter().any(|has| *has == had || (!has.is_empty() && has.is_subset(&had)))
        };
        let opened = former.enforced.iter().filter(move |(_, ids)| is_opened(ids));
        opened.map(move |&(key, ids)| {
            let stays = self.enforced.iter().find(|(other, _)| *other == key);
            (key, stays.map(|&(_, present)| AccessChange::of_list(ids, present)))
        })
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
    fn access_opens_if_no_restriction_admits_by_the_policies_of_a_former_one_only() {
        let [a, b] = ["a", "b"].map(|id| Key::new(Kind::IpRestriction, Id::new(id)));
        let [office, vpn] = ["ipp_office", "ipp_vpn"].map(|id| [id.to_owned()]);
        let (both, none) = ([office.clone(), vpn.clone()].concat(), Vec::new());
        let of = |enforced: &[(&'static str, &'static str)]| {
            let item = |(key, ids): &(&str, &str)| {
                let ids = match *ids {
                    "office" => office.as_slice(),
                    "vpn" => vpn.as_slice(),
                    "both" => both.as_slice(),
                    _ => none.as_slice(),
                };
                (if *key == "a" { &a } else { &b }, ids)
            };
            EnforcedRestrictions { enforced: enforced.iter().map(item).collect() }
        };
        let former = of(&[("a", "office")]);
        for (present, opens, is_alike) in [
            (of(&[]), true, false),
            // One in the place of another can admit anybody.
            (of(&[("b", "vpn")]), true, false),
            (of(&[("b", "office")]), false, true),
            // So can one with other policies, or with more.
            (of(&[("a", "vpn")]), true, false),
            (of(&[("a", "both")]), true, false),
            (of(&[("a", "none")]), true, false),
            (of(&[("a", "both"), ("b", "office")]), false, false),
            (of(&[("a", "office"), ("b", "office")]), false, true),
            (of(&[("a", "office"), ("b", "vpn")]), false, false),
        ] {
            assert_eq!((present.open_since(&former), present.admit_like(&former)), (opens, is_alike), "{present:?}");
        }
        assert!(former.open_since(&of(&[("a", "office"), ("b", "vpn")])));
        assert!(of(&[("b", "office")]).open_since(&of(&[("a", "office"), ("b", "vpn")])), "nothing has `vpn`");
        assert!(!former.open_since(&of(&[("a", "office"), ("b", "office")])));
        assert!(!former.open_since(&of(&[("b", "both")])), "it admits less");
        assert!(!of(&[("a", "vpn"), ("b", "office")]).open_since(&of(&[("a", "office"), ("b", "vpn")])));
        let how = |present: &[(&'static str, &'static str)]| {
            of(present).opened_since(&former).map(|(_, change)| change).collect::<Vec<_>>()
        };
        assert_eq!(how(&[("a", "both")]), [Some(AccessChange::Wider)]);
        assert_eq!(how(&[("a", "vpn")]), [Some(AccessChange::Unknown)]);
        assert_eq!(how(&[("b", "both")]), [None]);
    }
}
