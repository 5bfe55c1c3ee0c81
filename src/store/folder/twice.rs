//! What nothing else could replace is on the disk twice (D58): the data keys.

use std::path::{Path, PathBuf};

use super::keys;
use crate::{
    model::diagnostics::code::Code,
    store::{
        StoreError,
        database::state::{self, Access},
        disk::files,
        log::head,
        seal::StoreId,
    },
};

/// Damage of one of two files with the same content. The other one is intact.
#[derive(Debug)]
pub(crate) struct Damage {
    /// The error of reading the damaged file.
    pub error: StoreError,
    damaged: PathBuf,
    intact: PathBuf,
}

impl Damage {
    /// Restores the damaged file from the intact one.
    pub(crate) fn restore(&self) -> Result<(), StoreError> {
        files::copy(&self.intact, &self.damaged)
    }

    fn restored(&self) -> String {
        format!("{}. It was restored from {}.", self.error, self.intact.display())
    }

    fn harmless(&self) -> String {
        format!("{}. Nothing is lost: {} has the same content.", self.error, self.intact.display())
    }
}

/// Reads a file or, if it is damaged, its copy. Returns the damage of either, too. A backup has no copies, and its damage is
/// told to nobody.
pub(super) fn read_both<T>(
    path: &Path,
    copy: &Path,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<(T, Option<Damage>), StoreError> {
    let damage = |error: StoreError, damaged: &Path, intact: &Path| {
        Some(Damage { error, damaged: damaged.to_owned(), intact: intact.to_owned() })
    };
    match read(path) {
        // A flipped bit can make the format look newer. A version with a newer format writes both files in it.
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::StoreFormat) => match read(copy) {
            Ok(found) => Ok((found, damage(error, path, copy))),
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
        Ok(found) => Ok((found, read(copy).err().and_then(|error| damage(error, copy, path)))),
    }
}

/// Returns the path of a file or, if it is damaged, of its copy.
pub(super) fn intact<T>(
    path: PathBuf,
    copy: PathBuf,
    read: impl Fn(&Path) -> Result<T, StoreError>,
) -> Result<PathBuf, StoreError> {
    let (_, damage) = read_both(&path, &copy, read)?;
    Ok(if damage.is_some_and(|damage| damage.damaged == path) { copy } else { path })
}

/// Restores what is damaged in a store that was opened for writing, and completes the copy. Returns what people must know.
pub(super) fn restore(folder: &Path, store: StoreId) -> Vec<String> {
    let damage = found(folder, store);
    match damage.iter().try_for_each(Damage::restore).and_then(|()| keys::complete(folder)) {
        Ok(()) => damage.iter().map(Damage::restored).collect(),
        // For example because the disk is full. The store can still be read.
        Err(error) => {
            let kept_once = format!("The data keys of the store cannot be kept twice: {error}.");
            damage.iter().map(Damage::harmless).chain([kept_once]).collect()
        }
    }
}

/// Returns what people must know of a store that was opened for reading.
pub(super) fn warnings(folder: &Path, store: StoreId) -> Vec<String> {
    found(folder, store).iter().map(Damage::harmless).collect()
}

/// The damage that was found when a store was opened.
fn found(folder: &Path, store: StoreId) -> Option<Damage> {
    // Errors would have kept the store from opening.
    keys::read(folder, store).ok().and_then(|(_, damage)| damage)
}

/// Returns the damage of a store that opens: of one file of the data keys, and of the state that the log leads to, too.
pub(crate) fn harmless_damage(folder: &Path) -> Result<Vec<StoreError>, StoreError> {
    let head = head::read_only(folder)?;
    let mut damage: Vec<StoreError> = found(folder, head.store).into_iter().map(|damage| damage.error).collect();
    if head.state > 0 {
        damage.extend(state::read(folder, head.state, Access::ReadOnly).err());
    }
    Ok(damage)
}
