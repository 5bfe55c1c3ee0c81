//! The newest revisions in memory, for readers that follow the store.
//!
//! A queue for each reader would grow with the slowest one, or make commits wait for it. So a reader has a cursor instead:
//! the last revision that it knows. It asks for the next one, and waits if there is none. The window has the last 1,000
//! revisions, less if they are large: each keeps the former state of what it changed in memory. A reader that falls behind it
//! reads from the history, or begins again with a whole state; it delays nobody.
//!
//! A server that has just started fills the window from the log, so that clients which reconnect go on where they were.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar};
use std::time::Duration;

use tokio::sync::watch;

use crate::lock::Lock;
use crate::model::{Key, Snapshot};
use crate::store::commit::batch::Tip;
use crate::store::commit::codec::{self, FormerValues};
use crate::store::commit::entries::CommitEntries;
use crate::store::commit::header::CommitHeader;
use crate::store::engine::State;
use crate::store::error::StoreError;
use crate::store::revision::{ChangeEvent, Revision, changed_resources};
use crate::store::seal::Keyring;

/// The most revisions in memory.
const MOST_REVISIONS: usize = 1000;
/// The most changes of all revisions but the oldest: each keeps a former state of a resource in memory.
const MOST_CHANGES: usize = 10_000;
/// The most bytes of what these changes wrote to the store.
const MOST_BYTES: usize = 16 << 20;

/// The next revision for a reader.
#[derive(Debug)]
pub(crate) enum NextRevision {
    /// The revision after the one that the reader knows.
    Here(Revision),
    /// There is none yet.
    NotYet,
    /// The revision is no longer in memory.
    Gone,
}

/// The newest revisions.
pub(crate) struct ChangeWindow {
    window: Lock<Window>,
    newer: Condvar,
    newest: watch::Sender<u64>,
}

/// The states that have left the window.
#[derive(Default)]
pub(crate) struct EvictedStates {
    pub(crate) snapshots: Vec<Arc<Snapshot>>,
    /// How many states of resources are only in them.
    pub(crate) replaced: usize,
}

struct Window {
    /// The revision before the oldest one in memory.
    start: u64,
    /// Each with its size in the store.
    revisions: VecDeque<(Revision, usize)>,
    changes: usize,
    bytes: usize,
}

impl ChangeWindow {
    /// Starts after a revision, with no revision in memory.
    pub(crate) fn after(revision: u64) -> Self {
        let window = Window { start: revision, revisions: VecDeque::new(), changes: 0, bytes: 0 };
        Self { window: Lock::new(window), newer: Condvar::new(), newest: watch::Sender::new(revision) }
    }

    /// Restores a state with the revisions at the end of its log, so that a restart does not interrupt readers.
    pub(crate) fn restored(mut state: State, keyring: Option<&Keyring>) -> Result<(Arc<Snapshot>, Self), StoreError> {
        let mut batches = std::mem::take(&mut state.earlier);
        batches.extend_from_slice(&state.batches);
        let newest = Arc::new(codec::restore(state, keyring)?);
        let (mut after, mut revisions) = (Arc::clone(&newest), Vec::new());
        let (mut changes, mut bytes) = (0, 0);
        // Each state is the one after it without what its batch did.
        for (number, batch) in batches.iter().enumerate().rev().take(MOST_REVISIONS) {
            let size = bytes_of(&batch.entries);
            (changes, bytes) = (changes + codec::resource_changes(&batch.entries).count(), bytes + size);
            if changes > MOST_CHANGES || bytes > MOST_BYTES {
                break;
            }
            let previous = match number.checked_sub(1).and_then(|number| batches.get(number)) {
                Some(previous) => Tip::after(previous),
                None if batch.position == 1 => Tip::default(),
                // Nothing says what it followed.
                None => break,
            };
            if previous.revision == batch.revision {
                continue;
            }
            let mut former = FormerValues::default();
            former.add(batch);
            // Readers cannot follow from before a commit that does not say who made it.
            let Ok(CommitHeader { at, author, .. }) = CommitHeader::from_bytes(&batch.header) else { break };
            let before = Arc::new(former.before(&after, previous.revision, previous.next_order, keyring)?);
            let changed = changed_resources(&before, &after, &codec::changed_keys(batch)?);
            let snapshot = std::mem::replace(&mut after, before);
            revisions.push((Revision { snapshot, changed, author, at }, size));
        }
        let recent = Self::after(after.revision);
        drop(recent.push(revisions.into_iter().rev()));
        Ok((newest, recent))
    }

