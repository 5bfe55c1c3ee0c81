//! Judges the invariants of manifests without a store, and places what breaks them (D120). With a store, trying the plan
//! does that.

use super::fault_message::unplaced;
use super::plan_result::{PlanResult, placed};
use crate::lint::Subject;
use crate::manifest::resolve::Resolution;
use crate::manifest::{Loaded, with_source};
use crate::model::{Desired, Kind, Path};
use crate::plan::proof_report::{InvariantProof, ProofReport};
use crate::reconcile::prelude::*;
use crate::routing::invariant::{Breach, BreachGroup, Unseen, prove_seen};
use crate::syntax::text::{escaped, printable};

/// Whether a source or a state has invariants.
pub(super) fn has_invariants(resolved: &Resolution, state: &Snapshot) -> bool {
    Desired::of_kind(&resolved.desired, Kind::Invariant).next().is_some()
        || state.newest_first(Kind::Invariant, None, u64::MAX).next().is_some()
}

/// Judges each invariant of a state that has the resolved resources of a source beside the surrounding ones. Returns what breaks it,
/// if the source declares the invariant, or the resource to blame.
pub(super) fn judge_invariants(
    resolved: &Resolution,
    state: &Snapshot,
    unseen: &[Unseen],
    now: Timestamp,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let proofs = prove_seen(state, unseen, now);
    let place = |breach: &Breach<'_>| {
        let (culprit, invariant) = (breach.culprit(), &breach.invariant.key);
        let key = [culprit, invariant].into_iter().find(|key| resolved.desired.contains_key(*key))?;
        Some((key.clone(), key == culprit))
    };
    for group in proofs.iter().flat_map(|proof| BreachGroup::all(&proof.breaches, place)) {
        let fault = group.fault(state);
        let subject = Subject::Resource(group.key.clone());
        let placed = resolved.diagnostic(&subject, fault.clone());
        let placed = placed.unwrap_or_else(|| unplaced(&group.key, &fault));
        let severity = if group.is_refused() { Severity::Error } else { Severity::Warning };
        found.push(Diagnostic { severity, ..placed });
    }
    found
}

impl PlanResult {
    /// The answers about the invariants once a source has the resources that it declares, compared with the state of a store.
    pub(super) fn proofs(&self, state: &Snapshot, source: &str) -> ProofReport {
        let after = with_source(state, source, &self.desired);
        ProofReport::of_change(state, &after, clock::now(), &|key: &Key, path: &Path| self.declared_at(key, path))
    }

    /// The answers about the invariants of the resources that a source declares, beside those of surrounding manifests. Also
    /// returns what they depend on that these manifests do not show, at the invariants.
    pub(crate) fn proofs_without_store(&self, loaded: &Loaded, source: &str) -> (ProofReport, Vec<Diagnostic>) {
        let surrounding = loaded.resolve_surrounding(&Snapshot::default(), source);
        let state = with_source(&surrounding.state, source, &self.desired);
        let unseen = surrounding.unseen(&state, &self.origins);
        let declared_at = |key: &Key, path: &Path| self.declared_at(key, path);
        let proofs = ProofReport::of_manifests(&state, &unseen, clock::now(), &declared_at);
        let depending = proofs.invariants.iter().filter(|proof| !proof.unseen.is_empty());
        let found = depending.map(|proof| self.unseen_by(proof, source)).collect();
        (proofs, found)
    }

    /// The finding that an answer depends on what was not seen.
    fn unseen_by(&self, proof: &InvariantProof, source: &str) -> Diagnostic {
        let is_own = proof.source.as_deref() == Some(source);
        let mut own = Desired::of_kind(&self.desired, Kind::Invariant).filter(|_| is_own);
        let key = own.find(|it| it.claim.name == proof.invariant).map(|it| &it.key);
        let (name, on) = (printable(&proof.invariant), proof.unseen.join("; and on "));
        let found = Diagnostic::error(
            Code::InvariantUnproven,
            format!("whether the invariant `{name}` holds depends on {on}: {}", escaped(&proof.description)),
        );
        let severity = if proof.refuses { Severity::Error } else { Severity::Warning };
        let help = "add what is missing, or judge the manifests with --store or --server";
        placed(&self.origins, key, &Path::root(), Diagnostic { severity, ..found.help(help) })
    }
}
