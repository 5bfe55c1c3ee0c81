//! The log of a store: the history files and journals that are kept.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    base::StoreId,
    collect::KEPT,
    files::{self, Part},
    journal,
    reader::{Framed, LogReader},
};
use crate::store::{
    StoreError,
    engine::{Batch, Query, Statistics, Tip, UNDO, UndoVisit, Visit},
    history::Record,
};

/// Lists the files of the log, oldest first.
pub(super) fn parts(folder: &Path) -> Result<Vec<(Part, u64)>, StoreError> {
    let journals = Part::Journal.generations(folder)?;
    // If both exist, a checkpoint was interrupted, and the journal is still valid.
    let histories = Part::History.generations(folder)?.into_iter().filter(|it| !journals.contains(it));
    let mut parts: Vec<(Part, u64)> = histories.map(|generation| (Part::History, generation)).collect();
    parts.extend(journals.iter().map(|generation| (Part::Journal, *generation)));
    parts.sort_by_key(|(_, generation)| *generation);
    Ok(parts)
}

/// The file that says where the history begins.
pub(super) fn kept(folder: &Path) -> PathBuf {
    folder.join(KEPT)
}

/// Notes that the records up to `start` are about to be removed, so that a log that begins after them is complete.
pub(super) fn keep_from(folder: &Path, store: StoreId, start: Tip) -> Result<(), StoreError> {
    journal::write_history(&kept(folder), store, start, || Ok(None))
}

/// Checks that no file is missing before one that begins at `start`, the first of the log.
pub(super) fn check_begin(folder: &Path, start: Tip) -> Result<(), StoreError> {
    let kept = kept(folder);
    let allowed = match files::exists(&kept)? {
        true => LogReader::open(&kept, false)?.start.position,
        false => 0,
    };
    if start.position > allowed {
        let found = format!("the history before record {} is missing", start.position + 1);
        return Err(StoreError::corrupt(folder, found));
    }
    Ok(())
}

/// Visits the records up to a position, oldest first.
pub(super) fn walk(folder: &Path, upto: u64, visit: &mut Visit<'_>) -> Result<(), StoreError> {
    for (number, (part, generation)) in parts(folder)?.into_iter().enumerate() {
        let path = part.path(folder, generation);
        let mut reader = LogReader::open(&path, false)?;
        if number == 0 {
            check_begin(folder, reader.start)?;
        }
        let mut before = reader.start.hash;
        while let Some(Framed { batch, .. }) = reader.batch()?
            && batch.position <= upto
        {
            visit(&before, &batch.record, &batch.hash)?;
            before = batch.hash;
        }
        if reader.rest.is_some() && reader.tip.position < upto {
            let found = format!("record {} at byte {} cannot be read", reader.tip.position + 1, reader.end);
            return Err(StoreError::corrupt(&path, found));
        }
    }
    Ok(())
}

/// Visits the batches after a revision and up to a position, oldest first, with the changes that undo them. Starts at
/// the beginning of a file.
pub(super) fn undo_from(folder: &Path, revision: u64, upto: u64, visit: &mut UndoVisit<'_>) -> Result<(), StoreError> {
    let parts = parts(folder)?;
    let mut first = 0;
    for (number, (part, generation)) in parts.iter().enumerate().rev() {
        if LogReader::open(&part.path(folder, *generation), false)?.start.revision <= revision {
            first = number;
            break;
        }
    }
    for (part, generation) in parts.into_iter().skip(first) {
        let path = part.path(folder, generation);
        let mut reader = LogReader::open(&path, true)?;
        let mut before = reader.start;
        while let Some(Framed { mut batch, .. }) = reader.batch()?
            && batch.position <= upto
        {
            let after = Tip::after(&batch);
            batch.changes.retain(|(key, _)| key.starts_with(UNDO));
            visit(before, batch)?;
            before = after;
        }
        if reader.rest.is_some() && reader.tip.position < upto {
            let found = format!("record {} at byte {} cannot be read", reader.tip.position + 1, reader.end);
            return Err(StoreError::corrupt(&path, found));
        }
    }
    Ok(())
}

/// Returns the batches after a position and up to another, oldest first, or none if the journals do not have all of
/// them.
pub(super) fn changes_since(folder: &Path, position: u64, upto: u64) -> Result<Option<Vec<Batch>>, StoreError> {
    let mut found: Vec<Batch> = Vec::new();
    // The start of the batches found so far.
    let mut begin = upto;
    for generation in Part::Journal.generations(folder)?.into_iter().rev() {
        // A checkpoint may have removed the journal meanwhile.
        let Ok(mut journal) = LogReader::open(&Part::Journal.path(folder, generation), true) else {
            return Ok(None);
        };
        let mut batches = Vec::new();
        // Batches after `upto` are being written: they are not durable yet, and may never be.
        while let Some(Framed { batch, .. }) = journal.batch()?
            && batch.position <= upto
        {
            if batch.position > position {
                batches.push(batch);
            }
        }
        if journal.tip.position < begin {
            return Ok(None);
        }
        begin = begin.min(journal.start.position);
        batches.append(&mut found);
        found = batches;
        if journal.start.position <= position {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Finds at most `limit` records before a position, newest first, without the index.
pub(super) fn find(folder: &Path, query: &Query, before: u64, limit: usize) -> Result<Vec<Arc<[u8]>>, StoreError> {
    let mut found: Vec<Arc<[u8]>> = Vec::new();
    // The start of the file that follows in the log.
    let mut next: Option<Tip> = None;
    for (part, generation) in parts(folder)?.into_iter().rev() {
        let missing = limit - found.len();
        if missing == 0 {
            return Ok(found);
        }
        let path = part.path(folder, generation);
        let mut reader = LogReader::open(&path, false)?;
        let mut newest = VecDeque::new();
        let mut complete = true;
        while let Some(Framed { batch, .. }) = reader.batch()? {
            if batch.position >= before {
                complete = false;
                break;
            }
            if *query == Query::All || Record::from_bytes(&batch.record)?.matches(query) {
                if newest.len() == missing {
                    newest.pop_front();
                }
                newest.push_back(batch.record);
            }
        }
        if complete && next.is_some_and(|next| reader.tip.position != next.position) {
            let found = format!("record {} at byte {} cannot be read", reader.tip.position + 1, reader.end);
            return Err(StoreError::corrupt(&path, found));
        }
        found.extend(newest.into_iter().rev());
        next = Some(reader.start);
    }
    if let Some(start) = next
        && found.len() < limit
    {
        check_begin(folder, start)?;
    }
    Ok(found)
}

/// Describes the files of a log that ends at a position.
pub(super) fn statistics(folder: &Path, position: u64) -> Statistics {
    let bytes = fs::read_dir(folder)
        .map_or(0, |entries| entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum());
    Statistics { position, bytes, oldest: oldest(folder).unwrap_or_default() }
}

/// Returns the position of the oldest record that is kept.
fn oldest(folder: &Path) -> Option<u64> {
    let (part, generation) = parts(folder).ok()?.first().copied()?;
    LogReader::open(&part.path(folder, generation), false).ok().map(|reader| reader.start.position + 1)
}
