//! GET `/proofs`: whether the invariants hold in the current revision (D120). Viewers can use it.

use crate::plan::proof_report::ProofReport;
use crate::server::handler_prelude::*;
use crate::store::clock;

/// The path.
pub(crate) const PATH: &str = "/proofs";

pub(super) static GET: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, get))
    .named("Administration", "proveInvariants", "Prove the invariants")
    .described("Returns for each invariant whether it holds for all requests in the current revision: proven, refuted by a request, dependent on what nobody can tell, or unused. It changes nothing; viewers can use it.")
    .documented("400 401 403 429 500", |operation, schemas| operation.ok(schemas.response::<ProofReport>()));

/// Proves the invariants.
async fn get(State(AppState { served, admissions, .. }): State<AppState>, caller: Caller) -> ApiResult {
    let place = admissions.renderings.for_owner(&caller.owner)?;
    let snapshot = served.store.snapshot();
    place.render(move || json_response(StatusCode::OK, &ProofReport::new(&snapshot, clock::now()))).await
}
