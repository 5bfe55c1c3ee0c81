//! The mark of a local copy of a store in a database (D115).
//!
//! The history of a copy goes on in the database. Another process that wrote to its folder would make commits that the
//! database does not have. So a folder with this mark is only written by servers of that store, with what the database has;
//! whoever reads finds an ordinary store. What has no mark is never taken for a copy, and so is never replaced.

use std::io::Write;
use std::path::Path;

use super::key_copies::{KEYS, KEYS_COPY};
use crate::model::Code;
use crate::store::disk::files::{self, Part};
use crate::store::disk::folder_lock::LOCK;
use crate::store::error::StoreError;
use crate::store::log::head;
use crate::store::log::parts::KEPT;
use crate::syntax::text::printable;

/// The file with the database of which the folder has a copy, as messages show it.
pub(crate) const MARK: &str = "copy_of";

/// Returns the database of which a folder has a local copy, if it is marked.
pub(crate) fn read(folder: &Path) -> Result<Option<String>, StoreError> {
    let path = folder.join(MARK);
    if !files::exists(&path)? {
        return Ok(None);
    }
    let bytes = files::read(&path).map_err(|error| files::unreadable(&path, &error))?;
    Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()))
}

/// Marks a folder, unless it has this mark.
pub(crate) fn set(folder: &Path, of: &str) -> Result<(), StoreError> {
    if read(folder)?.as_deref() == Some(of) {
        return Ok(());
    }
    files::write_whole(&folder.join(MARK), |writer| writeln!(writer, "{of}"))
}

/// Fails if a folder has a local copy.
pub(crate) fn check_writable(folder: &Path) -> Result<(), StoreError> {
    let Some(of) = read(folder)? else { return Ok(()) };
    let message =
        format!("{} is a local copy of {}, and only its servers write to it", folder.display(), printable(&of));
    let help = "set --store to the URL of the database; to go on without it, make a store of the copy with \
                `edgewright store copy COPY NEW`";
    Err(StoreError::new(Code::StoreFormat, message).help(help))
}

/// Fails if a folder has anything that is not part of a local copy.
pub(crate) fn check_replaceable(folder: &Path) -> Result<(), StoreError> {
    if !files::exists(folder)? || read(folder)?.is_some() {
        return Ok(());
    }
    let is_left = |name: &String| name == LOCK || name.strip_suffix(".tmp") == Some(MARK);
    if files::names_in(folder)?.iter().all(is_left) {
        return Ok(());
    }
    let message = format!("{} is not empty, and has no local copy of a store", folder.display());
    Err(StoreError::new(Code::StoreFormat, message).help("set --local-copy to a new folder"))
}

/// Marks a folder that is locked, and removes the copy in it. Files of others stay.
pub(super) fn clear(folder: &Path, of: &str) -> Result<(), StoreError> {
    check_replaceable(folder)?;
    set(folder, of)?;
    // Without its head, it is no store.
    let head = head::path(folder);
    files::remove(&head)?;
    files::sync_folder(&head)?;
    parts(folder)?.iter().try_for_each(|name| files::remove(&folder.join(name)))
}

/// The names of the parts of a copy.
pub(super) fn parts(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut names = files::names_in(folder)?;
    names.retain(|name| is_part(name));
    Ok(names)
}

/// Whether a file is part of a store, or was to be one.
fn is_part(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").unwrap_or(name);
    ["head", "index", "log", "state", KEPT, KEYS, KEYS_COPY].contains(&whole) || Part::parse(whole).is_some()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_is_marked_is_replaced() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("copy");
        assert!(check_replaceable(&folder).is_ok() && check_writable(&folder).is_ok());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(LOCK), "").unwrap();
        assert!(check_replaceable(&folder).is_ok());
        for name in ["head", "log.0000000001", "keys", "log.tmp", "security.log", "log.1"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        fs::create_dir(folder.join("index")).unwrap();
        assert_eq!(clear(&folder, "postgres://db/edge").unwrap_err().code, Code::StoreFormat);
        assert!(folder.join("head").exists() && read(&folder).unwrap().is_none());
        set(&folder, "postgres://db/edge").unwrap();
        clear(&folder, "postgres://db/other").unwrap();
        assert_eq!(read(&folder).unwrap().unwrap(), "postgres://db/other");
        let mut left = files::names_in(&folder).unwrap();
        left.sort();
        assert_eq!(left, [MARK, LOCK, "log.1", "security.log"]);
        assert!(check_writable(&folder).unwrap_err().message.contains("a local copy of postgres://db/other"));
    }
}
