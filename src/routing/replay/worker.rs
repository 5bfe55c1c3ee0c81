//! Counts requests by what becomes of them in one state, or by what differs between two.

use std::borrow::Cow;
use std::hash::BuildHasher as _;
use std::net::IpAddr;

use foldhash::quality::FixedState;
use foldhash::{HashMap, HashMapExt as _};

use super::decision_cache::DecisionCache;
use super::tally::{ClassKey, LinePlace, ReplayClass, ReplayExample, ReplayTally, RequestCount};
use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::traffic::{PLAIN_HTTP, TracedRequest};
use crate::model::{AnyModule, Slot};
use crate::routing::behaviour::{Fate, url_of};
use crate::routing::edge_table::{EdgeTable, RoutedTo};
use crate::routing::module_pipeline::staged_steps;
use crate::routing::treatment::{RequestKnowledge, RequestTreatment};

/// The most outcomes that are remembered. Then the next ones begin anew: agents and addresses can be any.
const MOST_OUTCOMES: usize = 1 << 16;

/// A logged request.
#[derive(Debug, Clone)]
pub(crate) struct LoggedRequest<'l> {
    pub(crate) method: Cow<'l, str>,
    /// The host in its normal form.
    pub(crate) host: Cow<'l, str>,
    pub(crate) port: u16,
    /// The path without the query.
    pub(crate) path: Cow<'l, str>,
    pub(crate) client: Cow<'l, [u8]>,
    pub(crate) user_agent: Option<Cow<'l, str>>,
    pub(crate) bytes: u64,
}

/// The details of a request in examples.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShownDetails {
    pub(crate) urls: bool,
    pub(crate) clients: bool,
}

/// The comparison of the two ways of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairEffect {
    /// Every request is treated alike.
    Same,
    /// There is one state, and its requests are counted here.
    Counted(usize),
    /// Requests may be treated differently, and it may depend on the User-Agent and on the address of the client.
    Differs { by_agent: bool, by_address: bool },
}

/// Counts requests. Several workers can count parts of a log.
pub(crate) struct ReplayWorker<'r, 's> {
    before: &'r EdgeTable<'s>,
    after: Option<&'r EdgeTable<'s>>,
    shown: ShownDetails,
    hasher: FixedState,
    decisions: DecisionCache,
    pairs: Vec<([RoutedTo; 2], PairEffect)>,
    pair_of: HashMap<[RoutedTo; 2], usize>,
    /// The compiled patterns of the filters that requests have met.
    patterns: CompiledPatterns,
    /// The class of a pair with a method and with or without TLS, and with an agent and an address if they matter; none if nothing
    /// differs.
    outcomes: HashMap<Vec<u8>, Option<usize>>,
    all: RequestCount,
    /// The requests to hosts that no edge serves in any state.
    without_edge: u64,
    differing: RequestCount,
    classes: Vec<ReplayClass>,
    class_of: HashMap<ClassKey, usize>,
    counts: Vec<(RoutedTo, RequestCount)>,
    /// The key of a search, whose memory is used again.
    key: Vec<u8>,
}

