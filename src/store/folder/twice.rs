//! What nothing else could replace is on the disk twice (D58): the newest base, and the data keys.

use std::path::{Path, PathBuf};

use super::{
    base::{self, StoreId},
    content_base, files, head, keys,
};
use crate::{model::code::Code, store::StoreError};

/// Damage of one of two files with the same content. The other one is intact.
#[derive(Debug)]
pub(super) struct Damage {
    /// The error of reading the damaged file.
    pub error: StoreError,
    damaged: PathBuf,
    intact: PathBuf,
}

impl Damage {
    /// Restores the damaged file from the intact one.
    pub(super) fn restore(&self) -> Result<(), StoreError> {
        files::copy(&self.intact, &self.damaged)
    }

    fn restored(&self) -> String {
        format!("{}. It was restored from {}.", self.error, self.intact.display())
    }

    fn harmless(&self) -> String {
        format!("{}. Nothing is lost: {} has the same content.", self.error, self.intact.display())
    }
}

/// Reads a file or, if it is damaged, its copy. Returns the damage, too.
pub(super) fn read_either<T>(
    path: &Path,
    copy: &Path,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<(T, Option<Damage>), StoreError> {
    match read(path) {
        // A flipped bit can make the format look newer. A version with a newer format writes both files in it.
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::StoreFormat) => match read(copy) {
            Ok(found) => Ok((found, Some(Damage { error, damaged: path.to_owned(), intact: copy.to_owned() }))),
            Err(_) => Err(error),
        },
        found => found.map(|found| (found, None)),
    }
}

/// Like [`read_either`], and also reads the copy of an intact file. A backup has no copies, and its damage is told to nobody.
pub(super) fn read_both<T>(
    path: &Path,
    copy: &Path,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<(T, Option<Damage>), StoreError> {
    let (found, damage) = read_either(path, copy, &read)?;
    if damage.is_some() {
        return Ok((found, damage));
    }
    let damage = read(copy).err().map(|error| Damage { error, damaged: copy.to_owned(), intact: path.to_owned() });
    Ok((found, damage))
}

/// Returns the path of a file or, if it is damaged, of its copy.
pub(super) fn intact<T>(
    path: PathBuf,
    copy: PathBuf,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<PathBuf, StoreError> {
    let (_, damage) = read_either(&path, &copy, read)?;
    Ok(if damage.is_some() { copy } else { path })
}

/// Writes the copies of an intact base and of intact data keys that are missing or outdated.
pub(super) fn complete(folder: &Path) -> Result<(), StoreError> {
    base::complete(folder, content_base(folder)?)?;
    keys::complete(folder)
}

/// Restores what is damaged in a store that was opened for writing, and completes the copies. Returns what people must know.
pub(super) fn restore(folder: &Path, store: StoreId, base: Option<Damage>) -> Vec<String> {
    let damage = found(folder, store, base);
    match damage.iter().try_for_each(Damage::restore).and_then(|()| complete(folder)) {
        Ok(()) => damage.iter().map(Damage::restored).collect(),
        // For example because the disk is full. The store can still be read.
        Err(error) => {
            let kept_once = format!("The base and the data keys of the store cannot be kept twice: {error}.");
            damage.iter().map(Damage::harmless).chain([kept_once]).collect()
        }
    }
}

/// Returns what people must know of a store that was opened for reading.
pub(super) fn warnings(folder: &Path, store: StoreId, base: Option<Damage>) -> Vec<String> {
    found(folder, store, base).iter().map(Damage::harmless).collect()
}

/// The damage that was found when a store was opened. The copy of an intact base was not read.
fn found(folder: &Path, store: StoreId, base: Option<Damage>) -> Vec<Damage> {
    // Errors would have kept the store from opening.
    let keys = keys::read(folder, store).ok().and_then(|(_, damage)| damage);
    base.into_iter().chain(keys).collect()
}

/// Verifies both files of the newest base and of the data keys. Returns the damage of those whose other file is intact.
pub(crate) fn damaged_copies(folder: &Path) -> Result<Vec<StoreError>, StoreError> {
    let store = head::read_only(folder)?.store;
    let (_, base) = base::read_both(folder, content_base(folder)?)?;
    Ok(found(folder, store, base).into_iter().map(|damage| damage.error).collect())
}
