//! The real API on a real socket, in this process, and a small client for it.
//!
//! [`Server::start`] opens a store in a temporary folder, puts one admin, one editor and one viewer into it, and serves
//! it until the value is dropped. Every address in an answer begins with [`BASE_URL`], whatever the port is.

use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use edgewright::{
    Disk, Options, Store,
    resources::{AnyResource, ApiKey, Author, Id, Key, Kind, Operation, Owner, Role, fresh_id, new_token},
    server::{App, LoopGuard, Settings, bind, follow, router},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::http::{HttpAnswer, read_answer};

/// What every `uri` begins with.
pub(crate) const BASE_URL: &str = "http://gateway.test";
/// The version header of the servers that are started here.
pub(crate) const VERSION_HEADER: &str = "Service-Version";
/// How many clients can watch changes.
pub(crate) const MOST_WATCHERS: usize = 64;
/// The secret of the webhook of the servers that are started here.
pub(crate) const HOOK_SECRET: &str = "hook secret";
/// Who owns the three keys that every store begins with.
pub(crate) const OWNERS: [(&str, Role); 3] =
    [("usr_admin", Role::Admin), ("usr_editor", Role::Editor), ("usr_viewer", Role::Viewer)];

/// A running server. It stops when it is dropped.
pub(crate) struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// The token of an admin's key.
    pub admin: String,
    /// The token of an editor's key.
    pub editor: String,
    /// The token of a viewer's key.
    pub viewer: String,
    /// The key ids of the three tokens, in the order of [`OWNERS`].
    pub key_ids: [String; 3],
    store: Option<Arc<Store>>,
    agent: ureq::Agent,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    folder: Option<TempDir>,
    /// The loop of the source that it follows, and its manifests.
    followed: Option<(LoopGuard, TempDir)>,
}

impl Server {
    /// A server with the usual settings on an empty store.
    pub(crate) fn start() -> Self {
        Self::with(usual_settings())
    }

    /// A server that follows a source with one manifest, and has applied it.
    pub(crate) fn following(source: &str, manifest: &str) -> Self {
        Self::serving(usual_settings(), Some((source, manifest)))
    }

    /// A server with other settings.
    pub(crate) fn with(settings: Settings) -> Self {
        Self::serving(settings, None)
    }

