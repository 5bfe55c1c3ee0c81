//! Who may ask, and in what order a request is checked (D3, D4, D23).

use std::collections::BTreeSet;

use edgewright::server::{Endpoint, Settings, endpoints};
use serde_json::json;

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::STAFF_CA,
};
use crate::support::server::{BASE_URL, Server, usual_headers};

#[test]
fn tokens_versions_and_roles() {
    hold([endpoint_rows(), token_rows(), version_rows(), open_rows()].concat());
}

#[test]
fn the_order_of_checks() {
    hold(order_rows());
}

/// A call to an endpoint; its ids name nothing.
fn call_of(endpoint: &Endpoint) -> String {
    format!("{} {}", endpoint.method, endpoint.path.replace(['{', '}'], ""))
}

/// What every endpoint asks for, before it looks at anything else.
fn endpoint_rows() -> Vec<Row> {
    let rows = endpoints().into_iter().map(|endpoint| {
        let call = call_of(&endpoint);
        let asked = row(format!("{call} asks for a token and a version"))
            .send_bytes(&call, "{")
            .without("Authorization")
            .fails(401, "UNAUTHENTICATED", "")
            .carries("WWW-Authenticate", "Bearer")
            .send_bytes(&call, "{")
            .without("Service-Version")
            .fails(400, "VERSION_HEADER", "")
            .says("Service-Version");
        match endpoint.method {
            "GET" => asked,
            _ => asked.send_bytes(&call, "{").by("viewer").fails(403, "FORBIDDEN", ""),
        }
    });
    rows.collect()
}

fn token_rows() -> Vec<Row> {
    let get = "GET /api_keys";
    let mut rows = vec![
        row("each of the three keys reads")
            .call(get)
            .succeeds(200)
            .call(get)
            .by("editor")
            .succeeds(200)
            .call(get)
            .by("viewer")
            .succeeds(200),
        row("the scheme's name has no case").call(get).with("Authorization", "bearer {admin_token}").succeeds(200),
        row("two tokens are none")
            .call(get)
            .with("Authorization", "Bearer {admin_token}")
            .with("Authorization", "Bearer {admin_token}")
            .fails(401, "UNAUTHENTICATED", ""),
        row("another key's secret does not fit")
            .send("POST /api_keys", json!({}))
            .succeeds(201)
            .keep("id", "/id")
            .call(get)
            .with("Authorization", "Bearer ew_{id}_000000000000000000000000000")
            .fails(401, "UNAUTHENTICATED", "")
            .carries("WWW-Authenticate", "Bearer"),
    ];
    let malformed = [
        "Bearer",
        "Bearer ",
        "{admin_token}",
        "Basic {admin_token}",
        "Bearer{admin_token}",
        "Bearer {admin_token}x",
        "Bearer x{admin_token}",
        "Bearer {admin_token} {admin_token}",
        "Bearer {admin_key}",
        "Bearer ew_{admin_key}",
        "Bearer ew_{admin_key}_",
        "Bearer ew__",
        "Bearer ew_ak_unknown_secret",
        "Bearer null",
    ];
    rows.extend(malformed.map(|value| {
        row(format!("`{value}` is no token"))
            .call(get)
            .with("Authorization", value)
            .fails(401, "UNAUTHENTICATED", "")
            .carries("WWW-Authenticate", "Bearer")
    }));
    rows
}

fn version_rows() -> Vec<Row> {
    let get = "GET /api_keys";
    let mut rows = vec![
        row("a version is named once").call(get).with("Service-Version", "2").with("Service-Version", "2").fails(
            400,
            "VERSION_HEADER",
            "",
        ),
        row("a header's name has no case")
            .call(get)
            .without("Service-Version")
            .with("service-version", "2")
            .succeeds(200),
    ];
    rows.extend(["1", "3", "2.0", "v2", "", "22", "2,2"].map(|version| {
        row(format!("there is no version `{version}`, and the refusal says what there is (D4)"))
            .call(get)
            .with("Service-Version", version)
            .fails(400, "VERSION_HEADER", "")
            .says("Service-Version: 2")
    }));
    rows
}

/// What needs neither token nor version.
fn open_rows() -> Vec<Row> {
    let mut rows = vec![
        row("no web page may call the API unless its origin is named (D98)")
            .call("OPTIONS /api_keys")
            .without("Authorization")
            .without("Service-Version")
            .with("Origin", "https://console.example.com")
            .with("Access-Control-Request-Method", "POST")
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .lacks("Access-Control-Allow-Origin")
            .call("GET /api_keys")
            .with("Origin", "https://console.example.com")
            .succeeds(200)
            .lacks("Access-Control-Allow-Origin"),
        row("every response has safe headers")
            .call("GET /api_keys")
            .succeeds(200)
            .carries("X-Content-Type-Options", "nosniff")
            .carries("Referrer-Policy", "no-referrer")
            .carries("Cache-Control", "no-store")
            .call("GET /nowhere")
            .fails(404, "NOT_FOUND", "")
            .carries("X-Content-Type-Options", "nosniff")
            .carries("Cache-Control", "no-store"),
    ];
    rows.extend(["/healthz", "/readyz", "/openapi.json"].map(|path| {
        row(format!("{path} needs neither token nor version (D24)"))
            .call(&format!("GET {path}"))
            .without("Authorization")
            .without("Service-Version")
            .succeeds(200)
            .call(&format!("POST {path}"))
            .fails(405, "METHOD_NOT_ALLOWED", "")
    }));
    rows
}

