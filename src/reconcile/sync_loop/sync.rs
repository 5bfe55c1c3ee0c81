//! One sync: what the loop does when it is triggered, from the files to the report.

use std::sync::atomic::Ordering;

use super::drift_policy::DriftPolicy;
use super::freshness::Freshness;
use super::resource_fight::{Fight, reverted};
use super::status::RunFindings;
use super::write_quiescence::ReadingCheck;
use super::{Loop, TurnEnd};
use crate::manifest::tree::changed_while_read;
use crate::reconcile::prelude::*;
use crate::reconcile::run::apply::measure;
use crate::reconcile::run::decision::{RunMode, run};
use crate::reconcile::run::options::Options;
use crate::reconcile::run::plan_cache;
use crate::reconcile::run::plan_result::PlanResult;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::run::result::{RunResult, commit_of};
use crate::reconcile::run::spans::SyncSpan;
use crate::reconcile::run::stages::Prepared;

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    /// Syncs the store with the source, unless a file is still being written.
    pub(super) fn sync(&mut self) -> TurnEnd {
        self.folders.refresh(&self.options.source);
        // Before the suspension is checked: whichever comes later cancels the run.
        let options = Options { cancel: self.handle.begin_run(), ..self.options.clone() };
        self.handle.end_suspension();
        let is_suspended = self.handle.note_suspension();
        if let Some(left) = self.quiescence.left(self.clock.moment()) {
            return TurnEnd::Waits(left);
        }
        if let Err(unknown) = self.handle.find_lineage() {
            self.fail(vec![unknown]);
            return TurnEnd::Synced;
        }
        let began = Instant::now();
        self.recorder.begin_sync();
        if self.confirm_last(began) || self.confirm_cached(began).is_some() {
            return TurnEnd::Synced;
        }
        let span = SyncSpan::start(&self.options.source);
        let prepared = Prepared::load_again(options, self.prepared.take()).with_clock(self.clock.clone());
        // If what was read is not applied, the next sync must not take the files for unchanged.
        self.freshness = None;
        let end = self.sync_reading(&prepared, is_suspended, span);
        self.prepared = Some(prepared);
        end
    }

    /// Syncs the store with what was read, if that is complete.
    fn sync_reading(&mut self, prepared: &Prepared, is_suspended: bool, span: SyncSpan) -> TurnEnd {
        if self.handle.is_stopping() {
            span.set_result("cancelled");
            return TurnEnd::Synced;
        }
        match self.quiescence.check(self.recorder.files_read(), self.clock.moment()) {
            ReadingCheck::Wait(time) => {
                span.set_result("waiting");
                return TurnEnd::Waits(time);
            }
            ReadingCheck::Torn(path) => {
                span.set_result("failed");
                self.fail(vec![changed_while_read(&path)]);
            }
            ReadingCheck::Complete => match self.reconcile(prepared, is_suspended) {
                Some((run, freshness)) => {
                    span.end(run.report.result(), commit_of(&run.author), self.store.snapshot().revision);
                    self.note_repairs(&run.report);
                    self.freshness = freshness;
                    self.record(run);
                }
                None => span.set_result("cancelled"),
            },
        }
        TurnEnd::Synced
    }

    /// Records that a run has failed before its plan.
    pub(super) fn fail(&mut self, found: Vec<Diagnostic>) {
        let (findings, author) = (RunFindings::default().failed(&found), self.options.author());
        let (report, left) = (RunReport::Failed(found), BTreeSet::new());
        self.record(RunResult { report, findings, author, left, declared: None });
    }

    /// Whether the result of the last sync still holds, because neither the store nor the manifests have changed.
    fn confirm_last(&mut self, began: Instant) -> bool {
        let holds = self.freshness.as_ref().is_some_and(|it| it.holds(self.store.as_ref(), &self.clock))
            && self.recorder.unchanged()
            && self.handle.lineage_warning().is_none();
        if holds {
            measure("in_sync", began);
            self.handle.health.unchanged();
            // The commit may be another one that changes no manifest.
            let sync = self.sync_record(&self.options.author(), self.store.snapshot().revision);
            self.handle.note_applied(sync.commit.as_deref());
            self.handle.status.confirm(sync);
        }
        holds
    }

    /// Confirms the result of a run that an earlier process remembered, for the first sync. None if it does not hold any more.
    fn confirm_cached(&mut self, began: Instant) -> Option<()> {
        let snapshot = self.store.snapshot();
        let revision = snapshot.revision;
        let is_first = self.reported.is_none() && !self.options.tree.has_surrounding();
        // A dry run does not ask what a rollback left.
        if !is_first || !snapshot.rejected(&self.options.source).is_empty() {
            return None;
        }
        let recalled = plan_cache::load(&self.store.on_disk(revision)?, &self.options, &self.recorder)?;
        let unchanged = recalled.plan.as_ref().filter(|plan| plan.base == revision)?.unchanged;
        let report = RunReport::InSync { unchanged, revision };
        let findings = RunFindings { declared: unchanged, ..RunFindings::from_plan(&recalled, &snapshot) };
        measure("in_sync", began);
        self.freshness = Some(Freshness::new(revision, None, &self.clock));
        let (author, left) = (self.options.author(), BTreeSet::new());
        self.record(RunResult { report, findings, author, left, declared: None });
        Some(())
    }

    /// Plans what was read, and applies it unless the source is suspended. Returns the result, and what holds for the next sync
    /// if the store matches the manifests now; none if the run was cancelled.
    fn reconcile(&self, prepared: &Prepared, is_suspended: bool) -> Option<(RunResult, Option<Freshness>)> {
        let commit = prepared.options.tree.commit();
        let changed_values =
            commit.map(|commit| self.handle.settings.values.changed_since(&commit)).unwrap_or_default();
        let may_apply = || self.handle.may_apply();
        let content = self.recorder.content(&self.store.content_key());
        let (drift, content) = (self.handle.settings.drift, content.as_deref());
        let rests_until = self.repairs.rests_until(self.clock.now()).filter(|_| drift == DriftPolicy::Enforce);
        let mode = match is_suspended {
            true => RunMode::Suspended,
            false => {
                let (changed_values, may_apply) = (&changed_values, &may_apply);
                RunMode::Apply { drift, rests_until, content, changed_values, may_apply }
            }
        };
        let mut freshness = None;
        let in_sync = |planned: &PlanResult, revision: u64| freshness = self.remember(prepared, planned, revision);
        let mut run = run(self.store.as_ref(), prepared, mode, in_sync);
        if let RunReport::Invalid(planned) = &mut run.report
            && planned.fails_only_tests()
        {
            let revision = self.store.snapshot().revision;
            let in_effect_at = content.and_then(|content| self.handle.in_effect_at(content));
            // At the same revision, nobody has changed anything: another version of the program judges otherwise.
            planned.tests.passed_until = in_effect_at.filter(|it| *it < revision);
        }
        (!run.is_cut_short(&prepared.options)).then_some((run, freshness))
    }

    /// Remembers for the next sync, and for the next process, that the store matches the manifests at a revision.
    fn remember(&self, prepared: &Prepared, planned: &PlanResult, revision: u64) -> Option<Freshness> {
        let until = prepared.valid_until(planned);
        let freshness = planned.settles().then(|| Freshness::new(revision, until, &self.clock));
        if !self.options.tree.has_surrounding()
            && let Some(on_disk) = self.store.on_disk(revision)
        {
            plan_cache::save(&on_disk, &self.options, &self.recorder, planned, revision, until);
        }
        freshness
    }

    /// Counts what a run has reverted, and logs a fight.
    fn note_repairs(&mut self, report: &RunReport) {
        let RunReport::Applied { plan, .. } = report else { return };
        let reverted: Vec<_> = reverted(plan).collect();
        if reverted.is_empty() {
            return;
        }
        let source = self.options.source.as_str();
        self.handle.repairs.fetch_add(plan.summary().drift as u64, Ordering::Relaxed);
        let moment = (self.clock.now(), self.clock.time());
        if let Some(Fight { key, field, until }) = self.repairs.note(reverted.into_iter(), moment) {
            tracing::warn!(
                source,
                kind = %key.kind,
                id = %key.id,
                field,
                "other writers keep changing the fields that this source reverts; its drift is left as is until {until}"
            );
        }
    }
}
