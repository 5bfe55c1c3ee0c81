//! `/reconciliations`: manifests that are sent are planned and applied in one revision, or nothing changes (D45).

mod manifests;
mod shapes;

use edgewright::resources::{Id, new_token};
use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
    samples::with,
};
use crate::support::{
    manifests::{bare_edge, edge_with},
    server::Server,
};

#[test]
fn reconciliations() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [run_rows(), value_rows(), shapes::rows(), manifests::rows(), refusal_rows()].concat()
}

pub(crate) const POST: &str = "POST /reconciliations";

/// The manifest of an edge whose one route takes a secret from somewhere.
fn hook(name: &str, secret: &str) -> String {
    let route = "match_type: exact_path, match: /, backend: {backend_id: bkd_1}";
    edge_with(
        name,
        &format!("\n  routes:\n  - {{{route}, webhook_verification: {{provider: github, secret: {secret}}}}}"),
    )
}

/// A request with one file, of a source that no other row has.
pub(crate) fn request(text: &str, more: Value) -> Value {
    with(json!({"files": [{"name": "m/a.yaml", "text": text}], "source": "source-{n}"}), more)
}

/// The same with several documents in its file.
fn documents(texts: &[String]) -> Value {
    request(&texts.join("---\n"), json!({}))
}

fn run_rows() -> Vec<Row> {
    let one = bare_edge("one-{n}", "");
    let change = json!({
        "effect": "create", "kind": "HttpsEdge", "name": "one-{n}", "id": "{edghts_}", "notes": [],
        "calls": [{
            "method": "POST", "path": "/edges/https",
            "body": {"description": "", "metadata": "", "hostports": ["one-{n}.example.com:443"]},
            "lines": ["+ hostports:", "+ - one-{n}.example.com:443"]
        }]
    });
    let nothing = json!({
        "create": 0, "change": 0, "replace": 0, "adopt": 0, "delete": 0, "unchanged": 0, "errors": 0, "warnings": 0,
        "files": 1
    });
    let fault = json!({
        "code": "ERR_EDGEWRIGHT_UNKNOWN_FIELD", "severity": "error", "message": "unknown field `hostport`",
        "help": "did you mean `hostports`?", "file": "m/b.yaml", "line": 4, "column": 8, "end_line": 4,
        "end_column": 16, "related": []
    });
    let bad = edge_with("bad-{n}", "{hostport: []}");
    let json_text = json!({
        "apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": {"name": "json-{n}"}, "spec": {}
    });
    let half = json!({
        "files": [{"name": "m/a.yaml", "text": one}, {"name": "m/b.yaml", "text": bad}], "source": "source-{n}",
        "isolate": true
    });
    vec![
        row("a dry run changes nothing, the run does what it told, and the next one has nothing to do")
            .send(POST, request(&one, json!({"dry_run": true})))
            .succeeds(200)
            .carries("Content-Type", "application/json")
            .shows("/format", json!("edgewright/report/v1"))
            .shows("/command", json!("plan"))
            .shows("/summary", with(nothing.clone(), json!({"create": 1})))
            .shows("/diagnostics", json!([]))
            .shows("/refusals", json!([]))
            .shows("/plan/changes", json!([change]))
            .shows("/applied", Value::Null)
            .shows("/left_out", json!([]))
            .shows("/saved_plan/source", json!("source-{n}"))
            .shows("/saved_plan/operations/0/call", json!("POST /edges/https"))
            .shows("/reconciliation", Value::Null)
            .call("GET /edges/https/{edghts_}")
            .fails(404, "NOT_FOUND", "")
            .send(POST, request(&one, json!({})))
            .succeeds(201)
            .carries("Content-Type", "application/json")
            .shows("/command", json!("reconcile"))
            .shows("/plan/changes", json!([change]))
            .shows("/reconciliation/uri", json!("{base}/reconciliations/{rec_}"))
            .shows("/reconciliation/id", json!("{rec_}"))
            .carries("Location", "{base}/reconciliations/{rec_}")
            .call("GET /edges/https/{edghts_}")
            .succeeds(200)
            .shows("/hostports", json!(["one-{n}.example.com:443"]))
            .send(POST, request(&one, json!({})))
            .succeeds(200)
            .shows("/command", json!("reconcile"))
            .shows("/summary", with(nothing.clone(), json!({"unchanged": 1})))
            .shows("/plan/changes", json!([]))
            .shows("/applied", Value::Null)
            .shows("/reconciliation", Value::Null),
        row("a dry run of what is faulty succeeds, and tells the faults at their places")
            .send(POST, json!({"files": [{"name": "m/b.yaml", "text": bad}], "source": "source-{n}", "dry_run": true}))
            .succeeds(200)
            .shows("/summary", with(nothing, json!({"errors": 1})))
            .shows("/diagnostics", json!([fault]))
            .shows("/plan", Value::Null)
            .shows("/saved_plan", Value::Null)
            .shows("/reconciliation", Value::Null),
        row("with `isolate` the rest is applied, and what was set aside is named")
            .send(POST, half.clone())
            .succeeds(201)
            .shows("/diagnostics", json!([fault]))
            .shows("/left_out", json!(["HttpsEdge bad-{n} ({edghts_})"]))
            .shows("/summary/create", json!(1))
            .call("GET /edges/https/{edghts_}")
            .fails(404, "NOT_FOUND", "")
            .send(POST, half)
            .succeeds(200)
            .shows("/diagnostics", json!([fault]))
            .shows("/plan/changes", json!([])),
        row("null fields of a request are not given (D6)")
            .send(
                POST,
                request(
                    &bare_edge("nulls-{n}", ""),
                    json!({"dry_run": null, "prune": null, "isolate": null, "max_deletes": null, "commit": null,
                        "commit_author_name": null, "commit_author_email": null, "commit_message": null,
                        "lints": null, "allowed_labels": null, "certificate_expiry_days": null, "expect": null, "token_hashes": null}),
                ),
            )
            .succeeds(201)
            .shows("/summary/create", json!(1)),
        row("a file whose name ends in .json is JSON")
            .send(POST, json!({"files": [{"name": "a.json", "text": json_text.to_string()}], "source": "source-{n}"}))
            .succeeds(201)
            .shows("/plan/changes/0/name", json!("json-{n}")),
        row("manifests may be far larger than other bodies")
            .send(POST, request(&format!("# {}\n{}", "x".repeat(3 << 20), bare_edge("large-{n}", "")), json!({})))
            .succeeds(201),
        row("the plan that is expected runs, and no other one")
            .send(POST, request(&one, json!({"dry_run": true})))
            .succeeds(200)
            .keep("outcome", "/outcome")
            .send(POST, request(&one, json!({"expect": ""})))
            .fails(400, "INVALID_FORMAT", "/expect")
            .send(POST, request(&one, json!({"expect": "", "dry_run": true})))
            .succeeds(200)
            .shows("/outcome", json!("{outcome}"))
            .send(POST, request(&bare_edge("one-{n}", ", labels: {a: b}"), json!({"expect": "0".repeat(64)})))
            .fails(409, "STALE", "/expect")
            .send(POST, request(&bare_edge("two-{n}", ""), json!({"expect": "{outcome}"})))
            .fails(409, "STALE", "/expect")
            .send(POST, request(&one, json!({"expect": "{outcome}"})))
            .succeeds(201)
            .send(POST, request(&one, json!({"expect": "{outcome}"})))
            .fails(409, "STALE", "/expect"),
    ]
}

