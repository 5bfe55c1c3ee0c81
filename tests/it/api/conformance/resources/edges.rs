//! HTTPS edges: hostports (D17), mutual TLS and its references (D20), TLS termination (D15), deletion (D35).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{self, STAFF_CA, edge, route},
};

#[test]
fn https_edges() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [life_rows(), hostport_rows(), reference_rows(), termination_rows(), pass_through_rows()].concat()
}

fn life_rows() -> Vec<Row> {
    let authority = json!({"id": "{ca}", "uri": "{base}/certificate_authorities/{ca}"});
    let full = edge(json!({
        "description": "shop", "metadata": "m", "hostports": ["shop.example.com:443", "*.shop.example.com:8443"],
        "mutual_tls": {"enabled": true, "certificate_authorities": [authority]},
        "tls_termination": {"enabled": false, "terminate_at": "edge", "min_version": "1.3"}
    }));
    vec![
        row("an edge is created with its modules, and without routes")
            .ca()
            .send(
                "POST /edges/https",
                json!({
                    "description": "shop", "metadata": "m",
                    "hostports": ["shop.example.com:443", "*.shop.example.com:8443"],
                    "mutual_tls": {"certificate_authority_ids": ["{ca}"]},
                    "tls_termination": {"enabled": false, "min_version": "1.3"}
                }),
            )
            .answers(201, full.clone())
            .keep_etag("etag")
            .call("GET /edges/https/{edghts_}")
            .answers(200, full.clone())
            .carries("ETag", "{etag}")
            .call("GET /edges/https")
            .succeeds(200)
            .shows("/https_edges/0", full),
        row("an edge needs no field at all").send("POST /edges/https", json!({})).answers(201, edge(json!({}))),
        row("a PATCH of an edge changes what it names and leaves the rest")
            .given("edge", "POST /edges/https", json!({"hostports": ["a.example.com:443"], "description": "before"}))
            .send("PATCH /edges/https/{edge}", json!({"description": "after", "hostports": null}))
            .succeeds(200)
            .shows("/description", json!("after"))
            .shows("/hostports", json!(["a.example.com:443"]))
            .send("PATCH /edges/https/{edge}", json!({"hostports": []}))
            .answers(200, edge(json!({"description": "after"}))),
        row("an edge shows its routes whole, oldest first")
            .edge()
            .given("first", "POST /edges/https/{edge}/routes", json!({"match_type": "exact_path", "match": "/a"}))
            .given("second", "POST /edges/https/{edge}/routes", json!({"match_type": "path_prefix", "match": "/b"}))
            .call("GET /edges/https/{edge}")
            .succeeds(200)
            .shows(
                "/routes/0",
                route(json!({"id": "{first}", "uri": "{base}/edges/https/{edge}/routes/{first}",
                    "match_type": "exact_path", "match": "/a"})),
            )
            .shows("/routes/1/id", json!("{second}"))
            .send("PUT /edges/https/{edge}/routes/{first}/compression", json!({}))
            .succeeds(200)
            .call("GET /edges/https/{edge}")
            .succeeds(200)
            .shows("/routes/0/compression", json!({"enabled": true})),
        row("deleting an edge deletes its routes with it (D35)")
            .route()
            .call("DELETE /edges/https/{edge}")
            .succeeds(204)
            .call("GET /edges/https/{edge}")
            .fails(404, "NOT_FOUND", "")
            .call(&format!("GET {ROUTE}"))
            .fails(404, "NOT_FOUND", "")
            .call("GET /edges/https/{edge}/routes")
            .fails(404, "NOT_FOUND", "")
            .call("DELETE /edges/https/{edge}")
            .fails(404, "NOT_FOUND", ""),
        row("an unknown edge is 404")
            .call("GET /edges/https/edghts_unknown")
            .fails(404, "NOT_FOUND", "")
            .send("PATCH /edges/https/edghts_unknown", json!({"description": "x"}))
            .fails(404, "NOT_FOUND", "")
            .refuses_query("GET /edges/https?limit=1&limit=2", "/limit"),
        row("routes are not written with their edge").send("POST /edges/https", json!({"routes": []})).fails(
            400,
            "UNKNOWN_FIELD",
            "/routes",
        ),
        row("Refs of the answer are not the ids of the request")
            .ca()
            .send("POST /edges/https", json!({"mutual_tls": {"certificate_authorities": [{"id": "{ca}"}]}}))
            .fails(400, "UNKNOWN_FIELD", "/mutual_tls/certificate_authorities")
            .says("did you mean `certificate_authority_ids`?"),
    ]
}

