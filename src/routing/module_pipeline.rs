//! The modules that a request passes through, in traffic order (D42).

use super::missing_tls::MissingTls;
use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::module::backend::Backend;
use crate::model::traffic::{HeaderChange, Stage, Step, StepEffect, StepOutcome, TracedRequest};
use crate::model::{AnyModule, AnyResource, Module, Slot};

/// A module that a request passes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineStep {
    /// The module; for policies, with the direction.
    pub module: &'static str,
    /// The effect.
    pub effect: StepEffect,
    /// A short explanation.
    pub note: String,
    /// When it acts.
    pub stage: Stage,
    /// The certain outcome.
    pub outcome: StepOutcome,
    /// The headers that it adds and removes.
    pub header_changes: Vec<HeaderChange>,
}

impl PipelineStep {
    /// The step of the module in a slot.
    pub(super) fn new(slot: &'static str, step: Step) -> Self {
        let Step { stage, name, effect, note, outcome, header_changes } = step;
        Self { module: name.unwrap_or(slot), effect, note, stage, outcome, header_changes }
    }

    /// The step of a module that checks the connection, where that has no TLS: nobody can tell what becomes of it.
    fn without_tls(self, missing: MissingTls) -> Self {
        let note = format!("{}; {}", self.note, missing.note());
        Self { effect: StepEffect::Depends, outcome: StepOutcome::Unknown, note, ..self }
    }
}

/// Returns the steps of the enabled modules of an edge and its route in traffic order, up to the first that rejects the
/// request, with the step of restrictions of all endpoints, if there is one.
pub(super) fn pipeline(
    request: &TracedRequest,
    hosts: [&dyn AnyResource; 2],
    of_endpoints: Option<PipelineStep>,
    patterns: &mut CompiledPatterns,
) -> Vec<PipelineStep> {
    reached(staged_steps(request, hosts, of_endpoints, patterns))
}

/// Returns the steps of the enabled modules of an edge and its route in traffic order, whatever they do with the request, with
/// the step of restrictions of all endpoints, if there is one.
pub(super) fn staged_steps(
    request: &TracedRequest,
    [edge, route]: [&dyn AnyResource; 2],
    of_endpoints: Option<PipelineStep>,
    patterns: &mut CompiledPatterns,
) -> Vec<PipelineStep> {
    let mut steps = staged(request, edge.modules().chain(route.modules()), edge, patterns);
    if let Some(step) = of_endpoints {
        steps.insert(steps.partition_point(|other| other.stage < step.stage), step);
    }
    steps
}

fn reached(steps: Vec<PipelineStep>) -> Vec<PipelineStep> {
    let mut refused = false;
    let reached = steps.into_iter().take_while(|step| {
        let goes_on = !refused;
        refused |= step.effect == StepEffect::Refused;
        goes_on
    });
    reached.collect()
}

fn staged<'a>(
    request: &TracedRequest,
    modules: impl Iterator<Item = (&'static Slot, &'a dyn AnyModule)>,
    edge: &dyn AnyResource,
    patterns: &mut CompiledPatterns,
) -> Vec<PipelineStep> {
    let mut staged: Vec<PipelineStep> = Vec::new();
    for (slot, module) in modules.filter(|(_, module)| module.enabled()) {
        for step in module.steps_with(request, patterns) {
            let missing = MissingTls::for_connection(slot, step.stage, edge, request.port);
            let step = PipelineStep::new(slot.name, step);
            staged.push(match missing {
                Some(missing) => step.without_tls(missing),
                None => step,
            });
        }
    }
    if staged.iter().all(|step| step.stage != Stage::Backend) {
        let missing = Step::new(Stage::Backend, StepEffect::Refused, "no backend is enabled");
        staged.push(PipelineStep::new(Backend::SLOT, missing));
    }
    staged.sort_by_key(|step| step.stage);
    staged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::module::tests::{Host, MadeUp};
    use crate::model::{HttpsEdge, HttpsEdgeRoute};

    fn request() -> TracedRequest {
        TracedRequest {
            method: "GET".into(),
            host: "a.example".into(),
            port: 443,
            path: "/".into(),
            headers: vec![("Authorization".into(), "Bearer token".into())],
            user_agent: Some("shop-app/1".into()),
            ..TracedRequest::default()
        }
    }

    fn through(host: &Host) -> Vec<PipelineStep> {
        let modules = Host::SLOTS.iter().filter_map(|slot| Some((slot, (slot.get)(host)?)));
        reached(staged(&request(), modules, &HttpsEdge::default(), &mut CompiledPatterns::default()))
    }

    #[test]
    fn a_module_that_says_nothing_of_traffic_is_in_the_trace_before_the_backend() {
        let host = Host { made_up: Some(std::sync::Arc::new(MadeUp { enabled: true, rate: 5 })) };
        let told = through(&host);
        let names: Vec<(&str, StepEffect)> = told.iter().map(|it| (it.module, it.effect)).collect();
        assert_eq!(names, [("made_up", StepEffect::Depends), ("backend", StepEffect::Refused)]);
        assert_eq!(told.first().map(|it| it.note.as_str()), Some("applies to the request"));
        let host = Host { made_up: Some(std::sync::Arc::new(MadeUp { enabled: false, rate: 5 })) };
        assert_eq!(through(&host).len(), 1, "a disabled module does not apply");
    }

    #[test]
    fn the_order_is_the_documented_one() {
        let examples = HttpsEdgeRoute::SLOTS.iter().map(|slot| (slot.name.to_owned(), (slot.example)()));
        let examples = serde_json::Value::Object(examples.collect());
        let route: HttpsEdgeRoute = serde_json::from_value(examples).unwrap_or_default();
        let edge = HttpsEdge { mutual_tls: Some(Default::default()), ..HttpsEdge::default() };
        let told = pipeline(&request(), [&edge, &route], None, &mut CompiledPatterns::default());
        let names: Vec<&str> = told.iter().map(|it| it.module).collect();
        let expected = [
            "mutual_tls",
            "ip_restriction",
            "user_agent_filter",
            "webhook_verification",
            "oauth",
            "saml",
            "oidc",
            "jwt_validation",
            "policies inbound",
            "request_headers",
            "circuit_breaker",
            "websocket_tcp_converter",
            "backend",
            "response_headers",
            "compression",
        ];
        assert_eq!(names, expected);
    }
}
