//! Faults of several servers on one database, under clients that write and read through all of them: servers are killed, stopped
//! for longer than their lease, and ended; the database is killed, answers nothing, cuts connections, and has a full disk; clocks
//! differ.
//!
//! `EDGEWRIGHT_REPLICA_FAULTS` sets the number of rounds.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{
    check::check_history,
    load::{Text, Written},
};
use crate::support::{
    postgres::{FullDisk, Postgres},
    program::{Folder, Serve, number_in, rounds, within},
};

const REPLICAS: usize = 3;
const CLIENTS: usize = 6;
/// After so many rounds, a new database is used.
const ROUNDS_OF_A_DATABASE: u64 = 15;
/// How long a client waits for an answer: longer than a server waits until it has what it has forwarded.
const ANSWER: Duration = Duration::from_secs(4);
/// How long all servers take until they write again, on a busy machine.
const RECOVERY: Duration = Duration::from_secs(60);

/// What happens in a round.
#[derive(Debug, Clone, Copy)]
enum Fault {
    KillServer,
    EndServer,
    /// Stops a server for so many milliseconds: longer than its lease, or not.
    StopServer(u64),
    /// Kills the database, and starts it again after so many milliseconds.
    KillDatabase(u64),
    /// The database answers nothing for so many milliseconds.
    FreezeDatabase(u64),
    CutConnections,
    /// The disk of the database is full: its tables do not grow. It ends if its log cannot grow either.
    FillDisk {
        ends: bool,
    },
}

impl Fault {
    fn random(random: &mut StdRng) -> Self {
        match random.random_range(0..10) {
            0..3 => Fault::KillServer,
            3 => Fault::EndServer,
            4..6 => Fault::StopServer(*[200, 2500, 9000].choose(random).unwrap()),
            6 => Fault::KillDatabase(random.random_range(0..1500)),
            7 => Fault::FreezeDatabase(random.random_range(100..2500)),
            _ => Fault::CutConnections,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Fault::KillServer => "server killed",
            Fault::EndServer => "server ended",
            Fault::StopServer(_) => "server stopped",
            Fault::KillDatabase(_) => "database killed",
            Fault::FreezeDatabase(_) => "database frozen",
            Fault::CutConnections => "connections cut",
            Fault::FillDisk { ends: false } => "disk full",
            Fault::FillDisk { ends: true } => "disk of the log full",
        }
    }
}

/// Servers on one database.
struct Cluster {
    database: String,
    replicas: Vec<Replica>,
    /// The token of the admin.
    token: String,
}

struct Replica {
    folder: Folder,
    address: String,
    options: String,
    /// How far its clock is off, in seconds.
    clock: i64,
    serve: Option<Serve>,
}

impl Replica {
    /// Starts the server, if it does not run. The database must answer.
    fn start(&mut self) {
        if self.serve.as_mut().is_some_and(|serve| !serve.has_ended()) {
            return;
        }
        let clock = format!("clock=return({})", self.clock);
        let started = self.folder.try_serve_at(&self.address, &self.options, &[("FAILPOINTS", &clock)]);
        self.serve = Some(started.unwrap_or_else(|run| panic!("a server does not start:\n{}", run.all())));
    }

    fn signal(&mut self, name: &str) {
        self.serve.as_mut().unwrap().signal_if_running(name);
    }
}

