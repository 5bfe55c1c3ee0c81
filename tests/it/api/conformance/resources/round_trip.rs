//! What is read can be written back: an answer, turned into its write form by rule, changes nothing.
//!
//! The rules: read-only keys are dropped, a Ref becomes its id (`backend` to `backend_id`, `ip_policies` to
//! `ip_policy_ids`, `certificate_authorities` to `certificate_authority_ids`), and null is not given.

use serde_json::{Map, Value, json};

use crate::api::conformance::support::samples::{self, SHOP_CHAIN, SHOP_KEY, STAFF_CA};
use crate::support::server::Server;

/// What only an answer has.
const READ_ONLY: &[&str] = &["id", "uri", "created_at", "edge_id", "token", "routes"];
const READ_ONLY_SAML: &[&str] = &[
    "entity_id",
    "assertion_consumer_service_url",
    "single_logout_url",
    "request_signing_certificate_pem",
    "metadata_url",
    "idp_metadata_url",
];
/// The fields that are derived from a certificate.
const DERIVED: &[&str] = &[
    "subject_common_name",
    "subject_alternative_names",
    "issued_at",
    "not_before",
    "not_after",
    "key_usages",
    "extended_key_usages",
    "private_key_type",
    "issuer_common_name",
    "serial_number",
    "subject_organization",
    "subject_organizational_unit",
    "subject_locality",
    "subject_province",
    "subject_country",
];

/// The write form of a resource or module.
fn write_form(answer: &Value) -> Value {
    let mut body = answer.as_object().unwrap().clone();
    body.retain(|key, _| !READ_ONLY.contains(&key.as_str()) && !DERIVED.contains(&key.as_str()));
    plain(&Value::Object(body))
}

/// The write form of a resource for a PATCH, which cannot have what is fixed at creation.
fn patch_form(answer: &Value, fixed: &[&str]) -> Value {
    let mut body = write_form(answer);
    body.as_object_mut().unwrap().retain(|key, _| !fixed.contains(&key.as_str()));
    body
}

fn plain(value: &Value) -> Value {
    let Some(entries) = value.as_object() else {
        return match value {
            Value::Array(items) => items.iter().map(plain).collect(),
            other => other.clone(),
        };
    };
    let ids = |refs: &Value| refs.as_array().unwrap().iter().map(|it| it["id"].clone()).collect::<Value>();
    let mut body = Map::new();
    for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        let (key, value) = match key.as_str() {
            "backend" if value.get("uri").is_some() => ("backend_id", value["id"].clone()),
            "ip_policies" => ("ip_policy_ids", ids(value)),
            "certificate_authorities" => ("certificate_authority_ids", ids(value)),
            "config" => ("config", value.clone()),
            key if READ_ONLY_SAML.contains(&key) => continue,
            key => (key, plain(value)),
        };
        body.insert(key.to_owned(), value);
    }
    Value::Object(body)
}

/// A server's resource that was made by a POST.
fn made(server: &Server, collection: &str, body: Value) -> String {
    let answer = server.call("POST", collection, Some(body));
    assert_eq!(answer.status, 201, "POST {collection}: {}", answer.text);
    format!("{collection}/{}", answer.str("/id"))
}

/// Reads, writes back with the method, and reads again.
fn unchanged(server: &Server, method: &str, path: &str, fixed: &[&str]) {
    let before = server.call("GET", path, None);
    assert_eq!(before.status, 200, "GET {path}: {}", before.text);
    let body = patch_form(&before.json, fixed);
    let answer = server.call(method, path, Some(body.clone()));
    assert_eq!(answer.status, 200, "{method} {path} with {body}: {}", answer.text);
    assert_eq!(answer.json, before.json, "{method} {path}");
    let after = server.call("GET", path, None);
    assert_eq!((after.header("etag"), &after.json), (before.header("etag"), &before.json), "GET {path}");
}

/// A route's body with all modules; `full` or as little as each needs.
fn route_body(full: bool) -> Value {
    let modules = samples::route_modules().into_iter();
    let entries = modules.map(|it| (it.slot.to_owned(), if full { it.full } else { it.least }));
    let modules = Value::Object(entries.collect());
    samples::with(json!({"match_type": "path_prefix", "match": "/", "description": "d", "metadata": "m"}), modules)
}

