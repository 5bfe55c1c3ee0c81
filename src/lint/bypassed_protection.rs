//! `bypassed-protection`: a protected backend that another port of the same host opens.
//!
//! For each protected route, the lint looks up the route that receives the same request on the host's other ports, of any
//! edge. If it leads to the same backend without any protection, the protection can be bypassed. Policies do not count as
//! the protection that is bypassed, because what they do is unknown. Edges that pass TLS through are skipped: they see no
//! paths.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Findings, Level, Lint, Subject, World, duplicate_hostport::host_port, unprotected_route::is_protected};
use crate::{
    model::{
        fault::{Aim, Path},
        id::Id,
        key::Key,
        kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
        resource::AnyResource,
        rules,
    },
    routing::{
        selector::Selector,
        table::{KnownRoute, RouteTable},
    },
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "bypassed-protection",
    needs_whole: true,
    default: Level::Warn,
    summary: "Another port of a protected host opens the same backend.",
    why: "A login, token, client certificate or IP restriction protects a backend only if every way to it has one. Here, \
          another port of the same host leads to the backend without any.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: wiki}
spec:
  hostports: ['wiki.example.com:443']
  routes:
    - name: wiki
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_wiki}
      ip_restriction: {ip_policy_ids: [ipp_office]}
---
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: wiki-test}
spec:
  hostports: ['wiki.example.com:8443']
  routes:
    - name: wiki
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_wiki}
",
    cure: "Protect the route in the same way, or remove it. A module set shares the configuration of a module.",
    check,
};

/// The longest path that is looked up, in bytes. Servers refuse longer ones.
const LONGEST_PATH: usize = 2048;
/// The most lookups, so that many ports with many routes each do not take quadratic time.
const MOST_LOOKUPS: usize = 1 << 20;

/// An edge that sees paths.
struct ReadingEdge<'w> {
    edge: &'w HttpsEdge,
    addresses: Vec<(String, u16)>,
    table: RouteTable<'w>,
}

/// A host's ports, each with the edge that serves it.
type Doors = BTreeMap<u16, usize>;

/// A protected route at a port.
struct GuardedRoute<'w> {
    key: &'w Key,
    port: u16,
    module: &'static str,
}

fn check(world: &World<'_>, findings: &mut Findings) {
    let edges = reading_edges(world);
    let mut serving: BTreeMap<&str, Doors> = BTreeMap::new();
    for (index, edge) in edges.iter().enumerate() {
        for (host, port) in &edge.addresses {
            serving.entry(host.as_str()).or_default().entry(*port).or_insert(index);
        }
    }
    let mut lookups = MOST_LOOKUPS;
    let mut told: HashSet<&Key> = HashSet::new();
    for (host, own) in &serving {
        let mut doors = own.clone();
        // A wildcard serves the ports that no closer hostport does.
        for (dot, _) in host.match_indices('.') {
            let wildcard = host.get(dot..).map(|rest| format!("*{rest}")).unwrap_or_default();
            for (port, index) in serving.get(wildcard.as_str()).into_iter().flatten() {
                doors.entry(*port).or_insert(*index);
            }
        }
        if doors.len() < 2 {
            continue;
        }
        let guarded = guards(&edges, host, own);
        for (port, index) in &doors {
            let Some(open) = edges.get(*index).filter(|open| !is_protected(open.edge)) else { continue };
            for ((path, backend), guards) in &guarded {
                let Some(guard) = guards.iter().find(|guard| guard.port != *port) else { continue };
                let Some(rest) = lookups.checked_sub(1) else { return };
                lookups = rest;
                let Some((key, taker)) = open.table.taker(host, *port, path) else { continue };
                if backend_of(taker) != Some(*backend) || is_protected(taker) || !told.insert(key) {
                    continue;
                }
                let (shown, module, guarded_port) = (printable(host), guard.module, guard.port);
                let message =
                    format!("`{shown}:{port}` opens this backend without `{module}`, unlike `{shown}:{guarded_port}`");
                let finding = findings.report(key, ["backend"], message);
                (finding.of_whole, finding.aim) = (true, Aim::Key);
                let path = Path::root().join("match");
                finding.related = Some((Subject::Resource(guard.key.clone()), path, "the protected route"));
            }
        }
    }
}

fn reading_edges<'w>(world: &'w World<'_>) -> Vec<ReadingEdge<'w>> {
    let mut routes: HashMap<&Id, Vec<KnownRoute<'w>>> = HashMap::new();
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        if let Some(edge) = &key.parent {
            routes.entry(edge).or_default().push((key, route));
        }
    }
    let mut edges = Vec::new();
    for (key, edge) in world.all::<HttpsEdge>().filter(|(_, edge)| !rules::passes_through(edge)) {
        let addresses = edge.hostports.iter().filter_map(|hostport| host_port(hostport)).collect();
        let table = RouteTable::new(false, routes.remove(&key.id).unwrap_or_default());
        edges.push(ReadingEdge { edge, addresses, table });
    }
    edges
}

/// A path and a backend.
type OpenDoor<'w> = (&'w str, &'w str);

/// Returns the protected routes of a host by path and backend, for up to two ports each: a port is compared with a guard
/// on another one.
fn guards<'w>(edges: &[ReadingEdge<'w>], host: &str, doors: &Doors) -> BTreeMap<OpenDoor<'w>, Vec<GuardedRoute<'w>>> {
    let mut found: BTreeMap<OpenDoor<'w>, Vec<GuardedRoute<'w>>> = BTreeMap::new();
    for (port, index) in doors {
        let Some(edge) = edges.get(*index) else { continue };
        for (key, route) in edge.table.receiving(host, *port) {
            let Some(module) = protection(edge.edge).or_else(|| protection(route)) else { continue };
            let Some(selector) = Selector::of(route).filter(|it| it.path.len() <= LONGEST_PATH) else { continue };
            let Some(backend) = backend_of(route) else { continue };
            let guards = found.entry((selector.path, backend)).or_default();
            if guards.len() < 2 && guards.iter().all(|guard| guard.port != *port) {
                guards.push(GuardedRoute { key, port: *port, module });
            }
        }
    }
    found
}

fn backend_of(route: &HttpsEdgeRoute) -> Option<&str> {
    let backend = route.backend.as_ref().filter(|backend| backend.enabled)?;
    Some(backend.backend_id.as_str())
}

/// The first enabled module that keeps strangers out.
fn protection(host: &dyn AnyResource) -> Option<&'static str> {
    let mut modules = host.modules();
    let (slot, _) =
        modules.find(|(slot, module)| module.enabled() && module.restricts_access() && slot.name != "policies")?;
    Some(slot.name)
}
