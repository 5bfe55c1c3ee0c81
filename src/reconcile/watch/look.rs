//! A look at a source: what the loop reads, applies and reports.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::Loop;
use crate::{
    manifest::tree::{Tree, changed_while_read},
    model::{diagnostic::Diagnostic, operation::Author, snapshot::Snapshot},
    reconcile::{
        Options, Planned, Prepared,
        drift::DriftPolicy,
        fight::{Fight, put_back},
        health::{Reason, Status},
        measure,
        news::digest,
        remembered::{recall, remember},
        run::{OnDrift, RunReport, RunResult, commit_of, run_once, run_suspended},
        settled::Settled,
        spans::SyncSpan,
        status::{LookRecord, RunFindings},
        stillness::ReadingCheck,
    },
    store::{Attempt, commit::header::Outcome as AttemptOutcome},
};

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    /// Looks at the source, and applies it. Returns how long to wait if a file is still being written.
    pub(super) fn look(&mut self) -> Option<Duration> {
        self.folders.refresh(&self.options.source);
        // Before the look at the suspension: whichever comes later cancels the run.
        let options = Options { cancel: self.following.begin_run(), ..self.options.clone() };
        let is_suspended = self.check_suspension();
        if let Some(left) = self.stillness.left(self.clock.moment()) {
            return Some(left);
        }
        if let Err(error) = self.following.find_lineage() {
            let message = format!("cannot find out which commit was applied last: {error}");
            self.fail(vec![Diagnostic::error(error.code, message).help(error.code.info().cure)]);
            return None;
        }
        let began = Instant::now();
        self.begin_reading();
        if self.settled.as_ref().is_some_and(|it| it.holds(self.store.as_ref(), &self.clock))
            && self.recorder.unchanged()
            && self.following.rewound().is_none()
        {
            measure("in_sync", began);
            self.following.health.unchanged();
            // The commit may be another one that changes no manifest.
            let look = self.look_record(&self.options.author(), self.store.snapshot().revision);
            self.following.note_applied(look.commit.as_deref());
            self.following.status.confirm(look);
            return None;
        }
        if self.reported.is_none()
            && !self.options.tree.has_context()
            && let Some(run) = self.recalled()
        {
            measure("in_sync", began);
            if let RunReport::InSync { revision, .. } = run.report {
                self.settled = Some(Settled::at(revision, &self.clock));
            }
            self.tell(run);
            return None;
        }
        let span = SyncSpan::start(&self.options.source);
        let prepared = Prepared::load_again(options, self.prepared.take()).on(self.clock.clone());
        if self.following.is_stopping() {
            // What was read may be a part.
            span.set_result("cancelled");
            self.leave(prepared);
            return None;
        }
        match self.stillness.check(self.recorder.files_read(), self.clock.moment()) {
            ReadingCheck::Complete => {}
            ReadingCheck::Wait(time) => {
                span.set_result("waiting");
                self.leave(prepared);
                return Some(time);
            }
            ReadingCheck::Torn(path) => {
                span.set_result("failed");
                self.leave(prepared);
                self.fail(vec![changed_while_read(&path)]);
                return None;
            }
        }
        let commit = prepared.options.tree.commit();
        let changed_values = commit.map(|commit| self.following.values.changed_since(&commit)).unwrap_or_default();
        let on_drift = self.on_drift();
        let following = Arc::clone(&self.following);
        let may_apply = || following.may_apply();
        let mut settled = None;
        let remember = |planned: &Planned, revision: u64| {
            let done = prepared.done(planned, revision);
            settled = planned.settles().then(|| Settled::of(&done, &self.clock));
            if !self.options.tree.has_context()
                && let Some(on_disk) = self.store.on_disk(revision)
            {
                remember(&on_disk, &self.options, &self.recorder, &done);
            }
        };
        let run = match is_suspended {
            true => run_suspended(self.store.as_ref(), &prepared, remember),
            false => run_once(self.store.as_ref(), &prepared, &changed_values, on_drift, &may_apply, remember),
        };
        if run.is_cut_short(&prepared.options) {
            span.set_result("cancelled");
            self.leave(prepared);
            return None;
        }
        span.end(&run, self.store.snapshot().revision);
        self.note_repairs(&run.report);
        self.settled = settled;
        self.tell(run);
        // Everybody knows by now.
        prepared.tidy();
        self.prepared = Some(prepared);
        None
    }

    /// Keeps a reading that is not applied. The next look must not take the files for unchanged.
    fn leave(&mut self, prepared: Prepared) {
        self.settled = None;
        self.prepared = Some(prepared);
    }

    /// Reports that a run has failed before its plan.
    pub(super) fn fail(&mut self, found: Vec<Diagnostic>) {
        let findings = RunFindings::default().failed(&found);
        self.tell(RunResult { report: RunReport::Failed(found), findings, author: self.options.author() });
    }

    /// What the next run does with drift.
    fn on_drift(&self) -> OnDrift {
        match self.following.drift {
            DriftPolicy::Warn => OnDrift::Report,
            DriftPolicy::Off => OnDrift::Count,
            DriftPolicy::Enforce => match self.repairs.rests_until(self.clock.now()) {
                Some(until) => OnDrift::Rest { until },
                None => OnDrift::PutBack,
            },
        }
    }

    /// How long the loop may wait without an event: the end of a rest is not noticed later than it is due.
    pub(super) fn patience(&self) -> Duration {
        let patience = self.following.patience();
        self.repairs.rests(self.clock.now()).map_or(patience, |rest| rest.min(patience))
    }

    /// Counts what a run has put back, and logs a fight.
    fn note_repairs(&mut self, report: &RunReport) {
        let RunReport::Applied { plan, .. } = report else { return };
        let put_back: Vec<_> = put_back(plan).collect();
        if put_back.is_empty() {
            return;
        }
        let source = self.options.source.as_str();
        self.following.count_repairs(plan.summary().drift as u64);
        let moment = (self.clock.now(), self.clock.time());
        if let Some(Fight { key, field, until }) = self.repairs.note(put_back.into_iter(), moment) {
            tracing::warn!(
                source,
                kind = %key.kind,
                id = %key.id,
                field,
                "fight: others keep changing what is put back; drift of the source is left as is until {until}"
            );
        }
    }

    /// Whether the source is suspended.
    fn check_suspension(&self) -> bool {
        self.following.end_suspension();
        let is_suspended = self.following.note_suspension();
        self.following.observe();
        is_suspended
    }

    /// The result of a run that was remembered by an earlier process and still holds.
    fn recalled(&self) -> Option<RunResult> {
        let snapshot = self.store.snapshot();
        // A dry run does not ask what a rollback left.
        if !snapshot.rejected(&self.options.source).is_empty() {
            return None;
        }
        let revision = snapshot.revision;
        let recalled = recall(&self.store.on_disk(revision)?, &self.options, &self.recorder)?;
        if recalled.revision != revision {
            return None;
        }
        let report = RunReport::InSync { unchanged: recalled.unchanged, revision };
        Some(RunResult { report, findings: RunFindings::recalled(&recalled), author: self.options.author() })
    }

    /// Records the result of a run, and reports it if it is new.
    fn tell(&mut self, run: RunResult) {
        let commit = run.commit();
        let RunResult { report: mut outcome, mut findings, author } = run;
        let snapshot = self.store.snapshot();
        let found = outcome.condition().0;
        // Also if the repository cannot be fetched: the commit that was fetched last is in effect.
        let is_synced = found.status() == Status::Synced;
        if is_synced || matches!(outcome, RunReport::Partly(_) | RunReport::Drifted { .. }) {
            if let Some(warning) = self.following.rewound() {
                let source = self.options.source.as_str();
                tracing::warn!(source, code = %warning.code, "{}", warning.message);
                findings = findings.after(&[warning]);
            }
            self.following.note_applied(commit.as_deref());
        }
        if let Some(failure) = self.following.fetch_failure()
            && found != Reason::FetchFailed
        {
            findings = findings.after(std::slice::from_ref(&failure));
            outcome = outcome.unfetched(&failure);
        }
        let (reason, message) = outcome.condition();
        let now = digest(&outcome, commit.as_deref());
        let look = self.look_record(&author, snapshot.revision);
        self.following.status.record(look, findings, is_synced);
        if !is_synced && !matches!(outcome, RunReport::Partly(_)) {
            self.find_applied(&snapshot);
        }
        // Last: whoever sees the state sees what was found.
        let health = &self.following.health;
        health.result(reason, message, snapshot.revision);
        let has_applied = matches!(outcome, RunReport::Drifted { applied: Some(_), .. });
        let is_news = self.reported != Some(now) || has_applied;
        // Set first: if `report` panics, it must not panic again in every run.
        self.reported = Some(now);
        let attempt = attempt_outcome(&outcome).map(|attempted| {
            let attempt = now.to_hex().to_string();
            if is_news && !self.following.has_recorded(&attempt) {
                self.note(attempted, &outcome, &author);
            }
            attempt
        });
        self.following.keep_condition(attempt);
        // It may have been resumed during the run.
        self.following.note_suspension();
        self.following.observe();
        if !health.is_applied() {
            let source = self.options.source.as_str();
            let owned = snapshot.iter().any(|it| it.claim.as_deref().is_some_and(|claim| claim.source == source));
            if owned {
                health.has_resources();
            }
        }
        if is_news {
            (self.report)(outcome, &author);
        }
    }
}

