//! POST `/rollbacks`: plans and applies the state of an earlier revision as a new one (D78).

use std::{collections::BTreeMap, time::Instant};

use axum::{extract::State, http::HeaderMap, routing::on};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    checks::JsonBody,
    operation::ApiOperation,
    planned_change::{self, answer, empty_expectation, expected, note_attempt, unrefused},
    reconciliation::{differs_in_secrets_only, tell_unreviewed},
};
use crate::{
    model::{
        diagnostics::{
            code::Code,
            fault::{Fault, MOST_FAULTS, Path},
        },
        id::Id,
        json::JsonError,
        key::Key,
        snapshot::Snapshot,
    },
    plan::{Plan, safety::Budget, saved::is_masked},
    reconcile::{Planned, check_source, run::rollback::Rollback, sync_loop::sync_log},
    server::{
        auth::{
            caller::Caller,
            permission::{self, Intent, Manner, Sight},
        },
        http::response::{ApiError, ApiResult},
        resources::at_revision,
        state::AppState,
    },
    store::Store,
    tenancy::{not_admitted, retaken_hostports},
};

pub(super) static CREATE: ApiOperation = ApiOperation::post("/rollbacks", Intent::Propose, |method| on(method, create))
    .named("Rollbacks", "createRollback", "Plan or apply a rollback")
    .described("Plans the changes that bring back the state of an earlier revision, and applies them as a new revision, unless `dry_run` is set. API keys and their owners stay as they are. Refusals of a dry run are the errors that would prevent applying the plan. A source that the server follows does not apply its manifests again until they change.")
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
    /// The deletion limit: a number of resources such as `20`, or a share of the resources such as `50%`; empty for the
    /// default.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: Budget,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Leave it out to apply any plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

impl RollbackRequest {
    fn faults(&self) -> Vec<Fault> {
        let named = Some(self.source.as_str()).filter(|source| !source.is_empty());
        let reason = named.and_then(|source| check_source(source).err());
        let fault = reason.map(|reason| Fault::new(Code::InvalidFormat, reason).at(Path::root().join("source")));
        fault.into_iter().chain(empty_expectation(self.expect.as_deref(), self.dry_run)).collect()
    }
}

/// Plans the rollback in the body, and applies it unless it is a dry run.
async fn create(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RollbackRequest>,
) -> ApiResult {
    ApiError::check(request.faults())?;
    let source = Some(request.source.as_str()).filter(|source| !source.is_empty());
    let intent = source.map_or(Intent::Change, Intent::Apply);
    // A client that is slow to send keeps nobody from a place.
    let place = planned_change::place(&app, &caller, &intent, request.dry_run)?;
    place.run(move |_| RollbackJob { app: &app, headers: &headers, request }.run()).await
}

/// A valid request.
struct RollbackJob<'a> {
    app: &'a AppState,
    /// The request's headers, which identify the caller.
    headers: &'a HeaderMap,
    request: RollbackRequest,
}

