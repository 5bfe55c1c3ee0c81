//! Judges the invariants of manifests without a store, and places what breaks them (D120). With a store, trying the plan
//! does that.

use super::fault_message::fault_message;
use super::plan_result::PlanResult;
use crate::lint::Subject;
use crate::manifest::resolve::Resolution;
use crate::manifest::with_source;
use crate::model::{Desired, Kind};
use crate::plan::proof_report::ProofReport;
use crate::reconcile::prelude::*;
use crate::routing::invariant::{Breach, BreachGroup, prove};

/// Whether a source or a state has invariants.
pub(super) fn has_invariants(resolved: &Resolution, state: &Snapshot) -> bool {
    Desired::of_kind(&resolved.desired, Kind::Invariant).next().is_some()
        || state.newest_first(Kind::Invariant, None, u64::MAX).next().is_some()
}

/// Judges each invariant in a state in which a source has its resolved resources. Returns what breaks it, if the source
/// declares the invariant, or the resource to blame.
pub(super) fn judge_invariants(
    resolved: &Resolution,
    state: &Snapshot,
    source: &str,
    now: Timestamp,
) -> Vec<Diagnostic> {
    if !has_invariants(resolved, state) {
        return Vec::new();
    }
    let state = with_source(state, source, &resolved.desired);
    let mut found = Vec::new();
    let proofs = prove(&state, now);
    let place = |breach: &Breach<'_>| {
        let (culprit, invariant) = (breach.culprit(), &breach.invariant.key);
        let key = [culprit, invariant].into_iter().find(|key| resolved.desired.contains_key(*key))?;
        Some((key.clone(), key == culprit))
    };
    for group in proofs.iter().flat_map(|proof| BreachGroup::all(&proof.breaches, place)) {
        let fault = group.fault(&state);
        let unplaced = || {
            let help = fault.help.clone().unwrap_or_default();
            Diagnostic::error(fault.code, fault_message(&group.key, &fault)).help(help)
        };
        let subject = Subject::Resource(group.key.clone());
        let placed = resolved.diagnostic(&subject, fault.clone()).unwrap_or_else(unplaced);
        let severity = if group.is_refused() { Severity::Error } else { Severity::Warning };
        found.push(Diagnostic { severity, ..placed });
    }
    found
}

impl PlanResult {
    /// The answers about the invariants once a source has the resources that it declares, compared with the state of a store.
    pub(crate) fn proofs(&self, state: &Snapshot, source: &str) -> ProofReport {
        ProofReport::of_change(state, &with_source(state, source, &self.desired), clock::now())
    }

    /// The answers about the invariants of the resources that a source declares, beside those of surrounding manifests.
    pub(crate) fn proofs_without_store(&self, surrounding: &Snapshot, source: &str) -> ProofReport {
        ProofReport::of_first_state(&with_source(surrounding, source, &self.desired), clock::now())
    }
}
