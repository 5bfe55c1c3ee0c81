//! What a state does not show of the configuration that it stands for: no answer that it could change is certain.
//!
//! # The problem
//!
//! Manifests without a store are a part of the configuration. They can have routes on an edge that only a store has, and
//! surrounding manifests can declare a name twice, of which the state has one. A proof of what is left would say yes to
//! requests that it has not seen.
//!
//! # The idea
//!
//! Whoever makes the state says what is missing in it, and which requests that can be about. An answer starts from there: it
//! is `depends` for every invariant whose scope has such requests, unless a request breaks the invariant that nothing unseen could
//! take. Whoever makes the state also says which of its edges and routes are a guess: a request that these take has not been seen.
//!
//! One rule decides whether something unseen could take a request ([`Unseen::may_decide`]), for the request that breaks an invariant
//! and for the one of a route test, which is not judged then.
//!
//! For example, two surrounding files declare an edge `shop`, the second one for `b.example.com`. An edge of `*.example.com` without
//! a login breaks an invariant by its requests to `a.example.com`. What it does with `b.example.com` is unknown.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::proof::{Proof, prove_some};
use super::standing::{Breach, StandingInvariant};
use crate::model::host_pattern::covers;
use crate::model::kind::invariant::{Invariant, InvariantScope};
use crate::model::traffic::{TracedRequest, host_name};
use crate::model::{AnyResource, HttpsEdge, HttpsEdgeRoute, Key, Kind, Snapshot};
use crate::routing::behaviour::{PathBeginnings, RequestScope};
use crate::routing::host_rank::rank_host;
use crate::routing::selector::Selector;

/// The most that is told of what an answer depends on.
const MOST_TOLD: usize = 10;
/// At the borders of how much that is unseen the classes of an invariant end. Where they do not, a certain breach may look unsure.
const MOST_BORDERS: usize = 100;

/// Something that a state does not show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unseen {
    /// What it is, as in "depends on …".
    clause: String,
    /// The hosts that it is about; none for every host.
    hosts: Vec<String>,
    /// The port that it is about; none for every port.
    port: Option<u16>,
    /// The paths that it is about, and whether a path must be equal or begins others; none for every path.
    paths: BTreeSet<(String, bool)>,
    /// The edges and routes of the state that are a guess for its hosts: a store may have them elsewhere, or other ones.
    guessed: BTreeSet<Key>,
}

impl Unseen {
    /// Something that can be about any request.
    pub(crate) fn new(clause: String) -> Self {
        Self { clause, hosts: Vec::new(), port: None, paths: BTreeSet::new(), guessed: BTreeSet::new() }
    }

    /// Notes that it is about the requests of an edge or a route.
    #[must_use]
    pub(crate) fn about(mut self, spec: &dyn AnyResource) -> Self {
        if let Some(edge) = spec.as_any().downcast_ref::<HttpsEdge>() {
            self.hosts.extend(edge.addresses().map(|(_, _, (host, _))| host));
        }
        let route = spec.as_any().downcast_ref::<HttpsEdgeRoute>();
        let selector = route.and_then(Selector::from_route);
        self.paths.extend(selector.map(|selector| (selector.path.to_owned(), selector.is_exact)));
        self
    }

    /// Notes that it is about the requests of a host.
    #[must_use]
    pub(super) fn about_host(mut self, host: String) -> Self {
        self.hosts.push(host);
        self
    }

    /// Notes that it is about the requests to a port; none for every port.
    #[must_use]
    pub(super) fn at_port(self, port: Option<u16>) -> Self {
        Self { port, ..self }
    }

    /// Notes which edges and routes of the state are a guess because of it.
    #[must_use]
    pub(crate) fn guessing(mut self, keys: impl IntoIterator<Item = Key>) -> Self {
        self.guessed.extend(keys);
        self
    }

    /// The hosts and wildcards that have a host, or some of its hosts if it is a wildcard.
    fn hosts_about<'u>(&'u self, host: &'u str) -> impl Iterator<Item = &'u String> {
        self.hosts.iter().filter(move |own| covers(own, host) || covers(host, own))
    }

