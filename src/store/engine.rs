//! The storage engine: it keeps a log of batches and the state that results from them. The [`Store`](super::Store) decides
//! what a batch contains; an engine makes batches durable, in order, and returns them.
//!
//! This is the only line between what a commit means and where its bytes are, so a store in memory, one in a folder and one
//! that is only read are the same to everything above, and programs that embed the library can bring an engine of their own.
//! An engine promises three things: a batch that [`append`](Engine::append) has returned for survives a power loss, one for
//! which it has failed does not exist, and [`load`](Engine::load) returns everything that was appended, or an error. It never
//! interprets a value, and never returns less because something is missing.
//!
//! An engine must have the methods without a default: it loads, appends, reads its history and knows its size. The others belong to
//! what not every engine has, and a default says so: files that can be backed up, a state that is written apart from the log,
//! and other processes that use the same store. The history is a part of its own ([`History`]). A store asks it for no commit that
//! is not visible yet, so no engine has to hold back what it is writing.
//!
//! | Method | In a folder | In a database: tables and statements of PostgreSQL |
//! | --- | --- | --- |
//! | `load` | Reads `state.N`, and replays `log.N` and the parts after it | `SELECT` of `head`, `secrets` and `state`, as of one moment |
//! | `append` | Appends frames to the last part of the log with one sync, and writes `head` | One transaction: `UPDATE head` of this epoch and position, `INSERT` into `commits`, `entries` and `state`, `DELETE` from `state` |
//! | `headers` | Reads the headers of frames that `index` names, or those of the log from its end | `SELECT` from `commits` by position, revision or source |
//! | `commit`, `some_entries` | Reads a frame, or some of its entries | `SELECT` from `commits` and `entries` by position |
//! | `resource_histories` | Reads the entries that `index` names, or searches the log | `SELECT` from `entries` by path, with their `commits` |
//! | `walk` | Reads the log from the part with the revision on | `SELECT` from `commits` and `entries` after the revision, in portions |
//! | `statistics` | The lengths of the files | What was read and written last |
//! | `health` | Whether the end of the log is certain since the last write | Whether this process is still the writer |
//! | `probe` | Writes a file and removes it | `SELECT` of `head`, over a new connection if the last one was lost |
//! | `outage` | Nothing | Since when the database does not answer |
//! | `wants_checkpoint` | The log after the state is longer than it, or a data key is due | Much was written since the last one, or a data key is due |
//! | `rotate` | Begins the next part of the log | Keeps the position, which is the end of what is worked on |
//! | `checkpoint` | Writes `state.N`, names it in `head`, and removes former parts and states | `UPDATE state` with secrets under a new data key, `DELETE` of tombstones, and of `commits` and `entries` that are no longer kept |
//! | `wants_last_checkpoint` | The state can be written in a moment | Nothing: `state` is current |
//! | `edit_history` | Removes `index`, and writes the parts of the log anew | For each commit, `UPDATE commits` and new `entries` |
//! | `on_disk`, `backup` | A fingerprint of all files, and the open files | Nothing: a copy in a folder is backed up |
//! | `sidecar_files` | Nothing: they are files beside the log | `SELECT` and `INSERT` of `files` |
//! | `is_shared` | No | Yes |
//! | `followed_writer`, `batches_after` | Nothing | `SELECT` of `head` and of the lock of the writer; then of `commits` and `entries` after a position, and of the tombstones in `state` |
//! | `advertise` | Nothing | `UPDATE head` with the URL |
//! | `stands_in_since` | Only a local copy that answers for a database (`stand_in`) | Nothing |

use std::{collections::BTreeSet, fmt, ops::ControlFlow, path::PathBuf, sync::Arc, time::Instant};

use jiff::Timestamp;

use super::commit::batch::{Batch, Tip};
use super::commit::entries::{CommitEntries, CommitEntry};
use super::commit::header::{CommitHeader, Retention};
use super::error::StoreError;
use super::maintenance::backup::Backup;
use super::seal::Keyring;
use crate::model::{Code, secrets::digest_key::DigestKey};

/// A record of a state: its key and its value.
pub(crate) type KeyedRecord = (String, Vec<u8>);

/// The records of a state, in the order of their keys.
pub type StateRecords<'s> = dyn Iterator<Item = Result<KeyedRecord, StoreError>> + 's;

/// Visits a batch of the log with the end of the log before it.
pub type BatchVisit<'v> = dyn FnMut(Tip, Batch) -> Result<(), StoreError> + 'v;

