//! The local copy of a store in a database (D115): a server that starts while the database is away serves from it.
//!
//! # The problem
//!
//! A server on a database keeps its state in memory, so it answers while the database is away. But if it is started then, after
//! a crash or with a new version, it has nothing to answer from, just when it is needed most.
//!
//! # The idea
//!
//! A store in a folder can do all that is needed. So the copy is one, with the same history, revisions and keys. While a server
//! serves, whether it writes or follows, a thread appends to the copy what is committed, with its hashes, as the database has it.
//!
//! ```text
//! database   1 … 42 43 44 45       what counts
//! server            43 44 45       in memory, until the copy has it (`copy_feed`)
//! copy       1 … 42 43             the thread appends 44 and 45 with one sync
//! ```
//!
//! A commit continues the copy only if its hash follows from the last one. If it does not, the database has another history,
//! for example that of a backup, or API tokens were removed from it, and the copy is made anew, as `edgewright store copy` makes one.
//! Until that is complete, the former one stays (`folder::copy_swap`). If the database does not have the last commit of the copy, it has
//! lost what somebody was told is there, and the copy may be the only place that has it: it is kept beside the new one.
//!
//! The data keys follow those of the store, so what is destroyed there is destroyed here (`Keyring::follow`), once the state does
//! not need it.
//!
//! # What it never does
//!
//! Nobody waits for the copy, and no error of it is one of the server: it is tried again later. The copy has no commit that the
//! database did not have. Only a folder with its mark (`folder::local_mark`) is replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;

use super::commit::batch::{Batch, Tip};
use super::commit::codec;
use super::commit::header::{CommitHeader, Retention};
use super::copy_feed::CopyFeed;
use super::engine::Engine;
use super::error::StoreError;
use super::folder::copy_swap::{CopySwap, finish_interrupted};
use super::folder::{FolderEngine, local_mark};
use super::maintenance::copy;
use super::open_store::{Store, shown_address};
use super::seal::{KeyId, Keyring, MasterKeySource};
use super::session_kind::SessionKind;
use super::stand_in::StandIn;
use crate::background::{ThreadGuard, lower_priority};
use crate::lock::Lock;
use crate::model::{Code, Snapshot};

/// How often the copy takes in what was committed.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause after a failure, and the longest one after several: each time, the whole copy may have been written in vain.
const RETRY: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// How many bytes of commits are appended at once, more or less.
const AT_ONCE: usize = 8 << 20;

/// The local copy of a store in a database.
pub(crate) struct LocalCopy {
    folder: PathBuf,
    /// The database, as messages show it.
    of: String,
    source: MasterKeySource,
    retention: Retention,
    /// The copy, if it is open. Who holds the lock may write to it.
    engine: Lock<Option<Arc<FolderEngine>>>,
}

/// The fate of a copy.
enum CopyFate {
    /// The copy has everything. The store no longer has these data keys.
    Continues(Vec<KeyId>),
    /// Another one takes its place.
    IsReplaced,
    /// Another one takes its place, and it is kept beside that: the database may have lost what it has, up to this revision.
    IsKept(u64),
}

impl LocalCopy {
    /// Names the folder for the copy of the store at an address. Fails if it has anything else.
    pub(crate) fn new(
        folder: &Path,
        address: &Path,
        source: MasterKeySource,
        retention: Retention,
    ) -> Result<Self, StoreError> {
        local_mark::check_replaceable(folder)?;
        let (folder, of) = (folder.to_owned(), shown_address(address));
        Ok(Self { folder, of, source, retention, engine: Lock::default() })
    }

    /// Opens the copy in place of the store, whose database does not answer. Returns none if there is no copy of it.
    pub(crate) fn stand_in(&self) -> Result<Option<Store>, StoreError> {
        finish_interrupted(&self.folder)?;
        if local_mark::read(&self.folder)?.as_ref() != Some(&self.of) || !FolderEngine::exists(&self.folder)? {
            return Ok(None);
        }
        let engine = Arc::new(FolderEngine::open_copy(&self.folder, &self.source)?);
        let stand_in = Arc::new(StandIn::new(Arc::clone(&engine)));
        let store = Store::load_from(stand_in, self.retention, SessionKind::Long)?;
        *self.engine.lock() = Some(engine);
        Ok(Some(store))
    }

    /// Keeps the copy up to date with a store in a database, until the returned value is dropped.
    pub(crate) fn keep(self: &Arc<Self>, store: &Arc<Store>) -> std::io::Result<ThreadGuard> {
        let feed = Arc::clone(store.copy.get_or_init(Arc::default));
        let (copy, store) = (Arc::clone(self), Arc::downgrade(store));
        ThreadGuard::start("local copy", move |goes_on| {
            lower_priority();
            copy.keep_while(goes_on, &store, &feed);
        })
    }

