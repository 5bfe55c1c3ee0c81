//! The table of docs/explanation/tenancy.md, row by row: a team with a key for its own source changes nothing that the requests of other
//! sources meet, unless these consent or an admin says so (D112).

use edgewright::resources::Role;
use serde_json::{Value, json};

use super::key_scopes::{key, refused};
use crate::support::{
    program::Folder,
    server::{Answer, Server},
};

const SHOP_CHAIN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.chain.pem"));
const SHOP_KEY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.key.pem"));
const WILDCARD_CHAIN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/wildcard.chain.pem"));
const WILDCARD_KEY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/wildcard.key.pem"));
const AUTHORITY: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/staff-devices.pem"));

/// The warning about the edge `shop`.
const WITHOUT_CERTIFICATE: &str =
    "this leaves HttpsEdge shop of source `team-a` without a certificate for `shop.example.com`";

/// Tries what a row of the table is about.
type Case = fn(&Gateway);

/// A case for each row.
const CASES: [(&str, Case); 22] = [
    ("hostport", hostport),
    ("hostport-without-source", hostport_without_source),
    ("new-host", new_host),
    ("route-without-source", route_without_source),
    ("route", route),
    ("required-module", required_module),
    ("certificate", certificate),
    ("certificate-without-source", certificate_without_source),
    ("name", name),
    ("id", id),
    ("transfer", transfer),
    ("adoption", adoption),
    ("release", release),
    ("global-kind", global_kind),
    ("api-key", api_key),
    ("event-source", event_source),
    ("event-subscription", event_subscription),
    ("tls-edge", tls_edge),
    ("module-set", module_set),
    ("deletion", deletion),
    ("rollback", rollback),
    ("history", history),
];

/// A TLS edge that is declared by its ID.
pub(super) const TLS_EDGE: &str = "apiVersion: edgewright/v1\nkind: TlsEdge\nmetadata: {name: mail, id: edgtls_0001}\nspec: {backend: {backend_id: bkd_b}}\n";

/// A server with the edge `shop` of `team-a`, and a key of `team-b`.
struct Gateway {
    server: Server,
    /// The token of a key that may apply `team-b`, and nothing else.
    b: String,
}

/// A manifest of the edge `shop`, with more fields.
fn shop(more: &str) -> Value {
    document("HttpsEdge", "shop", &format!("{{hostports: ['shop.example.com:443', '*.shop.example.com:443']{more}}}"))
}

pub(super) fn document(kind: &str, name: &str, spec: &str) -> Value {
    let text = format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n");
    json!({"name": format!("{kind}-{name}.yaml"), "text": text})
}

/// A manifest with PEM texts.
fn pem(kind: &str, name: &str, fields: &[(&str, &str)]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    document(kind, name, &Value::Object(fields).to_string())
}

pub(super) fn edge(name: &str, hostport: &str) -> Value {
    document("HttpsEdge", name, &format!("{{hostports: ['{hostport}']}}"))
}

fn run(source: &str, files: &[Value]) -> Option<Value> {
    Some(json!({"source": source, "files": files, "max_deletes": "100%"}))
}

impl Gateway {
    fn new() -> Self {
        let server = Server::start();
        let (_, b) = key(&server, json!({"apply": ["team-b"]}));
        let gateway = Self { server, b };
        gateway.apply("team-a", &[shop("")]);
        gateway
    }

    /// Applies manifests of a source as an admin.
    #[track_caller]
    fn apply(&self, source: &str, files: &[Value]) {
        let answer = self.server.call("POST", "/reconciliations", run(source, files));
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    }

    /// What `team-b` gets for manifests of its own.
    fn b_applies(&self, files: &[Value]) -> Answer {
        self.server.call_as(&self.b, "POST", "/reconciliations", run("team-b", files))
    }

    /// The current revision.
    fn revision(&self) -> u64 {
        let history = self.server.call("GET", "/history", None).json;
        // Attempts that were refused have none.
        history["history"].as_array().unwrap().iter().find_map(|record| record["revision"].as_u64()).unwrap()
    }

    fn key(&self, scope: Value) -> String {
        key(&self.server, scope).1
    }

    fn id(&self, kind: &str, source: &str) -> String {
        let (path, list) = match kind {
            "HttpsEdge" => ("/edges/https", "https_edges"),
            "CertificateAuthority" => ("/certificate_authorities", "certificate_authorities"),
            _ => ("/tls_certificates", "tls_certificates"),
        };
        let answer = self.server.call("GET", &format!("{path}?source={source}"), None);
        answer.str(&format!("/{list}/0/id")).to_owned()
    }