/// Visits what a commit did to a resource, with the number of its path. Breaks if older ones do not matter for this resource.
pub type ResourceHistoryVisit<'v> =
    dyn FnMut(usize, &CommitHeader, &CommitEntry<'_>) -> Result<ControlFlow<()>, StoreError> + 'v;

/// Returns the new form of a batch, or none if it stays.
pub type BatchEdit<'e> = dyn FnMut(&Batch) -> Result<Option<Batch>, StoreError> + 'e;

/// A store on the disk, told from earlier and later states without reading it.
#[derive(Debug, Clone)]
pub struct OnDisk {
    /// The folder of the store.
    pub folder: PathBuf,
    /// A hash that changes with every write to its files.
    pub fingerprint: blake3::Hash,
    /// The key of digests that are kept beside the store. It comes from the master key, so a copy of the folder does not
    /// have it.
    pub(crate) digest_key: Option<DigestKey>,
}

impl OnDisk {
    /// Describes a store without encryption.
    pub fn new(folder: PathBuf, fingerprint: blake3::Hash) -> Self {
        Self { folder, fingerprint, digest_key: None }
    }
}

/// A complete state, as an engine keeps it.
#[derive(Default)]
pub struct State {
    /// The batch that `records` includes.
    pub tip: Tip,
    /// The random secret that was created with the store.
    pub root_secret: [u8; 32],
    /// The key and the value of each record.
    pub records: Vec<(String, Vec<u8>)>,
    /// The batches since those records were written, oldest first.
    pub batches: Vec<Batch>,
    /// Some of the batches before that, oldest first, for readers that have not seen them yet.
    pub earlier: Vec<Batch>,
    /// The keys that encrypt the secrets in records, or none if they are kept as they are.
    pub keyring: Option<Arc<Keyring>>,
    /// Sentences about damage that was found when the store was opened, and that has cost nothing.
    pub warnings: Vec<String>,
}

/// Omits the root secret, and the values as in [`Batch`].
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tip, records, batches, .. } = self;
        write!(f, "State({}, {} records, {} batches)", tip.position, records.len(), batches.len())
    }
}

/// A query for history records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// All records.
    All,
    /// The record that made a revision.
    Revision(u64),
    /// The applied reconciliations of every source.
    Reconciliations,
}

impl Query {
    /// Returns whether the query asks for a commit.
    pub fn selects(&self, header: &CommitHeader) -> bool {
        match self {
            Query::All => true,
            Query::Revision(revision) => header.revision == Some(*revision),
            Query::Reconciliations => header.applied_by().is_some(),
        }
    }
}

/// The resources whose histories are asked for: what commits did to them.
#[derive(Debug, Clone, Copy)]
pub struct ResourceHistoryQuery<'s> {
    /// The paths of their keys.
    pub paths: &'s [String],
    /// The position before which the histories end, at most the one after the last commit.
    pub before: u64,
    /// The source that applied the commits; none for all commits.
    pub source: Option<&'s str>,
}

/// Statistics of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of bytes on disk.
    pub bytes: u64,
    /// The position of the oldest history record that is kept.
    pub oldest: u64,
}

/// The process that writes to a store, as one sees it that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedWriter {
    /// The name, for people.
    pub name: String,
    /// The URL under which other processes reach it, if it has said so.
    pub url: Option<String>,
    /// Since when it writes, if it has taken the place of another since this process follows: soon, it says where it is reached.
    pub began: Option<Instant>,
    /// Since when nobody writes, if it has ended.
    pub gone_since: Option<Instant>,
    /// When this was known last.
    pub seen: Instant,
}

/// Data that the writer has forgotten, and that its followers must forget, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Whether data keys were destroyed: states in memory can have secrets that they encrypted.
    pub secrets: bool,
    /// The keys of the tombstones that are left, if others are gone.
    pub tombstones: Option<BTreeSet<String>>,
}

/// Why a store cannot be written at present. It may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// When that began.
    pub since: Instant,
    /// The first problem.
    pub error: StoreError,
}

/// Files of others beside a store, such as the suspensions of sources. They are no part of its history.
pub trait SidecarFiles: Send + Sync {
    /// Reads a file of at most `most` bytes, if it exists.
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces a file, durably.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Returns the place of a file, for messages.
    fn place(&self, name: &str) -> String {
        format!("the file `{name}` of the store")
    }

    /// Returns whether a file exists, also if it cannot be read.
    fn has(&self, name: &str) -> bool {
        !matches!(self.read(name, u64::MAX), Ok(None))
    }

    /// Keeps a damaged file as `NAME.damaged`, in place of an earlier one, and returns its new place.
    fn set_aside(&self, name: &str) -> Result<String, StoreError> {
        let aside = format!("{name}.damaged");
        self.write(&aside, &self.read(name, u64::MAX)?.unwrap_or_default())?;
        Ok(self.place(&aside))
    }
}

/// A copy of another store, while it is being written. What was not finished is no store.
pub(crate) trait StoreCopy {
    /// Adds commits to the history.
    fn append(&mut self, batches: &[Batch]) -> Result<(), StoreError>;

    /// Writes a file that others keep with the store.
    fn keep_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Writes the state at the end of the history, in the order of the keys of its records. Then it is a store.
    fn finish(self: Box<Self>, state: &mut StateRecords<'_>) -> Result<(), StoreError>;
}

/// The history that an engine keeps. No position is later than the one after the last durable commit.
pub trait History: Send + Sync {
    /// Returns the headers of at most `limit` commits before a position, newest first.
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError>;

