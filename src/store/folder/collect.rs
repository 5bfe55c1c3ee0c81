//! Opens the files of a store for a backup (D100).

use std::{fs::File, path::Path};

use super::{
    base::StoreId,
    content_base,
    files::{self, Part},
    keys::KEYS,
    log,
};
use crate::{
    model::code::Code,
    store::{
        StoreError,
        backup::{BackedUp, OpenedPart},
        engine::Tip,
        seal::Keyring,
    },
};

/// The file that says where the history begins.
pub(super) const KEPT: &str = "kept";
/// The suspended sources (D84). They are no part of the store, but a source must not be applied because of a restore.
pub(super) const SUSPENSIONS: &str = "suspensions";

/// Opens everything that makes up a store whose last journal ends at `end`. No file may be added, moved or removed
/// meanwhile; bytes after `end` do not matter.
pub(super) fn open(
    folder: &Path,
    (store, tip): (StoreId, Tip),
    (generation, end): (u64, u64),
    keyring: Option<&Keyring>,
) -> Result<(BackedUp, Vec<OpenedPart>), StoreError> {
    if keyring.is_none_or(Keyring::is_unsealed) {
        let message = format!(
            "the secrets in the store {} are not encrypted yet: run `edgewright store rekey` first",
            folder.display()
        );
        return Err(StoreError::new(Code::StoreFormat, message));
    }
    let mut opened = Vec::new();
    let base = content_base(folder)?;
    let parts = std::iter::once((Part::Base, base)).chain(log::parts(folder)?);
    for (part, number) in parts {
        let limit = (part == Part::Journal && number == generation).then_some(end);
        opened.push(open_one(folder, &part.name(number), limit)?);
    }
    for name in [KEPT, KEYS, SUSPENSIONS] {
        if files::exists(&folder.join(name))? {
            opened.push(open_one(folder, name, None)?);
        }
    }
    Ok((BackedUp { store, tip, generation }, opened))
}

fn open_one(folder: &Path, name: &str, limit: Option<u64>) -> Result<OpenedPart, StoreError> {
    let path = folder.join(name);
    let failed = |error: std::io::Error| StoreError::io("read", &path, &error);
    let file = files::open(&path, File::options().read(true)).map_err(failed)?;
    let length = match limit {
        Some(limit) => limit,
        None => file.metadata().map_err(failed)?.len(),
    };
    Ok(OpenedPart { name: name.to_owned(), file, length })
}
