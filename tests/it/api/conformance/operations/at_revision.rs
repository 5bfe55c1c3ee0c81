//! Reads of earlier revisions: `?at=REVISION` and `?at=COMMIT` (D79, D93).

use serde_json::{Value, json};

use super::reconciliations::{POST, request};
use crate::api::conformance::support::{
    row::{Row, row},
    run::hold_on,
};
use crate::support::{manifests::bare_edge, server::Server};

/// On a server of its own, where every revision is known: the first one made the keys.
#[test]
fn earlier_revisions_are_read_as_they_were() {
    let server = Server::start();
    hold_on(&server, &[resource_row(), list_row(), module_row(), refused_row(), commit_row()]);
}

const RESTRICTION: &str = "/ip_restrictions/{one}";

/// Revisions 2 to 4.
fn resource_row() -> Row {
    row("a resource is what it was, and has the ETag that it had")
        .send("POST /ip_restrictions", json!({"type": "api", "description": "first"}))
        .succeeds(201)
        .keep("one", "/id")
        .keep_etag("first")
        .send(&format!("PATCH {RESTRICTION}"), json!({"description": "second"}))
        .succeeds(200)
        .keep_etag("second")
        .call(&format!("DELETE {RESTRICTION}"))
        .succeeds(204)
        .call(&format!("GET {RESTRICTION}?at=2"))
        .succeeds(200)
        .shows("/description", json!("first"))
        .carries("ETag", "{first}")
        .call(&format!("GET {RESTRICTION}?at=3"))
        .by("viewer")
        .succeeds(200)
        .shows("/description", json!("second"))
        .call(&format!("GET {RESTRICTION}?at=3"))
        .with("If-None-Match", "{second}")
        .succeeds(304)
        .call(&format!("GET {RESTRICTION}?at=3"))
        .with("If-None-Match", "{first}")
        .succeeds(200)
        .call(&format!("GET {RESTRICTION}?at=4"))
        .fails(404, "NOT_FOUND", "")
        .call(&format!("GET {RESTRICTION}?at=1"))
        .fails(404, "NOT_FOUND", "")
        .call(&format!("GET {RESTRICTION}"))
        .fails(404, "NOT_FOUND", "")
}

/// Revisions 5 to 8.
fn list_row() -> Row {
    let create = |row: Row, name: &str| {
        row.send("POST /ip_restrictions", json!({"type": "api", "description": name})).succeeds(201).keep(name, "/id")
    };
    let row = row("a list and its following pages are of one revision");
    let row = ["a", "b", "c"].into_iter().fold(row, create);
    row.call("GET /ip_restrictions?limit=2&at=7")
        .succeeds(200)
        .keep_etag("page")
        .shows("/ip_restrictions/0/description", json!("c"))
        .shows("/next_page_uri", json!("{base}/ip_restrictions?limit=2&before_id={b}&at=7"))
        .call("GET /ip_restrictions?limit=2&at=latest")
        .succeeds(200)
        .shows("/next_page_uri", json!("{base}/ip_restrictions?limit=2&before_id={b}&at=7"))
        .call("DELETE /ip_restrictions/{a}")
        .succeeds(204)
        .call("GET /ip_restrictions?limit=2&before_id={b}&at=7")
        .succeeds(200)
        .shows("/ip_restrictions/0/description", json!("a"))
        .shows("/next_page_uri", Value::Null)
        .call("GET /ip_restrictions?limit=2&at=7")
        .succeeds(200)
        .carries("ETag", "{page}")
        .call("GET /ip_restrictions?limit=2")
        .with("If-None-Match", "{page}")
        .succeeds(200)
        .shows("/next_page_uri", Value::Null)
        .call("GET /ip_restrictions?at=4&filter=obj.description%20!=%20''")
        .answers(200, json!({"ip_restrictions": [], "uri": "{base}/ip_restrictions", "next_page_uri": null}))
        .call("GET /ip_restrictions?at=7&limit=1&q=A")
        .succeeds(200)
        .shows("/ip_restrictions/0/id", json!("{a}"))
}

