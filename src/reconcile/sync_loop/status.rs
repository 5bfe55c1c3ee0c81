//! The status of a followed source: its last attempt, findings and applied revision (D83).
//!
//! The loop writes the status after each sync, and readers get a copy, so that a request never waits for a sync. The
//! status is in memory and bounded: a hundred diagnostics and twenty drifted resources, with the numbers of the rest.

use std::path::Path;

use super::condition::Status;
use super::plan_drift::drifted;
use super::sync_log::or_warn;
use crate::model::{CommitAuthor, DriftedResource, FieldPath, Name};
use crate::plan::Summary;
use crate::plan::format::json::Item;
use crate::reconcile::prelude::*;
use crate::reconcile::run::plan_result::PlanResult;
use crate::reconcile::run::test_stage::TestCounts;
use crate::store::history::after_rollback::AppliedManifests;

/// The most diagnostics of a status.
const MOST_DIAGNOSTICS: usize = 100;
/// The most resources of other sources that a status lists.
const MOST_OWNERSHIP_CONFLICTS: usize = 20;
/// The most drifted resources that a status lists.
pub(crate) const MOST_DRIFTED: usize = 20;

/// A sync, as the status shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyncRecord {
    /// When it ended.
    pub at: Timestamp,
    /// The commit of the manifests, if known.
    pub commit: Option<String>,
    /// The author of the commit, if known.
    pub commit_author: Option<CommitAuthor>,
    /// The tag of the commit, if it was chosen from a range of versions.
    pub tag: Option<String>,
    /// The revision of the store then.
    pub revision: u64,
}

impl From<&AppliedManifests> for SyncRecord {
    fn from(found: &AppliedManifests) -> Self {
        let AppliedManifests { commit, revision, at, .. } = found.clone();
        Self { at, commit, commit_author: None, tag: None, revision }
    }
}

/// A resource that a source declares and another one owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnershipConflict {
    /// The source that owns the resource.
    pub owner: String,
    /// The resource, and where the other source declares it.
    pub resource: String,
}

/// The findings of a sync.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFindings {
    /// The first diagnostics with their names, errors before warnings.
    pub diagnostics: Vec<(Name, Item)>,
    /// The number of errors.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of files.
    pub files: usize,
    /// The number of declared resources.
    pub declared: usize,
    /// The numbers of its route tests.
    pub tests: TestCounts,
    /// The changes that are planned and not applied, without those of resources that only drifted.
    pub pending: Summary,
    /// The declared resources of other sources.
    pub ownership_conflicts: Vec<OwnershipConflict>,
    /// The number of resources that only others have changed, and that are not reverted.
    pub drifted: usize,
    /// The first resources that others have changed, also if the manifests have.
    pub drift: Vec<DriftedResource>,
    /// The revision up to which the drift is known: that of a plan of all manifests, or of what it became. Findings without such
    /// a plan keep the drift of the last one.
    pub planned_at: Option<u64>,
    /// Whether something was found that ends when another source changes.
    pub waits_for_others: bool,
}

impl RunFindings {
    /// The findings of planning on a state.
    pub(crate) fn from_plan(planned: &PlanResult, snapshot: &Snapshot) -> Self {
        let refusals = planned.plan.as_ref().map(|plan| plan.refusals.as_slice()).unwrap_or_default();
        let all: Vec<&Diagnostic> = planned.diagnostics.iter().chain(refusals).collect();
        // Each change counts once.
        let is_pending = |change: &Change| !change.is_drift_alone();
        let changes = || planned.plan.iter().flat_map(|plan| &plan.changes);
        Self {
            files: planned.files.len(),
            declared: planned.desired.len(),
            tests: planned.tests.counts,
            pending: planned.plan.as_ref().map(|plan| plan.summary_of(is_pending)).unwrap_or_default(),
            ownership_conflicts: ownership_conflicts(planned, snapshot),
            drifted: changes().filter(|change| !is_pending(change)).count(),
            drift: planned.plan.iter().flat_map(drifted).take(MOST_DRIFTED).collect(),
            planned_at: planned.plan.as_ref().filter(|_| !planned.has_errors()).map(|plan| plan.base),
            ..Self::listing(&all)
        }
    }

