//! Checks whether a store can exist at a path.

use std::{fs, path::Path};

use crate::files::if_exists;
use crate::store::error::{Doing, StoreError};

/// Returns whether a path has a store, or anything else that a new store must not replace. Fails if this cannot be
/// read: an unreadable store must not pass for an empty one.
pub(crate) fn store_exists(path: &Path) -> Result<bool, StoreError> {
    let facts = if_exists(fs::metadata(path)).doing("read", path)?;
    let Some(facts) = facts else { return Ok(false) };
    if !facts.is_dir() {
        return Ok(true);
    }
    let mut entries = fs::read_dir(path).doing("read", path)?;
    let entry = entries.next().transpose().doing("read", path)?;
    let Some(entry) = entry.map(|entry| entry.path()) else { return Ok(false) };
    // A folder can list names while its files are not accessible.
    fs::symlink_metadata(&entry).doing("read", &entry)?;
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::model::Code;

    #[test]
    fn nothing_is_told_from_what_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir_all(at("used/db")).unwrap();
        fs::write(at("file"), "x").unwrap();
        symlink("loop", at("loop")).unwrap();
        for (name, there) in
            [("nowhere", false), ("nowhere/store", false), ("empty", false), ("used", true), ("file", true)]
        {
            assert_eq!(store_exists(&at(name)).unwrap(), there, "{name}");
        }
        for name in ["loop", "loop/store", "file/store"] {
            assert_eq!(store_exists(&at(name)).unwrap_err().code, Code::StoreFailed, "{name}");
        }
    }
}
