//! POST `/transfers`: moves resources from one source to another (D104).

use std::time::Instant;

use axum::{extract::State, http::HeaderMap, routing::on};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    checks::JsonBody,
    operation::ApiOperation,
    planned_change::{self, answer, empty_expectation, expected, note_attempt, unrefused},
};
use crate::{
    model::{
        diagnostics::{
            code::Code,
            fault::{Fault, Path},
        },
        json::JsonError,
        snapshot::Snapshot,
    },
    plan::transfer::Transfer,
    reconcile::{
        Planned, check_new_source, check_source,
        run::transfer::{apply_transfer, plan_transfer},
        sync_loop::sync_log,
    },
    server::{
        auth::{
            caller::Caller,
            permission::{self, Intent, Manner},
        },
        http::response::{ApiError, ApiResult},
        state::AppState,
    },
};

/// The path of the operation.
pub(crate) const PATH: &str = "/transfers";
/// The most resources that a request names. Whoever moves more moves whole edges, or the whole source.
const MOST_RESOURCES: usize = 1_000;

pub(super) static CREATE: ApiOperation = ApiOperation::post(PATH, Intent::Propose, |method| on(method, create))
    .named("Transfers", "createTransfer", "Plan or apply a transfer")
    .described("Plans the move of resources from one source to another, and applies it as a new revision, unless `dry_run` is set. Resources keep their identifiers and content. The manifests of the old source must no longer declare them; otherwise its next run is an error. Refusals of a dry run are the errors that would prevent applying the plan.")
    .documented("400 401 403 404 408 409 413 415 429 500 503", |operation, schemas| {
        let example = json!({"from": "default", "to": "shop", "all": true, "dry_run": true});
        let operation = operation.body(schemas.request::<TransferRequest>(), example);
        planned_change::document(operation, schemas, "Planned, or no changes")
    });

/// Resources to move to another source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TransferCreate")]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferRequest {
    /// The source that owns the resources.
    #[schemars(length(min = 1, max = 255))]
    pub from: String,
    /// The source that owns them afterwards.
    #[schemars(length(min = 1, max = 255))]
    pub to: String,
    /// The resources, as `KIND/NAME` (a route as `HttpsEdgeRoute/EDGE/NAME`) or by ID. An edge moves with its routes.
    #[serde(default)]
    pub resources: Vec<String>,
    /// Move every resource of the source; `resources` must be empty.
    #[serde(default)]
    pub all: bool,
    /// Plan without changing anything.
    #[serde(default)]
    pub dry_run: bool,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Leave it out to apply any plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

impl TransferRequest {
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (field, checked) in [("from", check_source(&self.from)), ("to", check_new_source(&self.to))] {
            if let Err(reason) = checked {
                faults.push(Fault::new(Code::InvalidFormat, reason).at(Path::root().join(field)));
            }
        }
        if self.from == self.to {
            let fault = Fault::new(Code::NotAllowed, "`from` and `to` are the same source");
            faults.push(fault.at(Path::root().join("to")));
        }
        let resources = || Path::root().join("resources");
        if self.all && !self.resources.is_empty() {
            faults.push(Fault::new(Code::NotAllowed, "`resources` must be empty if `all` is true").at(resources()));
        } else if !self.all && self.resources.is_empty() {
            let fault = Fault::new(Code::Required, "name the resources, or set `all` to true");
            faults.push(fault.at(resources()));
        } else if self.resources.len() > MOST_RESOURCES {
            let fault = Fault::new(Code::OutOfRange, format!("at most {MOST_RESOURCES} resources can be named"));
            faults.push(fault.at(resources()));
        }
        faults.extend(empty_expectation(self.expect.as_deref(), self.dry_run));
        faults
    }
}

/// Plans the transfer in the body, and applies it unless it is a dry run.
async fn create(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<TransferRequest>,
) -> ApiResult {
    ApiError::check(request.faults())?;
    // A client that is slow to send keeps nobody from a place.
    let place = planned_change::place(&app, &caller, &Intent::Apply(&request.from), request.dry_run)?;
    place.run(move |_| TransferJob { app: &app, headers: &headers, request }.run()).await
}

/// A valid request.
struct TransferJob<'a> {
    app: &'a AppState,
    /// The request's headers, which identify the caller.
    headers: &'a HeaderMap,
    request: TransferRequest,
}

impl TransferJob<'_> {
    fn run(&self) -> ApiResult {
        let began = Instant::now();
        let caller = self.caller(&self.app.served.store.snapshot())?;
        let TransferRequest { from, to, resources, dry_run, .. } = self.request.clone();
        let transfer = Transfer { from, to, resources };
        if dry_run {
            let planned = plan_transfer(&transfer, &self.app.served.store.snapshot());
            return answer("transfer", &planned, self.outcome(&planned)?, None);
        }
        let answer = self.apply(&transfer, &caller);
        note_attempt(&self.app.served.store, caller.author(), began, &answer);
        answer
    }

    fn apply(&self, transfer: &Transfer, caller: &Caller) -> ApiResult {
        let accept = |current: &Snapshot, planned: Planned| {
            // The key may have been revoked since the request arrived.
            let caller = self.caller(current)?;
            self.accept(current, &caller, &planned)?;
            Ok::<_, ApiError>(planned)
        };
        let author = caller.author();
        let (planned, revision) = apply_transfer(transfer, &self.app.served.store, &author, accept)?;
        if let (Some(plan), Some(revision)) = (&planned.plan, revision) {
            sync_log::applied(&author, plan, revision);
            self.app.sources.following.iter().for_each(|following| following.request_sync());
        }
        answer("transfer", &planned, self.outcome(&planned)?, revision)
    }

    /// The caller of the request, if it may plan or apply both sources.
    fn caller(&self, current: &Snapshot) -> Result<Caller, ApiError> {
        let caller = self.app.access.admit_again(current, &Intent::Propose, self.headers)?;
        for (field, source) in [("from", &self.request.from), ("to", &self.request.to)] {
            let intent = if self.request.dry_run { Intent::Plan(source) } else { Intent::Apply(source) };
            let allowed = permission::allows(&caller, &intent, current);
            allowed.map_err(|fault| caller.refused(fault.at(Path::root().join(field))))?;
            self.app.access.check_share(&caller, &intent)?;
        }
        Ok(caller)
    }

    /// Whether a plan may run: the caller may change each resource, the plan is the expected one, and nothing refuses it.
    fn accept(&self, current: &Snapshot, caller: &Caller, planned: &Planned) -> Result<(), ApiError> {
        if let Some(plan) = &planned.plan {
            let manner = Manner::Planned { stated: &plan.stated };
            permission::allows_operations(caller, &plan.each_operation(), manner, current)
                .map_err(|fault| caller.refused(fault))?;
        }
        if let Some(expect) = &self.request.expect {
            expected(self.outcome(planned)? == *expect)?;
        }
        unrefused(planned.plan.iter().flat_map(|plan| &plan.refusals))
    }

    fn outcome(&self, planned: &Planned) -> Result<String, JsonError> {
        let TransferRequest { from, to, .. } = &self.request;
        planned_change::outcome(self.app, planned, &format!("transfer from `{from}` to `{to}`"), false)
    }
}
