//! Invariants: extensions of the specification, which refuse changes of other resources (D120).

use serde_json::json;

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};

#[test]
fn invariants() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    vec![resource_row(), fault_row(), refused_write_row(), policy_row(), refused_invariant_row(), proof_row()]
}

fn resource_row() -> Row {
    row("an invariant is created, read, changed and deleted like any resource")
        .send(
            "POST /invariants",
            json!({"description": "TLS", "scope": {"hosts": ["*.tls{n}.example.com"]}, "min_tls_version": "1.2"}),
        )
        .succeeds(201)
        .keep("inv", "/id")
        .shows("/min_tls_version", json!("1.2"))
        .shows("/scope/path_prefixes", json!([]))
        .shows("/unproven", json!("warn"))
        .call("GET /invariants/{inv}")
        .succeeds(200)
        .shows("/description", json!("TLS"))
        .call("GET /invariants")
        .succeeds(200)
        .shows("/invariants/0/id", json!("{inv}"))
        .send("PATCH /invariants/{inv}", json!({"unproven": "deny"}))
        .succeeds(200)
        .shows("/unproven", json!("deny"))
        .shows("/min_tls_version", json!("1.2"))
        .send("PATCH /invariants/{inv}", json!({"keeps": [], "min_tls_version": "1.3"}))
        .succeeds(200)
        .shows("/description", json!("TLS"))
        .call("DELETE /invariants/{inv}")
        .succeeds(204)
        .call("DELETE /invariants/{inv}")
        .fails(404, "NOT_FOUND", "")
        .call("GET /invariants/{inv}")
        .fails(404, "NOT_FOUND", "")
}

fn fault_row() -> Row {
    let exemption = json!({"owner": "ops", "expires": "soon"});
    row("an invariant must say what it requires, and until when it does not")
        .send("POST /invariants", json!({"description": ""}))
        .fails(400, "REQUIRED", "/description")
        .also("REQUIRED", "")
        .send("POST /invariants", json!({"description": "d", "requires_any": ["oicd"], "exemptions": [exemption]}))
        .fails(400, "UNKNOWN_VALUE", "/requires_any/0")
        .says("did you mean `oidc`?")
        .also("REQUIRED", "/exemptions/0")
        .also("REQUIRED", "/exemptions/0/reason")
        .also("INVALID_FORMAT", "/exemptions/0/expires")
        .send("PATCH /invariants/inv_unknown", json!({"description": "d"}))
        .fails(404, "NOT_FOUND", "")
        .refuses_query("GET /invariants?limit=0", "/limit")
}

fn refused_write_row() -> Row {
    let open = json!({"match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"}});
    let login = json!({"issuer": "https://login.example.com", "client_id": "edge", "client_secret": "s"});
    row("a write that breaks an invariant is refused with a request that shows it")
        .send(
            "POST /invariants",
            json!({"description": "Staff only", "scope": {"hosts": ["*.i{n}.example.com"]}, "requires_any": ["oidc"]}),
        )
        .succeeds(201)
        .keep("inv", "/id")
        .given("edge", "POST /edges/https", json!({"hostports": ["wiki.i{n}.example.com:443"]}))
        .send("POST /edges/https/{edge}/routes", open.clone())
        .fails(409, "INVARIANT_BROKEN", "")
        .says("Staff only")
        .send(
            "POST /edges/https/{edge}/routes",
            json!({"match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"}, "oidc": login}),
        )
        .succeeds(201)
        .keep("route", "/id")
        .call("DELETE /edges/https/{edge}/routes/{route}/oidc")
        .fails(409, "INVARIANT_BROKEN", "")
        .says("without `oidc`")
        .call("DELETE /invariants/{inv}")
        .succeeds(204)
        .call("DELETE /edges/https/{edge}/routes/{route}/oidc")
        .succeeds(204)
}

fn policy_row() -> Row {
    let with = |action: &str| {
        let policies = json!({"inbound": [{"expressions": ["req.Method == 'GET'"], "actions": [{"type": action}]}]});
        json!({"match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"}, "policies": policies})
    };
    let depends = "this may break the invariant `{inv}` (Staff only... \\u{fc}): `GET https://wiki.d{n}.example.com/` depends on the \
                   effect of `policies`";
    row("a policy that may refuse people leaves a doubt, which the response tells, and no other one does")
        .send(
            "POST /invariants",
            json!({"description": "Staff only… ü", "scope": {"hosts": ["*.d{n}.example.com"]}, "requires_any": ["oidc"]}),
        )
        .succeeds(201)
        .keep("inv", "/id")
        .given("edge", "POST /edges/https", json!({"hostports": ["wiki.d{n}.example.com:443"]}))
        .send("POST /edges/https/{edge}/routes", with("add-headers"))
        .fails(409, "INVARIANT_BROKEN", "")
        .says("without `oidc`")
        .send("POST /edges/https/{edge}/routes", with("deny"))
        .succeeds(201)
        .carries("Edgewright-Warning", depends)
        .call("DELETE /invariants/{inv}")
        .succeeds(204)
}

fn refused_invariant_row() -> Row {
    row("an invariant that does not hold is refused")
        .given(
            "edge",
            "POST /edges/https",
            json!({"hostports": ["old.v{n}.example.com:443"],
            "tls_termination": {"min_version": "1.1"}}),
        )
        .send(
            "POST /invariants",
            json!({"description": "TLS", "scope": {"hosts": ["*.v{n}.example.com"]}, "min_tls_version": "1.2"}),
        )
        .fails(409, "INVARIANT_BROKEN", "")
        .says("can use TLS 1.1")
}

fn proof_row() -> Row {
    row("the proofs say what holds")
        .send(
            "POST /invariants",
            json!({"description": "TLS", "scope": {"hosts": ["*.p{n}.example.com"]}, "min_tls_version": "1.2"}),
        )
        .succeeds(201)
        .keep("inv", "/id")
        .call("GET /proofs")
        .by("viewer")
        .succeeds(200)
        .shows("/invariants/0/answer", json!("unused"))
        .shows("/invariants/0/classes", json!(0))
        .refuses_query("GET /proofs?limit=1", "")
        .call("DELETE /invariants/{inv}")
        .succeeds(204)
}
