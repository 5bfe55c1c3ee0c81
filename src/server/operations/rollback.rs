//! POST `/rollbacks`: plans and applies the state of an earlier revision as a new one (D78).

use super::planned_change::{
    self, ChangeRequest, ChangeRun, EndedChange, check_refusals, empty_expectation, permit, warn_unreviewed,
};
use crate::model::Faults;
use crate::model::diagnostics::Check;
use crate::plan::deletion_budget::DeletionBudget;
use crate::plan::saved_plan::is_masked;
use crate::reconcile::run::planned_change::PlannedChange;
use crate::reconcile::run::rollback::Rollback;
use crate::reconcile::{PlanResult, check_source};
use crate::server::handler_prelude::*;
use crate::server::resources::at_revision;
use crate::tenancy::{not_admitted, retaken_hostports};

pub(super) static CREATE: ApiOperation = ApiOperation::post("/rollbacks", Intent::Propose, |method| on(method, create))
    .named("Rollbacks", "createRollback", "Plan or apply a rollback")
    .described("Plans the changes that bring back the state of an earlier revision, and applies them as a new revision, unless `dry_run` is set. API keys and their owners stay as they are. Refusals of a dry run are the errors that would prevent applying the plan. If the server follows a source, the manifests that the rollback undid are not applied until they change.")
    .documented("400 401 403 404 408 409 410 413 415 429 500 503", |operation, schemas| {
        let operation = operation.body(schemas.request::<RollbackRequest>(), json!({"to": 1, "dry_run": true}));
        planned_change::document(operation, schemas, "Planned, or no changes")
    });

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
    /// Whether the plan says how requests are treated differently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behaviour: bool,
    /// The deletion limit: a number of resources such as `20`, or a share of the resources such as `50%`; empty for the
    /// default.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: DeletionBudget,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Omit it to apply any plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

impl Check for RollbackRequest {
    fn check(&self, faults: &mut Faults) {
        let of_source = self.source().and_then(|source| check_source(source).err());
        faults.extend(of_source.map(|fault| fault.at("source")));
        faults.extend(empty_expectation(self.expect.as_deref(), self.dry_run));
    }
}

impl RollbackRequest {
    /// The source, if the rollback is limited to one.
    pub(crate) fn source(&self) -> Option<&str> {
        Some(self.source.as_str()).filter(|source| !source.is_empty())
    }
}

/// Plans the rollback in the body, and applies it unless it is a dry run.
async fn create(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RollbackRequest>,
) -> ApiResult {
    create_and(app, caller, headers, request, |run| run.response()).await
}

/// Plans or applies a rollback, and makes something else of the result, which has the whole plan, in the same place.
pub(in crate::server) async fn create_and<T: Send + 'static>(
    app: AppState,
    caller: Caller,
    headers: HeaderMap,
    request: RollbackRequest,
    then: impl FnOnce(ChangeRun) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    // The dashboard sends no JSON body, which would be checked.
    ApiError::check(request.faults())?;
    // A client that is slow to send keeps nobody from a place.
    let intent = request.source().map_or(Intent::Change, Intent::Apply);
    let place = planned_change::place(&app, &caller, &intent, request.dry_run)?;
    let run = move |_: Cancel| {
        let RollbackRequest { to, source, dry_run, behaviour, max_deletes: budget, expect } = request;
        let subject = format!("rollback to {to} of `{source}`");
        let source = Some(source).filter(|source| !source.is_empty());
        let (app, headers, command) = (&app, &headers, "rollback");
        let request = ChangeRequest { app, headers, command, subject, dry_run, behaviour, expect };
        let Caller { key, owner, .. } = admit(&request, source.as_deref(), &request.store().snapshot())?;
        let author = Author::rollback_to(to, source.clone()).with_api_key(key, owner);
        then(request.run(author.clone(), || {
            let target = request.store().snapshot_at(to).map_err(|error| at_revision::refused(error, "to"))?;
            attempt(&request, &Rollback { target, source, budget }, &author)
        })?)
    };
    place.run(run).await
}

fn attempt(request: &ChangeRequest<'_>, rollback: &Rollback, author: &Author) -> EndedChange {
    let (store, source) = (request.store(), rollback.source.as_deref());
    if request.dry_run {
        let current = store.snapshot();
        let caller = admit(request, source, &current)?;
        let is_blind = SecretVisibility::from_caller(&caller).for_earlier_state() != SecretVisibility::Everything;
        let mut planned = match is_blind {
            true => rollback.masked_plan(&current)?,
            false => rollback.plan(&current),
        };
        // A key that only plans does so for whoever applies it.
        if caller.scope.as_deref().is_some_and(|scope| scope.may_apply(source.unwrap_or_default())) {
            check_consents(&caller, rollback, &planned, &current)?;
        }
        let secrets = if is_blind { Secrets::Masked } else { Secrets::Revealed };
        return request.answer(&mut planned, secrets, None);
    }
    let accept = |current: &Snapshot, mut planned: PlanResult| {
        // The key may have been revoked since the request arrived.
        let caller = admit(request, source, current)?;
        permit(&caller, &planned, current)?;
        check_consents(&caller, rollback, &planned, current)?;
        // Its dry run was for a caller who does not see all secrets.
        let expects_masked = request.expect.as_deref().is_some_and(is_masked);
        let masked = expects_masked.then(|| rollback.masked_plan(current)).transpose()?;
        request.check_expected(&planned, masked.as_ref())?;
        check_refusals(planned.plan.iter().flat_map(|plan| &plan.refusals))?;
        if masked.is_some() {
            warn_unreviewed(&mut planned);
        }
        Ok::<_, ApiError>(planned)
    };
    let before = store.snapshot();
    let (mut planned, revision) = rollback.apply(store, author, accept)?;
    if revision.is_some() {
        request.app.sources.registry.note_rollback(store, &before, &store.snapshot());
    }
    request.applied(author, &mut planned, revision)
}

/// The caller, if it has the permission.
fn admit(request: &ChangeRequest<'_>, source: Option<&str>, current: &Snapshot) -> Result<Caller, ApiError> {
    let intent = match (request.dry_run, source) {
        (true, source) => Intent::PlanRollback(source),
        (false, Some(source)) => Intent::Apply(source),
        (false, None) => Intent::Change,
    };
    request.app.access.admit_again(current, &intent, request.headers)
}

/// Checks whether a key with a scope may bring back the routes and edges of a plan: routes on edges of others need their
/// consent and the modules that they require, and hosts that others serve by now need consent, too (D103). Routes that lose their
/// source need the modules of edges that are not of the source of the rollback.
fn check_consents(
    caller: &Caller,
    rollback: &Rollback,
    planned: &PlanResult,
    current: &Snapshot,
) -> Result<(), ApiError> {
    let (Some(_), Some(plan), Some(tried)) = (&caller.scope, &planned.plan, &planned.tried) else { return Ok(()) };
    let after = tried.after();
    let mut by_source: BTreeMap<Option<&str>, Vec<&Key>> = BTreeMap::new();
    for change in &plan.changes {
        if let Some(entry) = after.get(&change.key) {
            let source = entry.claim.as_deref().map(|claim| claim.source.as_str());
            by_source.entry(source).or_default().push(&change.key);
        }
    }
    let mut refused = Vec::new();
    for (source, keys) in by_source {
        let own = source.or(rollback.source.as_deref()).unwrap_or_default();
        refused.extend(not_admitted(keys.iter().copied(), after, own));
        refused.extend(retaken_hostports(keys.into_iter(), current, after, source));
    }
    ApiError::check(refused.into_iter().map(|(_, fault)| fault.at("to")))
}
