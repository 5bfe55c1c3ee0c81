//! The log of a store: the history files and journals that are kept.

use std::path::Path;

use super::{files::Part, reader::Reader};
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

/// Walks the log, oldest record first.
pub fn walk(folder: &Path, visit: &mut Visit<'_>) -> Result<(), StoreError> {
    for (part, generation) in parts(folder)? {
        let mut reader = Reader::open(&part.path(folder, generation), false)?;
        let mut before = reader.start.hash;
        while let Some(framed) = reader.batch()? {
            visit(&before, &framed.batch.record, &framed.batch.hash)?;
            before = framed.batch.hash;
        }
    }
    Ok(())
}

/// Returns the batches after a position, oldest first, or none if the journals no longer have all of them.
pub fn changes_since(folder: &Path, position: u64) -> Result<Option<Vec<Batch>>, StoreError> {
    let mut found: Vec<Batch> = Vec::new();
    for generation in Part::Journal.generations(folder)?.into_iter().rev() {
        // A checkpoint may have removed the journal meanwhile.
        let Ok(mut journal) = Reader::open(&Part::Journal.path(folder, generation), true) else {
            return Ok(None);
        };
        let mut batches = Vec::new();
        while let Some(framed) = journal.batch()? {
            if framed.batch.position > position {
                batches.push(framed.batch);
            }
        }
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