fn hostport_rows() -> Vec<Row> {
    let good = ["a:1", "*.example.com:65535", "192.0.2.1:80", "[2001:db8::1]:443", "xn--caf-dma.example:443"];
    let bad = [
        "",
        ":443",
        "shop.example.com",
        "a:",
        "a:0",
        "a:65536",
        "a:+1",
        "a b:1",
        "a..b:1",
        "*:1",
        "a.*:1",
        "2001:db8::1:443",
        "https://a:1",
        "a:1/x",
        "a:-1",
    ];
    let mut rows = vec![
        row("hostports are kept in their order, as they are written")
            .send("POST /edges/https", json!({"hostports": good}))
            .answers(201, edge(json!({"hostports": good}))),
        row("a hostport is text").send("POST /edges/https", json!({"hostports": [443]})).fails(
            400,
            "WRONG_TYPE",
            "/hostports/0",
        ),
        row("a fault is named by its place in the body, whatever is wrong with the entries before it (D9)")
            .send("POST /edges/https", json!({"hostports": [443, "a:1", "a:0"]}))
            .fails(400, "WRONG_TYPE", "/hostports/0")
            .also("INVALID_FORMAT", "/hostports/2"),
        row("hostports are a list").send("POST /edges/https", json!({"hostports": "a:1"})).fails(
            400,
            "WRONG_TYPE",
            "/hostports",
        ),
    ];
    rows.extend(bad.map(|hostport| {
        row(format!("`{hostport}` is no hostport"))
            .send("POST /edges/https", json!({"hostports": ["a:1", hostport]}))
            .fails(400, "INVALID_FORMAT", "/hostports/1")
            .edge()
            .send("PATCH /edges/https/{edge}", json!({"hostports": [hostport]}))
            .fails(400, "INVALID_FORMAT", "/hostports/0")
    }));
    rows
}

fn reference_rows() -> Vec<Row> {
    let unknown = json!({"mutual_tls": {"certificate_authority_ids": ["{ca}", "ca_gone", "ca_none"]}});
    vec![
        row("an unknown authority is refused, each by its place (D20)")
            .ca()
            .send("POST /edges/https", unknown.clone())
            .fails(400, "UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/1")
            .also("UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/2")
            .says("ca_gone")
            .edge()
            .send("PATCH /edges/https/{edge}", unknown)
            .fails(400, "UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/1")
            .also("UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/2"),
        row("an unknown authority does not hide that the edge has no use for one (D9, D15)")
            .send(
                "POST /edges/https",
                json!({
                    "mutual_tls": {"certificate_authority_ids": ["ca_gone"]},
                    "tls_termination": {"terminate_at": "upstream"},
                }),
            )
            .fails(400, "UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/0")
            .also("NOT_ALLOWED", "/mutual_tls"),
        row("a fault of a field hides neither unknown authorities nor rules between modules (D9)")
            .send(
                "POST /edges/https",
                json!({
                    "mutual_tls": {"certificate_authority_ids": ["ca_gone"]},
                    "tls_termination": {"terminate_at": "upstream", "min_version": "1.3"},
                }),
            )
            .fails(400, "NOT_ALLOWED", "/tls_termination/min_version")
            .also("UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/0")
            .also("NOT_ALLOWED", "/mutual_tls")
            .send(
                "POST /edges/https",
                json!({"hostports": ["a:0"], "mutual_tls": {"certificate_authority_ids": [7, "ca_gone"]}}),
            )
            .fails(400, "WRONG_TYPE", "/mutual_tls/certificate_authority_ids/0")
            .also("INVALID_FORMAT", "/hostports/0")
            .also("UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/1")
            .edge()
            .send(
                "PATCH /edges/https/{edge}",
                json!({"colour": 1, "mutual_tls": {"certificate_authority_ids": ["ca_gone"]}}),
            )
            .fails(400, "UNKNOWN_FIELD", "/colour")
            .also("UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/0")
            .send("PUT /edges/https/{edge}/mutual_tls", json!({"colour": 1, "certificate_authority_ids": ["ca_gone"]}))
            .fails(400, "UNKNOWN_FIELD", "/colour")
            .also("UNKNOWN_REFERENCE", "/certificate_authority_ids/0"),
        row("an authority that was deleted is unknown")
            .ca()
            .call("DELETE /certificate_authorities/{ca}")
            .succeeds(204)
            .send("POST /edges/https", json!({"mutual_tls": {"certificate_authority_ids": ["{ca}"]}}))
            .fails(400, "UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/0"),
        row("an authority that is named no longer can be deleted")
            .ca()
            .given("other", "POST /certificate_authorities", json!({"ca_pem": STAFF_CA}))
            .given("edge", "POST /edges/https", json!({"mutual_tls": {"certificate_authority_ids": ["{ca}"]}}))
            .send("PATCH /edges/https/{edge}", json!({"mutual_tls": {"certificate_authority_ids": ["{other}"]}}))
            .succeeds(200)
            .call("DELETE /certificate_authorities/{ca}")
            .succeeds(204)
            .call("DELETE /certificate_authorities/{other}")
            .fails(409, "IN_USE", "")
            .says("{edge}")
            .call("DELETE /edges/https/{edge}")
            .succeeds(204)
            .call("DELETE /certificate_authorities/{other}")
            .succeeds(204),
    ]
}

