//! The webhook of forges: who may send it, and what it answers when no source is followed (D90).

use serde_json::json;

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};
use crate::support::server::HOOK_SECRET;

const POST: &str = "POST /hooks/git";
const TOKEN: &str = "X-Gitlab-Token";

#[test]
fn hooks() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    let payload = json!({"repository": {"clone_url": "https://git.example.com/team/edge.git"}});
    vec![
        row("a webhook needs its secret, and neither an API key nor a version")
            .send(POST, payload.clone())
            .without("Authorization")
            .without("Service-Version")
            .with(TOKEN, HOOK_SECRET)
            .answers(202, json!({"sources": []})),
        row("a webhook without its secret is refused, whoever sends it")
            .send(POST, payload.clone())
            .fails(401, "UNAUTHENTICATED", "")
            .send(POST, payload.clone())
            .with(TOKEN, "another")
            .fails(401, "UNAUTHENTICATED", "")
            .send(POST, payload)
            .with("X-Hub-Signature-256", "sha256=00")
            .fails(401, "UNAUTHENTICATED", "")
            .hides(HOOK_SECRET)
            .send_bytes(POST, "{")
            .with(TOKEN, "another")
            .fails(401, "UNAUTHENTICATED", ""),
        row("the payload of a webhook is JSON of a limited size")
            .send_bytes(POST, "{")
            .with(TOKEN, HOOK_SECRET)
            .fails(400, "SYNTAX", "")
            .send_bytes(POST, "ref=main")
            .with(TOKEN, HOOK_SECRET)
            .with("Content-Type", "application/x-www-form-urlencoded")
            .fails(415, "CONTENT_TYPE", "")
            .send_bytes(POST, vec![b' '; (4 << 20) + 1])
            .with(TOKEN, HOOK_SECRET)
            .fails(413, "BODY_TOO_LARGE", ""),
        row("a webhook has POST alone and no query")
            .call("GET /hooks/git")
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .carries("Allow", "POST")
            .send_bytes("POST /hooks/git?ref=main", "{}")
            .with(TOKEN, HOOK_SECRET)
            .fails(400, "PARAMETER", ""),
    ]
}