    /// Whether the answer about a request may be another one with it.
    pub(crate) fn may_decide(&self, request: &RequestTaken<'_>) -> bool {
        let host = request.host.as_str();
        let is_elsewhere = !self.hosts.is_empty() && self.hosts_about(host).next().is_none();
        if is_elsewhere || self.port.is_some_and(|port| port != request.port) {
            return false;
        }
        if request.taken_by.iter().any(|key| self.guessed.contains(*key)) {
            return true;
        }
        let takes = |(path, is_exact): &(String, bool)| match *is_exact {
            true => request.path == path.as_str(),
            false => request.path.starts_with(path.as_str()),
        };
        let has_path = self.paths.is_empty() || self.paths.iter().any(takes);
        // The closest host wins.
        let is_close = |own: &String| request.served_as.as_deref().is_none_or(|served| covers(served, own));
        match self.hosts.is_empty() {
            // Of a route without hosts, nobody knows the edge, which may take all requests of its hosts.
            true => has_path || request.served_as.as_deref().is_none_or(|served| served.starts_with('*')),
            false => has_path && self.hosts_about(host).any(is_close),
        }
    }

    /// Whether requests of an edge or a route, as some of the states have it, may be among those that it is about.
    pub(crate) fn is_about(&self, key: &Key, states: &[&Snapshot]) -> bool {
        let edge = if key.kind == Kind::HttpsEdge { Some(key.clone()) } else { key.parent_key() };
        let Some(edge) = edge.filter(|edge| edge.kind == Kind::HttpsEdge) else { return false };
        let in_state = |state: &&Snapshot| {
            let spec = state.get(&edge).and_then(|entry| entry.spec_as::<HttpsEdge>());
            let mut hosts = spec.into_iter().flat_map(|spec| spec.addresses()).map(|(.., (host, _))| host);
            let route = state.get(key).and_then(|entry| entry.spec_as::<HttpsEdgeRoute>());
            let meets_path = route.and_then(Selector::from_route).map_or(key.kind == Kind::HttpsEdge, |selector| {
                let mut paths = self.beginnings();
                paths.any(|path| path.starts_with(selector.path) || selector.path.starts_with(path))
            });
            (self.hosts.is_empty() || hosts.any(|host| self.hosts_about(&host).next().is_some()))
                && (self.paths.is_empty() || meets_path)
        };
        self.guessed.contains(key) || self.guessed.contains(&edge) || states.iter().any(in_state)
    }

    /// What something depends on, as clauses.
    pub(crate) fn clauses<'u>(found: impl Iterator<Item = &'u Self>) -> Vec<String> {
        let clauses: BTreeSet<&str> = found.map(|it| it.clause.as_str()).collect();
        clauses.into_iter().take(MOST_TOLD).map(str::to_owned).collect()
    }

    /// The paths with which those that it is about begin; none for every path.
    fn beginnings(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|(path, _)| path.as_str())
    }

    /// The requests about which some that are unseen may decide. Those that are not about the same port stay apart.
    fn scopes(unseen: &[&Self]) -> Vec<RequestScope> {
        let ports: BTreeSet<Option<u16>> = unseen.iter().map(|it| it.port).collect();
        let scope = |it: &&Self| {
            let paths: Vec<String> = it.beginnings().map(str::to_owned).collect();
            RequestScope::new(&it.hosts, &paths)
        };
        let at_port = |port: Option<u16>| RequestScope::joined(unseen.iter().filter(|it| it.port == port).map(scope));
        ports.into_iter().flat_map(at_port).collect()
    }

    /// Whether requests in a scope may be among those that it is about.
    fn concerns(&self, scope: &InvariantScope) -> bool {
        let hosts = RequestScope::new(&scope.hosts, &[]);
        let meets_host = self.hosts.is_empty() || self.hosts.iter().any(|host| hosts.meets(host));
        let paths = PathBeginnings::new(self.beginnings().collect());
        let any_path = self.paths.is_empty() || scope.path_prefixes.is_empty();
        meets_host && (any_path || scope.path_prefixes.iter().any(|prefix| paths.meet(prefix)))
    }
}

