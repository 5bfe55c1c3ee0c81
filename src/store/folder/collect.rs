//! Opens the files of a store for a backup (D100).

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use super::{
    base::StoreId,
    files::{self, Part},
    keys::{self, KEYS},
    log,
};
use crate::store::{
    StoreError,
    backup::{BackedUp, OpenedPart},
    engine::Tip,
};

/// The file that says where the history begins.
pub(super) const KEPT: &str = "kept";
/// The suspended sources (D84). They are no part of the store, but a source must not be applied because of a restore.
pub(super) const SUSPENSIONS: &str = "suspensions";

/// Opens everything that makes up a store whose last journal ends at `end`. `base` is the newest intact base. No file may be
/// added, moved or removed meanwhile; bytes after `end` do not matter.
pub(super) fn open(
    folder: &Path,
    (base, base_path): (u64, PathBuf),
    (store, tip): (StoreId, Tip),
    (generation, end): (u64, u64),
) -> Result<(BackedUp, Vec<OpenedPart>), StoreError> {
    let mut opened = vec![open_one(&base_path, Part::Base.name(base), None)?];
    for (part, number) in log::parts(folder)? {
        let limit = (part == Part::Journal && number == generation).then_some(end);
        opened.push(open_one(&part.path(folder, number), part.name(number), limit)?);
    }
    opened.push(open_one(&keys::intact(folder, store)?, KEYS.to_owned(), None)?);
    for name in [KEPT, SUSPENSIONS] {
        let path = folder.join(name);
        if files::exists(&path)? {
            opened.push(open_one(&path, name.to_owned(), None)?);
        }
    }
    Ok((BackedUp { store, tip, generation }, opened))
}

/// Opens a file as the part with this name.
fn open_one(path: &Path, name: String, limit: Option<u64>) -> Result<OpenedPart, StoreError> {
    let failed = |error: std::io::Error| StoreError::io("read", path, &error);
    let file = files::open(path, File::options().read(true)).map_err(failed)?;
    let length = match limit {
        Some(limit) => limit,
        None => file.metadata().map_err(failed)?.len(),
    };
    Ok(OpenedPart { name, file, length })
}
