//! Brings the index of the history up to date with the log.

use std::{path::Path, sync::Arc};

use super::{
    files::Part,
    index::Index,
    log,
    reader::{Framed, LogReader},
    rows::{IndexedRecord, Location},
};
use crate::store::{
    StoreError,
    engine::{Hash, Tip},
};

/// The number of records that are added to the index at once while it catches up.
const PORTION: usize = 1000;

/// Opens the index and adds missing records. Rebuilds an index that cannot be used.
pub(super) fn open(folder: &Path, tip: Tip) -> Result<Index, StoreError> {
    let path = folder.join("index");
    let usable = Index::open(&path).and_then(|index| {
        let whole = catch_up(folder, &index, tip, false)? && follows_checkpoint(folder, &index, tip)?;
        Ok((index, whole))
    });
    if let Ok((index, true)) = usable {
        return Ok(index);
    }
    drop(usable);
    Index::remove(&path)?;
    let index = Index::open(&path)?;
    catch_up(folder, &index, tip, true)?;
    Ok(index)
}

/// Adds missing records up to `tip`. Returns false if the index belongs to another log.
fn catch_up(folder: &Path, index: &Index, tip: Tip, fresh: bool) -> Result<bool, StoreError> {
    let applied = index.applied()?;
    if let Some((position, hash)) = applied
        && (position, hash) == (tip.position, tip.hash)
    {
        return Ok(true);
    }
    if applied.is_none() && !fresh && tip.position > 0 {
        return Ok(false);
    }
    let (from, hash) = applied.unwrap_or_default();
    let mut known = applied.is_none();
    let mut end: Option<(u64, Hash)> = None;
    for (part, generation) in log::parts(folder)? {
        let path = part.path(folder, generation);
        let mut reader = LogReader::open(&path, false)?;
        let start = (reader.start.position, reader.start.hash);
        if end.is_none() {
            log::check_begin(folder, reader.start)?;
        }
        if end.is_some_and(|end| end != start) {
            let found = format!("the history before record {} is missing", start.0 + 1);
            return Err(StoreError::corrupt(&path, found));
        }
        known |= start == (from, hash);
        let mut records = Vec::new();
        while let Some(Framed { offset, length, batch }) = reader.batch()? {
            known |= (batch.position, batch.hash) == (from, hash);
            if known && batch.position > from && batch.position <= tip.position {
                let location = Location { part, generation, offset, length };
                records.push(Arc::new(IndexedRecord::of(location, &batch)));
            }
            if records.len() >= PORTION {
                index.add(&records)?;
                records.clear();
            }
        }
        index.add(&records)?;
        if part == Part::History && reader.rest.is_some() {
            return Err(StoreError::corrupt(&path, format!("the record at byte {} cannot be read", reader.end)));
        }
        end = Some((reader.tip.position, reader.tip.hash));
        if reader.tip.position >= from && !known {
            return Ok(false);
        }
    }
    Ok(known)
}

/// Checks that the index matches the files of the last checkpoint, and drops the records that the checkpoint removed. A
/// crash can lose sled's latest writes, while the files of the log have already been moved or removed.
fn follows_checkpoint(folder: &Path, index: &Index, tip: Tip) -> Result<bool, StoreError> {
    let parts = log::parts(folder)?;
    let mut starts = Vec::with_capacity(parts.len());
    for (part, generation) in &parts {
        let start = LogReader::open(&part.path(folder, *generation), false)?.start;
        if starts.is_empty() {
            log::check_begin(folder, start)?;
        }
        starts.push(start.position);
    }
    let Some(first) = starts.first() else { return Ok(true) };
    if index.oldest()?.is_some_and(|oldest| oldest <= *first) {
        index.forget(first + 1)?;
    }
    // The last record of a file is moved last.
    for (file, (start, next)) in parts.iter().zip(starts.iter().zip(starts.iter().skip(1))) {
        if start < next && *next <= tip.position {
            let (_, location) = index.locate(*next)?;
            if (location.part, location.generation) != *file {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Updates the locations of the records of a journal that has become history.
pub(super) fn relocate(index: &Index, folder: &Path, generation: u64) -> Result<(), StoreError> {
    let mut history = LogReader::open(&Part::History.path(folder, generation), false)?;
    let mut records = Vec::new();
    while let Some(Framed { offset, length, batch }) = history.batch()? {
        records.push((batch.position, Location { part: Part::History, generation, offset, length }));
        if records.len() >= PORTION {
            index.relocate(&records)?;
            records.clear();
        }
    }
    index.relocate(&records)
}