fn value_rows() -> Vec<Row> {
    let sent = |text: &str, values: Value| {
        request(text, json!({"files": [{"name": "m/a.yaml", "text": text, "values": values}]}))
    };
    let text = hook("hook-{n}", "{from_env: HOME}");
    let (variable, file) = (hook("no-env-{n}", "{from_env: HOME}"), hook("no-file-{n}", "{from_file: /etc/hostname}"));
    vec![
        row("a value that was not sent is not read from the server's environment or disk")
            .send(POST, request(&variable, json!({})))
            .fails(400, "ENV_UNSET", "/files/0/text")
            .says("m/a.yaml:6:")
            .says("`values`")
            .send(POST, request(&file, json!({})))
            .fails(400, "FILE_UNREADABLE", "/files/0/text")
            .says("`values`")
            .send(POST, sent(&variable, json!([{"from_env": "HOME", "value": " \n"}])))
            .fails(400, "ENV_UNSET", "/files/0/text")
            .send(POST, sent(&variable, json!([{"from_file": "HOME", "value": "x"}])))
            .fails(400, "ENV_UNSET", "/files/0/text"),
        row("a value that was sent is used, and no answer shows it")
            .send(POST, sent(&text, json!([{"from_env": "HOME", "value": "hush-one"}])))
            .succeeds(201)
            .hides("hush-one")
            .send(POST, sent(&text, json!([{"from_env": "HOME", "value": "hush-one"}])))
            .succeeds(200)
            .shows("/plan/changes", json!([]))
            .send(POST, with(sent(&text, json!([{"from_env": "HOME", "value": "hush-two"}])), json!({"dry_run": true})))
            .succeeds(200)
            .says("(secret, changed)")
            .hides("hush-one")
            .hides("hush-two"),
    ]
}