    /// Returns a commit with its entries, or none if it is no longer kept.
    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError>;

    /// Returns some entries of the resources that a commit changed: at most so many, after the first ones. Returns none if the
    /// commit is no longer kept. An engine that can keeps no others in memory.
    fn some_entries(&self, position: u64, skip: usize, most: usize) -> Result<Option<CommitEntries>, StoreError> {
        Ok(self.commit(position)?.map(|batch| batch.some_entries(skip, most)))
    }

    /// Visits what commits did to some resources, for each of them the newest first. Of a large commit, only the entries of
    /// these resources are read, unless the engine has to search for them.
    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError>;

    /// Visits all commits after the last one of a revision and up to a position, oldest first. Starts earlier if that is simpler,
    /// and at the oldest one if the revision is no longer kept.
    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError>;
}

/// A durable log of batches. Only one process writes to it at a time; its methods can be called from any thread.
pub trait Engine: Send + Sync {
    /// Returns the state after the last durable batch, before anything is appended. The engine may give the state away: a
    /// second call can fail.
    fn load(&self) -> Result<State, StoreError>;

    /// Appends batches after position `after`, in order. On success all of them survive a power loss; on an error none
    /// of them is kept.
    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError>;

    /// Returns what another process has appended after a position, in order: all of it, or the first batches. Also returns what it
    /// has forgotten since the last call.
    fn batches_after(&self, _known: Tip) -> Result<(Vec<Batch>, Forgotten), StoreError> {
        Ok(Default::default())
    }

    /// Returns the process that writes, if this one only follows it.
    fn followed_writer(&self) -> Option<FollowedWriter> {
        None
    }

    /// Whether several processes can use the store at a time: one writes, and others follow it.
    fn is_shared(&self) -> bool {
        false
    }

    /// Tells other processes under which URL they reach this one, if it writes.
    fn advertise(&self, _url: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns since when a local copy stands in for a database that does not answer, if this is one.
    fn stands_in_since(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the history.
    fn history(&self) -> &dyn History;

    /// Replaces headers, calls and values in what the log has from before the last checkpoint. `edit` can be called twice for a
    /// commit, and must keep everything else. Fails if the engine cannot do this now.
    fn edit_history(&self, _edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
        Err(StoreError::new(Code::StoreFailed, "the history of this store cannot be changed"))
    }

    /// Returns the engine's statistics.
    fn statistics(&self) -> Statistics;

    /// Returns what is on the disk and its revision, or none if there is no disk.
    fn on_disk(&self) -> Option<(OnDisk, u64)> {
        None
    }

    /// Returns the files of others, if the engine keeps them elsewhere than in the folder of the store.
    fn sidecar_files(&self) -> Option<Arc<dyn SidecarFiles>> {
        None
    }

    /// Opens everything that the state and its history need, as of the last durable batch. Fails if nothing is on a disk.
    fn backup(&self) -> Result<Backup, StoreError> {
        Err(StoreError::new(Code::StoreFailed, "the store is not in a folder, so it has no files to back up"))
    }

    /// Fails if the engine cannot write until it is opened again.
    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Tries whether a write would succeed, without a change to the store.
    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns why a write would fail now, if the engine knows that without trying it.
    fn outage(&self) -> Option<Outage> {
        None
    }

    /// Returns whether the log is long enough for a checkpoint.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// Ends the current part of the log, so that a checkpoint of the state at its end can be written while more batches
    /// are appended. Must not be called during an [`append`](Engine::append).
    fn rotate(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Writes the state at the last [`rotate`](Engine::rotate), in the order of the keys of its records, and drops what the
    /// history no longer keeps.
    fn checkpoint(&self, _state: &mut StateRecords<'_>, _retention: &Retention) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns whether a process that is about to end should write a checkpoint first, so that the state on the disk is the
    /// current one. That must take much less time than the process has run.
    fn wants_last_checkpoint(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_state_prints_no_secret() {
        let entry = CommitEntry { key: "r/a", after: Some(b"hunter2"), ..CommitEntry::default() };
        let batch = Batch {
            position: 7,
            revision: 3,
            next_order: 1,
            header: Bytes::from_static(b"hunter2"),
            digest: [0; 32],
            hash: [0; 32],
            calls: Bytes::from_static(b"hunter2"),
            entries: std::iter::once(entry).collect(),
        };
        let state = State {
            root_secret: *b"hunter2hunter2hunter2hunter2hunt",
            records: vec![("r/a".to_owned(), b"hunter2".to_vec())],
            batches: vec![batch],
            ..State::default()
        };
        let printed = format!("{state:?} {:?}", state.batches);
        assert!(!printed.contains("104, 117, 110") && !printed.contains("hunter2"), "{printed}");
        assert!(printed.contains("Batch(7, revision 3, 1 entries)"), "{printed}");
    }
}