fn termination_rows() -> Vec<Row> {
    let put = "PUT /edges/https/{edge}/tls_termination";
    let of = |version: Value| json!({"enabled": true, "terminate_at": "edge", "min_version": version});
    let mut rows = vec![
        row("a null version at the edge is the default")
            .edge()
            .send(put, json!({"terminate_at": "edge", "min_version": null}))
            .answers(200, of(json!("1.2"))),
        row("`upstream` has no version, and none may be given (rule 3)")
            .edge()
            .send(put, json!({"terminate_at": "upstream"}))
            .answers(200, json!({"enabled": true, "terminate_at": "upstream", "min_version": null}))
            .send(put, json!({"terminate_at": "upstream", "min_version": null}))
            .answers(200, json!({"enabled": true, "terminate_at": "upstream", "min_version": null}))
            .send(put, json!({"terminate_at": "upstream", "min_version": "1.2"}))
            .fails(400, "NOT_ALLOWED", "/min_version"),
        row("rule 3 holds in the edge's own body too")
            .send("POST /edges/https", json!({"tls_termination": {"terminate_at": "upstream", "min_version": "1.0"}}))
            .fails(400, "NOT_ALLOWED", "/tls_termination/min_version")
            .edge()
            .send(
                "PATCH /edges/https/{edge}",
                json!({"tls_termination": {"terminate_at": "upstream", "min_version": "1.3"}}),
            )
            .fails(400, "NOT_ALLOWED", "/tls_termination/min_version"),
        row("a version is quoted: 1.3 is a number")
            .edge()
            .send(put, json!({"min_version": 1.3}))
            .fails(400, "WRONG_TYPE", "/min_version")
            .says("quote it"),
        row("versions and ends are words of a list")
            .edge()
            .send(put, json!({"terminate_at": "agent", "min_version": "1.4"}))
            .fails(400, "UNKNOWN_VALUE", "/terminate_at")
            .also("UNKNOWN_VALUE", "/min_version")
            .send(put, json!({"min_version": " "}))
            .fails(400, "UNKNOWN_VALUE", "/min_version"),
        row("a blank version or end is not given (D62)")
            .edge()
            .send(put, json!({"terminate_at": "", "min_version": ""}))
            .answers(200, of(json!("1.2")))
            .send("PATCH /edges/https/{edge}", json!({"tls_termination": {"min_version": ""}}))
            .succeeds(200)
            .shows("/tls_termination", of(json!("1.2")))
            .send("POST /edges/https", json!({"tls_termination": {"terminate_at": "", "min_version": "1.3"}}))
            .succeeds(201)
            .shows("/tls_termination", of(json!("1.3"))),
        row("a blank version is no null beside `upstream` (D62)")
            .edge()
            .send(put, json!({"terminate_at": "upstream", "min_version": ""}))
            .fails(400, "NOT_ALLOWED", "/min_version"),
    ];
    rows.extend(["1.0", "1.1", "1.2", "1.3"].map(|version| {
        row(format!("the edge can ask for TLS {version}"))
            .edge()
            .send(put, json!({"min_version": version}))
            .answers(200, of(json!(version)))
    }));
    rows
}