    /// The IDs of the certificates that a gateway presents for the first hostport of the edge `shop`.
    fn presented(&self) -> Vec<String> {
        let token = self.server.key_of("bot_gateway", Role::Gateway);
        let answer = self.server.call_as(&token, "GET", "/gateway/configuration", None);
        let edges = answer.json["edges"].as_array().unwrap();
        let shop = edges.iter().find(|edge| edge["name"] == "shop").unwrap();
        let certificates = shop["hostports"][0]["certificates"].as_array().unwrap();
        certificates.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn each_row_of_the_table_has_a_case() {
    let table = Folder::new().ok("explain tenancy").out;
    let rows: Vec<&str> =
        table.lines().skip(2).map(|row| row.trim_start_matches("| `").split('`').next().unwrap()).collect();
    assert_eq!(rows, CASES.map(|(name, _)| name));
}

#[test]
fn no_source_changes_what_the_requests_of_another_one_meet() {
    for (name, case) in CASES {
        println!("{name}");
        case(&Gateway::new());
    }
}

fn hostport(gateway: &Gateway) {
    let words = ["NOT_DELEGATED", "HttpsEdge `shop` of source `team-a`"];
    // Cookies and certificates know no ports, so another port of a host is the same host.
    for theirs in [
        "shop.example.com:443",
        "SHOP.example.com:443",
        "shop.example.com:8443",
        "*.shop.example.com:80",
        "admin.shop.example.com:443",
        "*.a.shop.example.com:443",
    ] {
        refused(&gateway.b_applies(&[edge("mine", theirs)]), 409, &words);
    }
    refused(&gateway.b_applies(&[edge("mine", "*.example.com:443")]), 409, &words);
    let made = gateway.b_applies(&[edge("mine", "b.example.com:443")]);
    assert_eq!(made.status, 201, "another host: {}", made.text);
    // The same over the API, for an edge of the source and for one without.
    let own = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
    let taken = json!({"hostports": ["b.example.com:443", "x.shop.example.com:443"]});
    refused(&gateway.server.call_as(&gateway.b, "PATCH", &own, Some(taken)), 409, &words);
    let kinds = gateway.key(json!({"kinds": ["HttpsEdge"]}));
    let taken = json!({"hostports": ["x.shop.example.com:443"]});
    refused(&gateway.server.call_as(&kinds, "POST", "/edges/https", Some(taken)), 409, &words);
    // With consent.
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /}]")]);
    let made = gateway.b_applies(&[edge("mine", "admin.shop.example.com:443")]);
    assert_eq!(made.status, 201, "{}", made.text);
    // From then on, the closer wildcard or host is theirs.
    let back = shop(", delegates_to: [{source: team-b, path_prefix: /}]").to_string();
    let back: Value = serde_json::from_str(&back.replace("'*.shop", "'admin.shop.example.com:443', '*.shop")).unwrap();
    let answer = gateway.server.call("POST", "/reconciliations", run("team-a", &[back]));
    refused(&answer, 409, &["NOT_DELEGATED", "source `team-b`"]);
}

fn hostport_without_source(gateway: &Gateway) {
    let body = json!({"hostports": ["free.example.com:443", "*.free.example.com:443"]});
    let made = gateway.server.call("POST", "/edges/https", Some(body));
    let id = made.str("/id").to_owned();
    for hostport in ["free.example.com:443", "x.free.example.com:443"] {
        let words = ["NOT_DELEGATED", id.as_str(), "which no source owns"];
        refused(&gateway.b_applies(&[edge("mine", hostport)]), 409, &words);
        let answer = gateway.server.call("POST", "/reconciliations", run("team-b", &[edge("mine", hostport)]));
        refused(&answer, 409, &words);
    }
    // An admin adopts it.
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: mine, id: {id}}}\nspec: {{hostports: ['free.example.com:443']}}\n"
    );
    gateway.apply("team-b", &[json!({"name": "mine.yaml", "text": text})]);
}

