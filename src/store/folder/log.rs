//! The log of a store: the history files and journals that are kept.

use std::path::Path;

use super::{
    files::Part,
    reader::{Framed, Reader},
};
use crate::store::{
    StoreError,
    engine::{Batch, Visit},
};

/// Lists the files of the log, oldest first.
pub fn parts(folder: &Path) -> Result<Vec<(Part, u64)>, StoreError> {
    let journals = Part::Journal.generations(folder)?;
    // Where both exist, a checkpoint was interrupted, and the journal is the one that counts.
    let histories = Part::History.generations(folder)?.into_iter().filter(|it| !journals.contains(it));
    let mut parts: Vec<(Part, u64)> = histories.map(|generation| (Part::History, generation)).collect();
    parts.extend(journals.iter().map(|generation| (Part::Journal, *generation)));
    parts.sort_by_key(|(_, generation)| *generation);
    Ok(parts)
}

/// Walks the log up to a position, oldest record first.
pub fn walk(folder: &Path, upto: u64, visit: &mut Visit<'_>) -> Result<(), StoreError> {
    for (part, generation) in parts(folder)? {
        let path = part.path(folder, generation);
        let mut reader = Reader::open(&path, false)?;
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
pub fn changes_since(folder: &Path, position: u64, upto: u64) -> Result<Option<Vec<Batch>>, StoreError> {
    let mut found: Vec<Batch> = Vec::new();
    // Where the batches found so far begin.
    let mut begin = upto;
    for generation in Part::Journal.generations(folder)?.into_iter().rev() {
        // A checkpoint may have removed the journal meanwhile.
        let Ok(mut journal) = Reader::open(&Part::Journal.path(folder, generation), true) else {
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

/// Returns the position of the oldest record that is kept.
pub fn oldest(folder: &Path) -> Option<u64> {
    let (part, generation) = parts(folder).ok()?.first().copied()?;
    Reader::open(&part.path(folder, generation), false).ok().map(|reader| reader.start.position + 1)
}
