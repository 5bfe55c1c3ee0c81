//! What others have changed of the followed sources' resources, as of now (D85).
//!
//! # The problem
//!
//! A sync finds drift with its plan. Between two syncs, and while manifests have errors, there is no plan, and a status that
//! waits for one says meanwhile that nobody has changed anything.
//!
//! # The idea
//!
//! The history has every write. What the last whole plan of a source has found holds for the revision that it was computed
//! from; the records since then say which resources others have written. Each of these is compared once with what the source
//! applied last: its present state with the writes of others undone. The result holds until the resource changes again.
//!
//! For example, a commit breaks the manifests of `shop`, and then a key sets a description. No sync can tell, but the record of
//! that write names a resource of `shop`, and undoing it gives another description.
//!
//! # What it never does
//!
//! It reads no record twice, and not those that a plan has covered, so a page that asks every second costs a look at the last
//! position. It does not know the manifests: whether these have changed the same field is for the next plan to say.

use super::handle::SourceHandle;
use crate::model::drift::only_others_changed;
use crate::model::{DriftedResource, Entry};
use crate::reconcile::prelude::*;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::reconcile::sync_loop::known_condition::baseline;
use crate::reconcile::sync_loop::status::{MOST_DRIFTED, SourceStatus};
use crate::store::{CommitHeader, Query};

/// The most headers that are read, also after a gap and at the start.
const MOST_RECORDS: usize = 1_000;
/// The most resources of a commit, and of all, that are remembered as written.
const MOST_CHANGED: usize = 1_000;
const MOST_WRITTEN: usize = 10_000;
/// The most resources of a source that are compared for one question. The next one goes on.
const MOST_LOOKUPS: usize = 500;

/// The drift of a source, as of now.
#[derive(Debug, Default)]
pub(crate) struct KnownDrift {
    /// The number of resources that only others have changed.
    pub count: usize,
    /// The first of them, and those that the manifests have changed, too.
    pub resources: Vec<DriftedResource>,
    /// Whether some were changed after the last sync that could tell.
    pub is_recent: bool,
    /// If not all is known, the revision from which on it is.
    pub since: Option<u64>,
}

/// The writes of others since the last plans of the followed sources.
#[derive(Default)]
pub(crate) struct RecentDrift(Lock<ReadRecords>);

#[derive(Default)]
struct ReadRecords {
    /// The sources that they were read for.
    sources: BTreeSet<String>,
    /// The position of the newest record that was read.
    newest: u64,
    /// The first revision from which on all were read.
    from: u64,
    /// The resources of the sources that were written since.
    written: BTreeMap<Key, WrittenResource>,
}

/// A resource that others have written.
struct WrittenResource {
    source: String,
    name: String,
    /// The revision that changed it last.
    revision: u64,
    drift: WrittenDrift,
}

/// The drift of a resource that others have written.
enum WrittenDrift {
    /// Nobody has asked since it was written.
    NotLookedUp,
    /// There is none: the resource is as its source applied it.
    InSync,
    Drifted(Drift),
}

impl RecentDrift {
    /// Returns the drift of each followed source, in their order.
    pub(crate) fn current(&self, store: &Store, followed: &[(&SourceHandle, &SourceStatus)]) -> Vec<KnownDrift> {
        if followed.is_empty() {
            return Vec::new();
        }
        let mut read = self.0.lock();
        let snapshot = store.snapshot();
        let updated = read.update(store, &snapshot, followed);
        if let Err(error) = &updated {
            // What was not read to its end is read again.
            read.newest = 0;
            tracing::warn!(code = %error.code, "cannot read from the history what others have changed: {error}");
        }
        let unknown = updated.is_err().then_some(snapshot.revision);
        let known = followed.iter().map(|(handle, status)| {
            let known = read.known(&snapshot, handle, status);
            KnownDrift { since: known.since.or(unknown), ..known }
        });
        known.collect()
    }
}