/// D3, step by step: each row has the fault of a step and of later ones, and the earlier one is told. What is about the
/// size is in `bad_input`, for it needs raw requests.
fn order_rows() -> Vec<Row> {
    let stale = "\"00000000000000000000000000000000\"";
    vec![
        row("an unknown path comes before everything else")
            .send_bytes("POST /nothing", "{")
            .without("Authorization")
            .without("Service-Version")
            .with("Content-Type", "text/plain")
            .fails(404, "NOT_FOUND", ""),
        row("the method comes before the token")
            .send_bytes("DELETE /api_keys", "{")
            .without("Authorization")
            .without("Service-Version")
            .fails(405, "METHOD_NOT_ALLOWED", ""),
        row("the token comes before the version")
            .send_bytes("POST /api_keys", "{")
            .without("Service-Version")
            .with("Authorization", "Bearer x")
            .fails(401, "UNAUTHENTICATED", ""),
        row("the version comes before the permission")
            .send_bytes("POST /api_keys", "{")
            .by("viewer")
            .with("Service-Version", "1")
            .fails(400, "VERSION_HEADER", ""),
        row("the permission comes before the content type")
            .send_bytes("POST /api_keys", "{")
            .by("viewer")
            .with("Content-Type", "text/plain")
            .fails(403, "FORBIDDEN", ""),
        row("the content type comes before the syntax")
            .send_bytes("POST /api_keys", "{")
            .with("Content-Type", "text/plain")
            .fails(415, "CONTENT_TYPE", ""),
        row("the syntax comes before the fields")
            .send_bytes("POST /api_keys", "{\"unknown\": 1,}")
            .fails(400, "SYNTAX", ""),
        row("the fields come before the permission that depends on them")
            .send("POST /api_keys", json!({"owner_id": "{admin}", "unknown": 1}))
            .by("editor")
            .fails(400, "UNKNOWN_FIELD", "/unknown"),
        row("the fields come before the precondition, and before what does not exist")
            .edge()
            .send("PATCH /edges/https/{edge}", json!({"unknown": 1}))
            .with("If-Match", stale)
            .fails(400, "UNKNOWN_FIELD", "/unknown")
            .send("PATCH /edges/https/edghts_unknown", json!({"unknown": 1}))
            .fails(400, "UNKNOWN_FIELD", "/unknown")
            .send("PUT /edges/https/edghts_unknown/tls_termination", json!({"min_version": "9"}))
            .fails(400, "UNKNOWN_VALUE", "/min_version")
            .send("POST /edges/https/edghts_unknown/routes", json!({}))
            .fails(400, "REQUIRED", "/match_type")
            .also("REQUIRED", "/match"),
        row("the precondition comes before what does not exist")
            .send("PATCH /edges/https/edghts_unknown", json!({}))
            .with("If-Match", stale)
            .fails(412, "PRECONDITION_FAILED", "")
            .call("DELETE /api_keys/ak_unknown")
            .with("If-Match", "*")
            .fails(412, "PRECONDITION_FAILED", "")
            .route()
            .call(&format!("DELETE {ROUTE}/saml"))
            .with("If-Match", stale)
            .fails(412, "PRECONDITION_FAILED", ""),
        row("the precondition comes before references and conflicts")
            .given("ca", "POST /certificate_authorities", json!({"ca_pem": STAFF_CA}))
            .given("edge", "POST /edges/https", json!({"mutual_tls": {"certificate_authority_ids": ["{ca}"]}}))
            .call("DELETE /certificate_authorities/{ca}")
            .with("If-Match", stale)
            .fails(412, "PRECONDITION_FAILED", "")
            .send("PUT /edges/https/{edge}/mutual_tls", json!({"certificate_authority_ids": ["ca_unknown"]}))
            .with("If-Match", stale)
            .fails(412, "PRECONDITION_FAILED", ""),
    ]
}

#[test]
fn a_path_says_which_methods_it_has() {
    let server = Server::start();
    let paths: BTreeSet<String> = endpoints().into_iter().map(|endpoint| endpoint.path).collect();
    let mut wrong = Vec::new();
    for path in paths {
        let fits = |endpoint: &Endpoint| endpoint.path == path;
        let mut wanted: BTreeSet<&str> = endpoints().iter().filter(|it| fits(it)).map(|it| it.method).collect();
        if wanted.contains("GET") {
            wanted.insert("HEAD");
        }
        for method in ["PROPFIND", "TRACE"] {
            let answer = server.send(method, &path.replace(['{', '}'], ""), &[], None);
            let allow = answer.header("allow").unwrap_or_default().to_owned();
            let allowed: BTreeSet<&str> = allow.split(',').map(str::trim).collect();
            if answer.status != 405 || allowed != wanted || answer.str("/error_code").is_empty() {
                wrong.push(format!("{method} {path}: {} Allow: {allow}", answer.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_deployment_can_rename_the_version_header() {
    let server = Server::with(Settings {
        base_url: BASE_URL.into(),
        saml_base_url: BASE_URL.into(),
        version_header: "Acme-Version".into(),
    });
    let old = server.call("GET", "/api_keys", None);
    assert_eq!((old.status, old.str("/error_code")), (400, "ERR_EDGEWRIGHT_VERSION_HEADER"));
    assert!(old.str("/msg").to_lowercase().contains("acme-version: 2"), "{}", old.text);
    let mut headers = usual_headers(&server.admin);
    headers.push(("acme-version".into(), "2".into()));
    assert_eq!(server.send("GET", "/api_keys", &headers, None).status, 200);
}
