//! POST `/reconciliations`: plans and applies sent manifests as one revision (D24, D45). [`records`] has those of the history.
//!
//! A review is identified by the outcome of its plan and not by the revision of the store: unrelated changes between
//! the dry run and the apply do not matter ([`is_expected`](super::planned_change::is_expected)).

mod checked_request;
pub(crate) mod files;
mod job;
pub(in crate::server) mod kept_plans;
pub(super) mod records;
mod review;
mod upload;
pub(crate) mod wire;

use super::checks::decode_required;
use crate::server::handler_prelude::*;
use crate::server::http::body::{self, Limits};
use crate::server::replicas::forwarder::OutgoingRequest;
use checked_request::CheckedRequest;
use job::ReconciliationJob;
use upload::Upload;
use wire::{PATH, ReconciliationRequest, ReconciliationRun};

/// The manifest of the example.
const MANIFEST: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n";

pub(super) static CREATE: ApiOperation = ApiOperation::post(PATH, Intent::Propose, |method| on(method, create))
    .forwarding_itself()
    .named("Reconciliations", "createReconciliation", "Plan or apply manifests")
    .described("Plans manifests and applies the plan as one revision, unless `dry_run` is set. A dry run responds with 200: its diagnostics and refusals are the errors that would prevent applying the plan. If the server lacks the text of a file with a `digest`, it responds with 409 and `ERR_EDGEWRIGHT_MISSING_FILES`, plans and changes nothing, and keeps the texts of the request for the next one. With `compare`, a dry run returns the changes from the files with `older` to the others; with `trace`, it also returns how a request is routed before and after the plan, and with `routing` the edges and routes that route requests. With `behaviour`, the plan says which requests are treated differently; with `proofs`, a dry run also returns which invariants hold. With `page`, the plan of a dry run has a page in the dashboard, and the response its address.")
    .documented("400 401 403 408 409 413 415 429 500 503", |operation, schemas| {
        let example =
            json!({"dry_run": true, "source": "example", "files": [{"name": "example.yaml", "text": MANIFEST}]});
        let run = schemas.response::<ReconciliationRun>();
        operation
            .body(schemas.request::<ReconciliationRequest>(), example)
            .responds("200", "Planned, or no changes", run.clone())
            .responds("201", "Applied as a new revision", run)
            .header("201", "Location", "Its address.")
    });

/// Plans what the manifests in the body ask for, and applies it unless it is a dry run. A server that follows forwards what applies
/// something (D115), and plans that get a page: only the server that writes keeps them. Without that one, it plans itself.
async fn create(State(app): State<AppState>, caller: Caller, request: Request) -> ApiResult {
    let (parts, body) = request.into_parts();
    let mut upload = Upload::receive(&app, &caller, &parts.headers, body).await?;
    let head = upload.head().await?;
    let gets_page = head.is_dry_run() && head.wants_page() && app.has_dashboard;
    if app.forwarder.is_needed() && (!head.is_dry_run() || gets_page) {
        let (body, place) = upload.to_forward();
        let outgoing = OutgoingRequest { upload: place, ..OutgoingRequest::new(Some(&caller.owner), &parts, body) };
        let forwarded = Box::pin(app.forwarder.forward(&app.admissions.forwards, outgoing)).await;
        if !head.is_dry_run() || forwarded.as_ref().is_ok_and(|response| is_of_plan(response.status())) {
            return forwarded;
        }
    }
    let place = upload.place(&app, &caller, &head)?;
    let headers = parts.headers;
    let run = move |cancel: Cancel| {
        // From here on, the number of runs limits the memory for it.
        let bytes = upload.into_bytes();
        let caller = app.access.admit_again(&app.served.store.snapshot(), &Intent::Propose, &headers)?;
        let (content, faults) = body::parse(&bytes, Limits::MANIFESTS)?;
        let request = decode_required::<ReconciliationRequest>(content, faults)?;
        ReconciliationJob::new(&app, headers, caller, CheckedRequest::new(request)?, cancel)?.run()
    };
    place.run(run).await
}

/// Whether a status of another server is about the request, and not about that server.
fn is_of_plan(status: StatusCode) -> bool {
    !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS
}
