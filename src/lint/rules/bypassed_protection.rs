//! `bypassed-protection`: a protected backend that another port of the same host opens.
//!
//! For each protected route, the lint looks up the route that receives the same request on the host's other ports, of any
//! edge, and for each open route the protected one. If the open one leads to the same backend, the protection can be
//! bypassed. A longer path that is open beside a protected route on the same port is an exception that somebody made, so
//! only its own path counts. Policies do not count as the protection that is bypassed, because what they do is unknown.
//! Edges that pass TLS through are skipped: they see no paths.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{prelude::*, unprotected_route::is_protected};
use crate::model::{AnyResource, rules};
use crate::routing::selector::Selector;
use crate::routing::table::{KnownRoute, RouteTable};

pub(crate) static LINT: Lint = Lint {
    name: "bypassed-protection",
    default: Level::Warn,
    summary: "Another port of a protected host opens the same backend.",
    why: "A login, token, client certificate or IP restriction protects a backend only if every route to it has one. \
          Another port of the same host reaches the backend without any of them.",
    cure: "Protect the route in the same way, for example with a shared module set, or remove it.",
    check: LintCheck::Host(check),
};

/// The longest path that is looked up, in bytes. Servers refuse longer ones.
const LONGEST_PATH: usize = 2048;
/// The most lookups for edges that are judged together, so that many ports with many routes each do not take quadratic
/// time.
const MOST_LOOKUPS: usize = 1 << 20;

/// An edge that sees paths.
struct ReadingEdge<'w> {
    view: &'w HostView<'w>,
    key: &'w Key,
    edge: &'w HttpsEdge,
    addresses: Vec<(String, u16)>,
    /// Made when it is first needed: most edges have one port for each host, which nothing can bypass.
    routes: OnceCell<ReadRoutes<'w>>,
}

/// The routes of an edge.
struct ReadRoutes<'w> {
    table: RouteTable<'w>,
    /// Whether the match of a route has a port, so that not all ports lead to the same routes.
    have_ports: bool,
}

impl<'w> ReadingEdge<'w> {
    fn routes(&self) -> &ReadRoutes<'w> {
        self.routes.get_or_init(|| {
            let table = RouteTable::new(false, self.view.routes_of(&self.key.id));
            let have_ports = table.routes().iter().any(|(_, selector)| selector.port.is_some());
            ReadRoutes { table, have_ports }
        })
    }
}

/// A host's ports, each with the edge that serves it.
type PortEdges = BTreeMap<u16, usize>;

/// A host with all of its ports.
struct ServedHost<'e, 'w> {
    name: &'e str,
    port_edges: PortEdges,
    edges: &'e [ReadingEdge<'w>],
}

/// A route that receives the requests for a path at a port, and has a backend.
#[derive(Clone, Copy)]
struct Receiver<'w> {
    key: &'w Key,
    port: u16,
    backend: &'w str,
    /// The module that keeps strangers out.
    guard: Option<&'static str>,
    /// Whether nothing keeps strangers out, not even a policy.
    is_open: bool,
}

/// A path that only a route, or a more general one, matches, and the route's backend.
type Destination<'w> = (String, &'w str);

/// The receivers of a host by destination.
type Receivers<'w> = BTreeMap<Destination<'w>, Vec<Receiver<'w>>>;

/// An open route and the protected one that it bypasses.
type Bypass<'w> = (Receiver<'w>, Receiver<'w>);

fn check(view: &HostView<'_>, findings: &mut Findings) {
    if !view.is_whole() {
        return;
    }
    let edges = reading_edges(view);
    let mut serving: BTreeMap<&str, PortEdges> = BTreeMap::new();
    for (index, edge) in edges.iter().enumerate() {
        for (host, port) in &edge.addresses {
            serving.entry(host.as_str()).or_default().entry(*port).or_insert(index);
        }
    }
    let has_wildcards = serving.keys().any(|name| name.starts_with('*'));
    let mut lookups = MOST_LOOKUPS;
    let mut reported: HashSet<&Key> = HashSet::new();
    for (name, own) in &serving {
        let mut port_edges = own.clone();
        // A wildcard serves the ports that no closer hostport does.
        for (dot, _) in name.match_indices('.').filter(|_| has_wildcards) {
            let wildcard = name.get(dot..).map(|rest| format!("*{rest}")).unwrap_or_default();
            for (port, index) in serving.get(wildcard.as_str()).into_iter().flatten() {
                port_edges.entry(*port).or_insert(*index);
            }
        }
        let host = ServedHost { name, port_edges, edges: &edges };
        if host.is_uniform() {
            continue;
        }
        for (open, guard) in host.bypasses(own, &mut lookups) {
            let Some(module) = guard.guard.filter(|_| reported.insert(open.key)) else { continue };
            let (shown, port, guarded_port) = (printable(name), open.port, guard.port);
            let message =
                format!("`{shown}:{port}` opens this backend without `{module}`, unlike `{shown}:{guarded_port}`");
            let finding = findings.report(open.key, ["backend"], message);
            (finding.of_whole, finding.target) = (true, FaultTarget::Key);
            finding.relate(guard.key, ["match"], "the protected route");
        }
    }
}

