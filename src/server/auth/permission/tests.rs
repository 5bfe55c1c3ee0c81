//! Every endpoint and operation, asked by every kind of caller. The rule of an operation follows from its declaration.

#![allow(clippy::unwrap_used, clippy::panic)]

use axum::Router;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;

use super::allows_request;
use crate::model::{ApiKey, Claim, KeyScope, Operation, Owner};
use crate::server::auth::caller::Caller;
use crate::server::operations::OPERATIONS;
use crate::server::operations::operation::ApiOperation;
use crate::server::prelude::*;
use crate::server::resources::endpoint::{Action, Endpoint, endpoints};
use crate::server::{App, VERSION_HEADER, openapi, router};
use crate::store::tokens;

/// The answer to a caller: the permission, or a refusal. Whether the request then succeeds does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Allowed,
    Forbidden,
    Unauthenticated,
}
use Decision::{Allowed, Forbidden, Unauthenticated};

/// Which callers an endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndpointRule {
    /// Everybody, also without a token.
    Open,
    /// Everybody who is no gateway.
    Read,
    /// Everybody with a token.
    Watch,
    /// Gateways.
    Feed,
    /// Editors, and scopes that reach the source or the resource.
    Change,
    /// Editors, and scopes that reach a resource without a source, or what acts on every source.
    Create,
    /// Editors without a scope: the keys of the table have none either.
    Keys,
    /// Everybody who is no gateway for a dry run; otherwise as a change.
    Reconcile,
    /// Admins without a scope.
    Administer,
    /// Admins who see all secrets.
    Backup,
}

/// The rule of an operation that no kind has. It is stated here once more: a declaration with a wrong intent must not pass.
fn rule_of_operation(operation: &ApiOperation) -> EndpointRule {
    match (operation.method_name(), operation.path) {
        ("get", "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/saml/{id}")
        | ("post", "/hooks/git" | "/login/device" | "/login/device/token") => EndpointRule::Open,
        ("get", "/watch" | "/whoami") => EndpointRule::Watch,
        ("get", "/gateway/configuration") => EndpointRule::Feed,
        ("get", "/backup") => EndpointRule::Backup,
        ("get", "/owners" | "/owners/{id}") | ("patch", "/owners/{id}") | ("post", "/store/rekey") => {
            EndpointRule::Administer
        }
        ("post", "/reconciliations" | "/rollbacks" | "/transfers" | "/sources/{name}/destroy") => {
            EndpointRule::Reconcile
        }
        ("post", "/sources/{name}/suspend" | "/sources/{name}/resume" | "/sources/{name}/sync") => EndpointRule::Change,
        ("get", "/history" | "/history/blame" | "/history/{revision}" | "/export")
        | ("get", "/resources" | "/resources/{id}" | "/routing")
        | ("get", "/reconciliations" | "/reconciliations/{id}" | "/sources" | "/sources/{name}")
        | ("post", "/trace")
        | ("get", "/proofs") => EndpointRule::Read,
        (method, path) => panic!("{method} {path} has no rule"),
    }
}

/// The bodies with which an operation is asked about a source: its example, or a plan and its application.
fn bodies_of(operation: &ApiOperation, documented: &Value, source: &str) -> Vec<Option<Value>> {
    let plans = |body: Value| -> Vec<Option<Value>> {
        let with = |dry_run: bool| {
            let mut body = body.clone();
            body.as_object_mut().unwrap().insert("dry_run".into(), json!(dry_run));
            Some(body)
        };
        [true, false].map(with).to_vec()
    };
    match operation.path {
        "/reconciliations" if operation.method_name() == "post" => plans(json!({"source": source, "files": []})),
        "/rollbacks" => plans(json!({"source": source, "to": 999_999})),
        "/transfers" => plans(json!({"from": format!("{source}-old"), "to": format!("{source}-next"), "all": true})),
        "/sources/{name}/destroy" => plans(json!({"expect": "another plan"})),
        _ => vec![documented.pointer("/requestBody/content/application~1json/example").cloned()],
    }
}

