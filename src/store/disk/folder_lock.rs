//! The lock of a store's folder: one writer has it alone, or readers share it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use super::files::{open, private};
use super::lock_wait::{MOMENT, retry_while_locked};
use crate::files::{fault, if_exists};
use crate::model::Code;
use crate::store::error::{Doing, StoreError};

/// The file that a writer locks, and that readers share.
pub(crate) const LOCK: &str = "lock";

/// The longest note of a server in a lock.
const LONGEST_NOTE: u64 = 512;

/// Tries again for a moment while a store is locked.
fn when_free<T>(open: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    retry_while_locked(MOMENT, |error: &StoreError| error.code == Code::StoreLocked, open)
}

/// Locks a folder for as long as the returned files are open.
pub(crate) fn lock(folder: &Path) -> Result<Vec<File>, StoreError> {
    let path = folder.join(LOCK);
    let held = when_free(|| {
        // On a full disk no file can be created, so an existing lock file is only opened.
        let file = match open(&path, OpenOptions::new().write(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => open(&path, private().write(true).create(true)),
            opened => opened,
        };
        hold(folder, file.map(Some), File::try_lock)
    })?;
    // A server that is gone must not be named.
    if let Some(file) = held.first().filter(|file| file.metadata().is_ok_and(|facts| facts.len() > 0)) {
        let _ = fault::point("lock.clear").and_then(|()| file.set_len(0));
    }
    Ok(held)
}

/// Shares the lock of a folder with other readers for as long as the returned files are open. Needs no write access.
pub(crate) fn lock_shared(folder: &Path) -> Result<Vec<File>, StoreError> {
    when_free(|| {
        // A lock file must not be created here.
        let file = if_exists(open(&folder.join(LOCK), OpenOptions::new().read(true)));
        hold(folder, file, File::try_lock_shared)
    })
}

/// Locks a lock file, if there is one. People remove it, so the folder is locked as well where the file system supports it.
fn hold(
    folder: &Path,
    file: io::Result<Option<File>>,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Vec<File>, StoreError> {
    let (path, mut held) = (folder.join(LOCK), Vec::new());
    if let Some(file) = file.doing("open", &path)? {
        match lock(&file) {
            Ok(()) => held.push(file),
            Err(TryLockError::WouldBlock) => return Err(locked_error(folder)),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path, &error)),
        }
    }
    let file = File::open(folder).doing("open", folder)?;
    match lock(&file) {
        Err(TryLockError::WouldBlock) => Err(locked_error(folder)),
        _ => {
            held.push(file);
            Ok(held)
        }
    }
}

/// Returns the error for a folder that another process has open.
fn locked_error(folder: &Path) -> StoreError {
    let Some((url, process)) = noted_server(folder) else {
        let message =
            format!("the store {} is in use by another process, perhaps `edgewright serve`", folder.display());
        return StoreError::new(Code::StoreLocked, message);
    };
    let folder = folder.display();
    let message = format!(
        "the store {folder} is in use by another process, perhaps `edgewright serve` at {url} (process {process})"
    );
    StoreError::new(Code::StoreLocked, message).help(format!(
        "add `--server {url}`, and set EDGEWRIGHT_TOKEN to the token of an API key; or stop the other process"
    ))
}

/// Notes in the lock of an open store where its server listens, and its process, for the message to other processes. It is
/// only a hint, so it is not an error if it cannot be written.
pub(crate) fn note_server(folder: &Path, url: &str) {
    let noting = fault::point("lock.note");
    let file = noting.and_then(|()| open(&folder.join(LOCK), OpenOptions::new().write(true).truncate(true)));
    let note = format!("{url} {}", std::process::id());
    let _ = file.and_then(|mut file| file.write_all(note.as_bytes()));
}

/// The URL and the process of the server that a lock names. Whoever locks the store for writing removes the note.
fn noted_server(folder: &Path) -> Option<(String, u32)> {
    let mut text = String::new();
    let file = open(&folder.join(LOCK), OpenOptions::new().read(true)).ok()?;
    file.take(LONGEST_NOTE).read_to_string(&mut text).ok()?;
    let (url, process) = text.split_once(' ')?;
    let is_url = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    let is_url = is_url && url.bytes().all(|byte| byte.is_ascii_graphic());
    Some((url.to_owned(), process.parse().ok()?)).filter(|_| is_url)
}