    fn keep_while(&self, goes_on: &dyn Fn(Duration) -> bool, store: &Weak<Store>, feed: &CopyFeed) {
        let (mut pause, place) = (PAUSE, self.folder.display());
        while goes_on(pause) {
            let Some(store) = store.upgrade() else { return };
            // The copy may be ahead of a store that another one has replaced.
            let is_over = || !goes_on(Duration::ZERO);
            let caught_up = catch_unwind(AssertUnwindSafe(|| self.catch_up(&store, feed, &is_over)));
            match caught_up.unwrap_or_else(|_| Err(StoreError::internal("it failed unexpectedly"))) {
                Ok(()) => {
                    pause = PAUSE;
                    if feed.set_failing(false) {
                        tracing::info!("The local copy in {place} is up to date again.");
                    }
                }
                Err(error) => {
                    pause = (pause * 2).clamp(RETRY, LONGEST_RETRY);
                    if !feed.set_failing(true) {
                        tracing::warn!(code = %error.code, "cannot write the local copy in {place}: {error}");
                    }
                }
            }
        }
    }

    /// Brings the copy to the state of a store.
    fn catch_up(&self, store: &Store, feed: &CopyFeed, is_over: &dyn Fn() -> bool) -> Result<(), StoreError> {
        let mut place = self.engine.lock();
        if is_over() {
            return Ok(());
        }
        let keyring = store.keyring.as_deref().ok_or_else(|| StoreError::internal("the store has no keys"))?;
        // Before the keys: they are saved before the commits that need them.
        let (snapshot, end) = store.durable_state();
        // After an error it is opened again.
        let opened = match place.take() {
            Some(engine) => Some(engine),
            None => self.open(keyring)?,
        };
        let (mut gone, mut kept, mut continued) = (Vec::new(), None, None);
        if let Some(engine) = opened {
            match self.fate(&engine, store, feed, end)? {
                CopyFate::Continues(lost) => (gone, continued) = (lost, Some(engine)),
                CopyFate::IsReplaced => {}
                CopyFate::IsKept(revision) => kept = Some(revision),
            }
        }
        let engine = match continued {
            Some(engine) => engine,
            None => self.make(store, keyring, Arc::clone(&snapshot), end, kept)?,
        };
        if !gone.is_empty() || engine.wants_checkpoint() {
            engine.rotate()?;
            let forget = snapshot.revision.saturating_sub(self.retention.records);
            let state = Snapshot::clone(&snapshot).without_tombstones(forget);
            engine.checkpoint(&mut codec::records(&state, Some(engine.keyring()))?, &self.retention)?;
        }
        // The state that is there now does not need them: before, the copy could not be opened without them.
        if !gone.is_empty() {
            engine.keyring().destroy(&gone)?;
        }
        feed.note(end.position);
        *place = Some(engine);
        Ok(())
    }

    /// Brings a copy to the end of the history of a store, if its own leads there.
    fn fate(&self, copy: &FolderEngine, store: &Store, feed: &CopyFeed, end: Tip) -> Result<CopyFate, StoreError> {
        let keyring = store.keyring.as_deref().ok_or_else(|| StoreError::internal("the store has no keys"))?;
        let Tip { position, hash, revision, .. } = copy.tip();
        if copy.keyring().store() != keyring.store() {
            // It stays if the store is another one although the database is the same.
            let is_same = local_mark::read(&self.folder)?.as_ref() == Some(&self.of);
            return Ok(if is_same { CopyFate::IsKept(revision) } else { CopyFate::IsReplaced });
        }
        let has_forgotten = keyring.has_destroyed_key_of(copy.keyring());
        let gone = copy.keyring().follow(keyring)?;
        if continue_to(copy, store, feed, end)? {
            return Ok(CopyFate::Continues(gone));
        }
        // One that is far behind has nothing that the database ever lost, and secrets that are to be forgotten must not stay.
        let is_old = position < store.statistics().oldest;
        let is_known = is_old || store.batch(position)?.is_some_and(|batch| batch.hash == hash);
        Ok(if is_known || has_forgotten { CopyFate::IsReplaced } else { CopyFate::IsKept(revision) })
    }

