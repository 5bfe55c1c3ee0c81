//! Query parameters: none is ignored where that could show or change more than was asked for (D56).

use edgewright::server::{Action, Endpoint, endpoints};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};

#[test]
fn unknown_parameters_are_refused() {
    hold(rows());
}

/// Whether an endpoint has any query parameter; all others refuse every query.
fn has_parameters(endpoint: &Endpoint) -> bool {
    let is_new_key = endpoint.action == Action::Create && endpoint.path == "/api_keys";
    is_new_key || matches!(endpoint.action, Action::List | Action::Get | Action::GetModule(_))
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = endpoints()
        .into_iter()
        .map(|endpoint| {
            let call = format!("{} {}?color=red", endpoint.method, endpoint.path.replace(['{', '}'], ""));
            let field = if has_parameters(&endpoint) { "/color" } else { "" };
            let refused = row(format!("{call} is refused, before the body is read"))
                .send_bytes(&call, "{")
                .fails(400, "PARAMETER", field)
                .says("unknown query parameter `color`")
                .send_bytes(&call, "{")
                .without("Service-Version")
                .fails(400, "VERSION_HEADER", "");
            match endpoint.method {
                "GET" => refused,
                _ => refused.send_bytes(&call, "{").by("viewer").fails(403, "FORBIDDEN", ""),
            }
        })
        .collect();
    rows.extend([
        row("a misspelt parameter of a list gets the nearest known one")
            .refuses_query("GET /api_keys?limt=1", "/limt")
            .says("did you mean `limit`?")
            .refuses_query("GET /api_keys?before=ak_x&limits=1", "/before")
            .also("PARAMETER", "/limits")
            .refuses_query("GET /api_keys?color=red&color=blue", "/color")
            .says("use one of `limit`, `before_id`"),
        row("an unknown parameter comes before what does not exist")
            .refuses_query("GET /api_keys/ak_unknown?limit=1", "/limit")
            .says("use one of `at`")
            .refuses_query("DELETE /edges/https/edghts_unknown?at=1", "")
            .says("this endpoint has no query parameters"),
        row("a value that is no UTF-8 is refused at its parameter, if there are some")
            .refuses_query("GET /api_keys?limit=%ff", "/limit")
            .refuses_query("GET /api_keys?beforeId=%ff", "/before_id")
            .refuses_query("DELETE /edges/https/edghts_unknown?limit=%ff", ""),
        row("an empty query is none").call("GET /api_keys?").succeeds(200),
        row("reconciliations refuse unknown parameters too")
            .refuses_query("GET /reconciliations?limt=1", "/limt")
            .says("did you mean `limit`?")
            .refuses_query("GET /reconciliations?limit=1&limit=2", "/limit")
            .refuses_query("GET /reconciliations/rec_unknown?limit=1", "")
            .send_bytes("POST /reconciliations?dry_run=true", "{")
            .fails(400, "PARAMETER", "")
            .says("unknown query parameter `dry_run`"),
        row("a watch refuses unknown parameters")
            .refuses_query("GET /watch?sinc=1", "/sinc")
            .says("did you mean `since`?")
            .refuses_query("GET /watch?since=1&since=1", "/since")
            .refuses_query("GET /watch?kind=HttpsEdges", "/kind")
            .says("did you mean `HttpsEdge`?"),
        row("the documents of the service refuse a query")
            .refuses_query("GET /openapi.json?version=3", "")
            .refuses_query("GET /saml/edghtsrt_unknown?SAMLRequest=x", ""),
        row("probes and scrapers may append what they like")
            .call("GET /healthz?1700000000")
            .succeeds(200)
            .call("GET /readyz?nocache=1")
            .succeeds(200)
            .call("GET /metrics?nocache=1")
            .succeeds(200),
    ]);
    rows
}