    /// Adds the reason of a failure that came after planning.
    pub(crate) fn failed(self, found: &[Diagnostic]) -> Self {
        if self.errors > 0 { self } else { self.after(found) }
    }

    /// Adds what was found before planning.
    pub(crate) fn after(self, found: &[Diagnostic]) -> Self {
        let all: Vec<&Diagnostic> = found.iter().collect();
        let Self { mut diagnostics, errors, warnings, waits_for_others, .. } = Self::listing(&all);
        diagnostics.extend(self.diagnostics);
        diagnostics.truncate(MOST_DIAGNOSTICS);
        let (errors, warnings) = (errors + self.errors, warnings + self.warnings);
        let waits_for_others = waits_for_others || self.waits_for_others;
        Self { diagnostics, errors, warnings, waits_for_others, ..self }
    }

    fn listing(all: &[&Diagnostic]) -> Self {
        let of = |severity: Severity| all.iter().copied().filter(move |it| it.severity == severity);
        let count = |severity: Severity| of(severity).map(|it| 1 + it.omitted as usize).sum::<usize>();
        let listed = of(Severity::Error).chain(of(Severity::Warning)).take(MOST_DIAGNOSTICS);
        let diagnostics = listed.map(|it| (it.code, Item::from_diagnostic(it))).collect();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let others = [Code::TransferPending, Code::RolledBack, Code::NotDelegated, Code::OwnerConflict, Code::InUse];
        let waits_for_others = all.iter().any(|it| it.is_one_of(&others));
        Self { diagnostics, errors, warnings, waits_for_others, ..Self::default() }
    }

    /// The number of diagnostics that are not listed.
    pub(crate) fn omitted(&self) -> usize {
        (self.errors + self.warnings).saturating_sub(self.diagnostics.len())
    }
}

fn ownership_conflicts(planned: &PlanResult, snapshot: &Snapshot) -> Vec<OwnershipConflict> {
    if !planned.diagnostics.iter().any(|it| it.is_one_of(&[Code::OwnerConflict])) {
        return Vec::new();
    }
    let all = planned.desired.values().chain(&planned.left_out);
    let conflicts = all.filter_map(|desired| {
        let owner = &snapshot.get(&desired.key)?.claim.as_deref()?.source;
        if *owner == desired.claim.source {
            return None;
        }
        let place = planned.declared_at(&desired.key, &FieldPath::root()).map(|place| format!(" ({place})"));
        let resource = format!("{}{}", desired.key, place.unwrap_or_default());
        Some(OwnershipConflict { owner: owner.clone(), resource })
    });
    conflicts.take(MOST_OWNERSHIP_CONFLICTS).collect()
}

/// The status of a source.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceStatus {
    /// The last sync.
    pub attempt: Option<SyncRecord>,
    /// The last sync after which the store matched the manifests, or the first one that applied a later commit without what
    /// drifted or is invalid; from the history if there was none, or after a rollback.
    pub applied: Option<SyncRecord>,
    /// The findings of the last sync.
    pub findings: RunFindings,
    /// When the loop syncs next without an event.
    pub next_sync: Option<Timestamp>,
    /// Warnings about files that are still being written.
    pub notices: Vec<Item>,
    /// The number of the sync that began last, counted since the source is followed.
    pub begun: u64,
    /// The number of the last sync that has ended. One that waits for a file has not.
    pub ended: u64,
}

/// The status of a source, shared by its loop and the API.
#[derive(Debug, Default)]
pub(crate) struct StatusBoard(Lock<SourceStatus>);

impl StatusBoard {
    /// A board for the loop that takes over from this one's, with the same status.
    pub(crate) fn taken_over(&self) -> Self {
        Self(Lock::new(self.current()))
    }

