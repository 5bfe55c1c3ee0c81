//! POST `/sources/{name}/destroy`: plans and applies the deletion of everything that a source owns (D108).

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
    super::{
        App,
        answer::ApiError,
        auth::{self, Caller},
        body::{self, Limits},
        openapi::{extension::ExtensionOperation, schemas::Schemas},
        permission::{self, Intent, Manner},
        query,
        reconciliation::{is_followed, json_response, wire::followed_message},
        rollback::fault,
        security::note::{SecurityNote, people_changes},
    },
    document::TAG,
};
use crate::{
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
        saved::{Guard, Pin, SavedPlan},
    },
    reconcile::{Planned, destroy::Destroy, measure, sync_log},
    store::{Attempt, Store, history::Outcome},
};

/// How a source is destroyed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SourceDestroy")]
#[serde(deny_unknown_fields)]
pub(crate) struct DestroyRequest {
    /// Plan without changing anything.
    #[serde(default)]
    pub dry_run: bool,
    /// The deletion limit: a number of resources such as `20`, or a share of the source's resources such as `50%`; empty for
    /// none.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: Budget,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Required unless `dry_run` is set.
    #[serde(default)]
    pub expect: String,
}

/// The result of a request to destroy a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SourceDestroyRun")]
pub(crate) struct DestroyRun {
    /// The report, in the format of `--format json`.
    #[serde(flatten)]
    pub report: ReportDocument,
    /// The digest of the plan's result, for `expect`.
    pub outcome: String,
}

/// Plans the end of a source, and applies it unless it is a dry run.
pub(crate) async fn create(app: Arc<App>, name: String, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    auth::admit(&app, &app.store.snapshot(), &Intent::Propose, &parts.headers)?;
    query::check(parts.uri.query(), &[])?;
    let (content, mut faults, _) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
    if content.root().is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    let (request, found) = decode::<DestroyRequest>(content.root(), None);
    faults.extend(found);
    let request = match request {
        Some(request) if faults.is_empty() => request,
        _ => return Err(ApiError::from_faults(faults)),
    };
    if !request.dry_run && request.expect.is_empty() {
        let fault =
            Fault::new(Code::Required, "`expect` is required: a source is destroyed only as a dry run has shown");
        let fault = fault.help("send `dry_run` first, and then its `outcome` as `expect`");
        return Err(ApiError::new(fault.at(Path::root().join("expect"))));
    }
    let destroy = Destroy { source: name, budget: request.max_deletes };
    app.work.place()?.run(move |_| DestroyJob { app: &app, headers: &parts.headers, destroy, request }.run()).await
}

/// A valid request.
struct DestroyJob<'a> {
    app: &'a App,
    /// The request's headers, which identify the caller.
    headers: &'a HeaderMap,
    destroy: Destroy,
    request: DestroyRequest,
}