fn new_host(gateway: &Gateway) {
    let hosts = ["docs.example.com", "*.docs.example.com"];
    let docs = gateway.key(json!({"apply": ["docs"], "kinds": ["HttpsEdge", "HttpsEdgeRoute"], "hosts": hosts}));
    let call = |method: &str, path: &str, body: Value| gateway.server.call_as(&docs, method, path, Some(body));
    let apply = |hostport: &str| {
        gateway.server.call_as(&docs, "POST", "/reconciliations", run("docs", &[edge("mine", hostport)]))
    };
    refused(&apply("billing.example.com:443"), 403, &["serve `billing.example.com`", "`hosts`"]);
    refused(&apply("*.example.org:443"), 403, &["serve `*.example.org`"]);
    for own in ["docs.example.com:443", "eu.docs.example.com:8443", "*.docs.example.com:443"] {
        let answer = apply(own);
        assert!(matches!(answer.status, 200 | 201), "{own}: {}", answer.text);
    }
    let billing = json!({"hostports": ["billing.example.com:443"]});
    refused(&call("POST", "/edges/https", billing.clone()), 403, &["serve `billing.example.com`"]);
    let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "docs"));
    refused(&call("PATCH", &path, billing), 403, &["serve `billing.example.com`"]);
    // What an edge without a source has stays, and is not for routes of the key.
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let free = format!("/edges/https/{}", made.str("/id"));
    let more = json!({"hostports": ["free.example.com:443", "new.docs.example.com:443"]});
    assert_eq!(call("PATCH", &free, more).status, 409, "it is of `docs`");
    let port = json!({"hostports": ["free.example.com:8443"]});
    assert_eq!(call("PATCH", &free, port).status, 200);
    let route = json!({"match_type": "path_prefix", "match": "/login/"});
    refused(&call("POST", &format!("{free}/routes"), route), 403, &["serve `free.example.com`"]);
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: free, id: {}}}\nspec: {{hostports: []}}\n",
        made.str("/id")
    );
    let adopting = run("docs", &[edge("mine", "docs.example.com:443"), json!({"name": "free.yaml", "text": text})]);
    let adopted = gateway.server.call_as(&docs, "POST", "/reconciliations", adopting);
    refused(&adopted, 403, &["serve `free.example.com`"]);
}

fn route_without_source(gateway: &Gateway) {
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let spec = format!("{{edge: {}, match_type: path_prefix, match: /login/}}", made.str("/id"));
    refused(&gateway.b_applies(&[document("HttpsEdgeRoute", "login", &spec)]), 403, &["HttpsEdge", "no source owns"]);
}

fn route(gateway: &Gateway) {
    let route = document("HttpsEdgeRoute", "login", "{edge: shop, match_type: path_prefix, match: /login/}");
    refused(&gateway.b_applies(std::slice::from_ref(&route)), 409, &["NOT_DELEGATED", "`team-a`"]);
    let path = format!("/edges/https/{}/routes", gateway.id("HttpsEdge", "team-a"));
    let body = json!({"match_type": "path_prefix", "match": "/login/"});
    refused(&gateway.server.call_as(&gateway.b, "POST", &path, Some(body)), 403, &["`team-a`"]);
    gateway.apply("team-a", &[shop(", delegates_to: [{source: team-b, path_prefix: /login/}]")]);
    assert_eq!(gateway.b_applies(&[route]).status, 201);
}

fn required_module(gateway: &Gateway) {
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    let shop = shop(", delegates_to: [{source: team-b, path_prefix: /b/}], required_modules: [zip]");
    gateway.apply("team-a", &[set, shop]);
    let route = |more: &str| {
        let spec = format!("{{edge: shop, match_type: path_prefix, match: /b/{more}}}");
        [document("HttpsEdgeRoute", "page", &spec)]
    };
    let answer = gateway.b_applies(&route(", compression: {enabled: false}"));
    refused(&answer, 409, &["REQUIRED_MODULE"]);
    assert_eq!(gateway.b_applies(&route("")).status, 201);
    let edge = gateway.id("HttpsEdge", "team-a");
    let routes = gateway.server.call("GET", &format!("/edges/https/{edge}/routes"), None);
    let path = format!("/edges/https/{edge}/routes/{}/compression", routes.str("/routes/0/id"));
    refused(&gateway.server.call_as(&gateway.b, "DELETE", &path, None), 409, &["REQUIRED_MODULE"]);
    required_by_rollback(gateway);
}

/// A state from before an edge required a module brings back no route without it.
fn required_by_rollback(gateway: &Gateway) {
    let edge = |more: &str| {
        let delegates = "delegates_to: [{source: team-b, path_prefix: /}]";
        document("HttpsEdge", "late", &format!("{{hostports: ['late.example.com:443'], {delegates}{more}}}"))
    };
    gateway.apply("team-c", &[edge("")]);
    let route = [document("HttpsEdgeRoute", "late", "{edge: late, match_type: path_prefix, match: /}")];
    assert_eq!(gateway.b_applies(&route).status, 201);
    let before = gateway.revision();
    let set = document("ModuleSet", "zip", "{compression: {enabled: true}}");
    gateway.apply("team-c", &[set, edge(", required_modules: [zip]")]);
    assert_eq!(gateway.b_applies(&route).status, 201, "the module is added");
    for dry_run in [true, false] {
        let back = json!({"to": before, "source": "team-b", "max_deletes": "100%", "dry_run": dry_run});
        let answer = gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back));
        refused(&answer, 409, &["REQUIRED_MODULE"]);
    }
}

