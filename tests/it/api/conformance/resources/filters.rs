//! Filters on lists: CEL and the plain parameters, page by page, within bounds, and never an oracle for secrets (D66).

use std::sync::Arc;

use edgewright::resources::{AnyResource, IpRestriction, Kind, Traffic};
use serde_json::{Value, json};

use crate::api::conformance::operations::reconciliations::{POST, request};
use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
};
use crate::support::{
    manifests::bare_edge,
    server::{BASE_URL, Server},
};

#[test]
fn filters() {
    hold(rows());
}

/// Percent-encodes a value of the query; `{name}` stays a placeholder.
fn encoded(text: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~{}".contains(&byte);
    let encode = |byte: u8| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

fn get(path: &str, parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    format!("GET {path}?{}", pairs.join("&"))
}

pub(super) fn rows() -> Vec<Row> {
    let filter = |path: &str, expression: &str| get(path, &[("filter", expression)]);
    let described = |description: &str| json!({"description": description});
    let nothing = |list: &str, path: &str| json!({list: [], "uri": format!("{{base}}{path}"), "next_page_uri": null});
    let mut rows = vec![
        row("a filter selects by the fields of the response")
            .given("old", "POST /edges/https", described("first of {n}"))
            .given("other", "POST /edges/https", described("other"))
            .given("new", "POST /edges/https", described("second of {n}"))
            .call(&filter(
                "/edges/https",
                r#"obj.description.endsWith("of {n}") && obj.created_at > timestamp("2020-01-01T00:00:00Z")"#,
            ))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{new}"))
            .shows("/https_edges/1/id", json!("{old}"))
            .hides("{other}")
            .shows("/next_page_uri", Value::Null)
            .call(&filter("/edges/https", "obj.id == '{other}'"))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{other}"))
            .shows("/uri", json!("{base}/edges/https")),
        row("`limit` counts what the filter selects, and the next page has the same filter")
            .given("old", "POST /edges/https", described("é+&= {n}"))
            .given("between", "POST /edges/https", described("-"))
            .given("new", "POST /edges/https", described("é+&= {n}"))
            .call(&get("/edges/https", &[("filter", "obj.description == 'é+&= {n}'"), ("limit", "1")]))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{new}"))
            .hides("{old}")
            .shows(
                "/next_page_uri",
                json!(format!(
                    "{{base}}/edges/https?limit=1&before_id={{new}}&filter={}",
                    encoded("obj.description == 'é+&= {n}'")
                )),
            )
            .call(&get(
                "/edges/https",
                &[("limit", "1"), ("before_id", "{new}"), ("filter", "obj.description == 'é+&= {n}'")],
            ))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{old}"))
            .shows("/next_page_uri", Value::Null),
        row("the routes of an edge are part of it in a filter")
            .given("edge", "POST /edges/https", described("{n}"))
            .given(
                "route",
                "POST /edges/https/{edge}/routes",
                json!({"match_type": "exact_path", "match": "/a", "compression": {}}),
            )
            .call(&filter("/edges/https", "obj.id == '{edge}' && obj.routes.exists(r, has(r.compression))"))
            .succeeds(200)
            .shows("/https_edges/0/routes/0/id", json!("{route}"))
            .call(&filter("/edges/https", "obj.id == '{edge}'"))
            .succeeds(200)
            .shows("/https_edges/0/routes/0/id", json!("{route}"))
            .call(&filter("/edges/https/{edge}/routes", "obj.match == '/a' && obj.backend == null"))
            .succeeds(200)
            .shows("/routes/0/id", json!("{route}"))
            .call(&filter("/edges/https/{edge}/routes", "obj.backend.enabled"))
            .answers(200, nothing("routes", "/edges/https/{edge}/routes")),
        row("a secret is masked in a filter, for every role")
            .route()
            .send(&format!("PUT {ROUTE}/webhook_verification"), json!({"provider": "github", "secret": "swordfish"}))
            .succeeds(200)
            .call(&filter("/edges/https/{edge}/routes", "obj.webhook_verification.secret.startsWith('s')"))
            .answers(200, nothing("routes", "/edges/https/{edge}/routes"))
            .call(&filter("/edges/https/{edge}/routes", "obj.webhook_verification.secret.startsWith('s')"))
            .by("viewer")
            .answers(200, nothing("routes", "/edges/https/{edge}/routes"))
            .call(&filter("/edges/https/{edge}/routes", "obj.webhook_verification.secret == '********'"))
            .by("viewer")
            .succeeds(200)
            .shows("/routes/0/id", json!("{route}"))
            .hides("swordfish"),
        row("plain parameters select by name, source and hostport, and all must hold")
            .send(POST, request(&bare_edge("find-{n}", ""), json!({})))
            .succeeds(201)
            .call(&get("/edges/https", &[("name", "find-{n}"), ("source", "source-{n}")]))
            .succeeds(200)
            .shows("/https_edges/0/hostports/0", json!("find-{n}.example.com:443"))
            .keep("found", "/https_edges/0/id")
            .call(&get("/edges/https", &[("name", "find-{n}"), ("source", "source-none")]))
            .answers(200, nothing("https_edges", "/edges/https"))
            .call(&get("/edges/https", &[("hostport", "FIND-{n}.example.com:443")]))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{found}"))
            .call(&get("/edges/https", &[("hostport", "find-{n}.example.com")]))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{found}"))
            .call(&get("/edges/https", &[("hostport", "find-{n}.example.com.:443")]))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{found}"))
            .call(&get("/edges/https", &[("hostport", "find-{n}.example.com:80")]))
            .answers(200, nothing("https_edges", "/edges/https"))
            .call(&get("/edges/https", &[("q", "FIND-{n}"), ("filter", "obj.hostports.size() == 1")]))
            .succeeds(200)
            .shows("/https_edges/0/id", json!("{found}"))
            .call(&get("/edges/https", &[("q", "find-{n}"), ("filter", "obj.hostports.size() == 2")]))
            .answers(200, nothing("https_edges", "/edges/https")),
        row("`q` searches description and metadata, and `match` finds a route")
            .route()
            .given("key", "POST /api_keys", json!({"metadata": "Größe {n}"}))
            .call(&get("/api_keys", &[("q", "GRÖSSE {n}")]))
            .answers(200, nothing("keys", "/api_keys"))
            .call(&get("/api_keys", &[("q", "GRÖßE {n}")]))
            .succeeds(200)
            .shows("/keys/0/id", json!("{key}"))
            .call(&get("/edges/https/{edge}/routes", &[("match", "/")]))
            .succeeds(200)
            .shows("/routes/0/id", json!("{route}"))
            .call(&get("/edges/https/{edge}/routes", &[("match", "/other")]))
            .answers(200, nothing("routes", "/edges/https/{edge}/routes")),
        row("a parameter of another kind is unknown")
            .refuses_query("GET /api_keys?hostport=a:443", "/hostport")
            .refuses_query("GET /edges/https?match=%2F", "/match")
            .refuses_query("GET /edges/https?fliter=true", "/fliter")
            .says("did you mean `filter`?")
            .refuses_query("GET /edges/https?filter=true&filter=true", "/filter")
            .refuses_query("GET /reconciliations?filter=true", "/filter"),
        row("an empty parameter is refused, and every fault is told")
            .refuses_query("GET /edges/https?q=&filter=", "/q")
            .also("PARAMETER", "/filter"),
        row("the parent comes before the filter").call("GET /edges/https/edghts_none/routes?filter=%28").fails(
            404,
            "NOT_FOUND",
            "",
        ),
    ];
    for (expression, says) in [
        ("obj.descripton == 'x'", "column 5: unknown field `descripton`; did you mean `description`?"),
        ("obj.description == 'x' &&", "column 26: an operand is missing"),
        ("obj.description.beginsWith('x')", "column 17: unknown function `beginsWith`"),
        ("obj.description", "column 5: the expression must be a boolean, not a string"),
        ("obj.description < 3", "column 17: `<` does not apply to a string and a number"),
        ("obj.description.matches('(')", "column 25: invalid pattern"),
    ] {
        let name = format!("the filter `{expression}` is refused");
        rows.push(row(name).refuses_query(&filter("/edges/https", expression), "/filter").says(says));
    }
    let list = format!("[{}]", ["1"; 90].join(","));
    let loops = format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, a + b + c + d > 0))))");
    rows.push(
        row("an expensive filter ends before it is done")
            .edge()
            .refuses_query(&filter("/edges/https", &loops), "/filter")
            .says("the evaluation takes too long")
            .call("GET /edges/https?limit=1")
            .succeeds(200),
    );
    for deep in ["(", "!", "[", "-", "true?"] {
        let name = format!("a filter of many `{deep}` is refused");
        let text = format!("{}true", deep.repeat(700));
        rows.push(row(name).refuses_query(&filter("/edges/https", &text), "/filter"));
    }
    rows
}

