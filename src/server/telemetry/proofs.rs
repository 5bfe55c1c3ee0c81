//! The answers about the invariants as of a moment ago (D120), so that neither a scrape nor a status waits for a proof.
//!
//! A thread looks for new revisions. It proves again only if something has changed on which invariants depend, or if an exemption
//! has ended, with a low priority, and it rests much longer than it works. The answers say of which revision they are. Whoever
//! needs those of the current revision proves in place of the thread, and what it finds is kept, too: each such revision is
//! proven once, however many ask.

use std::sync::OnceLock;

use super::metrics::inventory::Expiry;
use crate::background::{ThreadGuard, lower_priority};
use crate::model::kind::invariant::Invariant;
use crate::plan::proof_report::ProofReport;
use crate::routing::invariant::depend_on;
use crate::server::prelude::*;

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(1);
/// How many times longer it rests than a proof took.
const REST: u32 = 20;
/// The most invariants whose exemptions have series of their own: those whose exemptions end first.
const MOST_EXPIRIES: usize = 1000;

/// The last answers.
#[derive(Default)]
pub(crate) struct ProofCache {
    last: Lock<Arc<ProvenState>>,
    /// Held by whoever proves. Those who wait for it find the answers then.
    proving: Lock<()>,
    thread: OnceLock<ThreadGuard>,
}

/// The answers about the invariants of a state.
#[derive(Default)]
pub(in crate::server) struct ProvenState {
    state: Arc<Snapshot>,
    /// When the next exemption ends, and the answers with it.
    until: Option<Timestamp>,
    /// The answers.
    pub report: Arc<ProofReport>,
    /// When the first exemption of each invariant ends.
    pub expiries: Vec<Expiry>,
}

impl ProofCache {
    /// Starts to prove the invariants of a store. The thread ends with the store, too.
    pub(in crate::server) fn start(store: &Arc<Store>) -> Arc<Self> {
        let cache = Arc::new(Self::default());
        let (store, kept) = (Arc::downgrade(store), Arc::downgrade(&cache));
        let thread = ThreadGuard::start("proofs", move |goes_on| {
            lower_priority();
            let mut rest = Duration::ZERO;
            while goes_on(rest) {
                let began = Instant::now();
                let Some(kept) = kept.upgrade() else { return };
                // A store that is not in use any longer does not wait for a proof.
                if kept.refreshed_to(|| store.upgrade().map(|store| store.snapshot())).is_none() {
                    return;
                }
                rest = PERIOD.max(began.elapsed().saturating_mul(REST));
            }
        });
        match thread {
            Ok(thread) => drop(cache.thread.set(thread)),
            Err(error) => tracing::warn!("The metrics and the status of sources have no invariants: {error}"),
        }
        cache
    }

    /// The last answers; none of revision 0 before the first ones.
    pub(in crate::server) fn last(&self) -> Arc<ProvenState> {
        Arc::clone(&self.last.lock())
    }

    /// The last answers, if they are those of the current revision.
    pub(in crate::server) fn current(&self, store: &Store) -> Option<Arc<ProvenState>> {
        let known = self.last();
        known.stands(&store.snapshot(), clock::now()).then_some(known)
    }

    /// The answers of the current revision. Proves them if they are not known.
    pub(in crate::server) fn refreshed(&self, store: &Store) -> Arc<ProvenState> {
        self.refreshed_to(|| Some(store.snapshot())).unwrap_or_default()
    }

    /// The answers about the state that is current once nobody else proves; none if there is no state any longer.
    fn refreshed_to(&self, current: impl FnOnce() -> Option<Arc<Snapshot>>) -> Option<Arc<ProvenState>> {
        let _proving = self.proving.lock();
        let (state, known) = (current()?, self.last());
        let Some(next) = known.next(state, clock::now()) else { return Some(known) };
        let next = Arc::new(next);
        *self.last.lock() = Arc::clone(&next);
        Some(next)
    }
}

impl ProvenState {
    /// The revision.
    pub(in crate::server) fn revision(&self) -> u64 {
        self.state.revision
    }

