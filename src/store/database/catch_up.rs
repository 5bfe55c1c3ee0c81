//! Brings the index of the history up to date with the log.

use std::{path::Path, sync::Arc};

use super::{
    index::Index,
    open,
    rows::{IndexedRecord, Location},
};
use crate::store::{
    StoreError,
    disk::files::Part,
    engine::{Hash, Tip},
    log::{
        parts,
        reader::{Framed, LogReader},
    },
};

/// The number of records that are added to the index at once while it catches up.
const PORTION: usize = 1000;

/// Opens the index and adds missing records. Rebuilds an index that cannot be used.
pub(super) fn open(folder: &Path, tip: Tip) -> Result<Index, StoreError> {
    let path = folder.join("index");
    let usable = Index::open(&path).and_then(|index| {
        let whole = catch_up(folder, &index, tip, false)? && forget_removed(folder, &index)?;
        Ok((index, whole))
    });
    if let Ok((index, true)) = usable {
        return Ok(index);
    }
    drop(usable);
    open::remove(&path)?;
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
    let generations = Part::Log.generations(folder)?;
    for generation in generations.iter().copied() {
        let path = Part::Log.path(folder, generation);
        let mut reader = LogReader::open(&path)?;
        let start = (reader.start.position, reader.start.hash);
        if end.is_none() {
            parts::check_begin(folder, reader.start)?;
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
                let location = Location { generation, offset, length };
                records.push(Arc::new(IndexedRecord::of(location, &batch)));
            }
            if records.len() >= PORTION {
                index.add(&records)?;
                records.clear();
            }
        }
        index.add(&records)?;
        if reader.rest.is_some() && generations.last() != Some(&generation) {
            return Err(StoreError::corrupt(&path, format!("the record at byte {} cannot be read", reader.end)));
        }
        end = Some((reader.tip.position, reader.tip.hash));
        if reader.tip.position >= from && !known {
            return Ok(false);
        }
    }
    Ok(known)
}

/// Drops the records that the retention has removed. A crash can lose sled's latest writes. Returns whether the index reaches
/// back to the beginning of the log.
fn forget_removed(folder: &Path, index: &Index) -> Result<bool, StoreError> {
    let Some(first) = Part::Log.generations(folder)?.first().copied() else { return Ok(true) };
    let start = LogReader::open_headers(&Part::Log.path(folder, first))?.start;
    parts::check_begin(folder, start)?;
    let oldest = index.oldest()?;
    if oldest.is_some_and(|oldest| oldest <= start.position) {
        index.forget(start.position + 1)?;
    }
    Ok(oldest.is_none_or(|oldest| oldest <= start.position + 1))
}
