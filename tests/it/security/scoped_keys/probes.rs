//! Routes with guesses of secrets that take requests from the routes of others: no answer tells whether a guess is right (D101).

use serde_json::{Value, json};

use super::{key, reconciliation};
use crate::support::server::{Answer, Server};

/// The secret of the route that has the requests, and another one.
const GUESSES: [&str; 2] = ["platform-secret-1", "platform-secret-2"];
/// The words for requests that another route takes over with the same module.
const SAID: &str = "`webhook_verification` with the secret of another route";
/// The URL of a request that a probe takes.
const URL: &str = "https://gate.example.com/docs/probe/";

/// The manifest of the edge that has the secret. It delegates `/docs/`.
fn platform(route: &str, more: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: gate}}\nspec:\n  \
         hostports: ['gate.example.com:443']\n  delegates_to: [{{source: docs, path_prefix: /docs/}}]\n  routes:\n    \
         - {{name: hook, match_type: path_prefix, match: /, {route}}}\n{more}"
    )
}

/// The backend and the module of a route.
fn modules(secret: &str) -> String {
    format!("backend: {{backend_id: bkd_1}}, webhook_verification: {{provider: github, secret: {secret}}}")
}

/// The manifest of a route that takes requests from others on an edge.
fn probe(edge: &str, secret: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: probe}}\n\
         spec: {{edge: {edge}, match_type: path_prefix, match: /docs/probe/, {}}}\n",
        modules(secret)
    )
}

/// A server whose edge belongs to the source `platform`.
fn start() -> Server {
    let server = Server::start();
    let text = platform(&modules(GUESSES[0]), "");
    let made = server.call("POST", "/reconciliations", reconciliation("platform", &text, false));
    assert_eq!(made.status, 201, "{}", made.text);
    server
}

/// The body of a request with more fields.
fn with(body: Option<Value>, more: &Value) -> Option<Value> {
    let mut body = body.unwrap();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Some(body)
}

/// Sends a body for each guess as a reader, and requires the same answer.
#[track_caller]
fn same_for_each_guess(server: &Server, body: impl Fn(&str) -> Option<Value>) {
    let answers = GUESSES.map(|guess| server.call_as(&server.viewer, "POST", "/reconciliations", body(guess)));
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.text.contains(SAID), "{}", answer.text);
    }
    assert_eq!(answers[0].text, answers[1].text);
}

#[test]
fn a_plan_does_not_tell_a_reader_the_secret_of_a_route_that_it_does_not_declare() {
    let server = start();
    let trace = json!({"trace": {"method": "GET", "url": URL}});
    for more in [json!({"behaviour": true}), trace] {
        let more = with(Some(json!({"prune": false})), &more).unwrap();
        for source in ["docs", "platform"] {
            same_for_each_guess(&server, |guess| with(reconciliation(source, &probe("gate", guess), true), &more));
        }
    }
    let free = server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let free = free.str("/id").to_owned();
    let route = json!({
        "match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"},
        "webhook_verification": {"provider": "github", "secret": GUESSES[0]},
    });
    assert_eq!(server.call("POST", &format!("/edges/https/{free}/routes"), Some(route)).status, 201);
    let more = json!({"behaviour": true});
    same_for_each_guess(&server, |guess| with(reconciliation("docs", &probe(&free, guess), true), &more));
}

#[test]
fn a_comparison_of_manifests_does_not_tell_it_either() {
    let server = start();
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: unused}\nspec: {compression: {}}\n";
    same_for_each_guess(&server, |guess| {
        let files = json!([
            {"name": "probe.yaml", "text": probe("gate", guess)},
            {"name": "set.yaml", "text": set, "older": true},
        ]);
        Some(json!({"source": "docs", "dry_run": true, "compare": true, "behaviour": true, "files": files}))
    });
}

#[test]
fn a_value_that_is_taken_from_the_store_is_not_compared_with_a_guess() {
    let server = start();
    let probe =
        format!("    - {{name: probe, match_type: path_prefix, match: /probe/, {}}}\n", modules("{from_env: GUESS}"));
    let text = platform(&modules("{from_env: UNSET}"), &probe);
    same_for_each_guess(&server, |guess| {
        let files = json!([{"name": "a.yaml", "text": text, "values": [{"from_env": "GUESS", "value": guess}]}]);
        let body = json!({"source": "platform", "dry_run": true, "assume_values": true, "behaviour": true});
        with(Some(body), &json!({"files": files}))
    });
}

#[test]
fn neither_what_is_applied_nor_its_removal_tells_a_team_the_secret_of_another_one() {
    let all = GUESSES.map(|guess| {
        let server = start();
        let (_, team) = key(&server, json!({"apply": ["docs"]}));
        let before = server.store().snapshot().revision;
        let post = |path: &str, status: u16, body: Value| -> Answer {
            let answer = server.call_as(&team, "POST", path, Some(body));
            assert_eq!(answer.status, status, "{}", answer.text);
            answer
        };
        let body = with(reconciliation("docs", &probe("gate", guess), false), &json!({"behaviour": true}));
        let applied = post("/reconciliations", 201, body.unwrap());
        let plans = json!({"dry_run": true, "behaviour": true});
        let destroyed = post("/sources/docs/destroy", 200, plans.clone());
        let back = json!({"to": before, "source": "docs", "max_deletes": "100%"});
        let planned = post("/rollbacks", 200, with(Some(back.clone()), &plans).unwrap());
        let rolled_back = post("/rollbacks", 201, with(Some(back), &json!({"behaviour": true})).unwrap());
        [applied, destroyed, planned, rolled_back].map(|answer| {
            let told = answer.json["plan"]["behaviour"].to_string();
            assert!(told.contains(SAID), "{}", answer.text);
            told
        })
    });
    assert_eq!(all[0], all[1]);
}
