//! POST `/sources/{name}/destroy`: plans and applies the deletion of everything that a source owns (D108).

use axum::extract::Path as PathParameter;

use crate::model::diagnostics::Check;
use crate::model::{Faults, Name, Path};
use crate::plan::deletion_budget::DeletionBudget;
use crate::reconcile::PlanResult;
use crate::reconcile::run::destroy::Destroy;
use crate::reconcile::run::planned_change::PlannedChange;
use crate::reconcile::sync_loop::sync_log;
use crate::server::handler_prelude::*;
use crate::server::operations::planned_change::{self, ChangeRequest, EndedChange, check_refusals, fault, permit};
use crate::server::operations::reconciliation::wire::followed_message;

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
    /// Whether the plan says how requests are treated differently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behaviour: bool,
    /// The deletion limit: a number of resources such as `20`, or a share of the source's resources such as `50%`; empty for
    /// none.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: DeletionBudget,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Required unless `dry_run` is set.
    #[serde(default)]
    pub expect: String,
}

impl Check for DestroyRequest {
    fn check(&self, faults: &mut Faults) {
        if !self.dry_run && self.expect.is_empty() {
            let message = "`expect` is required to destroy a source";
            let help = "send a dry run first, and then its `outcome` as `expect`";
            faults.report(Fault::new(Code::Required, message).help(help).at("expect"));
        }
    }
}

/// Plans to destroy a source, and applies it unless it is a dry run.
async fn create(
    State(app): State<AppState>,
    PathParameter(source): PathParameter<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<DestroyRequest>,
) -> ApiResult {
    let place = planned_change::place(&app, &caller, &Intent::Apply(&source), request.dry_run)?;
    let run = move |_| {
        let DestroyRequest { dry_run, behaviour, max_deletes: budget, expect } = request;
        let subject = format!("destroy of `{source}`");
        let (app, headers, command, expect) = (&app, &headers, "destroy", Some(expect));
        let request = ChangeRequest { app, headers, command, subject, dry_run, behaviour, expect };
        let destroy = Destroy { source, budget };
        // The body has no field for the source.
        let caller = request.admit(&request.store().snapshot(), Path::root(), &destroy.source)?;
        let author = Author::destroy_of(&destroy.source).with_api_key(caller.key.clone(), caller.owner.clone());
        let mut note = None;
        let run = request.run(author.clone(), || attempt(&request, &destroy, &caller, &author, &mut note))?;
        run.response().map(|response| response::noted(response, note))
    };
    place.run(run).await
}

/// Plans or applies the deletion. `note` becomes that of a deletion of keys and owners.
fn attempt(
    request: &ChangeRequest<'_>,
    destroy: &Destroy,
    caller: &Caller,
    author: &Author,
    note: &mut Option<SecurityNote>,
) -> EndedChange {
    let (registry, store) = (&request.app.sources.registry, request.store());
    if request.dry_run {
        let current = store.snapshot();
        let mut planned = destroy.plan(&current);
        request.admit(&current, Path::root(), &destroy.source)?;
        let plan = planned.plan.as_mut().ok_or_else(ApiError::internal)?;
        if let Some(missing) = plan.refusals.iter().find(|refusal| refusal.code == Name::Code(Code::NotFound)) {
            return Err(ApiError::new(fault(missing)));
        }
        plan.refusals.extend(followed(registry, &destroy.source));
        return request.answer(&mut planned, Secrets::Revealed, None);
    }
    let accept = |current: &Snapshot, planned: PlanResult| {
        let admitted = request.admit(current, Path::root(), &destroy.source)?;
        let followed = followed(registry, &destroy.source);
        // As in a dry run. They name what others have in the resources, which nobody may delete with them.
        check_refusals(followed.iter().chain(planned.plan.iter().flat_map(|plan| &plan.refusals)))?;
        permit(&admitted, &planned, current)?;
        request.check_expected(&planned, None)?;
        Ok::<_, ApiError>(planned)
    };
    let (mut planned, revision) = destroy.apply(store, author, accept)?;
    let run = request.answer(&mut planned, Secrets::Revealed, revision)?;
    if let (Some(plan), Some(revision)) = (&planned.plan, revision) {
        sync_log::applied(author, plan, revision);
        registry.request_syncs_after(&destroy.source, plan);
        *note = SecurityNote::for_operations((&caller.key, &caller.owner), &plan.each_operation());
    }
    Ok(run)
}

/// The refusal of a source that the server reconciles itself: its next sync would create everything again.
fn followed(registry: &SourceRegistry, source: &str) -> Option<Diagnostic> {
    let help = "remove the source from the server's configuration first; its resources stay until it is destroyed";
    let is_configured = registry.is_configured(source);
    is_configured.then(|| Diagnostic::error(Code::Conflict, followed_message(source)).help(help))
}