    /// The status now.
    pub(crate) fn current(&self) -> SourceStatus {
        self.0.lock().clone()
    }

    /// The number of the last sync that has ended.
    pub(crate) fn ended(&self) -> u64 {
        self.0.lock().ended
    }

    /// The sync that brought the manifests into effect.
    pub(crate) fn applied(&self) -> Option<SyncRecord> {
        self.0.lock().applied.clone()
    }

    /// The numbers of the source's route tests.
    pub(crate) fn tests(&self) -> TestCounts {
        self.0.lock().findings.tests
    }

    /// Counts a sync that begins now, before anything is fetched or read.
    pub(super) fn begin_sync(&self) {
        self.0.lock().begun += 1;
    }

    /// Records that the sync that began last has ended.
    pub(super) fn end_sync(&self) {
        let mut status = self.0.lock();
        status.ended = status.begun;
    }

    /// Records a sync that confirmed what the last one found: the store matches the manifests.
    pub(super) fn confirm(&self, sync: SyncRecord) {
        let mut status = self.0.lock();
        (status.applied, status.attempt) = (Some(sync.clone()), Some(sync));
    }

    /// Records a sync, what it found, and the status that it left the source in.
    pub(super) fn record(&self, sync: SyncRecord, mut findings: RunFindings, left: Status) {
        let mut status = self.0.lock();
        // What the last plan has found stays true: nothing was applied since, or only a part.
        if findings.planned_at.is_none() && status.findings.planned_at.is_some() {
            let known = std::mem::take(&mut status.findings);
            (findings.planned_at, findings.drifted, findings.drift) = (known.planned_at, known.drifted, known.drift);
        }
        status.findings = findings;
        if left == Status::Synced {
            status.applied = Some(sync.clone());
        }
        status.attempt = Some(sync);
    }

    /// Records that the commit of a sync is in effect, even if the store does not match all of its manifests.
    pub(super) fn note_in_effect(&self, sync: SyncRecord) {
        let mut status = self.0.lock();
        if status.applied.as_ref().is_none_or(|applied| applied.commit != sync.commit) {
            status.applied = Some(sync);
        }
    }

    /// Finds in the history which manifests of a source are in effect. Returns whether it could be read.
    pub(in crate::reconcile) fn find_applied(&self, store: &Store, source: &str) -> bool {
        let found = or_warn(source, "cannot read the state in effect from the history", store.in_effect(source));
        let Some(found) = found else { return false };
        self.0.lock().applied = found.as_ref().map(SyncRecord::from);
        true
    }

    /// Records how long the loop waits from now.
    pub(super) fn waits(&self, now: Timestamp, time: Duration) {
        // Times are in whole seconds, and a sync is not before its time.
        let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        self.0.lock().next_sync = now.checked_add(Duration::from_secs(seconds)).ok();
    }

    /// Records warnings about files that are still being written.
    pub(super) fn notice(&self, found: &[(&Path, Diagnostic)]) {
        let item = |(path, notice): &(&Path, Diagnostic)| {
            let mut item = Item::from_diagnostic(notice);
            // The whole file is meant, so there is no line.
            item.spot.file = Some(path.display().to_string());
            item
        };
        self.0.lock().notices = found.iter().map(item).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_waits_for_others_also_if_its_status_does_not_list_why() {
        let mut found = vec![Diagnostic::error(Code::Syntax, "broken"); MOST_DIAGNOSTICS];
        assert!(!RunFindings::default().after(&found).waits_for_others);
        let pending = Diagnostic::error(Code::TransferPending, "not handed over");
        found.push(Diagnostic { severity: Severity::Warning, ..pending });
        let findings = RunFindings::default().after(&found);
        assert!(findings.waits_for_others);
        assert!(findings.diagnostics.iter().all(|(name, _)| *name == Name::Code(Code::Syntax)));
    }
}
