//! Restores a store from a backup, at its revision or at an earlier one (D100).
//!
//! Everything is unpacked and verified in a folder inside the new one, without a head, and then moved to its place. The head
//! comes last: until then, the folder does not open as a store. For a database, it is unpacked in a temporary folder, and copied
//! (D115).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::backup_read::{BackupFile, open_keys, open_unpacked};
use super::backup_write::SUSPENSIONS;
use super::copy::copy_store;
use crate::files::fault;
use crate::model::Code;
use crate::store::commit::batch::Tip;
use crate::store::commit::codec;
use crate::store::commit::entries::CommitEntries;
use crate::store::commit::header::{CommitHeader, Retention, ScrubbedRecord, ScrubbedRecords};
use crate::store::commit::unchained_batch::{UnchainedBatch, scrub_header};
use crate::store::database::state::{self, StateIdentity};
use crate::store::disk::files::{self, Part};
use crate::store::disk::folder_lock;
use crate::store::disk::temp_dir::TempFolder;
use crate::store::error::{Doing, StoreError};
use crate::store::folder::interrupted_restore::{self, STAGING};
use crate::store::folder::key_copies::{self, KEYS, KEYS_COPY};
use crate::store::folder::keys::MASTER;
use crate::store::history::rewind::RevisionError;
use crate::store::log::appender::LogAppender;
use crate::store::log::head::{self, Head, HeadFile};
use crate::store::log::parts::KEPT;
use crate::store::log::reader::LogReader;
use crate::store::open_store::{Store, is_in_database, shown_address, store_exists};
use crate::store::seal::{Keyring, MasterKeySource};
use crate::store::trusted_time::TOLERANCE;
use crate::syntax::text::number_of;

/// The files that a folder may have before a store is restored into it.
const HARMLESS: [&str; 4] = ["lock", MASTER, STAGING, "lost+found"];

/// The help for a state that the history in a backup no longer has.
const OLDER_BACKUP: &str = "use an older backup";

/// A state within the history of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointInTime {
    /// The end of a revision: the record before the next revision.
    Revision(u64),
    /// The record before the first one with a later time.
    Time(Timestamp),
}

/// A restore of a backup.
pub(crate) struct Restore<'r> {
    pub backup: &'r BackupFile,
    /// A folder that is missing or empty, or a database without a store.
    pub to: &'r Path,
    /// An earlier state than that of the backup.
    pub point: Option<PointInTime>,
    /// The master key. One that is kept beside the store is where it will be.
    pub source: &'r MasterKeySource,
}

impl Restore<'_> {
    /// Restores the store. Returns its revision and the position of its last record.
    pub(crate) fn run(&self) -> Result<(u64, u64), StoreError> {
        if is_in_database(self.to) { self.to_database() } else { self.to_folder() }
    }

    fn to_database(&self) -> Result<(u64, u64), StoreError> {
        if store_exists(self.to)? {
            let shown = shown_address(self.to);
            let message = format!("{shown} has a store: a backup is restored into an empty database");
            return Err(StoreError::new(Code::StoreFormat, message).help("choose an empty database with `--store`"));
        }
        self.backup.verify()?;
        let unpacked = TempFolder::new()?;
        let (store, head) = self.unpack(unpacked.path())?;
        // With its head, the files of others beside it are those of a store.
        HeadFile::create(unpacked.path(), head)?;
        let copied = copy_store(&store, self.to, self.source)?;
        Ok((copied.revision, head.position))
    }

    fn to_folder(&self) -> Result<(u64, u64), StoreError> {
        let folder = self.to;
        check_empty(folder)?;
        // Most damage is found before anything is written.
        self.backup.verify()?;
        let created = !files::exists(folder)?;
        files::create_folder(folder)?;
        let lock = folder_lock::lock(folder)?;
        let restored = self.to_locked_folder(folder);
        if restored.is_err() && created {
            remove_empty(folder);
        }
        drop(lock);
        if restored.is_ok() {
            write_state(folder, self.source);
        }
        restored
    }

    fn to_locked_folder(&self, folder: &Path) -> Result<(u64, u64), StoreError> {
        check_empty(folder)?;
        let staging = folder.join(STAGING);
        if files::exists(&staging)? {
            remove_placed(folder)?;
            files::remove(&staging)?;
        }
        let staged = TempFolder::at(staging)?;
        let (store, head) = self.unpack(staged.path())?;
        let revision = store.snapshot().revision;
        drop(store);
        key_copies::complete(staged.path())?;
        if let Err(error) = place(staged.path(), folder, head) {
            // With a head, the store is complete. Without one, what is left must not be taken for a store that is being created.
            if !files::exists(&head::path(folder))? && remove_placed(folder).is_err() {
                std::mem::forget(staged);
            }
            return Err(error);
        }
        Ok((revision, head.position))
    }

    /// Unpacks the backup into a folder and verifies it, at the point in time if there is one. Returns the store, and its head.
    fn unpack(&self, staging: &Path) -> Result<(Store, Head), StoreError> {
        self.backup.unpack(staging)?;
        let mut head = self.backup.head()?;
        let mut store = open_unpacked(staging, self.to, head, self.source)?;
        verify(&store)?;
        if let Some(end) = self.point.map(|point| end_of(&store, point)).transpose()?
            && end.position != head.position
        {
            let keyring = open_keys(staging, self.to, head.store, self.source)?;
            head = cut(staging, &store, head, end, &keyring)?;
            drop(store);
            store = open_unpacked(staging, self.to, head, self.source)?;
            verify(&store)?;
        }
        Ok((store, head))
    }
}

