//! Requests that are not well formed.

use serde_json::{Value, json};

use super::{POST, request};
use crate::api::conformance::support::{
    row::{Row, row},
    samples::with,
};
use crate::support::manifests::bare_edge;

/// Requests that are not well formed, each with the code and the field that it is refused with.
pub(super) fn rows() -> Vec<Row> {
    let good = bare_edge("good-{n}", "");
    let file = |more: Value| json!({"files": [with(json!({"name": "a.yaml", "text": good}), more)]});
    let of = |more: Value| request(&good, more);
    let long = "x".repeat(4097);
    let faults = [
        ("`files` must be there", json!({}), "REQUIRED", "/files"),
        ("null is no list of files", json!({"files": null}), "REQUIRED", "/files"),
        ("no file at all is never read as \"delete everything\"", json!({"files": []}), "EMPTY_SOURCE", ""),
        ("a text is no list of files", json!({"files": "a.yaml"}), "WRONG_TYPE", "/files"),
        ("a text is no file", json!({"files": ["a.yaml"]}), "WRONG_TYPE", "/files/0"),
        ("a file has a name", json!({"files": [{"text": "# x\n"}]}), "REQUIRED", "/files/0/name"),
        ("a file has a text", json!({"files": [{"name": "a.yaml"}]}), "REQUIRED", "/files/0/text"),
        ("a file's text is a text", file(json!({"text": 7})), "WRONG_TYPE", "/files/0/text"),
        ("a digest is a text", file(json!({"digest": 7})), "WRONG_TYPE", "/files/0/digest"),
        ("a digest has 64 digits", file(json!({"digest": "abc"})), "INVALID_FORMAT", "/files/0/digest"),
        ("a digest is in lower case", file(json!({"digest": "A".repeat(64)})), "INVALID_FORMAT", "/files/0/digest"),
        ("a digest is that of the text", file(json!({"digest": "a".repeat(64)})), "INVALID_FORMAT", "/files/0/digest"),
        ("a file has no other fields", file(json!({"path": "a.yaml"})), "UNKNOWN_FIELD", "/files/0/path"),
        ("a file's name is not empty", file(json!({"name": ""})), "INVALID_FORMAT", "/files/0/name"),
        ("a file's name has at most 4096 bytes", file(json!({"name": long})), "INVALID_FORMAT", "/files/0/name"),
        ("values are a list", file(json!({"values": {}})), "WRONG_TYPE", "/files/0/values"),
        ("a value has a text", file(json!({"values": [{"from_env": "X"}]})), "REQUIRED", "/files/0/values/0/value"),
        ("a source has a name", of(json!({"source": ""})), "INVALID_FORMAT", "/source"),
        ("a source's name has at most 255 bytes", of(json!({"source": "é".repeat(128)})), "INVALID_FORMAT", "/source"),
        ("a source's name has no tab", of(json!({"source": "a\tb"})), "INVALID_FORMAT", "/source"),
        ("a source's name has one encoding (D40)", of(json!({"source": "cafe\u{301}"})), "INVALID_FORMAT", "/source"),
        ("a source's name is no token", of(json!({"source": "{viewer_token}"})), "NOT_ALLOWED", "/source"),
        ("a source's name is a text", of(json!({"source": 7})), "WRONG_TYPE", "/source"),
        ("`dry_run` is true or false", of(json!({"dry_run": "yes"})), "WRONG_TYPE", "/dry_run"),
        ("`prune` is true or false", of(json!({"prune": 0})), "WRONG_TYPE", "/prune"),
        ("`max_deletes` is no word", of(json!({"max_deletes": "many"})), "INVALID_FORMAT", "/max_deletes"),
        ("`max_deletes` is at most 100%", of(json!({"max_deletes": "101%"})), "INVALID_FORMAT", "/max_deletes"),
        ("`commit` has at most 255 bytes", of(json!({"commit": "x".repeat(256)})), "INVALID_FORMAT", "/commit"),
        ("`commit` has no line break", of(json!({"commit": "a\n"})), "INVALID_FORMAT", "/commit"),
        (
            "the name of the commit's author has at most 1024 bytes",
            of(json!({"commit_author_name": "x".repeat(1025)})),
            "INVALID_FORMAT",
            "/commit_author_name",
        ),
        (
            "the email address of the commit's author has no control character",
            of(json!({"commit_author_email": "a\u{1b}"})),
            "INVALID_FORMAT",
            "/commit_author_email",
        ),
        (
            "the first line of a message is one line",
            of(json!({"commit_message": "a\nb"})),
            "INVALID_FORMAT",
            "/commit_message",
        ),
        ("labels are a list", of(json!({"allowed_labels": "team"})), "WRONG_TYPE", "/allowed_labels"),
        ("lints are a mapping", of(json!({"lints": ["weak-key"]})), "WRONG_TYPE", "/lints"),
        ("a lint has a level", of(json!({"lints": {"weak-key": "error"}})), "UNKNOWN_VALUE", "/lints/weak-key"),
        ("a lint is a known one", of(json!({"lints": {"a/b": "deny"}})), "UNKNOWN_VALUE", "/lints/a~1b"),
        ("a hash has 64 digits", of(json!({"token_hashes": {"ak_1": "abc"}})), "INVALID_FORMAT", "/token_hashes/ak_1"),
        (
            "a hash is in lower case",
            of(json!({"token_hashes": {"ak_1": "A".repeat(64)}})),
            "INVALID_FORMAT",
            "/token_hashes/ak_1",
        ),
    ];
    let mut rows =
        Vec::from(faults.map(|(name, body, code, field)| row(name).send(POST, body).fails(400, code, field)));
    rows.extend([
        row("an unknown field of a request is refused, and the nearest suggested")
            .send(POST, of(json!({"dryrun": true})))
            .fails(400, "UNKNOWN_FIELD", "/dryrun")
            .says("did you mean `dry_run`?"),
        row("an unknown lint is refused, and the nearest suggested")
            .send(POST, of(json!({"lints": {"week-key": "deny"}})))
            .fails(400, "UNKNOWN_VALUE", "/lints/week-key")
            .says("did you mean `weak-key`?"),
        row("a digest refers to a text that was sent before (D72)")
            .send(POST, json!({"files": [{"name": "a.yaml", "digest": "a".repeat(64)}], "source": "source-{n}"}))
            .fails(409, "MISSING_FILES", "")
            .says("the text of 1 file"),
        row("two files have two names")
            .send(POST, json!({"files": [{"name": "a.yaml", "text": good}, {"name": "a.yaml", "text": "# x\n"}]}))
            .fails(400, "DUPLICATE_NAME", "/files/1/name"),
        row("all that is wrong with a request is told at once (D9)")
            .send(POST, of(json!({"prune": 0, "source": "", "commit": "\n", "lints": {"x": "deny"}})))
            .fails(400, "INVALID_FORMAT", "/source")
            .also("WRONG_TYPE", "/prune")
            .also("INVALID_FORMAT", "/commit")
            .also("UNKNOWN_VALUE", "/lints/x"),
        row("a request has a body, and an object")
            .send_bytes(POST, "{")
            .fails(400, "SYNTAX", "")
            .send_bytes(POST, "")
            .fails(400, "SYNTAX", "")
            .send_bytes(POST, "null")
            .fails(400, "SYNTAX", "")
            .send(POST, json!([]))
            .fails(400, "WRONG_TYPE", "")
            .send_bytes(POST, r#"{"files": [], "files": []}"#)
            .fails(400, "DUPLICATE_KEY", "/files"),
        row("manifests are sent in JSON, not as YAML")
            .send_bytes(POST, good)
            .with("Content-Type", "application/yaml")
            .fails(415, "CONTENT_TYPE", ""),
    ]);
    rows
}
