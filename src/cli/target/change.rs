//! The targets of a change that is planned from the store and not from manifests: a rollback, a transfer, the end of a source.
//! Each is made in a local store, or by a server with an endpoint for it.

use std::collections::HashMap;

use super::client::{ApiClient, MissingResponse, foreign_response, is_turned_away, no_response, refused};
use crate::{
    cli::{Exit, Failure, StoreArgs, output::progress::during},
    model::{
        diagnostics::{code::Code, diagnostic::Diagnostic},
        json::JsonError,
        operation::Author,
    },
    plan::{Plan, format::json::Item, outline::Detail, report::Report},
    reconcile::{ApplyError, Planned},
    server::operations::planned_change::ChangeRun,
    store::{Attempt, CommitError, Store, commit::header::Outcome},
};

/// A change that is planned from the store.
pub(crate) trait StoreChange {
    /// The command, for its reports.
    const COMMAND: &'static str;
    /// What is said when nothing was changed.
    const UNCHANGED: &'static str = "Nothing was applied.";
    /// What is said after the change was applied.
    const REMARK: Option<&'static str> = None;
    /// The refusals that are mistakes in the arguments.
    const MISTAKES: &'static [Code] = &[Code::NotFound];

    /// What the plan is made from besides the current state.
    type Basis;

    /// The endpoint of a server.
    fn path(&self) -> String;

    /// The body of a dry run or, with the outcome that was shown, of the request that applies the change.
    fn request(&self, expect: Option<String>) -> Result<Vec<u8>, JsonError>;

    /// Plans the change in a store.
    fn plan(&self, store: &Store) -> Result<(Planned, Self::Basis), Failure>;

    /// Applies the change to a store, and returns the revision unless there was nothing to change.
    fn apply(&self, store: &Store, basis: &Self::Basis) -> Result<Option<u64>, ApplyError>;

    /// Who makes the change in a local store, for the history.
    fn author(&self) -> Author;
}

/// Where a change is planned and applied.
pub(crate) enum ChangeTarget<C: StoreChange> {
    /// A store that no other process can change at the same time.
    Store {
        /// The store.
        store: Box<Store>,
        /// The last proposal.
        proposed: Option<Box<(Planned, C::Basis)>>,
    },
    /// A server.
    Server {
        /// The client.
        client: ApiClient,
        /// The outcome of the last proposal.
        outcome: String,
    },
}

impl<C: StoreChange> ChangeTarget<C> {
    /// Opens a store, for a dry run only to read it.
    pub(crate) fn open(args: &StoreArgs, dry_run: bool) -> Result<Self, Failure> {
        let store = if dry_run { args.read_existing()? } else { args.open_existing()? };
        Ok(ChangeTarget::Store { store: Box::new(store), proposed: None })
    }

    /// Works through a server. Sends nothing yet.
    pub(crate) fn through(client: ApiClient) -> Self {
        ChangeTarget::Server { client, outcome: String::new() }
    }

    /// Plans a change.
    pub(crate) fn propose(&mut self, change: &C, detail: Detail) -> Result<Report, Failure> {
        match self {
            ChangeTarget::Store { store, proposed } => {
                let (planned, basis) = change.plan(store)?;
                let report = planned.report_with(C::COMMAND, detail);
                *proposed = Some(Box::new((planned, basis)));
                Ok(report)
            }
            ChangeTarget::Server { client, outcome } => {
                let run = send(client, change, None)?;
                if run.outcome.is_empty() {
                    return Err(foreign_response(&client.address(&change.path()), 200));
                }
                *outcome = run.outcome;
                let diagnostics = |items: &[Item]| items.iter().map(|item| item.diagnostic(&HashMap::new())).collect();
                Ok(Report {
                    command: C::COMMAND,
                    diagnostics: diagnostics(&run.report.diagnostics),
                    refusals: diagnostics(&run.report.refusals),
                    plan: run.report.plan,
                    ..Report::default()
                })
            }
        }
    }

    /// Returns the plan of the last proposal if it was made by this process.
    pub(crate) fn plan(&self) -> Option<&Plan> {
        match self {
            ChangeTarget::Store { proposed: Some(proposed), .. } => proposed.0.plan.as_ref(),
            _ => None,
        }
    }

    /// Applies the last proposal, and returns its revision.
    pub(crate) fn apply(&mut self, change: &C) -> Result<u64, Failure> {
        match self {
            ChangeTarget::Store { store, proposed } => {
                let current = store.snapshot().revision;
                let Some(proposed) = proposed.take() else { return Ok(current) };
                // No other process can have changed the store since.
                let applied = during("Applying", || change.apply(store, &proposed.1));
                applied.map(|revision| revision.unwrap_or(current)).map_err(|error| {
                    let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
                    Failure {
                        diagnostics: vec![error.diagnostic()],
                        exit: if stale { Exit::Stale } else { Exit::Error },
                    }
                })
            }
            ChangeTarget::Server { client, outcome } => {
                let run = send(client, change, Some(outcome.clone()))?;
                let unknown = || unanswered(no_response(&client.address(&change.path()), "it has no applied revision"));
                run.report.applied.ok_or_else(unknown)
            }
        }
    }

    /// Records in the history why the proposal is not applied. A server does that itself.
    pub(crate) fn refuse(&self, change: &C, reason: &str) {
        if let ChangeTarget::Store { store, .. } = self {
            // The command has failed already; a failure to record that must not hide the reason.
            let _ = store.note(Attempt::new(change.author()), Outcome::Refused, reason.to_owned());
        }
    }
}

/// Sends a request that plans or, with the outcome that was shown, applies.
fn send<C: StoreChange>(client: &ApiClient, change: &C, expect: Option<String>) -> Result<ChangeRun, Failure> {
    let (url, dry_run) = (client.address(&change.path()), expect.is_none());
    let body = change.request(expect)?;
    let label = if dry_run { "Planning" } else { "Applying" };
    let failed = |missing: MissingResponse| match missing.may_be_sent && !dry_run {
        true => unanswered(missing.message(&url)),
        false => missing.failure(&url),
    };
    let (status, text) = during(label, || client.post(&url, &body)).map_err(failed)?;
    if status >= 500 && !dry_run && !is_turned_away(&text) {
        return Err(unanswered(no_response(&url, &format!("status {status}"))));
    }
    if !matches!(status, 200 | 201) {
        return Err(refused(&url, status, &text));
    }
    serde_json::from_slice(&text).map_err(|_| match dry_run {
        true => foreign_response(&url, status),
        false => unanswered(no_response(&url, "it is not a report")),
    })
}

/// Without a usable response, the request may have been applied or not.
fn unanswered(message: String) -> Failure {
    Diagnostic::error(Code::Timeout, message)
        .help("run the command again with --dry-run to see whether the changes were applied")
        .into()
}
