//! The role `gateway`: its key reads the gateway configuration and nothing else, and no other key reads that (D94).

use edgewright::{resources::Role, server::endpoints};
use serde_json::json;

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold_on,
};
use crate::support::server::Server;

const CONFIGURATION: &str = "GET /gateway/configuration";

#[test]
fn a_gateway_reads_its_configuration_and_nothing_else() {
    let server = Server::start();
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let mut rows = vec![
        row("a gateway reads its configuration")
            .call(CONFIGURATION)
            .by(&gateway)
            .succeeds(200)
            .shows("/full", json!(true))
            .carries("Cache-Control", "no-store")
            .carries("Content-Type", "application/json"),
        row("the configuration asks for a token and a version, before it looks at the query")
            .call(&format!("{CONFIGURATION}?sinc=1"))
            .without("Authorization")
            .fails(401, "UNAUTHENTICATED", "")
            .call(&format!("{CONFIGURATION}?sinc=1"))
            .by(&gateway)
            .without("Service-Version")
            .fails(400, "VERSION_HEADER", "")
            .call(&format!("{CONFIGURATION}?sinc=1"))
            .by(&gateway)
            .fails(400, "PARAMETER", "/sinc")
            .says("did you mean `since`?"),
        row("a revision is a number")
            .call(&format!("{CONFIGURATION}?since=-1"))
            .by(&gateway)
            .fails(400, "PARAMETER", "/since")
            .call(&format!("{CONFIGURATION}?since="))
            .by(&gateway)
            .fails(400, "PARAMETER", "/since"),
        row("the configuration is only read").call("PUT /gateway/configuration").by(&gateway).fails(
            405,
            "METHOD_NOT_ALLOWED",
            "",
        ),
        row("an admin can create another key for the owner")
            .send("POST /api_keys", json!({"owner_id": "bot_gateway"}))
            .succeeds(201)
            .keep("made", "/token")
            .call(CONFIGURATION)
            .with("Authorization", "Bearer {made}")
            .succeeds(200),
    ];
    rows.extend(["admin", "editor", "viewer"].map(|who| {
        row(format!("the role {who} does not read private keys"))
            .call(CONFIGURATION)
            .by(who)
            .fails(403, "FORBIDDEN", "")
            .says("role `gateway`")
    }));
    let others = [
        "GET /reconciliations",
        "POST /reconciliations",
        "GET /reconciliations/x",
        "POST /rollbacks",
        "GET /history",
        "GET /history/1",
        "GET /history/blame",
        "GET /sources",
        "GET /sources/x",
        "POST /sources/x/suspend",
        "POST /sources/x/resume",
        "POST /sources/x/sync",
        "POST /store/rekey",
        "POST /sources/x/destroy",
        "POST /transfers",
    ];
    let of_resources = endpoints().into_iter().map(|it| format!("{} {}", it.method, it.path.replace(['{', '}'], "")));
    let refused = |call: String| -> Row {
        row(format!("a gateway may not {call}")).send_bytes(&call, "{").by(&gateway).fails(403, "FORBIDDEN", "")
    };
    rows.extend(others.into_iter().map(str::to_owned).chain(of_resources).map(refused));
    hold_on(&server, &rows);
}
