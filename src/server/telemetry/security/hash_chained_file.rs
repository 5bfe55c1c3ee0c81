//! The file of the security log: lines that each have the hash of those before them, in files of bounded size.
//!
//! ```text
//! security.log.1   … {"seq":900,…,"hash":"aa"}
//! security.log     {"seq":901,"event":"log_continued",…,"previous":"aa","hash":"bb"}
//!                  {"seq":902,"event":"key_deleted",…,"hash":"cc"}
//! ```
//!
//! The hash covers the line without its last field and the hash before it, so a line cannot be changed, removed or inserted
//! without all later ones. The first line of a file repeats the last hash of the file before, so that neither can be taken
//! away.
//!
//! A crash can cut a line off. It stays as it is, because nobody should have a reason to remove lines from this file, and the
//! next line has its length and digest. If somebody removes or moves the file while the server runs, the next event goes to a
//! new one, whose first line says so.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::event::{SecurityEvent, SecurityRecord};
use super::log_line::{LineHead, hex};
use crate::files::{appended, if_exists, open_regular, private};
use crate::model::json::without_nulls;
use crate::store::commit::entries::Hash;
use crate::store::commit::header::chain;
use crate::store::disk::lock_wait::{MOMENT, retry_while_locked};

/// How long a file becomes, and how many older ones are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileBounds {
    pub bytes: u64,
    pub files: u32,
}

impl Default for FileBounds {
    fn default() -> Self {
        Self { bytes: 16 << 20, files: 9 }
    }
}

/// How much of the end of a file is read to find its last line, which is much shorter.
const TAIL: u64 = 1 << 20;
/// The reason in the first line of a file after one that was taken away.
const REPLACED: &str = "the previous file was removed or replaced";
/// The start of every line.
const BEGINNING: &[u8] = b"{\"seq\":";

/// A line, without its hash.
#[derive(Serialize)]
struct NumberedRecord<'a> {
    seq: u64,
    #[serde(flatten)]
    record: &'a SecurityRecord,
}

/// The end of a chain.
#[derive(Debug, Clone, Copy, Default)]
struct ChainEnd {
    seq: u64,
    hash: Hash,
}

impl ChainEnd {
    /// Adds a line to the chain, and its bytes to `bytes`.
    fn add(&mut self, record: &SecurityRecord, bytes: &mut Vec<u8>) -> io::Result<()> {
        let seq = self.seq + 1;
        let line = without_nulls(serde_json::to_value(NumberedRecord { seq, record })?);
        let mut body = serde_json::to_vec(&line)?;
        let hash = chain(&self.hash, &body);
        body.pop();
        bytes.append(&mut body);
        bytes.extend_from_slice(format!(",\"hash\":\"{}\"}}\n", hex(&hash)).as_bytes());
        *self = Self { seq, hash };
        Ok(())
    }
}

/// The open file.
#[derive(Debug)]
pub(super) struct HashChainedFile {
    path: PathBuf,
    bounds: FileBounds,
    file: File,
    length: u64,
    end: ChainEnd,
}

