//! Validation of resolved resources, and the places of the findings.

use super::{fault_message::unplaced, plan_result::PlanResult, test_stage::TestRun};
use crate::lint::Subject;
use crate::manifest::Loaded;
use crate::manifest::resolve::Resolution;
use crate::model::diagnostics::diagnostic::cap;
use crate::model::{Desired, Path, Refusal};
use crate::reconcile::prelude::*;
use crate::store::CommitRefusals;

impl Resolution {
    /// Whether any finding is an error.
    pub(super) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Marks a cancelled run, which has no plan.
    pub(super) fn cancelled(mut self) -> Self {
        self.diagnostics.push(cancelled());
        self
    }

    /// Sorts the diagnostics and limits their number.
    pub(super) fn capped(mut self) -> Self {
        cap(&mut self.diagnostics);
        self
    }

    /// Reports what the scope of the source does not admit, and marks it as faulty. Returns whether it is declared anywhere.
    pub(super) fn mark(&mut self, refused: BTreeMap<Key, Fault>, snapshot: &Snapshot) -> bool {
        self.faulty = refused.keys().filter(|key| self.desired.contains_key(*key)).cloned().collect();
        for (key, fault) in refused {
            let placed = place_faults(Refusal { key, faults: vec![fault] }, self, snapshot);
            self.diagnostics.extend(placed);
        }
        !self.faulty.is_empty()
    }

    /// Reports why a plan was refused.
    pub(super) fn refused(mut self, refusals: CommitRefusals, snapshot: &Snapshot) -> Self {
        for refusal in refusals.into_vec() {
            let placed = place_faults(refusal, &self, snapshot);
            self.diagnostics.extend(placed);
        }
        self
    }

    /// Completes a run.
    pub(super) fn planned(self, loaded: &Loaded, plan: Option<Plan>) -> PlanResult {
        PlanResult {
            diagnostics: self.diagnostics,
            plan,
            refused: None,
            desired: Arc::new(self.desired),
            left_out: self.left_out,
            unread: loaded.unread().cloned(),
            transfer_was_undone: self.transfer_was_undone,
            files: loaded.files.clone(),
            origins: Arc::new(self.origins),
            tried: None,
            refused_on: None,
            tests: TestRun::default(),
        }
    }
}

/// The error of a run that was cancelled.
pub(super) fn cancelled() -> Diagnostic {
    Diagnostic::error(Code::Unavailable, "the run was cancelled")
}

fn place_faults(refusal: Refusal, resolved: &Resolution, snapshot: &Snapshot) -> Vec<Diagnostic> {
    let Refusal { key, faults } = refusal;
    let placed = faults.into_iter().map(|fault| {
        let (key, fault) = match fault.code {
            Code::InUse => place_deletion(&key, fault, resolved, snapshot),
            _ => (key.clone(), fault),
        };
        let placed = resolved.diagnostic(&Subject::Resource(key.clone()), fault.clone());
        placed.unwrap_or_else(|| unplaced(&key, &fault))
    });
    placed.collect()
}

/// Returns where a deletion that other resources prevent is reported: it has no manifest, but its replacement has one.
fn place_deletion(key: &Key, fault: Fault, resolved: &Resolution, snapshot: &Snapshot) -> (Key, Fault) {
    let claim = snapshot.get(key).and_then(|entry| entry.claim.as_deref());
    let replaces = |wanted: &&Desired| {
        let is_beside = wanted.key.kind == key.kind && wanted.key.parent == key.parent;
        is_beside && claim.is_some_and(|claim| claim.name == wanted.claim.name)
    };
    let Some(wanted) = resolved.desired.values().find(replaces) else {
        return (key.clone(), fault.help("keep its manifest until no other resource uses it"));
    };
    let path = key.kind.info().fixed.first().map_or_else(Path::root, |field| Path::root().join(*field));
    let help =
        "restore it and declare the new one under another name; once no other resource uses the old one, remove it";
    (wanted.key.clone(), fault.at(path).help(help))
}
