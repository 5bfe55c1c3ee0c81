//! The common part of requests that plan and apply a change of the store without manifests: a rollback, a
//! transfer, or destroying a source.

use crate::model::{Name, Path};
use crate::plan::format::json::ReportDocument;
use crate::plan::{DigestProtection, Effect, Plan, PlanConditions, SavedPlan};
use crate::reconcile::sync_loop::sync_log;
use crate::reconcile::{PlanResult, measure};
use crate::server::handler_prelude::*;
use crate::server::openapi::operation_document::OperationDocument;
use crate::server::openapi::schemas::Schemas;
use crate::server::replicas::read_your_writes::set_revision;
use crate::store::{Attempt, Outcome};

/// The result of a request to plan or apply a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ChangeRun {
    /// The report, in the format of `--format json`.
    #[serde(flatten)]
    pub report: ReportDocument,
    /// The digest of the plan's result, for `expect`.
    pub outcome: String,
}

/// How a request to plan or apply a change has ended.
pub(super) type EndedChange = Result<ChangeRun, ApiError>;

impl ChangeRun {
    /// The response, with the revision if the plan was applied.
    pub(super) fn response(&self) -> ApiResult {
        let revision = self.report.applied;
        let mut response = json_response(if revision.is_some() { StatusCode::CREATED } else { StatusCode::OK }, self)?;
        set_revision(response.headers_mut(), revision);
        Ok(response)
    }
}

/// The part of the OpenAPI document that these operations have in common.
pub(super) fn document(operation: OperationDocument, schemas: &mut Schemas, planned: &str) -> OperationDocument {
    let run = schemas.response::<ChangeRun>();
    operation.responds("200", planned, run.clone()).responds("201", "Applied as a new revision", run)
}

/// The fault of an `expect` that is empty: a script whose dry run has failed would apply any plan. Earlier versions of the
/// command line send it with each dry run, which applies nothing.
pub(super) fn empty_expectation(expect: Option<&str>, dry_run: bool) -> Option<Fault> {
    let is_empty = expect.is_some_and(str::is_empty) && !dry_run;
    let fault = is_empty.then(|| Fault::new(Code::InvalidFormat, "`expect` cannot be empty"))?;
    let help = "send the `outcome` of the reviewed dry run, or omit `expect` to apply any plan";
    Some(fault.at("expect").help(help))
}

/// Takes a place to plan or apply.
pub(super) fn place(
    app: &AppState,
    caller: &Caller,
    intent: &Intent<'_>,
    dry_run: bool,
) -> Result<WorkPlace, ApiError> {
    app.admissions.reconciliations.enter(Some(&caller.owner), pool(&app.served.store, caller, intent, dry_run))
}

/// The pool of a request to plan or apply. `intent` is to apply: the reserved places are for those who do, and can.
pub(super) fn pool(store: &Store, caller: &Caller, intent: &Intent<'_>, dry_run: bool) -> SlotPool {
    let applies = !dry_run && permission::allows(caller, intent, &store.snapshot()).is_ok();
    if applies { SlotPool::Reserved } else { SlotPool::Shared }
}

/// A request to plan or apply a change.
pub(super) struct ChangeRequest<'a> {
    pub app: &'a AppState,
    /// The request's headers, which identify the caller.
    pub headers: &'a HeaderMap,
    /// The command in the report.
    pub command: &'static str,
    /// The change, as the digest of the plan's result covers it.
    pub subject: String,
    pub dry_run: bool,
    /// Whether the plan says how requests are treated differently.
    pub behaviour: bool,
    /// The outcome of the only plan to apply, if not any.
    pub expect: Option<String>,
}