fn pass_through_rows() -> Vec<Row> {
    let upstream = json!({"tls_termination": {"terminate_at": "upstream"}});
    let passing = |name: &str| row(name).given("edge", "POST /edges/https", upstream.clone());
    let post = "POST /edges/https/{edge}/routes";
    let plain = json!({"match_type": "path_prefix", "match": "/"});
    let mut rows = vec![
        passing("an edge that passes TLS through has no mutual TLS (D15)")
            .ca()
            .send("PUT /edges/https/{edge}/mutual_tls", json!({"certificate_authority_ids": ["{ca}"]}))
            .fails(400, "NOT_ALLOWED", "")
            .send("PATCH /edges/https/{edge}", json!({"mutual_tls": {}}))
            .fails(400, "NOT_ALLOWED", "/mutual_tls")
            .send("POST /edges/https", samples::with(upstream.clone(), json!({"mutual_tls": {}})))
            .fails(400, "NOT_ALLOWED", "/mutual_tls"),
        row("an edge with mutual TLS cannot pass TLS through: the field that was sent is at fault (D9)")
            .given("edge", "POST /edges/https", json!({"mutual_tls": {}}))
            .send("PUT /edges/https/{edge}/tls_termination", json!({"terminate_at": "upstream"}))
            .fails(400, "NOT_ALLOWED", "/terminate_at")
            .send("PATCH /edges/https/{edge}", upstream.clone())
            .fails(400, "NOT_ALLOWED", "/tls_termination/terminate_at"),
        row("an edge with a route that reads traffic cannot pass TLS through, and the route is named")
            .route()
            .send(&format!("PUT {ROUTE}/compression"), json!({}))
            .succeeds(200)
            .send("PATCH /edges/https/{edge}", upstream.clone())
            .fails(400, "NOT_ALLOWED", "/tls_termination/terminate_at")
            .says("{route}")
            .send("PUT /edges/https/{edge}/tls_termination", json!({"terminate_at": "upstream"}))
            .fails(400, "NOT_ALLOWED", "/terminate_at")
            .call(&format!("DELETE {ROUTE}/compression"))
            .succeeds(204)
            .send("PATCH /edges/https/{edge}", upstream.clone())
            .succeeds(200),
    ];
    rows.extend(samples::route_modules().into_iter().map(|sample| {
        let allowed = ["backend", "ip_restriction", "policies"].contains(&sample.slot);
        let with_module = samples::with(plain.clone(), json!({sample.slot: sample.full}));
        let put = format!("PUT {ROUTE}/{}", sample.slot);
        let field = format!("/{}", sample.slot);
        if allowed {
            return passing(&format!("{} works on traffic that is passed through", sample.slot))
                .send(post, with_module)
                .succeeds(201)
                .shows(&field, sample.full_answer)
                .given("route", post, plain.clone())
                .send(&put, sample.full)
                .succeeds(200);
        }
        passing(&format!("{} needs traffic that the edge can read", sample.slot))
            .send(post, with_module)
            .fails(400, "NOT_ALLOWED", &field)
            .given("route", post, plain.clone())
            .send(&put, sample.full.clone())
            .fails(400, "NOT_ALLOWED", "")
            .send(&format!("PATCH {ROUTE}"), json!({sample.slot: sample.full}))
            .fails(400, "NOT_ALLOWED", &field)
    }));
    rows
}