fn certificate(gateway: &Gateway) {
    let theirs = [pem("TlsCertificate", "theirs", &[("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)])];
    assert_eq!(gateway.b_applies(&theirs).status, 201);
    assert!(gateway.presented().is_empty(), "nobody has named the source");
    let plan = gateway.server.call("POST", "/reconciliations", run("team-a", &[shop("")]));
    assert!(plan.text.contains("`certificates_from: [team-b]`"), "{}", plan.text);
    // What no source owns counts where there is nothing else.
    let body = json!({"certificate_pem": WILDCARD_CHAIN, "private_key_pem": WILDCARD_KEY});
    let free = gateway.server.call("POST", "/tls_certificates", Some(body)).str("/id").to_owned();
    assert_eq!(gateway.presented(), [free.as_str()]);
    gateway.apply("team-a", &[shop(", certificates_from: [team-b]")]);
    assert_eq!(gateway.presented(), [gateway.id("TlsCertificate", "team-b")]);
    let own = [("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)];
    gateway.apply("team-a", &[shop(""), pem("TlsCertificate", "own", &own)]);
    assert_eq!(gateway.presented(), [gateway.id("TlsCertificate", "team-a")]);
    // Whoever takes the last one away is told.
    gateway.apply("team-a", &[shop(", certificates_from: [team-b]")]);
    let deleted = gateway.server.call("DELETE", &format!("/tls_certificates/{free}"), None);
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let taken = gateway.b_applies(&[edge("docs", "docs.example.com:443")]);
    assert!(taken.status == 201 && taken.text.contains(WITHOUT_CERTIFICATE), "{}", taken.text);
    assert!(gateway.presented().is_empty());
}

fn certificate_without_source(gateway: &Gateway) {
    let post = |scope: Value| {
        let body = json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY});
        gateway.server.call_as(&gateway.key(scope), "POST", "/tls_certificates", Some(body))
    };
    for scope in [json!({"kinds": ["TlsCertificate"]}), json!({"kinds": ["TlsCertificate"], "apply": ["team-b"]})] {
        refused(&post(scope), 403, &["no source owns", "`global`"]);
    }
    let made = post(json!({"kinds": ["TlsCertificate"], "global": true}));
    assert_eq!(made.status, 201, "{}", made.text);
    let narrow = gateway.key(json!({"kinds": ["TlsCertificate"]}));
    let path = format!("/tls_certificates/{}", made.str("/id"));
    refused(&gateway.server.call_as(&narrow, "DELETE", &path, None), 403, &["`global`"]);
    // Neither does a source take it away from others, nor give it to them.
    let text = format!(
        "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {{name: mine, id: {}}}\nspec: {}\n",
        made.str("/id"),
        json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY})
    );
    let mine = [json!({"name": "mine.yaml", "text": text})];
    let adopting = gateway.key(json!({"apply": ["team-b"], "kinds": ["TlsCertificate"], "secrets": true}));
    let adopted = gateway.server.call_as(&adopting, "POST", "/reconciliations", run("team-b", &mine));
    refused(&adopted, 403, &["no source owns", "`global`"]);
    let revision = gateway.revision();
    let adopted = gateway.server.call("POST", "/reconciliations", run("team-b", &mine));
    assert!(adopted.status == 201 && adopted.text.contains(WITHOUT_CERTIFICATE), "{}", adopted.text);
    assert!(gateway.presented().is_empty());
    let back = json!({"to": revision, "source": "team-b", "max_deletes": "100%"});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back)), 403, &["no source owns"]);
    assert!(gateway.presented().is_empty());
}

