//! POST `/rollbacks`: plans and applies the state of an earlier revision as a new one (D78).

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    http::{HeaderMap, Request as HttpRequest, StatusCode},
    response::Response,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    App,
    answer::ApiError,
    auth::{self, Caller},
    body::{self, Limits},
    openapi::{extension::ExtensionOperation, schemas::Schemas},
    past,
    permission::{self, Intent, Manner, Sight},
    query,
    reconciliation::{differs_in_secrets_only, json_response, tell_unreviewed},
};
use crate::{
    manifest::not_admitted,
    model::{
        code::Code,
        decode::decode,
        diagnostic::{Diagnostic, Name},
        fault::{Fault, MOST_FAULTS, Path},
        id::Id,
        json::JsonError,
        snapshot::Snapshot,
    },
    plan::{
        Plan,
        format::json::ReportDocument,
        safety::Budget,
        saved::{Guard, Pin, SavedPlan, is_masked},
    },
    reconcile::{Planned, check_source, measure, rollback::Rollback, sync_log},
    store::{Attempt, Store, history::Outcome},
};

/// The tag of the operation.
pub(super) const TAG: &str = "Rollbacks";

/// A revision to bring back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RollbackCreate")]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackRequest {
    /// The revision whose state is brought back as a new revision.
    pub to: u64,
    /// The source whose resources are rolled back; empty for all resources.
    #[serde(default)]
    #[schemars(length(max = 255))]
    pub source: String,
    /// Plan without changing anything.
    #[serde(default)]
    pub dry_run: bool,
    /// The deletion limit: a number of resources such as `20`, or a share of the resources such as `50%`; empty for the
    /// default.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: Budget,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Empty to apply any plan.
    #[serde(default)]
    pub expect: String,
}

/// The result of a rollback request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RollbackRun {
    /// The report, in the format of `--format json`.
    #[serde(flatten)]
    pub report: ReportDocument,
    /// The digest of the plan's result, for `expect`.
    pub outcome: String,
}

/// Plans the rollback in the body, and applies it unless it is a dry run.
pub(super) async fn create(app: Arc<App>, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    auth::admit(&app, &app.store.snapshot(), &Intent::Propose, &parts.headers)?;
    query::check(parts.uri.query(), &[])?;
    let (content, mut faults, _) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
    if content.root().is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    let (request, found) = decode::<RollbackRequest>(content.root(), None);
    faults.extend(found);
    let request = match request {
        Some(request) if faults.is_empty() => request,
        _ => return Err(ApiError::from_faults(faults)),
    };
    if !request.source.is_empty()
        && let Err(reason) = check_source(&request.source)
    {
        return Err(ApiError::new(Fault::new(Code::InvalidFormat, reason).at(Path::root().join("source"))));
    }
    // A client that is slow to send keeps nobody from a place.
    app.work.place()?.run(move |_| RollbackJob { app: &app, headers: &parts.headers, request }.run()).await
}

/// A valid request.
struct RollbackJob<'a> {
    app: &'a App,
    /// The request's headers, which identify the caller.
    headers: &'a HeaderMap,
    request: RollbackRequest,
}