/// A request, with what takes it in a state that does not show everything.
#[derive(Debug)]
pub(crate) struct RequestTaken<'r> {
    host: String,
    port: u16,
    path: &'r str,
    /// The edge and the route.
    taken_by: Vec<&'r Key>,
    /// The host or the wildcard that the edge has, in normal form.
    served_as: Option<String>,
}

impl<'r> RequestTaken<'r> {
    /// A request that an edge serves by one of its hosts, and its route handles.
    pub(crate) fn new(request: &'r TracedRequest, taken_by: Vec<&'r Key>, served_as: Option<String>) -> Self {
        Self { host: host_name(&request.host), port: request.port, path: &request.path, taken_by, served_as }
    }

    /// The request that breaks an invariant.
    fn of_breach(breach: &'r Breach<'_>) -> Self {
        let taken_by = [breach.fate.edge, breach.fate.route].into_iter().flatten().map(|entry| &entry.key);
        let request = Self::new(&breach.request, taken_by.collect(), None);
        let hosts = breach.fate.edge_spec().into_iter().flat_map(|edge| edge.addresses());
        let serving =
            hosts.filter(|(.., (host, port))| *port == request.port && rank_host(&request.host, host).is_some());
        let served_as = serving.map(|(.., (host, _))| host).max_by_key(|host| rank_host(&request.host, host));
        Self { served_as, ..request }
    }
}

/// Judges each invariant of a state without a store, from which something is missing. What an invariant `keeps` is unseen, too:
/// no revision precedes the state.
pub(crate) fn prove_seen<'s>(state: &'s Snapshot, unseen: &[Unseen], now: Timestamp) -> Vec<Proof<'s>> {
    let doubt = |breach: &mut Breach<'s>| {
        if let Some(it) = decisive(unseen, breach) {
            breach.flaw = breach.flaw.clone().guessed(&it.clause);
        }
    };
    let mut invariants = StandingInvariant::all(state, now);
    for invariant in &mut invariants {
        // One example stands for a class, so that none may have both sure and unsure requests.
        let concerned = unseen.iter().filter(|it| it.concerns(&invariant.spec.scope));
        let concerned: Vec<&Unseen> = concerned.take(MOST_BORDERS).collect();
        invariant.unsure = Unseen::scopes(&concerned);
    }
    let mut proofs = prove_some(state, invariants, doubt);
    for proof in &mut proofs {
        let entry = proof.entry;
        let Some(spec) = entry.spec_as::<Invariant>() else { continue };
        let concerned = unseen.iter().filter(|it| it.concerns(&spec.scope));
        // Without requests, none can lose anything.
        let is_compared = spec.keeps.is_empty() || proof.classes == 0;
        let revision = || {
            format!(
                "a revision to compare with, for what it keeps ({}): add --store or --server",
                spec.keeps.join(", ")
            )
        };
        let former = (!is_compared).then(revision);
        let may_be_unused = proof.of_unknown_source > 0 && proof.of_unknown_source == proof.classes + proof.exempt;
        let source = (may_be_unused && proof.breaches.is_empty())
            .then(|| "whether the surrounding manifests are of a source in its scope".to_owned());
        proof.unseen = former.into_iter().chain(source).chain(Unseen::clauses(concerned)).take(MOST_TOLD).collect();
    }
    proofs
}

