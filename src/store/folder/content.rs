//! The content of a folder's files: the newest state and the log after it, verified against the head (D58).
//!
//! This is where a start decides between "interrupted", "damaged" and "complete". It takes the state that the head names. If
//! that is damaged, the previous state or the beginning of the log must lead to the same end, and then nothing is lost but
//! time. From the state on, every part of the log must follow the one before by position and hash, every commit its
//! predecessor in the chain, and the end must be the commit that the head acknowledges, or a later one. Only at the very end
//! of the last part may there be bytes that are no commit. Anything else is an error that names the file, the record and the
//! byte, and nothing is changed.

use std::path::Path;

use crate::model::Code;
use crate::store::commit::batch::Tip;
use crate::store::database::state::{self, Access, SavedState};
use crate::store::disk::files::Part;
use crate::store::engine::State;
use crate::store::error::StoreError;
use crate::store::log::appender;
use crate::store::log::head::Head;
use crate::store::log::reader::{LogReader, LogTail};
use crate::store::seal::{KeyId, Keyring};

/// The verified content of a folder.
pub(crate) struct FolderContent {
    pub(super) state: State,
    /// The data key of the state on the disk.
    pub(super) key: KeyId,
    /// The length of the state on the disk.
    pub(super) state_bytes: u64,
    /// The generation of the last part of the log that was read or, before any is, of the first one after the state.
    pub(super) generation: u64,
    /// The end of that part.
    pub(super) end: u64,
    /// The last batch that was read.
    pub(super) tip: Tip,
    /// The length of the batches after the state.
    pub(super) since: u64,
    /// Why the state that the head names was not used. The log has led to the same one.
    pub(super) damage: Option<StoreError>,
}

impl FolderContent {
    fn of_state(state: State, key: KeyId, state_bytes: u64, generation: u64, damage: Option<StoreError>) -> Self {
        Self { tip: state.tip, state, key, state_bytes, generation, end: 0, since: 0, damage }
    }

    /// The generation of a state without the log after it, or 0 if that is the beginning of the log.
    pub(crate) fn state_generation(&self) -> u64 {
        if self.state.tip.position > 0 { self.generation } else { 0 }
    }
}

/// Reads a folder and verifies it against the head, without changing anything that counts.
pub(super) fn read(
    folder: &Path,
    acknowledged: Head,
    keyring: &Keyring,
    access: Access,
) -> Result<FolderContent, StoreError> {
    let mut content = start(folder, acknowledged, keyring, access)?;
    let first = content.generation;
    let last = Part::Log.generations(folder)?.last().copied().unwrap_or(first).max(acknowledged.generation);
    for generation in first..=last {
        let path = Part::Log.path(folder, generation);
        let mut log = LogReader::open(&path)?;
        if log.store != acknowledged.store {
            return Err(StoreError::corrupt(&path, "it belongs to another store"));
        }
        if !log.start.is_same(&content.tip) {
            return Err(StoreError::corrupt(&path, format!("it does not follow record {}", content.tip.position)));
        }
        while let Some(framed) = log.batch()? {
            let batch = framed.batch;
            // An old part of the log can have scrubbed records.
            if generation >= acknowledged.state && !content.tip.leads_to(&batch) {
                let found = format!("the hash of record {} does not match its content", batch.position);
                return Err(StoreError::corrupt(&path, found));
            }
            content.tip = Tip::after(&batch);
            if batch.position == acknowledged.position && batch.hash != acknowledged.hash {
                let found = format!("record {} is not the one that was acknowledged", batch.position);
                return Err(StoreError::corrupt(&path, found));
            }
            content.state.batches.push(batch);
        }
        let lost = content.tip.position < acknowledged.position;
        if log.tail.is_some_and(|tail| tail == LogTail::Damaged || generation < last || lost) {
            let (next, end, acknowledged) = (content.tip.position + 1, log.end, acknowledged.position);
            let found = format!("record {next} cannot be read at byte {end} (acknowledged: record {acknowledged})");
            return Err(StoreError::corrupt(&path, found));
        }
        (content.generation, content.end) = (generation, log.end);
        content.since += log.end - appender::HEAD as u64;
    }
    if content.tip.position < acknowledged.position {
        let (end, acknowledged) = (content.tip.position, acknowledged.position);
        let found = format!("it ends at record {end}, but record {acknowledged} was acknowledged");
        return Err(StoreError::corrupt(&Part::Log.path(folder, last), found));
    }
    Ok(content)
}

/// Finds the newest state that can be read. Without one, the log must lead to it from the beginning.
pub(crate) fn start(folder: &Path, head: Head, keyring: &Keyring, access: Access) -> Result<FolderContent, StoreError> {
    let root_secret = keyring.root_secret();
    let mut damage = None;
    let older = Part::State.generations(folder)?.into_iter().rev().filter(|older| *older < head.state);
    for generation in std::iter::once(head.state).filter(|named| *named > 0).chain(older) {
        match state::read(folder, generation, access).and_then(|saved| check_state_before_head(folder, head, saved)) {
            Ok(SavedState { identity, records, bytes }) => {
                let state = State { tip: identity.tip, root_secret, records, ..State::default() };
                return Ok(FolderContent::of_state(state, identity.key, bytes, generation, damage));
            }
            Err(error) if generation == head.state && error.code != Code::StoreCorrupt => return Err(error),
            Err(error) => damage = damage.or(Some(error)),
        }
    }
    let missing =
        || damage.clone().unwrap_or_else(|| StoreError::corrupt(folder, "the beginning of its log is missing"));
    let first = Part::Log.generations(folder)?.first().copied().ok_or_else(missing)?;
    let begins = LogReader::open_headers(&Part::Log.path(folder, first))?.start.position == 0;
    // What was sealed with a key that is destroyed cannot be opened.
    if !begins || (damage.is_some() && keyring.has_destroyed()) {
        return Err(missing());
    }
    let state = State { root_secret, ..State::default() };
    Ok(FolderContent::of_state(state, keyring.current(), 0, first, damage))
}

/// Checks that a state is one of this store, and that the head is not older.
fn check_state_before_head(folder: &Path, head: Head, saved: SavedState) -> Result<SavedState, StoreError> {
    let path = Part::State.path(folder, head.state);
    if saved.identity.store != head.store {
        return Err(StoreError::corrupt(&path, "it belongs to another store than `head`"));
    }
    if saved.identity.tip.position > head.position {
        let found = format!(
            "it starts after record {}, but `head` acknowledges record {} (was a backup copied over a newer store?)",
            saved.identity.tip.position, head.position
        );
        return Err(StoreError::corrupt(&path, found));
    }
    Ok(saved)
}

/// Says that a damaged state has cost nothing.
pub(super) fn describe_damage(damage: &StoreError) -> String {
    format!("{damage}. Nothing is lost: the log restores the same state.")
}
