//! The replacement of a local copy by one that was made anew (D115).
//!
//! # The problem
//!
//! A copy is made anew just when something is wrong, for example after the database was restored. If that is interrupted, because the
//! disk is full or the database goes away again, there must be a copy nevertheless. And the former copy can be all that is left of
//! what the database has lost.
//!
//! # The idea
//!
//! The new copy is written into a folder within that of the copy, which can be a mount of its own. Once it is complete, that folder
//! gets another name, and from then on whoever opens the copy finishes what was interrupted.
//!
//! ```text
//! copy/head, log.1, keys …   the former copy
//! copy/new/                  the new one is being written
//! copy/next/                 it is complete, and its files are taking their place: the keys first, the head last
//! copy/former/               a former copy with what the database has lost; there is one at most, and people remove it
//! ```
//!
//! While `next` has its keys, all parts of a copy beside it are of the former one.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::key_copies::KEYS;
use super::local_mark;
use crate::store::disk::{files, folder_lock};
use crate::store::error::StoreError;

const NEW: &str = "new";
const NEXT: &str = "next";
const FORMER: &str = "former";
/// A file in `next`, if the former copy is kept.
const KEEPS: &str = "keeps_former";

/// The folder of a local copy that is being replaced, locked.
pub(crate) struct CopySwap {
    folder: PathBuf,
    of: String,
    _lock: Vec<File>,
}

impl CopySwap {
    /// Begins in a folder that is missing, empty, or has a local copy. `of` is the database of the new one.
    pub(crate) fn begin(folder: &Path, of: &str) -> Result<Self, StoreError> {
        files::create_folder(folder)?;
        let lock = folder_lock::lock(folder)?;
        local_mark::check_replaceable(folder)?;
        // One of another database stays what it is until its files go.
        if local_mark::read(folder)?.is_none() {
            local_mark::set(folder, of)?;
        }
        files::remove(&folder.join(NEW))?;
        Ok(Self { folder: folder.to_owned(), of: of.to_owned(), _lock: lock })
    }

    /// Where the new copy is to be written.
    pub(crate) fn new_copy(&self) -> PathBuf {
        self.folder.join(NEW)
    }

    /// Puts the new copy, which is complete, in the place of the former one. Returns where that is kept, if it is: not if another one is
    /// kept there already.
    pub(crate) fn finish(self, keeps_former: bool) -> Result<Option<PathBuf>, StoreError> {
        let (new, former) = (self.new_copy(), self.folder.join(FORMER));
        let keeps = keeps_former && !files::exists(&former)?;
        local_mark::set(&new, &self.of)?;
        if keeps {
            files::write_whole(&new.join(KEEPS), |_| Ok(()))?;
        }
        files::rename(&new, &self.folder.join(NEXT))?;
        take_place(&self.folder)?;
        Ok(keeps.then_some(former))
    }
}

impl Drop for CopySwap {
    fn drop(&mut self) {
        // What is not complete only takes up space.
        let _ = files::remove(&self.new_copy());
    }
}

/// Finishes a replacement that was interrupted.
pub(crate) fn finish_interrupted(folder: &Path) -> Result<(), StoreError> {
    if !files::exists(&folder.join(NEXT))? {
        return Ok(());
    }
    let _lock = folder_lock::lock(folder)?;
    take_place(folder)
}

/// Moves the files of the next copy to their place. Can be interrupted, and done again.
fn take_place(folder: &Path) -> Result<(), StoreError> {
    let next = folder.join(NEXT);
    let keys = next.join(KEYS);
    if files::exists(&keys)? {
        if files::exists(&next.join(KEEPS))? {
            keep(folder, &folder.join(FORMER))?;
        }
        local_mark::clear(folder, &local_mark::read(&next)?.unwrap_or_default())?;
        files::rename(&keys, &folder.join(KEYS))?;
    }
    move_parts(&next, folder)?;
    files::remove(&next)
}

/// Moves the former copy to a folder of its own, which only readers can open as well.
fn keep(folder: &Path, former: &Path) -> Result<(), StoreError> {
    files::create_folder(former)?;
    local_mark::set(former, &local_mark::read(folder)?.unwrap_or_default())?;
    move_parts(folder, former)
}

/// Moves all parts of a copy, and its head last: without that, it is no store.
fn move_parts(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut names = local_mark::parts(from)?;
    names.sort_by_key(|name| name == "head");
    names.iter().try_for_each(|name| files::rename(&from.join(name), &to.join(name)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    const OF: &str = "postgres://db/edge";

    /// Writes something in place of a copy.
    fn write(folder: &Path, text: &str) {
        fs::create_dir_all(folder.join("state.0000000002")).unwrap();
        for name in ["head", KEYS, "keys.copy", "log.0000000001", "state.0000000002/db"] {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    fn read(folder: &Path) -> Vec<String> {
        ["head", KEYS, "log.0000000001", "state.0000000002/db"]
            .map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default())
            .into()
    }

    fn replace(folder: &Path, text: &str, keeps_former: bool) -> Option<PathBuf> {
        let swap = CopySwap::begin(folder, OF).unwrap();
        write(&swap.new_copy(), text);
        swap.finish(keeps_former).unwrap()
    }

    #[test]
    fn a_copy_is_replaced_by_one_that_is_complete_and_the_first_that_is_ahead_is_kept() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("copy");
        assert_eq!(replace(&folder, "one", false), None);
        let swap = CopySwap::begin(&folder, OF).unwrap();
        write(&swap.new_copy(), "interrupted");
        drop(swap);
        assert_eq!(read(&folder), ["one"; 4]);
        let former = folder.join(FORMER);
        assert_eq!(replace(&folder, "two", true), Some(former.clone()));
        assert_eq!((read(&folder), read(&former)), (vec!["two".to_owned(); 4], vec!["one".to_owned(); 4]));
        assert_eq!(local_mark::read(&former).unwrap().unwrap(), OF);
        assert_eq!(replace(&folder, "three", true), None);
        assert_eq!((read(&folder), read(&former)), (vec!["three".to_owned(); 4], vec!["one".to_owned(); 4]));
        assert!(!folder.join(NEW).exists() && !folder.join(NEXT).exists());
    }

    #[test]
    fn a_replacement_is_finished_wherever_it_was_interrupted() {
        // How many of the files had been moved, in their order: those of the former copy, and then those of the new one.
        for moved in 0..=8 {
            let outer = tempfile::tempdir().unwrap();
            let folder = outer.path().join("copy");
            replace(&folder, "one", false);
            let (next, former) = (folder.join(NEXT), folder.join(FORMER));
            write(&next, "two");
            local_mark::set(&next, OF).unwrap();
            fs::write(next.join(KEEPS), "").unwrap();
            fs::create_dir(&former).unwrap();
            let names = ["keys", "keys.copy", "log.0000000001", "state.0000000002"];
            let moves = names.map(|name| (&folder, &former, name)).into_iter();
            let moves = moves.chain(names.map(|name| (&next, &folder, name)));
            for (number, (from, to, name)) in moves.take(moved).enumerate() {
                // The head of the former copy is gone before anything of the new one comes.
                if number == names.len() {
                    fs::rename(folder.join("head"), former.join("head")).unwrap();
                }
                fs::rename(from.join(name), to.join(name)).unwrap();
            }
            finish_interrupted(&folder).unwrap();
            assert_eq!(
                (read(&folder), read(&former)),
                (vec!["two".to_owned(); 4], vec!["one".to_owned(); 4]),
                "{moved}"
            );
            assert!(!next.exists());
        }
    }
}
