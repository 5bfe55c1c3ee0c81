//! Changes that are planned from the store and not from manifests: a rollback, a transfer, the destruction of a source. A
//! change is planned in a local store or by a server with an endpoint for it, shown, and applied.

use ureq::http::Method;

use super::revision::{revision_in_store, revision_on_server};
use crate::cli::command_prelude::*;
use crate::cli::manifests::reconcile::carry_out;
use crate::cli::target::{AppliedPlan, RequestEffect, foreign_response, to_report};
use crate::plan::redacted_plan::{Detail, RedactedPlan};
use crate::reconcile::run::planned_change::PlannedChange;
use crate::server::operations::planned_change::ChangeRun;
use crate::server::operations::whoami;
use crate::store::{Attempt, Outcome};

/// The help for a change that may have been applied.
const SEE_CHANGE: &str = "run the command again with --dry-run to see whether the changes were applied";

pub(super) trait StoreChange {
    /// The command, for its reports.
    const COMMAND: &'static str;
    /// The line after a run that changed nothing.
    const UNCHANGED: &'static str = "Nothing was applied.";
    /// The refusals that are mistakes in the arguments.
    const MISTAKES: &'static [Code] = &[Code::NotFound];

    /// The change, as a local store plans and applies it.
    type Change: PlannedChange;

    /// The lines after the change was applied as a revision.
    fn remarks(&self, _applied: u64) -> Vec<String> {
        Vec::new()
    }

    fn path(&self) -> String;

    /// The body of a dry run, which says how requests are treated differently if that is asked for, or, with the outcome that
    /// was shown, of the request that applies the change.
    fn request(&self, behaviour: bool, expect: Option<String>) -> impl Serialize;

    fn in_store(&self, store: &Store) -> Result<Self::Change, Failure>;

    /// The author of the change in a local store, for the history.
    fn author(&self) -> Author;
}

/// The options that all changes have.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeOptions {
    /// Show the plan without applying it.
    #[arg(long, env = "EDGEWRIGHT_DRY_RUN")]
    pub dry_run: bool,
    /// Show which requests are treated differently, and how.
    #[arg(long, env = "EDGEWRIGHT_BEHAVIOUR")]
    behaviour: bool,
    /// Exit with code 2 if changes are pending.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    #[command(flatten)]
    pub place: StoreOrServer,
    #[command(flatten)]
    retention: RetentionArgs,
    #[command(flatten)]
    output: Output,
}

/// The store or server that plans and applies a change.
pub(super) enum ChangeTarget<C: StoreChange> {
    /// A store that no other process can change at the same time.
    Store {
        store: Box<Store>,
        proposed: Option<C::Change>,
    },
    Server {
        client: Box<ApiClient>,
        outcome: String,
    },
}

impl<C: StoreChange> ChangeTarget<C> {
    /// Opens the store, for a dry run only to read it, or prepares a client of the server.
    pub(super) fn open(options: &ChangeOptions) -> Result<Self, Failure> {
        let ChangeOptions { dry_run, place, retention, .. } = options;
        if let Some(client) = place.client()? {
            return Ok(ChangeTarget::Server { client: Box::new(client), outcome: String::new() });
        }
        let store = if *dry_run { place.store.read_existing()? } else { place.store.open_existing(retention)? };
        Ok(ChangeTarget::Store { store: Box::new(store), proposed: None })
    }

    /// Finds the number of a revision. A commit is one of the source, if there is one.
    pub(super) fn revision(&self, name: &RevisionName, source: Option<&str>) -> Result<u64, Failure> {
        match self {
            ChangeTarget::Store { store, .. } => revision_in_store(store, name, source),
            ChangeTarget::Server { client, .. } => revision_on_server(client, name, source),
        }
    }

