//! Records the result of a run: in the status, the history and the health of the source, and for the caller of the loop.

use std::collections::BTreeSet;

use super::Loop;
use super::condition::{Reason, Status};
use super::report_dedup::digest;
use super::status::SyncRecord;
use super::sync_log::or_warn;
use crate::model::{Author, Snapshot};
use crate::reconcile::run::report::RunReport;
use crate::reconcile::run::result::{RunResult, commit_of};
use crate::store::{Attempt, Outcome as AttemptOutcome};

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    /// Keeps which manifests are in effect, before the status says so: somebody who reads it can roll them back.
    fn keep_manifests(
        &self,
        led_to: Option<u64>,
        declared: Option<Snapshot>,
        planned_at: Option<u64>,
        left: &BTreeSet<String>,
    ) {
        let Some(content) = self.recorder.content(&self.store.content_key()) else { return };
        let source = self.options.source.as_str();
        let declares = declared.and_then(|state| {
            let digest = self.store.declared_digest(source, &state);
            or_warn(source, "cannot tell what the manifests declare beside drift", digest)
        });
        let led_to = led_to.or_else(|| self.handle.led_to_before(&self.store, &content, declares.as_deref()?));
        self.handle.keep_manifests(content, led_to, declares, planned_at, left);
    }

    /// Records the result of a run, and reports it if it is new.
    pub(super) fn record(&mut self, run: RunResult) {
        let commit = commit_of(&run.author);
        let RunResult { mut report, mut findings, author, left, declared } = run;
        let snapshot = self.store.snapshot();
        let found = report.condition().0;
        // This holds even if the repository cannot be fetched: the commit that was fetched last is in effect.
        let is_synced = found.status() == Status::Synced;
        // A part of nothing is applied of a commit that must not be read.
        let is_in_effect = is_synced || found == Reason::PartlyApplied || matches!(report, RunReport::Drifted { .. });
        if is_in_effect {
            if let Some(warning) = self.handle.lineage_warning() {
                let source = self.options.source.as_str();
                tracing::warn!(source, code = %warning.code, "{}", warning.message);
                findings = findings.after(&[warning]);
            }
            self.handle.note_applied(commit.as_deref());
            let led_to = led_to(&report, findings.drifted, snapshot.revision);
            self.keep_manifests(led_to, declared, findings.planned_at, &left);
        }
        if let Some(failure) = self.handle.settings.fetches.as_ref().and_then(|fetches| fetches.failure())
            && found != Reason::FetchFailed
        {
            findings = findings.after(std::slice::from_ref(&failure));
            report = report.unfetched(&failure);
        }
        let sync = self.sync_record(&author, snapshot.revision);
        self.handle.status.record(sync.clone(), findings, found.status());
        if !is_synced {
            self.find_applied(&snapshot);
        }
        if is_in_effect {
            self.handle.status.note_in_effect(sync);
        }
        // Last: a reader who sees the state also sees the findings.
        let (reason, message) = report.condition();
        self.handle.health.result(reason, message, snapshot.revision);
        let digest = digest(&report, commit.as_deref());
        let has_applied = matches!(report, RunReport::Drifted { applied: Some(_), .. });
        let is_new = self.reported != Some(digest) || has_applied;
        // Set first: if `report` panics, it must not panic again in every run.
        self.reported = Some(digest);
        let attempt = attempt_outcome(&report).map(|outcome| {
            let attempt = digest.to_hex().to_string();
            if is_new && !self.handle.has_recorded(&attempt) {
                let noted = self.store.note(Attempt::new(author.clone()), outcome, report.note());
                or_warn(&self.options.source, "cannot record the attempt in the history", noted);
            }
            attempt
        });
        self.handle.keep_condition(attempt);
        // The source may have been resumed during the sync.
        self.handle.note_suspension();
        self.note_resources(&snapshot);
        if is_new {
            (self.report)(report, &author);
        }
    }
}

impl<F> Loop<F> {
    /// Notes that the store has resources of the source, although no run of this process has applied it.
    fn note_resources(&self, snapshot: &Snapshot) {
        let (health, source) = (&self.handle.health, self.options.source.as_str());
        if !health.is_applied() && snapshot.iter().any(|it| it.is_owned_by(source)) {
            health.has_resources();
        }
    }

    /// The record of a sync that has ended now, with manifests of an author.
    pub(super) fn sync_record(&self, author: &Author, revision: u64) -> SyncRecord {
        let commit_author = match author {
            Author::Source { commit_author, .. } => commit_author.clone(),
            _ => None,
        };
        let (at, tag) = (self.clock.time(), self.options.tree.commit_details().tag);
        SyncRecord { at, commit: commit_of(author), commit_author, tag, revision }
    }

    /// Finds in the history which manifests are in effect, if no sync of this process has found that, or after a rollback.
    fn find_applied(&mut self, snapshot: &Snapshot) {
        let (source, status) = (self.options.source.as_str(), &self.handle.status);
        let is_known = status.applied().is_some() && snapshot.rejected(source).is_empty();
        if is_known || self.searched == Some(snapshot.revision) {
            return;
        }
        if status.find_applied(self.store.as_ref(), source) {
            self.searched = Some(snapshot.revision);
        }
    }
}

/// The revision that a run made of the manifests, or that has all that they declare. None if it made none and others have
/// changed some of it.
fn led_to(report: &RunReport, drifted: usize, current: u64) -> Option<u64> {
    match report {
        RunReport::Applied { revision, .. } | RunReport::Drifted { applied: Some((_, revision)), .. } => {
            Some(*revision)
        }
        RunReport::InSync { revision, .. } => (drifted == 0).then_some(*revision),
        _ => (drifted == 0).then_some(current),
    }
}

/// The outcome of a run that is an attempt and changed nothing, if it is one.
fn attempt_outcome(report: &RunReport) -> Option<AttemptOutcome> {
    match (report, report.condition().0) {
        (RunReport::Invalid(_), _) => Some(AttemptOutcome::Refused),
        // Nothing of an isolated source was read.
        (RunReport::Failed(_) | RunReport::Partly(_), Reason::Refused) => Some(AttemptOutcome::Refused),
        (RunReport::Failed(_), _) | (RunReport::Partly(_), Reason::Failed) => Some(AttemptOutcome::Failed),
        _ => None,
    }
}
