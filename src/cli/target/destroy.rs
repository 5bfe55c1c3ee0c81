//! The targets of `destroy`: a local store or a server, reached through `/sources/{name}/destroy`.

use std::collections::HashMap;

use super::{
    client::{ApiClient, foreign_response},
    rollback::{self, unanswered},
};
use crate::{
    api::sources::destroy::{DestroyRequest, DestroyRun},
    cli::{Exit, Failure, StoreArgs, progress::during},
    model::{key::segment, snapshot::Snapshot},
    plan::{Plan, format::json::Item, outline::Detail, report::Report},
    reconcile::{ApplyError, Planned, destroy::Destroy},
    store::{Attempt, CommitError, Store, history::Outcome},
};

/// Where the end of a source is planned and applied.
pub(crate) enum DestroyTarget {
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

impl DestroyTarget {
    /// Opens a store, for a dry run only to read it.
    pub(crate) fn open(args: &StoreArgs, dry_run: bool) -> Result<Self, Failure> {
        let store = if dry_run { args.read_existing()? } else { args.open_existing()? };
        Ok(DestroyTarget::Store { store: Box::new(store), proposed: None })
    }

    /// Works through a server. Sends nothing yet.
    pub(crate) fn through(client: ApiClient) -> Self {
        DestroyTarget::Server { client, outcome: String::new() }
    }

    /// Plans the end of a source.
    pub(crate) fn propose(&mut self, destroy: &Destroy, detail: Detail) -> Result<Report, Failure> {
        match self {
            DestroyTarget::Store { store, proposed } => {
                let planned = during("Planning", || destroy.plan(&store.snapshot()));
                let report = planned.report_with("destroy", detail);
                *proposed = Some(planned);
                Ok(report)
            }
            DestroyTarget::Server { client, outcome } => {
                let run = send(client, destroy, None)?;
                if run.outcome.is_empty() {
                    return Err(foreign_response(&client.address(&path(destroy)), 200));
                }
                *outcome = run.outcome;
                let diagnostics = |items: &[Item]| items.iter().map(|item| item.diagnostic(&HashMap::new())).collect();
                Ok(Report {
                    command: "destroy",
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
            DestroyTarget::Store { proposed: Some(planned), .. } => planned.plan.as_ref(),
            _ => None,
        }
    }

    /// Applies the last proposal, and returns its revision.
    pub(crate) fn apply(&mut self, destroy: &Destroy) -> Result<u64, Failure> {
        match self {
            DestroyTarget::Store { store, .. } => {
                let current = store.snapshot().revision;
                // No other process can have changed the store since.
                let accept = |_: &Snapshot, planned: Planned| Ok::<_, ApplyError>(planned);
                let applied = during("Applying", || destroy.apply(store, None, accept));
                applied.map(|(_, revision)| revision.unwrap_or(current)).map_err(|error| {
                    let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
                    Failure {
                        diagnostics: vec![error.diagnostic()],
                        exit: if stale { Exit::Stale } else { Exit::Error },
                    }
                })
            }
            DestroyTarget::Server { client, outcome } => {
                let run = send(client, destroy, Some(outcome.clone()))?;
                let url = client.address(&path(destroy));
                run.report.applied.ok_or_else(|| unanswered(&url, "the response has no applied revision"))
            }
        }
    }

    /// Records in the history why the proposal is not applied. A server does that itself.
    pub(crate) fn refuse(&self, destroy: &Destroy, reason: &str) {
        if let DestroyTarget::Store { store, .. } = self {
            // The command has failed already; a failure to record that must not hide the reason.
            let _ = store.note(Attempt::new(destroy.author(None)), Outcome::Refused, reason.to_owned());
        }
    }
}

fn path(destroy: &Destroy) -> String {
    format!("/sources/{}/destroy", segment(&destroy.source))
}

/// Sends a dry run or, with the outcome that was shown, the request to destroy the source.
fn send(client: &ApiClient, destroy: &Destroy, expect: Option<String>) -> Result<DestroyRun, Failure> {
    let dry_run = expect.is_none();
    let request = DestroyRequest { dry_run, max_deletes: destroy.budget, expect: expect.unwrap_or_default() };
    rollback::send(client, &path(destroy), &request, dry_run)
}
