//! The two files with the data keys, which have the same content (D58).
//!
//! The state can be made again from the log, and the log is checked byte by byte. Nothing could replace the keys: one bad
//! block in 500 bytes would take every private key with it. So there are two files. One is read if the other is damaged, and
//! whoever writes to the store restores what is damaged. A change writes `keys` and then `keys.copy`, so if they differ, it
//! was interrupted, and `keys` is the newer one. A key that is destroyed is in neither of them.

use std::path::{Path, PathBuf};

use crate::model::Code;
use crate::store::database::state::{self, Access};
use crate::store::disk::files;
use crate::store::error::StoreError;
use crate::store::log::head;
use crate::store::seal::{EncryptedKeys, StoreId};

/// The name of the file with the data keys.
pub(crate) const KEYS: &str = "keys";
/// The copy of that file. It is written after the file, which is the newer one if a change was interrupted.
pub(crate) const KEYS_COPY: &str = "keys.copy";

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

/// Reads the data keys of a store from their file or, if it is damaged, from its copy. Returns the damage of either, too. A
/// backup has no copy, which is told to nobody.
pub(crate) fn read(folder: &Path, store: StoreId) -> Result<(EncryptedKeys, Option<Damage>), StoreError> {
    let (path, copy) = (folder.join(KEYS), folder.join(KEYS_COPY));
    let read = |path: &Path| {
        let bytes = files::read(path).map_err(|error| files::unreadable(path, &error))?;
        EncryptedKeys::read(&bytes, path, store)
    };
    match read(&path) {
        // A flipped bit can make the format look newer. A version with a newer format writes both files in it.
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::StoreFormat) => match read(&copy) {
            Ok(keys) => Ok((keys, Some(Damage { error, damaged: path, intact: copy }))),
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
        Ok(keys) => {
            let damage = read(&copy).err().map(|error| Damage { error, damaged: copy, intact: path });
            Ok((keys, damage))
        }
    }
}

/// Returns the path of the data keys or, if that file is damaged, of its copy.
pub(crate) fn intact(folder: &Path, store: StoreId) -> Result<PathBuf, StoreError> {
    let (_, damage) = read(folder, store)?;
    Ok(damage.map_or_else(|| folder.join(KEYS), |damage| damage.intact))
}

/// Copies the intact data keys if their copy is missing or, because a change was interrupted, outdated.
pub(crate) fn complete(folder: &Path) -> Result<(), StoreError> {
    let (path, copy) = (folder.join(KEYS), folder.join(KEYS_COPY));
    let keys = files::read(&path).map_err(|error| files::unreadable(&path, &error))?;
    if files::read(&copy).is_ok_and(|copied| copied == keys) { Ok(()) } else { files::copy(&path, &copy) }
}

/// Restores what is damaged in a store that was opened for writing, and completes the copy. Returns what people must know.
pub(super) fn restore(folder: &Path, store: StoreId) -> Vec<String> {
    let damage = damage_of(folder, store);
    match damage.iter().try_for_each(Damage::restore).and_then(|()| complete(folder)) {
        Ok(()) => damage.iter().map(Damage::restored).collect(),
        // For example because the disk is full. The store can still be read.
        Err(error) => {
            let kept_once = format!("Cannot write the second copy of the data keys: {error}.");
            damage.iter().map(Damage::harmless).chain([kept_once]).collect()
        }
    }
}

/// Returns what people must know of a store that was opened for reading.
pub(super) fn warnings(folder: &Path, store: StoreId) -> Vec<String> {
    damage_of(folder, store).iter().map(Damage::harmless).collect()
}

/// The damage that was found when a store was opened.
fn damage_of(folder: &Path, store: StoreId) -> Option<Damage> {
    // Errors would have kept the store from opening.
    read(folder, store).ok().and_then(|(_, damage)| damage)
}

/// Returns the damage of a store that opens: of one file of the data keys, and of the state that the log leads to, too.
pub(crate) fn harmless_damage(folder: &Path) -> Result<Vec<StoreError>, StoreError> {
    let head = head::read_only(folder)?;
    let mut damage: Vec<StoreError> = damage_of(folder, head.store).into_iter().map(|damage| damage.error).collect();
    if head.state > 0 {
        damage.extend(state::read(folder, head.state, Access::ReadOnly).err());
    }
    Ok(damage)
}