fn name(gateway: &Gateway) {
    let authority = pem("CertificateAuthority", "staff", &[("ca_pem", AUTHORITY)]);
    gateway.apply("platform", std::slice::from_ref(&authority));
    let shop = |name: &str| shop(&format!(", mutual_tls: {{certificate_authority_ids: ['{name}']}}"));
    gateway.apply("team-a", &[shop("staff")]);
    let trusted = |gateway: &Gateway| {
        let edge = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-a"));
        gateway.server.call("GET", &edge, None).str("/mutual_tls/certificate_authorities/0/id").to_owned()
    };
    let before = trusted(gateway);
    assert_eq!(before, gateway.id("CertificateAuthority", "platform"));
    // Its own resource of the name, which no reference of others turns to.
    let other = pem("CertificateAuthority", "staff", &[("ca_pem", AUTHORITY), ("description", "of team-b")]);
    assert_eq!(gateway.b_applies(&[other]).status, 201);
    let again = gateway.server.call("POST", "/reconciliations", run("team-a", &[shop("staff")]));
    assert_eq!((again.status, trusted(gateway)), (200, before.clone()), "{}", again.text);
    let new = document(
        "HttpsEdge",
        "new",
        "{hostports: ['new.example.com:443'], mutual_tls: {certificate_authority_ids: [staff]}}",
    );
    let answer = gateway.server.call("POST", "/reconciliations", run("team-a", &[shop("staff"), new]));
    refused(&answer, 409, &["AMBIGUOUS_REFERENCE", "source `platform`", "source `team-b`", "`platform/staff`"]);
    gateway.apply("team-a", &[shop("platform/staff")]);
    assert_eq!(trusted(gateway), before);
    // The platform gives the name up, so that only `team-b` has it.
    let text = authority["text"].as_str().unwrap().replace("name: staff", "name: people, renamed_from: staff");
    gateway.apply("platform", &[json!({"name": "people.yaml", "text": text})]);
    let answer = gateway.server.call("POST", "/reconciliations", run("team-a", &[shop("staff")]));
    refused(&answer, 409, &["AMBIGUOUS_REFERENCE", "`platform/people` or `team-b/staff`"]);
    gateway.apply("team-a", &[shop("platform/people")]);
    assert_eq!(trusted(gateway), before);

    // An edge of the same name does not move routes, and does not stop the source that had the name first.
    gateway.apply(
        "platform",
        &[json!({"name": "people.yaml", "text": text}), {
            let spec = "{hostports: ['p.example.com:443'], delegates_to: [{source: team-c, path_prefix: /}]}";
            document("HttpsEdge", "shared", spec)
        }],
    );
    let login = [document("HttpsEdgeRoute", "login", "{edge: shared, match_type: path_prefix, match: /login}")];
    gateway.apply("team-c", &login);
    let spec = "{hostports: ['b.example.com:443'], delegates_to: [{source: team-c, path_prefix: /}]}";
    assert_eq!(gateway.b_applies(&[document("HttpsEdge", "shared", spec)]).status, 201);
    let again = gateway.server.call("POST", "/reconciliations", run("team-c", &login));
    assert_eq!(again.status, 200, "{}", again.text);
    assert_eq!(gateway.b_applies(&[edge("shop", "b.example.com:443")]).status, 201, "a name of `team-a`");
}

fn id(gateway: &Gateway) {
    let id = gateway.id("HttpsEdge", "team-a");
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: mine, id: {id}}}\nspec: {{hostports: []}}\n"
    );
    let answer = gateway.b_applies(&[json!({"name": "mine.yaml", "text": text})]);
    refused(&answer, 409, &["OWNER_CONFLICT", "`team-a`"]);
    let path = format!("/edges/https/{id}");
    refused(&gateway.server.call_as(&gateway.b, "PATCH", &path, Some(json!({"hostports": []}))), 403, &["`team-a`"]);
    refused(&gateway.server.call_as(&gateway.b, "DELETE", &path, None), 403, &["`team-a`"]);
}

fn transfer(gateway: &Gateway) {
    let body = json!({"from": "team-a", "to": "team-b", "all": true});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/transfers", Some(body)), 403, &["`team-a`"]);
    let text = shop("")["text"].as_str().unwrap().replace("name: shop", "name: shop, transfer_from: team-a");
    let answer = gateway.b_applies(&[json!({"name": "shop.yaml", "text": text})]);
    assert_eq!(answer.status, 200, "it waits: {}", answer.text);
    assert!(answer.text.contains("TRANSFER_PENDING"), "{}", answer.text);
    assert!(gateway.id("HttpsEdge", "team-a").starts_with("edghts_"));
}

fn adoption(gateway: &Gateway) {
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: mine, id: {}}}\nspec: {{hostports: []}}\n",
        made.str("/id")
    );
    let answer = gateway.b_applies(&[json!({"name": "mine.yaml", "text": text})]);
    refused(&answer, 403, &["no source owns"]);
}

