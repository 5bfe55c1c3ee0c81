//! Random estates: matches that come close to each other, modules that nginx can apply, and some that it cannot.

use std::ops::Range;

use rand::{Rng, rngs::StdRng, seq::IteratorRandom};
use serde_json::{Map, Value, json};

/// What the names of routes begin with that nginx cannot serve.
pub(super) const CLOSED: &str = "closed";
/// The backends.
pub(super) const BACKENDS: &str = "bkd_a, bkd_b, bkd_c";
/// The IP policies, with the last numbers of the addresses that each allows and denies.
pub(super) const POLICIES: [(&str, &[u8], &[u8]); 4] =
    [("ipp_all", &[1, 2, 3], &[]), ("ipp_one", &[1], &[]), ("ipp_not_one", &[1, 2, 3], &[1]), ("ipp_none", &[], &[])];
/// The request headers that clients send and modules change.
pub(super) const REQUEST_HEADERS: &str = "X-Edge, x-debug, Authorization, Cookie, Accept-Language";
/// The response headers that modules change.
pub(super) const RESPONSE_HEADERS: &str = "X-Powered-By, x-old, Location, X-New";
/// The value of each header that a module adds.
pub(super) const ADDED: &str = r#"costs $5 "really" \ ${host}; é #"#;

const HOSTS: &str = "test, a.test, b.a.test, *.test, *.a.test, *.b.a.test, x_y.test, 127.0.0.1, [::1], [2001:db8::1]";
/// The hosts in matches that have one.
const MATCHED: &str = "a.test, B.A.test., *.test, *.a.test, *a.test, *.b.a.test, *, 127.0.0.1, *.0.0.1, [::1]";
/// Parts of paths. `..` follows a name, because nginx rejects what leads above the root.
const SEGMENTS: &str = "a, a, a, a, b, b, A, %61, %2F, %2f, ., /, a/.., %61/%2e%2E, %2e, a.b, ab, é, %C3%A9, a|b, $uri, \
                        (, ~, +, a;b, :, \", \\, {}, a&b, *, [a], ^";
const PATTERNS: &str =
    r#"(?i)bot, ^curl/, ^$, ^a+$, \bbot\b, [^a-z], ^.{3}$, good|nice, \$, ", ^\S+ \S+$, x{2}, ^\w+$"#;

/// Edges with routes.
pub(super) struct Estate {
    /// The manifests, as one file.
    pub manifests: String,
    /// The names of the routes that nginx cannot serve.
    pub closed: Vec<String>,
    /// The hosts that it serves, with their ports.
    pub hostports: Vec<(&'static str, u16)>,
    /// The paths in its matches.
    pub paths: Vec<String>,
}

impl Estate {
    /// An estate on these ports. No edge has the name of one in another estate, whose form nginx could keep.
    pub(super) fn random(random: &mut StdRng, number: u64, ports: [u16; 2]) -> Self {
        let mut estate =
            Self { manifests: String::new(), closed: Vec::new(), hostports: Vec::new(), paths: Vec::new() };
        let hostports = HOSTS.split(", ").flat_map(|host| ports.map(|port| (host, port)));
        let count = random.random_range(3..12);
        estate.hostports = hostports.choose_multiple(random, count);
        for (edge, served) in estate.hostports.clone().chunks(4).enumerate() {
            let texts: Vec<String> = served.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            let count = random.random_range(1..12);
            let routes: Vec<Value> = (0..count).map(|route| estate.route(random, route, ports)).collect();
            let spec = json!({"hostports": texts, "tls_termination": {"enabled": false}, "routes": routes});
            estate.declare("HttpsEdge", &format!("edge-{number}-{edge}"), &spec);
        }
        if random.random_bool(0.2) {
            let policies = some(random, "ipp_all, ipp_one, ipp_not_one", 1..2);
            let spec = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": policies});
            estate.declare("IpRestriction", &format!("restriction-{number}"), &spec);
        }
        estate
    }

