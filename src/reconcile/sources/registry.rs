//! The sources that a server follows now, in the order of the configuration. A reload changes them (D91).
//!
//! A request reads the list once and sees one state of it, while a reload replaces the whole list. A removed handle
//! stays valid for its holders; its loop is asked to end.

use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::forge_links::ForgeLinks;
use super::handle::SourceHandle;
use crate::reconcile::prelude::*;
use crate::reconcile::run::cancel::Cancel;

/// The parts of a server that have not started, and are tried again: why, and the sources that nobody follows meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnstartedParts {
    pub reason: String,
    pub sources: Vec<String>,
}

/// The followed sources. Clones share one list, so that requests, metrics and signals see the same sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceRegistry {
    all: Arc<ArcSwap<Vec<Arc<SourceHandle>>>>,
    /// The links of each configured source to its forge. A server that follows another one has no handles, but shows them too.
    forges: Arc<ArcSwap<BTreeMap<String, ForgeLinks>>>,
    /// Why no source is followed although the server should follow them, if that is so.
    unstarted: Arc<ArcSwapOption<UnstartedParts>>,
    /// Whether the configuration file that lists them has an error, so that an earlier version is in effect.
    is_outdated: Arc<AtomicBool>,
    /// Set when the server stops.
    stopping: Cancel,
}

impl SourceRegistry {
    /// Creates a list of sources.
    pub(crate) fn new(all: Vec<Arc<SourceHandle>>) -> Self {
        let list = Self::default();
        list.set(all);
        list
    }

    /// The sources now. A caller that reads it once sees one state.
    pub(crate) fn now(&self) -> Arc<Vec<Arc<SourceHandle>>> {
        self.all.load_full()
    }

    /// The sources now, one by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<SourceHandle>> + use<> {
        self.now().to_vec().into_iter()
    }

    /// The source with a name.
    pub(crate) fn find(&self, source: &str) -> Option<Arc<SourceHandle>> {
        self.iter().find(|handle| handle.source == source)
    }

    /// The parts that have not started, if there are any.
    pub(crate) fn unstarted(&self) -> Option<Arc<UnstartedParts>> {
        self.unstarted.load_full()
    }

    /// Records the parts that have not started.
    pub(crate) fn set_unstarted(&self, parts: UnstartedParts) {
        self.unstarted.store(Some(Arc::new(parts)));
    }

    /// Whether the server follows a source, or will do so as soon as its parts start.
    pub(crate) fn is_configured(&self, source: &str) -> bool {
        let waits = |parts: Arc<UnstartedParts>| parts.sources.iter().any(|name| name == source);
        self.find(source).is_some() || self.unstarted().is_some_and(waits)
    }

    /// The links of a source to its forge.
    pub(crate) fn forge(&self, source: &str) -> ForgeLinks {
        self.forges.load().get(source).cloned().unwrap_or_default()
    }

    /// Replaces the links of all sources.
    pub(crate) fn set_forges(&self, forges: BTreeMap<String, ForgeLinks>) {
        self.forges.store(Arc::new(forges));
    }

    /// Requests syncs after a plan of a source was applied: at all others if resources changed hands or were offered, and at
    /// those that wait for others anyway. Without a sync, their status would have old warnings until the next one is due.
    pub(crate) fn request_syncs_after(&self, source: &str, plan: &Plan) {
        if plan.is_empty() {
            return;
        }
        let gives = plan.each_operation().iter().any(|operation| matches!(operation, Operation::Claim { .. }));
        let concerned =
            |it: &Arc<SourceHandle>| it.source != source && (gives || it.status.current().findings.waits_for_others);
        self.iter().filter(concerned).for_each(|handle| handle.request_sync());
    }

    /// Shows which sources a rollback undid before their next syncs, and requests these. Takes the states before and after it.
    pub(crate) fn note_rollback(&self, store: &Store, before: &Snapshot, after: &Snapshot) {
        for handle in self.iter() {
            let rejected = after.rejected(&handle.source);
            if !rejected.is_empty() && rejected != before.rejected(&handle.source) {
                handle.note_rollback(store, after);
            }
            handle.request_sync();
        }
    }

    /// Replaces the list. If the server is stopping, the loops of the new one stop too.
    pub(crate) fn set(&self, all: Vec<Arc<SourceHandle>>) {
        self.all.store(Arc::new(all));
        if self.is_stopping() {
            self.stop();
        }
    }

    /// Whether an earlier version of the configuration file is in effect.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    /// Records whether the configuration file is in effect.
    pub(crate) fn set_outdated(&self, is_outdated: bool) {
        self.is_outdated.store(is_outdated, Ordering::Relaxed);
    }

    /// Asks all loops to stop, those of later lists included.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
        self.iter().for_each(|handle| handle.stop());
    }

    /// Whether the server is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::reconcile::Options;
    use crate::reconcile::sources::handle::{FollowedSource, INTERVAL};
    use crate::reconcile::sync_loop::clock::Clock;
    use crate::reconcile::sync_loop::suspension::SourceRecords;

    fn handle(name: &str) -> Arc<SourceHandle> {
        let records = SourceRecords::open(Arc::new(Store::open("memory:").unwrap())).unwrap();
        let options = Options { source: name.to_owned(), ..Options::default() };
        let source = FollowedSource { options, interval: INTERVAL, ..FollowedSource::default() };
        Arc::new(SourceHandle::new(&source, Arc::new(records), channel().0, None, Clock::default()))
    }

    #[test]
    fn clones_share_the_list_and_a_list_of_a_stopping_server_stops() {
        let list = SourceRegistry::new(vec![handle("a")]);
        let other = list.clone();
        let late = handle("b");
        list.set(vec![Arc::clone(&late)]);
        assert_eq!(other.iter().map(|it| it.source.clone()).collect::<Vec<_>>(), ["b"]);
        assert!(!late.is_stopping());
        other.stop();
        assert!(late.is_stopping() && list.is_stopping());
        let later = handle("c");
        list.set(vec![Arc::clone(&later)]);
        assert!(later.is_stopping());
    }
}
