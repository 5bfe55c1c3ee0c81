//! A seeded corpus of manifests of any size: 100 routes a group, and almost always a group a file.
//!
//! Of 20 groups, 17 are in block style; one is in flow style, one is minified, and the routes of one are documents of
//! their own. Of 100 groups, one of those that are minified is ten JSON files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Map, Value, json};

use crate::{
    pem::KeyPair,
    render::{COMMENT, block_document, flow_document, minified},
};

/// The routes of a group.
pub(crate) const GROUP: usize = 100;
/// The fewest routes: ten groups have a file of every style.
pub(crate) const FEWEST: usize = 10 * GROUP;
const EDGES: usize = 10;
const ROUTES: usize = GROUP / EDGES;
const MODULE_SETS: usize = 40;
const KEYS: usize = 4;
/// How many groups share a certificate and a certificate authority.
const BLOCK: usize = 10;
/// The group whose file the measurements change.
const CHANGED: usize = 2;
/// The most requests that a corpus has.
const REQUESTS: usize = 1000;
const MARK: &str = "description: Route ";

const AREAS: [&str; ROUTES] =
    ["catalog", "cart", "search", "account", "orders", "reviews", "assets", "stock", "prices", "help"];
const TEAMS: [&str; 6] = ["shop", "search", "payments", "platform", "logistics", "content"];
const AGENTS: [&str; 4] = [
    r"(?i)\b(curl|wget|python-requests)/[0-9.]+",
    r"^BadBot/\d+(\.\d+)*",
    "(?i)(semrush|ahrefs|mj12)bot",
    r"HeadlessChrome/\d+",
];

/// The parameters of a corpus.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// The number of routes: a multiple of [`GROUP`], and at least [`FEWEST`].
    pub routes: usize,
    /// The seed of every choice.
    pub seed: u64,
    /// The beginning of every name, so that two corpora have nothing in common.
    pub prefix: &'static str,
    /// Whether there are certificates. Their private keys are in files.
    pub certificates: bool,
}

/// A corpus on disk.
pub(crate) struct Corpus {
    /// The folder of the manifests.
    pub folder: PathBuf,
    /// The number of routes.
    pub routes: usize,
    /// The manifest files.
    pub files: Vec<PathBuf>,
    /// The size of the manifest files in bytes.
    pub bytes: usize,
    /// Requests to some of the routes.
    pub requests: Vec<Request>,
    changed: String,
    changes: AtomicUsize,
}

/// A request, and the names of the edge and the route that take it.
pub(crate) struct Request {
    /// The host and the path.
    pub url: String,
    /// The edge.
    pub edge: String,
    /// The route.
    pub route: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Block,
    /// Block style, and the routes are documents of their own.
    Apart,
    Flow,
    Minified,
    /// A JSON file per edge.
    Json,
}

impl Style {
    fn of_group(group: usize) -> Self {
        match group % 20 {
            6 => Style::Apart,
            7 => Style::Flow,
            9 if group % 100 == 9 => Style::Json,
            9 => Style::Minified,
            _ => Style::Block,
        }
    }
}

impl Corpus {
    /// Writes a corpus into a new folder.
    pub(crate) fn write(folder: &Path, shape: Shape) -> Self {
        assert!(shape.routes >= FEWEST && shape.routes.is_multiple_of(GROUP), "{} routes", shape.routes);
        fs::create_dir_all(folder.join("platform/keys")).unwrap();
        fs::create_dir_all(folder.join("edges")).unwrap();
        let mut writer = Writer {
            shape,
            random: Random(shape.seed),
            keys: (0..KEYS).map(|number| KeyPair::derive(shape.seed, number)).collect(),
            files: Vec::new(),
            bytes: 0,
            requests: Vec::new(),
        };
        for (number, key) in writer.keys.iter().enumerate().filter(|_| shape.certificates) {
            fs::write(folder.join(format!("platform/keys/{number}.pem")), key.private_pem()).unwrap();
        }
        writer.file(folder.join("platform/module-sets.yaml"), &module_sets());
        let groups = shape.routes / GROUP;
        for group in 0..groups {
            writer.group(folder, group, groups);
        }
        let Writer { files, bytes, requests, .. } = writer;
        let mut corpus = Self {
            folder: folder.to_owned(),
            routes: shape.routes,
            files,
            bytes,
            requests,
            changed: String::new(),
            changes: AtomicUsize::new(0),
        };
        corpus.changed = fs::read_to_string(corpus.changed_file()).unwrap();
        assert!(corpus.changed.contains(MARK));
        corpus
    }

