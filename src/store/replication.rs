//! A store that another process writes: its commits are taken in as they come.
//!
//! A start reads a state and the batches after it, and replays these. A process that follows goes on with that for as long as it
//! runs. Each commit makes the next Snapshot from its entries and becomes visible like one of this process, so that whoever follows
//! revisions, asks for the history or compares ETags sees what it would see at the writer.
//!
//! A batch counts only if it continues the chain of hashes. Otherwise the database has another history than this process has
//! read, for example that of an earlier backup, and the store must be opened again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::commit::batch::Tip;
use super::commit::codec;
use super::commit::header::{CommitHeader, Retention};
use super::engine::{FollowedWriter, Forgotten};
use super::error::StoreError;
use super::history::change_window::bytes_of;
use super::open_store::Store;
use super::postgres::PostgresEngine;
use super::revision::{Revision, changed_resources};
use super::seal::{MasterKeySource, StoreId};
use super::session_kind::SessionKind;
use crate::model::Code;

impl Store {
    /// The ID of the store, unless it is in memory.
    pub(crate) fn id(&self) -> Option<StoreId> {
        self.keyring.as_ref().map(|keyring| keyring.store())
    }

    /// Opens a store in a database to follow the process that writes it. Returns none if there is no store. Fails if this process has
    /// had one open, and it is another one by now.
    pub(crate) fn open_to_follow(
        address: &Path,
        source: &MasterKeySource,
        known: Option<StoreId>,
    ) -> Result<Option<Self>, StoreError> {
        let engine = PostgresEngine::open_to_read(address, SessionKind::Long, source, known)?;
        engine.map(|engine| Self::load_from(Arc::new(engine), Retention::default(), SessionKind::Long)).transpose()
    }

    /// Returns the process that writes, if this one only follows it.
    pub(crate) fn followed_writer(&self) -> Option<FollowedWriter> {
        self.engine.followed_writer()
    }

    /// Says under which URL other servers reach this one, which writes.
    pub(crate) fn advertise(&self, url: &str) -> Result<(), StoreError> {
        self.engine.advertise(url)
    }

    /// Whether several processes can use the store at a time.
    pub(crate) fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    /// Tries whether a commit could succeed. A connection that was lost is opened again, so that no process that follows takes the
    /// place of this one.
    pub(crate) fn probe(&self) -> Result<(), StoreError> {
        let asked = Instant::now();
        self.engine.probe()?;
        *self.whole_at.lock() = Some(asked);
        Ok(())
    }

    /// Whether this process had all of a shared store at a moment: the database has told it since that there is no more, or that
    /// nobody else writes.
    pub(crate) fn has_all_of(&self, moment: Instant) -> bool {
        self.whole_at.lock().is_some_and(|asked| asked >= moment)
    }

    /// Notes when this process has found that the store is at an earlier revision than before.
    pub(crate) fn note_went_back(&self, at: Instant) {
        let _ = self.went_back.set(at);
    }

    /// When this process has found that the store is at an earlier revision than before, if it has.
    pub(crate) fn went_back(&self) -> Option<Instant> {
        self.went_back.get().copied()
    }

    /// Whether this store, which was opened again, lacks what this process had read of it before: its history ends earlier, or has
    /// another record there. A record that is no longer kept says nothing.
    pub(crate) fn has_lost(&self, former: &Self) -> Result<bool, StoreError> {
        let (before, now) = (former.durable_state().1, self.durable_state().1);
        if now.position <= before.position {
            return Ok(now.position < before.position || now.hash != before.hash);
        }
        if before.position < self.statistics().oldest {
            return Ok(false);
        }
        Ok(self.batch(before.position)?.is_none_or(|found| found.hash != before.hash))
    }