    fn declare(&mut self, kind: &str, name: &str, spec: &Value) {
        let document = json!({"apiVersion": "edgewright/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        self.manifests += &format!("---\n{document}\n");
    }

    fn route(&mut self, random: &mut StdRng, number: usize, ports: [u16; 2]) -> Value {
        let mut host = if random.random_bool(0.6) { one_of(random, MATCHED).to_owned() } else { String::new() };
        let path = if host.is_empty() || random.random_bool(0.7) { path(random) } else { String::new() };
        if !host.is_empty() && random.random_bool(0.3) {
            host += &format!(":{}", ports[random.random_range(0..ports.len())]);
        }
        let match_type = one_of(random, "exact_path, path_prefix, path_prefix");
        let mut route = json!({"match_type": match_type, "match": format!("{host}{path}")});
        self.paths.push(path);
        let policies: Vec<&str> = POLICIES.iter().map(|policy| policy.0).collect();
        for (share, slot, mut module) in [
            (0.95, "backend", json!({"backend_id": one_of(random, BACKENDS)})),
            (0.2, "ip_restriction", json!({"ip_policy_ids": some(random, &policies.join(", "), 1..3)})),
            (0.3, "user_agent_filter", user_agent_filter(random)),
            (0.4, "request_headers", headers(random, REQUEST_HEADERS)),
            (0.4, "response_headers", headers(random, RESPONSE_HEADERS)),
            (0.2, "compression", json!({})),
        ] {
            module["enabled"] = json!(random.random_bool(0.95));
            if random.random_bool(share) {
                route[slot] = module;
            }
        }
        let is_closed = random.random_bool(0.08);
        let name = format!("{}-{number}", if is_closed { CLOSED } else { "open" });
        route["name"] = json!(name);
        if is_closed {
            let (slot, module) = inexpressible().into_iter().choose(random).unwrap();
            route[slot] = module;
            self.closed.push(name);
        }
        route
    }
}

/// Modules that nginx cannot apply.
fn inexpressible() -> [(&'static str, Value); 7] {
    let denial = json!({"inbound": [{"name": "all", "expressions": [], "actions": [{"type": "deny"}]}]});
    [
        ("websocket_tcp_converter", json!({})),
        ("policies", denial),
        ("request_headers", json!({"add": {"Host": "other.test"}})),
        ("response_headers", json!({"remove": ["Date"]})),
        ("ip_restriction", json!({"ip_policy_ids": ["ipp_unknown"]})),
        ("backend", json!({"backend_id": "bkd_unknown"})),
        ("user_agent_filter", json!({"deny": [r"\<bot\>"]})),
    ]
}

/// A path of a match or a request.
pub(super) fn path(random: &mut StdRng) -> String {
    let count = random.random_range(0..4);
    let segments: Vec<&str> = (0..count).map(|_| one_of(random, SEGMENTS)).collect();
    format!("/{}", segments.join("/"))
}

/// An item of a list.
pub(super) fn one_of<'a>(random: &mut StdRng, list: &'a str) -> &'a str {
    list.split(", ").choose(random).unwrap()
}

/// Some items of a list.
pub(super) fn some<'a>(random: &mut StdRng, list: &'a str, counts: Range<usize>) -> Vec<&'a str> {
    let count = random.random_range(counts);
    list.split(", ").choose_multiple(random, count)
}

fn user_agent_filter(random: &mut StdRng) -> Value {
    let allow = some(random, PATTERNS, 0..2);
    let deny = some(random, PATTERNS, 1 - allow.len()..3);
    json!({"allow": allow, "deny": deny})
}

fn headers(random: &mut StdRng, names: &str) -> Value {
    let changed = some(random, names, 1..4);
    let (added, removed) = changed.split_at(random.random_range(0..=changed.len()));
    let added: Map<String, Value> = added.iter().map(|name| ((*name).to_owned(), json!(ADDED))).collect();
    json!({"add": added, "remove": removed})
}
