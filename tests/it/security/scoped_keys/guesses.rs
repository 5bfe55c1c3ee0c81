//! Guesses of immutable secrets by API keys that do not see them (D101).

use serde_json::{Value, json};

use super::{key, reconciliation, refused, start};
use crate::support::server::Server;

const CERTIFICATE: &str = include_str!("../../data/wildcard.pem");
const KEY: &str = include_str!("../../data/wildcard.key.pem");

/// A right guess, and one that differs in the text only, because the key must belong to the certificate.
fn guesses() -> [String; 2] {
    [KEY.to_owned(), format!("{KEY}\n")]
}

/// The manifest of a certificate. JSON is YAML, too.
fn manifest(key: &str, more: &Value) -> String {
    let mut metadata = json!({"name": "wildcard"});
    for (name, value) in more.as_object().into_iter().flatten() {
        metadata[name] = value.clone();
    }
    let spec = json!({"certificate_pem": CERTIFICATE, "private_key_pem": key});
    json!({"apiVersion": "edgewright/v1", "kind": "TlsCertificate", "metadata": metadata, "spec": spec}).to_string()
}

/// Creates a certificate that no source owns. Returns its ID.
fn free_certificate(server: &Server) -> String {
    let body = json!({"certificate_pem": CERTIFICATE, "private_key_pem": KEY});
    let made = server.call("POST", "/tls_certificates", Some(body));
    assert_eq!(made.status, 201, "{}", made.text);
    made.str("/id").to_owned()
}

#[test]
fn an_immutable_secret_is_not_compared_without_permission() {
    let server = start();
    let (_, token) = key(&server, json!({"apply": ["shop"]}));
    let path = format!("/tls_certificates/{}", free_certificate(&server));
    for guess in guesses() {
        let body = Some(json!({"private_key_pem": guess}));
        refused(&server.call_as(&token, "PATCH", &path, body), 403, &["TlsCertificate", "ask an admin: usr_admin"]);
    }
}

#[test]
fn a_key_that_may_change_a_resource_cannot_compare_its_secret() {
    let server = start();
    let (_, token) = key(&server, json!({"kinds": ["TlsCertificate"]}));
    let path = format!("/tls_certificates/{}", free_certificate(&server));
    for guess in guesses() {
        let body = Some(json!({"private_key_pem": guess, "description": "x"}));
        refused(&server.call_as(&token, "PATCH", &path, body), 400, &["IMMUTABLE", "omit `private_key_pem`"]);
    }
    let body = Some(json!({"certificate_pem": CERTIFICATE, "description": "x"}));
    assert_eq!(server.call_as(&token, "PATCH", &path, body).status, 200);
    // Nobody can, whatever the key sees.
    refused(&server.call("PATCH", &path, Some(json!({"private_key_pem": KEY}))), 400, &["IMMUTABLE"]);
}

#[test]
fn neither_a_plan_nor_its_error_tells_whether_an_immutable_secret_is_right() {
    let server = start();
    let own = manifest(KEY, &json!({}));
    assert_eq!(server.call("POST", "/reconciliations", reconciliation("shop", &own, false)).status, 201);
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let plans = guesses().map(|guess| {
        let body = reconciliation("shop", &manifest(&guess, &json!({})), true);
        let shown = server.call_as(&planner, "POST", "/reconciliations", body);
        assert_eq!(shown.status, 200, "{}", shown.text);
        // The findings have the length of what was sent.
        let mut told = shown.json.clone();
        told["diagnostics"] = Value::Null;
        told
    });
    assert_eq!(plans[0], plans[1]);
    // A certificate of no source, and one of another source.
    let (_, team) = key(&server, json!({"apply": ["identity"], "kinds": ["TlsCertificate"], "global": true}));
    let list = server.call("GET", "/tls_certificates", None);
    for (id, status, words) in [
        (free_certificate(&server), 403, "needs `secrets` to adopt TlsCertificate"),
        (list.str("/tls_certificates/0/id").to_owned(), 409, "OWNER_CONFLICT"),
    ] {
        let answers = guesses().map(|guess| {
            let body = reconciliation("identity", &manifest(&guess, &json!({"id": id})), false);
            let answer = server.call_as(&team, "POST", "/reconciliations", body);
            assert!(answer.text.contains(words), "{}", answer.text);
            (answer.status, answer.str("/error_code").to_owned(), answer.str("/msg").to_owned())
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, status, "{answers:?}");
    }
}
