//! GET `/routing`: the edges and routes of a revision, with their modules and without secrets, and the IP restrictions of all
//! endpoints. A client that replays logs routes millions of requests itself: it cannot ask the server about each, and the server
//! must not get the logs.

use super::routing_report::RoutingState;
use crate::server::handler_prelude::*;
use crate::server::http::page::AT;
use crate::server::resources::at_revision;

pub(crate) const PATH: &str = "/routing";

pub(super) static GET: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, get))
    .query(&[QueryParameter(AT, || {
        json!({
            "description": "The number of a revision, or at least 7 digits of the ID of a Git commit that one was applied from.",
            "schema": {"type": "string"},
        })
    })])
    .named("Administration", "getRoutingState", "Get what routes requests")
    .described("Returns all edges and routes of the current or an earlier revision with their modules, and the enforced IP restrictions of all endpoints, as manifests have them, to route requests elsewhere. Secrets are masked; viewers can use it.")
    .documented("400 401 403 404 410 429 500 503", |operation, schemas| operation.ok(schemas.response::<RoutingState>()));

/// Returns what routes requests.
async fn get(State(app): State<AppState>, RawQuery(query): RawQuery, caller: Caller) -> ApiResult {
    let current = app.served.store.snapshot();
    let query = query.unwrap_or_default();
    let (state, _, held) = at_revision::state(&app, &caller.owner, current, &query).await?;
    let place = app.admissions.reconciliations.for_owner(&caller.owner)?;
    let run = move |_| {
        let response = json_response(StatusCode::OK, &RoutingState::new(&state)?);
        drop(held);
        response
    };
    place.run(run).await
}