    fn changed_file(&self) -> PathBuf {
        self.folder.join(format!("edges/{CHANGED:05}.yaml"))
    }

    /// Changes the description of one route to one it never had, and returns the new part.
    pub(crate) fn change(&self) -> String {
        let new = format!("Change {} of route ", self.changes.fetch_add(1, Ordering::Relaxed));
        fs::write(self.changed_file(), self.changed.replacen(MARK, &format!("description: {new}"), 1)).unwrap();
        new
    }

    /// Reverts the change.
    pub(crate) fn restore(&self) {
        fs::write(self.changed_file(), &self.changed).unwrap();
    }
}

/// The pseudo-random numbers of splitmix64.
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    /// True once in so many times.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

struct Writer {
    shape: Shape,
    random: Random,
    keys: Vec<KeyPair>,
    files: Vec<PathBuf>,
    bytes: usize,
    requests: Vec<Request>,
}

impl Writer {
    fn file(&mut self, path: PathBuf, text: &str) {
        fs::write(&path, text).unwrap();
        self.files.push(path);
        self.bytes += text.len();
    }

    fn group(&mut self, folder: &Path, group: usize, groups: usize) {
        let style = Style::of_group(group);
        let mut text = format!("# The edges of group {group}. Deployments are in the runbook of the platform team.\n");
        if self.shape.certificates && group.is_multiple_of(BLOCK) {
            for document in self.certificates(group, groups) {
                block_document(&mut text, &document);
            }
        }
        for edge in 0..EDGES {
            let routes: Vec<Value> = (0..ROUTES).map(|route| self.route(group, edge, route)).collect();
            let name = self.edge_name(group, edge);
            match style {
                Style::Block => block_document(&mut text, &self.edge(group, edge, routes)),
                Style::Flow => flow_document(&mut text, &self.edge(group, edge, routes)),
                Style::Minified => {
                    text += &format!("---\n{}\n", minified(&self.edge(group, edge, routes)));
                }
                Style::Json => {
                    let document = minified(&self.edge(group, edge, routes));
                    self.file(folder.join(format!("edges/{group:05}-{edge}.json")), &document);
                }
                Style::Apart => routes.into_iter().for_each(|route| block_document(&mut text, &apart(&name, route))),
            }
        }
        if Style::of_group(group + 1) == Style::Apart && group + 1 < groups {
            // The edges whose routes are in the next file.
            for edge in 0..EDGES {
                block_document(&mut text, &self.edge(group + 1, edge, Vec::new()));
            }
        }
        if style != Style::Json {
            self.file(folder.join(format!("edges/{group:05}.yaml")), &text);
        }
    }

    fn edge_name(&self, group: usize, edge: usize) -> String {
        format!("{}{group}-{edge}", self.shape.prefix)
    }

    fn authority_name(&self, group: usize) -> String {
        format!("{}-devices-{}", self.shape.prefix, group / BLOCK)
    }

    fn domain(&self, group: usize) -> String {
        format!("{}{group}.example.com", self.shape.prefix)
    }

    fn certificates(&self, group: usize, groups: usize) -> [Value; 2] {
        let key = group / BLOCK % KEYS;
        let name = self.authority_name(group);
        let hosts = (group..groups.min(group + BLOCK)).map(|group| format!("*.{}", self.domain(group))).collect();
        let authority = document(
            "CertificateAuthority",
            &name,
            json!({
                "description": format!("Signs the certificates of devices, from group {group}"),
                "ca_pem": self.keys[key].authority(&name),
            }),
        );
        let server = document(
            "TlsCertificate",
            &format!("{}-servers-{}", self.shape.prefix, group / BLOCK),
            json!({
                "description": format!("Hosts from group {group}"),
                "certificate_pem": self.keys[key].server(hosts),
                "private_key_pem": {"from_file": format!("../platform/keys/{key}.pem")},
            }),
        );
        [authority, server]
    }