impl ReadRecords {
    /// Takes in what was written up to a state.
    fn update(
        &mut self,
        store: &Store,
        snapshot: &Snapshot,
        followed: &[(&SourceHandle, &SourceStatus)],
    ) -> Result<(), StoreError> {
        let sources: BTreeSet<String> = followed.iter().map(|(handle, _)| handle.source.clone()).collect();
        if sources != self.sources {
            *self = Self { sources, ..Self::default() };
        }
        let planned_at = |status: &SourceStatus| status.findings.planned_at.unwrap_or_default();
        let planned: HashMap<&str, u64> =
            followed.iter().map(|(handle, status)| (handle.source.as_str(), planned_at(status))).collect();
        let is_newer = |it: &WrittenResource| planned.get(it.source.as_str()).is_none_or(|at| it.revision > *at);
        self.written.retain(|_, it| is_newer(it));
        let covered = planned.values().copied().min().unwrap_or_default();
        let has_drift = |(_, status): &&(&SourceHandle, &SourceStatus)| !status.findings.drift.is_empty();
        let drifted: BTreeSet<&str> =
            followed.iter().filter(has_drift).map(|(handle, _)| handle.source.as_str()).collect();
        for header in self.read_new(store, snapshot.revision, covered)? {
            self.note(store, snapshot, &header, &drifted)?;
        }
        self.written.retain(|_, it| is_newer(it));
        followed.iter().try_for_each(|(handle, _)| self.look_up(store, snapshot, &handle.source))
    }

    /// Reads the headers of the revisions after those that were read or that all plans cover, up to one, the oldest first.
    fn read_new(&mut self, store: &Store, upto: u64, covered: u64) -> Result<Vec<CommitHeader>, StoreError> {
        if store.position() == self.newest {
            return Ok(Vec::new());
        }
        let (mut found, mut before, mut newest) = (Vec::new(), u64::MAX, None);
        let (mut from, mut is_joined) = (upto.saturating_add(1), false);
        for header in store.headers_before(&Query::All, u64::MAX).take(MOST_RECORDS) {
            let header = header?;
            before = header.position;
            is_joined = header.position <= self.newest;
            let is_covered = header.revision.is_some_and(|revision| revision <= covered);
            if is_joined || is_covered {
                newest.get_or_insert(header.position);
                from = covered.saturating_add(1);
                break;
            }
            match header.revision {
                // The state does not have it yet.
                Some(revision) if revision > upto => newest = Some(header.position.saturating_sub(1)),
                revision => {
                    newest.get_or_insert(header.position);
                    from = revision.unwrap_or(from);
                    found.extend(revision.map(|_| header));
                }
            }
        }
        if !is_joined {
            self.written.clear();
            // Before the first record, nothing was written.
            self.from = if before == 1 { 0 } else { from };
        }
        self.newest = newest.unwrap_or(self.newest);
        found.reverse();
        Ok(found)
    }

    /// Notes what a revision wrote to resources of the sources. What the source itself wrote matters for those that others have
    /// written, and if its last plan has left drift.
    fn note(
        &mut self,
        store: &Store,
        snapshot: &Snapshot,
        header: &CommitHeader,
        drifted: &BTreeSet<&str>,
    ) -> Result<(), StoreError> {
        let revision = header.revision.unwrap_or_default();
        let own = header.applied_by();
        if let Some(own) = own {
            let is_large = header.changed > MOST_CHANGED;
            // A large one counts for all fields, as it does for a plan.
            self.written.retain(|_, it| !is_large || it.source != own);
            if is_large || !drifted.contains(own) && self.written.values().all(|it| it.source != own) {
                return Ok(());
            }
        }
        let mut is_whole = header.changed <= MOST_CHANGED;
        for change in store.some_changes(header, 0, MOST_CHANGED)?.unwrap_or_default() {
            let Some(source) = change.source.filter(|source| self.sources.contains(source)) else { continue };
            let Some(key) = Key::at_path(change.kind, &change.path) else { continue };
            let is_known = self.written.contains_key(&key);
            if own == Some(source.as_str()) && !is_known && !drifted.contains(source.as_str()) {
                continue;
            }
            if !is_known && self.written.len() >= MOST_WRITTEN {
                is_whole = false;
                continue;
            }
            let name = snapshot.full_name_at(&key, change.name.as_deref().unwrap_or_default());
            self.written.insert(key, WrittenResource { source, name, revision, drift: WrittenDrift::NotLookedUp });
        }
        if !is_whole {
            self.from = self.from.max(revision.saturating_add(1));
        }
        Ok(())
    }

