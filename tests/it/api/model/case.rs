//! A server and what the model believes about it. A step is a number: what it does follows from the number and from what
//! there is, so that a case without some of its steps is a case, too.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use super::{
    bodies,
    client::{Client, Difference, Expected, Reply, Request, same},
    specification::kind,
    state::{Resource, State, routes_of, sources_of},
};
use crate::support::{
    program::{Folder, Serve},
    server::BASE_URL,
};

/// What a case did.
#[derive(Default)]
pub(super) struct Counts {
    pub calls: usize,
    pub reconciles: usize,
    pub restarts: usize,
}

/// The state after a revision, and the call that made it.
pub(super) struct Revision {
    pub call: String,
    pub state: State,
}

pub(super) struct Case {
    folder: Folder,
    serve: Option<Serve>,
    pub client: Client,
    pub random: StdRng,
    pub state: State,
    /// Each revision by its number.
    pub revisions: BTreeMap<u64, Revision>,
    /// The IDs of deleted resources, by list.
    pub gone: BTreeMap<String, Vec<String>>,
    /// The ETags of all bodies that were seen at a path.
    etags: BTreeMap<String, Vec<(Value, String)>>,
    /// What the server derives from the PEM of an authority.
    pub derived: BTreeMap<String, Value>,
    pub counts: Counts,
}

impl Case {
    pub(super) fn start() -> Self {
        let folder = Folder::new();
        let serve = folder.serve(&format!("--base-url {BASE_URL}"));
        let client = Client::new(&serve.address, &serve.token);
        let mut case = Self {
            folder,
            serve: Some(serve),
            client,
            random: StdRng::seed_from_u64(0),
            state: State::default(),
            revisions: BTreeMap::new(),
            gone: BTreeMap::new(),
            etags: BTreeMap::new(),
            derived: BTreeMap::new(),
            counts: Counts::default(),
        };
        // The key of the first admin.
        let keys = case.client.send(&Request::new("GET", "/api_keys")).json["keys"].clone();
        for key in keys.as_array().into_iter().flatten() {
            case.add("/api_keys", key.clone(), None);
        }
        case.commit("the first key");
        case
    }

    pub(super) fn step(&mut self, step: u64) -> Result<(), Difference> {
        self.random = StdRng::seed_from_u64(step);
        match self.random.random_range(0..100) {
            0..26 => self.create(),
            26..38 => self.patch(),
            38..46 => self.delete(),
            46..62 => self.write_module(),
            62..74 => self.get(),
            74..82 => self.list(),
            82..88 => self.event_source(),
            88..98 => self.reconcile(),
            _ => {
                self.restart();
                Ok(())
            }
        }
    }

    /// Kills the server, and starts another one on its store.
    fn restart(&mut self) {
        // Dropping it kills it.
        drop(self.serve.take());
        let serve = self.folder.serve(&format!("--base-url {BASE_URL}"));
        self.client = Client::new(&serve.address, &serve.token);
        self.serve = Some(serve);
        self.counts.restarts += 1;
    }

    /// Sends a request, and holds the status and the faults of the answer to what is expected.
    pub(super) fn ask(&mut self, request: &Request, expected: &Expected) -> Result<Reply, Difference> {
        self.counts.calls += 1;
        let reply = self.client.send(request);
        if expected.fits(&reply) {
            return Ok(reply);
        }
        let found = format!("{} {}", reply.status, reply.json);
        Err(Difference { request: request.to_string(), expected: format!("{expected:?}"), found })
    }

    /// The same where nothing else is to be learned from the answer.
    pub(super) fn tell(&mut self, request: &Request, expected: &Expected) -> Result<(), Difference> {
        self.ask(request, expected).map(drop)
    }

    /// A write was acknowledged: there is one more revision.
    pub(super) fn commit(&mut self, call: impl Into<String>) {
        let revision = Revision { call: call.into(), state: self.state.clone() };
        let number = self.revision() + 1;
        self.revisions.insert(number, revision);
    }

    /// The newest revision.
    pub(super) fn revision(&self) -> u64 {
        self.revisions.keys().next_back().copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, list: &str, json: Value, declared: Option<(String, String)>) {
        let id = json["id"].as_str().or(json["type"].as_str()).unwrap_or_default().to_owned();
        if let Some(gone) = self.gone.get_mut(list) {
            gone.retain(|it| *it != id);
        }
        self.state.put(Resource { list: list.to_owned(), id, json, declared });
    }

    pub(super) fn remove(&mut self, list: &str, id: &str) {
        for removed in self.state.remove(list, id) {
            self.gone.entry(removed.list).or_default().push(removed.id);
        }
    }

