//! API keys with a scope (D101): what a stolen or careless key can do.

mod command_line;
mod guesses;
mod limits;
mod planners;
mod probes;
mod required_secrets;
mod rollbacks;
mod rotations;

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};

/// The manifest of an edge with a route that has a secret.
pub(crate) fn manifest(name: &str, secret: &str, description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  \
         hostports: ['{name}.example.com:443']\n  routes:\n    - name: hook\n      match_type: path_prefix\n      \
         match: /\n      description: {description}\n      backend: {{backend_id: bkd_1}}\n      \
         webhook_verification: {{provider: github, secret: {secret}}}\n"
    )
}

pub(crate) fn reconciliation(source: &str, text: &str, dry_run: bool) -> Option<Value> {
    let files = json!([{"name": "edge.yaml", "text": text}]);
    Some(json!({"source": source, "files": files, "dry_run": dry_run, "max_deletes": "100%"}))
}

/// A server with the sources `shop` and `identity`.
pub(crate) fn start() -> Server {
    let server = Server::start();
    for (source, secret) in [("shop", "shop-secret-1"), ("identity", "identity-secret-1")] {
        let body = reconciliation(source, &manifest(source, secret, "first"), false);
        let made = server.call("POST", "/reconciliations", body);
        assert_eq!(made.status, 201, "{}", made.text);
    }
    server
}

/// A new key with a scope, of an owner that becomes an editor: its id and token.
pub(crate) fn key(server: &Server, scope: Value) -> (String, String) {
    let made = server.call("POST", "/api_keys", Some(json!({"owner_id": "bot_team", "scope": scope})));
    assert_eq!(made.status, 201, "{}", made.text);
    (made.str("/id").to_owned(), made.str("/token").to_owned())
}

#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, words: &[&str]) {
    assert_eq!(answer.status, status, "{}", answer.text);
    for word in words {
        assert!(answer.text.contains(word), "`{word}` is missing: {}", answer.text);
    }
}

/// The path of the route of a source.
fn route_of(server: &Server, source: &str) -> String {
    let list = server.call("GET", &format!("/edges/https?source={source}"), None);
    let edge = list.str("/https_edges/0/id").to_owned();
    let routes = server.call("GET", &format!("/edges/https/{edge}/routes"), None);
    format!("/edges/https/{edge}/routes/{}", routes.str("/routes/0/id"))
}