impl Cluster {
    fn start(postgres: &Postgres, random: &mut StdRng) -> Self {
        let database = postgres.database();
        let store = postgres.options(&database);
        let replica = |_| {
            // The kernel gives a port again only after all others.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            let options = format!(
                "{store} --base-url http://gateway.test --security-log security.log --advertise-url http://{address}"
            );
            let clock = random.random_range(-25..25);
            let mut replica = Replica { folder: Folder::new(), address, options, clock, serve: None };
            replica.start();
            replica
        };
        let replicas: Vec<Replica> = (0..REPLICAS).map(replica).collect();
        let token = replicas[0].serve.as_ref().unwrap().token.clone();
        Self { database, replicas, token }
    }

    /// Does something to the servers or the database, and undoes it. Returns the texts of what it has created meanwhile.
    fn suffer(&mut self, fault: Fault, postgres: &Postgres, random: &mut StdRng) -> Vec<Text> {
        let pause = |milliseconds| std::thread::sleep(Duration::from_millis(milliseconds));
        let mut created = Vec::new();
        let number = random.random_range(0..REPLICAS);
        let replica = &mut self.replicas[number];
        match fault {
            Fault::KillServer => {
                replica.signal("KILL");
                // Otherwise it may still seem to run when it is started again.
                replica.serve.as_mut().unwrap().ended();
                pause(random.random_range(0..4000));
            }
            Fault::EndServer => {
                replica.signal("TERM");
                replica.serve.as_mut().unwrap().ended();
            }
            Fault::StopServer(time) => {
                replica.signal("STOP");
                pause(time);
                replica.signal("CONT");
            }
            Fault::KillDatabase(time) => {
                postgres.kill();
                pause(time);
                postgres.run();
            }
            Fault::FreezeDatabase(time) => {
                let frozen = postgres.freeze();
                pause(time);
                drop(frozen);
            }
            Fault::CutConnections => {
                let sql = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = '{}' AND pid <> pg_backend_pid() AND random() < 0.5",
                    self.database
                );
                for _ in 0..5 {
                    postgres.psql("postgres", &sql).unwrap();
                    pause(random.random_range(0..300));
                }
            }
            Fault::FillDisk { ends } => {
                let mut full = postgres.fill_disk();
                if ends {
                    // The next segment of the log needs room.
                    let next = "SELECT pg_switch_wal(), txid_current()";
                    within(RECOVERY, "the end of PostgreSQL", || postgres.psql("postgres", next).err());
                }
                for at in 0..REPLICAS {
                    created.extend(self.create_until_refused(at, &mut full, random));
                }
                drop(full);
                postgres.wait_until_it_answers();
            }
        }
        for replica in &mut self.replicas {
            replica.start();
        }
        created
    }

    /// Creates resources through a server until it says that the database is away, and returns their texts.
    fn create_until_refused(&self, at: usize, full: &mut FullDisk, random: &mut StdRng) -> Vec<Text> {
        let (mut client, mut created) = (self.client(), Vec::new());
        within(RECOVERY, "a refusal", || {
            full.fill();
            let text = format!("full-{}-{}", random.random::<u64>(), "x".repeat(180));
            let body = json!({"type": "api", "description": text}).to_string();
            let status = client.send(at, "POST", "/ip_restrictions", "", &body).map(|(status, ..)| status);
            created.push(Text { text, is_acknowledged: status == Some(201) });
            match status {
                Some(503) => Some(()),
                // If the database ended during a commit, nobody knows whether it counts.
                Some(201 | 500) | None => None,
                Some(_) => panic!("{}", client.last),
            }
        });
        created
    }

    fn client(&self) -> Client {
        let addresses = self.replicas.iter().map(|replica| replica.address.clone()).collect();
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.timeout_global(Some(ANSWER)).build().into();
        Client { addresses, token: self.token.clone(), agent, revision: 0, last: String::new() }
    }

    /// Waits until a write through each of the servers succeeds, and is read at once at all of them.
    fn recover(&self, path: &str, texts: &mut Vec<Text>) -> Result<(), String> {
        for at in 0..REPLICAS {
            let (mut client, began) = (self.client(), Instant::now());
            while !client.recovers(at, path, texts) {
                if began.elapsed() > RECOVERY {
                    return Err(format!("server {at} does not write: {}\n{}", client.last, self.said()));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            for other in 0..REPLICAS {
                let read = within(RECOVERY, "a read", || client.read_at(other, path));
                if Some(&read.text) != texts.last().map(|it| &it.text) {
                    return Err(format!("server {other} has {:?} after {:?}", read.text, texts.last()));
                }
            }
        }
        Ok(())
    }

    /// What the servers have said last, for messages.
    fn said(&self) -> String {
        let said = self.replicas.iter().filter_map(|replica| Some((&replica.address, replica.serve.as_ref()?.said())));
        let lines = |said: String| {
            said.lines().filter(|line| !line.contains("edgewright::access")).collect::<Vec<_>>().join("\n")
        };
        said.map(|(address, said)| format!("--- {address}\n{}\n", lines(said))).collect()
    }
}

/// A client that sends each request to any of the servers, and never wants to see less than it has seen.
struct Client {
    addresses: Vec<String>,
    token: String,
    agent: ureq::Agent,
    /// The newest revision that it knows.
    revision: u64,
    /// The last answer, for messages.
    last: String,
}

/// A resource as it was read.
struct Read {
    tag: String,
    text: String,
}

impl Client {
    fn send(&mut self, at: usize, method: &str, path: &str, tag: &str, body: &str) -> Option<(u16, String, Value)> {
        let request = ureq::http::Request::builder().method(method).uri(format!("http://{}{path}", self.addresses[at]));
        let request = request.header("Authorization", format!("Bearer {}", self.token)).header("Service-Version", "2");
        let request = request.header("If-Revision-At-Least", self.revision.to_string());
        let request = if tag.is_empty() { request } else { request.header("If-Match", tag) };
        let request = request.header("Content-Type", "application/json").body(body.to_owned()).unwrap();
        let answer = self.agent.run(request).inspect_err(|error| self.last = error.to_string()).ok()?;
        let status = answer.status().as_u16();
        let header = |name| answer.headers().get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
        let (tag, revision) = (header("etag"), header("edgewright-revision").parse().unwrap_or_default());
        let body = answer.into_body().read_to_string().ok()?;
        self.last = format!("{status} {body}");
        let body = serde_json::from_str(&body).ok()?;
        if status < 300 {
            self.revision = self.revision.max(revision);
        }
        Some((status, tag, body))
    }

    fn read_at(&mut self, at: usize, path: &str) -> Option<Read> {
        let (status, tag, body) = self.send(at, "GET", path, "", "")?;
        (status == 200).then(|| Read { tag, text: body["description"].as_str().unwrap().to_owned() })
    }

    /// Replaces a text that is still the one that was read, so that a write which arrives late does nothing.
    fn write_at(&mut self, at: usize, path: &str, tag: &str, text: &str) -> Option<(u16, Value)> {
        let (status, _, body) = self.send(at, "PATCH", path, tag, &json!({"description": text}).to_string())?;
        Some((status, body))
    }

    /// Tries to write through a server.
    fn recovers(&mut self, at: usize, path: &str, texts: &mut Vec<Text>) -> bool {
        let Some(read) = self.read_at(at, path) else { return false };
        let text = format!("recovery-{}", texts.len());
        let is_acknowledged = matches!(self.write_at(at, path, &read.tag, &text), Some((200, _)));
        texts.push(Text { text, is_acknowledged });
        is_acknowledged
    }

    /// Reads and writes a resource that nobody else writes, until it is over.
    /// Also creates resources, which nothing keeps from being created twice. Returns the texts of both.
    fn run(
        mut self,
        path: &str,
        start: Vec<Text>,
        is_over: &AtomicBool,
        seed: u64,
    ) -> Result<(Vec<Text>, Vec<Text>), String> {
        let (mut random, mut texts, mut created) = (StdRng::seed_from_u64(seed), start, Vec::new());
        let last = texts.iter().rposition(|text| text.is_acknowledged).unwrap_or_default();
        let mut seen = last;
        while !is_over.load(Ordering::Relaxed) {
            let any = |random: &mut StdRng| random.random_range(0..REPLICAS);
            let Some(read) = self.read_at(any(&mut random), path) else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let found = texts.iter().position(|text| text.text == read.text);
            let found = found.ok_or_else(|| format!("nobody has written {:?} to {path}", read.text))?;
            if found < seen {
                return Err(format!("{path} had {:?}, and has {:?}", texts[seen], texts[found]));
            }
            seen = found;
            let text = format!("text-{}-{}", texts.len(), random.random_range(0..1_000_000));
            let written = self.write_at(any(&mut random), path, &read.tag, &text);
            let is_acknowledged = matches!(written, Some((200, _)));
            if is_acknowledged {
                seen = texts.len();
            }
            texts.push(Text { text, is_acknowledged });
            if random.random_bool(0.2) {
                let text = format!("created-{seed}-{}", created.len());
                let body = json!({"type": "api", "description": text}).to_string();
                let answer = self.send(any(&mut random), "POST", "/ip_restrictions", "", &body);
                created.push(Text { text, is_acknowledged: matches!(answer, Some((201, ..))) });
            }
        }
        Ok((texts, created))
    }
}

#[test]
fn nothing_is_lost_doubled_or_read_back_in_time_through_several_servers() {
    let Some(postgres) = Postgres::start() else { return };
    let rounds = number_in("EDGEWRIGHT_REPLICA_FAULTS", rounds(2, 30));
    endure(&postgres, rounds, |_, random| Fault::random(random));
}

#[test]
fn a_full_disk_of_the_database_loses_nothing_and_stops_writes_only_until_there_is_room() {
    let Some(postgres) = Postgres::start_on_small_disk() else { return };
    endure(&postgres, rounds(2, 6), |round, _| Fault::FillDisk { ends: round % 2 == 1 });
}

/// Has servers on a database suffer a fault in each round while clients write, and checks what they have after it.
fn endure(postgres: &Postgres, rounds: u64, choose: impl Fn(u64, &mut StdRng) -> Fault) {
    let seed = number_in("EDGEWRIGHT_FAULTS_SEED", 1);
    println!("EDGEWRIGHT_FAULTS_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (mut happened, mut acknowledged) = (BTreeMap::<&str, usize>::new(), 0);
    let mut cluster = Cluster::start(postgres, &mut random);
    let (mut written, mut created) = (Written::default(), Vec::new());
    for round in 0..rounds {
        if round > 0 && round % ROUNDS_OF_A_DATABASE == 0 {
            acknowledged += count(&written, &created);
            (written, created) = (Written::default(), Vec::new());
            drop(cluster);
            cluster = Cluster::start(postgres, &mut random);
        }
        if written.is_empty() {
            let mut client = cluster.client();
            for number in 0..CLIENTS {
                let text = format!("created-{number}");
                let body = json!({"type": "api", "description": text}).to_string();
                let (status, _, created) =
                    client.send(number % REPLICAS, "POST", "/ip_restrictions", "", &body).unwrap();
                assert_eq!(status, 201, "{created}");
                let path = format!("/ip_restrictions/{}", created["id"].as_str().unwrap());
                written.insert(path, vec![Text { text, is_acknowledged: true }]);
            }
        }
        let fault = choose(round, &mut random);
        *happened.entry(fault.name()).or_default() += 1;
        let is_over = Arc::new(AtomicBool::new(false));
        let clients = std::mem::take(&mut written).into_iter().map(|(path, texts)| {
            let (client, is_over, seed) = (cluster.client(), Arc::clone(&is_over), random.random());
            std::thread::spawn(move || client.run(&path, texts, &is_over, seed).map(|ran| (path, ran)))
        });
        let clients: Vec<_> = clients.collect();
        std::thread::sleep(Duration::from_millis(random.random_range(50..400)));
        created.extend(cluster.suffer(fault, postgres, &mut random));
        std::thread::sleep(Duration::from_millis(random.random_range(0..3000)));
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            let ran = client.join().unwrap();
            let (path, (texts, new)) =
                ran.unwrap_or_else(|error| panic!("seed {seed}, round {round}, {fault:?}: {error}"));
            written.insert(path, texts);
            created.extend(new);
        }
        let (path, mut texts) = written.pop_first().unwrap();
        let recovered = cluster.recover(&path, &mut texts);
        assert!(recovered.is_ok(), "seed {seed}, round {round}, {fault:?}: {}", recovered.unwrap_err());
        written.insert(path, texts);
        let store = postgres.open_to_read(&cluster.database).unwrap();
        let found = check_history(&store, &written, &created);
        assert!(found.is_ok(), "seed {seed}, round {round}, {fault:?}: {}", found.unwrap_err());
    }
    acknowledged += count(&written, &created);
    println!("faults of several servers: {rounds} rounds, {acknowledged} acknowledged writes, 0 lost, seed {seed}");
    println!("{happened:?}");
}

fn count(written: &Written, created: &[Text]) -> usize {
    written.values().flatten().chain(created).filter(|text| text.is_acknowledged).count()
}
