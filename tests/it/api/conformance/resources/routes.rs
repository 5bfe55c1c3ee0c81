//! HTTPS edge routes: the match rule, and PATCH as clients of this family send it (D6).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{self, route},
};

#[test]
fn https_edge_routes() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [life_rows(), match_rows(), all_modules_rows()].concat()
}

const POST: &str = "POST /edges/https/{edge}/routes";

fn patch() -> String {
    format!("PATCH {ROUTE}")
}

fn life_rows() -> Vec<Row> {
    let full = route(json!({"match_type": "exact_path", "match": "/a", "description": "d", "metadata": "m"}));
    let get = format!("GET {ROUTE}");
    vec![
        row("a route has all keys, unset modules null")
            .edge()
            .send(POST, json!({"match_type": "exact_path", "match": "/a", "description": "d", "metadata": "m"}))
            .answers(201, full.clone())
            .keep_etag("etag")
            .call("GET /edges/https/{edge}/routes/{edghtsrt_}")
            .answers(200, full.clone())
            .carries("ETag", "{etag}")
            .call("GET /edges/https/{edge}/routes")
            .answers(200, json!({"routes": [full], "uri": "{base}/edges/https/{edge}/routes", "next_page_uri": null}))
            .call("DELETE /edges/https/{edge}/routes/{edghtsrt_}")
            .succeeds(204)
            .call("DELETE /edges/https/{edge}/routes/{edghtsrt_}")
            .fails(404, "NOT_FOUND", "")
            .call("GET /edges/https/{edge}/routes/{edghtsrt_}")
            .fails(404, "NOT_FOUND", "")
            .call("GET /edges/https/{edge}/routes")
            .answers(200, json!({"routes": [], "uri": "{base}/edges/https/{edge}/routes", "next_page_uri": null})),
        row("null modules of a new route are not given")
            .edge()
            .send(
                POST,
                json!({"match_type": "path_prefix", "match": "/", "oauth": null, "saml": null, "backend": null}),
            )
            .answers(201, route(json!({}))),
        row("two routes may match the same (D2)")
            .route()
            .send(POST, json!({"match_type": "path_prefix", "match": "/"}))
            .succeeds(201),
        row("a PATCH of a route changes what it names and leaves the rest")
            .route()
            .send(&patch(), json!({"description": "d", "metadata": "m"}))
            .succeeds(200)
            .send(&patch(), json!({"match_type": "exact_path", "match": "host.example/x", "metadata": null}))
            .answers(
                200,
                as_given(
                    json!({"match_type": "exact_path", "match": "host.example/x", "description": "d", "metadata": "m"}),
                ),
            )
            .send(&patch(), json!({"description": ""}))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!("m")),
        row("an empty PATCH changes nothing")
            .route()
            .call(&get)
            .succeeds(200)
            .keep_etag("etag")
            .send(&patch(), json!({}))
            .answers(200, as_given(json!({})))
            .carries("ETag", "{etag}"),
        row("an empty match_type and match in a PATCH are not given (D6)")
            .route()
            .send(
                &patch(),
                json!({"match_type": "", "match": "", "description": "d", "backend": {"backend_id": "bkd_1"}}),
            )
            .succeeds(200)
            .shows("/match_type", json!("path_prefix"))
            .shows("/match", json!("/"))
            .shows("/description", json!("d"))
            .shows("/backend/backend/id", json!("bkd_1"))
            .send(&patch(), json!({"match_type": "", "match": "/other"}))
            .succeeds(200)
            .shows("/match_type", json!("path_prefix"))
            .shows("/match", json!("/other")),
        row("a route is found under its own edge only")
            .route()
            .given("other", "POST /edges/https", json!({}))
            .call("GET /edges/https/{other}/routes/{route}")
            .fails(404, "NOT_FOUND", "")
            .send("PATCH /edges/https/{other}/routes/{route}", json!({"description": "x"}))
            .fails(404, "NOT_FOUND", "")
            .send("PUT /edges/https/{other}/routes/{route}/compression", json!({}))
            .fails(404, "NOT_FOUND", "")
            .call("DELETE /edges/https/{other}/routes/{route}")
            .fails(404, "NOT_FOUND", "")
            .call(&get)
            .answers(200, as_given(json!({}))),
        row("an unknown edge takes no route")
            .send("POST /edges/https/edghts_unknown/routes", json!({"match_type": "exact_path", "match": "/"}))
            .fails(404, "NOT_FOUND", "")
            .call("GET /edges/https/edghts_unknown/routes")
            .fails(404, "NOT_FOUND", ""),
    ]
}

/// The route that `Row::route` made.
fn as_given(changes: Value) -> Value {
    samples::with(route(json!({"id": "{route}", "uri": "{base}/edges/https/{edge}/routes/{route}"})), changes)
}

