//! POST `/sources/{name}/destroy`: plans and applies the deletion of everything that a source owns (D108).

use std::time::Instant;

use axum::{
    extract::{Path as PathParameter, State},
    http::HeaderMap,
    routing::on,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    model::{
        diagnostics::{
            code::Code,
            diagnostic::{Diagnostic, Name},
            fault::{Fault, Path},
        },
        id::Id,
        json::JsonError,
        snapshot::Snapshot,
    },
    plan::{Plan, safety::Budget},
    reconcile::{Planned, run::destroy::Destroy, sync_loop::sync_log},
    server::{
        auth::{
            caller::Caller,
            permission::{self, Intent, Manner},
        },
        http::response::{ApiError, ApiResult},
        operations::{
            checks::JsonBody,
            operation::ApiOperation,
            planned_change::{self, answer, expected, fault, note_attempt, unrefused},
            reconciliation::{is_followed, wire::followed_message},
        },
        state::AppState,
        telemetry::security::note::{SecurityNote, people_changes},
    },
    store::Store,
};

pub(in crate::server::operations) static CREATE: ApiOperation = ApiOperation::post("/sources/{name}/destroy", Intent::Propose, |method| on(method, create))
    .named("Sources", "destroySource", "Plan or apply the deletion of a source")
    .described("Plans the deletion of everything that a source owns, and applies it as one revision, unless `dry_run` is set. Refusals of a dry run are the errors that would prevent applying the plan: protected resources, resources that others use, the deletion limit, and a source that the server follows. Without `dry_run`, `expect` must be the `outcome` of a dry run.")
    .documented("400 401 403 404 408 409 413 415 429 500 503", |operation, schemas| {
        let operation = operation.body(schemas.request::<DestroyRequest>(), json!({"dry_run": true}));
        planned_change::document(operation, schemas, "Planned")
    });

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

impl DestroyRequest {
    fn faults(&self) -> Vec<Fault> {
        if self.dry_run || !self.expect.is_empty() {
            return Vec::new();
        }
        let message = "`expect` is required: a source is destroyed only as a dry run has shown";
        let help = "send `dry_run` first, and then its `outcome` as `expect`";
        vec![Fault::new(Code::Required, message).help(help).at(Path::root().join("expect"))]
    }
}

/// Plans to destroy a source, and applies it unless it is a dry run.
async fn create(
    State(app): State<AppState>,
    PathParameter(name): PathParameter<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<DestroyRequest>,
) -> ApiResult {
    ApiError::check(request.faults())?;
    let place = planned_change::place(&app, &caller, &Intent::Apply(&name), request.dry_run)?;
    let destroy = Destroy { source: name, budget: request.max_deletes };
    place.run(move |_| DestroyJob { app: &app, headers: &headers, destroy, request }.run()).await
}

/// A valid request.
struct DestroyJob<'a> {
    app: &'a AppState,
    /// The request's headers, which identify the caller.
    headers: &'a HeaderMap,
    destroy: Destroy,
    request: DestroyRequest,
}

impl DestroyJob<'_> {
    fn run(&self) -> ApiResult {
        let (began, dry_run) = (Instant::now(), self.request.dry_run);
        let store: &Store = &self.app.served.store;
        let caller = self.caller(&store.snapshot())?;
        let caller = (caller.key, caller.owner);
        let answer = self.attempt(store, &caller);
        if dry_run {
            return answer;
        }
        note_attempt(store, self.destroy.author(Some(&caller)), began, &answer);
        answer
    }

    fn attempt(&self, store: &Store, caller: &(Id, Id)) -> ApiResult {
        if self.request.dry_run {
            let current = store.snapshot();
            let mut planned = self.destroy.plan(&current);
            self.permit(&current, &planned)?;
            let Some(plan) = &mut planned.plan else { return Err(no_plan()) };
            if let Some(missing) = plan.refusals.iter().find(|refusal| refusal.code == Name::Code(Code::NotFound)) {
                return Err(ApiError::new(fault(missing)));
            }
            plan.refusals.extend(self.followed());
            return answer("destroy", &planned, self.outcome(&planned)?, None);
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
            self.app.sources.following.request_syncs_after(&self.destroy.source, plan);
        }
        let mut response = answer("destroy", &planned, self.outcome(&planned)?, revision)?;
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
        let caller = self.app.access.admit_again(current, &Intent::Propose, self.headers)?;
        // The body has no field for the source.
        permission::allows(&caller, &intent, current).map_err(|fault| caller.refused(fault.at(Path::root())))?;
        self.app.access.check_share(&caller, &intent)?;
        Ok(caller)
    }

    /// Whether the caller may run a plan. The key may have been revoked since the request arrived.
    fn permit(&self, current: &Snapshot, planned: &Planned) -> Result<(), ApiError> {
        let caller = self.caller(current)?;
        if self.request.dry_run {
            return Ok(());
        }
        let none = Plan::default();
        let plan = planned.plan.as_ref().unwrap_or(&none);
        let manner = Manner::Planned { stated: &plan.stated };
        // The body has no field for the operation.
        permission::allows_operations(&caller, &plan.each_operation(), manner, current)
            .map_err(|fault| caller.refused(fault.at(Path::root())))
    }

    /// Whether a plan may run: it is the one that the client expects, the source is not followed, and nothing refuses it.
    fn accept(&self, planned: &Planned) -> Result<(), ApiError> {
        unrefused(self.followed().iter().chain(planned.plan.iter().flat_map(|plan| &plan.refusals)))?;
        expected(self.outcome(planned)? == self.request.expect)
    }

    /// The refusal of a source that the server reconciles itself: its next look would create everything again.
    fn followed(&self) -> Option<Diagnostic> {
        let source = &self.destroy.source;
        let help = "remove the source from the server's configuration first; its resources stay until it is destroyed";
        is_followed(self.app, source).then(|| Diagnostic::error(Code::Conflict, followed_message(source)).help(help))
    }

    fn outcome(&self, planned: &Planned) -> Result<String, JsonError> {
        planned_change::outcome(self.app, planned, &format!("destroy of `{}`", self.destroy.source), false)
    }
}

fn no_plan() -> ApiError {
    ApiError::internal()
}