    /// Compares resources of a source that were written since with what it applied last.
    fn look_up(&mut self, store: &Store, snapshot: &Snapshot, source: &str) -> Result<(), StoreError> {
        let is_wanted = |it: &WrittenResource| it.source == source && matches!(it.drift, WrittenDrift::NotLookedUp);
        let wanted = self.written.iter().filter(|(_, it)| is_wanted(it)).map(|(key, _)| key.clone());
        let keys: Vec<Key> = wanted.take(MOST_LOOKUPS).collect();
        let writes = store.external_writes(&keys, source, snapshot.revision, || baseline(store, source))?;
        for key in keys {
            // What has another owner now is no drift of this one.
            let entry = snapshot.get(&key);
            let is_own = entry.is_none_or(|entry| entry.is_owned_by(source));
            let digested = |entry: &Arc<Entry>| store.digested(&key, entry.spec(), entry.claim.as_deref());
            let live = entry.map(digested).transpose()?;
            let writes = writes.get(&key).filter(|_| is_own);
            let drift = writes.and_then(|writes| Drift::since_applied(source, live.as_ref(), writes));
            if let Some(written) = self.written.get_mut(&key) {
                written.drift = drift.map_or(WrittenDrift::InSync, WrittenDrift::Drifted);
            }
        }
        Ok(())
    }