/// Something unseen that may decide about the request of a breach.
fn decisive<'u>(unseen: &'u [Unseen], breach: &Breach<'_>) -> Option<&'u Unseen> {
    let request = RequestTaken::of_breach(breach);
    unseen.iter().find(|it| it.may_decide(&request))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::routing::tests::{edge_key, route, spec_of};

    #[test]
    fn what_is_unseen_decides_about_the_requests_that_it_may_take() {
        let edge = spec_of(Kind::HttpsEdge, &json!({"hostports": ["shop.example.com:443", "*.eu.example.com:443"]}));
        let exact = spec_of(Kind::HttpsEdgeRoute, &route("=/docs", json!({})));
        let route = spec_of(Kind::HttpsEdgeRoute, &route("/docs/", json!({})));
        let [guessed, sure] = ["edghts_1", "edghts_2"].map(edge_key);
        let unseen = || Unseen::new("it".to_owned()).guessing([guessed.clone()]);
        let decides = |unseen: Unseen, url: &str, taken_by: &Key, served_as: &str| {
            let request = TracedRequest::new("GET", url).unwrap_or_default();
            let served_as = Some(served_as.to_owned()).filter(|host| !host.is_empty());
            unseen.may_decide(&RequestTaken::new(&request, vec![taken_by], served_as))
        };
        let on_edge = || unseen().about(edge.as_ref()).about(route.as_ref());
        let shop = "shop.example.com";
        for served_as in [shop, "*.example.com", ""] {
            assert!(decides(on_edge(), "https://shop.example.com/docs/a", &sure, served_as), "{served_as}");
            assert!(!decides(on_edge(), "https://shop.example.com/admin", &sure, served_as), "{served_as}");
            assert!(decides(on_edge(), "https://shop.example.com/admin", &guessed, served_as), "{served_as}");
        }
        // An edge with a closer host takes it.
        assert!(decides(on_edge(), "https://a.eu.example.com/docs/a", &sure, "*.example.com"));
        assert!(!decides(on_edge(), "https://a.eu.example.com/docs/a", &sure, "a.eu.example.com"));
        assert!(!decides(on_edge(), "https://wiki.example.com/docs/a", &guessed, ""), "another host");
        assert!(!decides(on_edge().at_port(Some(443)), "https://shop.example.com:8443/docs/a", &guessed, shop));
        // Nobody knows the hosts of the edge that has the route: it may be the one with the host, under another ID.
        let anywhere = || unseen().about(route.as_ref());
        assert!(decides(anywhere(), "https://shop.example.com/admin", &sure, "*.example.com"));
        assert!(!decides(anywhere(), "https://shop.example.com/admin", &sure, shop));
        assert!(decides(anywhere(), "https://shop.example.com/docs/a", &sure, shop));
        assert!(decides(unseen(), "https://shop.example.com/admin", &sure, shop), "it is about everything");
        assert!(decides(unseen().about(exact.as_ref()), "https://shop.example.com/docs", &sure, shop));
        assert!(!decides(unseen().about(exact.as_ref()), "https://shop.example.com/docs/a", &sure, shop));
    }

    #[test]
    fn what_is_unseen_concerns_the_scopes_that_share_requests_with_it() {
        let edge = spec_of(Kind::HttpsEdge, &json!({"hostports": ["shop.example.com:443", "*.eu.example.com:443"]}));
        let route = spec_of(Kind::HttpsEdgeRoute, &route("/docs/", json!({})));
        let unseen = || Unseen::new("it".to_owned());
        let concerns = |unseen: &Unseen, scope: Value| {
            let scope: InvariantScope = serde_json::from_value(scope).unwrap_or_default();
            unseen.concerns(&scope)
        };
        let hosts = |host: &str| json!({"hosts": [host]});
        let paths = |prefix: &str| json!({"path_prefixes": [prefix]});
        for host in ["shop.example.com", "*.example.com", "a.eu.example.com"] {
            assert!(concerns(&unseen().about(edge.as_ref()), hosts(host)), "{host}");
        }
        assert!(!concerns(&unseen().about(edge.as_ref()), hosts("wiki.example.com")));
        for prefix in ["/", "/docs", "/docs/guides/"] {
            assert!(concerns(&unseen().about(route.as_ref()), paths(prefix)), "{prefix}");
        }
        assert!(!concerns(&unseen().about(route.as_ref()), paths("/admin")));
        for all in [hosts("wiki.example.com"), paths("/admin"), json!({})] {
            assert!(concerns(&unseen(), all.clone()), "{all}");
        }
    }
}
