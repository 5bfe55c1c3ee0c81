//! The files of the cache: one for each entry, with a checksum over its key and content.

use std::{
    fs::{self, DirBuilder, DirEntry, File, Metadata},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use blake3::{Hash, keyed_hash};
use rustix::{fs::OFlags, process::geteuid};

use super::MOST_BYTES;

/// The start of every file.
const MAGIC: &[u8; 8] = b"ewparse1";
/// The file whose time of modification is that of the last sweep.
const MARKER: &str = "swept";
/// The extension of files that are being written.
const TEMPORARY: &str = "tmp";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long an entry is kept that no run uses.
const MOST_IDLE: Duration = DAY.saturating_mul(30);
/// A FIFO is opened without waiting for its other end, and a link is not followed.
const CAREFULLY: i32 = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).bits() as i32;

/// A folder of entries, created with the first of them.
pub(super) struct Shelf {
    folder: PathBuf,
    /// Whether the folder can be used, once that is known.
    is_usable: OnceLock<bool>,
}

impl Shelf {
    /// Opens a folder, which does not have to exist.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let is_usable = match fs::symlink_metadata(folder) {
            Ok(facts) if is_safe(&facts) => OnceLock::from(true),
            Ok(_) => return Err(io::ErrorKind::PermissionDenied.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => OnceLock::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { folder: folder.to_owned(), is_usable })
    }

    /// Reads an entry, if it is intact.
    pub(super) fn read(&self, key: &Hash) -> Option<Vec<u8>> {
        let (folder, path) = self.place(key);
        if self.is_usable.get() != Some(&true) || !is_folder(&folder) {
            return None;
        }
        let mut file = File::options().read(true).custom_flags(CAREFULLY).open(path).ok()?;
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.len() > MOST_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        let header = bytes.len() - payload(key, &bytes)?.len();
        bytes.drain(..header);
        // Once a day is enough to tell which entries are used.
        let now = SystemTime::now();
        if !facts.modified().is_ok_and(|used| is_within(DAY, used, now)) {
            let _ = file.set_modified(now);
        }
        Some(bytes)
    }

    /// Writes an entry. It is not synced: after a power loss, the checksum tells.
    pub(super) fn write(&self, key: &Hash, payload: &[u8]) -> io::Result<()> {
        if !self.is_usable.get_or_init(|| prepare(&self.folder).is_ok_and(|facts| is_safe(&facts))) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (folder, path) = self.place(key);
        if !is_folder(&folder) {
            create(&folder)?;
            if !is_folder(&folder) {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        let mut header = Vec::with_capacity(48);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        header.extend_from_slice(keyed_hash(key.as_bytes(), payload).as_bytes());
        let temporary = path.with_extension(format!("{}.{TEMPORARY}", std::process::id()));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written = file.write_all(&header).and_then(|()| file.write_all(payload));
        let placed = written.and_then(|()| fs::rename(&temporary, &path));
        if placed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        placed
    }

    /// Whether the last sweep was more than a day ago. Of several processes that ask, usually one is told so.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        if self.is_usable.get() != Some(&true) {
            return false;
        }
        let marker = self.folder.join(MARKER);
        let swept = fs::symlink_metadata(&marker).and_then(|facts| facts.modified());
        if swept.is_ok_and(|swept| is_within(DAY, swept, now)) {
            return false;
        }
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).custom_flags(CAREFULLY).open(&marker);
        opened.and_then(|marker| marker.set_modified(now)).is_ok()
    }

    /// Removes entries that no run has used for long, and then the least recently used over `most` bytes.
    pub(super) fn sweep(&self, now: SystemTime, most: u64) {
        let mut kept = Vec::new();
        let folders = entries(&self.folder).filter(|entry| entry.file_type().is_ok_and(|found| found.is_dir()));
        for entry in folders.flat_map(|folder| entries(&folder.path())) {
            let Ok(facts) = entry.metadata() else { continue };
            let Ok(used) = facts.modified() else { continue };
            if !facts.is_file() {
                continue;
            }
            let path = entry.path();
            let is_temporary = path.extension().is_some_and(|found| found == TEMPORARY);
            let is_old = now.duration_since(used).is_ok_and(|idle| idle > if is_temporary { DAY } else { MOST_IDLE });
            if is_old {
                let _ = fs::remove_file(path);
            } else {
                kept.push((used, facts.len(), path));
            }
        }
        let mut total: u64 = kept.iter().map(|(_, length, _)| *length).sum();
        kept.sort_unstable();
        for (_, length, path) in kept {
            if total <= most {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= length;
            }
        }
    }

    /// The folder and the file of an entry.
    fn place(&self, key: &Hash) -> (PathBuf, PathBuf) {
        let name = key.to_hex();
        let folder = self.folder.join(name.get(..2).unwrap_or_default());
        let path = folder.join(name.as_str());
        (folder, path)
    }
}

/// The content of an intact file.
fn payload<'a>(key: &Hash, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(MAGIC.as_slice())?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (sum, payload) = rest.split_first_chunk::<32>()?;
    let is_whole = u64::from_le_bytes(*length) == payload.len() as u64;
    (is_whole && keyed_hash(key.as_bytes(), payload) == *sum).then_some(payload)
}

/// Whether a time is at most so long ago. One in the future is not: the clock was set back.
fn is_within(span: Duration, time: SystemTime, now: SystemTime) -> bool {
    now.duration_since(time).is_ok_and(|ago| ago <= span)
}

/// Whether a path is a folder, and not a link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

/// Creates the folder of a cache. Its parent must belong to the user: files of root in the store of a service would get
/// in its way.
fn prepare(folder: &Path) -> io::Result<Metadata> {
    let parent = folder.parent().unwrap_or(folder);
    create(parent)?;
    if !is_own(&fs::metadata(parent)?) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    create(folder)?;
    fs::symlink_metadata(folder)
}

/// Whether a folder belongs to the user, and nobody else can write to it. Entries of others are not to be trusted.
fn is_safe(facts: &Metadata) -> bool {
    is_own(facts) && facts.mode() & 0o022 == 0
}

fn is_own(facts: &Metadata) -> bool {
    facts.is_dir() && facts.uid() == geteuid().as_raw()
}

/// Creates a folder and its parents, unless they exist.
fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok)
}
