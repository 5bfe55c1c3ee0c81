//! What becomes of one request, as the steps of its modules tell (D118, D119).
//!
//! An outcome is certain, or it depends on modules by name: nobody may act on a guess. What a module decides by something
//! that the configuration and the request do not have, such as a session or a policy, is unknown. Whoever asks can know more
//! than that, or less.
//!
//! For example, `GET /admin` without a session is `login` on a route with `oidc`. With an `ip_restriction` before it, that
//! depends on the restriction, because nobody knows whether the request gets as far as the login. A log does not tell whether
//! there was a session, so there it also depends on `oidc`.

use super::module_pipeline::PipelineStep;
use crate::model::route_test::means_module;
use crate::model::traffic::{RequestVerdict, Stage, StepEffect, StepOutcome};

/// The knowledge of a request besides the data that a step sees.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequestKnowledge<'a> {
    /// A test has all of the request, and says which modules let it pass.
    Test { assumed_to_pass: &'a [String] },
    /// A log has no credentials.
    Log,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestOutcome {
    /// The verdict if it passes the modules on which it depends.
    ending: RequestVerdict,
    /// The module that ends its way, if one does.
    ended_by: Option<&'static str>,
    /// The modules of which it is unknown whether they let it pass.
    pub(crate) depends_on: Vec<&'static str>,
    /// The backend, if nothing certainly ends the way before it. A login only delays a request.
    pub(crate) backend_id: Option<String>,
}

/// The outcome of a request, with the steps that lead there.
#[derive(Debug)]
pub(super) struct RequestTreatment {
    pub(super) outcome: RequestOutcome,
    pub(super) steps: Vec<PipelineStep>,
}

impl RequestKnowledge<'_> {
    /// The outcome of a step for somebody who knows this.
    fn outcome_of(self, step: &PipelineStep) -> StepOutcome {
        match (self, step.outcome) {
            // No assumption lets a request pass that is certainly rejected.
            (Self::Test { assumed_to_pass }, StepOutcome::Unknown | StepOutcome::Login)
                if assumed_to_pass.iter().any(|name| means_module(name, step.module)) =>
            {
                StepOutcome::GoesOn
            }
            // Whoever asks proves who it is by headers, a body or a session.
            (Self::Log, StepOutcome::Login | StepOutcome::Refused) if step.stage == Stage::Authentication => {
                StepOutcome::Unknown
            }
            (_, outcome) => outcome,
        }
    }
}

impl RequestOutcome {
    fn new(steps: &[PipelineStep], knowledge: RequestKnowledge<'_>) -> Self {
        let mut outcome =
            Self { ending: RequestVerdict::Forwarded, ended_by: None, depends_on: Vec::new(), backend_id: None };
        for step in steps {
            if step.stage == Stage::Backend && step.effect == StepEffect::Passes {
                // The note of this step is the ID.
                outcome.backend_id = Some(step.note.clone());
            }
            let verdict = match (knowledge.outcome_of(step), step.stage) {
                (StepOutcome::GoesOn, _) => continue,
                (StepOutcome::Unknown, _) => {
                    if outcome.ended_by.is_none() {
                        outcome.depends_on.push(step.module);
                    }
                    continue;
                }
                (StepOutcome::Login, _) => RequestVerdict::Login,
                (StepOutcome::Redirected, _) => RequestVerdict::Redirected,
                (StepOutcome::Refused, Stage::Connection | Stage::Authentication) => RequestVerdict::Denied,
                (StepOutcome::Refused, Stage::Backend) => RequestVerdict::Unserved,
                (StepOutcome::Refused, _) => RequestVerdict::Blocked,
            };
            if outcome.ended_by.is_none() {
                (outcome.ending, outcome.ended_by) = (verdict, Some(step.module));
            }
            if verdict != RequestVerdict::Login {
                break;
            }
        }
        outcome
    }

    /// The verdict.
    pub(crate) fn verdict(&self) -> RequestVerdict {
        if self.depends_on.is_empty() { self.ending } else { RequestVerdict::Depends }
    }