fn reading_edges<'w>(view: &'w HostView<'w>) -> Vec<ReadingEdge<'w>> {
    let edges = view.all::<HttpsEdge>().filter(|(_, edge)| !rules::passes_through(edge));
    let edges = edges.map(|(key, edge)| {
        let addresses = edge.addresses().map(|(_, _, address)| address).collect();
        ReadingEdge { view, key, edge, addresses, routes: OnceCell::new() }
    });
    edges.collect()
}

impl<'w> ServedHost<'_, 'w> {
    /// Whether all ports lead to the same routes.
    fn is_uniform(&self) -> bool {
        let mut served = self.port_edges.values();
        let Some(first) = served.next() else { return true };
        let is_one = served.all(|index| index == first);
        let have_ports = || self.edges.get(*first).is_some_and(|edge| edge.routes().have_ports);
        self.port_edges.len() < 2 || (is_one && !have_ports())
    }

    fn edge(&self, port: u16) -> Option<&ReadingEdge<'w>> {
        self.edges.get(*self.port_edges.get(&port)?)
    }

    fn receiver(&self, port: u16, (key, route): KnownRoute<'w>) -> Option<Receiver<'w>> {
        let edge: &'w HttpsEdge = self.edge(port)?.edge;
        let guard = protection(edge).or_else(|| protection(route));
        let is_open = !is_protected(edge) && !is_protected(route);
        let backend = route.backend.as_ref().filter(|backend| backend.enabled)?;
        Some(Receiver { key, port, backend: &backend.backend_id, guard, is_open })
    }

    /// The receiver of the requests for a path at a port.
    fn serving(&self, port: u16, path: &str) -> Option<Receiver<'w>> {
        let serving = self.edge(port)?.routes().table.serving(self.name, port, path)?;
        self.receiver(port, serving)
    }

    /// Returns the open routes with a protected one on another port; stops when no lookups are left.
    fn bypasses(&self, own: &PortEdges, lookups: &mut usize) -> Vec<Bypass<'w>> {
        let (mut guards, mut open): (Receivers<'w>, Receivers<'w>) = (BTreeMap::new(), BTreeMap::new());
        let (mut guarded_ports, mut open_ports) = (BTreeSet::new(), BTreeSet::new());
        // The backends that a port protects on at least one path.
        let mut guarding: HashSet<(u16, &'w str)> = HashSet::new();
        for port in self.port_edges.keys().copied() {
            let Some(edge) = self.edge(port) else { continue };
            for known in edge.routes().table.receiving(self.name, port) {
                // Many hosts can share the routes of one wildcard. They must not take all lookups from the ports of others.
                if !own.contains_key(&port) && (*lookups <= MOST_LOOKUPS / 2 || !spend(lookups)) {
                    break;
                }
                let Some(receiver) = self.receiver(port, known) else { continue };
                let Some(selector) = Selector::from_route(known.1).filter(|it| it.path.len() <= LONGEST_PATH) else {
                    continue;
                };
                let destination = (selector.probe(), receiver.backend);
                if receiver.guard.is_some() {
                    guarded_ports.insert(port);
                    guarding.insert((port, receiver.backend));
                    let alike = guards.entry(destination).or_default();
                    // A port is compared with a guard on another one, so two ports are enough.
                    if alike.len() < 2 && alike.iter().all(|guard| guard.port != port) {
                        alike.push(receiver);
                    }
                } else if receiver.is_open {
                    open_ports.insert(port);
                    open.entry(destination).or_default().push(receiver);
                }
            }
        }
        let mut found = Vec::new();
        for ((path, backend), guards) in &guards {
            for port in open_ports.iter().copied() {
                let Some(guard) = guards.iter().find(|guard| guard.port != port) else { continue };
                if !spend(lookups) {
                    return found;
                }
                let serving = self.serving(port, path).filter(|it| it.is_open && it.backend == *backend);
                found.extend(serving.map(|serving| (serving, *guard)));
            }
        }
        for ((path, backend), openers) in &open {
            if openers.iter().any(|opener| guarding.contains(&(opener.port, *backend))) {
                continue;
            }
            for port in guarded_ports.iter().copied() {
                if !spend(lookups) {
                    return found;
                }
                let serving = self.serving(port, path).filter(|it| it.guard.is_some() && it.backend == *backend);
                if let Some(guard) = serving {
                    found.extend(openers.iter().map(|opener| (*opener, guard)));
                    break;
                }
            }
        }
        found
    }
}

/// Takes one of the remaining lookups.
fn spend(lookups: &mut usize) -> bool {
    let rest = lookups.checked_sub(1);
    *lookups = rest.unwrap_or_default();
    rest.is_some()
}

/// The first enabled module that keeps strangers out.
fn protection(host: &dyn AnyResource) -> Option<&'static str> {
    let mut modules = host.modules();
    let (slot, _) =
        modules.find(|(slot, module)| module.enabled() && module.restricts_access() && slot.name != "policies")?;
    Some(slot.name)
}