/// Writes the state at the end of a restored log, which can be after the one in the backup. The log has it anyway. Nothing of the
/// history is dropped: the limits are those of whoever opens the store next.
fn write_state(folder: &Path, source: &MasterKeySource) {
    let all = Retention { records: u64::MAX, age: Duration::MAX, bytes: u64::MAX };
    if let Err(error) = Store::open_briefly(folder, all, source) {
        tracing::warn!(code = %error.code, "the restored state was not written: {error}");
    }
}

/// Removes a folder that a failed restore has created and locked, unless it has more than the file of the lock.
fn remove_empty(folder: &Path) {
    if files::names_in(folder).is_ok_and(|names| names.iter().all(|name| name == folder_lock::LOCK)) {
        let _ = files::remove(&folder.join(folder_lock::LOCK));
        let _ = fs::remove_dir(folder);
    }
}

/// Removes what a restore has put into a folder.
fn remove_placed(folder: &Path) -> Result<(), StoreError> {
    let mut names = files::names_in(folder)?;
    names.retain(|name| is_restored_file(name));
    names.iter().try_for_each(|name| files::remove(&folder.join(name)))
}

/// Fails if a folder has anything that a restore could mix with a store, or replace.
fn check_empty(folder: &Path) -> Result<(), StoreError> {
    if !files::exists(folder)? {
        return Ok(());
    }
    let is_interrupted = interrupted_restore::is_interrupted(folder)?;
    let allowed = |name: &String| HARMLESS.contains(&name.as_str()) || (is_interrupted && is_restored_file(name));
    if files::names_in(folder)?.iter().all(allowed) {
        return Ok(());
    }
    let message = format!("{} is not empty: a store is restored into a new or empty folder", folder.display());
    Err(StoreError::new(Code::StoreFormat, message).help("choose a new or empty folder with `--store`"))
}

/// Whether a restore puts a file of this name into the folder before the head.
fn is_restored_file(name: &str) -> bool {
    Part::parse(name).is_some() || [KEPT, KEYS, KEYS_COPY, SUSPENSIONS, "head.tmp"].contains(&name)
}

/// Fails with the first problem of a store.
fn verify(store: &Store) -> Result<(), StoreError> {
    store.check().problems.into_iter().next().map_or(Ok(()), Err)
}

/// Finds the last record of a point in time.
fn end_of(store: &Store, point: PointInTime) -> Result<Tip, StoreError> {
    match point {
        PointInTime::Revision(revision) => end_of_revision(store, revision),
        PointInTime::Time(time) => end_at(store, time),
    }
}

fn end_of_revision(store: &Store, revision: u64) -> Result<Tip, StoreError> {
    let (mut first, mut found): (Option<Tip>, Option<Tip>) = (None, None);
    store.walk(0, &mut |before, batch| {
        first = first.or(Some(before));
        if batch.revision == revision {
            found = Some(Tip::after(&batch));
        }
        Ok(())
    })?;
    // Before the first record there was a state, too.
    let start = first.filter(|first| first.revision == revision);
    found.or(start).ok_or_else(|| {
        let current = store.snapshot().revision;
        if revision > current {
            let message = RevisionError::Future { revision, current }.to_string();
            return StoreError::new(Code::RevisionNotFound, message).help("use an earlier revision, or a newer backup");
        }
        let oldest = first.map_or(current, |first| first.revision);
        StoreError::new(Code::RevisionGone, RevisionError::Gone { revision, oldest }.to_string()).help(OLDER_BACKUP)
    })
}