fn rule_of(endpoint: &Endpoint) -> EndpointRule {
    match endpoint.action {
        Action::List | Action::Get | Action::GetModule(_) => EndpointRule::Read,
        _ if endpoint.kind == Kind::ApiKey => EndpointRule::Keys,
        Action::Create => EndpointRule::Create,
        // A global kind affects every source, whichever source it is from.
        _ if endpoint.kind.facts().global => EndpointRule::Create,
        Action::Patch | Action::Delete | Action::PutModule(_) | Action::DeleteModule(_) => EndpointRule::Change,
    }
}

/// The caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Of(Role),
    /// An editor's key with a scope for the sources `shop*`.
    Team,
    /// A planner's key with a scope for the sources `shop*`.
    TeamPlanner,
    /// An admin's key that may do everything a scope can grant.
    LimitedAdmin,
    /// An admin's key that has expired.
    Expired,
    /// An admin's key for another address.
    Elsewhere,
}

const ASKERS: [Asker; 10] = [
    Asker::Team,
    Asker::TeamPlanner,
    Asker::LimitedAdmin,
    Asker::Expired,
    Asker::Elsewhere,
    Asker::Of(Role::Gateway),
    Asker::Of(Role::Viewer),
    Asker::Of(Role::Planner),
    Asker::Of(Role::Editor),
    Asker::Of(Role::Admin),
];

impl Asker {
    fn role(self) -> Role {
        match self {
            Asker::Of(role) => role,
            Asker::Team => Role::Editor,
            Asker::TeamPlanner => Role::Planner,
            Asker::LimitedAdmin | Asker::Expired | Asker::Elsewhere => Role::Admin,
        }
    }

    fn scope(self) -> Option<KeyScope> {
        let all = || vec!["*".to_owned()];
        let everything = || KeyScope { apply: all(), kinds: all(), secrets: true, global: true, ..KeyScope::default() };
        match self {
            Asker::Of(_) => None,
            Asker::Team => Some(KeyScope { apply: vec!["shop*".into()], ..KeyScope::default() }),
            Asker::TeamPlanner => Some(KeyScope { plan: vec!["shop*".into()], ..KeyScope::default() }),
            Asker::LimitedAdmin => Some(everything()),
            Asker::Expired => Some(KeyScope { expires_at: "2020-01-01T00:00:00Z".into(), ..everything() }),
            Asker::Elsewhere => Some(KeyScope { addresses: vec!["192.0.2.0/24".into()], ..everything() }),
        }
    }

    /// The decision for a resource or source of `shop`, or of another source.
    fn decision(self, rule: EndpointRule, is_own: bool, dry_run: bool) -> Decision {
        match self {
            _ if rule == EndpointRule::Open => return Allowed,
            Asker::Expired => return Unauthenticated,
            Asker::Elsewhere => return Forbidden,
            _ => {}
        }
        let role = self.role();
        let allowed = match rule {
            EndpointRule::Open | EndpointRule::Watch => true,
            EndpointRule::Feed => role == Role::Gateway,
            EndpointRule::Read => role != Role::Gateway,
            EndpointRule::Reconcile if dry_run => match self {
                Asker::Team | Asker::TeamPlanner => is_own,
                _ => role != Role::Gateway,
            },
            EndpointRule::Change | EndpointRule::Reconcile => match self {
                Asker::Team => is_own,
                _ => role >= Role::Editor,
            },
            EndpointRule::Create => self != Asker::Team && role >= Role::Editor,
            EndpointRule::Keys => matches!(self, Asker::Of(Role::Editor | Role::Admin)),
            EndpointRule::Administer => self == Asker::Of(Role::Admin),
            EndpointRule::Backup => role == Role::Admin,
        };
        if allowed { Allowed } else { Forbidden }
    }
}

/// A server with a key of each caller, and resources of `shop` and of another source.
struct AskedServer {
    store: Arc<Store>,
    router: Router,
    tokens: Vec<(Asker, String)>,
    runtime: tokio::runtime::Runtime,
}