    /// The modules that make the verdict: the one that ends the way of the request, or those on which it depends.
    pub(crate) fn decided_by(&self) -> Vec<&'static str> {
        if self.depends_on.is_empty() { self.ended_by.into_iter().collect() } else { self.depends_on.clone() }
    }
}

impl RequestTreatment {
    /// Judges a request by its steps in traffic order.
    pub(super) fn new(steps: Vec<PipelineStep>, knowledge: RequestKnowledge<'_>) -> Self {
        Self { outcome: RequestOutcome::new(&steps, knowledge), steps }
    }

    /// A request that no route takes.
    pub(super) fn unserved() -> Self {
        let (ending, ended_by, depends_on, backend_id) = (RequestVerdict::Unserved, None, Vec::new(), None);
        Self { outcome: RequestOutcome { ending, ended_by, depends_on, backend_id }, steps: Vec::new() }
    }

    /// Whether the same module rejects a request before a backend. What it would meet otherwise does not matter.
    pub(super) fn is_rejected_like(&self, other: &Self) -> bool {
        let (one, another) = (&self.outcome, &other.outcome);
        one.backend_id.is_none()
            && another.backend_id.is_none()
            && (one.ending, one.ended_by) == (another.ending, another.ended_by)
    }

    /// Whether a module certainly lets the request pass in both. Behind the authentication, modules do more than that.
    pub(super) fn passes_like(&self, other: &Self, module: &str) -> bool {
        let passes = |treatment: &Self| {
            let mut steps = treatment.steps.iter().filter(|step| step.stage <= Stage::Authentication);
            steps.any(|step| step.module == module && step.outcome == StepOutcome::GoesOn)
        };
        passes(self) && passes(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::traffic::Step;

    fn step(module: &'static str, stage: Stage, effect: StepEffect, outcome: StepOutcome) -> PipelineStep {
        let Step { note, header_changes, .. } = Step::new(stage, effect, "bkd_1");
        PipelineStep { module, effect, note, stage, outcome, header_changes }
    }

    #[test]
    fn a_login_delays_a_request_and_a_rejection_ends_it() {
        let policy = || step("ip_restriction", Stage::Source, StepEffect::Depends, StepOutcome::Unknown);
        let login = || step("oidc", Stage::Authentication, StepEffect::Depends, StepOutcome::Login);
        let deny = || step("policies inbound", Stage::Inbound, StepEffect::Depends, StepOutcome::Refused);
        let backend = || step("backend", Stage::Backend, StepEffect::Passes, StepOutcome::GoesOn);
        let judged = |steps: Vec<PipelineStep>, knowledge: RequestKnowledge<'_>| {
            let outcome = RequestTreatment::new(steps, knowledge).outcome;
            (outcome.verdict(), outcome.decided_by(), outcome.backend_id.is_some())
        };
        let assumed = ["ip_restriction".to_owned()];
        let (none, assumed) =
            (RequestKnowledge::Test { assumed_to_pass: &[] }, RequestKnowledge::Test { assumed_to_pass: &assumed });
        let (ways, log) = (|| vec![policy(), login(), backend()], RequestKnowledge::Log);
        assert_eq!(judged(ways(), none), (RequestVerdict::Depends, vec!["ip_restriction"], true));
        assert_eq!(judged(ways(), assumed), (RequestVerdict::Login, vec!["oidc"], true));
        assert_eq!(judged(ways(), log), (RequestVerdict::Depends, vec!["ip_restriction", "oidc"], true));
        let denied = || vec![login(), deny(), backend()];
        assert_eq!(judged(denied(), none), (RequestVerdict::Login, vec!["oidc"], false));
        assert_eq!(judged(denied(), log), (RequestVerdict::Depends, vec!["oidc"], false));
        let blocked = judged(vec![deny(), backend()], log);
        assert_eq!(blocked, (RequestVerdict::Blocked, vec!["policies inbound"], false));
    }
}
