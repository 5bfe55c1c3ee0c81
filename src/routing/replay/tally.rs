//! What a replay has counted: all requests, and either those that are treated differently, by class, or those of each route.

use foldhash::HashMap;

use super::distinct::DistinctCount;
use crate::model::Module as _;
use crate::model::module::backend::Backend;
use crate::model::module::tls_termination::TlsTermination;
use crate::routing::behaviour::{AccessDifference, Fate, FateModule, ModuleLikeness};
use crate::routing::edge_table::RoutedTo;
use crate::routing::enforced_restrictions::{EnforcedRestrictions, OF_ENDPOINTS};
use crate::routing::treatment::RequestOutcome;

/// The most examples of a class.
const MOST_EXAMPLES: usize = 3;

/// The place of a line in the logs: the number of the file, and of the line from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinePlace {
    pub(crate) file: usize,
    pub(crate) line: u64,
}

/// Requests with what they have in sum.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestCount {
    pub(crate) requests: u64,
    /// The bytes of the responses.
    pub(crate) bytes: u64,
    /// The different clients.
    pub(crate) clients: DistinctCount,
}

impl RequestCount {
    /// Adds a request.
    pub(super) fn add(&mut self, bytes: u64, client: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.clients.add(client);
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.clients.merge(other.clients);
    }
}

/// A request of a class.
#[derive(Debug, Clone)]
pub(crate) struct ReplayExample {
    pub(crate) place: LinePlace,
    /// The method and the URL without its query, if they may be shown.
    pub(crate) url: Option<String>,
    /// The client, if it may be shown.
    pub(crate) client: Option<String>,
    /// Of host, port and path: examples differ in them.
    pub(super) hash: u64,
}

/// One side of a class: what becomes of its requests in a state.
#[derive(Debug, Clone)]
pub(crate) struct ReplaySide {
    pub(crate) to: RoutedTo,
    pub(crate) outcome: RequestOutcome,
}

/// Requests that go different ways, or are treated differently on the same one, all in the same manner.
#[derive(Debug, Clone)]
pub(crate) struct ReplayClass {
    pub(crate) before: ReplaySide,
    pub(crate) after: ReplaySide,
    /// The modules that the requests no longer pass.
    pub(crate) lost: Vec<&'static str>,
    /// The modules that they pass now.
    pub(crate) gained: Vec<&'static str>,
    /// The modules that are configured differently; the sides have the backends. Secrets of two routes are not compared.
    pub(crate) changed: Vec<&'static str>,
    /// Whether access opens, in the sense of a plan; a request that a module certainly rejects reaches no backend.
    pub(crate) opens: bool,
    pub(crate) count: RequestCount,
    pub(crate) examples: Vec<ReplayExample>,
}

/// The key of a class: the fates of its requests, and whether access opens, which depends on the port.
pub(super) type ClassKey = (RoutedTo, RoutedTo, RequestOutcome, RequestOutcome, bool);

