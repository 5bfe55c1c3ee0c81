//! What a replay has counted: all requests, and either those that are treated differently, by class, or those of each route.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::distinct::DistinctCount;
use super::treatment::{ReplayVerdict, RequestTreatment, enabled};
use crate::routing::edge_table::{EdgeTable, RoutedTo};
use crate::routing::module_pipeline::PipelineStep;

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
    pub(crate) verdict: ReplayVerdict,
    pub(crate) backend_id: Option<String>,
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
    /// The modules that do something else.
    pub(crate) changed: Vec<&'static str>,
    /// Whether something that restricts access is gone.
    pub(crate) opens: bool,
    pub(crate) count: RequestCount,
    pub(crate) examples: Vec<ReplayExample>,
}

/// What tells classes apart.
pub(super) type ClassKey = (RoutedTo, RoutedTo, ReplayVerdict, ReplayVerdict);

impl ReplayClass {
    /// Describes the class of a request by its treatments before and after.
    pub(super) fn new(
        states: [&EdgeTable<'_>; 2],
        [from, to]: [RoutedTo; 2],
        [before, after]: [RequestTreatment; 2],
    ) -> Self {
        let [old, new] = states;
        let both = old.edge_and_route(from).is_some() && new.edge_and_route(to).is_some();
        let names = |steps: &[PipelineStep], is_wanted: &dyn Fn(&PipelineStep) -> bool| {
            steps.iter().filter(|step| both && is_wanted(step)).map(|step| step.module).collect::<Vec<_>>()
        };
        let find =
            |steps: &[PipelineStep], step: &PipelineStep| steps.iter().find(|it| it.module == step.module).cloned();
        let lost = names(&before.steps, &|step| find(&after.steps, step).is_none());
        let gained = names(&after.steps, &|step| find(&before.steps, step).is_none());
        let changed = names(&after.steps, &|step| find(&before.steps, step).is_some_and(|was| was != *step));
        let is_open = matches!(after.verdict, ReplayVerdict::Forwarded | ReplayVerdict::Depends(_));
        let was_refused = matches!(before.verdict, ReplayVerdict::Refused(_));
        let (was, is) = (restricting(old, from), restricting(new, to));
        let opens = is_open && both && (was_refused || was.difference(&is).next().is_some());
        Self {
            before: ReplaySide { to: from, verdict: before.verdict, backend_id: before.backend_id },
            after: ReplaySide { to, verdict: after.verdict, backend_id: after.backend_id },
            lost,
            gained,
            changed,
            opens,
            count: RequestCount::default(),
            examples: Vec::new(),
        }
    }

    /// What tells the class apart.
    pub(super) fn key(&self) -> ClassKey {
        (self.before.to, self.after.to, self.before.verdict.clone(), self.after.verdict.clone())
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

/// What restricts access where a request goes. A login that replaces another one opens nothing.
fn restricting(state: &EdgeTable<'_>, to: RoutedTo) -> BTreeSet<&'static str> {
    let modules = state.hosts_of_modules(to).map(enabled).unwrap_or_default();
    let restricting = modules.into_iter().filter(|(_, module)| module.restricts_access());
    restricting.map(|(slot, _)| if slot.is_login { "login" } else { slot.name }).collect()
}

/// What a replay has counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplayTally {
    /// All requests.
    pub(crate) all: RequestCount,
    /// The requests that are treated differently.
    pub(crate) differing: RequestCount,
    classes: HashMap<ClassKey, ReplayClass>,
    /// The requests by where they go, if there is only one state.
    pub(crate) counts: HashMap<RoutedTo, RequestCount>,
}

impl ReplayTally {
    /// Collects what a worker has counted.
    pub(super) fn new(
        all: RequestCount,
        differing: RequestCount,
        classes: Vec<ReplayClass>,
        counts: Vec<(RoutedTo, RequestCount)>,
    ) -> Self {
        let classes = classes.into_iter().map(|class| (class.key(), class)).collect();
        Self { all, differing, classes, counts: counts.into_iter().collect() }
    }

    /// Adds what another worker has counted with the same states.
    #[must_use]
    pub(crate) fn merged(mut self, other: Self) -> Self {
        self.all.merge(other.all);
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
