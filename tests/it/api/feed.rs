//! The gateway configuration: whole and as changes, of one revision, and with the secrets that no other response has (D94).

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use edgewright::{
    Code, Store,
    resources::{AnyResource, ApiKey, Author, HttpsEdge, Id, Key, Kind, Operation, Owner, Role, fresh_id, new_token},
    server::{App, Settings, router},
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use crate::support::{
    program::{Folder, until},
    server::{Answer, BASE_URL, Server, VERSION_HEADER, usual_headers},
};

const CONFIGURATION: &str = "/gateway/configuration";
const SHOP_CHAIN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.chain.pem"));
const SHOP_KEY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.key.pem"));
const STAFF_CA: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/staff-devices.pem"));

/// A server, and a gateway that reads from it.
struct Gateway {
    server: Server,
    token: String,
}

impl Gateway {
    fn start() -> Self {
        let server = Server::start();
        let token = server.key_of("bot_gateway", Role::Gateway);
        Self { server, token }
    }

    fn read(&self, query: &str) -> Value {
        let answer = self.server.call_as(&self.token, "GET", &format!("{CONFIGURATION}{query}"), None);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answer.json
    }

    fn read_if_changed(&self, query: &str, etag: &str) -> Answer {
        let mut headers = usual_headers(&self.token);
        headers.push(("If-None-Match".into(), etag.into()));
        self.server.send("GET", &format!("{CONFIGURATION}{query}"), &headers, None)
    }

    fn made(&self, path: &str, body: Value) -> String {
        let answer = self.server.call("POST", path, Some(body));
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.str("/id").to_owned()
    }
}

/// The edges that a client has, by ID.
type Edges = BTreeMap<String, Value>;

/// Does what a client does with a response, and checks the digest as a client can.
fn apply(edges: &mut Edges, configuration: &Value) {
    let id = |edge: &Value| edge["id"].as_str().unwrap().to_owned();
    if configuration["full"] == true {
        *edges = configuration["edges"].as_array().unwrap().iter().map(|edge| (id(edge), edge.clone())).collect();
        assert_eq!((&configuration["changed"], &configuration["removed"]), (&json!({}), &json!([])));
    } else {
        assert_eq!(configuration["edges"], json!([]));
        for removed in configuration["removed"].as_array().unwrap() {
            assert!(edges.remove(removed.as_str().unwrap()).is_some(), "{removed} was not there");
        }
        for (key, edge) in configuration["changed"].as_object().unwrap() {
            assert_eq!(*key, id(edge));
            assert_ne!(edges.insert(key.clone(), edge.clone()).as_ref(), Some(edge), "an edge that has not changed");
        }
    }
    let lines = edges.iter().map(|(id, edge)| format!("{id} {}\n", edge["version"].as_str().unwrap()));
    let digest = Sha256::digest(lines.collect::<String>());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(configuration["digest"], json!(digest));
}

#[test]
fn an_edge_is_whole_with_certificates_authorities_and_secrets() {
    let gateway = Gateway::start();
    let certificate =
        gateway.made("/tls_certificates", json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY}));
    let authority = gateway.made("/certificate_authorities", json!({"ca_pem": STAFF_CA}));
    let shown = gateway.server.call("GET", &format!("/tls_certificates/{certificate}"), None);
    let name = shown.str("/subject_alternative_names/dns_names/0").to_owned();
    let hostports = json!([format!("{}:443", name.to_uppercase()), format!("{name}:80"), "elsewhere.test:443"]);
    let edge = gateway.made(
        "/edges/https",
        json!({
            "hostports": hostports,
            "tls_termination": {"min_version": "1.3"},
            "mutual_tls": {"certificate_authority_ids": [authority]},
        }),
    );
    let routes = format!("/edges/https/{edge}/routes");
    let everything = gateway.made(&routes, json!({"match_type": "path_prefix", "match": "/"}));
    let oidc = json!({"issuer": "https://login.test", "client_id": "edge", "client_secret": "hunter2-oidc"});
    let login = gateway.made(
        &routes,
        json!({
            "match_type": "path_prefix",
            "match": "/account",
            "compression": {},
            "backend": {"backend_id": "bkd_1"},
            "request_headers": {"enabled": false},
            "oidc": oidc,
        }),
    );
    let signed = gateway.made(
        &routes,
        json!({
            "match_type": "exact_path",
            "match": format!("{}/hook", name.to_uppercase()),
            "webhook_verification": {"provider": "github", "secret": "hunter2-webhook"},
            "saml": {"idp_metadata": include_str!("../../../examples/storefront/saml/idp.xml")},
        }),
    );
    let configuration = gateway.read("");
    assert_eq!(configuration["revision"], json!(gateway.server.store().snapshot().revision));
    apply(&mut Edges::new(), &configuration);
    let edge = &configuration["edges"][0];
    assert_eq!((&edge["terminate_at"], &edge["min_version"]), (&json!("edge"), &json!("1.3")));
    let authorities = json!([{"id": authority, "ca_pem": STAFF_CA}]);
    assert_eq!(edge["mutual_tls"], json!({"certificate_authorities": authorities}));

    let [secure, plain, unknown] = [0_usize, 1, 2].map(|index| &edge["hostports"][index]);
    assert_eq!((&secure["host"], &secure["port"], &secure["tls"]), (&json!(name), &json!(443), &json!(true)));
    assert_eq!(secure["certificates"][0]["id"], json!(certificate));
    assert_eq!(secure["certificates"][0]["certificate_pem"], json!(SHOP_CHAIN));
    assert_eq!(secure["certificates"][0]["private_key_pem"], json!(SHOP_KEY));
    assert_eq!((&plain["tls"], &plain["certificates"]), (&json!(false), &json!([])));
    assert_eq!((&unknown["tls"], &unknown["certificates"]), (&json!(true), &json!([])));

    let found: Vec<&str> = edge["routes"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(found, [signed.as_str(), &login, &everything], "in match order");
    let [hook, account, _] = [0_usize, 1, 2].map(|index| &edge["routes"][index]);
    assert_eq!(
        (&hook["host"], &hook["path"], &hook["match_type"]),
        (&json!(name), &json!("/hook"), &json!("exact_path"))
    );
    let modules = |route: &Value| -> Vec<String> {
        route["modules"].as_array().unwrap().iter().map(|it| it["module"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(modules(hook), ["webhook_verification", "saml"]);
    assert_eq!(modules(account), ["oidc", "backend", "compression"]);
    assert_eq!(account["modules"][0]["stages"], json!(["authentication"]));
    assert_eq!(account["modules"][0]["config"]["client_secret"], json!("hunter2-oidc"));
    assert_eq!(account["modules"][1]["config"]["backend"]["id"], json!("bkd_1"));
    assert_eq!(hook["modules"][0]["config"]["secret"], json!("hunter2-webhook"));
    let key = hook["modules"][1]["config"]["request_signing_private_key_pem"].as_str().unwrap();
    assert!(key.starts_with("-----BEGIN PRIVATE KEY-----\n") && key.ends_with("-----END PRIVATE KEY-----\n"), "{key}");

    // The keys are nowhere else, and a viewer sees no secret.
    let server = &gateway.server;
    for path in [format!("/tls_certificates/{certificate}"), format!("{routes}/{signed}/saml"), "/history".into()] {
        let text = server.call("GET", &path, None).text;
        assert!(!text.contains("PRIVATE KEY") && !text.is_empty(), "{path}");
    }
    let masked = server.call_as(&server.viewer, "GET", &format!("/edges/https/{}", edge["id"].as_str().unwrap()), None);
    assert!(masked.status == 200 && !masked.text.contains("hunter2"), "{}", masked.text);
}

#[test]
fn restrictions_of_endpoints_and_tls_edges_are_always_whole() {
    let gateway = Gateway::start();
    let endpoints = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": ["ipp_1"]});
    let restriction = gateway.made("/ip_restrictions", endpoints);
    gateway.made("/ip_restrictions", json!({"type": "dashboard", "ip_policy_ids": ["ipp_2"]}));
    let put = gateway.server.call("PUT", "/edges/tls/edgtls_1/backend", Some(json!({"backend_id": "bkd_1"})));
    assert_eq!(put.status, 200, "{}", put.text);
    let whole = gateway.read("");
    let expected = json!([{"id": restriction, "enforced": true, "ip_policy_ids": ["ipp_1"]}]);
    assert_eq!(whole["ip_restrictions"], expected);
    assert_eq!(whole["tls_edges"][0]["id"], json!("edgtls_1"));
    assert_eq!(whole["tls_edges"][0]["modules"][0]["module"], json!("backend"));
    let same = gateway.read(&format!("?since={}", whole["revision"]));
    assert_eq!((&same["ip_restrictions"], &same["tls_edges"]), (&expected, &whole["tls_edges"]));
}

#[test]
fn a_gateway_follows_with_etags_and_changes() {
    let gateway = Gateway::start();
    let edge = |host: &str| json!({"hostports": [format!("{host}.example.com:443")]});
    let [first, second] = ["first", "second"].map(|host| gateway.made("/edges/https", edge(host)));
    let mut edges = Edges::new();
    let whole = gateway.read("");
    apply(&mut edges, &whole);
    let etag = gateway.read_if_changed("", "\"none\"").header("etag").unwrap().to_owned();
    assert!(etag.starts_with(&format!("\"{}-", whole["revision"])), "{etag}");
    let same = gateway.read_if_changed(&format!("?since={}", whole["revision"]), &etag);
    assert_eq!((same.status, same.header("cache-control")), (304, Some("no-store")));
    assert_eq!(same.text, "");

    // A revision that changes no edge has an ETag of its own.
    gateway.made("/api_keys", json!({}));
    let unchanged = gateway.read_if_changed(&format!("?since={}", whole["revision"]), &etag);
    assert_eq!((unchanged.status, &unchanged.json["changed"]), (200, &json!({})));
    assert_ne!(unchanged.header("etag"), Some(etag.as_str()));

    // Several revisions later, there is one set of changes.
    let third = gateway.made("/edges/https", edge("third"));
    assert_eq!(gateway.server.call("DELETE", &format!("/edges/https/{second}"), None).status, 204);
    for port in 1000..1010 {
        let body = json!({"hostports": [format!("first.example.com:{port}")]});
        assert_eq!(gateway.server.call("PATCH", &format!("/edges/https/{first}"), Some(body)).status, 200);
    }
    let changes = gateway.read(&format!("?since={}", whole["revision"]));
    assert_eq!(changes["full"], json!(false));
    let changed: Vec<&String> = changes["changed"].as_object().unwrap().keys().collect();
    let mut expected = vec![&first, &third];
    expected.sort();
    assert_eq!((changed, &changes["removed"]), (expected, &json!([second])));
    apply(&mut edges, &changes);
    assert_eq!(edges[&first]["hostports"][0]["port"], json!(1009));

    // The store never had this revision; the first one had only keys.
    let future = gateway.read("?since=1000000");
    assert_eq!(future["full"], json!(true));
    apply(&mut Edges::new(), &future);
    let since_start = gateway.read("?since=1");
    assert_eq!(since_start["full"], json!(false));
    apply(&mut Edges::new(), &since_start);
}

#[test]
fn a_configuration_is_of_one_revision_while_others_commit() {
    let gateway = Gateway::start();
    let ids =
        gateway.server.create(Kind::HttpsEdge, [0, 1].map(|_| Arc::new(HttpsEdge::default()) as Arc<dyn AnyResource>));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each commit changes both edges to the port that is the number of the commit.
            for port in 1..=100_u16 {
                let patch = |id: &String| Operation::Patch {
                    key: Key::new(Kind::HttpsEdge, Id::new(id)),
                    spec: Arc::new(HttpsEdge {
                        hostports: vec![format!("shop.example.com:{port}")],
                        ..HttpsEdge::default()
                    }),
                    fields: vec!["hostports".into()],
                };
                let operations = ids.iter().map(patch).collect();
                gateway.server.store().commit(Author::Local, operations).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let (mut edges, mut known, mut is_last) = (Edges::new(), String::new(), false);
        while !is_last {
            is_last = done.load(Ordering::Acquire);
            let configuration = gateway.read(&known);
            apply(&mut edges, &configuration);
            known = format!("?since={}", configuration["revision"]);
            let ports: Vec<&Value> = edges.values().map(|edge| &edge["hostports"][0]["port"]).collect();
            assert_eq!(ports[0], ports[1], "{configuration}");
        }
        assert_eq!(edges[&ids[0]]["hostports"][0]["port"], json!(100));
        let mut whole = Edges::new();
        apply(&mut whole, &gateway.read(""));
        assert_eq!(edges, whole);
    });
}

#[test]
fn each_read_is_in_the_audit_log_with_its_actor_and_without_secrets() {
    let folder = Folder::new();
    let created = folder.ok("keys create --store store --role gateway --owner bot_gateway");
    let token = created.out.trim().to_owned();
    assert!(folder.ok("owners list --store store").out.ends_with("\ngateway  bot_gateway\n"));
    let serve = folder.serve("--log-format json");
    assert_eq!(serve.call_as(&token, "GET", CONFIGURATION, "").status, 200);
    assert_eq!(serve.get(CONFIGURATION).status, 403);
    let audited = |said: String| -> Vec<Value> {
        let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["target"] == "audit").collect()
    };
    let events = until("the audit log", || Some(audited(serve.said())).filter(|events| !events.is_empty()));
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let key = token[3..].rsplit_once('_').unwrap().0;
    assert_eq!((&event["actor"], &event["owner"]), (&json!(key), &json!("bot_gateway")));
    assert_eq!((&event["level"], &event["full"]), (&json!("INFO"), &json!(true)));
    assert!(event["revision"].is_u64() && event["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{event}");
    assert!(!serve.said().contains(&token));
}

#[test]
fn a_client_of_another_machine_gets_no_keys_whatever_its_headers_say() {
    let store = Arc::new(Store::open("memory:").unwrap());
    let key = Key::new(Kind::ApiKey, fresh_id(Kind::ApiKey));
    let (token, hash) = new_token(&key.id);
    let create = |key, spec: Arc<dyn AnyResource>, token| Operation::Create { key, spec, claim: None, token };
    let spec = ApiKey { owner_id: "bot_gateway".into(), ..ApiKey::default() };
    let operations = vec![
        create(Key::new(Kind::Owner, Id::new("bot_gateway")), Arc::new(Owner { role: Role::Gateway }), None),
        create(key, Arc::new(spec), Some(hash)),
    ];
    store.commit(Author::Local, operations).unwrap();
    let url = BASE_URL.to_owned();
    let settings = Settings { base_url: url.clone(), saml_base_url: url, version_header: VERSION_HEADER.into() };
    let router = router(App::new(store, settings));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let read = |peer: Option<&str>| -> (u16, Value) {
        let mut request = axum::http::Request::get(CONFIGURATION)
            .header("Host", "localhost")
            .header("Authorization", format!("Bearer {}", token.expose()))
            .header(VERSION_HEADER, "2")
            .header("X-Forwarded-For", "127.0.0.1")
            .header("Forwarded", "for=127.0.0.1;proto=https")
            .body(axum::body::Body::empty())
            .unwrap();
        if let Some(peer) = peer {
            let peer: SocketAddr = peer.parse().unwrap();
            request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
        }
        runtime.block_on(async {
            let response = router.clone().oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, serde_json::from_slice(&body).unwrap())
        })
    };
    assert_eq!(read(Some("127.0.0.1:4000")).0, 200);
    assert_eq!(read(Some("[::1]:4000")).0, 200);
    // A router of another program may not know the address.
    for peer in [Some("192.0.2.7:4000"), Some("[2001:db8::1]:4000"), None] {
        let (status, body) = read(peer);
        assert_eq!((status, &body["error_code"]), (403, &json!("ERR_EDGEWRIGHT_INSECURE_TRANSPORT")), "{peer:?}");
    }
    assert_eq!(Code::InsecureTransport.info().status, 403);
}