impl DestroyJob<'_> {
    fn run(&self) -> Result<Response, ApiError> {
        let (began, dry_run) = (Instant::now(), self.request.dry_run);
        let store: &Store = &self.app.store;
        let caller = self.caller(&store.snapshot())?;
        let caller = (caller.key, caller.owner);
        let answer = self.attempt(store, &caller);
        if dry_run {
            return answer;
        }
        if let Err(error) = &answer {
            let author = self.destroy.author(Some(&caller));
            sync_log::refused(&author, error.code(), &error.message());
            let attempt = Attempt { began, ..Attempt::new(author) };
            if let Err(error) = store.note(attempt, Outcome::Refused, error.message()) {
                tracing::warn!(code = %error.code, "cannot record the attempt in the history: {error}");
            }
        }
        measure(if answer.is_ok() { "applied" } else { "failed" }, began);
        answer
    }

    fn attempt(&self, store: &Store, caller: &(Id, Id)) -> Result<Response, ApiError> {
        if self.request.dry_run {
            let current = store.snapshot();
            let mut planned = self.destroy.plan(&current);
            self.permit(&current, &planned)?;
            let Some(plan) = &mut planned.plan else { return Err(no_plan()) };
            if let Some(missing) = plan.refusals.iter().find(|refusal| refusal.code == Name::Code(Code::NotFound)) {
                return Err(ApiError::new(fault(missing)));
            }
            plan.refusals.extend(self.followed());
            return self.answer(&planned, None);
        }
        let accept = |current: &Snapshot, planned: Planned| {
            self.permit(current, &planned)?;
            self.accept(&planned)?;
            Ok::<_, ApiError>(planned)
        };
        let (planned, revision) = self.destroy.apply(store, Some(caller), accept)?;
        let Some(plan) = &planned.plan else { return Err(no_plan()) };
        if let Some(revision) = revision {
            sync_log::applied(&self.destroy.author(Some(caller)), plan, revision);
            self.app.following.look_after(&self.destroy.source, plan);
        }
        let mut response = self.answer(&planned, revision)?;
        let changes = people_changes(&plan.each_operation());
        if revision.is_some() && !changes.is_empty() {
            let (key, owner) = caller.clone();
            response.extensions_mut().insert(SecurityNote::changes(key, owner, changes));
        }
        Ok(response)
    }

    /// The caller of the request, if it may plan or apply the source.
    fn caller(&self, current: &Snapshot) -> Result<Caller, ApiError> {
        let source = self.destroy.source.as_str();
        let intent = if self.request.dry_run { Intent::Plan(source) } else { Intent::Apply(source) };
        let caller = auth::admit_again(self.app, current, &Intent::Propose, self.headers)?;
        // The body has no field for the source.
        permission::allows(&caller, &intent, current).map_err(|fault| caller.refused(fault.at(Path::root())))?;
        Ok(caller)
    }

    /// Whether the caller may run a plan. The key may have been revoked since the request arrived.
    fn permit(&self, current: &Snapshot, planned: &Planned) -> Result<(), ApiError> {
        let caller = self.caller(current)?;
        if self.request.dry_run {
            return Ok(());
        }
        let operations = planned.plan.as_ref().map(Plan::each_operation).unwrap_or_default();
        // The body has no field for the operation.
        permission::allows_operations(&caller, &operations, Manner::Planned, current)
            .map_err(|fault| caller.refused(fault.at(Path::root())))
    }

    /// Whether a plan may run: it is the one that the client expects, the source is not followed, and nothing refuses it.
    fn accept(&self, planned: &Planned) -> Result<(), ApiError> {
        let refusals = planned.plan.as_ref().map(|plan| plan.refusals.as_slice()).unwrap_or_default();
        let refused: Vec<Fault> = self.followed().iter().chain(refusals).take(MOST_FAULTS).map(fault).collect();
        if !refused.is_empty() {
            return Err(ApiError::from_faults(refused));
        }
        if self.outcome(planned)? != self.request.expect {
            let message = "the plan is no longer the expected one: the store has changed since the dry run";
            return Err(ApiError::new(Fault::new(Code::Stale, message).at(Path::root().join("expect"))));
        }
        Ok(())
    }

    /// The refusal of a source that the server reconciles itself: its next look would create everything again.
    fn followed(&self) -> Option<Diagnostic> {
        let source = &self.destroy.source;
        let help = "remove the source from the server's configuration first; its resources stay until it is destroyed";
        is_followed(self.app, source).then(|| Diagnostic::error(Code::Conflict, followed_message(source)).help(help))
    }

    fn outcome(&self, planned: &Planned) -> Result<String, JsonError> {
        let what = format!("destroy of `{}`", self.destroy.source);
        let pin = Pin { guard: Guard::Store(self.app.store.root_secret()), source: &what, commit: None };
        let Some(plan) = &planned.plan else { return Ok(String::new()) };
        SavedPlan::new(plan, planned.desired.values(), &pin)?.outcome()
    }

    fn answer(&self, planned: &Planned, revision: Option<u64>) -> Result<Response, ApiError> {
        let mut report = planned.report("destroy");
        report.applied = revision;
        let run = DestroyRun { report: ReportDocument::of(&report), outcome: self.outcome(planned)? };
        let status = if revision.is_some() { StatusCode::CREATED } else { StatusCode::OK };
        Ok(json_response(status, &run)?)
    }
}

fn no_plan() -> ApiError {
    ApiError::of(Code::Internal, "internal error while handling the request")
}

/// The path with its operation.
pub(super) fn path(schemas: &mut Schemas) -> (String, Value) {
    let run = schemas.response::<DestroyRun>();
    let post = ExtensionOperation::new(
        TAG,
        "destroySource",
        "Plan or apply the deletion of a source",
        "Plans the deletion of everything that a source owns, and applies it as one revision, unless `dry_run` is set. Refusals of a dry run are the errors that would prevent applying the plan: protected resources, resources that others use, the deletion limit, and a source that the server follows. Without `dry_run`, `expect` must be the `outcome` of a dry run.",
    )
    .body(schemas.request::<DestroyRequest>(), json!({"dry_run": true}))
    .responds("200", "Planned", run.clone())
    .responds("201", "Applied as a new revision", run)
    .fails(&["400", "401", "403", "404", "408", "409", "413", "415", "429", "500", "503"]);
    ("/sources/{name}/destroy".to_owned(), json!({"post": post.build()}))
}