/// Finds the last record before the first one with a later time. The time of a record is that of its attempt, so the commit of a
/// long run has an earlier time than those before it, and so has one of a server whose clock is behind that of the last server: what
/// follows the first record with a later time was not there yet. If such a record is more than an hour earlier, a clock was wrong,
/// and only people know which one.
fn end_at(store: &Store, time: Timestamp) -> Result<Tip, StoreError> {
    let mut end: Option<Tip> = None;
    // The end before the first record with a later time, and that time.
    let mut later: Option<(Tip, Timestamp)> = None;
    let mut much_earlier: Option<(Tip, Timestamp)> = None;
    store.walk(0, &mut |before, batch| {
        let at = CommitHeader::from_bytes(&batch.header)?.at;
        match later {
            None if at <= time => end = Some(Tip::after(&batch)),
            None => later = Some((before, at)),
            Some((_, first)) if at <= time && first.duration_since(at) > TOLERANCE => {
                much_earlier = Some((Tip::after(&batch), at));
            }
            Some(_) => {}
        }
        Ok(())
    })?;
    if let (Some((former, first)), Some((last, at))) = (later, much_earlier)
        && former.revision != last.revision
    {
        let (record, other) = (former.position + 1, last.position);
        let message =
            format!("the clock went back: record {record} is of {first}, and record {other} after it of {at}");
        let (before, there) = (former.revision, last.revision);
        let choice = format!("{before} is the one before record {record}, and {there} the one at record {other}");
        let help = format!("restore a revision with `--to`: {choice}");
        return Err(StoreError::new(Code::Conflict, message).help(help));
    }
    end.ok_or_else(|| {
        let message = format!("the history in the backup begins after {time}");
        StoreError::new(Code::RevisionGone, message).help(OLDER_BACKUP)
    })
}

/// Removes everything after a record from an unpacked store, and writes the state at its end. Returns the new head.
fn cut(staging: &Path, store: &Store, head: Head, end: Tip, keyring: &Keyring) -> Result<Head, StoreError> {
    let snapshot = store.snapshot_at(end.revision).map_err(|error| match error {
        RevisionError::Failed(error) => error,
        gone => StoreError::new(Code::RevisionGone, gone.to_string()).help(OLDER_BACKUP),
    })?;
    if let Some(entry) = snapshot.iter().find(|entry| entry.lazy_spec.has_lost_secrets()) {
        let message = format!("{} had secrets at revision {} that can no longer be decrypted", entry.key, end.revision);
        return Err(StoreError::new(Code::SecretsGone, message));
    }
    let scrubbed = scrubbed_later(store, end)?;
    for generation in Part::Log.generations(staging)? {
        let path = Part::Log.path(staging, generation);
        let mut reader = LogReader::open_headers(&path)?;
        if reader.start.position >= end.position {
            files::remove(&path)?;
            continue;
        }
        while reader.tip.position < end.position && reader.batch()?.is_some() {}
        drop(LogAppender::open(path, reader.end)?);
    }
    let state = head.generation + 1;
    let identity = StateIdentity { store: head.store, tip: end, key: keyring.current() };
    state::write(staging, state, identity, &mut codec::records(&snapshot, Some(keyring))?)?;
    state::remove_others(staging, &[state])?;
    let mut appender = LogAppender::create(Part::Log.path(staging, state), head.store, end)?;
    let tip = if scrubbed.is_empty() { end } else { list_again(&mut appender, end, scrubbed)? };
    Ok(Head { position: tip.position, generation: state, state, hash: tip.hash, store: head.store })
}

/// The records up to `end` that only later ones list as scrubbed.
fn scrubbed_later(store: &Store, end: Tip) -> Result<Vec<ScrubbedRecord>, StoreError> {
    let (mut scrubbed, mut is_later) = (ScrubbedRecords::default(), false);
    store.walk(0, &mut |_, batch| {
        if is_later {
            scrubbed.add_from(&batch.header);
        }
        is_later |= batch.hash == end.hash;
        Ok(())
    })?;
    Ok(scrubbed.up_to(end.position))
}

/// Adds a record that lists what was scrubbed: the one that did was cut off. Returns the end of the log.
fn list_again(appender: &mut LogAppender, end: Tip, scrubbed: Vec<ScrubbedRecord>) -> Result<Tip, StoreError> {
    let records = number_of(scrubbed.len(), "record");
    let message = format!("restored with {records} that a later scrub had changed");
    let header = scrub_header(end.position + 1, scrubbed, message);
    let (batch, _) = UnchainedBatch::new(header, &[], CommitEntries::default(), None)?.chained(&end);
    appender.append(std::slice::from_ref(&batch))?;
    Ok(Tip::after(&batch))
}

/// Moves the verified files of a store to their folder, and creates the head there.
fn place(staging: &Path, folder: &Path, head: Head) -> Result<(), StoreError> {
    let sync = |folder: &Path| files::sync_folder(&head::path(folder));
    sync(staging)?;
    sync(folder)?;
    for name in files::names_in(staging)? {
        let (from, to): (PathBuf, PathBuf) = (staging.join(&name), folder.join(&name));
        fault::point("file.rename").and_then(|()| fs::rename(&from, &to)).doing("write", &to)?;
    }
    sync(staging)?;
    sync(folder)?;
    HeadFile::create(folder, head)
}