impl AskedServer {
    fn new() -> Self {
        let app = App::in_memory();
        let store = Arc::clone(&app.0.served.store);
        let (mut operations, mut tokens) = (Vec::new(), Vec::new());
        for (number, asker) in ASKERS.into_iter().enumerate() {
            let owner = Id::new(&format!("usr_{number}"));
            let key = Key::new(Kind::ApiKey, Id::new(&format!("ak_{number}")));
            let (token, hash) = tokens::token(&key.id);
            let (owner_id, scope) = (owner.to_string(), asker.scope().map(Arc::new));
            let spec = Arc::new(ApiKey { owner_id, scope, ..ApiKey::default() });
            let role = Arc::new(Owner { role: asker.role() });
            let owner = Key::new(Kind::Owner, owner);
            operations.push(Operation::create(owner, role));
            operations.push(Operation::Create { key, spec, claim: None, token: Some(hash) });
            tokens.push((asker, token.expose().to_owned()));
        }
        commit(&store, operations).unwrap();
        let router = router(app);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { store, router, tokens, runtime }
    }

    /// Creates the resources that former requests have deleted.
    fn refill(&self) {
        for (source, id) in [("shop", "own"), ("identity", "other")] {
            for info in Kind::all().filter(|info| info.kind != Kind::Owner) {
                let key = key_of(info.kind, id);
                if self.store.snapshot().get(&key).is_some() {
                    continue;
                }
                let example = example_of(info.kind);
                let mut spec = (info.restore)(&example.to_string()).unwrap();
                if info.kind == Kind::ApiKey {
                    spec = Arc::new(ApiKey { owner_id: "usr_8".into(), ..ApiKey::default() });
                }
                let name = format!("{}-{id}", info.name);
                let claim = Claim::new(source, name);
                let create = Operation::Create { key, spec, claim: Some(Arc::new(claim)), token: None };
                commit(&self.store, vec![create]).unwrap_or_else(|error| panic!("{}: {error}", info.name));
            }
        }
    }

    fn ask(&self, asker: Asker, method: &str, path: &str, body: Option<&Value>) -> Decision {
        let token = self.tokens.iter().find(|(it, _)| *it == asker).map(|(_, token)| token.as_str()).unwrap();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(VERSION_HEADER, "2");
        let request = request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap();
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.unwrap();
            match response.status() {
                StatusCode::UNAUTHORIZED => Unauthenticated,
                StatusCode::FORBIDDEN => {
                    let bytes = response.into_body().collect().await.unwrap().to_bytes();
                    // A connection without TLS is refused after the permission was checked.
                    if String::from_utf8_lossy(&bytes).contains("ERR_EDGEWRIGHT_FORBIDDEN") {
                        Forbidden
                    } else {
                        Allowed
                    }
                }
                _ => Allowed,
            }
        })
    }

    /// Asks for everyone, and returns what differs from the table.
    fn differences(&self, rule: EndpointRule, is_own: bool, call: (&str, &str), body: Option<&Value>) -> Vec<String> {
        let (method, path) = call;
        let dry_run = body.and_then(|body| body.get("dry_run")) == Some(&json!(true));
        let differs = |asker: Asker| {
            let (found, expected) = (self.ask(asker, method, path, body), asker.decision(rule, is_own, dry_run));
            (found != expected).then(|| format!("{asker:?} {method} {path}: {found:?}, expected {expected:?}"))
        };
        ASKERS.into_iter().filter_map(differs).collect()
    }
}

fn commit(store: &Store, operations: Vec<Operation>) -> Result<(), String> {
    store.commit(Author::Local, operations).map(drop).map_err(|error| error.to_string())
}

/// The key of a resource with `own` or `other` in its id.
fn key_of(kind: Kind, id: &str) -> Key {
    let facts = kind.facts();
    let own = match kind {
        // Its id is its type.
        Kind::EventSource => (kind.info().example)().unwrap().get("type").and_then(Value::as_str).unwrap().to_owned(),
        _ => format!("{}{id}", facts.prefix),
    };
    match facts.parent {
        Some(parent) => Key::child(kind, Id::new(&format!("{}{id}", parent.facts().prefix)), Id::new(&own)),
        None => Key::new(kind, Id::new(&own)),
    }
}

