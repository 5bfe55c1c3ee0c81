//! The files of a store's folder: their names, and how they are created and made durable.

use std::fs::{self, DirBuilder, File, FileType};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::files::{self, fault};
pub(crate) use crate::files::{open_regular as open, private};
use crate::model::Code;
use crate::model::names::names;
use crate::store::error::{Doing, StoreError};

/// The purpose of a numbered file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The complete state at the start of a generation: the folder of a sled database.
    State,
    /// The batches of a generation.
    Log,
}

names!(Part: State "state", Log "log");

impl Part {
    /// Returns the path of the one of a generation.
    pub(crate) fn path(self, folder: &Path, generation: u64) -> PathBuf {
        folder.join(self.name(generation))
    }

    /// Returns the name of the one of a generation.
    pub(crate) fn name(self, generation: u64) -> String {
        format!("{}.{generation:010}", self.as_str())
    }

    /// Parses what [`Part::name`] returns.
    pub(crate) fn parse(name: &str) -> Option<(Self, u64)> {
        let (name, number) = name.split_once('.')?;
        let part = Self::from_name(name)?;
        let is_number = number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_number).map(|number| (part, number))
    }

    /// Lists the generations that have one, in order.
    pub(crate) fn generations(self, folder: &Path) -> Result<Vec<u64>, StoreError> {
        let parsed = names_in(folder)?.into_iter().filter_map(|name| Self::parse(&name));
        let mut found: Vec<u64> = parsed.filter(|(part, _)| *part == self).map(|(_, generation)| generation).collect();
        found.sort_unstable();
        Ok(found)
    }
}

/// The size of a trial write: more than most commits.
const PROBE_BYTES: usize = 1 << 18;
/// The help for a path that is a file.
const NO_FOLDER: &str = "a store is a folder: set --store to that of your store";

/// Creates a folder that only its owner can access. An existing folder keeps its mode.
pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        let other =
            || StoreError::new(Code::StoreFormat, format!("{} is not a folder", path.display())).help(NO_FOLDER);
        return if path.is_dir() { Ok(()) } else { Err(other()) };
    }
    let missing = path.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists());
    let missing: Vec<&Path> = missing.collect();
    fault::point("folder.create").doing("create", path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path).doing("create", path)?;
    // After a power loss, a synced file is lost if the name of its folder, or of a parent folder, was not durable.
    missing.into_iter().try_for_each(sync_folder)
}

/// Reads a whole file of the store.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    files::read_regular(path, u64::MAX)
}

/// Returns the error of a file that cannot be read. It is damaged if it is missing, or if the disk fails to read it.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::corrupt(path, "the file is missing"),
        _ if Errno::from_io_error(error) == Some(Errno::IO) => StoreError::corrupt(path, "the disk cannot read it"),
        _ => StoreError::io("read", path, error),
    }
}

/// Copies a file of the store, which is either complete or missing then, even after a power loss.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut source = open(from, File::options().read(true)).map_err(|error| unreadable(from, &error))?;
    write_whole(to, |writer| io::copy(&mut source, writer).map(|_| ()))
}

/// Lists the names of everything in a folder.
pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = fs::read_dir(folder).doing("read", folder)?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).doing("read", folder)).collect()
}

/// Lists everything below a folder, each folder before what is in it. Links are not followed.
pub(crate) fn entries_below(folder: &Path) -> io::Result<Vec<(PathBuf, FileType)>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            folders.extend(kind.is_dir().then(|| path.clone()));
            found.push((path, kind));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// Copies the files below a folder, as files that their owner can write.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), StoreError> {
    create_folder(to)?;
    for (path, kind) in entries_below(from).doing("copy", from)? {
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        if kind.is_dir() {
            create_folder(&target)?;
        } else if kind.is_file() {
            let copied = open(&path, File::options().read(true)).and_then(|mut source| {
                let mut target = private().write(true).create_new(true).open(&target)?;
                io::copy(&mut source, &mut target)
            });
            copied.doing("copy", &target)?;
        }
    }
    Ok(())
}

/// Removes the permissions of group and others from every file below a folder.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    for (path, _) in entries_below(folder)? {
        // sled removes files behind its back.
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        let mode = facts.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o700))?;
        }
    }
    Ok(())
}

/// Writes a file that is either complete or missing, even after a power loss. An error of `write` that wraps one of the store is
/// returned as that.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let written = files::write_whole(path, &path.with_extension("tmp"), write);
    written.map_err(|error| error.downcast().unwrap_or_else(|error| StoreError::io("write", path, &error)))
}

/// Gives a synced temporary file its name, durably.
pub(crate) fn rename(temporary: &Path, path: &Path) -> Result<(), StoreError> {
    files::rename(temporary, path).doing("write", path)
}

/// Makes the names in the folder of a path durable. Without its name, a synced file is lost in a power loss.
pub(crate) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    files::sync_folder(path).doing("sync", files::folder_of(path))
}

/// Returns whether anything exists at a path, even a dangling link. Fails if this cannot be read.
pub(crate) fn exists(path: &Path) -> Result<bool, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(StoreError::io("read", path, &error)),
    }
}

/// Removes a file, or a folder with all that is in it, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    let remove = |found: fs::Metadata| {
        fault::point("file.remove")?;
        if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
    };
    files::if_exists(fs::symlink_metadata(path).and_then(remove)).map(drop).doing("remove", path)
}

/// Tries whether a full disk has room again: whether a file of some size can be written durably.
pub(crate) fn probe(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join("probe.tmp");
    let written = write_whole(&path, |writer| writer.write_all(&[0; PROBE_BYTES]));
    let removed = remove(&path);
    written.and(removed)
}
