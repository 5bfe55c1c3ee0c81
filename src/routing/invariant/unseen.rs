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
//! is `depends` for every invariant whose scope has such requests, unless a request that is seen breaks the invariant. Whoever
//! makes the state also says which of its edges and routes are a guess: a request that these take has not been seen.
//!
//! A route test is about one request, so it is not judged if something unseen may decide about that request.
//!
//! For example, two surrounding files declare an edge `shop`. The answer about `shop.example.com`, which one of the two serves,
//! depends on `shop`. The answer about `wiki.example.com` does not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::proof::{Proof, prove_some};
use super::standing::{Breach, StandingInvariant};
use crate::model::host_pattern::covers;
use crate::model::kind::invariant::{Invariant, InvariantScope};
use crate::model::traffic::{TracedRequest, host_name};
use crate::model::{AnyResource, HttpsEdge, HttpsEdgeRoute, Key, Snapshot};
use crate::routing::behaviour::{PathBeginnings, RequestScope};
use crate::routing::selector::Selector;

/// The most that is told of what an answer depends on.
const MOST_TOLD: usize = 10;

/// Something that a state does not show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unseen {
    /// What it is, as in "depends on …".
    clause: String,
    /// The hosts that it is about; none for every host.
    hosts: Vec<String>,
    /// The port that it is about; none for every port.
    port: Option<u16>,
    /// The beginnings of the paths that it is about; none for every path.
    paths: BTreeSet<String>,
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
        self.paths.extend(route.and_then(Selector::from_route).map(|selector| selector.path.to_owned()));
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

    /// Whether a request has a host and the port that it is about.
    fn is_at(&self, request: &TracedRequest) -> bool {
        let host = host_name(&request.host);
        let meets_host = || self.hosts.iter().any(|own| covers(own, &host) || covers(&host, own));
        self.port.is_none_or(|port| port == request.port) && (self.hosts.is_empty() || meets_host())
    }

    /// Whether the answer about a request may be another one with it. `taken_by` has the edge and the route of the state that take the
    /// request, and `is_own_host` says whether the edge has the host itself: no other edge can then have it.
    pub(crate) fn may_decide(&self, request: &TracedRequest, taken_by: &[&Key], is_own_host: bool) -> bool {
        if !self.is_at(request) {
            return false;
        }
        if taken_by.iter().any(|key| self.guessed.contains(*key)) {
            return true;
        }
        // Of a route without hosts, nobody knows the edge, which may take all requests of its hosts.
        match self.hosts.is_empty() && !self.paths.is_empty() {
            true => !is_own_host,
            false => self.paths.is_empty() || self.paths.iter().any(|path| request.path.starts_with(path.as_str())),
        }
    }

    /// What something depends on, as clauses.
    pub(crate) fn clauses<'u>(found: impl Iterator<Item = &'u Self>) -> Vec<String> {
        let clauses: BTreeSet<&str> = found.map(|it| it.clause.as_str()).collect();
        clauses.into_iter().take(MOST_TOLD).map(str::to_owned).collect()
    }

    /// Whether requests in a scope may be among those that it is about.
    fn concerns(&self, scope: &InvariantScope) -> bool {
        let hosts = RequestScope::new(&scope.hosts, &[]);
        let meets_host = self.hosts.is_empty() || self.hosts.iter().any(|host| hosts.meets(host));
        let paths = PathBeginnings::new(self.paths.iter().map(String::as_str).collect());
        let any_path = self.paths.is_empty() || scope.path_prefixes.is_empty();
        meets_host && (any_path || scope.path_prefixes.iter().any(|prefix| paths.meet(prefix)))
    }
}

/// Judges each invariant of a state without a store, from which something is missing. What an invariant `keeps` is unseen, too:
/// no revision precedes the state.
pub(crate) fn prove_seen<'s>(state: &'s Snapshot, unseen: &[Unseen], now: Timestamp) -> Vec<Proof<'s>> {
    let mut guesses: BTreeMap<&Key, Vec<&Unseen>> = BTreeMap::new();
    for it in unseen {
        it.guessed.iter().for_each(|key| guesses.entry(key).or_default().push(it));
    }
    let doubt = |breach: &mut Breach<'s>| {
        let taken_by = [breach.fate.edge, breach.fate.route].into_iter().flatten();
        let mut of_these = taken_by.filter_map(|entry| guesses.get(&entry.key)).flatten();
        if let Some(guess) = of_these.find(|it| it.is_at(&breach.request)) {
            breach.flaw = breach.flaw.clone().guessed(&guess.clause);
        }
    };
    let mut proofs = prove_some(state, StandingInvariant::all(state, now), doubt);
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
        proof.unseen = former.into_iter().chain(Unseen::clauses(concerned)).take(MOST_TOLD).collect();
    }
    proofs
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Kind;
    use crate::routing::tests::{edge_key, route, spec_of};

    #[test]
    fn what_is_unseen_decides_about_the_requests_that_it_may_take() {
        let edge = spec_of(Kind::HttpsEdge, &json!({"hostports": ["shop.example.com:443"]}));
        let route = spec_of(Kind::HttpsEdgeRoute, &route("/docs/", json!({})));
        let [guessed, sure] = ["edghts_1", "edghts_2"].map(edge_key);
        let unseen = || Unseen::new("it".to_owned()).guessing([guessed.clone()]);
        let decides = |unseen: Unseen, url: &str, taken_by: &Key, is_own_host: bool| {
            let request = TracedRequest::new("GET", url).unwrap_or_default();
            unseen.may_decide(&request, &[taken_by], is_own_host)
        };
        let on_edge = || unseen().about(edge.as_ref()).about(route.as_ref());
        assert!(decides(on_edge(), "https://shop.example.com/docs/a", &sure, true));
        assert!(!decides(on_edge(), "https://shop.example.com/admin", &sure, true));
        assert!(decides(on_edge(), "https://shop.example.com/admin", &guessed, true));
        assert!(!decides(on_edge(), "https://wiki.example.com/docs/a", &guessed, true), "another host");
        assert!(!decides(on_edge().at_port(Some(443)), "https://shop.example.com:8443/docs/a", &guessed, true));
        // Nobody knows the hosts of the edge that has the route.
        let anywhere = || unseen().about(route.as_ref());
        assert!(decides(anywhere(), "https://wiki.example.com/admin", &sure, false));
        assert!(!decides(anywhere(), "https://wiki.example.com/docs/a", &sure, true));
        assert!(decides(unseen(), "https://wiki.example.com/docs/a", &sure, true), "it is about everything");
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
