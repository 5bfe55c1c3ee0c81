//! Opens sled databases in the folder of a store. sled creates what it does not find, follows links, gives its files the mode
//! of the process, and can panic on damaged files: whoever uses it here is spared all that.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use sled::Db;

use crate::files::fault;
use crate::store::disk::files::{self, make_private};
use crate::store::disk::lock_wait;
use crate::store::error::{Doing, StoreError};

/// Nothing here is read often, so a small cache is enough.
const CACHE_BYTES: u64 = 16 << 20;
/// The longest time that sled takes to close a database.
const LONGEST_CLOSE: Duration = Duration::from_secs(30);
/// The file without which sled would begin an empty database.
const FILE: &str = "db";

/// Runs a sled operation on the database at a path.
pub(super) fn guarded<R>(path: &Path, run: impl FnOnce() -> Result<R, sled::Error>) -> Result<R, StoreError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(sled::Error::Io(error))) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(StoreError::io("use the database", path, &error))
        }
        Ok(Err(error)) => Err(StoreError::corrupt(path, error.to_string())),
        Err(_) => Err(StoreError::corrupt(path, "its files are damaged")),
    }
}

/// Opens a database, or creates an empty one. `flush_every` is the time in milliseconds for which its writes are only in
/// memory; none if its owner flushes it.
pub(super) fn create(path: &Path, flush_every: Option<u64>) -> Result<Db, StoreError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StoreError::io("create", path, &error));
        }
        _ => {}
    }
    open_folder(path, flush_every)
}

/// Opens a database that must exist.
pub(super) fn open(path: &Path) -> Result<Db, StoreError> {
    match files::exists(&path.join(FILE))? {
        true => open_folder(path, None),
        false => Err(StoreError::corrupt(path, "the database is missing")),
    }
}

fn open_folder(path: &Path, flush_every: Option<u64>) -> Result<Db, StoreError> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Err(StoreError::corrupt(path, "not a folder"));
    }
    // sled would follow a link, or wait for a FIFO for ever.
    let entries = files::entries_below(path).doing("read", path)?;
    if let Some((special, _)) = entries.iter().find(|(_, kind)| !kind.is_file() && !kind.is_dir()) {
        return Err(StoreError::corrupt(special, "not a regular file"));
    }
    let config = || sled::Config::default().path(path).cache_capacity(CACHE_BYTES).flush_every_ms(flush_every);
    // A database that was just closed can still be locked for a moment. Only the text of sled's error tells that.
    let is_locked = |error: &sled::Error| match error {
        sled::Error::Io(error) => error.to_string().contains("could not acquire lock"),
        _ => false,
    };
    let db = guarded(path, || lock_wait::retry_while_locked(lock_wait::MOMENT, is_locked, || config().open()))?;
    let _ = make_private(path);
    Ok(db)
}

/// Closes a database, and waits until nothing of sled works on its files any more: some of it does so in the background.
pub(super) fn close(db: Db, path: &Path) -> Result<(), StoreError> {
    drop(db);
    let is_held = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    let closed = lock_wait::retry_while_locked(LONGEST_CLOSE, is_held, || {
        let file = files::open(&path.join(FILE), File::options().read(true))?;
        file.try_lock().map_err(io::Error::from)
    });
    closed.doing("close the database", path)
}

/// Makes a closed database durable, but for its name: every file and every folder, each before the folder that it is in.
pub(crate) fn sync(path: &Path) -> Result<(), StoreError> {
    let sync = |path: &Path| fault::point("state.sync").and_then(|()| File::open(path)?.sync_all());
    let entries = files::entries_below(path).doing("sync", path)?;
    entries.iter().rev().map(|(path, _)| path.as_path()).chain([path]).try_for_each(sync).doing("sync", path)
}
