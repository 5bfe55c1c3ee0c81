//! Changes that are planned from the store and not from manifests: a rollback, a transfer, the destruction of a source. A
//! change is planned in a local store or by a server with an endpoint for it, shown, and applied.

use super::revision::{revision_in_store, revision_on_server};
use crate::cli::command_prelude::*;
use crate::cli::manifests::reconcile::{apply, failed};
use crate::cli::target::{RequestEffect, SendError, foreign_response, no_response, parse_report};
use crate::plan::format::json::Item;
use crate::plan::redacted_plan::{Detail, RedactedPlan};
use crate::server::operations::planned_change::ChangeRun;
use crate::server::operations::whoami;
use crate::store::{Attempt, Outcome};

/// The help for a change that may have been applied.
const SEE_CHANGE: &str = "run the command again with --dry-run to see whether the changes were applied";

/// A change that is planned from the store.
pub(super) trait StoreChange {
    /// The command, for its reports.
    const COMMAND: &'static str;
    /// The line after a run that changed nothing.
    const UNCHANGED: &'static str = "Nothing was applied.";
    /// The refusals that are mistakes in the arguments.
    const MISTAKES: &'static [Code] = &[Code::NotFound];

    /// The basis of the plan besides the current state.
    type Basis;

    /// The lines after the change was applied as a revision.
    fn remarks(_applied: u64) -> Vec<String> {
        Vec::new()
    }

    /// The endpoint of a server.
    fn path(&self) -> String;

    /// The body of a dry run, which says how requests are treated differently if that is asked for, or, with the outcome that
    /// was shown, of the request that applies the change.
    fn request(&self, behaviour: bool, expect: Option<String>) -> impl Serialize;

    /// Plans the change in a store.
    fn plan(&self, store: &Store) -> Result<(PlanResult, Self::Basis), Failure>;

    /// Applies the change to a store, and returns the revision unless there was nothing to change.
    fn apply(&self, store: &Store, basis: &Self::Basis) -> Result<Option<u64>, ApplyError>;

    /// The author of the change in a local store, for the history.
    fn author(&self) -> Author;
}

/// Accepts any plan: no other process can have changed the store since it was shown.
pub(super) fn accept(_: &Snapshot, planned: PlanResult) -> Result<PlanResult, ApplyError> {
    Ok(planned)
}

