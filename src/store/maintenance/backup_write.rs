//! Opens the files of a store for a backup (D100).

use std::{fs::File, path::Path};

use super::backup::OpenedPart;
use crate::store::database::state::Access;
use crate::store::disk::files::{self, Part};
use crate::store::error::{Doing, StoreError};
use crate::store::folder::content;
use crate::store::folder::key_copies::{self, KEYS};
use crate::store::log::head::Head;
use crate::store::log::parts::KEPT;
use crate::store::seal::Keyring;

/// The suspended sources (D84). They are no part of the store, but a source must not be applied because of a restore.
pub(super) const SUSPENSIONS: &str = "suspensions";

/// Opens everything that makes up a store whose log ends at `end` of its last part. No file may be added, moved or removed
/// meanwhile; bytes after `end` do not matter.
/// Returns the head of the backup, too.
pub(crate) fn open(
    folder: &Path,
    head: Head,
    keyring: &Keyring,
    end: u64,
) -> Result<(Head, Vec<OpenedPart>), StoreError> {
    let mut opened = Vec::new();
    // A state that cannot be read is no part of a backup.
    let state = content::start(folder, head, keyring, Access::ReadOnly)?.state_generation();
    if state > 0 {
        let database = Part::State.path(folder, state);
        let entries = files::entries_below(&database).doing("read", &database)?;
        for (path, _) in entries.into_iter().filter(|(_, kind)| !kind.is_dir()) {
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            opened.push(open_one(&path, name, None)?);
        }
    }
    for number in Part::Log.generations(folder)? {
        let limit = (number == head.generation).then_some(end);
        opened.push(open_one(&Part::Log.path(folder, number), Part::Log.name(number), limit)?);
    }
    opened.push(open_one(&key_copies::intact(folder, head.store)?, KEYS.to_owned(), None)?);
    for name in [KEPT, SUSPENSIONS] {
        let path = folder.join(name);
        if files::exists(&path)? {
            opened.push(open_one(&path, name.to_owned(), None)?);
        }
    }
    Ok((Head { state, ..head }, opened))
}

/// Opens a file as the part with this name.
fn open_one(path: &Path, name: String, limit: Option<u64>) -> Result<OpenedPart, StoreError> {
    let file = files::open(path, File::options().read(true)).doing("read", path)?;
    let length = match limit {
        Some(limit) => limit,
        None => file.metadata().doing("read", path)?.len(),
    };
    Ok(OpenedPart { name, file, length })
}