impl ReplayClass {
    /// Describes the class of a request by where it goes, the fates there, its outcomes, and the restrictions of all endpoints,
    /// before and after. What restricts access depends on the port of the request.
    pub(super) fn new(
        [from, to]: [RoutedTo; 2],
        [then, now]: [&Fate<'_>; 2],
        [was, is]: [RequestOutcome; 2],
        [bounds, new_bounds]: [&EnforcedRestrictions<'_>; 2],
        port: u16,
    ) -> Self {
        let both = then.route.is_some() && now.route.is_some();
        let [had, has] = [then, now].map(|fate| if both { fate.modules() } else { Vec::new() });
        let [was_bound, is_bound] = [bounds, new_bounds].map(|it| both && !it.is_empty());
        let only_if = |is_so: bool| is_so.then_some(OF_ENDPOINTS).into_iter();
        let missing = |modules: &[FateModule<'_>], others: &[FateModule<'_>], of_endpoints: bool| {
            let missing = modules.iter().filter(|it| others.iter().all(|other| other.slot != it.slot));
            only_if(of_endpoints).chain(missing.map(|it| it.slot.name)).collect::<Vec<_>>()
        };
        let differs = has.iter().filter(|it| it.slot.name != Backend::SLOT).filter(|it| {
            let former = had.iter().find(|former| former.slot == it.slot);
            former.is_some_and(|former| former.compare(it) == ModuleLikeness::Different)
        });
        let tls = (both && then.tls() != now.tls()).then_some(TlsTermination::SLOT);
        let differing_bounds = only_if(was_bound && is_bound && !bounds.admit_like(new_bounds));
        let changed = tls.into_iter().chain(differing_bounds).chain(differs.map(|it| it.slot.name)).collect();
        let access_opens = || AccessDifference::new(then, now, port).opens(was.backend_id.is_none());
        let moved_route_opens = || AccessDifference::of_moved_route(then, now, port).is_some();
        let opens = is.backend_id.is_some()
            && (both && (new_bounds.open_since(bounds) || access_opens()) || moved_route_opens());
        Self {
            lost: missing(&had, &has, was_bound && !is_bound),
            gained: missing(&has, &had, is_bound && !was_bound),
            changed,
            opens,
            before: ReplaySide { to: from, outcome: was },
            after: ReplaySide { to, outcome: is },
            count: RequestCount::default(),
            examples: Vec::new(),
        }
    }

    /// The key of the class.
    pub(super) fn key(&self) -> ClassKey {
        (self.before.to, self.after.to, self.before.outcome.clone(), self.after.outcome.clone(), self.opens)
    }

    /// Whether an example with this hash is still wanted.
    pub(super) fn wants(&self, hash: u64) -> bool {
        self.examples.len() < MOST_EXAMPLES && self.examples.iter().all(|example| example.hash != hash)
    }

    fn merge(&mut self, other: Self) {
        self.count.merge(other.count);
        for example in other.examples {
            match self.examples.iter_mut().find(|own| own.hash == example.hash) {
                Some(own) if own.place <= example.place => {}
                Some(own) => *own = example,
                None => self.examples.push(example),
            }
        }
        self.examples.sort_by_key(|example| example.place);
        self.examples.truncate(MOST_EXAMPLES);
    }
}

/// The counts of a replay.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplayTally {
    /// All requests.
    pub(crate) all: RequestCount,
    /// The requests to hosts and ports that no edge serves: before and after, if there are two states.
    pub(crate) without_edge: u64,
    /// The requests that are treated differently.
    pub(crate) differing: RequestCount,
    classes: HashMap<ClassKey, ReplayClass>,
    /// The requests by where they go, if there is only one state.
    pub(crate) counts: HashMap<RoutedTo, RequestCount>,
}

impl ReplayTally {
    /// Collects what a worker has counted.
    pub(super) fn new(
        (all, without_edge): (RequestCount, u64),
        differing: RequestCount,
        classes: Vec<ReplayClass>,
        counts: Vec<(RoutedTo, RequestCount)>,
    ) -> Self {
        let classes = classes.into_iter().map(|class| (class.key(), class)).collect();
        Self { all, without_edge, differing, classes, counts: counts.into_iter().collect() }
    }

    /// Adds what another worker has counted with the same states.
    #[must_use]
    pub(crate) fn merged(mut self, other: Self) -> Self {
        self.all.merge(other.all);
        self.without_edge += other.without_edge;
        self.differing.merge(other.differing);
        for (key, class) in other.classes {
            match self.classes.get_mut(&key) {
                Some(own) => own.merge(class),
                None => drop(self.classes.insert(key, class)),
            }
        }
        for (to, count) in other.counts {
            self.counts.entry(to).or_default().merge(count);
        }
        self
    }

    /// The classes of the requests that are treated differently: those that open access first, then those with the most
    /// requests.
    pub(crate) fn classes(&self) -> Vec<&ReplayClass> {
        let mut classes: Vec<(&ClassKey, &ReplayClass)> = self.classes.iter().collect();
        classes.sort_by(|(key, one), (other_key, other)| {
            let by_count = other.count.requests.cmp(&one.count.requests);
            other.opens.cmp(&one.opens).then(by_count).then_with(|| key.cmp(other_key))
        });
        classes.into_iter().map(|(_, class)| class).collect()
    }
}
