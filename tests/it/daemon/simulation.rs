//! Random events around a server that follows a folder and a Git repository: edits, broken states, writes
//! over the API, an unreachable repository, rollbacks, suspensions, kills and restarts. In the end everything is as the
//! manifests say, and the history has each acknowledged write once.
//!
//! `EDGEWRIGHT_SIMULATION_SEED` repeats a run. What happens between two events depends on the time, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use edgewright::{
    Store,
    resources::Author,
    storage::{Outcome, Query},
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::support::{
    git::git,
    program::{Folder, Serve, copy, number_in, rounds, within},
};

/// How long the sources may take to be as their manifests say, on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const CONFIG: &str = "
sources:
- {name: shop, path: shop, interval: 1s, max_deletes: 100%}
- {name: docs, repository: repo, ref: main, path: edge, interval: 1s, max_deletes: 100%}
notifications:
  files: [{name: log, path: changes.jsonl}]
";
/// The sources, with the folders of their manifests.
const SOURCES: [(&str, &str); 2] = [("shop", "shop"), ("docs", "repo/edge")];
/// The most manifests of a source.
const FILES: usize = 6;

/// A write that was acknowledged: the path of the resource, and the description that it was given.
type Acknowledged = (String, String);

/// Where a writer finds the server, and the token of its key.
type Address = Arc<Mutex<Option<(String, String)>>>;

struct Simulation {
    random: StdRng,
    folder: Folder,
    serve: Option<Serve>,
    address: Address,
    /// The text of each manifest that is right: what the folders have when nothing is broken.
    declared: BTreeMap<String, String>,
    /// The paths of resources that no source owns.
    unowned: Vec<String>,
    acknowledged: Vec<Acknowledged>,
    /// The revisions of acknowledged rollbacks.
    rollbacks: Vec<u64>,
    texts: usize,
    is_out: bool,
    counts: BTreeMap<&'static str, usize>,
}

fn edge(name: &str, description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  description: {description}\n  hostports: [\"{name}.example.com:443\"]\n  routes:\n  - {{name: home, match_type: path_prefix, match: /, backend: {{backend_id: bkd_{name}}}}}\n"
    )
}

impl Simulation {
    fn start(seed: u64) -> Self {
        let folder = Folder::new();
        folder.write("simulation.yaml", CONFIG);
        let mut simulation = Self {
            random: StdRng::seed_from_u64(seed),
            folder,
            serve: None,
            address: Address::default(),
            declared: BTreeMap::new(),
            unowned: Vec::new(),
            acknowledged: Vec::new(),
            rollbacks: Vec::new(),
            texts: 0,
            is_out: false,
            counts: BTreeMap::new(),
        };
        for source in 0..SOURCES.len() {
            simulation.declare(source, 0);
        }
        git(&simulation.folder, "-C repo init -q -b main");
        simulation.commit();
        simulation.serve();
        simulation
    }

    fn serve(&mut self) {
        let serve = self.folder.serve_with("", &[("EDGEWRIGHT_CONFIG", "simulation.yaml")]);
        *self.address.lock().unwrap() = Some((serve.address.clone(), serve.token.clone()));
        self.serve = Some(serve);
    }

    fn server(&self) -> &Serve {
        self.serve.as_ref().unwrap()
    }

    /// A text that no other has.
    fn text(&mut self) -> String {
        self.texts += 1;
        format!("text-{}", self.texts)
    }

    fn declare(&mut self, source: usize, file: usize) {
        let (name, within) = SOURCES[source];
        let text = edge(&format!("{name}-{file}"), &self.text());
        let path = format!("{within}/{file}.yaml");
        self.folder.write(&path, &text);
        self.declared.insert(path, text);
    }

    fn any_declared(&mut self) -> Option<String> {
        let paths: Vec<String> = self.declared.keys().cloned().collect();
        paths.choose(&mut self.random).cloned()
    }

    /// Commits what the work tree has. While the repository is away, nobody can.
    fn commit(&mut self) {
        if !self.is_out {
            git(&self.folder, "-C repo add -A");
            git(&self.folder, "-C repo commit -q --allow-empty -m change");
        }
    }