fn match_rows() -> Vec<Row> {
    let mut rows = vec![
        row("a route needs a match rule")
            .edge()
            .send(POST, json!({}))
            .fails(400, "REQUIRED", "/match_type")
            .also("REQUIRED", "/match")
            .send(POST, json!({"match_type": null, "match": ""}))
            .fails(400, "REQUIRED", "/match_type")
            .also("REQUIRED", "/match"),
        row("match_type is exact_path or path_prefix (rule 4)")
            .edge()
            .send(POST, json!({"match_type": "prefix", "match": "/"}))
            .fails(400, "UNKNOWN_VALUE", "/match_type")
            .says("`exact_path`, `path_prefix`")
            .route()
            .send(&patch(), json!({"match_type": "regex"}))
            .fails(400, "UNKNOWN_VALUE", "/match_type")
            .send(&patch(), json!({"match_type": 1}))
            .fails(400, "WRONG_TYPE", "/match_type"),
        row("match is text").edge().send(POST, json!({"match_type": "exact_path", "match": ["/"]})).fails(
            400,
            "WRONG_TYPE",
            "/match",
        ),
        row("a misspelt module is refused, not dropped (D6)")
            .edge()
            .send(POST, json!({"match_type": "exact_path", "match": "/", "oath": {"provider": {"google": {}}}}))
            .fails(400, "UNKNOWN_FIELD", "/oath")
            .says("did you mean `oauth`?")
            .route()
            .send(&patch(), json!({"oath": {}}))
            .fails(400, "UNKNOWN_FIELD", "/oath"),
        row("all faults come back in one answer (D9)")
            .edge()
            .send(
                POST,
                json!({
                    "match_type": "path", "match": "/", "descriptoin": "x", "description": "é".repeat(128),
                    "backend": {}, "circuit_breaker": {"num_buckets": 129, "tripped_duration": -1},
                    "oauth": {"provider": {"github": {"client_id": "x"}}}
                }),
            )
            .fails(400, "UNKNOWN_FIELD", "/descriptoin")
            .also("UNKNOWN_VALUE", "/match_type")
            .also("OUT_OF_RANGE", "/circuit_breaker/tripped_duration")
            .also("OUT_OF_RANGE", "/circuit_breaker/num_buckets")
            .also("TOO_LONG", "/description")
            .also("REQUIRED", "/backend/backend_id")
            .also("REQUIRED", "/oauth/provider/github/client_secret"),
    ];
    rows.extend(["/admin\0", "\0.example.com/", "/a\nb", "/a\u{7f}", "/a\u{85}b"].map(|selector| {
        row(format!("`{}` has a control character, which is invisible in reviews", selector.escape_debug()))
            .edge()
            .send(POST, json!({"match_type": "path_prefix", "match": selector}))
            .fails(400, "INVALID_FORMAT", "/match")
    }));
    let selectors = ["/", "/a b", "shop.example.com", "shop.example.com/checkout", "/münchen", "*"];
    rows.extend(selectors.map(|selector| {
        row(format!("`{selector}` is taken as a selector as it is (D2)"))
            .edge()
            .send(POST, json!({"match_type": "path_prefix", "match": selector}))
            .answers(201, route(json!({"match": selector})))
    }));
    rows
}

/// Every module at once, as clients that always send everything do.
fn all_modules_rows() -> Vec<Row> {
    let modules = samples::route_modules();
    let collect = |form: fn(&samples::Sample) -> Value| {
        Value::Object(modules.iter().map(|sample| (sample.slot.to_owned(), form(sample))).collect())
    };
    let full = samples::with(json!({"match_type": "path_prefix", "match": "/"}), collect(|it| it.full.clone()));
    let least = collect(|it| it.least.clone());
    // The SAML addresses of an answer contain the route's own id, which a row knows after it only.
    let without_saml = |mut answer: Value| {
        answer.as_object_mut().unwrap().remove("saml");
        answer
    };
    let mut created =
        row("a route is created with all fourteen modules").edge().send(POST, full).succeeds(201).keep("route", "/id");
    for sample in modules.iter().filter(|sample| sample.slot != "saml") {
        created = created.shows(&format!("/{}", sample.slot), sample.full_answer.clone());
    }
    created = created.call(&format!("GET {ROUTE}")).succeeds(200).send(&patch(), least).succeeds(200);
    for sample in &modules {
        created = created.shows(&format!("/{}", sample.slot), sample.least_answer.clone());
    }
    let answers = without_saml(collect(|it| it.least_answer.clone()));
    created = created.call("GET /edges/https/{edge}").succeeds(200);
    for (slot, answer) in answers.as_object().unwrap() {
        created = created.shows(&format!("/routes/0/{slot}"), answer.clone());
    }
    vec![created]
}
