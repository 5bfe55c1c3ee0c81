//! Manifests that cannot be applied.

use serde_json::json;

use super::{POST, edge_with, request};
use crate::api::conformance::support::{
    row::{Row, row},
    samples::with,
};
use crate::support::manifests::bare_edge;

/// What is wrong with the manifests is told as the API tells faults, with the place in the message.
pub(super) fn rows() -> Vec<Row> {
    let bad = |name: &str| edge_with(name, "{hostport: []}");
    let two = |first: &str, second: &str| {
        json!({"files": [{"name": "m/a.yaml", "text": first}, {"name": "m/b.yaml", "text": second}],
            "source": "source-{n}"})
    };
    let unknown = edge_with("ca-{n}", "{mutual_tls: {certificate_authority_ids: [ca_000000000000000000000000000]}}");
    let bare = edge_with(
        "bare-{n}",
        "{hostports: [\"bare-{n}.example.com:443\"], routes: [{match_type: exact_path, match: /}]}",
    );
    let same = |name: &str| edge_with(name, "{hostports: [\"same-{n}.example.com:443\"]}");
    vec![
        row("a fault of a manifest is one of its file, at its line and column")
            .send(POST, two(&bare_edge("fine-{n}", ""), &bad("bad-{n}")))
            .fails(400, "UNKNOWN_FIELD", "/files/1/text")
            .says("m/b.yaml:4:8: unknown field `hostport`; did you mean `hostports`?")
            .call("GET /edges/https")
            .succeeds(200)
            .hides("fine-{n}"),
        row("the faults of all files are told at once (D9)")
            .send(POST, two(&bad("bad-{n}"), &edge_with("wrong-{n}", "{routes: 1}")))
            .fails(400, "UNKNOWN_FIELD", "/files/0/text")
            .also("WRONG_TYPE", "/files/1/text"),
        row("a manifest that is no YAML, or empty, is refused with its file")
            .send(POST, two("a: [\n", ""))
            .fails(400, "SYNTAX", "/files/0/text")
            .also("EMPTY_FILE", "/files/1/text"),
        row("what only the store knows is told at its place too")
            .send(POST, request(&unknown, json!({})))
            .fails(400, "UNKNOWN_REFERENCE", "/files/0/text")
            .says("m/a.yaml:4:"),
        row("two sources cannot serve one hostport")
            .send(POST, request(&bare_edge("owned-{n}", ""), json!({})))
            .succeeds(201)
            .send(POST, request(&bare_edge("owned-{n}", ""), json!({"source": "other-{n}"})))
            .fails(409, "NOT_DELEGATED", "/files/0/text")
            .says("m/a.yaml:4:20: ")
            .says("`source-{n}`"),
        row("a denied lint refuses, and another level of it does not")
            .send(POST, two(&same("lint-{n}"), &same("tnil-{n}")))
            .fails(400, "LINT_DENIED", "/files/1/text")
            .says("m/b.yaml:4:20: duplicate-hostport: ")
            .send(
                POST,
                with(two(&same("lint-{n}"), &same("tnil-{n}")), json!({"lints": {"duplicate-hostport": "warn"}})),
            )
            .succeeds(201)
            .shows("/summary/warnings", json!(1))
            .shows("/diagnostics/0/code", json!("duplicate-hostport"))
            .shows("/diagnostics/0/severity", json!("warning")),
        row("the levels of lints come with the request")
            .send(POST, request(&bare, json!({"lints": {"route-without-backend": "deny"}})))
            .fails(400, "LINT_DENIED", "/files/0/text")
            .says("route-without-backend: ")
            .send(POST, request(&bare, json!({"lints": {"route-without-backend": "allow"}})))
            .succeeds(201)
            .shows("/diagnostics", json!([])),
        row("the labels that are allowed come with the request")
            .send(
                POST,
                request(
                    &bare_edge("label-{n}", ", labels: {team: a}"),
                    json!({"lints": {"unknown-label": "deny"}, "allowed_labels": ["owner"]}),
                ),
            )
            .fails(400, "LINT_DENIED", "/files/0/text")
            .says("unknown-label: ")
            .send(
                POST,
                request(
                    &bare_edge("label-{n}", ", labels: {team: a}"),
                    json!({"lints": {"unknown-label": "deny"}, "allowed_labels": ["owner", "team"]}),
                ),
            )
            .succeeds(201),
    ]
}