impl RollbackJob<'_> {
    fn run(&self) -> ApiResult {
        let (began, dry_run) = (Instant::now(), self.request.dry_run);
        let store: &Store = &self.app.served.store;
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
        note_attempt(store, rollback.attempted(Some(&caller)), began, &answer);
        answer
    }

    fn attempt(&self, store: &Store, rollback: &Rollback, caller: &(Id, Id)) -> ApiResult {
        let target = store.snapshot_at(rollback.to);
        let target = target.map_err(|error| at_revision::refused(error, "to"))?;
        if self.request.dry_run {
            let current = store.snapshot();
            let caller = self.admit(&current)?;
            let is_blind = Sight::from_caller(&caller).of_the_past() != Sight::Everything;
            let planned = match is_blind {
                true => rollback.masked_plan(&current, &target)?,
                false => rollback.plan(&current, &target),
            };
            // A key that only plans does so for whoever applies it.
            let applies = caller.scope.as_deref().is_some_and(|scope| scope.may_apply(&self.request.source));
            if let Some(plan) = planned.plan.as_ref().filter(|_| applies) {
                Self::admitted(&caller, plan, &planned, &current)?;
            }
            let outcome = self.outcome(&planned, is_blind)?;
            return answer("rollback", &planned, outcome, None);
        }
        let accept = |current: &Snapshot, mut planned: Planned| {
            // The key may have been revoked since the request arrived.
            let caller = self.admit(current)?;
            if let Some(plan) = &planned.plan {
                let manner = Manner::Planned { stated: &plan.stated };
                permission::allows_operations(&caller, &plan.each_operation(), manner, current)
                    .map_err(|fault| caller.refused(fault))?;
                Self::admitted(&caller, plan, &planned, current)?;
            }
            // Its dry run was for a caller who does not see all secrets.
            let expects_masked = self.request.expect.as_deref().is_some_and(is_masked);
            let masked = expects_masked.then(|| rollback.masked_plan(current, &target)).transpose()?;
            self.accept(&planned, masked.as_ref())?;
            if masked.is_some() {
                tell_unreviewed(&mut planned);
            }
            Ok::<_, ApiError>(planned)
        };
        let before = store.snapshot();
        let (planned, revision) = rollback.apply(store, &target, Some(caller), accept)?;
        if let (Some(plan), Some(revision)) = (&planned.plan, revision) {
            sync_log::applied(&rollback.attempted(Some(caller)), plan, revision);
        }
        if revision.is_some() {
            self.app.sources.following.note_rollback(store, &before, &store.snapshot());
        }
        let outcome = self.outcome(&planned, false)?;
        answer("rollback", &planned, outcome, revision)
    }

    /// The caller, if it has the permission.
    fn admit(&self, current: &Snapshot) -> Result<Caller, ApiError> {
        let source = Some(self.request.source.as_str()).filter(|source| !source.is_empty());
        let intent = match (self.request.dry_run, source) {
            (true, source) => Intent::PlanRollback(source),
            (false, Some(source)) => Intent::Apply(source),
            (false, None) => Intent::Change,
        };
        self.app.access.admit_again(current, &intent, self.headers)
    }

    /// Whether a key with a scope may bring back the routes and edges of a plan: routes on edges of others need their consent
    /// and the modules that they require, and hosts that others serve by now need consent, too (D103).
    fn admitted(caller: &Caller, plan: &Plan, planned: &Planned, current: &Snapshot) -> Result<(), ApiError> {
        let (Some(_), Some(tried)) = (&caller.scope, &planned.tried) else { return Ok(()) };
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
            refused.extend(source.iter().flat_map(|source| not_admitted(keys.iter().copied(), after, source)));
            refused.extend(retaken_hostports(keys.into_iter(), current, after, source));
        }
        let faults = refused.into_iter().take(MOST_FAULTS).map(|(_, fault)| fault.at(Path::root().join("to")));
        ApiError::check(faults.collect())
    }

    /// Whether a plan may run: it is the one that the client expects, and no limit refuses it.
    fn accept(&self, planned: &Planned, masked: Option<&Planned>) -> Result<(), ApiError> {
        let is_expected = match (&self.request.expect, masked) {
            (None, _) => true,
            (Some(expect), None) => self.outcome(planned, false)? == *expect,
            (Some(expect), Some(masked)) => {
                let plans = planned.plan.as_ref().zip(masked.plan.as_ref());
                plans.is_some_and(|(plan, masked)| differs_in_secrets_only(plan, masked))
                    && self.outcome(masked, true)? == *expect
            }
        };
        expected(is_expected)?;
        unrefused(planned.plan.iter().flat_map(|plan| &plan.refusals))
    }

    fn outcome(&self, planned: &Planned, masked: bool) -> Result<String, JsonError> {
        let RollbackRequest { to, source, .. } = &self.request;
        planned_change::outcome(self.app, planned, &format!("rollback to {to} of `{source}`"), masked)
    }
}
