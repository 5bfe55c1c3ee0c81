//! What becomes of a request in a state, as far as the configuration and a log tell.

use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::traffic::{Stage, StepEffect, TracedRequest};
use crate::model::{AnyModule, AnyResource, Slot};
use crate::routing::edge_table::{EdgeTable, RoutedTo};
use crate::routing::module_pipeline::{PipelineStep, staged_steps};

/// How a request ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ReplayVerdict {
    /// No edge serves its host and port.
    NoEdge,
    /// The edge has no route for it.
    NoRoute,
    /// A module refuses it.
    Refused(&'static str),
    /// It is forwarded unless one of these modules refuses it: what they decide by is not in a log.
    Depends(Vec<&'static str>),
    /// It is forwarded to the backend.
    Forwarded,
}

/// What becomes of a request.
pub(super) struct RequestTreatment {
    pub(super) verdict: ReplayVerdict,
    /// The backend, if it may be reached.
    pub(super) backend_id: Option<String>,
    /// The steps of all modules, also behind one that refuses.
    pub(super) steps: Vec<PipelineStep>,
}

impl RequestTreatment {
    /// Sends a request where it goes.
    pub(super) fn new(
        state: &EdgeTable<'_>,
        to: RoutedTo,
        request: &TracedRequest,
        patterns: &mut CompiledPatterns,
    ) -> Self {
        let Some(hosts) = state.hosts_of_modules(to) else {
            let verdict = if to == RoutedTo::Nowhere { ReplayVerdict::NoEdge } else { ReplayVerdict::NoRoute };
            return Self { verdict, backend_id: None, steps: Vec::new() };
        };
        let mut staged = staged_steps(request, hosts, patterns);
        for step in &mut staged {
            // Whoever asks proves who it is by headers, a body or a certificate. A log has none of them.
            if step.stage == Stage::Authentication && step.effect == StepEffect::Refused {
                step.effect = StepEffect::Depends;
            }
        }
        let refused = staged.iter().find(|step| step.effect == StepEffect::Refused).map(|step| step.module);
        let reaches = |step: &&PipelineStep| {
            step.stage == Stage::Backend && step.effect == StepEffect::Passes && refused.is_none()
        };
        let backend_id = staged.iter().find(reaches).map(|step| step.note.clone());
        // A policy for the response does not decide whether the request is forwarded.
        let deciding = staged.iter().filter(|step| step.stage < Stage::Backend && step.effect == StepEffect::Depends);
        let deciding: Vec<&'static str> = deciding.map(|step| step.module).collect();
        let verdict = match refused {
            Some(module) => ReplayVerdict::Refused(module),
            None if deciding.is_empty() => ReplayVerdict::Forwarded,
            None => ReplayVerdict::Depends(deciding),
        };
        Self { verdict, backend_id, steps: staged }
    }

    /// Whether two requests that the same route takes are treated alike.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (&self.verdict, &other.verdict) {
            // What comes behind the module that refuses is never reached.
            (ReplayVerdict::Refused(module), ReplayVerdict::Refused(other)) => module == other,
            _ => self.verdict == other.verdict && self.steps == other.steps,
        }
    }
}

/// The enabled modules of an edge and a route.
pub(super) fn enabled<'a>(hosts: [&'a dyn AnyResource; 2]) -> Vec<(&'static Slot, &'a dyn AnyModule)> {
    let [edge, route] = hosts;
    edge.modules().chain(route.modules()).filter(|(_, module)| module.enabled()).collect()
}
