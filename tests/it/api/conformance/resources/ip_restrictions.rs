//! IP restrictions: their type is fixed, their policies are owned elsewhere (D20).

use serde_json::json;

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
    samples::ip_restriction,
};

#[test]
fn ip_restrictions() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [create_rows(), change_rows(), fault_rows()].concat()
}

fn create_rows() -> Vec<Row> {
    let policy = |id: &str| json!({"id": id, "uri": format!("{{base}}/ip_policies/{id}")});
    let full = ip_restriction(json!({
        "description": "office", "metadata": "m", "enforced": true, "type": "endpoints",
        "ip_policies": [policy("ipp_2"), policy("ipp_1")]
    }));
    let mut rows = vec![
        row("a restriction is answered with Refs in the place of ids, in their order")
            .send(
                "POST /ip_restrictions",
                json!({"description": "office", "metadata": "m", "enforced": true, "type": "endpoints",
                    "ip_policy_ids": ["ipp_2", "ipp_1"]}),
            )
            .answers(201, full.clone())
            .keep_etag("etag")
            .call("GET /ip_restrictions/{ipx_}")
            .answers(200, full.clone())
            .carries("ETag", "{etag}")
            .call("GET /ip_restrictions")
            .succeeds(200)
            .shows("/ip_restrictions/0", full)
            .call("DELETE /ip_restrictions/{ipx_}")
            .succeeds(204)
            .call("GET /ip_restrictions/{ipx_}")
            .fails(404, "NOT_FOUND", "")
            .call("DELETE /ip_restrictions/{ipx_}")
            .fails(404, "NOT_FOUND", ""),
        row("a create that omits `enforced` returns false")
            .send("POST /ip_restrictions", json!({"type": "dashboard"}))
            .answers(201, ip_restriction(json!({}))),
        row("null fields of a restriction are not given")
            .send(
                "POST /ip_restrictions",
                json!({"type": "api", "enforced": null, "ip_policy_ids": null, "description": null}),
            )
            .answers(201, ip_restriction(json!({"type": "api"}))),
        row("any opaque identifier is taken for a policy, up to 255 bytes")
            .send("POST /ip_restrictions", json!({"type": "api", "ip_policy_ids": ["x", "é".repeat(127), "a:b@c"]}))
            .succeeds(201)
            .shows("/ip_policies/2/id", json!("a:b@c")),
    ];
    rows.extend(["dashboard", "api", "agent", "endpoints"].map(|kind| {
        row(format!("a restriction can be of type {kind}"))
            .send("POST /ip_restrictions", json!({"type": kind}))
            .answers(201, ip_restriction(json!({"type": kind})))
    }));
    rows
}

fn change_rows() -> Vec<Row> {
    let made = |name: &str| {
        row(name).given(
            "ipx",
            "POST /ip_restrictions",
            json!({"type": "agent", "enforced": true, "ip_policy_ids": ["ipp_1"], "description": "before"}),
        )
    };
    vec![
        made("a PATCH of a restriction changes what it names and leaves the rest")
            .send("PATCH /ip_restrictions/{ipx}", json!({"enforced": false}))
            .succeeds(200)
            .shows("/enforced", json!(false))
            .shows("/description", json!("before"))
            .shows("/ip_policies/0/id", json!("ipp_1"))
            .send("PATCH /ip_restrictions/{ipx}", json!({"enforced": null, "ip_policy_ids": []}))
            .succeeds(200)
            .shows("/enforced", json!(false))
            .shows("/ip_policies", json!([]))
            .send("PATCH /ip_restrictions/{ipx}", json!({"description": "after", "metadata": "m"}))
            .succeeds(200)
            .shows("/description", json!("after"))
            .shows("/metadata", json!("m"))
            .shows("/type", json!("agent")),
        made("the type is fixed, and can be sent as it is (D62)")
            .send("PATCH /ip_restrictions/{ipx}", json!({"type": "api", "description": "after"}))
            .fails(400, "IMMUTABLE", "/type")
            .send("PATCH /ip_restrictions/{ipx}", json!({"type": "agent", "metadata": "m"}))
            .succeeds(200)
            .shows("/description", json!("before"))
            .shows("/metadata", json!("m"))
            .send("PATCH /ip_restrictions/{ipx}", json!({"type": "agents"}))
            .fails(400, "IMMUTABLE", "/type")
            .also("UNKNOWN_VALUE", "/type")
            .call("GET /ip_restrictions/{ipx}")
            .succeeds(200)
            .shows("/type", json!("agent")),
        made("a fixed field and other faults come back together (D9)")
            .send("PATCH /ip_restrictions/{ipx}", json!({"type": "api", "enforcd": true, "description": 1}))
            .fails(400, "IMMUTABLE", "/type")
            .also("UNKNOWN_FIELD", "/enforcd")
            .also("WRONG_TYPE", "/description"),
        row("an unknown restriction is 404")
            .call("GET /ip_restrictions/ipx_unknown")
            .fails(404, "NOT_FOUND", "")
            .send("PATCH /ip_restrictions/ipx_unknown", json!({"enforced": true, "type": "api"}))
            .fails(404, "NOT_FOUND", ""),
        row("the list of restrictions takes a limit up to 1000")
            .refuses_query("GET /ip_restrictions?limit=1001", "/limit"),
    ]
}

fn fault_rows() -> Vec<Row> {
    let post = "POST /ip_restrictions";
    vec![
        row("a restriction needs a type").send(post, json!({})).fails(400, "REQUIRED", "/type"),
        row("a null type is none").send(post, json!({"type": null})).fails(400, "REQUIRED", "/type"),
        row("a type is one of four words, in lower case")
            .send(post, json!({"type": "endpoint"}))
            .fails(400, "UNKNOWN_VALUE", "/type")
            .says("did you mean `endpoints`?")
            .send(post, json!({"type": "API"}))
            .fails(400, "UNKNOWN_VALUE", "/type"),
        row("`enforced` is true or false").send(post, json!({"type": "api", "enforced": "true"})).fails(
            400,
            "WRONG_TYPE",
            "/enforced",
        ),
        row("policies are given by id, not as Refs")
            .send(post, json!({"type": "api", "ip_policies": [{"id": "ipp_1"}]}))
            .fails(400, "UNKNOWN_FIELD", "/ip_policies")
            .says("did you mean `ip_policy_ids`?"),
        row("an identifier has no slash, no space, no control character, and 1 to 255 bytes")
            .send(post, json!({"type": "api", "ip_policy_ids": ["a/b", "a b", "a\tb", "é".repeat(128), ""]}))
            .fails(400, "INVALID_FORMAT", "/ip_policy_ids/0")
            .also("INVALID_FORMAT", "/ip_policy_ids/1")
            .also("INVALID_FORMAT", "/ip_policy_ids/2")
            .also("INVALID_FORMAT", "/ip_policy_ids/3")
            .also("REQUIRED", "/ip_policy_ids/4"),
        row("null is no identifier").send(post, json!({"type": "api", "ip_policy_ids": ["ipp_1", null]})).fails(
            400,
            "WRONG_TYPE",
            "/ip_policy_ids/1",
        ),
    ]
}
