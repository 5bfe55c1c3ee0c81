//! Several clients at once on a few registers: modules of routes, which are put, deleted and compared by their ETags, and
//! an event type, which is added once. Each register must be linearizable, and each list must be of one revision.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use super::{
    client::{Client, Request},
    linearizability::{Call, Operation, is_linearizable},
    state::{routes_of, sources_of},
};
use crate::support::{program::Folder, server::BASE_URL};

const CLIENTS: u64 = 4;
const CALLS: usize = 30;
const ROUTES: usize = 3;
/// The value of the register that only is there or not.
const THERE: &str = "there";

/// A register: the path of what is read and written, and where it is created if that is another one.
#[derive(Clone)]
struct Register {
    path: String,
    list: Option<String>,
}

/// What all clients share.
struct Scene {
    client: Client,
    registers: Vec<Register>,
    /// The list of the routes.
    routes: String,
    clock: AtomicU64,
    /// The register and the value of each ETag.
    etags: Mutex<BTreeMap<(usize, String), String>>,
}

/// The values of the routes in a list, and when a client asked for it.
struct Listed {
    from: u64,
    to: u64,
    values: Vec<Option<String>>,
}

/// What one client saw.
#[derive(Default)]
struct Seen {
    calls: Vec<(usize, Call)>,
    lists: Vec<Listed>,
}

impl Scene {
    fn new(client: &Client, round: u64) -> Self {
        let create = |path: &str, body: Value| {
            let reply = client.send(&Request::new("POST", path).with(body));
            assert_eq!(reply.status, 201, "{}", reply.json);
            reply.json["id"].as_str().unwrap().to_owned()
        };
        let routes = routes_of(&create("/edges/https", json!({})));
        let mut registers = Vec::new();
        for number in 0..ROUTES {
            let route = create(&routes, json!({"match_type": "exact_path", "match": format!("/{number}")}));
            registers.push(Register { path: format!("{routes}/{route}/oidc"), list: None });
        }
        let list = sources_of(&format!("esb_{round}"));
        registers.push(Register { path: format!("{list}/a.v0"), list: Some(list) });
        let clock = AtomicU64::new(0);
        Self { client: client.clone(), registers, routes, clock, etags: Mutex::default() }
    }

    /// A moment that no other has. What is asked for after an answer has a later one.
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// One client's random calls.
    fn play(&self, seed: u64) -> Seen {
        let (mut random, mut seen) = (StdRng::seed_from_u64(seed), Seen::default());
        for number in 0..CALLS {
            if random.random_bool(0.15) {
                let from = self.now();
                let values = self.values("");
                seen.lists.push(Listed { from, to: self.now(), values });
                continue;
            }
            let at = random.random_range(0..self.registers.len());
            let call = self.call(&mut random, at, format!("{seed}-{number}"));
            seen.calls.push((at, call));
        }
        seen
    }

    /// A random call of a register; `new` is the value of a write.
    fn call(&self, random: &mut StdRng, at: usize, new: String) -> Call {
        let Register { path, list } = &self.registers[at];
        let known: Vec<(String, String)> = {
            let etags = self.etags.lock().unwrap();
            etags
                .iter()
                .filter(|((of, _), _)| *of == at)
                .map(|((_, etag), value)| (etag.clone(), value.clone()))
                .collect()
        };
        let condition = if !known.is_empty() && random.random_bool(0.5) {
            known.get(random.random_range(0..known.len())).cloned()
        } else {
            None
        };
        let (operation, request) = match (random.random_range(0..8), list) {
            (0..2, _) => (Operation::Get, Request::new("GET", path)),
            (2..6, Some(list)) => {
                let request = Request::new("POST", list).with(json!({"type": "a.v0"}));
                (Operation::Create(THERE.to_owned()), request)
            }
            (2..6, None) => {
                let request = Request::new("PUT", path).with(json!({"client_id": new}));
                (Operation::Put(new), request)
            }
            _ => (Operation::Delete, Request::new("DELETE", path)),
        };
        let is_conditional = matches!(operation, Operation::Put(_) | Operation::Delete);
        let (etag, condition) = condition.filter(|_| is_conditional).unzip();
        let request = request.if_match(etag);
        let from = self.now();
        let reply = self.client.send(&request);
        let to = self.now();
        assert!(reply.status < 500, "{request}: {} {}", reply.status, reply.json);
        let has_body = reply.is_success() && reply.status != 204;
        let value = has_body.then(|| reply.json["client_id"].as_str().unwrap_or(THERE).to_owned());
        if let (Some(value), Some(etag)) = (&value, reply.etag) {
            self.etags.lock().unwrap().insert((at, etag), value.clone());
        }
        Call { from, to, operation, condition, status: reply.status, value }
    }

