//! The targets of a transfer: a local store or a server, reached through `/transfers`.

use std::collections::HashMap;

use super::{
    client::{ApiClient, foreign_response},
    rollback::{send, unanswered},
};
use crate::{
    api::transfer::{PATH, TransferRequest, TransferRun},
    cli::{Exit, Failure, StoreArgs, progress::during},
    model::{operation::Author, snapshot::Snapshot},
    plan::{Plan, format::json::Item, outline::Detail, report::Report, transfer::Transfer},
    reconcile::{
        ApplyError, Planned,
        transfer::{apply_transfer, plan_transfer},
    },
    store::{Attempt, CommitError, Store, history::Outcome},
};

/// Where a transfer is planned and applied.
pub(crate) enum TransferTarget {
    /// A store that no other process can change at the same time.
    Store {
        /// The store.
        store: Box<Store>,
        /// The last proposal.
        proposed: Option<Planned>,
    },
    /// A server.
    Server {
        /// The client.
        client: ApiClient,
        /// The outcome of the last proposal.
        outcome: String,
    },
}

impl TransferTarget {
    /// Opens a store, for a dry run only to read it.
    pub(crate) fn open(args: &StoreArgs, dry_run: bool) -> Result<Self, Failure> {
        let store = if dry_run { args.read_existing()? } else { args.open_existing()? };
        Ok(TransferTarget::Store { store: Box::new(store), proposed: None })
    }

    /// Works through a server. Sends nothing yet.
    pub(crate) fn through(client: ApiClient) -> Self {
        TransferTarget::Server { client, outcome: String::new() }
    }

    /// Plans a transfer.
    pub(crate) fn propose(&mut self, transfer: &Transfer, detail: Detail) -> Result<Report, Failure> {
        match self {
            TransferTarget::Store { store, proposed } => {
                let planned = during("Planning", || plan_transfer(transfer, &store.snapshot()));
                let report = planned.report_with("transfer", detail);
                *proposed = Some(planned);
                Ok(report)
            }
            TransferTarget::Server { client, outcome } => {
                let run: TransferRun = send(client, PATH, &request(transfer, None), true)?;
                if run.outcome.is_empty() {
                    return Err(foreign_response(&client.address(PATH), 200));
                }
                *outcome = run.outcome;
                let diagnostics = |items: &[Item]| items.iter().map(|item| item.diagnostic(&HashMap::new())).collect();
                Ok(Report {
                    command: "transfer",
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
            TransferTarget::Store { proposed: Some(planned), .. } => planned.plan.as_ref(),
            _ => None,
        }
    }

    /// Applies the last proposal, and returns its revision.
    pub(crate) fn apply(&mut self, transfer: &Transfer) -> Result<u64, Failure> {
        match self {
            TransferTarget::Store { store, .. } => {
                let current = store.snapshot().revision;
                // No other process can have changed the store since the proposal.
                let accept = |_: &Snapshot, planned: Planned| Ok::<_, ApplyError>(planned);
                let applied = during("Applying", || apply_transfer(transfer, store, &Author::Local, accept));
                applied.map(|(_, revision)| revision.unwrap_or(current)).map_err(|error| {
                    let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
                    Failure {
                        diagnostics: vec![error.diagnostic()],
                        exit: if stale { Exit::Stale } else { Exit::Error },
                    }
                })
            }
            TransferTarget::Server { client, outcome } => {
                let run: TransferRun = send(client, PATH, &request(transfer, Some(outcome.clone())), false)?;
                let unknown = || unanswered(&client.address(PATH), "the response has no applied revision");
                run.report.applied.ok_or_else(unknown)
            }
        }
    }

    /// Records in the history why the proposal is not applied. A server does that itself.
    pub(crate) fn refuse(&self, reason: &str) {
        if let TransferTarget::Store { store, .. } = self {
            // The command has failed already; a failure to record that must not hide the reason.
            let _ = store.note(Attempt::new(Author::Local), Outcome::Refused, reason.to_owned());
        }
    }
}

/// The request of a dry run or, with the outcome that was shown, of the transfer itself.
fn request(transfer: &Transfer, expect: Option<String>) -> TransferRequest {
    let Transfer { from, to, resources } = transfer.clone();
    let (all, dry_run) = (resources.is_empty(), expect.is_none());
    TransferRequest { from, to, resources, all, dry_run, expect: expect.unwrap_or_default() }
}
