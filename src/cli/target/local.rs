//! A local store, which no other process can change at the same time.

use std::sync::Arc;

use super::{PlanFile, Proposal, Target};
use crate::{
    cli::{Exit, Failure, StoreArgs, leave, progress::during, snapshot_of},
    manifest::tree::{Recorder, Tree},
    plan::{
        Effect, Plan,
        outline::{Detail, Outline},
        report::Report,
        saved::{Guard, Pin, SavedPlan},
    },
    reconcile::{
        ApplyError, Options, Planned, apply_as_tried, plan,
        remembered::{Recalled, recall, remember},
    },
    store::{self, Attempt, CommitError, Store, history::Outcome, mint},
};

/// Whether a dry run that has nothing to do is remembered and recalled (D73).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remembers {
    Yes,
    No,
}

/// Plans against a local store, which is created only when a valid plan is applied.
pub(crate) struct Local {
    options: Options,
    args: StoreArgs,
    /// For a dry run: whether it may answer from an earlier one.
    dry: Option<Remembers>,
    /// What the report shows of each change.
    detail: Detail,
    store: Option<Store>,
    planned: Option<Planned>,
}

impl Local {
    /// Opens the store if it exists; for a dry run, only for reading.
    pub(crate) fn open(options: Options, args: StoreArgs, detail: Detail) -> Result<Self, Failure> {
        let store = args.open_if_there()?;
        Ok(Self { options, args, dry: None, detail, store, planned: None })
    }

    /// For a dry run, which only reads the store.
    pub(crate) fn to_read(options: Options, args: StoreArgs, remembers: Remembers, detail: Detail) -> Self {
        Self { options, args, dry: Some(remembers), detail, store: None, planned: None }
    }

    /// Answers from an earlier dry run, or plans.
    fn dry_run(&mut self) -> Result<Proposal, Failure> {
        let recorder = Arc::new(Recorder::new(Arc::clone(&self.options.tree)));
        if let Some(on_disk) = store::on_disk(self.args.folder())?
            && let Some(recalled) = recall(&on_disk, &self.options, &recorder)
        {
            return Ok(recalled.into());
        }
        self.store = self.args.read_if_there()?;
        self.options.tree = Arc::clone(&recorder) as Arc<dyn Tree>;
        let proposal = self.propose_anew(None)?;
        if let (Some(store), Some(planned)) = (&self.store, &self.planned)
            && let Some(on_disk) = store.on_disk(store.snapshot().revision)
        {
            remember(&on_disk, &self.options, &recorder, planned);
        }
        Ok(proposal)
    }
}

impl From<Recalled> for Proposal {
    fn from(recalled: Recalled) -> Self {
        let Recalled { warnings, unchanged, revision, files } = recalled;
        let plan = Outline { base: revision, unchanged, changes: Vec::new() };
        let first_file = files.first().map(|file| file.source.name.clone());
        let report = Report {
            command: "plan",
            diagnostics: warnings,
            plan: Some(plan),
            files: files.len(),
            first_file,
            ..Report::default()
        };
        Proposal { report, left_out: Vec::new(), saved: None, unwritable: Vec::new() }
    }
}

impl Local {
    /// Plans, with what the report shows and the plan as a document, if requested.
    fn propose_anew(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
        let snapshot = snapshot_of(self.store.as_ref());
        let planned = during("Planning", || plan(&self.options, &snapshot));
        let saved = planned.plan.as_ref().zip(document).map(|(plan, document)| {
            let guard = match (&self.store, document) {
                (Some(store), _) => Guard::Store(store.root_secret()),
                (None, PlanFile::LikeReviewed(reviewed)) => {
                    Guard::Salt(reviewed.salt().map_or_else(mint::salt, str::to_owned))
                }
                (None, PlanFile::ToSave) => Guard::Salt(mint::salt()),
            };
            let pin = Pin { guard, source: &self.options.source, commit: self.options.tree.commit() };
            SavedPlan::new(plan, planned.desired.values(), &pin)
        });
        let saved = saved.transpose()?;
        let changes = planned.plan.iter().flat_map(|plan| &plan.changes);
        let created = changes.filter(|change| matches!(change.effect, Effect::Create | Effect::Replace));
        let created = created.filter(|change| change.token_file.is_some());
        let unwritable = created.filter_map(|change| planned.token_fault(&change.key)).collect();
        let (report, left_out) = (planned.report_with("plan", self.detail), planned.left_out_names());
        let proposal = Proposal { report, left_out, saved, unwritable };
        self.planned = Some(planned);
        Ok(proposal)
    }
}

/// Closes the store. The process ends soon.
impl Drop for Local {
    fn drop(&mut self) {
        leave((self.planned.take(), self.store.as_ref().map(Store::snapshot)));
    }
}

impl Target for Local {
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
        match self.dry {
            Some(Remembers::Yes) if document.is_none() => return self.dry_run(),
            Some(_) => self.store = self.args.read_if_there()?,
            None => {}
        }
        self.propose_anew(document)
    }

    fn apply(&mut self) -> Result<u64, Failure> {
        let store = match self.store.take() {
            Some(store) => store,
            None => self.args.open()?,
        };
        let store = self.store.insert(store);
        let Some(planned) = self.planned.take() else { return Ok(store.snapshot().revision) };
        let applied = during("Applying", || apply_as_tried(store, &self.options, &planned));
        leave(planned);
        applied.map_err(|error| {
            let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
            Failure { diagnostics: vec![error.diagnostic()], exit: if stale { Exit::Stale } else { Exit::Error } }
        })
    }

    fn plan(&self) -> Option<&Plan> {
        self.planned.as_ref()?.plan.as_ref()
    }

    fn refuse(&mut self, reason: &str) {
        let Some(store) = &self.store else { return };
        // The run has failed already; a failure to record that must not hide the reason.
        let _ = store.note(Attempt::new(self.options.author()), Outcome::Refused, reason.to_owned());
    }
}