    /// Plans a change, shows it, and applies it unless it is only to be shown. `refusal` is one that only the command knows;
    /// `confirm` is asked before the plan is applied.
    pub(super) fn run(
        mut self,
        change: &C,
        options: &ChangeOptions,
        refusal: Option<Diagnostic>,
        confirm: impl FnOnce() -> Result<(), Failure>,
    ) -> CommandResult {
        let ChangeOptions { dry_run, behaviour, detailed_exitcode, output, .. } = options;
        let unchanged = (!dry_run).then_some(C::UNCHANGED);
        let mut report = self.propose(change, *behaviour, output.detail())?;
        report.refusals.extend(refusal);
        let is_empty = report.plan.as_ref().is_none_or(RedactedPlan::is_empty);
        // "No changes" would contradict the errors.
        if !is_empty || report.refusals.is_empty() {
            output.announce(&report).inspect_err(|_| unchanged.into_iter().for_each(say))?;
        }
        let decided = self.decide(change, &report, *dry_run).and_then(|()| match (*dry_run, is_empty) {
            (true, false) if *detailed_exitcode => Ok(Some(Exit::Pending)),
            (true, _) => Ok(Some(Exit::Done)),
            (false, true) if !report.hides_secrets() => Ok(Some(Exit::Done)),
            (false, _) => confirm().map(|()| None),
        });
        let exit = carry_out(output, &mut report, unchanged, decided, |hid_secrets| self.apply(change, hid_secrets))?;
        report.applied.map(|revision| change.remarks(revision)).iter().flatten().for_each(|remark| say(remark));
        // The end of the process frees it faster.
        std::mem::forget(report);
        Ok(exit)
    }

    /// Fails if a plan has errors or refusals, which the report has.
    fn decide(&self, change: &C, report: &Report, dry_run: bool) -> Result<(), Failure> {
        if report.has_errors() {
            return Err(Failure::new(Vec::new(), Exit::Error));
        }
        let Some(first) = report.refusals.first() else { return Ok(()) };
        if !dry_run {
            self.check_role()?;
            self.refuse(change, first);
        }
        diagnostics::diagnostics(&report.refusals);
        Err(Failure::new(Vec::new(), Self::exit_of(&report.refusals)))
    }

    fn exit_of(refusals: &[Diagnostic]) -> Exit {
        // A mistake in the arguments is no plan that a limit refuses (D31).
        let is_mistake = |refusal: &Diagnostic| C::MISTAKES.iter().any(|code| refusal.code == Name::Code(*code));
        if refusals.iter().any(is_mistake) {
            return Exit::Error;
        }
        let of_first = refusals.first().map(|it| Exit::of_refusal(it.code, false));
        of_first.filter(|exit| *exit != Exit::Error).unwrap_or(Exit::Refused)
    }

    /// Plans a change, and says how requests are treated differently if that is asked for.
    fn propose(&mut self, change: &C, behaviour: bool, detail: Detail) -> Result<Report, Failure> {
        match self {
            ChangeTarget::Store { store, proposed } => {
                let local = change.in_store(store)?;
                let mut planned = during("Planning", || local.plan(&store.snapshot()));
                if behaviour {
                    planned.note_behaviour();
                }
                let report = planned.report_with(C::COMMAND, detail);
                *proposed = Some(local);
                Ok(report)
            }
            ChangeTarget::Server { client, outcome } => {
                let mut run = send(client, change, behaviour, None)?;
                if run.outcome.is_empty() {
                    return Err(foreign_response(&client.address(&change.path()), 200));
                }
                *outcome = run.outcome;
                Ok(Report { command: C::COMMAND, ..to_report(&mut run.report, &[]) })
            }
        }
    }

    fn apply(&mut self, change: &C, hid_secrets: bool) -> Result<AppliedPlan, Failure> {
        match self {
            ChangeTarget::Store { store, proposed } => {
                let current = store.snapshot().revision;
                let Some(local) = proposed.take() else { return Ok(AppliedPlan::as_shown(current)) };
                // No other process can have changed the store since the plan was shown.
                let accept = |_: &Snapshot, planned: PlanResult| Ok::<_, ApplyError>(planned);
                let (_, applied) = during("Applying", || local.apply(store, &change.author(), accept))?;
                Ok(AppliedPlan::as_shown(applied.unwrap_or(current)))
            }
            ChangeTarget::Server { client, outcome } => {
                let run = send(client, change, false, Some(outcome.clone()))?;
                let url = client.address(&change.path());
                AppliedPlan::from_report(run.report, hid_secrets, &url, SEE_CHANGE)
            }
        }
    }

    /// Fails if a refused plan is one that the caller of a server could not apply anyway: how to raise a limit would be of
    /// no use.
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

    /// Records in the history of a local store why the proposal is not applied. A server records no dry run.
    fn refuse(&self, change: &C, reason: &Diagnostic) {
        if let ChangeTarget::Store { store, .. } = self {
            // The command has failed already; a failure to record that must not hide the reason.
            let _ = store.note(Attempt::new(change.author()), Outcome::Refused, reason.on_one_line());
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
    let sent = during(label, || client.send(&Method::POST, &url, Some(&body), effect));
    sent.and_then(|response| response.report()).map_err(|error| error.failure(SEE_CHANGE))
}