/// Revisions 9 to 12.
fn module_row() -> Row {
    let module = "/edges/https/{edge}/routes/{route}/compression";
    row("a module is read as it was, and an edge with the routes that it had")
        .route()
        .send(&format!("PUT {module}"), json!({"enabled": true}))
        .succeeds(200)
        .call(&format!("DELETE {module}"))
        .succeeds(204)
        .call(&format!("GET {module}?at=11"))
        .succeeds(200)
        .shows("/enabled", json!(true))
        .call(&format!("GET {module}?at=12"))
        .fails(404, "NOT_FOUND", "")
        .call("GET /edges/https/{edge}?at=9")
        .succeeds(200)
        .shows("/routes", json!([]))
        .call("GET /edges/https/{edge}?at=11")
        .succeeds(200)
        .shows("/routes/0/compression/enabled", json!(true))
}

fn refused_row() -> Row {
    let mut refused =
        row("what is not a revision is refused").given("own", "POST /ip_restrictions", json!({"type": "api"}));
    for at in ["", "-1", "1.5", "newest", "abcdef", "main123", "1&at=2"] {
        for path in ["/ip_restrictions", "/api_keys/ak_unknown"] {
            refused = refused.call(&format!("GET {path}?at={at}")).fails(400, "PARAMETER", "/at");
        }
    }
    for path in ["/ip_restrictions", "/api_keys/ak_unknown"] {
        refused = refused.call(&format!("GET {path}?at=999999")).fails(404, "REVISION_NOT_FOUND", "/at");
    }
    refused.send("POST /ip_restrictions?at=1", json!({"type": "api"})).fails(400, "PARAMETER", "")
}

/// Revisions 14 to 16.
fn commit_row() -> Row {
    let apply = |row: Row, (name, commit): (&str, &str)| {
        row.send(POST, request(&bare_edge(name, ""), json!({"commit": commit}))).succeeds(201)
    };
    let row = row("a commit is the newest revision that was applied from it");
    let commits = [("first", "abcdef0111"), ("second", "abcdef0111"), ("third", "abcdef0222")];
    commits
        .into_iter()
        .fold(row, apply)
        .call("GET /edges/https?at=ABCDEF01")
        .by("viewer")
        .succeeds(200)
        .shows("/https_edges/0/hostports/0", json!("second.example.com:443"))
        .keep("second", "/https_edges/0/id")
        .call("GET /edges/https?limit=1&at=abcdef0111")
        .succeeds(200)
        .shows("/next_page_uri", json!("{base}/edges/https?limit=1&before_id={second}&at=15"))
        .call("GET /edges/https/{second}?at=abcdef01")
        .succeeds(200)
        .refuses_query("GET /edges/https?at=abcdef0", "/at")
        .says("commit abcdef0 is ambiguous: abcdef0222 and abcdef0111")
        .call("GET /edges/https?at=fedcba9")
        .fails(404, "REVISION_NOT_FOUND", "/at")
        .says("no revision was applied from commit fedcba9; the history begins at revision 1")
        // Decimal digits are a revision, unless there is only a commit.
        .call("GET /edges/https?at=1234567")
        .fails(404, "REVISION_NOT_FOUND", "/at")
        .call("GET /edges/https?at=99999999999999999999999")
        .fails(404, "REVISION_NOT_FOUND", "/at")
        .call("GET /history?commit=ABCDEF01")
        .by("viewer")
        .succeeds(200)
        .shows("/history/0/revision", json!(15))
        .keep("fifteenth", "/history/0/id")
        .shows("/history/0/commit", json!("abcdef0111"))
        .shows("/history/1/revision", json!(14))
        .shows("/next_page_uri", Value::Null)
        .call("GET /history?commit=abcdef0&limit=2")
        .succeeds(200)
        .shows("/history/0/revision", json!(16))
        .shows("/next_page_uri", json!("{base}/history?limit=2&before_id={fifteenth}&commit=abcdef0"))
        .call("GET /history?commit=fedcba9")
        .answers(200, json!({"history": [], "uri": "{base}/history", "next_page_uri": null}))
}
