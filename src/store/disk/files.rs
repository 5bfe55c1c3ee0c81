//! The files of a store's folder: their names, and how they are created, locked and made durable.

use std::{
    fs::{self, DirBuilder, File, FileType, OpenOptions, TryLockError},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::lock_wait::{MOMENT, patiently};
pub(crate) use crate::files::{open_regular as open, private};
use crate::{
    files::{self, fault},
    model::Code,
    store::error::StoreError,
};

/// The file that a writer locks, and that readers share.
pub(crate) const LOCK: &str = "lock";

/// The longest URL of a server in a lock.
const LONGEST_URL: u64 = 512;

/// The size of a trial write: more than most commits.
const PROBE_BYTES: usize = 1 << 18;

/// The purpose of a numbered file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The complete state at the start of a generation: the folder of a sled database.
    State,
    /// The batches of a generation.
    Log,
}

impl Part {
    const ALL: [(Part, &str); 2] = [(Part::State, "state"), (Part::Log, "log")];

    /// Returns the path of the one of a generation.
    pub(crate) fn path(self, folder: &Path, generation: u64) -> PathBuf {
        folder.join(self.name(generation))
    }

    /// Returns the name of the one of a generation.
    pub(crate) fn name(self, generation: u64) -> String {
        let name = Self::ALL.iter().find(|(part, _)| *part == self).map_or("", |(_, name)| name);
        format!("{name}.{generation:010}")
    }

    /// Parses what [`Part::name`] returns.
    pub(crate) fn parse(name: &str) -> Option<(Self, u64)> {
        let (name, number) = name.split_once('.')?;
        let (part, _) = Self::ALL.iter().find(|(_, known)| *known == name)?;
        let is_number = number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_number).map(|number| (*part, number))
    }

    /// Lists the generations that have one, in order.
    pub(crate) fn generations(self, folder: &Path) -> Result<Vec<u64>, StoreError> {
        let entries = fs::read_dir(folder).map_err(|error| StoreError::io("read", folder, &error))?;
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| StoreError::io("read", folder, &error))?.file_name();
            let parsed = name.to_str().and_then(Self::parse).filter(|(part, _)| *part == self);
            found.extend(parsed.map(|(_, generation)| generation));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Creates a folder that only its owner can access. An existing folder keeps its mode.
pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        let other = || StoreError::new(Code::StoreFormat, format!("{} is not a folder", path.display()));
        return if path.is_dir() { Ok(()) } else { Err(other()) };
    }
    let missing = path.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists());
    let missing: Vec<&Path> = missing.collect();
    fault::point("folder.create").map_err(|error| StoreError::io("create", path, &error))?;
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|error| StoreError::io("create", path, &error))?;
    // After a power loss, a synced file is lost if the name of its folder, or of a parent folder, was not durable.
    missing.into_iter().try_for_each(sync_folder)
}

/// Tries again for a moment while a store is locked.
pub(super) fn when_free<T>(open: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    patiently(MOMENT, |error: &StoreError| error.code == Code::StoreLocked, open)
}