/// A body that creates a resource.
fn example_of(kind: Kind) -> Value {
    match kind {
        // The document has no private key.
        Kind::TlsCertificate => json!({
            "certificate_pem": include_str!("../../../../examples/storefront/certs/wildcard.chain.pem"),
            "private_key_pem": include_str!("../../../../examples/storefront/certs/wildcard.key.pem"),
        }),
        _ => (kind.info().example)().unwrap_or_else(|| json!({})),
    }
}

fn body_of(endpoint: &Endpoint) -> Option<Value> {
    let info = endpoint.kind.info();
    match endpoint.action {
        Action::Create => Some(example_of(endpoint.kind)),
        Action::Patch => Some((info.patch_example)()),
        Action::PutModule(slot) => Some((slot.example)()),
        _ => None,
    }
}

#[test]
fn endpoints_of_kinds() {
    let world = AskedServer::new();
    let mut wrong = Vec::new();
    for endpoint in endpoints() {
        for (id, is_own) in [("own", true), ("other", false)] {
            world.refill();
            let key = key_of(endpoint.kind, id);
            let module = match endpoint.action {
                Action::PutModule(slot) | Action::GetModule(slot) | Action::DeleteModule(slot) => {
                    format!("/{}", slot.name)
                }
                _ => String::new(),
            };
            let path = match endpoint.action {
                Action::Create | Action::List => key.collection_path(),
                _ => format!("{}{module}", key.path()),
            };
            let body = body_of(&endpoint);
            wrong.extend(world.differences(rule_of(&endpoint), is_own, (endpoint.method, &path), body.as_ref()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn operations() {
    let world = AskedServer::new();
    world.refill();
    let document = openapi::document(VERSION_HEADER, "");
    let mut wrong = Vec::new();
    for operation in OPERATIONS {
        let method = operation.method_name();
        let verb = method.to_ascii_uppercase();
        let documented = document.get("paths").and_then(|paths| paths.get(operation.path)?.get(method));
        for (source, is_own) in [("shop", true), ("identity", false)] {
            // The sources own nothing else: an API key among it would have rules of its own.
            let ended = format!("{source}-old");
            let named = if operation.path.ends_with("/destroy") { ended.as_str() } else { source };
            let path = operation.path.replace("{name}", named).replace("{id}", "usr_none").replace("{revision}", "1");
            for body in bodies_of(operation, documented.unwrap_or(&Value::Null), source) {
                let call = (verb.as_str(), path.as_str());
                wrong.extend(world.differences(rule_of_operation(operation), is_own, call, body.as_ref()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_scope_that_is_narrowed_while_a_request_waits_counts() {
    let (key, owner) = (Id::new("ak_1"), Id::new("usr_1"));
    let before = Caller { key: key.clone(), owner: owner.clone(), role: Role::Editor, scope: None };
    let wide = KeyScope { kinds: vec!["*".into()], ..KeyScope::default() };
    let allowed = |scope: KeyScope| {
        let spec = Arc::new(ApiKey { owner_id: owner.to_string(), scope: Some(Arc::new(scope)), ..ApiKey::default() });
        let owner = Operation::create(Key::new(Kind::Owner, owner.clone()), Arc::new(Owner { role: Role::Editor }));
        let key = Operation::create(Key::new(Kind::ApiKey, key.clone()), spec);
        let current = Snapshot::default().apply(&[owner, key], clock::now()).unwrap().0;
        let target = Key::new(Kind::IpRestriction, Id::new("ipx_1"));
        let operations = [Operation::Delete { key: target, with_children: true }];
        allows_request(&before, "192.0.2.7".parse().ok(), &operations, &current).map_err(|fault| fault.code)
    };
    assert_eq!(allowed(wide.clone()), Ok(()));
    let expired = KeyScope { expires_at: "2020-01-01T00:00:00Z".into(), ..wide.clone() };
    assert_eq!(allowed(expired), Err(Code::Unauthenticated));
    let elsewhere = KeyScope { addresses: vec!["198.51.100.0/24".into()], ..wide.clone() };
    assert_eq!(allowed(elsewhere), Err(Code::Forbidden));
    let here = KeyScope { addresses: vec!["192.0.2.0/24".into()], ..wide };
    assert_eq!(allowed(here), Ok(()));
}
