//! Compares the index of the history with the log (D100).

use std::path::Path;

use crate::store::database::index::{Index, Location};
use crate::store::disk::files::{self, Part};
use crate::store::disk::temp_dir::TempFolder;
use crate::store::error::StoreError;
use crate::store::log::reader::{LogReader, ReadBatch};

/// Checks that the index leads to each record that it has. Returns the position of the last one, or none if there is no index.
/// A copy of the index is read, because sled writes even to read.
pub(crate) fn index_agrees(folder: &Path) -> Result<Option<u64>, StoreError> {
    let path = folder.join("index");
    if !files::exists(&path)? {
        return Ok(None);
    }
    let temp = TempFolder::new()?;
    let copy = temp.path().join("index");
    files::copy_folder(&path, &copy)?;
    let disagrees = |found: &str| StoreError::corrupt(&path, found);
    // sled names the copy in its errors.
    let index = Index::open(&copy).map_err(|_| disagrees("it cannot be opened"))?;
    let end = index.end().map_err(|_| disagrees("it cannot be read"))?;
    let Some((last, hash)) = end else { return Ok(None) };
    for generation in Part::Log.generations(folder)? {
        let mut reader = LogReader::open_headers(&Part::Log.path(folder, generation))?;
        while let Some(ReadBatch { offset, length, batch }) = reader.batch()? {
            if batch.position > last {
                return Ok(Some(last));
            }
            if batch.position == last && batch.hash != hash {
                return Err(disagrees("its last record is not in the log"));
            }
            let found = index.locate(batch.position).map_err(|_| disagrees("it cannot be read"))?;
            let found = found.ok_or_else(|| disagrees("it has gaps"))?;
            if found != (Location { generation, offset, length }) {
                return Err(disagrees(&format!("it does not lead to record {}", batch.position)));
            }
        }
    }
    Ok(Some(last))
}