    fn event(&mut self) {
        let kind = match self.random.random_range(0..100) {
            0..22 => self.edit(),
            22..32 => self.remove_or_add(),
            32..42 => self.break_manifest(),
            42..52 => self.mend(),
            52..64 => self.write_unowned(),
            64..76 => self.write_owned(),
            76..80 => self.turn_repository(),
            80..87 => self.roll_back(),
            87..96 => self.suspend_or_resume(),
            _ => self.restart(),
        };
        *self.counts.entry(kind).or_default() += 1;
    }

    fn edit(&mut self) -> &'static str {
        let (source, file) = (self.random.random_range(0..SOURCES.len()), self.random.random_range(0..FILES));
        self.declare(source, file);
        self.commit();
        "edit"
    }

    fn remove_or_add(&mut self) -> &'static str {
        // A source without manifests is an error, not a deletion.
        let removable: Vec<String> = self.declared.keys().filter(|path| !path.ends_with("/0.yaml")).cloned().collect();
        match removable.choose(&mut self.random).cloned() {
            Some(path) if self.random.random_bool(0.5) => {
                self.declared.remove(&path);
                let _ = fs::remove_file(self.folder.path(&path));
                self.commit();
                "removal"
            }
            _ => self.edit(),
        }
    }

    fn break_manifest(&mut self) -> &'static str {
        if let Some(path) = self.any_declared() {
            let text = self.declared[&path].clone();
            let broken = match self.random.random_range(0..3) {
                0 => text.replace("hostports", "hostprots"),
                1 => text[..text.len() / 2].to_owned(),
                _ => format!("{text}\n  - [\n"),
            };
            self.folder.write(&path, &broken);
            self.commit();
        }
        "broken manifest"
    }

    fn mend(&mut self) -> &'static str {
        for (path, text) in &self.declared {
            self.folder.write(path, text);
        }
        self.commit();
        "mend"
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.server().call(method, path, &body.to_string());
        assert!(answer.status < 500, "{method} {path} {body}: {} {}", answer.status, answer.body);
        (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
    }

    fn write_unowned(&mut self) -> &'static str {
        let description = self.text();
        if self.unowned.len() < 5 {
            let (status, created) =
                self.call("POST", "/ip_restrictions", &json!({"type": "api", "description": description}));
            assert_eq!(status, 201, "{created}");
            let path = format!("/ip_restrictions/{}", created["id"].as_str().unwrap());
            self.unowned.push(path.clone());
            self.acknowledged.push((path, description));
        } else if let Some(path) = self.unowned.choose(&mut self.random).cloned() {
            let (status, patched) = self.call("PATCH", &path, &json!({"description": description}));
            assert_eq!(status, 200, "{patched}");
            self.acknowledged.push((path, description));
        }
        "write beside the sources"
    }

    /// Somebody changes what a source owns.
    fn write_owned(&mut self) -> &'static str {
        let edges = self.server().get("/edges/https").json();
        let edges: Vec<Value> = edges["https_edges"].as_array().unwrap().clone();
        if let Some(edge) = edges.choose(&mut self.random) {
            let path = format!("/edges/https/{}", edge["id"].as_str().unwrap());
            let description = self.text();
            let (status, _) = if self.random.random_bool(0.2) {
                (self.call("DELETE", &path, &Value::Null).0, Value::Null)
            } else {
                self.call("PATCH", &path, &json!({"description": description}))
            };
            // A sync may have deleted it meanwhile.
            assert!([200, 204, 404].contains(&status), "{status}");
            if status == 200 {
                self.acknowledged.push((path, description));
            }
        }
        "write over a source"
    }

    fn turn_repository(&mut self) -> &'static str {
        let (from, to) = if self.is_out { ("away", "repo/.git") } else { ("repo/.git", "away") };
        fs::rename(self.folder.path(from), self.folder.path(to)).unwrap();
        self.is_out = !self.is_out;
        "outage or its end"
    }

    fn roll_back(&mut self) -> &'static str {
        let newest = self.server().get("/history?limit=1").json()["history"][0]["revision"].as_u64();
        let newest = newest.unwrap_or(2).max(2);
        let source = SOURCES.choose(&mut self.random).unwrap().0;
        let to = self.random.random_range(newest.saturating_sub(20).max(1)..newest);
        let (status, rolled) = self.call("POST", "/rollbacks", &json!({"to": to, "source": source}));
        if status == 201 {
            self.rollbacks.push(rolled["applied"].as_u64().unwrap_or_else(|| panic!("{rolled}")));
        }
        "rollback"
    }

    fn suspend_or_resume(&mut self) -> &'static str {
        let source = SOURCES.choose(&mut self.random).unwrap().0;
        let suspend = self.random.random_bool(0.4);
        let (verb, body) = if suspend { ("suspend", json!({"reason": "a fix"})) } else { ("resume", Value::Null) };
        let body = if suspend { body.to_string() } else { String::new() };
        let answer = self.server().call("POST", &format!("/sources/{source}/{verb}"), &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        "suspension or its end"
    }

    fn restart(&mut self) -> &'static str {
        // A source that was never applied is not ready without its repository.
        if self.is_out {
            self.turn_repository();
        }
        *self.address.lock().unwrap() = None;
        let serve = self.serve.take().unwrap();
        let name = if self.random.random_bool(0.6) {
            // Dropping it kills it.
            drop(serve);
            "kill"
        } else {
            let run = serve.stop();
            assert_eq!(run.code, 0, "{}", run.all());
            "restart"
        };
        self.serve();
        name
    }

    /// Ends every disturbance, and waits until the sources are as their manifests say.
    fn settle(&mut self) {
        if self.is_out {
            self.turn_repository();
        }
        for (source, _) in SOURCES {
            let answer = self.server().call("POST", &format!("/sources/{source}/resume"), "");
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        // What a rollback undid is not applied again before there is something new.
        for source in 0..SOURCES.len() {
            self.declare(source, 0);
        }
        self.mend();
        let expected: BTreeSet<String> = self.declared.values().map(|text| description_in(text).to_owned()).collect();
        within(LONG, "the sources to be as their manifests say", || {
            let edges = self.server().get("/edges/https?limit=100").json();
            let edges = edges["https_edges"].as_array().unwrap().iter();
            let shown: BTreeSet<String> = edges.map(|edge| edge["description"].as_str().unwrap().to_owned()).collect();
            let states = self.server().get("/sources").json();
            let states = states["sources"].as_array().unwrap().iter();
            let are_synced = states.map(|source| source["state"].as_str()).all(|state| state == Some("Synced"));
            (shown == expected && are_synced).then_some(())
        });
    }

    /// Holds the history to what was acknowledged.
    fn judge(mut self, mut acknowledged: Vec<Acknowledged>) {
        within(LONG, "all changes to be notified", || {
            let lag = self.server().metric("edgewright_notification_lag_revisions{target=\"log\"}");
            (lag == Some(0.0)).then_some(())
        });
        let run = self.serve.take().unwrap().stop();
        assert_eq!(run.code, 0, "{}", run.all());
        for (source, within) in SOURCES {
            let plan = self.folder.ok(&format!("plan {within} --source {source} --max-deletes 100%"));
            assert!(plan.out.starts_with("No changes: "), "{source}: {}", plan.out);
        }
        self.folder.ok("history verify");

        let aside = Folder::new();
        copy(&self.folder.path("store"), &aside.path("store"));
        let store = Store::open(aside.path("store")).unwrap();
        let newest = store.snapshot().revision;
        let records = store.history(&Query::All, u64::MAX, usize::MAX).unwrap();
        let applied: Vec<_> = records.iter().filter(|record| record.outcome == Outcome::Applied).collect();
        let revisions: Vec<u64> = applied.iter().filter_map(|record| record.revision).collect();
        let all: Vec<u64> = (1..=newest).rev().collect();
        assert_eq!(revisions, all, "each revision has one record, in order");

        let mut written: BTreeMap<Acknowledged, usize> = BTreeMap::new();
        for record in applied.iter().filter(|record| matches!(record.author, Author::Api { .. })) {
            for resource in &record.resources {
                let text = resource.after.as_ref().and_then(|after| after["description"].as_str());
                if let Some(text) = text {
                    *written.entry((resource.path.clone(), text.to_owned())).or_default() += 1;
                }
            }
        }
        acknowledged.append(&mut self.acknowledged);
        for write in &acknowledged {
            assert_eq!(written.get(write), Some(&1), "{write:?} is in the history once");
        }
        for revision in &self.rollbacks {
            let record = applied.iter().find(|record| record.revision == Some(*revision));
            let author = record.map(|record| &record.author);
            assert!(matches!(author, Some(Author::Rollback { .. })), "revision {revision}: {author:?}");
        }
        let mut told = BTreeSet::new();
        for line in self.folder.read("changes.jsonl").lines() {
            let told_of: Value = serde_json::from_str(line).unwrap();
            told.extend(told_of["data"]["revision"].as_u64());
        }
        // A revision can also record only that a source is in sync after a rollback.
        let changing = applied.iter().filter(|record| !record.resources.is_empty());
        let silent: Vec<u64> =
            changing.filter_map(|record| record.revision).filter(|revision| !told.contains(revision)).collect();
        assert_eq!(silent, Vec::<u64>::new(), "each revision with a change was notified");
    }
}