#[test]
fn resources_are_patched_with_what_they_answer() {
    let server = Server::start();
    let texts = |body: Value| samples::with(body, json!({"description": "é", "metadata": "{}"}));
    let key = made(&server, "/api_keys", texts(json!({})));
    unchanged(&server, "PATCH", &key, &["owner_id"]);
    let ipx = json!({"type": "agent", "enforced": true, "ip_policy_ids": ["ipp_2", "ipp_1"]});
    unchanged(&server, "PATCH", &made(&server, "/ip_restrictions", texts(ipx)), &["type"]);
    let ca = made(&server, "/certificate_authorities", texts(json!({"ca_pem": STAFF_CA})));
    unchanged(&server, "PATCH", &ca, &["ca_pem"]);
    let pair = json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY});
    unchanged(&server, "PATCH", &made(&server, "/tls_certificates", texts(pair)), &["certificate_pem"]);
    let ca = ca.rsplit('/').next().unwrap();
    for edge in [
        json!({}),
        texts(json!({
            "hostports": ["b:1", "a:2"], "mutual_tls": {"enabled": false, "certificate_authority_ids": [ca]},
            "tls_termination": {"min_version": "1.0"}
        })),
        json!({"tls_termination": {"terminate_at": "upstream"}}),
    ] {
        let edge = made(&server, "/edges/https", edge);
        made(&server, &format!("{edge}/routes"), json!({"match_type": "exact_path", "match": "/"}));
        unchanged(&server, "PATCH", &edge, &[]);
    }
    let edge = made(&server, "/edges/https", json!({}));
    for body in [route_body(true), route_body(false), json!({"match_type": "exact_path", "match": "x"})] {
        unchanged(&server, "PATCH", &made(&server, &format!("{edge}/routes"), body), &[]);
    }
    let sources = "/event_subscriptions/esb_1/sources";
    assert_eq!(server.call("POST", sources, Some(json!({"type": "a.v0"}))).status, 201);
    unchanged(&server, "PATCH", &format!("{sources}/a.v0"), &["type"]);
}

#[test]
fn modules_are_put_with_what_they_answer() {
    let server = Server::start();
    let ca = made(&server, "/certificate_authorities", json!({"ca_pem": STAFF_CA}));
    let ca = ca.rsplit('/').next().unwrap();
    let edge = made(&server, "/edges/https", json!({}));
    let route = made(&server, &format!("{edge}/routes"), json!({"match_type": "exact_path", "match": "/"}));
    let hosts = [
        (route, samples::route_modules()),
        (edge, samples::edge_modules()),
        ("/edges/tls/edgtls_1".to_owned(), samples::tls_edge_modules()),
    ];
    for (host, modules) in hosts {
        for sample in modules {
            let path = format!("{host}/{}", sample.slot);
            for body in [sample.full, sample.least] {
                let body = serde_json::from_str(&body.to_string().replace("{ca}", ca)).unwrap();
                let answer = server.call("PUT", &path, Some(body));
                assert_eq!(answer.status, 200, "PUT {path}: {}", answer.text);
                unchanged(&server, "PUT", &path, &[]);
            }
        }
    }
}

/// A copy of an edge and its routes is made with what the first one answers.
#[test]
fn an_answer_is_a_body_for_another_of_its_kind() {
    let server = Server::start();
    let body = json!({"hostports": ["a:1"], "tls_termination": {"min_version": "1.3"}, "mutual_tls": {}});
    let edge = made(&server, "/edges/https", body);
    for body in [route_body(true), route_body(false)] {
        made(&server, &format!("{edge}/routes"), body);
    }
    let first = server.call("GET", &edge, None).json;
    let copy = made(&server, "/edges/https", write_form(&first));
    for route in first["routes"].as_array().unwrap() {
        made(&server, &format!("{copy}/routes"), write_form(route));
    }
    let second = server.call("GET", &copy, None).json;
    assert_eq!(write_form(&first), write_form(&second));
    let routes = |edge: &Value| edge["routes"].as_array().unwrap().iter().map(write_form).collect::<Vec<_>>();
    assert_eq!(routes(&first), routes(&second));
    assert_eq!(routes(&first).len(), 2);
}