    /// Opens the copy. Returns none if there is none, or if it cannot be read.
    fn open(&self, keyring: &Keyring) -> Result<Option<Arc<FolderEngine>>, StoreError> {
        finish_interrupted(&self.folder)?;
        if local_mark::read(&self.folder)?.is_none() {
            return Ok(None);
        }
        let opened = FolderEngine::open_copy(&self.folder, &self.source).and_then(|engine| {
            // Only a server that starts needs it.
            drop(engine.load()?);
            Ok(engine)
        });
        match opened {
            Ok(engine) => {
                if engine.keyring().store() == keyring.store() {
                    local_mark::set(&self.folder, &self.of)?;
                }
                Ok(Some(Arc::new(engine)))
            }
            Err(error) if matches!(error.code, Code::StoreCorrupt | Code::StoreFormat | Code::MasterKey) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the copy anew, as of a state and the end of the history that leads to it. Keeps the former one if the database may have
    /// lost what it has, up to a revision.
    fn make(
        &self,
        store: &Store,
        keyring: &Keyring,
        snapshot: Arc<Snapshot>,
        end: Tip,
        kept: Option<u64>,
    ) -> Result<Arc<FolderEngine>, StoreError> {
        tracing::info!("Making the local copy of {} in {}.", self.of, self.folder.display());
        let (swap, now) = (CopySwap::begin(&self.folder, &self.of)?, snapshot.revision);
        copy::make_local(store, snapshot, end, &swap.new_copy())?;
        let former = swap.finish(kept.is_some())?;
        if let Some(revision) = kept {
            let place = former.map_or_else(
                || "not kept, because the folder `former` beside it has an earlier one".to_owned(),
                |former| format!("in {}: make lost changes again, and remove that folder", former.display()),
            );
            tracing::error!(
                "The database {} has another history than its local copy, and has lost changes that were confirmed: it is at \
                 revision {now}, and the copy was at {revision}. The former copy is {place}.",
                self.of
            );
        }
        self.open(keyring)?.ok_or_else(|| StoreError::internal("the local copy cannot be opened"))
    }
}

/// Appends what a copy lacks of a store. Returns false if that does not lead to the end of its history.
fn continue_to(copy: &FolderEngine, store: &Store, feed: &CopyFeed, end: Tip) -> Result<bool, StoreError> {
    let fed = feed.take(copy.tip().position, end.position);
    let continues = append(copy, &fed)? && (copy.tip().position >= end.position || read_on(copy, store, end)?);
    Ok(continues && copy.tip().is_same(&end))
}

/// Appends what is not in memory any more, or was committed before the server started.
fn read_on(copy: &FolderEngine, store: &Store, end: Tip) -> Result<bool, StoreError> {
    let (start, mut continues, mut waiting, mut bytes) = (copy.tip(), true, Vec::new(), 0);
    // Records of attempts follow the commit that made a revision: from the revision before on, none is left out.
    store.walk(start.revision.saturating_sub(1), &mut |_, batch| {
        if !continues || batch.position <= start.position || batch.position > end.position {
            return Ok(());
        }
        bytes += batch.size();
        waiting.push(batch);
        if bytes >= AT_ONCE {
            continues = append(copy, &waiting)?;
            waiting.clear();
            bytes = 0;
        }
        Ok(())
    })?;
    Ok(continues && append(copy, &waiting)?)
}

/// Appends commits, unless they do not continue a copy.
fn append(copy: &FolderEngine, batches: &[Batch]) -> Result<bool, StoreError> {
    let start = copy.tip();
    let mut known = start;
    for batch in batches {
        if !continues(&known, batch) {
            return Ok(false);
        }
        known = Tip::after(batch);
    }
    copy.append(start.position, batches)?;
    Ok(true)
}

/// Whether a commit follows the end of a history, and all before it stays as it is: the removal of tokens changes earlier ones.
fn continues(end: &Tip, batch: &Batch) -> bool {
    end.leads_to(batch) && CommitHeader::from_bytes(&batch.header).is_ok_and(|header| header.scrubbed.is_empty())
}

impl Store {
    /// The current state, and the end of the history that leads to it.
    pub(super) fn durable_state(&self) -> (Arc<Snapshot>, Tip) {
        let queue = self.queue.lock();
        (self.snapshot(), queue.durable)
    }

    /// Keeps commits that are durable for the local copy, if there is one.
    pub(super) fn feed_copy(&self, batches: &[Batch]) {
        if let Some(feed) = self.copy.get() {
            feed.push(batches);
        }
    }

    /// Returns since when a local copy stands in for the database, if it does.
    pub(crate) fn stands_in_since(&self) -> Option<Timestamp> {
        self.engine.stands_in_since()
    }

    /// The number of commits that the local copy lacks; 0 without one.
    pub(crate) fn copy_lag(&self) -> u64 {
        self.copy.get().map_or(0, |feed| self.durable_state().1.position.saturating_sub(feed.copied()))
    }

    /// Whether the local copy cannot be written.
    pub(crate) fn is_copy_failing(&self) -> bool {
        self.copy.get().is_some_and(|feed| feed.is_failing())
    }
}

#[cfg(test)]
mod tests;
