//! Judges the invariants of manifests without a store, and places what breaks them (D120). With a store, trying the plan
//! does that.

use super::fault_message::fault_message;
use super::plan_result::PlanResult;
use crate::lint::Subject;
use crate::manifest::resolve::Resolution;
use crate::manifest::with_source;
use crate::model::Kind;
use crate::plan::proof_report::ProofReport;
use crate::reconcile::prelude::*;
use crate::routing::invariant::{is_refused, prove};

/// Judges each invariant in a state in which a source has its resolved resources. Returns what breaks it, if the source
/// declares the invariant, or the resource to blame.
pub(super) fn judge_invariants(
    resolved: &Resolution,
    state: &Snapshot,
    source: &str,
    now: Timestamp,
) -> Vec<Diagnostic> {
    let declared = resolved.desired.range(Key::new(Kind::Invariant, Id::new(""))..).next();
    let is_declared = declared.is_some_and(|(key, _)| key.kind == Kind::Invariant);
    if !is_declared && state.newest_first(Kind::Invariant, None, u64::MAX).next().is_none() {
        return Vec::new();
    }
    let state = with_source(state, source, &resolved.desired);
    let mut found = Vec::new();
    for breach in prove(&state, now).iter().flat_map(|proof| &proof.breaches) {
        let (culprit, invariant) = (breach.culprit(), &breach.invariant.key);
        let is_own = resolved.desired.contains_key(culprit);
        let Some(key) = [culprit, invariant].into_iter().find(|key| resolved.desired.contains_key(*key)) else {
            continue;
        };
        let fault = breach.fault(&state, is_own);
        let unplaced = || {
            let help = fault.help.clone().unwrap_or_default();
            Diagnostic::error(fault.code, fault_message(key, &fault)).help(help)
        };
        let placed = resolved.diagnostic(&Subject::Resource(key.clone()), fault.clone()).unwrap_or_else(unplaced);
        let severity = if is_refused(breach) { Severity::Error } else { Severity::Warning };
        found.push(Diagnostic { severity, ..placed });
    }
    found
}

impl PlanResult {
    /// The answers about the invariants of a state in which a source has the resources that it declares.
    pub(crate) fn proofs(&self, state: &Snapshot, source: &str) -> ProofReport {
        ProofReport::new(&with_source(state, source, &self.desired), clock::now())
    }
}