    /// The values of the routes, oldest first.
    fn values(&self, query: &str) -> Vec<Option<String>> {
        let reply = self.client.send(&Request::new("GET", format!("{}{query}", self.routes)));
        assert_eq!(reply.status, 200, "{}", reply.json);
        let routes = reply.json["routes"].as_array().unwrap().iter().rev();
        routes.map(|route| route["oidc"]["client_id"].as_str().map(str::to_owned)).collect()
    }

    /// The newest revision.
    fn revision(&self) -> u64 {
        let page = self.client.send(&Request::new("GET", "/history?limit=1000")).json;
        let records = page["history"].as_array().unwrap();
        records.iter().find_map(|record| record["revision"].as_u64()).unwrap()
    }

    /// Holds what the clients saw to the specification.
    fn judge(&self, first: u64, seen: &[Seen]) {
        let calls: Vec<&(usize, Call)> = seen.iter().flat_map(|seen| &seen.calls).collect();
        for (at, register) in self.registers.iter().enumerate() {
            let of_it = calls.iter().filter(|(of, _)| *of == at).map(|(_, call)| call.clone());
            let mut of_it: Vec<Call> = of_it.collect();
            of_it.sort_by_key(|call| call.from);
            assert!(is_linearizable(&of_it), "no order explains what happened at {}: {of_it:#?}", register.path);
        }

        let last = self.revision();
        let is_write = |call: &Call| !matches!(call.operation, Operation::Get) && matches!(call.status, 200..300);
        let acknowledged = calls.iter().filter(|(_, call)| is_write(call)).count();
        assert_eq!(last - first, acknowledged as u64, "each acknowledged write is one revision");

        // The states of all revisions, and where each value of a route was written.
        let states: BTreeMap<u64, _> =
            (first..=last).map(|revision| (revision, self.values(&format!("?at={revision}")))).collect();
        let written = |at: usize, value: &str| {
            states.iter().find(|(_, state)| state[at].as_deref() == Some(value)).map(|(revision, _)| *revision)
        };
        let mut puts = Vec::new();
        for (at, call) in &calls {
            if let (Operation::Put(value), 200) = (&call.operation, call.status) {
                let revision = written(*at, value).unwrap_or_else(|| panic!("{value} is in no revision"));
                puts.push((call.to, revision));
            }
        }
        for seen in seen {
            let mut oldest = first;
            for list in &seen.lists {
                let known = puts.iter().filter(|(to, _)| *to < list.from).map(|(_, revision)| *revision).max();
                oldest = oldest.max(known.unwrap_or(first));
                let found = states.range(oldest..).find(|(_, state)| **state == list.values);
                let Some((revision, _)) = found else {
                    panic!("no revision from {oldest} on has the list {:?} ({}..{})", list.values, list.from, list.to)
                };
                oldest = *revision;
            }
        }
    }
}

/// Plays some rounds on one server, and returns the number of calls.
pub(super) fn play(seed: u64, rounds: u64) -> usize {
    let folder = Folder::new();
    let serve = folder.serve(&format!("--base-url {BASE_URL}"));
    let client = Client::new(&serve.address, &serve.token);
    let mut count = 0;
    for round in 0..rounds {
        let scene = Arc::new(Scene::new(&client, round));
        let first = scene.revision();
        let threads: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let scene = Arc::clone(&scene);
                let seed = seed.wrapping_add((round * CLIENTS + number).wrapping_mul(1 << 20));
                std::thread::spawn(move || scene.play(seed))
            })
            .collect();
        let seen: Vec<Seen> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        scene.judge(first, &seen);
        count += seen.iter().map(|seen| seen.calls.len() + seen.lists.len()).sum::<usize>();
    }
    count
}
