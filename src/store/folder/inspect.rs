//! Compares the index of the history with the log (D100).

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    files::{self, Part},
    index::Index,
    log,
    reader::{Framed, LogReader, read_at},
    rows::Location,
    scratch::Scratch,
};
use crate::store::{StoreError, fault};

/// Checks that the index leads to each record that it has. Returns the position of the last one, or none if there is no index.
/// A copy of the index is read, because sled writes even to read.
pub(crate) fn index_agrees(folder: &Path) -> Result<Option<u64>, StoreError> {
    let path = folder.join("index");
    if !files::exists(&path)? {
        return Ok(None);
    }
    let scratch = Scratch::new()?;
    let copy = scratch.path().join("index");
    copy_folder(&path, &copy)?;
    let disagrees = |found: &str| StoreError::corrupt(&path, found);
    // sled names the copy in its errors.
    let index = Index::open(&copy).map_err(|_| disagrees("it cannot be opened"))?;
    let applied = index.applied().map_err(|_| disagrees("it cannot be read"))?;
    let Some((last, hash)) = applied else { return Ok(None) };
    for (part, generation) in log::parts(folder)? {
        let mut reader = LogReader::open(&part.path(folder, generation), false)?;
        while let Some(Framed { offset, length, batch }) = reader.batch()? {
            if batch.position > last {
                return Ok(Some(last));
            }
            if batch.position == last && batch.hash != hash {
                return Err(disagrees("its last record is not in the log"));
            }
            let found = index.locate(batch.position).map_err(|_| disagrees("it has gaps"))?.1;
            // After a checkpoint by a command, the next server moves it on.
            let is_folded = (found.part, part) == (Part::Journal, Part::History) && found.generation == generation;
            let is_there = is_folded || found == Location { part, generation, offset, length } || {
                let path = found.part.path(folder, found.generation);
                let read = read_at(&path, found.offset, usize::try_from(found.length).unwrap_or_default());
                read.is_ok_and(|read| read.is_some_and(|read| read.position == batch.position))
            };
            if !is_there {
                return Err(disagrees(&format!("it does not lead to record {}", batch.position)));
            }
        }
    }
    Ok(Some(last))
}

/// Copies the files below a folder.
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<(), StoreError> {
    files::create_folder(to)?;
    let failed = |path: &Path, error: std::io::Error| StoreError::io("copy", path, &error);
    for entry in fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (path, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| failed(&path, error))?;
        if kind.is_dir() {
            copy_folder(&path, &target)?;
        } else if kind.is_file() {
            fs::copy(&path, &target).map_err(|error| failed(&path, error))?;
            let copied = fault::point("file.sync").and_then(|()| fs::File::open(&target)?.sync_all());
            copied.map_err(|error| failed(&target, error))?;
        }
    }
    files::sync_folder(&to.join("lock"))
}