    /// Adds a record that exists because something is configured under it (D34). Its time is learned.
    pub(super) fn add_implicit(&mut self, list: &str, id: &str, fields: Value) -> Result<(), Difference> {
        let path = format!("{list}/{id}");
        let request = Request::new("GET", &path);
        let reply = self.ask(&request, &Expected::Success(200))?;
        let mut json = fields;
        json["id"] = json!(id);
        json["uri"] = json!(format!("{BASE_URL}{path}"));
        json["created_at"] = reply.json["created_at"].clone();
        self.add(list, json, None);
        let shown = self.state.find(list, id).map(|it| self.state.shown(it)).unwrap_or_default();
        same(&request, &shown, &reply.json)
    }

    /// An ETag stands for one body of a path, and a body has one ETag (D25), also after a restart.
    pub(super) fn etag(
        &mut self,
        request: &Request,
        path: &str,
        body: &Value,
        reply: &Reply,
    ) -> Result<(), Difference> {
        let etag = reply.etag.clone().unwrap_or_default();
        let seen = self.etags.entry(path.to_owned()).or_default();
        let differs = seen.iter().find(|(known, of)| (known == body) != (*of == etag));
        if let Some((known, of)) = differs {
            let expected = format!("the ETag of {known} is {of}");
            return Err(Difference { request: request.to_string(), expected, found: format!("{etag} for {body}") });
        }
        if !seen.iter().any(|(known, _)| known == body) {
            seen.push((body.clone(), etag));
        }
        Ok(())
    }

    /// The ETag of a body, if it was seen.
    pub(super) fn known_etag(&self, path: &str, body: &Value) -> Option<String> {
        self.etags.get(path)?.iter().find(|(known, _)| known == body).map(|(_, etag)| etag.clone())
    }

    /// A value for `If-Match`, if any, and whether it holds for the current body.
    pub(super) fn condition(&mut self, path: &str, current: Option<&Value>) -> (Option<String>, bool) {
        let fitting = current.and_then(|body| self.known_etag(path, body));
        let past = self.etags.get(path).into_iter().flatten().map(|(_, etag)| etag.clone());
        let past: Vec<String> = past.filter(|etag| Some(etag) != fitting.as_ref()).collect();
        match self.random.random_range(0..100) {
            0..5 => (Some("*".to_owned()), current.is_some()),
            5..10 => (Some("\"other\"".to_owned()), false),
            10..20 if fitting.is_some() => (fitting, true),
            // Without the current ETag, nobody knows that a past one differs.
            20..30 if !past.is_empty() && (fitting.is_some() || current.is_none()) => {
                let at = self.random.random_range(0..past.len());
                (past.get(at).cloned(), false)
            }
            _ => (None, true),
        }
    }

    /// The path of a list that can be written.
    pub(super) fn writable_list(&mut self) -> String {
        let lists = ["/api_keys", "/ip_restrictions", "/certificate_authorities", "/edges/https", "routes", "routes"];
        match bodies::one(&mut self.random, &lists) {
            "routes" => routes_of(&self.id("/edges/https")),
            list => list.to_owned(),
        }
    }

    /// The path of any list.
    pub(super) fn any_list(&mut self) -> String {
        match self.random.random_range(0..8) {
            0 => "/edges/tls".to_owned(),
            1 => "/event_subscriptions".to_owned(),
            2 => sources_of("esb_1"),
            _ => self.writable_list(),
        }
    }

    /// An ID for a list: mostly of a resource that is there, sometimes of one that was, or of none.
    pub(super) fn id(&mut self, list: &str) -> String {
        let there: Vec<&str> = self.state.resources_of(list).map(|it| it.id.as_str()).collect();
        let gone = self.gone.get(list).map(Vec::as_slice).unwrap_or_default();
        bodies::id(&mut self.random, &there, gone, &format!("{}unknown", kind(list).prefix))
    }

    /// Holds the history to the revisions: each acknowledged write is there once, as the call that it was.
    pub(super) fn check_history(&mut self) -> Result<(), Difference> {
        let (mut found, mut path) = (Vec::new(), Some("/history?limit=100".to_owned()));
        while let Some(at) = path {
            let page = self.ask(&Request::new("GET", at), &Expected::Success(200))?.json;
            let records = page["history"].as_array().into_iter().flatten();
            found.extend(records.filter(|it| it["outcome"] == "applied").filter_map(|it| it["revision"].as_u64()));
            path = page["next_page_uri"].as_str().and_then(|uri| uri.strip_prefix(BASE_URL)).map(str::to_owned);
        }
        let expected: Vec<u64> = self.revisions.keys().rev().copied().collect();
        same(&Request::new("GET", "/history"), &json!(expected), &json!(found))?;
        let calls: Vec<(u64, String)> = self.revisions.iter().map(|(number, it)| (*number, it.call.clone())).collect();
        for (number, call) in calls.into_iter().filter(|(_, call)| call.contains(" /")) {
            let request = Request::new("GET", format!("/history/{number}"));
            let found = self.ask(&request, &Expected::Success(200))?.json;
            if !found["calls"].as_array().is_some_and(|calls| calls.contains(&json!(call))) {
                return Err(Difference { request: request.to_string(), expected: call, found: found.to_string() });
            }
        }
        Ok(())
    }
}
