//! The targets of a rollback: a local store or a server, reached through `/rollbacks`.

use std::{collections::HashMap, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use super::client::{ApiClient, foreign_response, is_turned_away, refused, unreachable};
use crate::{
    api::rollback::{RollbackRequest, RollbackRun},
    cli::{
        Exit, Failure, StoreArgs,
        progress::during,
        revision::{revision_in, revision_through, unreached},
    },
    model::{code::Code, diagnostic::Diagnostic, json, secret::Secrets, snapshot::Snapshot},
    plan::{Plan, format::json::Item, outline::Detail, report::Report},
    reconcile::{ApplyError, Planned, rollback::Rollback},
    store::{Attempt, CommitError, Store, commits::RevisionName, history::Outcome},
};

/// Where a rollback is planned and applied.
pub(crate) enum RollbackTarget {
    /// A store that no other process can change at the same time.
    Store {
        /// The store.
        store: Box<Store>,
        /// The last proposal.
        proposed: Option<(Planned, Arc<Snapshot>)>,
    },
    /// A server.
    Server {
        /// The client.
        client: ApiClient,
        /// The outcome of the last proposal.
        outcome: String,
    },
}

impl RollbackTarget {
    /// Opens a store, for a dry run only to read it.
    pub(crate) fn open(args: &StoreArgs, dry_run: bool) -> Result<Self, Failure> {
        let store = if dry_run { args.read_existing()? } else { args.open_existing()? };
        Ok(RollbackTarget::Store { store: Box::new(store), proposed: None })
    }

    /// Works through a server. Sends nothing yet.
    pub(crate) fn through(client: ApiClient) -> Self {
        RollbackTarget::Server { client, outcome: String::new() }
    }

    /// Finds the number of a revision.
    pub(crate) fn revision(&self, name: &RevisionName) -> Result<u64, Failure> {
        match self {
            RollbackTarget::Store { store, .. } => revision_in(store, name),
            RollbackTarget::Server { client, .. } => revision_through(client, name),
        }
    }

    /// Plans a rollback.
    pub(crate) fn propose(&mut self, rollback: &Rollback, detail: Detail) -> Result<Report, Failure> {
        match self {
            RollbackTarget::Store { store, proposed } => {
                let target = during("Reading", || store.snapshot_at(rollback.to)).map_err(unreached)?;
                let planned = during("Planning", || rollback.plan(&store.snapshot(), &target));
                let report = planned.report_with("rollback", detail);
                *proposed = Some((planned, target));
                Ok(report)
            }
            RollbackTarget::Server { client, outcome } => {
                let run: RollbackRun = send(client, PATH, &request(rollback, None), true)?;
                if run.outcome.is_empty() {
                    return Err(foreign_response(&client.address(PATH), 200));
                }
                *outcome = run.outcome;
                let diagnostics = |items: &[Item]| items.iter().map(|item| item.diagnostic(&HashMap::new())).collect();
                Ok(Report {
                    command: "rollback",
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
            RollbackTarget::Store { proposed: Some((planned, _)), .. } => planned.plan.as_ref(),
            _ => None,
        }
    }

    /// Applies the last proposal, and returns its revision.
    pub(crate) fn apply(&mut self, rollback: &Rollback) -> Result<u64, Failure> {
        match self {
            RollbackTarget::Store { store, proposed } => {
                let current = store.snapshot().revision;
                let Some((_, target)) = proposed.take() else { return Ok(current) };
                // No other process can have changed the store since.
                let accept = |_: &Snapshot, planned: Planned| Ok::<_, ApplyError>(planned);
                let applied = during("Applying", || rollback.apply(store, &target, None, accept));
                applied.map(|(_, revision)| revision.unwrap_or(current)).map_err(|error| {
                    let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
                    Failure {
                        diagnostics: vec![error.diagnostic()],
                        exit: if stale { Exit::Stale } else { Exit::Error },
                    }
                })
            }
            RollbackTarget::Server { client, outcome } => {
                let run: RollbackRun = send(client, PATH, &request(rollback, Some(outcome.clone())), false)?;
                run.report
                    .applied
                    .ok_or_else(|| unanswered(&client.address(PATH), "the response has no applied revision"))
            }
        }
    }

    /// Records in the history why the proposal is not applied. A server does that itself.
    pub(crate) fn refuse(&self, rollback: &Rollback, reason: &str) {
        if let RollbackTarget::Store { store, .. } = self {
            // The command has failed already; a failure to record that must not hide the reason.
            let _ = store.note(Attempt::new(rollback.attempted(None)), Outcome::Refused, reason.to_owned());
        }
    }
}

const PATH: &str = "/rollbacks";

/// The request of a dry run or, with the outcome that was shown, of the rollback itself.
fn request(rollback: &Rollback, expect: Option<String>) -> RollbackRequest {
    RollbackRequest {
        to: rollback.to,
        source: rollback.source.clone().unwrap_or_default(),
        dry_run: expect.is_none(),
        max_deletes: rollback.budget,
        expect: expect.unwrap_or_default(),
    }
}

/// Sends a request that plans or, unless it is a dry run, applies.
pub(super) fn send<T: DeserializeOwned>(
    client: &ApiClient,
    path: &str,
    request: &impl Serialize,
    dry_run: bool,
) -> Result<T, Failure> {
    let url = client.address(path);
    let body = json::bytes(request, Secrets::Masked)?;
    let label = if dry_run { "Planning" } else { "Applying" };
    let failed = |reason: &str| match dry_run {
        true => unreachable(&url, reason),
        false => unanswered(&url, reason),
    };
    let (status, text) = during(label, || client.post(&url, &body)).map_err(|reason| failed(&reason))?;
    if status >= 500 && !dry_run && !is_turned_away(&text) {
        return Err(unanswered(&url, &format!("status {status}")));
    }
    if !matches!(status, 200 | 201) {
        return Err(refused(&url, status, &text));
    }
    serde_json::from_slice(&text).map_err(|_| match dry_run {
        true => foreign_response(&url, status),
        false => unanswered(&url, "the response is not a report"),
    })
}

/// Without a usable response, the request may have been applied or not.
pub(super) fn unanswered(url: &str, reason: &str) -> Failure {
    Diagnostic::error(Code::Timeout, format!("no response from {url}: {reason}"))
        .help("run the command again with --dry-run to see whether the changes were applied")
        .into()
}