impl<'r, 's> ReplayWorker<'r, 's> {
    /// Prepares to count requests in one state, or those that another one treats differently.
    pub(crate) fn new(before: &'r EdgeTable<'s>, after: Option<&'r EdgeTable<'s>>, shown: ShownDetails) -> Self {
        Self {
            before,
            after,
            shown,
            hasher: FixedState::default(),
            decisions: DecisionCache::default(),
            pairs: Vec::new(),
            pair_of: HashMap::new(),
            patterns: CompiledPatterns::default(),
            outcomes: HashMap::new(),
            all: RequestCount::default(),
            without_edge: 0,
            differing: RequestCount::default(),
            classes: Vec::new(),
            class_of: HashMap::new(),
            counts: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Counts a request. The places of a worker's requests rise.
    pub(crate) fn count(&mut self, request: &LoggedRequest<'_>, place: LinePlace) {
        let client = self.hasher.hash_one(&*request.client);
        self.all.add(request.bytes, client);
        let (pair, hash) = self.pair_of_request(request);
        let Some(&(places, effect)) = self.pairs.get(pair) else { return };
        self.without_edge += u64::from(places == [RoutedTo::Nowhere; 2]);
        let class = match effect {
            PairEffect::Same => return,
            PairEffect::Counted(at) => {
                if let Some((_, count)) = self.counts.get_mut(at) {
                    count.add(request.bytes, client);
                }
                return;
            }
            PairEffect::Differs { by_agent, by_address } => self.class_of_request(pair, by_agent, by_address, request),
        };
        let Some(class) = class.and_then(|at| self.classes.get_mut(at)) else { return };
        self.differing.add(request.bytes, client);
        class.count.add(request.bytes, client);
        if class.wants(hash) {
            let url = self.shown.urls.then(|| format!("{} {}", request.method, url_of(&traced(request))));
            let client = self.shown.clients.then(|| String::from_utf8_lossy(&request.client).into_owned());
            class.examples.push(ReplayExample { place, url, client, hash });
        }
    }

    /// Returns the counts.
    pub(crate) fn finish(self) -> ReplayTally {
        ReplayTally::new((self.all, self.without_edge), self.differing, self.classes, self.counts)
    }

    /// The pair of places where a request goes, and the hash of its host, port and path.
    fn pair_of_request(&mut self, request: &LoggedRequest<'_>) -> (usize, u64) {
        self.key.clear();
        self.key.extend_from_slice(request.host.as_bytes());
        self.key.push(0);
        self.key.extend_from_slice(&request.port.to_le_bytes());
        self.key.extend_from_slice(request.path.as_bytes());
        let hash = self.hasher.hash_one(self.key.as_slice());
        if let Some(pair) = self.decisions.find(hash, &self.key) {
            return (pair, hash);
        }
        let from = self.before.route(&request.host, request.port, &request.path);
        let to = self.after.map_or(from, |after| after.route(&request.host, request.port, &request.path));
        let pair = match self.pair_of.get(&[from, to]) {
            Some(known) => *known,
            None => self.add_pair([from, to], request),
        };
        self.decisions.keep(hash, &self.key, pair);
        (pair, hash)
    }

    fn add_pair(&mut self, pair: [RoutedTo; 2], request: &LoggedRequest<'_>) -> usize {
        let [from, _] = pair;
        let effect = match self.after {
            None => {
                self.counts.push((from, RequestCount::default()));
                PairEffect::Counted(self.counts.len() - 1)
            }
            Some(after) => effect([self.before, after], pair, request, &mut self.patterns),
        };
        self.pairs.push((pair, effect));
        self.pair_of.insert(pair, self.pairs.len() - 1);
        self.pairs.len() - 1
    }

    /// The class of a request that may be treated differently; none if it is not.
    fn class_of_request(
        &mut self,
        pair: usize,
        by_agent: bool,
        by_address: bool,
        request: &LoggedRequest<'_>,
    ) -> Option<usize> {
        self.key.clear();
        self.key.extend_from_slice(&pair.to_le_bytes());
        self.key.push(u8::from(request.port == PLAIN_HTTP));
        self.key.extend_from_slice(request.method.as_bytes());
        if by_agent {
            self.key.push(0);
            let agent = request.user_agent.as_deref();
            self.key.push(u8::from(agent.is_some()));
            self.key.extend_from_slice(agent.unwrap_or_default().as_bytes());
        }
        if by_address {
            self.key.push(0);
            self.key.extend_from_slice(&request.client);
        }
        if let Some(known) = self.outcomes.get(self.key.as_slice()) {
            return *known;
        }
        let class = self.judge(pair, request);
        if self.outcomes.len() >= MOST_OUTCOMES {
            self.outcomes.clear();
        }
        self.outcomes.insert(self.key.clone(), class);
        class
    }

    /// Sends a request where it goes.
    fn treatment(&mut self, edges: &EdgeTable<'_>, to: RoutedTo, request: &TracedRequest) -> RequestTreatment {
        match edges.hosts_of_modules(to) {
            None => RequestTreatment::unserved(),
            Some(hosts) => {
                let steps = staged_steps(request, hosts, edges.endpoints().step(), &mut self.patterns);
                RequestTreatment::new(steps, RequestKnowledge::Log)
            }
        }
    }

    /// Treats a request in both states, and finds or adds its class.
    fn judge(&mut self, pair: usize, request: &LoggedRequest<'_>) -> Option<usize> {
        let ([from, to], _) = *self.pairs.get(pair)?;
        let after = self.after?;
        let client_ip = std::str::from_utf8(&request.client).ok().and_then(|client| client.parse::<IpAddr>().ok());
        let user_agent = request.user_agent.as_deref().map(str::to_owned);
        let traced = TracedRequest { client_ip, user_agent, ..traced(request) };
        let [was, is] = [(self.before, from), (after, to)].map(|(edges, to)| self.treatment(edges, to, &traced));
        let [then, now] = [fate(self.before, from), fate(after, to)];
        let is_same_place = self.before.keys(from) == after.keys(to);
        let passes_alike = |slot: &Slot| was.passes_like(&is, slot.name);
        let endpoints = [self.before.endpoints(), after.endpoints()];
        let [bounds, new_bounds] = endpoints;
        let is_alike = || bounds.admit_like(new_bounds) && then.is_like_with(&now, Some(request.port), passes_alike);
        if is_same_place && (was.is_rejected_like(&is) || is_alike()) {
            return None;
        }
        let class = ReplayClass::new([from, to], [&then, &now], [was.outcome, is.outcome], endpoints, request.port);
        let key = class.key();
        if let Some(known) = self.class_of.get(&key) {
            return Some(*known);
        }
        self.classes.push(class);
        self.class_of.insert(key, self.classes.len() - 1);
        Some(self.classes.len() - 1)
    }
}

/// The fate of requests that go to a place.
fn fate<'s>(edges: &EdgeTable<'s>, to: RoutedTo) -> Fate<'s> {
    let state = edges.state().snapshot;
    let [edge, route] = edges.keys(to).map(|key| key.and_then(|key| state.get(key)));
    Fate::new(state, edge, route)
}

