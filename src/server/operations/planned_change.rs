//! What requests have in common that plan and apply a change of the store without manifests: a rollback, a transfer, the end
//! of a source.

use std::time::Instant;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    model::{
        diagnostics::{
            code::Code,
            diagnostic::{Diagnostic, Name},
            fault::{Fault, MOST_FAULTS, Path},
        },
        json::JsonError,
        operation::Author,
    },
    plan::{
        format::json::ReportDocument,
        saved::{Guard, Pin, SavedPlan},
    },
    reconcile::{Planned, measure, sync_loop::sync_log},
    server::{
        auth::{
            caller::Caller,
            permission::{self, Intent},
        },
        http::response::{ApiError, ApiResult, json_response},
        limits::slots::{Lane, WorkPlace},
        openapi::{extension::ExtensionOperation, schemas::Schemas},
        state::AppState,
    },
    store::{Attempt, Store, commit::header::Outcome},
};

/// The result of a request to plan or apply a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ChangeRun {
    /// The report, in the format of `--format json`.
    #[serde(flatten)]
    pub report: ReportDocument,
    /// The digest of the plan's result, for `expect`.
    pub outcome: String,
}

/// The part of the OpenAPI document that these operations have in common.
pub(super) fn document(operation: ExtensionOperation, schemas: &mut Schemas, planned: &str) -> ExtensionOperation {
    let run = schemas.response::<ChangeRun>();
    operation.responds("200", planned, run.clone()).responds("201", "Applied as a new revision", run)
}

/// The fault of an `expect` that is empty: a script whose dry run has failed would apply any plan. Earlier versions of the
/// command line send it with each dry run, which applies nothing.
pub(super) fn empty_expectation(expect: Option<&str>, dry_run: bool) -> Option<Fault> {
    let is_empty = expect.is_some_and(str::is_empty) && !dry_run;
    let fault = is_empty.then(|| Fault::new(Code::InvalidFormat, "`expect` cannot be empty"))?;
    let help = "send the `outcome` of the reviewed dry run, or leave out `expect` to apply any plan";
    Some(fault.at(Path::root().join("expect")).help(help))
}

/// Takes a place to plan or apply.
pub(super) fn place(
    app: &AppState,
    caller: &Caller,
    intent: &Intent<'_>,
    dry_run: bool,
) -> Result<WorkPlace, ApiError> {
    app.admissions.reconciliations.enter(Some(&caller.owner), lane(app, caller, intent, dry_run))
}

/// The lane of a request to plan or apply. `intent` is to apply: the reserved places are for those who do, and can.
pub(super) fn lane(app: &AppState, caller: &Caller, intent: &Intent<'_>, dry_run: bool) -> Lane {
    let applies = !dry_run && permission::allows(caller, intent, &app.served.store.snapshot()).is_ok();
    if applies { Lane::Reserved } else { Lane::Shared }
}

/// Returns the digest of a plan's result; `what` says which change it is. A masked one is for callers who do not see the
/// secrets.
pub(super) fn outcome(app: &AppState, planned: &Planned, what: &str, masked: bool) -> Result<String, JsonError> {
    let Some(plan) = &planned.plan else { return Ok(String::new()) };
    let pin = Pin { guard: Guard::Store(app.served.store.root_secret()), source: what, commit: None };
    let desired = planned.desired.values();
    let saved = if masked { SavedPlan::masked(plan, desired, &pin) } else { SavedPlan::new(plan, desired, &pin) };
    saved?.outcome()
}

/// Refuses a plan that is not the one of the client's dry run.
pub(super) fn expected(is_expected: bool) -> Result<(), ApiError> {
    let message = "the plan is no longer the expected one: the store has changed since the dry run";
    match is_expected {
        true => Ok(()),
        false => Err(ApiError::new(Fault::new(Code::Stale, message).at(Path::root().join("expect")))),
    }
}

/// Refuses a plan with refusals.
pub(super) fn unrefused<'a>(refusals: impl IntoIterator<Item = &'a Diagnostic>) -> Result<(), ApiError> {
    ApiError::check(refusals.into_iter().take(MOST_FAULTS).map(fault).collect())
}

/// The refusal of a plan as the fault of a request.
pub(super) fn fault(refusal: &Diagnostic) -> Fault {
    let code = match refusal.code {
        Name::Code(code) => code,
        Name::Lint(_) => Code::LintDenied,
    };
    let fault = Fault::new(code, refusal.message.clone());
    match &refusal.help {
        Some(help) => fault.help(help.clone()),
        None => fault,
    }
}

/// Records how an attempt to apply ended: in the metrics, and in the log and the history if nothing was applied.
pub(super) fn note_attempt(store: &Store, author: Author, began: Instant, answer: &ApiResult) {
    let result = match answer {
        Ok(answer) if answer.status() == StatusCode::CREATED => "applied",
        Ok(_) => "in_sync",
        Err(_) => "failed",
    };
    measure(result, began);
    if let Err(error) = answer {
        sync_log::refused(&author, error.code(), &error.message());
        let attempt = Attempt { began, ..Attempt::new(author) };
        if let Err(error) = store.note(attempt, Outcome::Refused, error.message()) {
            tracing::warn!(code = %error.code, "cannot record the attempt in the history: {error}");
        }
    }
}

/// The response with a plan, and with its revision if it was applied.
pub(super) fn answer(command: &'static str, planned: &Planned, outcome: String, revision: Option<u64>) -> ApiResult {
    let mut report = planned.report(command);
    report.applied = revision;
    let run = ChangeRun { report: ReportDocument::from_report(&report), outcome };
    let status = if revision.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json_response(status, &run)?)
}