    /// The drift of a source: what its last whole plan has found, unless the resource was written since, and what was written.
    fn known(&self, snapshot: &Snapshot, handle: &SourceHandle, status: &SourceStatus) -> KnownDrift {
        let findings = &status.findings;
        let (mut count, mut resources, mut is_recent) = (findings.drifted, findings.drift.clone(), false);
        for (key, written) in self.written.iter().filter(|(_, it)| it.source == handle.source) {
            let has_none = matches!(written.drift, WrittenDrift::InSync);
            let path = key.path();
            if let Some(at) = resources.iter().position(|it| it.path == path) {
                let is_pending = resources.get(at).is_some_and(|it| !only_others_changed(&it.fields));
                // It counts as pending already: its manifest has changed, too.
                if is_pending && !has_none {
                    continue;
                }
                resources.remove(at);
                count = count.saturating_sub(usize::from(!is_pending));
            }
            if has_none {
                continue;
            }
            (count, is_recent) = (count + 1, true);
            // One that was not looked up yet is only counted.
            if let WrittenDrift::Drifted(drift) = &written.drift
                && resources.len() < MOST_DRIFTED
            {
                resources.push(DriftedResource::new(key, written.name.clone(), drift));
            }
        }
        if handle.settings.drift == DriftPolicy::Off {
            resources.clear();
        }
        let base = findings.planned_at.or(status.applied.as_ref().map(|applied| applied.revision));
        let since = base.filter(|base| self.from > base.saturating_add(1)).map(|_| self.from.min(snapshot.revision));
        KnownDrift { count, resources, is_recent, since }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::handle::FollowedSource;
    use super::*;
    use crate::model::{Claim, HttpsEdge, Kind};
    use crate::reconcile::run::options::Options;
    use crate::reconcile::sync_loop::clock::Clock;
    use crate::reconcile::sync_loop::suspension::SourceRecords;
    use crate::store::MEMORY;

    fn key() -> Key {
        Key::new(Kind::HttpsEdge, Id::new("edghts_1"))
    }

    fn patch(text: &str) -> Operation {
        let spec = Arc::new(HttpsEdge { description: text.into(), ..HttpsEdge::default() });
        Operation::Patch { key: key(), spec, fields: vec!["description".into()] }
    }

    fn commit(store: &Store, author: Author, operation: Operation) {
        store.commit(author, vec![operation]).unwrap();
    }

    /// A store to which `shop` has applied an edge as revision 1, and the handle of that source.
    fn shop(drift: DriftPolicy) -> (Store, Arc<SourceHandle>) {
        let store = Store::open(MEMORY).unwrap();
        let claim = Some(Arc::new(Claim { source: "shop".into(), name: "a".into(), ..Claim::default() }));
        let spec = Arc::new(HttpsEdge { description: "applied".into(), ..HttpsEdge::default() });
        commit(&store, Author::source("shop", None), Operation::Create { key: key(), spec, claim, token: None });
        let records = Arc::new(SourceRecords::open(Arc::new(Store::open(MEMORY).unwrap())).unwrap());
        let options = Options { source: "shop".to_owned(), ..Options::default() };
        let source = FollowedSource { options, drift, ..FollowedSource::default() };
        (store, Arc::new(SourceHandle::new(&source, records, channel().0, None, Clock::default())))
    }

    fn known(drift: &RecentDrift, store: &Store, handle: &Arc<SourceHandle>, planned_at: Option<u64>) -> KnownDrift {
        let mut status = SourceStatus::default();
        status.findings.planned_at = planned_at;
        drift.current(store, &[(&**handle, &status)]).pop().unwrap()
    }

    #[test]
    fn what_others_write_is_known_without_a_plan_until_it_is_put_back() {
        let (store, handle) = shop(DriftPolicy::Enforce);
        let drift = RecentDrift::default();
        let found = |planned_at| {
            let found = known(&drift, &store, &handle, planned_at);
            let fields = found.resources.iter().flat_map(|it| &it.fields).map(|it| (it.field.clone(), it.revision));
            (found.count, fields.collect::<Vec<_>>())
        };
        let description = |revision| (1, vec![("/description".to_owned(), Some(revision))]);
        assert_eq!(found(None), (0, vec![]));
        commit(&store, Author::Local, patch("by hand"));
        assert_eq!(found(None), description(2), "also if nobody can plan");
        assert_eq!(found(Some(1)), description(2));
        assert_eq!(found(Some(2)), (0, vec![]), "the plan of revision 2 has the say");
        commit(&store, Author::Local, patch("again"));
        assert_eq!(found(Some(1)), description(3));
        commit(&store, Author::Local, patch("applied"));
        assert_eq!(found(Some(1)), (0, vec![]), "somebody has put it back");
        commit(&store, Author::Local, patch("by hand"));
        assert_eq!(found(Some(1)), description(5));
        commit(&store, Author::source("shop", None), patch("applied anew"));
        assert_eq!(found(Some(1)), (0, vec![]), "the source has written it");
        commit(&store, Author::Local, Operation::Delete { key: key(), with_children: true });
        assert_eq!(found(None), (1, vec![(String::new(), Some(7))]));
        let anew = known(&RecentDrift::default(), &store, &handle, None);
        assert_eq!((anew.count, anew.since), (1, None), "another process reads the same");
    }

    #[test]
    fn drift_that_is_off_is_counted_and_not_listed() {
        let (store, handle) = shop(DriftPolicy::Off);
        commit(&store, Author::Local, patch("by hand"));
        let found = known(&RecentDrift::default(), &store, &handle, Some(1));
        assert_eq!((found.count, found.resources.len(), found.is_recent), (1, 0, true));
    }
}
