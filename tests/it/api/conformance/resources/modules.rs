//! Every module on every host: put, got, patched, replaced, deleted, and refused.

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{self, Sample},
};

#[test]
fn modules_of_routes() {
    hold(route_rows());
}

#[test]
fn modules_of_https_edges() {
    hold(edge_rows());
}

#[test]
fn modules_of_tls_edges() {
    hold(tls_edge_rows());
}

pub(super) fn rows() -> Vec<Row> {
    [route_rows(), edge_rows(), tls_edge_rows()].concat()
}

/// Who holds the module, and how a row gets one.
struct Host {
    name: &'static str,
    given: fn(Row) -> Row,
    path: &'static str,
    unknown: &'static str,
}

fn route_rows() -> Vec<Row> {
    let host = Host {
        name: "a route",
        given: Row::route,
        path: ROUTE,
        unknown: "/edges/https/{edge}/routes/edghtsrt_unknown",
    };
    let samples = samples::route_modules();
    samples.iter().flat_map(|sample| [endpoints(&host, sample), in_resource(&host, sample)].concat()).collect()
}

fn edge_rows() -> Vec<Row> {
    let host = Host {
        name: "an HTTPS edge",
        given: |row| row.ca().edge(),
        path: "/edges/https/{edge}",
        unknown: "/edges/https/edghts_unknown",
    };
    let samples = samples::edge_modules();
    samples.iter().flat_map(|sample| [endpoints(&host, sample), in_resource(&host, sample)].concat()).collect()
}

fn tls_edge_rows() -> Vec<Row> {
    let host = Host {
        name: "a TLS edge",
        given: |row| row,
        path: "/edges/tls/edgtls_{n}",
        unknown: "/edges/tls/edgtls_unknown",
    };
    samples::tls_edge_modules().iter().flat_map(|sample| endpoints(&host, sample)).collect()
}

/// What the module's own endpoints do.
fn endpoints(host: &Host, sample: &Sample) -> Vec<Row> {
    let Sample { slot, full, full_answer, least, least_answer, wrong } = sample;
    let Host { name, given, path, unknown } = host;
    let (put, get, delete) =
        (format!("PUT {path}/{slot}"), format!("GET {path}/{slot}"), format!("DELETE {path}/{slot}"));
    let mut rows = vec![
        given(row(format!("{slot} of {name}: PUT answers with the response form, and GET with the same")))
            .send(&put, full.clone())
            .answers(200, full_answer.clone())
            .keep_etag("etag")
            .call(&get)
            .answers(200, full_answer.clone())
            .carries("ETag", "{etag}"),
        given(row(format!("{slot} of {name}: every field has its default (D14)")))
            .send(&put, least.clone())
            .answers(200, least_answer.clone()),
        given(row(format!("{slot} of {name}: PUT keeps nothing of the module before (D21)")))
            .send(&put, full.clone())
            .succeeds(200)
            .send(&put, least.clone())
            .answers(200, least_answer.clone())
            .call(&get)
            .answers(200, least_answer.clone()),
        given(row(format!("{slot} of {name}: null means not given (D6)")))
            .send(&put, samples::with(least.clone(), json!({"enabled": null})))
            .answers(200, least_answer.clone()),
        given(row(format!("{slot} of {name}: DELETE removes it, and there is none to get or delete then (D21)")))
            .send(&put, full.clone())
            .succeeds(200)
            .call(&delete)
            .succeeds(204)
            .call(&get)
            .fails(404, "NOT_FOUND", "")
            .call(&delete)
            .fails(404, "NOT_FOUND", ""),
        given(row(format!("{slot} of {name}: a fault is named by its field in the module's own body")))
            .send(&put, wrong.0.clone())
            .fails(400, wrong.1, wrong.2)
            .call(&get)
            .fails(404, "NOT_FOUND", ""),
        given(row(format!("{slot} of {name}: an unknown field is refused, and the nearest known one suggested (D6)")))
            .send(&put, samples::with(least.clone(), json!({"enabeld": true})))
            .fails(400, "UNKNOWN_FIELD", "/enabeld")
            .says("did you mean `enabled`?"),
        given(row(format!("{slot} of {name}: `enabled` is true or false")))
            .send(&put, samples::with(least.clone(), json!({"enabled": 1})))
            .fails(400, "WRONG_TYPE", "/enabled"),
        without_body(given(row(format!("{slot} of {name}: PUT without a body (D64)"))), &put, sample),
        given(row(format!("{slot} of {name}: unknown hosts have none")))
            .call(&format!("GET {unknown}/{slot}"))
            .fails(404, "NOT_FOUND", "")
            .call(&format!("DELETE {unknown}/{slot}"))
            .fails(404, "NOT_FOUND", ""),
    ];
    if *name != "a TLS edge" {
        rows.push(
            given(row(format!("{slot} of {name}: an unknown host takes none")))
                .send(&format!("PUT {unknown}/{slot}"), least.clone())
                .fails(404, "NOT_FOUND", ""),
        );
    }
    rows
}