/// Locks a folder for as long as the returned files are open.
pub(crate) fn lock(folder: &Path) -> Result<Vec<File>, StoreError> {
    let path = folder.join(LOCK);
    let held = when_free(|| {
        // On a full disk no file can be created, so an existing lock file is only opened.
        let file = match open(&path, OpenOptions::new().write(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => open(&path, private().write(true).create(true)),
            opened => opened,
        };
        hold(folder, file.map(Some), File::try_lock)
    })?;
    // A server that is gone must not be named.
    if let Some(file) = held.first().filter(|file| file.metadata().is_ok_and(|facts| facts.len() > 0)) {
        let _ = fault::point("lock.clear").and_then(|()| file.set_len(0));
    }
    Ok(held)
}

/// Shares the lock of a folder with other readers for as long as the returned files are open. Needs no write access.
pub(crate) fn lock_shared(folder: &Path) -> Result<Vec<File>, StoreError> {
    when_free(|| {
        let file = match open(&folder.join(LOCK), OpenOptions::new().read(true)) {
            // A lock file must not be created here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        hold(folder, file, File::try_lock_shared)
    })
}

/// Locks a lock file, if there is one. People remove it, so the folder is locked as well where the file system supports it.
fn hold(
    folder: &Path,
    file: io::Result<Option<File>>,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Vec<File>, StoreError> {
    let (path, mut held) = (folder.join(LOCK), Vec::new());
    if let Some(file) = file.map_err(|error| StoreError::io("open", &path, &error))? {
        match lock(&file) {
            Ok(()) => held.push(file),
            Err(TryLockError::WouldBlock) => return Err(locked(folder)),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path, &error)),
        }
    }
    let file = File::open(folder).map_err(|error| StoreError::io("open", folder, &error))?;
    match lock(&file) {
        Err(TryLockError::WouldBlock) => Err(locked(folder)),
        _ => {
            held.push(file);
            Ok(held)
        }
    }
}

/// Returns the error for a folder that another process has open.
pub(super) fn locked(folder: &Path) -> StoreError {
    let server = noted_server(folder).map(|url| format!(" at {url}")).unwrap_or_default();
    let folder = folder.display();
    let message = format!("the store {folder} is in use by another process, perhaps `edgewright serve`{server}");
    StoreError::new(Code::StoreLocked, message)
}

/// Notes in the lock of an open store where its server listens, for the message to other processes. It is only a hint, so it
/// is not an error if it cannot be written.
pub(crate) fn note_server(folder: &Path, url: &str) {
    let noting = fault::point("lock.note");
    let file = noting.and_then(|()| open(&folder.join(LOCK), OpenOptions::new().write(true).truncate(true)));
    let _ = file.and_then(|mut file| file.write_all(url.as_bytes()));
}

/// The server that a lock names. Whoever locks the store for writing removes the name.
fn noted_server(folder: &Path) -> Option<String> {
    let mut text = String::new();
    let file = open(&folder.join(LOCK), OpenOptions::new().read(true)).ok()?;
    file.take(LONGEST_URL).read_to_string(&mut text).ok()?;
    let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    (is_url && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
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
    let failed = |path: &Path, error: io::Error| StoreError::io("copy", path, &error);
    for (path, kind) in entries_below(from).map_err(|error| failed(from, error))? {
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        if kind.is_dir() {
            create_folder(&target)?;
        } else if kind.is_file() {
            let copied = open(&path, File::options().read(true)).and_then(|mut source| {
                let mut target = private().write(true).create_new(true).open(&target)?;
                io::copy(&mut source, &mut target)
            });
            copied.map_err(|error| failed(&target, error))?;
        }
    }
    Ok(())
}

/// Checks that a file of some size can be written durably.
pub(crate) fn probe(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join("probe.tmp");
    let written = write_whole(&path, |writer| writer.write_all(&[0; PROBE_BYTES]));
    let removed = fault::point("file.remove").and_then(|()| fs::remove_file(&path));
    written.and_then(|()| removed.map_err(|error| StoreError::io("remove", &path, &error)))
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

/// Writes a file that is either complete or missing, even after a power loss.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let written = files::write_whole(path, &path.with_extension("tmp"), write);
    written.map_err(|error| StoreError::io("write", path, &error))
}

/// Gives a synced temporary file its name, durably.
pub(crate) fn rename(temporary: &Path, path: &Path) -> Result<(), StoreError> {
    files::rename(temporary, path).map_err(|error| StoreError::io("write", path, &error))
}

/// Makes the names in the folder of a path durable. Without its name, a synced file is lost in a power loss.
pub(crate) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    files::sync_folder(path).map_err(|error| StoreError::io("sync", files::folder_of(path), &error))
}

/// Returns whether anything exists at a path, even a dangling link. Fails if this cannot be read.
pub(crate) fn exists(path: &Path) -> Result<bool, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(StoreError::io("read", path, &error)),
    }
}

/// Removes a file if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fault::point("file.remove").and_then(|()| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, &error)),
        _ => Ok(()),
    }
}