#[test]
fn a_walk_sees_every_match_once_while_others_write() {
    let server = Server::start();
    let make = |count: usize| {
        let spec = |number: usize| IpRestriction {
            r#type: Some(Traffic::Api),
            description: if number.is_multiple_of(3) { "yes".into() } else { "no".into() },
            ..IpRestriction::default()
        };
        server.create(Kind::IpRestriction, (0..count).map(|number| Arc::new(spec(number)) as Arc<dyn AnyResource>))
    };
    let all = make(60);
    let mut expected: Vec<String> = all.into_iter().step_by(3).collect();
    expected.reverse();
    let mut seen: Vec<String> = Vec::new();
    let mut next = Some(format!("/ip_restrictions?limit=3&{}", "filter=obj.description%20%3D%3D%20%27yes%27"));
    while let Some(path) = next {
        let answer = server.call("GET", &path, None);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let items = answer.json["ip_restrictions"].as_array().unwrap();
        assert!((1..=3).contains(&items.len()), "{}", answer.text);
        seen.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        next = answer.json["next_page_uri"].as_str().map(|uri| uri.strip_prefix(BASE_URL).unwrap().to_owned());
        // New ones come before the first page, and the item to continue after is gone.
        make(2);
        let last = seen.last().unwrap();
        assert_eq!(server.call("DELETE", &format!("/ip_restrictions/{last}"), None).status, 204);
    }
    assert_eq!(seen, expected);
}
