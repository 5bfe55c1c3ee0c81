//! The log of a store: the history files and journals that are kept.

use std::{collections::VecDeque, fs, path::Path, sync::Arc};

use super::{
    files::Part,
    reader::{Framed, LogReader},
};
use crate::store::{
    StoreError,
    engine::{Batch, Query, Statistics, Visit},
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

/// Visits the records up to a position, oldest first.
pub(super) fn walk(folder: &Path, upto: u64, visit: &mut Visit<'_>) -> Result<(), StoreError> {
    for (part, generation) in parts(folder)? {
        let path = part.path(folder, generation);
        let mut reader = LogReader::open(&path, false)?;
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
    let mut next: Option<u64> = None;
    let mut oldest = Part::History;
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
        if complete && next.is_some_and(|next| reader.tip.position != next) {
            let found = format!("record {} at byte {} cannot be read", reader.tip.position + 1, reader.end);
            return Err(StoreError::corrupt(&path, found));
        }
        found.extend(newest.into_iter().rev());
        next = Some(reader.start.position);
        oldest = part;
    }
    // The newest history file is always kept, so an older file is missing if the log begins with a later journal.
    if let Some(start @ 1..) = next
        && oldest == Part::Journal
        && found.len() < limit
    {
        return Err(StoreError::corrupt(folder, format!("the history before record {} is missing", start + 1)));
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