    /// Adds revisions with the sizes of what they wrote, and wakes readers once for all. Returns what leaves the window, so
    /// that the caller chooses the thread that frees it.
    pub(crate) fn push(&self, revisions: impl IntoIterator<Item = (Revision, usize)>) -> EvictedStates {
        let (mut evicted, mut newest) = (EvictedStates::default(), None);
        let mut window = self.window.lock();
        for (revision, bytes) in revisions {
            newest = Some(revision.snapshot.revision);
            window.push(revision, bytes, &mut evicted);
        }
        drop(window);
        if let Some(newest) = newest {
            self.newer.notify_all();
            self.newest.send_replace(newest);
        }
        evicted
    }

    /// Returns the revision after `known`.
    pub(crate) fn next(&self, known: u64) -> NextRevision {
        let window = self.window.lock();
        match known.checked_sub(window.start) {
            None => NextRevision::Gone,
            Some(skipped) => {
                let found = usize::try_from(skipped).ok().and_then(|skipped| window.revisions.get(skipped));
                found.map_or(NextRevision::NotYet, |(revision, _)| NextRevision::Here(revision.clone()))
            }
        }
    }

    /// Waits at most `timeout` for a revision after `known`.
    pub(crate) fn wait(&self, known: u64, timeout: Duration) {
        let window = self.window.lock();
        drop(self.newer.wait_timeout_while(window, timeout, |window| window.newest() <= known));
    }

    /// Returns the keys of the children of a resource that the revisions in memory have deleted.
    pub(crate) fn deleted_children(&self, parent: &Key) -> Vec<Key> {
        let window = self.window.lock();
        let changed = window.revisions.iter().flat_map(|(revision, _)| revision.changed.iter());
        let deleted = changed.filter(|it| it.event == ChangeEvent::Deleted).map(|it| &it.key);
        deleted.filter(|key| key.parent_key().as_ref() == Some(parent)).cloned().collect()
    }

    /// Returns a receiver of the newest revision.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

impl Window {
    fn newest(&self) -> u64 {
        self.start + self.revisions.len() as u64
    }