    fn serving(settings: Settings, source: Option<(&str, &str)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path().join("store")).unwrap());
        let mut operations = Vec::new();
        let keys = OWNERS.map(|(owner, role)| add_key(&mut operations, owner, role));
        commit(&store, operations);
        let listener = bind("127.0.0.1:0").unwrap();
        let address = listener.address().unwrap();
        let secret = folder.path().join("hook.secret");
        std::fs::write(&secret, HOOK_SECRET).unwrap();
        let followed = source.map(|(source, manifest)| applied(&store, source, manifest));
        let following = followed.iter().map(|(guard, _)| guard.handle());
        let app = App::new(Arc::clone(&store), settings).following(following).git_hook(secret);
        let router = router(app.max_watchers(MOST_WATCHERS).stopped_by(&listener));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let stopped = async {
                let _ = stopped.await;
            };
            listener.run_until(router, stopped).unwrap();
        });
        let [(admin_id, admin), (editor_id, editor), (viewer_id, viewer)] = keys;
        Self {
            address,
            admin,
            editor,
            viewer,
            key_ids: [admin_id, editor_id, viewer_id],
            store: Some(store),
            agent: agent(),
            stop: Some(stop),
            thread: Some(thread),
            folder: Some(folder),
            followed,
        }
    }

    /// The store behind the API.
    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// Commits straight to the store: a quick way to many resources. The ids come back oldest first.
    pub(crate) fn create(&self, kind: Kind, specs: impl IntoIterator<Item = Arc<dyn AnyResource>>) -> Vec<String> {
        let mut ids = Vec::new();
        let operations = specs.into_iter().map(|spec| {
            let key = Key::new(kind, fresh_id(kind));
            ids.push(key.id.to_string());
            Operation::Create { key, spec, claim: None, token: None }
        });
        let operations = operations.collect();
        commit(self.store(), operations);
        ids
    }

    /// Commits a key of a new owner with a role, and returns its token.
    pub(crate) fn key_of(&self, owner: &str, role: Role) -> String {
        let mut operations = Vec::new();
        let (_, token) = add_key(&mut operations, owner, role);
        commit(self.store(), operations);
        token
    }

    /// Stops the server and opens its store again, as the next start of the program would.
    pub(crate) fn reopen(mut self) -> Result<(Store, TempDir), String> {
        self.halt();
        let folder = self.folder.take().unwrap();
        let mut last = String::new();
        // sled's own threads may hold the lock for a moment longer.
        for _ in 0..50 {
            match Store::open(folder.path().join("store")) {
                Ok(store) => return Ok((store, folder)),
                Err(error) => last = format!("{}: {error}", error.code),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(last)
    }

    fn halt(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.followed = None;
        self.store = None;
    }

    /// One request as the admin, with all headers in order; a body makes it JSON.
    pub(crate) fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_as(&self.admin, method, path, body)
    }

    /// The same with another token.
    pub(crate) fn call_as(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let mut headers = usual_headers(token);
        let body = body.map(|body| body.to_string().into_bytes());
        if body.is_some() {
            headers.push(("Content-Type".into(), "application/json".into()));
        }
        self.send(method, path, &headers, body)
    }

    /// Any request that HTTP allows: exactly these headers and bytes.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(String, String)], body: Option<Vec<u8>>) -> Answer {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // Without a body these methods would be sent in chunks; none at all is a length of 0.
        let body = body.or_else(|| ["POST", "PUT", "PATCH"].contains(&method).then(Vec::new));
        let response = match body {
            Some(body) => self.agent.run(request.body(body).unwrap()),
            None => self.agent.run(request.body(()).unwrap()),
        };
        let (parts, mut body) = response.unwrap_or_else(|error| panic!("{method} {path:.200}: {error}")).into_parts();
        let headers = parts
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Answer::new(parts.status.as_u16(), headers.collect(), &body.read_to_vec().unwrap())
    }

    /// Writes bytes to a connection of its own, and reads what comes until the server closes it.
    pub(crate) fn raw(&self, request: &[u8]) -> Option<Answer> {
        let mut connection = TcpStream::connect(self.address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may answer and close before it has read everything.
        let _ = connection.write_all(request);
        let answer = HttpAnswer::parse(&String::from_utf8_lossy(&read_answer(&mut connection)))?;
        Some(Answer::new(answer.status, answer.headers, answer.body.as_bytes()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
    }
}

fn usual_settings() -> Settings {
    Settings { base_url: BASE_URL.into(), saml_base_url: BASE_URL.into(), version_header: VERSION_HEADER.into() }
}

/// Follows a source with one manifest, and waits until it is applied.
fn applied(store: &Arc<Store>, source: &str, manifest: &str) -> (LoopGuard, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("m");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("one.yaml"), manifest).unwrap();
    let options = Options { source: source.to_owned(), ..Options::new(Disk::new([&manifests])) };
    let mut handle = follow(Arc::clone(store), options, std::slice::from_ref(&manifests), |_, _| {}).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(handle.first_sync());
    (handle, folder)
}

/// The headers that every request carries.
pub(crate) fn usual_headers(token: &str) -> Vec<(String, String)> {
    vec![("Authorization".into(), format!("Bearer {token}")), (VERSION_HEADER.into(), "2".into())]
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The status.
    pub status: u16,
    /// The headers; their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null when it is none.
    pub json: Value,
    /// The body as it came.
    pub text: String,
}

impl Answer {
    fn new(status: u16, headers: Vec<(String, String)>, body: &[u8]) -> Self {
        let json = serde_json::from_slice(body).unwrap_or_default();
        Self { status, headers, json, text: String::from_utf8_lossy(body).into_owned() }
    }

    /// The value of a header; the first one, if there are several.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_lowercase();
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The text at a JSON pointer of the body; empty where there is none.
    pub(crate) fn str(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

fn agent() -> ureq::Agent {
    // Each request has a connection of its own: a test never meets what another one left on it.
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .allow_non_standard_methods(true)
        .timeout_global(Some(Duration::from_secs(30)));
    config.build().into()
}

fn add_key(operations: &mut Vec<Operation>, owner: &str, role: Role) -> (String, String) {
    let key = Key::new(Kind::ApiKey, fresh_id(Kind::ApiKey));
    let (token, hash) = new_token(&key.id);
    let create = |key: Key, spec: Arc<dyn AnyResource>, token| Operation::Create { key, spec, claim: None, token };
    operations.push(create(Key::new(Kind::Owner, Id::new(owner)), Arc::new(Owner { role }), None));
    let spec = ApiKey { description: format!("the first {owner}"), owner_id: owner.into(), ..ApiKey::default() };
    let id = key.id.to_string();
    operations.push(create(key, Arc::new(spec), Some(hash)));
    (id, token.expose().to_owned())
}

fn commit(store: &Store, operations: Vec<Operation>) {
    store.commit(Author::Local, operations).unwrap();
}