fn refusal_rows() -> Vec<Row> {
    let many = ["a", "b", "c", "d", "e"].map(|name| bare_edge(&format!("{name}-{{n}}"), ""));
    let (first, second) = (bare_edge("first-{n}", ""), bare_edge("second-{n}", ""));
    let delegates = "spec: {delegates_to: [{source: team-{n}, path_prefix: /}], ";
    let second = second.replace("spec: {", delegates);
    let kept = bare_edge("second-{n}", ", prevent_destroy: true");
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: theirs-{n}}\n\
                 spec: {edge: second-{n}, match_type: exact_path, match: /, backend: {backend_id: bkd_1}}\n";
    vec![
        row("too many deletions are refused until they are allowed, and a dry run tells that")
            .send(POST, documents(&many))
            .succeeds(201)
            .shows("/plan/changes/1/id", json!("{edghts_}"))
            .send(POST, request(&many[0], json!({"dry_run": true})))
            .succeeds(200)
            .shows("/summary/delete", json!(4))
            .shows("/refusals/0/code", json!("ERR_EDGEWRIGHT_TOO_MANY_DELETIONS"))
            .send(POST, request(&many[0], json!({})))
            .fails(409, "TOO_MANY_DELETIONS", "")
            .says("would delete 4 of the source's 5 resources")
            .send(POST, request(&many[0], json!({"max_deletes": "3"})))
            .fails(409, "TOO_MANY_DELETIONS", "")
            .send(POST, request(&many[0], json!({"max_deletes": "79%"})))
            .fails(409, "TOO_MANY_DELETIONS", "")
            .send(POST, request(&many[0], json!({"prune": false})))
            .succeeds(200)
            .shows("/plan/changes", json!([]))
            .call("GET /edges/https/{edghts_}")
            .succeeds(200)
            .send(POST, request(&many[0], json!({"max_deletes": "80%"})))
            .succeeds(201)
            .shows("/summary/delete", json!(4))
            .call("GET /edges/https/{edghts_}")
            .fails(404, "NOT_FOUND", ""),
        row("what must not be destroyed is not")
            .send(POST, documents(&[first.clone(), kept]))
            .succeeds(201)
            .send(POST, request(&first, json!({"max_deletes": "100%"})))
            .fails(409, "PREVENT_DESTROY", "")
            .says("HttpsEdge second-{n} (edghts_"),
        row("what holds the resources of another source is kept, and everything else is applied")
            .send(POST, documents(&[first.clone(), second]))
            .succeeds(201)
            .send(POST, request(route, json!({"source": "team-{n}"})))
            .succeeds(201)
            .send(POST, request(&first, json!({})))
            .succeeds(200)
            .shows("/plan/changes", json!([]))
            .shows("/diagnostics/0/code", json!("ERR_EDGEWRIGHT_IN_USE"))
            .shows("/diagnostics/0/severity", json!("warning"))
            .send(POST, request("# nothing\n", json!({})))
            .succeeds(201)
            .shows("/summary/delete", json!(1)),
    ]
}

/// Who asks for a key makes its token, and the server is only told a hash.
#[test]
fn a_token_stays_with_who_asks_for_its_key() {
    let server = Server::start();
    let text = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: ci}\n\
                spec: {owner_id: usr_editor, token_file: ../ci.token}\n";
    let ask = |more: Value| {
        let body = with(json!({"files": [{"name": "key.yaml", "text": text}]}), more);
        server.call_as(&server.editor, "POST", "/reconciliations", Some(body))
    };
    let plan = ask(json!({"dry_run": true}));
    assert_eq!((plan.status, plan.str("/plan/changes/0/kind")), (200, "ApiKey"), "{}", plan.text);
    let id = plan.str("/plan/changes/0/id").to_owned();
    let (token, hash) = new_token(&Id::new(&id));
    let made = ask(json!({"token_hashes": {id.as_str(): hash.expose()}}));
    assert_eq!((made.status, made.str("/reconciliation/calls/0")), (201, "POST /api_keys"), "{}", made.text);
    assert!(!made.text.contains(hash.expose()), "{}", made.text);
    let used = server.call_as(token.expose(), "GET", &format!("/api_keys/{id}"), None);
    assert_eq!((used.status, used.str("/owner_id")), (200, "usr_editor"), "{}", used.text);
    // A hash of a key that is there already changes nothing.
    let (other, hash) = new_token(&Id::new(&id));
    let again = ask(json!({"token_hashes": {id.as_str(): hash.expose()}}));
    assert_eq!((again.status, &again.json["applied"]), (200, &Value::Null), "{}", again.text);
    assert_eq!(server.call_as(other.expose(), "GET", "/api_keys", None).status, 401);
}

#[test]
fn manifests_have_at_most_64_mib() {
    let server = Server::start();
    for token in [&server.editor, &server.viewer] {
        let head = format!(
            "{POST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Service-Version: 2\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            (64 << 20) + 1
        );
        let answer = server.raw(head.as_bytes()).expect("an answer");
        let found = (answer.status, answer.str("/error_code"));
        assert_eq!(found, (413, "ERR_EDGEWRIGHT_BODY_TOO_LARGE"), "{}", answer.text);
    }
}
