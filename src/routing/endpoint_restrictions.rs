//! The restrictions of all endpoints: IP policies that decide about every request, whichever edge and route take it.

use std::collections::BTreeSet;

use super::module_pipeline::PipelineStep;
use super::routed_state::RoutedState;
use crate::model::traffic::{Stage, Step, StepEffect, or_none};

/// The name of their step.
pub(super) const OF_ENDPOINTS: &str = "ip_restriction endpoints";

/// The enforced ones of a state.
#[derive(Debug)]
pub(super) struct EndpointRestrictions<'s> {
    /// The IP policies of each. A request must meet each.
    pub(super) ip_policies: Vec<&'s [String]>,
}

impl<'s> EndpointRestrictions<'s> {
    /// Finds the restrictions of a state.
    pub(super) fn new(state: RoutedState<'s>) -> Self {
        let enforced = state.ip_restrictions().filter(|it| it.restricts_endpoints());
        Self { ip_policies: enforced.map(|it| it.ip_policy_ids.as_slice()).collect() }
    }

    /// Whether they admit the same addresses as those of another state.
    pub(super) fn admit_like(&self, other: &EndpointRestrictions<'_>) -> bool {
        self.sets_of_policies() == other.sets_of_policies()
    }

    fn sets_of_policies(&self) -> BTreeSet<BTreeSet<&str>> {
        self.ip_policies.iter().map(|ids| ids.iter().map(String::as_str).collect()).collect()
    }

    /// Their step on the way of a request, if there are any. What their policies decide is unknown.
    pub(super) fn step(&self) -> Option<PipelineStep> {
        if self.ip_policies.is_empty() {
            return None;
        }
        let note = format!("policies decide: {}", or_none(&self.ip_policies.concat()));
        Some(PipelineStep::new(OF_ENDPOINTS, Step::new(Stage::Source, StepEffect::Depends, note)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::ip_restriction::Traffic;
    use crate::model::module::agent_patterns::CompiledPatterns;
    use crate::model::traffic::TracedRequest;
    use crate::model::{HttpsEdge, HttpsEdgeRoute, IpRestriction};
    use crate::routing::module_pipeline::pipeline;

    #[test]
    fn an_enforced_restriction_of_endpoints_acts_after_the_connection() {
        let restricts = |enforced: bool, traffic: Traffic| {
            IpRestriction { enforced, r#type: Some(traffic), ..IpRestriction::default() }.restricts_endpoints()
        };
        assert!(restricts(true, Traffic::Endpoints));
        assert!(!restricts(false, Traffic::Endpoints) && !restricts(true, Traffic::Api));
        let ids = ["ipp_1".to_owned()];
        let step = EndpointRestrictions { ip_policies: vec![ids.as_slice()] }.step();
        let edge = HttpsEdge { mutual_tls: Some(Default::default()), ..HttpsEdge::default() };
        let route = HttpsEdgeRoute { oidc: Some(Default::default()), ..HttpsEdgeRoute::default() };
        let told = pipeline(&TracedRequest::default(), [&edge, &route], step, &mut CompiledPatterns::default());
        let names: Vec<(&str, StepEffect)> = told.iter().take(3).map(|it| (it.module, it.effect)).collect();
        let depends = StepEffect::Depends;
        assert_eq!(names, [("mutual_tls", depends), (OF_ENDPOINTS, depends), ("oidc", depends)]);
        assert_eq!(EndpointRestrictions { ip_policies: Vec::new() }.step(), None);
    }
}