    fn edge(&self, group: usize, edge: usize, routes: Vec<Value>) -> Value {
        let mut spec = Map::new();
        spec.insert("description".into(), json!(format!("Edge {edge} of group {group}")));
        spec.insert("hostports".into(), json!([format!("e{edge}.{}:443", self.domain(group))]));
        if self.shape.certificates && edge == 0 {
            let ids = json!({"certificate_authority_ids": [self.authority_name(group)]});
            spec.insert("mutual_tls".into(), ids);
        }
        if edge % 5 == 1 {
            spec.insert("tls_termination".into(), json!({"min_version": "1.3"}));
        }
        if !routes.is_empty() {
            spec.insert("routes".into(), Value::Array(routes));
        }
        let mut document = document("HttpsEdge", &self.edge_name(group, edge), Value::Object(spec));
        document["metadata"]["labels"] = json!({"team": TEAMS[edge % TEAMS.len()], "tier": "web"});
        document
    }

    /// Returns a route as in the list of its edge.
    fn route(&mut self, group: usize, edge: usize, route: usize) -> Value {
        let number = (group * EDGES + edge) * ROUTES + route;
        let (area, team) = (AREAS[route], TEAMS[self.random.below(TEAMS.len())]);
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        if self.random.one_in(5) {
            set(COMMENT, json!(format!("Owned by {team}; ask them before you change it.")));
        }
        let name = format!("{area}-{route}");
        let path = format!("/{area}-{}/", self.random.below(1000));
        if number.is_multiple_of((self.shape.routes / REQUESTS).max(1)) {
            let url = format!("e{edge}.{}{path}", self.domain(group));
            self.requests.push(Request { url, edge: self.edge_name(group, edge), route: name.clone() });
        }
        set("name", json!(name));
        set("description", json!(format!("Route {number}, {area} for the {team} team")));
        set("match_type", json!(if route % 4 == 3 { "exact_path" } else { "path_prefix" }));
        set("match", json!(path));
        set("backend", json!({"backend_id": format!("bkd_{area}{number:012}")}));
        if !self.random.one_in(4) {
            set("modules_from", json!([format!("set-{:02}", number % MODULE_SETS)]));
        }
        if self.random.one_in(2) {
            set("compression", json!({}));
        }
        if self.random.one_in(4) {
            set("request_headers", json!({"add": {"X-Team": team}, "remove": ["X-Debug"]}));
        }
        if self.random.one_in(3) {
            let more = usize::from(self.random.one_in(2));
            let agents: Vec<&str> = (0..=more).map(|agent| AGENTS[(number + agent) % AGENTS.len()]).collect();
            set("user_agent_filter", json!({"deny": agents}));
        }
        if self.random.one_in(8) {
            set("websocket_tcp_converter", json!({}));
        }
        Value::Object(fields)
    }
}

fn document(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "edgewright/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Turns a route in the list of an edge into a document.
fn apart(edge: &str, route: Value) -> Value {
    let Value::Object(fields) = route else { unreachable!("a route is a mapping") };
    let mut spec = Map::new();
    spec.insert("edge".into(), json!(edge));
    spec.extend(
        fields.iter().filter(|(key, _)| key.as_str() != "name").map(|(key, value)| (key.clone(), value.clone())),
    );
    document("HttpsEdgeRoute", fields["name"].as_str().unwrap(), Value::Object(spec))
}

fn module_sets() -> String {
    let mut text = "# Modules that many routes share.\n".to_owned();
    for number in 0..MODULE_SETS {
        let spec = match number % 4 {
            0 => json!({"response_headers": {
                "add": {
                    "Strict-Transport-Security": format!("max-age={}; includeSubDomains", 31_536_000 + number),
                    "X-Content-Type-Options": "nosniff",
                },
                "remove": ["Server", "X-Powered-By"],
            }}),
            1 => json!({"circuit_breaker": {
                "tripped_duration": 10 + number,
                "rolling_window": 60,
                "num_buckets": 10,
                "volume_threshold": 50,
                "error_threshold_percentage": 0.25,
            }}),
            2 => json!({"ip_restriction": {
                "ip_policy_ids": [format!("ipp_office{number:02}"), format!("ipp_vpn{number:02}")],
            }}),
            _ => json!({"jwt_validation": {
                "issuer": {"allow_list": [{"value": format!("https://id{number}.example.com")}]},
                "audience": {"allow_list": [{"value": format!("https://api{number}.example.com")}]},
                "http": {"tokens": [
                    {"type": "jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "},
                ]},
                "jws": {
                    "allowed_algorithms": ["RS256", "ES256"],
                    "keys": {"sources": {"additional_jkus": [format!("https://id{number}.example.com/jwks.json")]}},
                },
            }}),
        };
        block_document(&mut text, &document("ModuleSet", &format!("set-{number:02}"), spec));
    }
    text
}
