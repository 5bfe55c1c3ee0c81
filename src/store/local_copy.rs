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
//! The data keys follow those of the store, so what is destroyed there is destroyed here (`Keyring::follow`).
//!
//! # What it never does
//!
//! Nobody waits for the copy, and no error of it is one of the server: it is tried again later. The copy has no commit that the
//! database does not have. Only a folder with its mark (`folder::local_mark`) is replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;

use super::commit::batch::{Batch, Tip};
use super::commit::codec;
use super::commit::header::{CommitHeader, Retention, chain_commit};
use super::copy_feed::CopyFeed;
use super::engine::Engine;
use super::error::StoreError;
use super::folder::{FolderEngine, local_mark};
use super::maintenance::copy;
use super::open_store::{Store, shown_address};
use super::seal::{Keyring, MasterKeySource};
use super::session_kind::SessionKind;
use super::stand_in::StandIn;
use crate::background::lower_priority;
use crate::lock::Lock;
use crate::model::{Code, Snapshot};

/// How often the copy takes in what was committed.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(10);
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

/// Keeps a copy up to date until it is dropped.
pub(crate) struct CopyKeeper {
    /// The thread ends with it.
    _alive: Sender<()>,
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
    pub(crate) fn keep(self: &Arc<Self>, store: &Arc<Store>) -> std::io::Result<CopyKeeper> {
        let (alive, stopped) = channel();
        let feed = Arc::clone(store.copy.get_or_init(Arc::default));
        let (copy, store) = (Arc::clone(self), Arc::downgrade(store));
        let keep = move || {
            lower_priority();
            copy.keep_until(&stopped, &store, &feed);
        };
        std::thread::Builder::new().name("local copy".into()).spawn(keep)?;
        Ok(CopyKeeper { _alive: alive })
    }