impl ChangeRequest<'_> {
    /// The store to change.
    pub(super) fn store(&self) -> &Store {
        &self.app.served.store
    }

    /// Admits the caller again, who must be allowed to plan or apply a source. A refusal is about a field of the body.
    pub(super) fn admit(&self, current: &Snapshot, field: impl Into<Path>, source: &str) -> Result<Caller, ApiError> {
        let access = &self.app.access;
        let intent = if self.dry_run { Intent::Plan(source) } else { Intent::Apply(source) };
        let caller = access.admit_again(current, &Intent::Propose, self.headers)?;
        permission::allows(&caller, &intent, current).map_err(|fault| caller.refused(fault.at(field)))?;
        access.check_change(&caller, &intent)?;
        Ok(caller)
    }

    /// Makes an attempt, and records it unless it is a dry run. `author` is that of an attempt that changes nothing.
    pub(super) fn run(&self, author: Author, attempt: impl FnOnce() -> EndedChange) -> EndedChange {
        let began = Instant::now();
        let ended = attempt();
        if !self.dry_run {
            note_attempt(self.store(), author, began, ended.as_ref().map(|run| run.report.applied.is_some()));
        }
        ended
    }

    /// Refuses a plan that is not the one of the client's dry run. `masked` is the same plan without secrets, if that is
    /// what was reviewed.
    pub(super) fn check_expected(&self, planned: &PlanResult, masked: Option<&PlanResult>) -> Result<(), ApiError> {
        match is_expected(self.expect.as_deref(), planned, masked, |planned, secrets| self.outcome(planned, secrets))? {
            true => Ok(()),
            false => Err(stale("the store has")),
        }
    }

    /// The digest of a plan's result. A masked one is for callers who do not see the secrets.
    fn outcome(&self, planned: &PlanResult, secrets: Secrets<'_>) -> Result<String, JsonError> {
        outcome(saved(self.store(), planned, &self.subject, None, secrets)?.as_ref())
    }

    /// The result with a plan, and with its revision if it was applied.
    pub(super) fn answer(&self, planned: &mut PlanResult, secrets: Secrets<'_>, revision: Option<u64>) -> EndedChange {
        if self.behaviour {
            planned.note_behaviour();
        }
        let mut report = planned.report(self.command);
        report.applied = revision;
        Ok(ChangeRun { report: ReportDocument::from_report(&report), outcome: self.outcome(planned, secrets)? })
    }

    /// Logs a change that was applied, syncs the followed sources, and returns the result.
    pub(super) fn applied(&self, author: &Author, planned: &mut PlanResult, revision: Option<u64>) -> EndedChange {
        if let (Some(plan), Some(revision)) = (&planned.plan, revision) {
            sync_log::applied(author, plan, revision);
            self.app.sources.registry.iter().for_each(|handle| handle.request_sync());
        }
        self.answer(planned, Secrets::Revealed, revision)
    }
}