    /// Takes in the next commits of the process that writes. Returns whether there were any. Only one thread may do this.
    pub(crate) fn catch_up(&self) -> Result<bool, StoreError> {
        let (known, asked) = (self.queue.lock().durable, Instant::now());
        let (batches, forgotten) = self.engine.batches_after(known)?;
        self.forget_too(forgotten);
        let (mut end, mut state, mut revisions) = (known, self.snapshot(), Vec::new());
        for batch in &batches {
            if !end.leads_to(batch) {
                let message = format!("record {} of the history does not follow what was read before", batch.position);
                return Err(StoreError::new(Code::StoreCorrupt, message));
            }
            if batch.revision != end.revision {
                let next = Arc::new(codec::advance(&state, batch, self.keyring.as_deref())?);
                let CommitHeader { at, author, .. } = CommitHeader::from_bytes(&batch.header)?;
                let changed = changed_resources(&state, &next, &codec::changed_keys(batch)?);
                let made = Revision { snapshot: Arc::clone(&next), changed, author, at };
                revisions.push((made, bytes_of(&batch.entries)));
                state = next;
            }
            end = Tip::after(batch);
        }
        if batches.is_empty() {
            *self.whole_at.lock() = Some(asked);
            return Ok(false);
        }
        self.feed_copy(&batches);
        let mut queue = self.queue.lock();
        self.position.store(end.position, Ordering::Release);
        self.publish(revisions);
        (queue.tip, queue.position, queue.durable) = (state, end.position, end);
        Ok(true)
    }

