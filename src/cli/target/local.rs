//! A local store, which no other process can change meanwhile.

use super::{Proposal, Target};
use crate::{
    cli::{Exit, Failure, StoreArgs, progress::during, snapshot_of},
    model::operation::Author,
    plan::{
        Effect,
        saved::{Pin, SavedPlan},
    },
    reconcile::{ApplyError, Options, Planned, apply, plan},
    store::{Attempt, CommitError, Store, history::Outcome},
};

/// Plans against a local store, which is created only when a valid plan is applied.
pub struct Local {
    options: Options,
    args: StoreArgs,
    store: Option<Store>,
    planned: Option<Planned>,
}

impl Local {
    /// Opens the store if it exists, for a dry run only to read it.
    pub fn open(options: Options, args: StoreArgs, dry_run: bool) -> Result<Self, Failure> {
        let store = if dry_run { args.read_if_there()? } else { args.open_if_there()? };
        Ok(Self { options, args, store, planned: None })
    }
}

impl Target for Local {
    fn propose(&mut self, document: bool) -> Result<Proposal, Failure> {
        let snapshot = snapshot_of(self.store.as_ref());
        let planned = during("Planning", || plan(&self.options, &snapshot));
        let saved = planned.plan.as_ref().filter(|_| document);
        let saved = saved.map(|plan| {
            let root_secret = self.store.as_ref().map(Store::root_secret);
            let pin = Pin { root_secret, source: &self.options.source, commit: self.options.tree.commit() };
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
        let author = Author::source(&self.options.source, self.options.tree.commit());
        // The run has failed already: that the history does not say so must not hide why.
        let _ = store.note(Attempt::new(author), Outcome::Refused, reason.to_owned());
    }
}
