//! GET `/proofs`: whether the invariants hold in the current revision (D120). Viewers can use it.

use crate::plan::proof_report::ProofReport;
use crate::server::handler_prelude::*;

pub(crate) const PATH: &str = "/proofs";

pub(super) static GET: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, get))
    .named("Administration", "proveInvariants", "Prove the invariants")
    .described("Returns for each invariant whether it holds for all requests in the current revision: proven, refuted by a request, dependent on what nobody can tell, or unused. It changes nothing; viewers can use it.")
    .documented("400 401 403 429 500 503", |operation, schemas| operation.ok(schemas.response::<ProofReport>()));

/// Returns the answers that are known, if they are those of the current revision. Otherwise it proves the invariants, once for
/// all who ask meanwhile.
async fn get(State(app): State<AppState>, caller: Caller) -> ApiResult {
    let AppState { served, admissions, telemetry, .. } = app;
    if let Some(known) = telemetry.proofs.current(&served.store) {
        return blocking(move || json_response(StatusCode::OK, &*known.report)).await;
    }
    let place = admissions.proofs.for_owner(&caller.owner)?;
    place.run(move |_| json_response(StatusCode::OK, &*telemetry.proofs.refreshed(&served.store).report)).await
}