fn release(gateway: &Gateway) {
    let made = gateway.server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    let revision = gateway.revision();
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: mine, id: {}}}\nspec: {{hostports: ['free.example.com:443']}}\n",
        made.str("/id")
    );
    gateway.apply("team-b", &[json!({"name": "mine.yaml", "text": text})]);
    let back = json!({"to": revision, "source": "team-b", "max_deletes": "100%"});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(back)), 403, &["no source owns"]);
}

/// A share is filled in tests/it/store/history_shares.rs; here, each owner has its own.
fn history(gateway: &Gateway) {
    let own = edge("mine", "b.example.com:443");
    assert_eq!(gateway.b_applies(&[own]).status, 201);
    let path = format!("/edges/https/{}", gateway.id("HttpsEdge", "team-b"));
    let patched = |number: usize| {
        let body = json!({"description": format!("{number}{}", "x".repeat(200))});
        gateway.server.call_as(&gateway.b, "PATCH", &path, Some(body)).status
    };
    assert_eq!([1, 2].map(patched), [200; 2]);
    gateway.apply("team-a", &[shop(", description: still recorded")]);
}

fn global_kind(gateway: &Gateway) {
    let locked = document("IpRestriction", "all", "{type: endpoints, enforced: true, ip_policy_ids: [ipp_1]}");
    refused(&gateway.b_applies(&[locked]), 403, &["IpRestriction", "`global`"]);
    let body = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": ["ipp_1"]});
    let post =
        |scope: Value| gateway.server.call_as(&gateway.key(scope), "POST", "/ip_restrictions", Some(body.clone()));
    refused(&post(json!({"kinds": ["IpRestriction"]})), 403, &["`global`"]);
    assert_eq!(post(json!({"kinds": ["IpRestriction"], "global": true})).status, 201);
}

fn api_key(gateway: &Gateway) {
    let stolen = document("ApiKey", "stolen", "{owner_id: usr_admin, token_file: /tmp/stolen.txt}");
    let answer = gateway.b_applies(&[stolen]);
    refused(&answer, 403, &["`ApiKey` in `kinds`"]);
    let own = gateway.key(json!({"kinds": ["ApiKey"], "apply": ["team-b"]}));
    let wider = json!({"owner_id": "bot_team", "scope": {"apply": ["team-a"]}});
    assert_eq!(gateway.server.call_as(&own, "POST", "/api_keys", Some(wider)).status, 403);
    let global = json!({"owner_id": "bot_team", "scope": {"kinds": ["ApiKey"], "global": true}});
    assert_eq!(gateway.server.call_as(&own, "POST", "/api_keys", Some(global)).status, 403);
}

fn event_source(gateway: &Gateway) {
    // Each source has its own subscription of a name, so one that is shared has an ID.
    let named = |event: &str| document("EventSubscription", "audit", &format!("{{sources: [{{type: {event}}}]}}"));
    assert_eq!(gateway.b_applies(&[named("ip_policy_created.v0")]).status, 201);
    gateway.apply("team-a", &[shop(""), named("ip_policy_created.v0")]);
    let answer = gateway.b_applies(&[named("ip_policy_created.v0")]);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let subscription = |event: &str| {
        let text = named(event)["text"].as_str().unwrap().replace("name: audit", "name: shared, id: esb_1");
        json!({"name": "shared.yaml", "text": text})
    };
    gateway.apply("team-a", &[shop(""), subscription("ip_policy_created.v0")]);
    refused(&gateway.b_applies(&[subscription("ip_policy_updated.v0")]), 403, &["`team-a`"]);
    refused(&gateway.b_applies(&[subscription("ip_policy_created.v0")]), 409, &["OWNER_CONFLICT"]);
}

fn event_subscription(gateway: &Gateway) {
    let stated = |event: &str| {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: EventSubscription\nmetadata: {{name: audit, id: esb_1}}\nspec: {{sources: [{{type: {event}}}]}}\n"
        );
        json!({"name": "audit.yaml", "text": text})
    };
    let created = stated("ip_policy_created.v0");
    let words = ["EventSubscription esb_1 by its ID", "`EventSubscription` in `kinds`"];
    refused(&gateway.b_applies(std::slice::from_ref(&created)), 403, &words);
    let a_applies = |scope: Value, subscription: Value| {
        let body = run("team-a", &[shop(""), subscription]);
        gateway.server.call_as(&gateway.key(scope), "POST", "/reconciliations", body)
    };
    let made = a_applies(json!({"apply": ["team-a"], "kinds": ["EventSubscription"]}), created.clone());
    assert_eq!(made.status, 201, "{}", made.text);
    refused(&gateway.b_applies(&[created]), 409, &["OWNER_CONFLICT"]);
    // From then on, its types are those of the source.
    let changed = a_applies(json!({"apply": ["team-a"]}), stated("ip_policy_updated.v0"));
    assert_eq!(changed.status, 201, "{}", changed.text);
}

