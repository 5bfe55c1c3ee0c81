//! A local store, which no other process can change at the same time.

use super::proposal::{AppliedPlan, PlanFile, Proposal, Target};
use super::sources::sources_of_store;
use crate::cli::manifests::source_args::report_source;
use crate::cli::output::{during, say};
use crate::cli::prelude::*;
use crate::cli::store::retention_args::RetentionArgs;
use crate::cli::store::store_args::{StoreArgs, snapshot_of};
use crate::manifest::tree::Recorder;
use crate::plan::{Detail, DigestProtection, PlanConditions, SavedPlan};
use crate::reconcile::run::plan_cache;
use crate::reconcile::sync_loop::plan_drift;
use crate::reconcile::{commit_speculative, plan};
use crate::store::{Attempt, Outcome};

/// Plans against a local store, which is created only when a valid plan is applied.
pub(crate) struct StoreTarget {
    options: Options,
    /// Records what the run reads, if it is to be remembered.
    recorder: Option<Arc<Recorder>>,
    args: StoreArgs,
    retention: RetentionArgs,
    /// Whether the store is only read.
    is_dry: bool,
    /// The detail of each change in the report.
    detail: Detail,
    store: Option<Store>,
    planned: Option<PlanResult>,
}

impl StoreTarget {
    /// Opens the store if it exists, unless it is only read later, for a dry run. If it `remembers`, a run that has nothing to do is
    /// remembered, and answered from memory (D73).
    pub(crate) fn new(
        mut options: Options,
        (args, retention): (StoreArgs, RetentionArgs),
        is_dry: bool,
        remembers: bool,
        detail: Detail,
    ) -> Result<Self, Failure> {
        // A run with surrounding manifests or assumed values is neither remembered nor answered from memory: the same files can
        // be part of a source in one run, and surround it in another.
        let is_usual = !options.tree.has_surrounding() && !options.tree.assumes_values();
        let recorder = (remembers && is_usual).then(|| Arc::new(Recorder::new(Arc::clone(&options.tree))));
        if let Some(recorder) = &recorder {
            options.tree = Arc::clone(recorder) as Arc<dyn Tree>;
        }
        let store = if is_dry { None } else { args.open_if_there(&retention)? };
        Ok(Self { options, recorder, args, retention, is_dry, detail, store, planned: None })
    }

    /// Answers from an earlier run, or plans.
    fn propose_dry_run(&mut self) -> Result<Proposal, Failure> {
        if let Some(recorder) = &self.recorder
            && let Some(on_disk) = self.args.on_disk()?
            && let Some(recalled) = plan_cache::load(&on_disk, &self.options, recorder)
        {
            return Ok(Proposal { report: self.report(&recalled), ..Proposal::default() });
        }
        self.store = self.args.read_for_plan()?;
        let proposal = self.plan_and_report(None)?;
        if let (Some(store), Some(planned)) = (&self.store, &self.planned) {
            let (recorder, revision) = (self.recorder.as_deref(), store.snapshot().revision);
            remember(recorder, store, &self.options, planned, revision);
        }
        Ok(proposal)
    }
}

/// Remembers a run if it leaves nothing to do at a revision.
fn remember(recorder: Option<&Recorder>, store: &Store, options: &Options, planned: &PlanResult, revision: u64) {
    if !planned.leaves_nothing(revision) {
        return;
    }
    let Some((recorder, on_disk)) = recorder.zip(store.on_disk(revision)) else { return };
    let until = options.lints.valid_until(&planned.desired);
    plan_cache::save(&on_disk, options, recorder, planned, revision, until);
}

impl StoreTarget {
    fn report(&self, planned: &PlanResult) -> Report {
        Report { source: report_source(&self.options.source), ..planned.report_with("plan", self.detail) }
    }

    /// Plans, with what the report shows and the plan as a document, if requested.
    fn plan_and_report(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
        let snapshot = snapshot_of(self.store.as_ref());
        let mut planned = during("Planning", || plan(&self.options, &snapshot));
        // A plan is right without it, and a damaged history is reported by `history verify`.
        if let Some(store) = &self.store
            && let Err(error) = plan_drift::find_drift(store, &self.options.source, &snapshot, &mut planned, None)
        {
            say(&format!("Drift is not shown: {error}"));
        }
        let saved = planned.plan.as_ref().zip(document).map(|(plan, document)| {
            let protection = match (&self.store, document) {
                (Some(store), _) => DigestProtection::Store(store.root_secret()),
                (None, PlanFile::LikeReviewed(reviewed)) => {
                    DigestProtection::Salt(reviewed.salt().map_or_else(ids::salt, str::to_owned))
                }
                (None, PlanFile::ToSave) => DigestProtection::Salt(ids::salt()),
            };
            let (source, commit) = (self.options.source.as_str(), self.options.tree.commit());
            let conditions = PlanConditions { protection, source, commit, is_masked: false };
            SavedPlan::new(plan, planned.desired.values(), &conditions)
        });
        let saved = saved.transpose()?;
        let unwritable = planned.token_faults();
        let new_store = planned.plan.as_ref().and_then(|_| self.args.new_store(self.store.as_ref()));
        let report = Report { new_store, ..self.report(&planned) };
        let left_out = planned.left_out_names();
        let proposal = Proposal { report, left_out, saved, unwritable, ..Proposal::default() };
        self.planned = Some(planned);
        Ok(proposal)
    }
}

/// Closes the store. The end of the process frees the values of a large source faster than they would be freed one by one.
impl Drop for StoreTarget {
    fn drop(&mut self) {
        std::mem::forget((self.planned.take(), self.store.as_ref().map(Store::snapshot)));
    }
}

impl Target for StoreTarget {
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
        if self.is_dry && document.is_none() {
            return self.propose_dry_run();
        }
        if self.is_dry {
            self.store = self.args.read_for_plan()?;
        }
        self.plan_and_report(document)
    }

    fn sources(&self) -> BTreeSet<String> {
        self.store.as_ref().map(|store| sources_of_store(&store.snapshot())).unwrap_or_default()
    }

    fn apply(&mut self, _hid_secrets: bool) -> Result<AppliedPlan, Failure> {
        let store = self.store.take().map_or_else(|| self.args.create(&self.retention), Ok)?;
        let store = &*self.store.insert(store);
        let Some(planned) = self.planned.take() else { return Ok(AppliedPlan::as_shown(store.snapshot().revision)) };
        let applied = during("Applying", || commit_speculative(store, &self.options, &planned));
        if let Ok(revision) = applied {
            remember(self.recorder.as_deref(), store, &self.options, &planned, revision);
        }
        std::mem::forget(planned);
        Ok(AppliedPlan::as_shown(applied?))
    }

    fn refuse(&mut self, reason: &Diagnostic) {
        let Some(store) = &self.store else { return };
        // The run has failed already; a failure to record that must not hide the reason.
        let _ = store.note(Attempt::new(self.options.author()), Outcome::Refused, reason.on_one_line());
    }
}
