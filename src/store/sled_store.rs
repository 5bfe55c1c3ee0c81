//! The store on sled.
//!
//! Everything is in one tree, and a commit is one batch on it: after a crash sled has all of a batch or nothing of it.
//! Readers never come here; they use the Snapshot in memory.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use sled::{Batch, Db};

use super::{Commit, CommitError, Committed, HistoryRecord, Store, StoreError, codec, mint};
use crate::model::{code::Code, operation::Author, snapshot::Snapshot};

const FORMAT_KEY: &str = "m/format";
const FORMAT: &[u8] = b"edgewright 1";
const REVISION_KEY: &str = "m/revision";
const ROOT_KEY: &str = "m/root";
const HISTORY: &str = "h/";
/// The revisions that sources have made, so that they are found among those of requests.
const SOURCES: &str = "s/";
/// Requests are answered from the Snapshot, so sled needs little memory of its own.
const CACHE_BYTES: u64 = 64 << 20;

/// A store in a folder. One process has it open at a time.
pub struct SledStore {
    db: Db,
    path: PathBuf,
    current: ArcSwap<Snapshot>,
    /// sled's file, which a commit syncs.
    file: File,
    /// Commits are made one after the other.
    writing: Mutex<()>,
    /// Set when sled has a batch that may not be on the disk: memory and disk may differ until the next start.
    broken: AtomicBool,
    root_secret: [u8; 32],
}

impl SledStore {
    /// Whether a folder holds a store, so that a dry run need not make one.
    pub fn exists(path: &Path) -> bool {
        path.join("db").is_file() && path.join("conf").is_file()
    }

    /// Opens the store in a folder, or makes one where there is none or an empty folder.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !Self::exists(path) && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(StoreError::new(
                Code::StoreFormat,
                format!("{} is a folder with other files, not a store", path.display()),
            ));
        }
        make_private(path).map_err(|error| {
            StoreError::new(Code::StoreFailed, format!("{} cannot be made: {error}", path.display()))
        })?;
        let db = sled::Config::default()
            .path(path)
            .cache_capacity(CACHE_BYTES)
            .open()
            .map_err(|error| open_error(path, &error))?;
        let failed = |error: sled::Error| engine_error(path, &error);
        let file = File::open(path.join("db"));
        let file = file.map_err(|error| StoreError::new(Code::StoreFailed, format!("{}: {error}", path.display())))?;
        match db.get(FORMAT_KEY).map_err(failed)? {
            None if db.is_empty() => {
                let mut batch = Batch::default();
                batch.insert(FORMAT_KEY, FORMAT);
                batch.insert(ROOT_KEY, mint::random_secret().as_slice());
                db.apply_batch(batch).map_err(failed)?;
                make_durable(&db, &file, path)?;
            }
            Some(format) if format == FORMAT => {}
            _ => {
                return Err(StoreError::new(
                    Code::StoreFormat,
                    format!("{} was written by another version of edgewright", path.display()),
                ));
            }
        }
        let root_secret = db.get(ROOT_KEY).map_err(failed)?.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_ref()).ok());
        let root_secret = root_secret.ok_or_else(|| corrupt(path, "its root secret is missing"))?;
        let current = load(&db, path)?;
        Ok(Self {
            db,
            path: path.to_owned(),
            current: ArcSwap::from_pointee(current),
            file,
            writing: Mutex::new(()),
            broken: AtomicBool::new(false),
            root_secret,
        })
    }

    fn write(&self, before: &Snapshot, commit: &Commit) -> Result<Snapshot, CommitError> {
        let (next, touched) = before.apply(&commit.operations, commit.at).map_err(CommitError::Refused)?;
        let failed =
            |error: serde_json::Error| CommitError::Failed(StoreError::new(Code::StoreFailed, error.to_string()));
        let mut batch = Batch::default();
        for key in &touched {
            let record = codec::encode_key(codec::RECORD, key);
            let deleted = codec::encode_key(codec::DELETED, key);
            match (next.get(key), next.order_of(key)) {
                (Some(entry), _) => {
                    batch.insert(record.as_bytes(), codec::encode(entry).map_err(failed)?);
                    batch.remove(deleted.as_bytes());
                }
                (None, order) => {
                    batch.remove(record.as_bytes());
                    batch.insert(deleted.as_bytes(), order.unwrap_or_default().to_string().as_bytes());
                }
            }
        }
        batch.insert(REVISION_KEY, format!("{} {}", next.revision, next.next_order()).as_bytes());
        let record = HistoryRecord {
            revision: next.revision,
            at: commit.at,
            author: commit.author.clone(),
            calls: commit.operations.iter().map(ToString::to_string).collect(),
        };
        batch.insert(revision_key(HISTORY, next.revision).as_bytes(), serde_json::to_vec(&record).map_err(failed)?);
        if matches!(commit.author, Author::Source { .. }) {
            batch.insert(revision_key(SOURCES, next.revision).as_bytes(), &[]);
        }
        let written = self.db.apply_batch(batch).map_err(|error| engine_error(&self.path, &error));
        if let Err(error) = written.and_then(|()| make_durable(&self.db, &self.file, &self.path)) {
            self.broken.store(true, Ordering::Release);
            return Err(CommitError::Failed(error));
        }
        Ok(next)
    }

    fn read_record(&self, bytes: &[u8]) -> Result<HistoryRecord, StoreError> {
        serde_json::from_slice(bytes).map_err(|_| corrupt(&self.path, "a history record cannot be read"))
    }
}