/// Without a body there is no module, unless nothing about it needs to be said.
fn without_body(mut row: Row, put: &str, sample: &Sample) -> Row {
    for body in ["", "null"] {
        row = row.send_bytes(put, body);
        row = match (sample.slot, sample.wrong.1) {
            ("compression" | "websocket_tcp_converter", _) => row.answers(200, json!({"enabled": true})),
            (_, "REQUIRED") if sample.wrong.0 == json!({}) => {
                row.fails(400, "SYNTAX", "").says(&format!("`{}`", sample.wrong.2.trim_start_matches('/')))
            }
            ("webhook_verification", _) => row.fails(400, "SYNTAX", "").says("`provider`"),
            _ => row.fails(400, "SYNTAX", "").says("use `{}`"),
        };
    }
    row
}

/// The module as a field of its host.
fn in_resource(host: &Host, sample: &Sample) -> Vec<Row> {
    let Sample { slot, full, full_answer, least, least_answer, wrong } = sample;
    let Host { name, given, path, .. } = host;
    let field = format!("/{slot}");
    let body = |module: &Value| json!({*slot: module});
    let (get, patch) = (format!("GET {path}"), format!("PATCH {path}"));
    let wrong_field = format!("/{slot}{}", wrong.2);
    vec![
        given(row(format!("{slot} of {name}: PATCH sets it")))
            .send(&patch, body(full))
            .succeeds(200)
            .shows(&field, full_answer.clone())
            .call(&format!("GET {path}/{slot}"))
            .answers(200, full_answer.clone()),
        given(row(format!("{slot} of {name}: PATCH replaces it as a whole")))
            .send(&patch, body(full))
            .succeeds(200)
            .send(&patch, body(least))
            .succeeds(200)
            .shows(&field, least_answer.clone()),
        given(row(format!("{slot} of {name}: a PATCH without it, or with null, leaves it unchanged")))
            .send(&patch, body(full))
            .succeeds(200)
            .send(&patch, json!({"description": "other"}))
            .succeeds(200)
            .shows(&field, full_answer.clone())
            .send(&patch, body(&Value::Null))
            .succeeds(200)
            .shows(&field, full_answer.clone())
            .shows("/description", json!("other")),
        given(row(format!("{slot} of {name}: PUT and DELETE show in the host")))
            .send(&format!("PUT {path}/{slot}"), full.clone())
            .succeeds(200)
            .call(&get)
            .succeeds(200)
            .shows(&field, full_answer.clone())
            .call(&format!("DELETE {path}/{slot}"))
            .succeeds(204)
            .call(&get)
            .succeeds(200)
            .shows(&field, Value::Null),
        given(row(format!("{slot} of {name}: a fault in a PATCH is named by its field, and nothing changes")))
            .call(&get)
            .succeeds(200)
            .keep_etag("before")
            .send(&patch, body(&wrong.0))
            .fails(400, wrong.1, &wrong_field)
            .call(&get)
            .succeeds(200)
            .carries("ETag", "{before}"),
    ]
}