impl RollbackJob<'_> {
    fn run(&self) -> Result<Response, ApiError> {
        let (began, dry_run) = (Instant::now(), self.request.dry_run);
        let store: &Store = &self.app.store;
        let Caller { key, owner, .. } = self.admit(&store.snapshot())?;
        let caller = (key, owner);
        let rollback = Rollback {
            to: self.request.to,
            source: Some(self.request.source.clone()).filter(|source| !source.is_empty()),
            budget: self.request.max_deletes,
        };
        let answer = self.attempt(store, &rollback, &caller);
        if dry_run {
            return answer;
        }
        if let Err(error) = &answer {
            let author = rollback.attempted(Some(&caller));
            sync_log::refused(&author, error.code(), &error.message());
            let attempt = Attempt { began, ..Attempt::new(author) };
            if let Err(error) = store.note(attempt, Outcome::Refused, error.message()) {
                tracing::warn!(code = %error.code, "cannot record the attempt in the history: {error}");
            }
        }
        let result = match &answer {
            Ok(answer) if answer.status() == StatusCode::CREATED => "applied",
            Ok(_) => "in_sync",
            Err(_) => "failed",
        };
        measure(result, began);
        answer
    }

    fn attempt(&self, store: &Store, rollback: &Rollback, caller: &(Id, Id)) -> Result<Response, ApiError> {
        let target = store.snapshot_at(rollback.to);
        let target = target.map_err(|error| past::refused(error, "to"))?;
        if self.request.dry_run {
            let current = store.snapshot();
            let is_blind = Sight::of(&self.admit(&current)?).of_the_past() != Sight::Everything;
            let planned = match is_blind {
                true => rollback.masked_plan(&current, &target)?,
                false => rollback.plan(&current, &target),
            };
            let outcome = self.outcome(&planned, is_blind)?;
            return self.answer(&planned, outcome, None);
        }
        let accept = |current: &Snapshot, mut planned: Planned| {
            // The key may have been revoked since the request arrived.
            let caller = self.admit(current)?;
            if let Some(plan) = &planned.plan {
                permission::allows_operations(&caller, &plan.each_operation(), Manner::Planned, current)
                    .map_err(|fault| caller.refused(fault))?;
                self.admitted(&caller, plan, &planned)?;
            }
            // Its dry run was for a caller who does not see all secrets.
            let expects_masked = is_masked(&self.request.expect);
            let masked = expects_masked.then(|| rollback.masked_plan(current, &target)).transpose()?;
            self.accept(&planned, masked.as_ref())?;
            if masked.is_some() {
                tell_unreviewed(&mut planned);
            }
            Ok::<_, ApiError>(planned)
        };
        let (planned, revision) = rollback.apply(store, &target, Some(caller), accept)?;
        if let (Some(plan), Some(revision)) = (&planned.plan, revision) {
            sync_log::applied(&rollback.attempted(Some(caller)), plan, revision);
        }
        if revision.is_some() {
            self.app.following.iter().for_each(|following| following.look());
        }
        let outcome = self.outcome(&planned, false)?;
        self.answer(&planned, outcome, revision)
    }

    /// The caller, if it has the permission.
    fn admit(&self, current: &Snapshot) -> Result<Caller, ApiError> {
        let source = Some(self.request.source.as_str()).filter(|source| !source.is_empty());
        let intent = match (self.request.dry_run, source) {
            (true, source) => Intent::PlanRollback(source),
            (false, Some(source)) => Intent::Apply(source),
            (false, None) => Intent::Change,
        };
        auth::admit_again(self.app, current, &intent, self.headers)
    }

    /// Whether a key with a scope may bring back the routes of a plan: those on edges of others need their consent (D103).
    fn admitted(&self, caller: &Caller, plan: &Plan, planned: &Planned) -> Result<(), ApiError> {
        let (Some(_), Some(tried)) = (&caller.scope, &planned.tried) else { return Ok(()) };
        let keys = plan.changes.iter().map(|change| &change.key);
        let refused = not_admitted(keys, tried.after(), &self.request.source);
        match refused.is_empty() {
            true => Ok(()),
            false => {
                let faults = refused.into_iter().take(MOST_FAULTS).map(|(_, fault)| fault.at(Path::root().join("to")));
                Err(ApiError::from_faults(faults.collect()))
            }
        }
    }

    /// Whether a plan may run: it is the one that the client expects, and no limit refuses it.
    fn accept(&self, planned: &Planned, masked: Option<&Planned>) -> Result<(), ApiError> {
        let expect = &self.request.expect;
        let is_expected = match masked {
            _ if expect.is_empty() => true,
            None => self.outcome(planned, false)? == *expect,
            Some(masked) => {
                let plans = planned.plan.as_ref().zip(masked.plan.as_ref());
                plans.is_some_and(|(plan, masked)| differs_in_secrets_only(plan, masked))
                    && self.outcome(masked, true)? == *expect
            }
        };
        if !is_expected {
            let message = "the plan is no longer the expected one: the store has changed since the dry run";
            return Err(ApiError::new(Fault::new(Code::Stale, message).at(Path::root().join("expect"))));
        }
        let refusals = planned.plan.as_ref().map(|plan| plan.refusals.as_slice()).unwrap_or_default();
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(ApiError::from_faults(refusals.iter().take(MOST_FAULTS).map(fault).collect())),
        }
    }

    fn outcome(&self, planned: &Planned, masked: bool) -> Result<String, JsonError> {
        let RollbackRequest { to, source, .. } = &self.request;
        let what = format!("rollback to {to} of `{source}`");
        let pin = Pin { guard: Guard::Store(self.app.store.root_secret()), source: &what, commit: None };
        let Some(plan) = &planned.plan else { return Ok(String::new()) };
        let desired = planned.desired.values();
        let saved = if masked { SavedPlan::masked(plan, desired, &pin) } else { SavedPlan::new(plan, desired, &pin) };
        saved?.outcome()
    }

    fn answer(&self, planned: &Planned, outcome: String, revision: Option<u64>) -> Result<Response, ApiError> {
        let mut report = planned.report("rollback");
        report.applied = revision;
        let run = RollbackRun { report: ReportDocument::of(&report), outcome };
        let status = if revision.is_some() { StatusCode::CREATED } else { StatusCode::OK };
        Ok(json_response(status, &run)?)
    }
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

/// An example request.
fn example() -> Value {
    json!({"to": 1, "dry_run": true})
}

/// The path with its operation.
pub(super) fn path(schemas: &mut Schemas) -> (String, Value) {
    let run = schemas.response::<RollbackRun>();
    let post = ExtensionOperation::new(
        TAG,
        "createRollback",
        "Plan or apply a rollback",
        "Plans the changes that bring back the state of an earlier revision, and applies them as a new revision, unless `dry_run` is set. API keys and their owners stay as they are. Refusals of a dry run are the errors that would prevent applying the plan. A source that the server follows does not apply its manifests again until they change.",
    )
    .body(schemas.request::<RollbackRequest>(), example())
    .responds("200", "Planned, or no changes", run.clone())
    .responds("201", "Applied as a new revision", run)
    .fails(&["400", "401", "403", "404", "408", "409", "410", "413", "415", "429", "500", "503"]);
    ("/rollbacks".to_owned(), json!({"post": post.build()}))
}