/// Whether a plan is the one that the client expects. `masked` is the same plan without secrets, if that is what was reviewed.
pub(super) fn is_expected(
    expect: Option<&str>,
    planned: &PlanResult,
    masked: Option<&PlanResult>,
    outcome: impl Fn(&PlanResult, Secrets<'static>) -> Result<String, JsonError>,
) -> Result<bool, JsonError> {
    let Some(expect) = expect else { return Ok(true) };
    let is_reviewed = masked.is_none_or(|masked| {
        let plans = planned.plan.as_ref().zip(masked.plan.as_ref());
        plans.is_some_and(|(plan, masked)| differs_in_secrets_only(plan, masked))
    });
    let secrets = if masked.is_some() { Secrets::Masked } else { Secrets::Revealed };
    Ok(is_reviewed && outcome(masked.unwrap_or(planned), secrets)? == expect)
}

/// Whether a plan creates and deletes the same resources as the one without secrets, which shows all other changes.
fn differs_in_secrets_only(plan: &Plan, masked: &Plan) -> bool {
    let moved = |plan: &Plan| -> Vec<(Key, Effect)> {
        let moves = |effect: Effect| matches!(effect, Effect::Create | Effect::Replace | Effect::Delete);
        let changes = plan.changes.iter().filter(|change| moves(change.effect));
        changes.map(|change| (change.key.clone(), change.effect)).collect()
    };
    moved(plan) == moved(masked)
}

/// The error of a plan that is not the expected one, because something has changed.
pub(super) fn stale(what: &str) -> ApiError {
    let message = format!("the plan is no longer the expected one: {what} changed since the dry run");
    ApiError::new(Fault::new(Code::Stale, message).at("expect"))
}

/// Warns that the reviewer of a plan has not seen the secrets that it writes, if it writes any.
pub(super) fn warn_unreviewed(planned: &mut PlanResult) {
    if !planned.plan.iter().flat_map(Plan::each_operation).any(writes_secrets) {
        return;
    }
    let message = "the plan was reviewed without the values of secrets, which may have changed";
    let help = "to cover them, review the plan with an API key that may apply the source";
    planned.diagnostics.push(Diagnostic::warning(Code::UnreviewedSecrets, message).help(help));
}

/// Whether the call of an operation has secrets.
fn writes_secrets(operation: &Operation) -> bool {
    match (operation.body(Secrets::Revealed), operation.body(Secrets::Masked)) {
        (Ok(revealed), Ok(masked)) => revealed != masked,
        _ => true,
    }
}

/// The plan as a document; none for one that cannot be applied. A masked one is for callers who do not see the secrets, so
/// that its digest confirms no guess.
pub(super) fn saved(
    store: &Store,
    planned: &PlanResult,
    source: &str,
    commit: Option<String>,
    secrets: Secrets<'_>,
) -> Result<Option<SavedPlan>, JsonError> {
    let protection = DigestProtection::Store(store.root_secret());
    let is_masked = matches!(secrets, Secrets::Masked);
    let conditions = PlanConditions { protection, source, commit, is_masked };
    planned.plan.as_ref().map(|plan| SavedPlan::new(plan, planned.desired.values(), &conditions)).transpose()
}

/// A plan's outcome; empty without a plan.
pub(super) fn outcome(saved: Option<&SavedPlan>) -> Result<String, JsonError> {
    saved.map_or_else(|| Ok(String::new()), SavedPlan::outcome)
}

/// Rejects changes of keys and owners that the caller may not administer (D99), and of what its scope does not reach.
pub(super) fn permit(caller: &Caller, planned: &PlanResult, current: &Snapshot) -> Result<(), ApiError> {
    planned.plan.as_ref().map_or(Ok(()), |plan| permit_changes(caller, plan, current))
}

/// Like [`permit`], for a plan without its result.
pub(super) fn permit_changes(caller: &Caller, plan: &Plan, current: &Snapshot) -> Result<(), ApiError> {
    // The body has no field for the operation.
    permission::allows_operations(caller, &plan.each_operation(), Some(&plan.stated), current)
        .map_err(|fault| caller.refused(fault.at(Path::root())))
}

/// Refuses a plan with refusals.
pub(super) fn check_refusals<'a>(refusals: impl IntoIterator<Item = &'a Diagnostic>) -> Result<(), ApiError> {
    ApiError::check(refusals.into_iter().map(fault))
}

/// A diagnostic as the fault of a request.
pub(super) fn fault(it: &Diagnostic) -> Fault {
    let (code, message) = match it.code {
        Name::Code(code) => (code, it.message.clone()),
        Name::Lint(name) => (Code::LintDenied, format!("{name}: {}", it.message)),
    };
    let place = it.position().map(|(file, line, column)| format!("{file}:{line}:{column}: "));
    let fault = Fault::new(code, place.unwrap_or_default() + &message);
    match &it.help {
        Some(help) => fault.help(help.clone()),
        None => fault,
    }
}

/// Records how an attempt to apply ended, and whether it has made a revision: in the metrics, and in the log and the history if it
/// failed.
pub(super) fn note_attempt(store: &Store, author: Author, began: Instant, applied: Result<bool, &ApiError>) {
    let result = match applied {
        Ok(true) => "applied",
        Ok(false) => "in_sync",
        Err(_) => "failed",
    };
    measure(result, began);
    if let Err(error) = applied {
        sync_log::refused(&author, error.code(), &error.message());
        let attempt = Attempt { began, ..Attempt::new(author) };
        if let Err(error) = store.note(attempt, Outcome::Refused, format!("{}: {}", error.code(), error.message())) {
            tracing::warn!(code = %error.code, "cannot record the attempt in the history: {error}");
        }
    }
}