    /// Whether an exemption has ended since.
    fn has_ended(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Whether the answers are those of a state.
    fn stands(&self, state: &Snapshot, now: Timestamp) -> bool {
        !self.has_ended(now) && self.state.is_same(state)
    }

    /// Answers for a later state; none if it is the same one and no exemption has ended since.
    fn next(&self, state: Arc<Snapshot>, now: Timestamp) -> Option<Self> {
        if self.stands(&state, now) {
            return None;
        }
        if !self.has_ended(now) && !state.changed_since(&self.state).any(|key| depend_on(key.kind)) {
            let (report, expiries) = (Arc::clone(&self.report), self.expiries.clone());
            return Some(Self { state, until: self.until, report, expiries });
        }
        let (mut until, mut expiries) = (None, Vec::new());
        for entry in state.newest_first(Kind::Invariant, None, u64::MAX) {
            let exemptions = entry.spec_as::<Invariant>().into_iter().flat_map(|it| &it.exemptions);
            let ends: Vec<Timestamp> = exemptions.filter_map(|it| it.end()).collect();
            until = until.into_iter().chain(ends.iter().copied().filter(|end| *end > now)).min();
            if let Some(first) = ends.iter().min() {
                let name = entry.name().unwrap_or_default().to_owned();
                expiries.push(Expiry { second: first.as_second(), id: entry.key.id.to_string(), name });
            }
        }
        expiries.sort_by_key(|expiry| expiry.second);
        expiries.truncate(MOST_EXPIRIES);
        let report = Arc::new(ProofReport::new(&state, now));
        Some(Self { state, until, report, expiries })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{AnyResource, Entry, Operation};

    #[test]
    fn whoever_asks_later_gets_what_was_proven() {
        let answers = ProofCache::default();
        let state = Arc::new(Snapshot::restore(7, 0, [], Vec::<Entry>::new()));
        let proven = answers.refreshed_to(|| Some(Arc::clone(&state))).unwrap();
        assert_eq!(proven.revision(), 7);
        let again = answers.refreshed_to(|| Some(state)).unwrap();
        assert!(Arc::ptr_eq(&again, &proven) && Arc::ptr_eq(&answers.last(), &proven));
        assert!(answers.refreshed_to(|| None).is_none());
    }

    #[test]
    fn answers_are_those_of_a_new_proof_and_stay_while_nothing_changes_that_matters() {
        let create = |kind: Kind, id: &str, spec: Value| {
            let spec: Arc<dyn AnyResource> = (kind.info().restore)(&spec.to_string()).unwrap();
            Operation::Create { key: Key::new(kind, Id::new(id)), spec, claim: None, token: None }
        };
        let now: Timestamp = "2027-01-15T12:00:00Z".parse().unwrap();
        let applied = |state: &Snapshot, operation: Operation| Arc::new(state.apply(&[operation], now).unwrap().0);
        let exemption = json!({"hosts": ["a.example.com"], "owner": "o", "reason": "r", "expires": "2027-01-20"});
        let spec = json!({"description": "d", "min_tls_version": "1.3", "exemptions": [exemption]});
        let first = applied(&Snapshot::default(), create(Kind::Invariant, "inv_1", spec));
        let proven = ProvenState::default().next(Arc::clone(&first), now).unwrap();
        assert!(proven.next(Arc::clone(&first), now).is_none());
        let ends: Vec<(&str, i64)> = proven.expiries.iter().map(|it| (it.id.as_str(), it.second)).collect();
        let end: Timestamp = "2027-01-21T00:00:00Z".parse().unwrap();
        assert_eq!(ends, [("inv_1", end.as_second())]);

        let owner = applied(&first, create(Kind::Owner, "own_1", json!({"role": "viewer"})));
        let same = proven.next(Arc::clone(&owner), now).unwrap();
        assert!(Arc::ptr_eq(&same.report, &proven.report) && same.revision() == owner.revision);

        let edge = create(Kind::HttpsEdge, "edghts_1", json!({"hostports": ["a.example.com:443"]}));
        let edges = applied(&owner, edge);
        let exempt = same.next(Arc::clone(&edges), now).unwrap();
        assert_eq!(*exempt.report, ProofReport::new(&edges, now));
        assert!(exempt.next(Arc::clone(&edges), now).is_none());
        let ended = exempt.next(Arc::clone(&edges), end).unwrap();
        assert_eq!(*ended.report, ProofReport::new(&edges, end));
        assert_ne!(ended.report, exempt.report);
        assert!(ended.next(edges, end).is_none());
    }
}