impl Store for SledStore {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        // A panic of another writer left the current Snapshot as it was, so its lock can be taken over.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.health().map_err(CommitError::Failed)?;
        let before = self.current.load_full();
        if let Some(base) = commit.base
            && base != before.revision
        {
            return Err(CommitError::Stale { base, current: before.revision });
        }
        if commit.operations.is_empty() {
            return Ok(Committed { snapshot: before });
        }
        let next = Arc::new(self.write(&before, &commit)?);
        self.current.store(Arc::clone(&next));
        Ok(Committed { snapshot: next })
    }

    fn health(&self) -> Result<(), StoreError> {
        if !self.broken.load(Ordering::Acquire) {
            return Ok(());
        }
        let message =
            format!("an earlier write to {} failed; restart to read what is on the disk", self.path.display());
        Err(StoreError::new(Code::StoreFailed, message))
    }

    fn root_secret(&self) -> [u8; 32] {
        self.root_secret
    }

    fn history(&self, limit: usize) -> Result<Vec<HistoryRecord>, StoreError> {
        let records = self.db.scan_prefix(HISTORY).values().rev().take(limit);
        records.map(|record| self.read_record(&record.map_err(|error| engine_error(&self.path, &error))?)).collect()
    }

    fn reconciliations(&self, before: u64, limit: usize) -> Result<Vec<HistoryRecord>, StoreError> {
        let failed = |error: sled::Error| engine_error(&self.path, &error);
        let keys = self.db.range(SOURCES.to_owned()..revision_key(SOURCES, before)).keys().rev().take(limit);
        keys.map(|key| {
            let key = key.map_err(failed)?;
            let revision = key.get(SOURCES.len()..).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            let record = revision.map_or(Ok(None), |revision| self.record(revision))?;
            record.ok_or_else(|| corrupt(&self.path, "a history record is missing"))
        })
        .collect()
    }

    fn record(&self, revision: u64) -> Result<Option<HistoryRecord>, StoreError> {
        let found = self.db.get(revision_key(HISTORY, revision)).map_err(|error| engine_error(&self.path, &error))?;
        found.map(|bytes| self.read_record(&bytes)).transpose()
    }
}

/// Zero-padded, so that the keys sort by number.
fn revision_key(prefix: &str, revision: u64) -> String {
    format!("{prefix}{revision:020}")
}

fn load(db: &Db, path: &Path) -> Result<Snapshot, StoreError> {
    let failed = |error: sled::Error| engine_error(path, &error);
    let (revision, next_order) = match db.get(REVISION_KEY).map_err(failed)? {
        None => (0, 0),
        Some(bytes) => std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.split_once(' '))
            .and_then(|(revision, order)| Some((revision.parse().ok()?, order.parse().ok()?)))
            .ok_or_else(|| corrupt(path, "its revision cannot be read"))?,
    };
    let records: Vec<_> = db.scan_prefix(codec::RECORD).collect::<Result<_, _>>().map_err(failed)?;
    let entries: Result<Vec<_>, String> =
        records.into_par_iter().map(|(key, value)| codec::decode(&key, &value)).collect();
    let damaged = |reason: String| corrupt(path, &reason);
    let deleted: Vec<_> = db.scan_prefix(codec::DELETED).collect::<Result<_, _>>().map_err(failed)?;
    let deleted: Result<Vec<_>, String> =
        deleted.iter().map(|(key, value)| codec::decode_deleted(key, value)).collect();
    Ok(Snapshot::restore(revision, next_order, deleted.map_err(damaged)?, entries.map_err(damaged)?))
}

/// A store holds private keys: its folder is for its user alone.
fn make_private(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// sled's flush hands its pages to the operating system; only a sync of the file puts them on the disk.
fn make_durable(db: &Db, file: &File, path: &Path) -> Result<(), StoreError> {
    db.flush().map_err(|error| engine_error(path, &error))?;
    file.sync_all()
        .map_err(|error| StoreError::new(Code::StoreFailed, format!("{} cannot be written: {error}", path.display())))
}

fn open_error(path: &Path, error: &sled::Error) -> StoreError {
    let locked = match error {
        sled::Error::Io(error) => {
            error.kind() == io::ErrorKind::WouldBlock || error.to_string().contains("could not acquire lock")
        }
        _ => false,
    };
    if locked {
        return StoreError::new(
            Code::StoreLocked,
            format!("another process (perhaps `edgewright serve`) has the store {} open", path.display()),
        );
    }
    engine_error(path, error)
}

fn engine_error(path: &Path, error: &sled::Error) -> StoreError {
    match error {
        sled::Error::Corruption { .. } => corrupt(path, "sled reports corruption"),
        sled::Error::Io(error) => StoreError::new(Code::StoreFailed, format!("{}: {error}", path.display())),
        other => StoreError::new(Code::StoreFailed, format!("{}: {other}", path.display())),
    }
}

fn corrupt(path: &Path, reason: &str) -> StoreError {
    StoreError::new(Code::StoreCorrupt, format!("the store {} is damaged: {reason}", path.display()))
}
