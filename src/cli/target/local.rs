//! A local store, which no other process can change at the same time.

use super::{PlanFile, Proposal, Target};
use crate::{
    cli::{Exit, Failure, StoreArgs, progress::during, snapshot_of},
    plan::{
        Effect,
        saved::{Guard, Pin, SavedPlan},
    },
    reconcile::{ApplyError, Options, Planned, apply, plan},
    store::{Attempt, CommitError, Store, history::Outcome, mint},
};

/// Plans against a local store, which is created only when a valid plan is applied.
pub(crate) struct Local {
    options: Options,
    args: StoreArgs,
    store: Option<Store>,
    planned: Option<Planned>,
}

impl Local {
    /// Opens the store if it exists; for a dry run, only for reading.
    pub(crate) fn open(options: Options, args: StoreArgs, dry_run: bool) -> Result<Self, Failure> {
        let store = if dry_run { args.read_if_there()? } else { args.open_if_there()? };
        Ok(Self { options, args, store, planned: None })
    }
}

impl Target for Local {
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
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
        let unwritable = created.filter_map(|change| planned.token_fault(&change.key)).collect();
        let (report, left_out) = (planned.report("plan"), planned.left_out_names());
        let proposal = Proposal { report, left_out, saved, unwritable };
        self.planned = Some(planned);
        Ok(proposal)
    }

    fn apply(&mut self) -> Result<u64, Failure> {
        let store = match self.store.take() {
            Some(store) => store,
            None => self.args.open()?,
        };
        let store = self.store.insert(store);
        let Some(planned) = self.planned.take() else { return Ok(store.snapshot().revision) };
        let applied = during("Applying", || apply(store, &self.options, &planned));
        applied.map_err(|error| {
            let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
            Failure { diagnostics: vec![error.diagnostic()], exit: if stale { Exit::Stale } else { Exit::Error } }
        })
    }

    fn refuse(&mut self, reason: &str) {
        let Some(store) = &self.store else { return };
        // The run has failed already; a failure to record that must not hide the reason.
        let _ = store.note(Attempt::new(self.options.author()), Outcome::Refused, reason.to_owned());
    }
}
