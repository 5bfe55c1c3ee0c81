//! The log of a store: the history files and journals that are kept.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    base::StoreId,
    collect::KEPT,
    files::{self, Part},
    journal,
    reader::{Framed, LogReader},
};
use crate::store::{
    StoreError,
    engine::{Batch, Query, Statistics, Tip, UndoVisit, Visit},
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

/// Opens a file of the log. A checkpoint may have made a history file of a journal since the files were listed.
fn open(folder: &Path, part: Part, generation: u64, with_changes: bool) -> Result<LogReader, StoreError> {
    let path = part.path(folder, generation);
    match LogReader::open(&path, with_changes) {
        Err(_) if part == Part::Journal && !files::exists(&path)? => {
            LogReader::open(&Part::History.path(folder, generation), with_changes)
        }
        opened => opened,
    }
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
        let mut reader = open(folder, part, generation, false)?;
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
            return Err(reader.unreadable());
        }
    }
    Ok(())
}

/// Visits the batches after a revision and up to a position, oldest first, with the changes that undo them. Starts at
/// the beginning of a file.
pub(super) fn undo_from(folder: &Path, revision: u64, upto: u64, visit: &mut UndoVisit<'_>) -> Result<(), StoreError> {
    let parts = parts(folder)?;
    let mut first = 0;
    // At revision 0 there can be several files, all of which count.
    for (number, (part, generation)) in parts.iter().enumerate().rev().filter(|_| revision > 0) {
        if open(folder, *part, *generation, false)?.start.revision <= revision {
            first = number;
            break;
        }
    }
    for (part, generation) in parts.into_iter().skip(first) {
        let mut reader = open(folder, part, generation, true)?;
        let mut before = reader.start;
        while let Some(Framed { mut batch, .. }) = reader.batch()?
            && batch.position <= upto
        {
            let after = Tip::after(&batch);
            batch.changes = batch.changes.undoing();
            visit(before, batch)?;
            before = after;
        }
        if reader.rest.is_some() && reader.tip.position < upto {
            return Err(reader.unreadable());
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
pub(super) fn find(folder: &Path, query: &Query, before: u64, limit: usize) -> Result<Vec<Bytes>, StoreError> {
    let mut found: Vec<Bytes> = Vec::new();
    // The start of the file that follows in the log.
    let mut next: Option<Tip> = None;
    for (part, generation) in parts(folder)?.into_iter().rev() {
        let missing = limit - found.len();
        if missing == 0 {
            return Ok(found);
        }
        let mut reader = match open(folder, part, generation, false) {
            // The retention has dropped it, and everything before it.
            Err(_) if next.is_some() && !files::exists(&Part::History.path(folder, generation))? => break,
            opened => opened?,
        };
        let mut newest = VecDeque::new();
        let mut complete = true;
        while let Some(Framed { batch, .. }) = reader.batch()? {
            if batch.position >= before {
                complete = false;
                break;
            }
            if query.selects(&batch.record)? {
                if newest.len() == missing {
                    newest.pop_front();
                }
                newest.push_back(batch.record);
            }
        }
        if complete && next.is_some_and(|next| reader.tip.position != next.position) {
            return Err(reader.unreadable());
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
    open(folder, part, generation, false).ok().map(|reader| reader.start.position + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::folder::{fold, journal::Journal};

    #[test]
    fn a_journal_that_a_checkpoint_has_folded_meanwhile_is_read_as_history() {
        let folder = tempfile::tempdir().unwrap();
        let path = |generation| Part::Journal.path(folder.path(), generation);
        for generation in [1, 2] {
            Journal::create(path(generation), [7; 16], Tip::default()).unwrap();
        }
        let listed = parts(folder.path()).unwrap();
        fold::journal_to_history(folder.path(), 1).unwrap();
        fs::remove_file(path(1)).unwrap();
        let opened = |(part, generation)| open(folder.path(), part, generation, false).map(|reader| reader.start);
        assert_eq!(listed.into_iter().map(opened).collect::<Vec<_>>(), [Ok(Tip::default()), Ok(Tip::default())]);
        assert!(opened((Part::Journal, 3)).is_err());
    }
}
