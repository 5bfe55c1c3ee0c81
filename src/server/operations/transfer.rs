//! POST `/transfers`: moves resources from one source to another (D104).

use super::planned_change::{self, ChangeRequest, EndedChange, check_refusals, empty_expectation, permit};
use crate::model::Faults;
use crate::model::diagnostics::Check;
use crate::plan::transfer::Transfer;
use crate::reconcile::run::planned_change::PlannedChange;
use crate::reconcile::{PlanResult, check_new_source, check_source};
use crate::server::handler_prelude::*;

/// The path of the operation.
pub(crate) const PATH: &str = "/transfers";
/// The most resources that a request names. Whoever moves more moves whole edges, or the whole source.
const MOST_RESOURCES: usize = 1_000;

pub(super) static CREATE: ApiOperation = ApiOperation::post(PATH, Intent::Propose, |method| on(method, create))
    .named("Transfers", "createTransfer", "Plan or apply a transfer")
    .described("Plans the move of resources from one source to another, and applies it as a new revision, unless `dry_run` is set. Resources keep their identifiers and content. The manifests of the old source must no longer declare them; otherwise its next sync fails. Refusals of a dry run are the errors that would prevent applying the plan.")
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
    /// Whether the plan says how requests are treated differently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behaviour: bool,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Omit it to apply any plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

impl Check for TransferRequest {
    fn check(&self, faults: &mut Faults) {
        for (field, checked) in [("from", check_source(&self.from)), ("to", check_new_source(&self.to))] {
            faults.extend(checked.err().map(|fault| fault.at(field)));
        }
        if self.from == self.to {
            faults.report(Fault::new(Code::NotAllowed, "`from` and `to` are the same source").at("to"));
        }
        let refused = if self.all && !self.resources.is_empty() {
            Some(Fault::new(Code::NotAllowed, "`resources` must be empty if `all` is true"))
        } else if !self.all && self.resources.is_empty() {
            Some(Fault::new(Code::Required, "name the resources, or set `all` to true"))
        } else if self.resources.len() > MOST_RESOURCES {
            Some(Fault::new(Code::OutOfRange, format!("at most {MOST_RESOURCES} resources can be named")))
        } else {
            None
        };
        faults.extend(refused.map(|fault| fault.at("resources")));
        faults.extend(empty_expectation(self.expect.as_deref(), self.dry_run));
    }
}

/// Plans the transfer in the body, and applies it unless it is a dry run.
async fn create(
    State(app): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<TransferRequest>,
) -> ApiResult {
    // A client that is slow to send keeps nobody from a place.
    let place = planned_change::place(&app, &caller, &Intent::Apply(&request.from), request.dry_run)?;
    let run = move |_| {
        let TransferRequest { from, to, resources, dry_run, behaviour, expect, .. } = request;
        let subject = format!("transfer from `{from}` to `{to}`");
        let (app, headers, command) = (&app, &headers, "transfer");
        let request = ChangeRequest { app, headers, command, subject, dry_run, behaviour, expect };
        let transfer = Transfer { from, to, resources };
        let author = admit(&request, &transfer, &request.store().snapshot())?.author();
        request.run(author.clone(), || attempt(&request, &transfer, &author))?.response()
    };
    place.run(run).await
}

fn attempt(request: &ChangeRequest<'_>, transfer: &Transfer, author: &Author) -> EndedChange {
    if request.dry_run {
        let mut planned = transfer.plan(&request.store().snapshot());
        return request.answer(&mut planned, Secrets::Revealed, None);
    }
    let accept = |current: &Snapshot, planned: PlanResult| {
        // The key may have been revoked since the request arrived.
        permit(&admit(request, transfer, current)?, &planned, current)?;
        request.check_expected(&planned, None)?;
        check_refusals(planned.plan.iter().flat_map(|plan| &plan.refusals))?;
        Ok::<_, ApiError>(planned)
    };
    let (mut planned, revision) = transfer.apply(request.store(), author, accept)?;
    request.applied(author, &mut planned, revision)
}

/// The caller of a request, if it may plan or apply both sources.
fn admit(request: &ChangeRequest<'_>, transfer: &Transfer, current: &Snapshot) -> Result<Caller, ApiError> {
    request.admit(current, "from", &transfer.from)?;
    request.admit(current, "to", &transfer.to)
}
