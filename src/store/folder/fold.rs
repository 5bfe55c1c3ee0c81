//! Writes history files: what is kept of a journal.

use std::path::Path;

use super::{
    files::Part,
    journal,
    reader::{Framed, LogReader},
};
use crate::store::{StoreError, engine::Tip};

/// Writes a journal, which another one must follow, as a history file, which keeps only the changes that undo the batches.
/// Returns the end of the journal.
pub(super) fn journal_to_history(folder: &Path, generation: u64) -> Result<Tip, StoreError> {
    let from = Part::Journal.path(folder, generation);
    let mut journal = LogReader::open(&from, true)?;
    let (store, start) = (journal.store, journal.start);
    let following = LogReader::open(&Part::Journal.path(folder, generation + 1), false)?.start;
    journal::write_history(&Part::History.path(folder, generation), store, start, || match journal.batch()? {
        Some(Framed { mut batch, .. }) => {
            batch.changes = batch.changes.undoing();
            Ok(Some(batch))
        }
        None if (journal.tip.position, journal.tip.hash) == (following.position, following.hash) => Ok(None),
        // The journal is removed next, so damage must stop this first.
        None => Err(journal.unreadable()),
    })?;
    Ok(journal.tip)
}