    fn keep_until(&self, stopped: &Receiver<()>, store: &Weak<Store>, feed: &CopyFeed) {
        let (mut pause, place) = (PAUSE, self.folder.display());
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let Some(store) = store.upgrade() else { return };
            // The copy may be ahead of a store that another one has replaced.
            let is_over = || stopped.try_recv() == Err(TryRecvError::Disconnected);
            let caught_up = catch_unwind(AssertUnwindSafe(|| self.catch_up(&store, feed, &is_over)));
            match caught_up.unwrap_or_else(|_| Err(StoreError::internal("it failed unexpectedly"))) {
                Ok(()) => {
                    pause = PAUSE;
                    if feed.set_failing(false) {
                        tracing::info!("The local copy in {place} is up to date again.");
                    }
                }
                Err(error) => {
                    pause = RETRY;
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
        let mut has_lost_keys = false;
        let continued = match opened {
            Some(engine) => {
                has_lost_keys = engine.keyring().follow(keyring)?;
                continue_to(&engine, store, feed, end)?.then_some(engine)
            }
            None => None,
        };
        let engine = match continued {
            Some(engine) => engine,
            None => self.make(store, keyring, Arc::clone(&snapshot), end)?,
        };
        // What needs the keys that are gone can no longer be read.
        if has_lost_keys || engine.wants_checkpoint() {
            engine.rotate()?;
            let forget = snapshot.revision.saturating_sub(self.retention.records);
            let state = Snapshot::clone(&snapshot).without_tombstones(forget);
            engine.checkpoint(&mut codec::records(&state, Some(engine.keyring()))?, &self.retention)?;
        }
        feed.note(end.position);
        *place = Some(engine);
        Ok(())
    }

    /// Opens the copy. Returns none if there is none of this store, or if it cannot be read.
    fn open(&self, keyring: &Keyring) -> Result<Option<Arc<FolderEngine>>, StoreError> {
        if local_mark::read(&self.folder)?.is_none() {
            return Ok(None);
        }
        let opened = FolderEngine::open_copy(&self.folder, &self.source).and_then(|engine| {
            // Only a server that starts needs it.
            drop(engine.load()?);
            Ok(engine)
        });
        match opened {
            Ok(engine) if engine.keyring().store() == keyring.store() => {
                local_mark::set(&self.folder, &self.of)?;
                engine.loaded();
                Ok(Some(Arc::new(engine)))
            }
            Ok(_) => Ok(None),
            Err(error) if matches!(error.code, Code::StoreCorrupt | Code::StoreFormat | Code::MasterKey) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the copy anew, as of a state and the end of the history that leads to it.
    fn make(
        &self,
        store: &Store,
        keyring: &Keyring,
        snapshot: Arc<Snapshot>,
        end: Tip,
    ) -> Result<Arc<FolderEngine>, StoreError> {
        tracing::info!("Making the local copy of {} in {}.", self.of, self.folder.display());
        copy::make_local(store, snapshot, end, &self.folder, &self.of)?;
        self.open(keyring)?.ok_or_else(|| StoreError::internal("the local copy cannot be opened"))
    }
}

/// Appends what a copy lacks of a store. Returns false if that does not lead to the end of its history.
fn continue_to(copy: &FolderEngine, store: &Store, feed: &CopyFeed, end: Tip) -> Result<bool, StoreError> {
    let fed = feed.take(copy.tip().position, end.position);
    let continues = append(copy, &fed)? && (copy.tip().position >= end.position || read_on(copy, store, end)?);
    let Tip { position, hash, .. } = copy.tip();
    Ok(continues && (position, hash) == (end.position, end.hash))
}

/// Appends what is not in memory any more, or was committed before the server started.
fn read_on(copy: &FolderEngine, store: &Store, end: Tip) -> Result<bool, StoreError> {
    let (start, mut continues, mut waiting, mut bytes) = (copy.tip(), true, Vec::new(), 0);
    // Records of attempts follow the commit that made a revision: from the revision before on, none is left out.
    store.engine.walk(start.revision.saturating_sub(1), &mut |_, batch| {
        if !continues || batch.position <= start.position || batch.position > end.position {
            return Ok(());
        }
        bytes += batch.header.len() + batch.calls.len() + batch.entries.size();
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
    batch.position == end.position + 1
        && batch.hash == chain_commit(&end.hash, &batch.header, &batch.digest)
        && CommitHeader::from_bytes(&batch.header).is_ok_and(|header| header.scrubbed.is_empty())
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::kind::ip_restriction::Traffic;
    use crate::model::{Author, Id, IpRestriction, Key, Kind, Operation, Secret};
    use crate::store::disk::files;
    use crate::store::{Commit, CommitError, MasterChange, clock};

    const DATABASE: &str = "postgres://edge@db/edge";
    const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn source() -> MasterKeySource {
        MasterKeySource::Value(Secret::new(KEY), "a test".into())
    }

    /// A store that takes the place of one in a database.
    fn store_in(outer: &Path, name: &str) -> Store {
        Store::open_encrypted(outer.join(name), Retention::default(), &source()).unwrap()
    }

    fn copy_in(outer: &Path, of: &str) -> LocalCopy {
        LocalCopy::new(&outer.join("copy"), Path::new(of), source(), Retention::default()).unwrap()
    }

    fn catch_up(copy: &LocalCopy, store: &Store) {
        let feed = Arc::clone(store.copy.get_or_init(Arc::default));
        copy.catch_up(store, &feed, &|| false).unwrap();
        assert_eq!(store.copy_lag(), 0);
    }

    fn commit(store: &Store, operation: Operation) -> Result<(), CommitError> {
        let commit = Commit { base: None, operations: vec![operation], author: Author::Local, at: clock::now() };
        store.commit(commit).map(drop)
    }

    fn key(name: &str) -> Key {
        Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{name}")))
    }

    /// Creates a resource with something to encrypt.
    fn create(name: &str) -> Operation {
        let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
        Operation::Create { key: key(name), spec: Arc::new(spec), claim: None, token: Some(Secret::new("hunter2")) }
    }

    fn delete(name: &str) -> Operation {
        Operation::Delete { key: key(name), with_children: false }
    }

    fn content(store: &Store) -> Vec<String> {
        let (state, verified) = (store.snapshot(), store.verify().unwrap());
        let token = |secret: &Secret| secret.expose().to_owned();
        let entries = state.iter().map(|it| format!("{} {:?} {:?}", it.key, it.spec(), it.token.as_ref().map(token)));
        entries.chain([format!("revision {} {verified:?}", state.revision)]).collect()
    }

    #[test]
    fn a_copy_has_what_its_store_has_and_stands_in_for_it() {
        let outer = tempfile::tempdir().unwrap();
        let (outer, copy) = (outer.path(), copy_in(outer.path(), DATABASE));
        let store = store_in(outer, "store");
        assert!(copy.stand_in().unwrap().is_none());
        catch_up(&copy, &store);
        for name in ["a", "b"] {
            commit(&store, create(name)).unwrap();
        }
        assert_eq!(store.copy_lag(), 2);
        catch_up(&copy, &store);
        commit(&store, delete("a")).unwrap();
        // A record without a revision.
        assert!(commit(&store, delete("a")).is_err());
        catch_up(&copy, &store);
        drop(copy);
        let copy = copy_in(outer, DATABASE);
        let stand_in = copy.stand_in().unwrap().unwrap();
        assert_eq!(content(&stand_in), content(&store));
        assert_eq!(stand_in.root_secret(), store.root_secret());
        assert_eq!(stand_in.snapshot_at(1).unwrap().len(), 1);
        assert!(stand_in.stands_in_since().is_some() && stand_in.followed_writer().is_some());
        let refused = commit(&stand_in, create("c"));
        assert!(matches!(refused, Err(CommitError::Failed(error)) if error.code == Code::StoreUnavailable));
        // The same copy goes on when the database is back.
        commit(&store, create("d")).unwrap();
        catch_up(&copy, &store);
        drop((stand_in, copy));
        let folder = outer.join("copy");
        let refused = Store::open_encrypted(&folder, Retention::default(), &source()).err().unwrap();
        assert!(refused.message.contains("is a local copy of postgres://edge@db/edge"), "{refused}");
        let read = Store::open_encrypted_to_read(&folder, &source()).unwrap();
        assert_eq!(content(&read), content(&store));
        assert!(copy_in(outer, "postgres://edge@other/edge").stand_in().unwrap().is_none());
    }

    #[test]
    fn a_copy_that_is_behind_goes_on_and_one_of_another_history_is_replaced() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path();
        let copied = || content(&Store::open_encrypted_to_read(outer.join("copy"), &source()).unwrap());
        let made = || std::fs::metadata(outer.join("copy/log.0000000001")).unwrap().created().ok();
        let store = store_in(outer, "store");
        commit(&store, create("a")).unwrap();
        catch_up(&copy_in(outer, DATABASE), &store);
        let first = made();
        drop(store);
        files::copy_folder(&outer.join("store"), &outer.join("earlier")).unwrap();
        let store = store_in(outer, "store");
        commit(&store, create("b")).unwrap();
        drop(store);
        let store = store_in(outer, "store");
        commit(&store, create("c")).unwrap();
        assert!(commit(&store, create("c")).is_err());
        catch_up(&copy_in(outer, DATABASE), &store);
        assert_eq!(copied(), content(&store));
        assert_eq!(made(), first);
        // The store as a backup has it, and another one.
        for name in ["earlier", "other"] {
            let store = store_in(outer, name);
            commit(&store, create(name)).unwrap();
            catch_up(&copy_in(outer, DATABASE), &store);
            assert_eq!(copied(), content(&store));
        }
        // What is damaged is made anew, too.
        std::fs::write(outer.join("copy/head"), "x").unwrap();
        assert!(copy_in(outer, DATABASE).stand_in().is_err());
        catch_up(&copy_in(outer, DATABASE), &store);
        assert_eq!(copied(), content(&store));
        let refused = LocalCopy::new(&outer.join("store"), Path::new(DATABASE), source(), Retention::default());
        assert_eq!(refused.err().unwrap().code, Code::StoreFormat);
    }

    #[test]
    fn what_a_store_forgets_is_gone_in_its_copy() {
        let outer = tempfile::tempdir().unwrap();
        let (outer, copy) = (outer.path(), copy_in(outer.path(), DATABASE));
        let store = store_in(outer, "store");
        commit(&store, create("a")).unwrap();
        catch_up(&copy, &store);
        store.rekey(MasterChange::Keep, true).unwrap();
        catch_up(&copy, &store);
        commit(&store, create("b")).unwrap();
        catch_up(&copy, &store);
        drop(copy);
        let stand_in = copy_in(outer, DATABASE).stand_in().unwrap().unwrap();
        let keys = |store: &Store| store.keyring.as_ref().map(|keyring| (keyring.current(), keyring.former().len()));
        assert_eq!(keys(&stand_in), keys(&store));
        assert_eq!(content(&stand_in), content(&store));
    }
}
