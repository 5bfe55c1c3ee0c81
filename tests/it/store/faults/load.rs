//! Clients that write all the time, and remember what was acknowledged.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::support::program::{Folder, Serve};

/// The clients that write over the API, each to resources of its own.
const CLIENTS: usize = 4;
/// How long a client waits for an answer. A server that was stopped gives none.
const ANSWER: Duration = Duration::from_secs(1);
/// The edges of the followed source, which always have one text.
pub(super) const EDGES: usize = 5;

/// A description that a client gave to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// The text. No two are equal.
    pub text: String,
    /// Whether the server acknowledged it. Otherwise it may have been written or not.
    pub is_acknowledged: bool,
}

/// The texts of each resource that a client writes, oldest first, by path.
pub(super) type Written = BTreeMap<String, Vec<Text>>;

/// What clients have written to a store.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub written: Written,
    /// Number of the next text.
    next: usize,
    counted: usize,
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    config.timeout_global(Some(ANSWER)).build().into()
}

fn send(agent: &ureq::Agent, address: &str, token: &str, method: &str, path: &str, body: &Value) -> Option<Value> {
    let request = ureq::http::Request::builder().method(method).uri(format!("http://{address}{path}"));
    let request = request.header("Authorization", format!("Bearer {token}")).header("Service-Version", "2");
    let request = request.header("Content-Type", "application/json").body(body.to_string()).unwrap();
    let answer = agent.run(request).ok()?;
    let is_done = answer.status().is_success();
    let answer: Value = serde_json::from_str(&answer.into_body().read_to_string().ok()?).ok()?;
    is_done.then_some(answer)
}

impl Load {
    /// Writes the manifest of the source, with a text that no earlier one had.
    pub(super) fn declare(&mut self, folder: &Folder) {
        self.next += 1;
        let mut manifest = String::new();
        for edge in 0..EDGES {
            manifest += &format!(
                "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: e{edge}}}\nspec: {{description: declared-{}, hostports: ['e{edge}.example.com:443']}}\n",
                self.next
            );
        }
        folder.write("edges.new", &manifest);
        fs::create_dir_all(folder.path("edges")).unwrap();
        fs::rename(folder.path("edges.new"), folder.path("edges/edges.yaml")).unwrap();
    }

    /// Creates the resources that clients write.
    pub(super) fn create(&mut self, serve: &Serve) {
        for client in 0..CLIENTS {
            let text = format!("created-{client}");
            let body = json!({"type": "api", "description": text});
            let created = send(&agent(), &serve.address, &serve.token, "POST", "/ip_restrictions", &body).unwrap();
            let path = format!("/ip_restrictions/{}", created["id"].as_str().unwrap());
            self.written.insert(path, vec![Text { text, is_acknowledged: true }]);
        }
    }

    /// Writes for a while, or until the server ends. `accident` happens while the clients write.
    pub(super) fn run(
        &mut self,
        serve: &mut Serve,
        folder: &Folder,
        time: Duration,
        seed: u64,
        accident: impl FnOnce(&mut Serve),
    ) {
        let is_over = Arc::new(AtomicBool::new(false));
        let start = self.next;
        let paths: Vec<String> = self.written.keys().cloned().collect();
        let clients = paths.into_iter().enumerate().map(|(client, path)| {
            let (is_over, address, token) = (Arc::clone(&is_over), serve.address.clone(), serve.token.clone());
            std::thread::spawn(move || {
                let (agent, mut texts) = (agent(), Vec::new());
                let mut random = StdRng::seed_from_u64(seed ^ client as u64);
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    // Some are larger than what is written at once.
                    let filler = "x".repeat(if random.random_bool(0.02) { 200 } else { 1 });
                    let text = format!("text-{start}-{number}-{filler}");
                    let sent = send(&agent, &address, &token, "PATCH", &path, &json!({"description": text}));
                    texts.push(Text { text, is_acknowledged: sent.is_some() });
                    if sent.is_none() {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                (path, texts)
            })
        });
        let clients: Vec<_> = clients.collect();
        let since = Instant::now();
        while since.elapsed() < time && !serve.has_ended() {
            self.declare(folder);
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
        accident(serve);
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            let (path, texts) = client.join().unwrap();
            self.written.entry(path).or_default().extend(texts);
        }
        self.next += 1;
    }

    /// The number of acknowledged writes since the last call.
    pub(super) fn acknowledge(&mut self) -> usize {
        let all = self.written.values().flatten().filter(|text| text.is_acknowledged).count();
        all - std::mem::replace(&mut self.counted, all)
    }
}
