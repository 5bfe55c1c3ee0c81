//! Writes history files: what is kept of a journal, or of another history file.

use std::path::Path;

use super::{
    files::Part,
    journal,
    reader::{Framed, LogReader},
};
use crate::store::{
    StoreError,
    changes::Changes,
    engine::{Batch, Tip},
};

/// Returns what is written instead of a former value, if anything else is.
pub(super) type Revise<'r> = dyn FnMut(&str, &[u8]) -> Result<Option<Vec<u8>>, StoreError> + 'r;

/// Writes a journal, which another one must follow, as a history file, which keeps only the changes that undo the batches.
/// Returns the end of the journal.
pub(super) fn journal_to_history(folder: &Path, generation: u64, revise: &mut Revise<'_>) -> Result<Tip, StoreError> {
    let from = Part::Journal.path(folder, generation);
    let mut journal = LogReader::open(&from, true)?;
    let (store, start) = (journal.store, journal.start);
    let following = LogReader::open(&Part::Journal.path(folder, generation + 1), false)?.start;
    journal::write_history(&Part::History.path(folder, generation), store, start, || match journal.batch()? {
        Some(Framed { batch, .. }) => undoing(batch, revise).map(Some),
        None if (journal.tip.position, journal.tip.hash) == (following.position, following.hash) => Ok(None),
        // The journal is removed next, so damage must stop this first.
        None => Err(journal.unreadable()),
    })?;
    Ok(journal.tip)
}

/// Writes a history file anew.
pub(super) fn rewrite_history(folder: &Path, generation: u64, revise: &mut Revise<'_>) -> Result<(), StoreError> {
    let path = Part::History.path(folder, generation);
    let mut history = LogReader::open(&path, true)?;
    let (store, start) = (history.store, history.start);
    journal::write_history(&path, store, start, || match history.batch()? {
        Some(Framed { batch, .. }) => undoing(batch, revise).map(Some),
        None if history.rest.is_none() => Ok(None),
        None => Err(history.unreadable()),
    })
}

fn undoing(mut batch: Batch, revise: &mut Revise<'_>) -> Result<Batch, StoreError> {
    let mut changes = Changes::default();
    for (key, value) in batch.changes.undoing().iter() {
        let revised = value.map(|value| revise(key, value)).transpose()?.flatten();
        changes.push(key, revised.as_deref().or(value));
    }
    batch.changes = changes;
    Ok(batch)
}