impl<F> Loop<F> {
    /// A look that has ended now, at manifests of an author.
    fn look_record(&self, author: &Author, revision: u64) -> LookRecord {
        let commit_author = match author {
            Author::Source { commit_author, .. } => commit_author.clone(),
            _ => None,
        };
        let (at, tag) = (self.clock.time(), self.options.tree.tag());
        LookRecord { at, commit: commit_of(author), commit_author, tag, revision }
    }

    /// Finds in the history which manifests are in effect, if no look of this process has found that, or after a rollback.
    fn find_applied(&mut self, snapshot: &Snapshot) {
        let (source, status) = (self.options.source.as_str(), &self.following.status);
        let is_known = status.applied().is_some() && snapshot.rejected(source).is_empty();
        if is_known || self.searched == Some(snapshot.revision) {
            return;
        }
        match self.store.in_effect(source) {
            Ok(found) => {
                let look = found.map(|it| LookRecord {
                    at: it.at,
                    commit: it.commit,
                    commit_author: None,
                    tag: None,
                    revision: it.revision,
                });
                status.set_applied(look);
                self.searched = Some(snapshot.revision);
            }
            Err(error) => {
                tracing::warn!(source, code = %error.code, "cannot read from the history what is in effect: {error}");
            }
        }
    }

    /// Records an attempt that changed nothing in the history.
    fn note(&self, attempted: AttemptOutcome, report: &RunReport, author: &Author) {
        if let Err(error) = self.store.note(Attempt::new(author.clone()), attempted, report.condition().1) {
            let source = self.options.source.as_str();
            tracing::warn!(source, code = %error.code, "cannot record the attempt in the history: {error}");
        }
    }
}

/// The outcome of a run that is an attempt and changed nothing, if it is one.
fn attempt_outcome(report: &RunReport) -> Option<AttemptOutcome> {
    match report {
        RunReport::Invalid(_) => Some(AttemptOutcome::Refused),
        RunReport::Failed(_) if report.condition().0 == Reason::Refused => Some(AttemptOutcome::Refused),
        RunReport::Failed(_) => Some(AttemptOutcome::Failed),
        RunReport::Applied { .. }
        | RunReport::InSync { .. }
        | RunReport::Unfetched { .. }
        | RunReport::Partly(_)
        | RunReport::Suspended(_)
        | RunReport::Drifted { .. }
        | RunReport::RolledBack { .. } => None,
    }
}