/// Whether requests may be treated differently that go to these places, and what it depends on.
fn effect(
    [before, after]: [&EdgeTable<'_>; 2],
    [from, to]: [RoutedTo; 2],
    request: &LoggedRequest<'_>,
    patterns: &mut CompiledPatterns,
) -> PairEffect {
    let (then, now) = (fate(before, from), fate(after, to));
    let is_restricted_alike = || now.route.is_none() || before.endpoints().admit_like(after.endpoints());
    if before.keys(from) == after.keys(to) && then.is_like(&now) && is_restricted_alike() {
        return PairEffect::Same;
    }
    // A module that looks at something says so in its steps: the effect differs, or the note.
    let traced = traced(request);
    let modules: Vec<&dyn AnyModule> = then.modules().iter().chain(&now.modules()).map(|it| it.module).collect();
    let mut looks_at = |changed: &TracedRequest| {
        modules.iter().any(|module| module.steps_with(&traced, patterns) != module.steps_with(changed, patterns))
    };
    let by_agent = looks_at(&TracedRequest { user_agent: Some("agent".to_owned()), ..traced.clone() });
    let by_address = looks_at(&TracedRequest { client_ip: Some(IpAddr::from([192, 0, 2, 1])), ..traced.clone() });
    PairEffect::Differs { by_agent, by_address }
}

/// The request, without what few modules look at.
fn traced(request: &LoggedRequest<'_>) -> TracedRequest {
    TracedRequest {
        method: request.method.to_ascii_uppercase(),
        host: request.host.to_string(),
        port: request.port,
        path: request.path.to_string(),
        ..TracedRequest::default()
    }
}
