//! A server with two teams: `team-a` has an edge, and `team-b` has a key that may apply its own source, and nothing else.

use edgewright::resources::Role;
use serde_json::{Value, json};

use crate::{
    security::scoped_keys::key,
    support::server::{Answer, Server},
};

pub(super) const SHOP_CHAIN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.chain.pem"));
pub(super) const SHOP_KEY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.key.pem"));
pub(super) const WILDCARD_CHAIN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/wildcard.chain.pem"));
pub(super) const WILDCARD_KEY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/wildcard.key.pem"));
pub(super) const AUTHORITY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/staff-devices.pem"));

/// A TLS edge that is declared by its ID.
pub(crate) const TLS_EDGE: &str = "apiVersion: edgewright/v1\nkind: TlsEdge\nmetadata: {name: mail, id: edgtls_0001}\nspec: {backend: {backend_id: bkd_b}}\n";

/// A server with the edge `shop` of `team-a`, and a key of `team-b`.
pub(super) struct Gateway {
    pub(super) server: Server,
    /// The token of a key that may apply `team-b`, and nothing else.
    pub(super) b: String,
}

/// A manifest of the edge `shop`, with more fields.
pub(super) fn shop(more: &str) -> Value {
    document("HttpsEdge", "shop", &format!("{{hostports: ['shop.example.com:443', '*.shop.example.com:443']{more}}}"))
}

pub(crate) fn document(kind: &str, name: &str, spec: &str) -> Value {
    let text = format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n");
    json!({"name": format!("{kind}-{name}.yaml"), "text": text})
}

/// A manifest with PEM texts.
pub(super) fn pem(kind: &str, name: &str, fields: &[(&str, &str)]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    document(kind, name, &Value::Object(fields).to_string())
}

pub(crate) fn edge(name: &str, hostport: &str) -> Value {
    document("HttpsEdge", name, &format!("{{hostports: ['{hostport}']}}"))
}

/// A request that applies manifests of a source, whatever it deletes.
pub(super) fn reconciliation(source: &str, files: &[Value]) -> Option<Value> {
    Some(json!({"source": source, "files": files, "max_deletes": "100%"}))
}

impl Gateway {
    pub(super) fn new() -> Self {
        let server = Server::start();
        let (_, b) = key(&server, json!({"apply": ["team-b"]}));
        let gateway = Self { server, b };
        gateway.apply("team-a", &[shop("")]);
        gateway
    }

    /// Applies manifests of a source as an admin.
    #[track_caller]
    pub(super) fn apply(&self, source: &str, files: &[Value]) {
        let answer = self.server.call("POST", "/reconciliations", reconciliation(source, files));
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    }

    /// What `team-b` gets for manifests of its own.
    pub(super) fn b_applies(&self, files: &[Value]) -> Answer {
        self.server.call_as(&self.b, "POST", "/reconciliations", reconciliation("team-b", files))
    }

    /// The current revision.
    pub(super) fn revision(&self) -> u64 {
        let history = self.server.call("GET", "/history", None).json;
        // Attempts that were refused have none.
        history["history"].as_array().unwrap().iter().find_map(|record| record["revision"].as_u64()).unwrap()
    }

    pub(super) fn key(&self, scope: Value) -> String {
        key(&self.server, scope).1
    }

    pub(super) fn id(&self, kind: &str, source: &str) -> String {
        let (path, list) = match kind {
            "HttpsEdge" => ("/edges/https", "https_edges"),
            "CertificateAuthority" => ("/certificate_authorities", "certificate_authorities"),
            _ => ("/tls_certificates", "tls_certificates"),
        };
        let answer = self.server.call("GET", &format!("{path}?source={source}"), None);
        answer.str(&format!("/{list}/0/id")).to_owned()
    }

    /// The IDs of the certificates that a gateway presents for the first hostport of the edge `shop`.
    pub(super) fn presented(&self) -> Vec<String> {
        let token = self.server.key_of("bot_gateway", Role::Gateway);
        let answer = self.server.call_as(&token, "GET", "/gateway/configuration", None);
        let edges = answer.json["edges"].as_array().unwrap();
        let shop = edges.iter().find(|edge| edge["name"] == "shop").unwrap();
        let certificates = shop["hostports"][0]["certificates"].as_array().unwrap();
        certificates.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    }
}