fn tls_edge(gateway: &Gateway) {
    let stated = json!({"name": "mail.yaml", "text": TLS_EDGE});
    refused(&gateway.b_applies(std::slice::from_ref(&stated)), 403, &["edgtls_0001", "`TlsEdge` in `kinds`"]);
    let own = document("TlsEdge", "mail", "{backend: {backend_id: bkd_b}}");
    assert_eq!(gateway.b_applies(&[own]).status, 201, "one with an ID of its own");
    gateway.apply("team-a", &[shop(""), stated.clone()]);
    refused(&gateway.b_applies(std::slice::from_ref(&stated)), 409, &["OWNER_CONFLICT"]);
    // After its deletion, whoever had it declares it again, and nobody else.
    let delete = || gateway.server.call("DELETE", "/edges/tls/edgtls_0001/backend", None).status;
    assert_eq!(delete(), 204);
    refused(&gateway.b_applies(std::slice::from_ref(&stated)), 403, &["edgtls_0001", "`TlsEdge` in `kinds`"]);
    gateway.apply("team-b", std::slice::from_ref(&stated));
    assert_eq!(delete(), 204);
    let again = gateway.b_applies(&[stated]);
    assert_eq!(again.status, 201, "{}", again.text);
}

fn module_set(gateway: &Gateway) {
    let set = document("ModuleSet", "login", "{compression: {enabled: false}}");
    assert_eq!(gateway.b_applies(std::slice::from_ref(&set)).status, 200, "it is for `team-b` alone");
    let route = ", routes: [{match_type: path_prefix, match: /, modules_from: [login]}]";
    let answer = gateway.server.call("POST", "/reconciliations", run("team-a", &[shop(route)]));
    refused(&answer, 400, &["UNKNOWN_REFERENCE", "`login`"]);
}

fn deletion(gateway: &Gateway) {
    let authority = pem("CertificateAuthority", "staff", &[("ca_pem", AUTHORITY)]);
    let empty = edge("mine", "b.example.com:443");
    assert_eq!(gateway.b_applies(&[authority, empty.clone()]).status, 201);
    gateway.apply("team-a", &[shop(", mutual_tls: {certificate_authority_ids: [staff]}")]);
    let authorities = || gateway.server.call("GET", "/certificate_authorities?source=team-b", None);
    let count = || authorities().json["certificate_authorities"].as_array().unwrap().len();
    // It stays, and does not hold back what else its source changes.
    let changed = document("HttpsEdge", "mine", "{hostports: ['b.example.com:443'], description: changed}");
    let answer = gateway.b_applies(std::slice::from_ref(&changed));
    assert_eq!(answer.status, 201, "{}", answer.text);
    for words in ["IN_USE", "CertificateAuthority staff", "is kept", "of source `team-a`", "HttpsEdge-shop.yaml:"] {
        assert!(answer.text.contains(words), "{words} in {}", answer.text);
    }
    let again = gateway.b_applies(std::slice::from_ref(&changed));
    assert!(again.status == 200 && again.text.contains("is kept"), "{}", again.text);
    assert_eq!(count(), 1);
    let path = format!("/certificate_authorities/{}", gateway.id("CertificateAuthority", "team-b"));
    assert_eq!(gateway.server.call("DELETE", &path, None).status, 409);
    // Once the other source has let go, it goes.
    gateway.apply("team-a", &[shop("")]);
    let last = gateway.b_applies(&[changed]);
    assert!(last.status == 201 && !last.text.contains("is kept"), "{}", last.text);
    assert_eq!(count(), 0);
    kept_edge(gateway);
}

