//! Writes parts of the log anew in which a record or a value is replaced (D23).

use std::path::Path;

use super::appender;
use super::reader::{LogReader, ReadBatch};
pub(crate) use crate::store::{disk::files::Part, engine::BatchEdit, error::StoreError};

/// Writes each part of the log before a generation anew of which `edit` replaces a batch. The hashes of the batches stay. A file
/// is the former or the new one as a whole.
pub(crate) fn edit_log(folder: &Path, end: u64, edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
    for generation in Part::Log.generations(folder)?.into_iter().filter(|generation| *generation < end) {
        let path = Part::Log.path(folder, generation);
        let mut reader = LogReader::open(&path)?;
        let mut differs = false;
        while !differs && let Some(ReadBatch { batch, .. }) = reader.batch()? {
            differs = edit(&batch)?.is_some();
        }
        if !differs {
            continue;
        }
        let mut reader = LogReader::open(&path)?;
        let (store, start) = (reader.store, reader.start);
        appender::write_whole(&path, store, start, || match reader.batch()? {
            Some(ReadBatch { batch, .. }) => Ok(Some(edit(&batch)?.unwrap_or(batch))),
            None if reader.tail.is_some() => Err(reader.unreadable()),
            None => Ok(None),
        })?;
    }
    Ok(())
}
