//! Compares the index of the history with the log (D100).

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::store::{
    StoreError,
    database::index::{Index, Location},
    disk::{
        files::{self, Part},
        temp_dir::TempFolder,
    },
    log::reader::{Framed, LogReader},
};

/// Checks that the index leads to each record that it has. Returns the position of the last one, or none if there is no index.
/// A copy of the index is read, because sled writes even to read.
pub(crate) fn index_agrees(folder: &Path) -> Result<Option<u64>, StoreError> {
    let path = folder.join("index");
    if !files::exists(&path)? {
        return Ok(None);
    }
    let temp = TempFolder::new()?;
    let copy = temp.path().join("index");
    copy_folder(&path, &copy)?;
    let disagrees = |found: &str| StoreError::corrupt(&path, found);
    // sled names the copy in its errors.
    let index = Index::open(&copy).map_err(|_| disagrees("it cannot be opened"))?;
    let end = index.end().map_err(|_| disagrees("it cannot be read"))?;
    let Some((last, hash)) = end else { return Ok(None) };
    for generation in Part::Log.generations(folder)? {
        let mut reader = LogReader::open_headers(&Part::Log.path(folder, generation))?;
        while let Some(Framed { offset, length, batch }) = reader.batch()? {
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

/// Copies the files below a folder, as files that their owner can write.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), StoreError> {
    files::create_folder(to)?;
    let failed = |path: &Path, error: std::io::Error| StoreError::io("copy", path, &error);
    for entry in fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (path, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| failed(&path, error))?;
        if kind.is_dir() {
            copy_folder(&path, &target)?;
        } else if kind.is_file() {
            let copied = files::open(&path, fs::File::options().read(true)).and_then(|mut source| {
                let mut target = files::private().write(true).create_new(true).open(&target)?;
                std::io::copy(&mut source, &mut target)
            });
            copied.map_err(|error| failed(&target, error))?;
        }
    }
    Ok(())
}
