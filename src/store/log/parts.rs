//! The log of a store: the parts of it that are kept.

use std::fs;
use std::path::Path;

use super::appender;
use super::reader::{LogReader, ReadBatch};
use crate::store::commit::batch::{Batch, Tip};
use crate::store::disk::files::{self, Part};
use crate::store::engine::{BatchVisit, Statistics};
use crate::store::error::StoreError;
use crate::store::seal::StoreId;

/// The file that says where the history begins.
pub(crate) const KEPT: &str = "kept";

/// Returns the batch after which the history begins: what is before it was removed.
pub(crate) fn history_start(folder: &Path) -> Result<Tip, StoreError> {
    let kept = folder.join(KEPT);
    if !files::exists(&kept)? {
        return Ok(Tip::default());
    }
    Ok(LogReader::open_headers(&kept)?.start)
}

/// Notes that the records up to `start` are about to be removed, so that a log that begins after them is complete.
pub(crate) fn keep_from(folder: &Path, store: StoreId, start: Tip) -> Result<(), StoreError> {
    appender::write_whole(&folder.join(KEPT), store, start, || Ok(None))
}

/// Checks that no file is missing before one that begins at `start`, the first of the log.
pub(crate) fn check_begin(folder: &Path, start: Tip) -> Result<(), StoreError> {
    check_follows(folder, start, history_start(folder)?)
}

/// Checks that no file is missing between one that begins at `start` and one that ends at `end`.
fn check_follows(folder: &Path, start: Tip, end: Tip) -> Result<(), StoreError> {
    if start.position <= end.position {
        return Ok(());
    }
    Err(StoreError::corrupt(folder, format!("the history before record {} is missing", start.position + 1)))
}

/// Visits the commits after a revision and up to a position, oldest first. Starts at the beginning of a file.
pub(crate) fn walk(folder: &Path, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
    let generations = Part::Log.generations(folder)?;
    let open = |generation: u64| LogReader::open(&Part::Log.path(folder, generation));
    let mut first = 0;
    // At revision 0 there can be several files, all of which count.
    for (number, generation) in generations.iter().enumerate().rev().filter(|_| revision > 0) {
        if open(*generation)?.start.revision <= revision {
            first = number;
            break;
        }
    }
    let mut end = if first == 0 { Some(history_start(folder)?) } else { None };
    for generation in generations.into_iter().skip(first) {
        let mut reader = open(generation)?;
        if let Some(end) = end {
            check_follows(folder, reader.start, end)?;
        }
        let mut before = reader.start;
        while let Some(ReadBatch { batch, .. }) = reader.batch()?
            && batch.position <= upto
        {
            let after = Tip::after(&batch);
            visit(before, batch)?;
            before = after;
        }
        if reader.tail.is_some() && reader.tip.position < upto {
            return Err(reader.unreadable());
        }
        end = Some(reader.tip);
    }
    Ok(())
}

/// Returns the batches of the parts before a batch, oldest first: of as many parts as have a certain length together.
pub(crate) fn batches_before(folder: &Path, end: Tip, most: u64) -> Result<Vec<Batch>, StoreError> {
    let (mut found, mut begin, mut left): (Vec<Batch>, _, _) = (Vec::new(), end.position, most);
    for generation in Part::Log.generations(folder)?.into_iter().rev() {
        let path = Part::Log.path(folder, generation);
        // What is damaged is found when somebody needs it.
        let Ok(mut reader) = LogReader::open(&path) else { break };
        if reader.start.position >= begin {
            continue;
        }
        let length = fs::metadata(&path).map_or(u64::MAX, |facts| facts.len());
        let Some(rest) = left.checked_sub(length) else { break };
        left = rest;
        let mut batches = Vec::new();
        while let Ok(Some(ReadBatch { batch, .. })) = reader.batch() {
            batches.push(batch);
        }
        if reader.tip.position != begin {
            break;
        }
        begin = reader.start.position;
        batches.append(&mut found);
        found = batches;
    }
    Ok(found)
}

/// Describes the files of a log.
pub(crate) fn statistics(folder: &Path) -> Statistics {
    Statistics { bytes: size_of(folder), oldest: oldest(folder).unwrap_or_default() }
}

/// The bytes of all files below a folder.
fn size_of(folder: &Path) -> u64 {
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => size_of(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    };
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().map(size).sum())
}

/// Returns the position of the oldest record that is kept.
pub(crate) fn oldest(folder: &Path) -> Option<u64> {
    let first = Part::Log.generations(folder).ok()?.first().copied()?;
    LogReader::open_headers(&Part::Log.path(folder, first)).ok().map(|reader| reader.start.position + 1)
}