fn description_in(text: &str) -> &str {
    text.lines().find_map(|line| line.trim().strip_prefix("description: ")).unwrap()
}

/// Somebody who writes all the time, also at the moment of a kill.
fn writer(address: Address, is_over: Arc<AtomicBool>) -> JoinHandle<Vec<Acknowledged>> {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).max_idle_connections(0);
    let agent: ureq::Agent = config.timeout_global(Some(Duration::from_secs(20))).build().into();
    let send = move |method: &str, url: String, token: &str, body: Value| {
        let request = ureq::http::Request::builder().method(method).uri(url);
        let request = request.header("Authorization", format!("Bearer {token}")).header("Service-Version", "2");
        let request = request.header("Content-Type", "application/json").body(body.to_string()).unwrap();
        let answer = agent.run(request).ok()?;
        let is_done = answer.status().is_success();
        let answer: Value = serde_json::from_str(&answer.into_body().read_to_string().ok()?).ok()?;
        is_done.then_some(answer)
    };
    std::thread::spawn(move || {
        let (mut path, mut acknowledged) = (None::<String>, Vec::new());
        for number in 0.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            let Some((address, token)) = address.lock().unwrap().clone() else { continue };
            let description = format!("written-{number}");
            let (method, at) = path.as_deref().map_or(("POST", "/ip_restrictions"), |path| ("PATCH", path));
            let body = json!({"type": "api", "description": description});
            if let Some(answer) = send(method, format!("http://{address}{at}"), &token, body) {
                let written = format!("/ip_restrictions/{}", answer["id"].as_str().unwrap());
                acknowledged.push((written.clone(), description));
                path = Some(written);
            }
        }
        acknowledged
    })
}

#[test]
fn random_events_end_as_the_manifests_say_and_nothing_is_lost() {
    let seed = number_in("EDGEWRIGHT_SIMULATION_SEED", 1);
    println!("EDGEWRIGHT_SIMULATION_SEED={seed}");
    let mut simulation = Simulation::start(seed);
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = writer(Arc::clone(&simulation.address), Arc::clone(&is_over));
    for _ in 0..rounds(120, 1000) {
        simulation.event();
        std::thread::sleep(Duration::from_millis(simulation.random.random_range(0..20)));
    }
    println!("{:?}", simulation.counts);
    simulation.settle();
    is_over.store(true, Ordering::Relaxed);
    let acknowledged = writer.join().unwrap();
    println!("{} writes by a second client", acknowledged.len());
    assert!(!acknowledged.is_empty());
    simulation.judge(acknowledged);
}