impl HashChainedFile {
    /// Opens the file at a path, and continues its chain. Only one process can have it open.
    pub(super) fn open(path: &Path, bounds: FileBounds) -> io::Result<Self> {
        let mut file = open_locked(path)?;
        let length = file.metadata()?.len();
        let Tail { end, torn, lacks_break, begins_well } = Tail::read(&mut file, length)?;
        let mut bytes = Vec::new();
        let end = match end {
            Some(end) => end,
            // The first line of a file was cut off, or there is none yet: the chain continues that of the older file.
            None if length == 0 || begins_well => older_end(path)?,
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, "not a security log")),
        };
        let mut this = Self { path: path.to_owned(), bounds, file, length, end };
        if lacks_break {
            bytes.push(b'\n');
        } else if !torn.is_empty() {
            let closed = torn.strip_suffix(b"\n").unwrap_or(&torn);
            if closed.len() == torn.len() {
                bytes.push(b'\n');
            }
            let (torn_bytes, torn_digest) = (Some(closed.len()), Some(blake3::hash(closed).to_hex().to_string()));
            // If the first line of a file was cut off, this one takes its place.
            let previous = (torn.len() as u64 == length).then(|| hex(&end.hash));
            let line = SecurityRecord::new(SecurityEvent::LineTorn);
            this.end.add(&SecurityRecord { torn_bytes, torn_digest, previous, ..line }, &mut bytes)?;
        } else if length == 0 {
            this.begin("", &mut bytes)?;
        }
        this.write(&bytes)?;
        Ok(this)
    }

    /// The number of the last line.
    pub(super) fn sequence(&self) -> u64 {
        self.end.seq
    }

    /// Appends lines durably. After an error the file must be opened again: a part of them may have been written.
    pub(super) fn append(&mut self, records: &[SecurityRecord]) -> io::Result<()> {
        if !self.is_in_place()? {
            self.replace()?;
        }
        if self.length > self.bounds.bytes {
            self.rotate()?;
        }
        let mut bytes = Vec::new();
        records.iter().try_for_each(|record| self.end.add(record, &mut bytes))?;
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.file.sync_data()
    }

    /// Adds the first line of a file.
    fn begin(&mut self, reason: &'static str, bytes: &mut Vec<u8>) -> io::Result<()> {
        let event = if self.end.seq == 0 { SecurityEvent::LogCreated } else { SecurityEvent::LogContinued };
        let previous = Some(hex(&self.end.hash));
        self.end.add(&SecurityRecord { reason: reason.into(), previous, ..SecurityRecord::new(event) }, bytes)
    }

    /// Continues in a new file.
    fn continue_in(&mut self, file: File, reason: &'static str) -> io::Result<()> {
        (self.file, self.length) = (file, 0);
        let mut bytes = Vec::new();
        self.begin(reason, &mut bytes)?;
        self.write(&bytes)
    }

    /// Whether the path still leads to the open file. Lines in a file that was removed would be lost.
    fn is_in_place(&self) -> io::Result<bool> {
        let Some(there) = if_exists(fs::symlink_metadata(&self.path))? else { return Ok(false) };
        let open = self.file.metadata()?;
        Ok((there.dev(), there.ino()) == (open.dev(), open.ino()))
    }

    /// Continues in a new file, whose first line says that the one before was taken away.
    fn replace(&mut self) -> io::Result<()> {
        let file = open_locked(&self.path)?;
        if file.metadata()?.len() > 0 {
            return Err(io::Error::other("the security log was replaced by another file"));
        }
        tracing::error!(file = %self.path.display(), "the security log was removed or replaced; continuing in a new file");
        self.continue_in(file, REPLACED)
    }

    /// Continues in a new file, and drops the oldest one.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.bounds.files).rev() {
            if_exists(fs::rename(numbered(&self.path, number), numbered(&self.path, number + 1)))?;
        }
        if_exists(fs::rename(&self.path, numbered(&self.path, 1)))?;
        self.continue_in(open_locked(&self.path)?, "")
    }
}

/// The path of an older file; 1 is the newest of them.
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    appended(path, &format!(".{number}"))
}

fn open_locked(path: &Path) -> io::Result<File> {
    let file = open_regular(path, private().read(true).append(true).create(true))?;
    match retry_while_locked(MOMENT, |error| matches!(error, TryLockError::WouldBlock), || file.try_lock()) {
        Ok(()) => {
            keep_private(&file, path)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another process writes to it")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes the permissions of others away from a file that was there before.
fn keep_private(file: &File, path: &Path) -> io::Result<()> {
    if file.metadata()?.mode() & 0o077 == 0 {
        return Ok(());
    }
    if let Err(error) = file.set_permissions(fs::Permissions::from_mode(0o600)) {
        tracing::warn!(file = %path.display(), reason = %error, "cannot make the security log readable by its owner only");
    }
    Ok(())
}

/// The end of a file.
struct Tail {
    /// The head of its last complete line.
    end: Option<ChainEnd>,
    /// The bytes after that line.
    torn: Vec<u8>,
    /// Whether only the line break of that line is missing.
    lacks_break: bool,
    /// Whether the file can begin with a line of a log that was cut off.
    begins_well: bool,
}

impl Tail {
    fn read(file: &mut File, length: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        let first = tail.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_beginning = first.starts_with(BEGINNING) || BEGINNING.starts_with(first);
        let begins_well = length <= TAIL && !first.is_empty() && is_beginning;
        let (mut end, mut lacks_break, mut at, mut after) = (None, false, 0, 0);
        for line in tail.split_inclusive(|byte| *byte == b'\n') {
            at += line.len();
            let whole = line.strip_suffix(b"\n").unwrap_or(line);
            if let Some(LineHead { seq, hash, .. }) = LineHead::parse(whole) {
                (end, after, lacks_break) = (Some(ChainEnd { seq, hash }), at, whole.len() == line.len());
            }
        }
        let torn = tail.get(after..).unwrap_or_default().to_vec();
        Ok(Self { end, torn, lacks_break, begins_well })
    }
}

/// The end of the chain in the newest older file.
fn older_end(path: &Path) -> io::Result<ChainEnd> {
    let older = if_exists(open_regular(&numbered(path, 1), File::options().read(true)))?;
    let Some(mut file) = older else { return Ok(ChainEnd::default()) };
    let length = file.metadata()?.len();
    Ok(Tail::read(&mut file, length)?.end.unwrap_or_default())
}