    /// Forgets what the process that writes has forgotten.
    fn forget_too(&self, Forgotten { secrets, tombstones }: Forgotten) {
        if secrets {
            self.forget_secrets();
        }
        let left = tombstones.and_then(|left| codec::without_tombstones_but(&self.snapshot(), &left));
        if let Some(state) = left.map(Arc::new) {
            let mut queue = self.queue.lock();
            self.current.store(Arc::clone(&state));
            queue.tip = state;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::lock::Lock;
    use crate::model::kind::ip_restriction::Traffic;
    use crate::model::{Author, Id, IpRestriction, Key, Kind, Operation};
    use crate::store::engine::Engine;
    use crate::store::history::change_window::NextRevision;
    use crate::store::memory::MemoryEngine;
    use crate::store::patched_engine::PatchedEngine;

    /// How the log that a follower reads differs from that of the writer.
    #[derive(Default)]
    struct LogOfAnother {
        /// Whether the history is another one.
        is_other: AtomicBool,
        /// The data that the writer has forgotten.
        forgotten: Lock<Forgotten>,
    }

    fn key(name: &str) -> Key {
        Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{name}")))
    }

    fn commit(store: &Store, operations: Vec<Operation>) {
        store.commit(Author::Local, operations).unwrap();
    }

    fn create(name: &str) -> Operation {
        let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
        Operation::create(key(name), Arc::new(spec))
    }

    fn content(store: &Store) -> Vec<String> {
        let state = store.snapshot();
        let entries = state.iter().map(|entry| format!("{} {:?} {}", entry.key, entry.spec(), entry.order));
        entries.chain([format!("revision {}", state.revision)]).collect()
    }

    fn pair() -> (Store, Store, Arc<LogOfAnother>) {
        let (log, other) = (Arc::new(MemoryEngine::default()), Arc::new(LogOfAnother::default()));
        let writer = Store::with_engine(Arc::clone(&log) as Arc<dyn Engine>, Retention::default()).unwrap();
        commit(&writer, vec![create("first")]);
        let (read, is_told) = (Arc::clone(&log), Arc::clone(&other));
        let batches_after = move |known: Tip| -> Result<_, StoreError> {
            let mut batches = read.load()?.batches;
            batches.retain(|batch| batch.position > known.position);
            if is_told.is_other.load(Ordering::SeqCst) {
                batches.iter_mut().for_each(|batch| batch.hash = [7; 32]);
            }
            // The rest is there the next time.
            batches.truncate(2);
            Ok((batches, std::mem::take(&mut *is_told.forgotten.lock())))
        };
        let (name, seen) = ("the first".into(), Instant::now());
        let engine = PatchedEngine {
            log,
            writer: Lock::new(Some(FollowedWriter { name, url: None, began: None, gone_since: None, seen })),
            batches_after: Some(Box::new(batches_after)),
            refusal: Arc::new(Lock::new(Some(StoreError::new(Code::NotTheWriter, "it only reads")))),
            ..PatchedEngine::default()
        };
        let follower = Store::with_engine(Arc::new(engine), Retention::default()).unwrap();
        (writer, follower, other)
    }

    #[test]
    fn who_follows_sees_each_commit_as_the_writer_does() {
        let (writer, follower, _) = pair();
        let (told, told_here) = (writer.subscribe(), follower.subscribe());
        assert!(!follower.catch_up().unwrap());
        commit(&writer, vec![create("a"), create("b")]);
        let delete = Operation::Delete { key: key("first"), with_children: false };
        commit(&writer, vec![delete.clone()]);
        // A refusal is a record without a revision.
        assert!(writer.commit(Author::Local, vec![delete]).is_err());
        commit(&writer, vec![create("c")]);
        while follower.catch_up().unwrap() {}
        assert_eq!(content(&follower), content(&writer));
        for _ in 0..3 {
            let [here, there] = [&told_here, &told].map(|told| told.recv_timeout(Duration::from_secs(5)).unwrap());
            assert_eq!((here.snapshot.revision, &here.changed), (there.snapshot.revision, &there.changed));
            assert_eq!((here.author, here.at.as_second()), (there.author, there.at.as_second()));
        }
        assert!(matches!(follower.change_window.next(1), NextRevision::Here(revision) if revision.changed.len() == 2));
        assert!(matches!(follower.change_window.next(4), NextRevision::NotYet));
        assert_eq!(follower.snapshot_at(1).unwrap().len(), 1);
        assert_eq!(follower.verify().unwrap(), writer.verify().unwrap());
    }

    #[test]
    fn who_follows_forgets_what_the_writer_has_forgotten() {
        let (writer, follower, other) = pair();
        commit(&writer, vec![Operation::Delete { key: key("first"), with_children: false }]);
        assert!(follower.catch_up().unwrap());
        let told = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&told);
        follower.when_secrets_are_forgotten(Box::new(move |revision| {
            seen.store(revision, Ordering::SeqCst);
            true
        }));
        follower.snapshot_at(1).unwrap();
        let knows = || {
            let has_tombstone = follower.snapshot().tombstone(&key("first")).is_some();
            (has_tombstone, follower.earlier_states.get(&1).0.is_some(), told.load(Ordering::SeqCst))
        };
        assert!(!follower.catch_up().unwrap());
        assert_eq!(knows(), (true, true, 0));
        *other.forgotten.lock() = Forgotten { secrets: true, tombstones: Some(BTreeSet::new()) };
        assert!(!follower.catch_up().unwrap());
        assert_eq!(knows(), (false, false, 2));
        commit(&writer, vec![create("a")]);
        assert!(follower.catch_up().unwrap());
        assert_eq!(content(&follower), content(&writer));
    }

    #[test]
    fn what_a_store_has_lost_is_found_also_if_its_history_has_caught_up_in_number() {
        let (writer, follower, _) = pair();
        for name in ["a", "b"] {
            assert!(!writer.has_lost(&follower).unwrap());
            commit(&writer, vec![create(name)]);
        }
        while follower.catch_up().unwrap() {}
        let (other, ..) = pair();
        for name in ["c", "d", "e"] {
            assert!(other.has_lost(&follower).unwrap(), "before {name}");
            commit(&other, vec![create(name)]);
        }
        assert_eq!((other.snapshot().revision, follower.snapshot().revision), (4, 3));
        assert!(other.has_lost(&follower).unwrap());
        assert!(!writer.has_lost(&follower).unwrap());
    }

    #[test]
    fn who_follows_commits_nothing_and_takes_in_no_other_history() {
        let (writer, follower, other) = pair();
        let refused = follower.commit(Author::Local, vec![create("mine")]);
        assert!(refused.unwrap_err().to_string().contains("it only reads"));
        assert_eq!(follower.followed_writer().unwrap().name, "the first");
        assert!(writer.followed_writer().is_none() && writer.probe().is_ok());
        commit(&writer, vec![create("a")]);
        other.is_other.store(true, Ordering::SeqCst);
        let before = content(&follower);
        assert_eq!(follower.catch_up().unwrap_err().code, Code::StoreCorrupt);
        assert_eq!(content(&follower), before);
        other.is_other.store(false, Ordering::SeqCst);
        assert!(follower.catch_up().unwrap());
        assert_eq!(content(&follower), content(&writer));
    }
}