/// The store or server that plans and applies a change.
pub(super) enum ChangeTarget<C: StoreChange> {
    /// A store that no other process can change at the same time.
    Store {
        /// The store.
        store: Box<Store>,
        /// The last proposal.
        proposed: Option<Box<(PlanResult, C::Basis)>>,
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
    /// Opens the store, for a dry run only to read it, or prepares a client of the server.
    pub(super) fn open(place: &StoreOrServer, retention: &RetentionArgs, dry_run: bool) -> Result<Self, Failure> {
        if let Some(client) = place.client()? {
            return Ok(ChangeTarget::Server { client, outcome: String::new() });
        }
        let store = if dry_run { place.store.read_existing()? } else { place.store.open_existing(retention)? };
        Ok(ChangeTarget::Store { store: Box::new(store), proposed: None })
    }

    /// Finds the number of a revision. A commit is one of the source, if there is one.
    pub(super) fn revision(&self, name: &RevisionName, source: Option<&str>) -> Result<u64, Failure> {
        match self {
            ChangeTarget::Store { store, .. } => revision_in_store(store, name, source),
            ChangeTarget::Server { client, .. } => revision_on_server(client, name, source),
        }
    }

    /// Plans a change, and says how requests are treated differently if that is asked for.
    fn propose(&mut self, change: &C, behaviour: bool, detail: Detail) -> Result<Report, Failure> {
        match self {
            ChangeTarget::Store { store, proposed } => {
                let (mut planned, basis) = change.plan(store)?;
                if behaviour {
                    planned.note_behaviour();
                }
                let report = planned.report_with(C::COMMAND, detail);
                *proposed = Some(Box::new((planned, basis)));
                Ok(report)
            }
            ChangeTarget::Server { client, outcome } => {
                let run = send(client, change, behaviour, None)?;
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
    fn plan(&self) -> Option<&Plan> {
        match self {
            ChangeTarget::Store { proposed: Some(proposed), .. } => proposed.0.plan.as_ref(),
            _ => None,
        }
    }

    /// Applies the last proposal, and returns its revision.
    fn apply(&mut self, change: &C) -> Result<u64, Failure> {
        match self {
            ChangeTarget::Store { store, proposed } => {
                let current = store.snapshot().revision;
                let Some(proposed) = proposed.take() else { return Ok(current) };
                let applied = during("Applying", || change.apply(store, &proposed.1))?;
                Ok(applied.unwrap_or(current))
            }
            ChangeTarget::Server { client, outcome } => {
                let run = send(client, change, false, Some(outcome.clone()))?;
                run.report.applied.ok_or_else(|| {
                    let message = no_response(&client.address(&change.path()), "it has no applied revision");
                    SendError::NoResponse(message).failure(SEE_CHANGE)
                })
            }
        }
    }

    /// Fails if a server lets the caller apply nothing at all.
    fn check_role(&self) -> Result<(), Failure> {
        let ChangeTarget::Server { client, .. } = self else { return Ok(()) };
        let role = client.get::<whoami::CallerIdentity>(whoami::PATH)?.role;
        if role >= Role::Editor {
            return Ok(());
        }
        let message = format!("the role `{}` may only read and plan", role.as_str());
        let help = "use an API key with the role `editor` or `admin`, or set --dry-run";
        Err(Diagnostic::error(Code::Forbidden, message).help(help).into())
    }

    /// Records in the history why the proposal is not applied. A server does that itself.
    fn refuse(&self, change: &C, reason: &str) {
        if let ChangeTarget::Store { store, .. } = self {
            // The command has failed already; a failure to record that must not hide the reason.
            let _ = store.note(Attempt::new(change.author()), Outcome::Refused, reason.to_owned());
        }
    }
}

/// Sends a request that plans or, with the outcome that was shown, applies.
fn send<C: StoreChange>(
    client: &ApiClient,
    change: &C,
    behaviour: bool,
    expect: Option<String>,
) -> Result<ChangeRun, Failure> {
    let url = client.address(&change.path());
    let (label, effect) = match expect {
        None => ("Planning", RequestEffect::None),
        Some(_) => ("Applying", RequestEffect::Change),
    };
    let body = json::bytes(&change.request(behaviour, expect), Secrets::Masked)?;
    let sent = during(label, || client.attempt(&url, &body, effect));
    let run = sent.and_then(|(status, text)| parse_report(&url, status, &text, effect));
    run.map_err(|error| error.failure(SEE_CHANGE))
}

/// A change with its options, as a command runs it.
pub(super) struct ChangeCommand<'a, C: StoreChange> {
    /// The change.
    pub change: &'a C,
    /// The store or server that plans and applies it.
    pub target: ChangeTarget<C>,
    /// The format and destination of the report.
    pub output: &'a Output,
    /// Whether the plan is only shown.
    pub dry_run: bool,
    /// Whether the plan says how requests are treated differently.
    pub behaviour: bool,
    /// Whether pending changes have an exit code of their own.
    pub detailed_exitcode: bool,
}

impl<C: StoreChange> ChangeCommand<'_, C> {
    /// Runs it. `refusal` is one that only the command knows; `confirm` is asked before the plan is applied.
    pub(super) fn run(
        mut self,
        refusal: Option<Diagnostic>,
        confirm: impl FnOnce() -> Result<(), Failure>,
    ) -> CommandResult {
        let mut report = self.target.propose(self.change, self.behaviour, self.output.detail())?;
        report.refusals.extend(refusal);
        let is_empty = report.plan.as_ref().is_none_or(RedactedPlan::is_empty);
        // "No changes" would contradict the errors.
        if !is_empty || report.refusals.is_empty() {
            self.output.announce(&report, self.target.plan()).inspect_err(|_| self.say_unchanged())?;
        }
        let exit = if report.has_errors() {
            self.say_unchanged();
            Exit::Error
        } else if let Err(failure) = self.check_role(&report) {
            let exit = failed(&mut report, failure);
            self.say_unchanged();
            exit
        } else if !report.refusals.is_empty() {
            if let Some(first) = report.refusals.first().filter(|_| !self.dry_run) {
                self.target.refuse(self.change, &first.message);
            }
            diagnostics::diagnostics(&report.refusals);
            self.say_unchanged();
            // A mistake in the arguments is no plan that a limit refuses (D31).
            let is_mistake = |refusal: &Diagnostic| C::MISTAKES.iter().any(|code| refusal.code == Name::Code(*code));
            if report.refusals.iter().any(is_mistake) { Exit::Error } else { Exit::Refused }
        } else if is_empty {
            Exit::Done
        } else if self.dry_run {
            if self.detailed_exitcode { Exit::Pending } else { Exit::Done }
        } else if let Err(failure) = confirm() {
            let exit = failed(&mut report, failure);
            self.say_unchanged();
            exit
        } else {
            let exit = apply(self.output, &mut report, C::UNCHANGED, || self.target.apply(self.change))?;
            report.applied.map(C::remarks).iter().flatten().for_each(|remark| say(remark));
            std::mem::forget(report);
            return Ok(exit);
        };
        self.output.conclude(&report)?;
        // The end of the process frees it faster.
        std::mem::forget(report);
        Ok(exit)
    }

    /// Fails if a refused plan is one that the caller of a server could not apply anyway: how to raise a limit would be of
    /// no use.
    fn check_role(&self, report: &Report) -> Result<(), Failure> {
        if self.dry_run || report.refusals.is_empty() { Ok(()) } else { self.target.check_role() }
    }

    fn say_unchanged(&self) {
        if !self.dry_run {
            say(C::UNCHANGED);
        }
    }
}
