//! Files that are either complete or missing, even after a power loss: written under another name, synced, and renamed. And
//! files that must be files. `gzip.rs` reads what is compressed.

pub(crate) mod fault;
pub(crate) mod gzip;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// A FIFO is opened without waiting for its other end, and a link is not followed out of its folder.
const CAREFULLY: i32 = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).bits() as i32;
/// How many bytes are collected for one write.
const TOGETHER: usize = 1 << 16;

/// Returns options to create a file that only its owner can read, because it contains private keys.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Opens a regular file: reading a FIFO or a device might never end. Anything else is an error of [`io::ErrorKind::Other`].
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let opened = options.custom_flags(CAREFULLY).open(path);
    let special = match &opened {
        Ok(file) => !file.metadata()?.is_file(),
        // The error of opening a socket, a folder or a link does not say what it is.
        Err(_) => fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()),
    };
    if special { Err(io::Error::other("not a regular file")) } else { opened }
}

/// Reads the first bytes of a regular file.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, File::options().read(true))?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates the file that is renamed once it is complete. Replaces what an interrupted attempt left.
pub(crate) fn create_temporary(temporary: &Path) -> io::Result<File> {
    fault::point("file.create")?;
    if_exists(fs::remove_file(temporary))
        .map_err(|error| io::Error::new(error.kind(), format!("cannot replace {}: {error}", temporary.display())))?;
    private().read(true).write(true).create_new(true).open(temporary)
}

/// Writes a whole file, first under a temporary name.
pub(crate) fn write_whole(
    path: &Path,
    temporary: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let file = create_temporary(temporary)?;
    let placed = (|| {
        let mut writer = BufWriter::with_capacity(TOGETHER, file);
        write(&mut writer)?;
        fault::point("file.write")?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        fault::point("file.sync").and_then(|()| file.sync_all())?;
        rename(temporary, path)
    })();
    if placed.is_err() {
        let _ = fs::remove_file(temporary);
    }
    placed
}

/// Gives a synced temporary file its name, durably.
pub(crate) fn rename(temporary: &Path, path: &Path) -> io::Result<()> {
    // The folder is opened first: if no handle is left for it, nothing may have been renamed yet.
    let folder = File::open(folder_of(path))?;
    fault::point("file.rename").and_then(|()| fs::rename(temporary, path))?;
    fault::point("folder.sync").and_then(|()| folder.sync_all())
}

/// Makes the names in the folder of a path durable. Without its name, a synced file is lost in a power loss.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = File::open(folder_of(path))?;
    fault::point("folder.sync").and_then(|()| folder.sync_all())
}

/// Turns the error for a file that does not exist into none.
pub(crate) fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// The folder that has the name of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path of the same folder with something behind its name.
pub(crate) fn appended(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_keeps_its_content_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, temporary) = (folder.path().join("file"), folder.path().join("file.tmp"));
        fs::write(&path, "old").unwrap();
        fs::write(&temporary, "left by another process").unwrap();
        let failed = write_whole(&path, &temporary, |writer| {
            writer.write_all(b"ne")?;
            Err(io::Error::other("full"))
        });
        assert!(failed.is_err() && !temporary.exists());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        write_whole(&path, &temporary, |writer| writer.write_all(b"new")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), temporary.exists()), ("new", false));
    }
}