/// An edge with routes of another source stays with what their requests meet: its hostports and its certificates.
fn kept_edge(gateway: &Gateway) {
    let pair = [("certificate_pem", SHOP_CHAIN), ("private_key_pem", SHOP_KEY)];
    let certificate = pem("TlsCertificate", "shop", &pair);
    let own = ", delegates_to: [{source: team-b, path_prefix: /b/}], routes: [{name: own, match_type: path_prefix, match: /a/}]";
    gateway.apply("team-a", &[shop(own), certificate]);
    let mine = edge("mine", "b.example.com:443");
    let page = document("HttpsEdgeRoute", "page", "{edge: shop, match_type: path_prefix, match: /b/}");
    assert_eq!(gateway.b_applies(&[mine.clone(), page.clone()]).status, 201);
    let presented = gateway.presented();
    let other = edge("other", "other.example.com:443");
    gateway.apply("team-a", std::slice::from_ref(&other));
    assert_eq!((gateway.presented(), presented.len()), (presented, 1));
    let shown = gateway.server.call("GET", "/edges/https?source=team-a&name=shop", None);
    assert_eq!(shown.str("/https_edges/0/routes/0/match"), "/b/", "{}", shown.text);
    assert_eq!(shown.json["https_edges"][0]["routes"].as_array().map(Vec::len), Some(1), "{}", shown.text);
    assert_eq!(gateway.b_applies(&[mine.clone(), page]).status, 200, "the other source has nothing to do");
    assert_eq!(gateway.b_applies(&[mine]).status, 201);
    gateway.apply("team-a", &[other]);
    let left = gateway.server.call("GET", "/tls_certificates?source=team-a", None);
    assert_eq!(left.json["tls_certificates"], json!([]), "{}", left.text);
}

fn rollback(gateway: &Gateway) {
    gateway.apply("team-a", &[shop(", description: second")]);
    let revision = gateway.server.call("GET", "/history", None);
    let to = revision.json["history"][1]["revision"].as_u64().unwrap_or(1);
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(json!({"to": to}))), 403, &["team-a"]);
    let body = json!({"to": to, "source": "team-a"});
    refused(&gateway.server.call_as(&gateway.b, "POST", "/rollbacks", Some(body)), 403, &["team-a"]);
}

#[test]
fn a_declaration_that_is_not_applied_gives_no_right_to_a_host() {
    let gateway = Gateway::new();
    let id = gateway.id("HttpsEdge", "team-a");
    let decoy = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: decoy, id: {id}}}\nspec: {{hostports: ['d.example.com:443']}}\n"
    );
    for hostport in ["shop.example.com:443", "pay.shop.example.com:443", "*.shop.example.com:8443"] {
        let files = [json!({"name": "decoy.yaml", "text": decoy}), edge("mine", hostport)];
        let body = json!({"source": "team-b", "files": files, "isolate": true, "max_deletes": "100%"});
        let answer = gateway.server.call_as(&gateway.b, "POST", "/reconciliations", Some(body));
        assert!(answer.text.contains("NOT_DELEGATED") && answer.text.contains("OWNER_CONFLICT"), "{}", answer.text);
    }
    let edges = gateway.server.call("GET", "/edges/https?source=team-b", None);
    assert_eq!(edges.json["https_edges"], json!([]), "{}", edges.text);
}

#[test]
fn a_wildcard_below_a_delegated_one_has_no_host_of_a_third_source() {
    let gateway = Gateway::new();
    let delegates = "delegates_to: [{source: team-b, path_prefix: /}, {source: team-c, path_prefix: /}]";
    let spec = format!("{{hostports: ['*.apps.example.com:443'], {delegates}}}");
    gateway.apply("platform", &[document("HttpsEdge", "apps", &spec)]);
    gateway.apply("team-c", &[edge("pay", "pay.c.apps.example.com:443")]);
    refused(&gateway.b_applies(&[edge("mine", "*.c.apps.example.com:443")]), 409, &["NOT_DELEGATED", "team-c"]);
    assert_eq!(gateway.b_applies(&[edge("mine", "*.b.apps.example.com:443")]).status, 201);
    // A hostport that the source has moves between its edges, whoever has another port of the host.
    assert_eq!(gateway.b_applies(&[edge("other", "*.b.apps.example.com:443")]).status, 201);
}

#[test]
fn what_a_source_offers_is_taken_over_with_a_key_of_the_receiver() {
    let gateway = Gateway::new();
    let marked = |marker: &str| {
        let text = edge("mine", "b.example.com:443")["text"].as_str().unwrap().to_owned();
        json!({"name": "mine.yaml", "text": text.replace("name: mine", &format!("name: mine, {marker}"))})
    };
    assert_eq!(gateway.b_applies(&[edge("mine", "b.example.com:443")]).status, 201);
    assert_eq!(gateway.b_applies(&[marked("transfer_to: team-d")]).status, 201);
    let d = gateway.key(json!({"apply": ["team-d"]}));
    let taken =
        gateway.server.call_as(&d, "POST", "/reconciliations", run("team-d", &[marked("transfer_from: team-b")]));
    assert_eq!(taken.status, 201, "{}", taken.text);
    assert!(gateway.id("HttpsEdge", "team-d").starts_with("edghts_"));
}