    /// Adds a revision, and moves what leaves the window to `evicted`.
    fn push(&mut self, revision: Revision, bytes: usize, evicted: &mut EvictedStates) {
        self.changes += revision.changed.len();
        self.bytes += bytes;
        self.revisions.push_back((revision, bytes));
        while let Some((oldest, size)) = self.revisions.pop_front() {
            // The state of the oldest revision is the first one in memory: its own changes replaced nothing there.
            let (changes, bytes) = (self.changes - oldest.changed.len(), self.bytes - size);
            let fits = self.revisions.len() < MOST_REVISIONS && changes <= MOST_CHANGES && bytes <= MOST_BYTES;
            if fits || self.revisions.is_empty() {
                self.revisions.push_front((oldest, size));
                break;
            }
            (self.changes, self.bytes) = (changes, bytes);
            self.start = oldest.snapshot.revision;
            evicted.replaced += self.revisions.front().map_or(0, |(next, _)| next.changed.len());
            evicted.snapshots.push(oldest.snapshot);
        }
    }
}

/// Returns the size of the resources that a commit writes.
pub(crate) fn bytes_of(entries: &CommitEntries) -> usize {
    codec::resource_changes(entries).filter_map(|entry| entry.after).map(<[u8]>::len).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::model::kind::ip_restriction::Traffic;
    use crate::model::{Author, Id, IpRestriction, Kind, Operation};
    use crate::store::Store;
    use crate::store::commit::entries::CommitEntry;

    fn create(name: &str) -> Operation {
        let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
        let key = Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{name}")));
        Operation::create(key, Arc::new(spec))
    }

    fn commit(store: &Store, operations: Vec<Operation>) {
        store.commit(Author::Local, operations).unwrap();
    }

    fn follow(store: &Store, mut known: u64, upto: u64) -> Vec<(u64, usize)> {
        let mut seen = Vec::new();
        while known < upto {
            match store.change_window.next(known) {
                NextRevision::Here(revision) => {
                    known = revision.snapshot.revision;
                    seen.push((known, revision.changed.len()));
                }
                NextRevision::NotYet => store.change_window.wait(known, Duration::from_secs(5)),
                NextRevision::Gone => panic!("revision {known} is gone"),
            }
        }
        seen
    }

    #[test]
    fn a_reader_sees_every_revision_once_while_others_commit() {
        let store = Store::open(crate::store::MEMORY).unwrap();
        commit(&store, vec![create("first")]);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..50 {
                        commit(store, vec![create(&format!("{writer}-{number}"))]);
                    }
                });
            }
            for known in [0, 1] {
                let store = &store;
                scope.spawn(move || {
                    let expected: Vec<(u64, usize)> = (known + 1..=201).map(|revision| (revision, 1)).collect();
                    assert_eq!(follow(store, known, 201), expected);
                });
            }
        });
    }

    #[test]
    fn the_window_is_limited_by_revisions_and_by_changes() {
        let store = Store::open(crate::store::MEMORY).unwrap();
        for number in 0..=MOST_REVISIONS {
            commit(&store, vec![create(&number.to_string())]);
        }
        assert!(matches!(store.change_window.next(0), NextRevision::Gone));
        assert_eq!(follow(&store, 1, MOST_REVISIONS as u64 + 1).len(), MOST_REVISIONS);
        // A revision of any size can be read until enough follows it.
        let newest = store.snapshot().revision;
        commit(&store, (0..=MOST_CHANGES).map(|number| create(&format!("large-{number}"))).collect());
        assert!(matches!(store.change_window.next(newest - 1), NextRevision::Gone));
        commit(&store, vec![create("last")]);
        assert_eq!(follow(&store, newest, newest + 2), [(newest + 1, MOST_CHANGES + 1), (newest + 2, 1)]);
    }

    #[test]
    fn only_changes_of_resources_count() {
        let entry = |key, after| CommitEntry { key, after, before: Some(&[0; 5]), ..CommitEntry::default() };
        let entries = [
            entry("r/HttpsEdge//a", Some(&[0; 3][..])),
            entry("x/shop", Some(&[0; 7][..])),
            entry("r/HttpsEdge//b", None),
        ];
        let entries: CommitEntries = entries.into_iter().collect();
        assert_eq!((bytes_of(&entries), codec::resource_changes(&entries).count()), (3, 2));
    }

    #[test]
    fn a_restart_keeps_the_revisions_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path).unwrap();
        commit(&store, vec![create("a"), create("b")]);
        let key = Key::new(Kind::IpRestriction, Id::new("ipx_a"));
        commit(&store, vec![Operation::Delete { key, with_children: false }]);
        let told = |store: &Store, known: u64| match store.change_window.next(known) {
            NextRevision::Here(revision) => (revision.changed, revision.author, revision.at),
            other => panic!("{other:?}"),
        };
        let expected = [told(&store, 0), told(&store, 1)];
        assert_eq!(expected[1].0[0].event, ChangeEvent::Deleted);
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!([told(&store, 0), told(&store, 1)], expected);
        assert!(matches!(store.change_window.next(2), NextRevision::NotYet));
    }
}
