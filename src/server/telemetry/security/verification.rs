//! Reading the security log: its lines, and whether the chain of their hashes holds. A server may write to it meanwhile.

use std::{fs, io, path::Path};

use super::hash_chained_file::{FileBounds, numbered};
use super::log_line::{LineHead, hex};
use crate::files::{if_exists, read_regular};
use crate::store::commit::entries::Hash;
use crate::store::commit::header::chain;

/// The most older files that are looked for.
const MOST_FILES: u32 = 1000;
/// The longest file that is read. The server begins a new one much earlier.
const MOST_BYTES: u64 = 256 << 20;
/// How often the files are read again if the server has begun a new one meanwhile.
const ATTEMPTS: usize = 3;

/// The lines of a log.
#[derive(Debug, Default)]
pub(crate) struct ReadLog {
    /// The names of the events, and the lines as they are.
    pub lines: Vec<(String, String)>,
    /// The files.
    pub files: usize,
    /// The number of the first and the last line.
    pub first: u64,
    pub last: u64,
    /// The hash of the last line.
    pub hash: String,
    /// The lines that were cut off when the server stopped.
    pub torn: usize,
    /// Whether the last line is not whole: the server is writing it, or was cut off.
    pub is_unfinished: bool,
}

impl ReadLog {
    /// Whether lines before the first one are missing, although the server would have kept their files.
    pub(crate) fn lacks_beginning(&self) -> bool {
        self.first > 1 && self.files <= FileBounds::default().files as usize
    }
}

/// Why a log cannot be trusted.
#[derive(Debug)]
pub(crate) enum LogError {
    /// A file cannot be read.
    Io(io::Error),
    /// The chain is broken.
    Broken(String),
}

/// Reads a log and checks its chain.
pub(crate) fn read(path: &Path) -> Result<ReadLog, LogError> {
    let mut read = Err(LogError::Broken(String::new()));
    for _ in 0..ATTEMPTS {
        let (files, gap) = files(path).map_err(LogError::Io)?;
        read = match gap {
            Some(gap) => Err(LogError::Broken(gap)),
            None => check(&files).map_err(LogError::Broken),
        };
        if read.is_ok() {
            break;
        }
    }
    read
}

/// The contents of the files, the oldest one first, and which one is missing between them.
fn files(path: &Path) -> io::Result<(Vec<Vec<u8>>, Option<String>)> {
    let mut files = vec![read_regular(path, MOST_BYTES)?];
    let mut gap = None;
    for number in 1..MOST_FILES {
        let Some(file) = if_exists(read_regular(&numbered(path, number), MOST_BYTES))? else {
            let is_there = |number: &u32| fs::symlink_metadata(numbered(path, *number)).is_ok();
            gap = (number + 1..MOST_FILES).find(is_there).map(|older| {
                let names = [number, older].map(|number| numbered(path, number));
                let [missing, older] = names.map(|path| path.display().to_string());
                format!("`{missing}` is missing, but the older `{older}` exists")
            });
            break;
        };
        files.push(file);
    }
    files.reverse();
    Ok((files, gap))
}

/// Checks the chain through all files.
fn check(files: &[Vec<u8>]) -> Result<ReadLog, String> {
    let mut log = ReadLog { files: files.len(), ..ReadLog::default() };
    let mut end: Option<(u64, Hash)> = None;
    for (number, file) in files.iter().enumerate() {
        let (mut torn, mut is_first) = (Vec::new(), true);
        let is_newest = number + 1 == files.len();
        for line in file.split_inclusive(|byte| *byte == b'\n') {
            let after = || match end {
                Some((seq, _)) => format!("after line {seq}"),
                None => "at the beginning".to_owned(),
            };
            let Some(whole) = line.strip_suffix(b"\n") else {
                if !is_newest {
                    return Err(format!("a line is incomplete {}", after()));
                }
                log.is_unfinished = true;
                break;
            };
            let Some(head) = LineHead::parse(whole) else {
                torn.extend_from_slice(line);
                continue;
            };
            let (known_seq, known_hash) = match (end, head.previous) {
                (Some(end), _) => end,
                // What came before the oldest file is not there any more.
                (None, Some(previous)) => (head.seq.saturating_sub(1), previous),
                (None, None) => return Err("the first line has no hash of the line before it".to_owned()),
            };
            if is_first && head.previous != Some(known_hash) {
                return Err(format!("a file is missing or replaced {}", after()));
            }
            if head.seq != known_seq + 1 {
                return Err(format!("line {} follows {known_seq}: lines are missing or repeated", head.seq));
            }
            if chain(&known_hash, &head.body) != head.hash {
                return Err(format!("line {} or a line before it was changed", head.seq));
            }
            check_torn(&mut torn, &head)?;
            log.torn += usize::from(head.torn.is_some());
            if end.is_none() {
                log.first = head.seq;
            }
            is_first = false;
            end = Some((head.seq, head.hash));
            log.lines.push((head.event, String::from_utf8_lossy(whole).into_owned()));
        }
        // A torn line is closed when the log is opened again.
        if !torn.is_empty() {
            return Err("unexpected bytes at the end of a file".to_owned());
        }
    }
    if let Some((seq, hash)) = end {
        (log.last, log.hash) = (seq, hex(&hash));
    }
    Ok(log)
}

/// Whether the bytes between two lines are those that the second one says were cut off.
fn check_torn(torn: &mut Vec<u8>, head: &LineHead) -> Result<(), String> {
    let torn = std::mem::take(torn);
    let closed = torn.strip_suffix(b"\n").unwrap_or(&torn);
    let is_said = match &head.torn {
        Some((bytes, digest)) => {
            *bytes == closed.len() && blake3::hash(closed).to_hex().as_str() == digest && !torn.is_empty()
        }
        None => torn.is_empty(),
    };
    if is_said { Ok(()) } else { Err(format!("unexpected bytes before line {}", head.seq)) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests {
    use std::{io::Write, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::server::telemetry::security::event::{SecurityEvent, SecurityRecord};
    use crate::server::telemetry::security::hash_chained_file::{FileBounds, HashChainedFile};

    fn entries(count: usize) -> Vec<SecurityRecord> {
        (0..count).map(|_| SecurityRecord::new(SecurityEvent::KeyCreated)).collect()
    }

    fn append(path: &Path, count: usize) {
        let mut file = HashChainedFile::open(path, FileBounds::default()).unwrap();
        file.append(&entries(count)).unwrap();
    }

    #[test]
    fn the_chain_continues_when_the_log_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        append(&path, 3);
        append(&path, 2);
        let log = read(&path).unwrap();
        assert_eq!((log.first, log.last, log.files, log.torn), (1, 6, 1, 0));
        assert_eq!(log.lines[0].0, "log_created");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_changed_missing_repeated_or_inserted_line_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        append(&path, 5);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut repeated = lines.clone();
        repeated.insert(3, lines[2]);
        let mut inserted = lines.clone();
        inserted.insert(3, "{}");
        let mut missing = lines.clone();
        missing.remove(2);
        let broken = [
            text.replacen("key_created", "key_deleted", 1),
            joined(&missing),
            joined(&lines[1..]),
            joined(&repeated),
            joined(&inserted),
            format!("{text}more\n"),
        ];
        for broken in broken {
            fs::write(&path, &broken).unwrap();
            assert!(matches!(read(&path), Err(LogError::Broken(_))), "{broken}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_closed_at_any_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        append(&path, 2);
        let whole = fs::read(&path).unwrap();
        // Cuts in the first line of the file, too.
        let matters = |cut: &usize| cut.is_multiple_of(5) || whole[*cut - 1..=*cut].contains(&b'\n') || *cut < 10;
        for cut in (1..whole.len()).filter(matters) {
            fs::write(&path, &whole[..cut]).unwrap();
            append(&path, 1);
            // Cut off again while the former cut is closed.
            let closed = fs::read(&path).unwrap();
            fs::write(&path, &closed[..cut.midpoint(closed.len())]).unwrap();
            append(&path, 1);
            let log = read(&path).unwrap_or_else(|error| panic!("cut at {cut}: {error:?}"));
            assert!(log.last >= 2 && !log.is_unfinished, "{cut}");
        }
    }

    #[test]
    fn a_full_file_is_replaced_and_the_chain_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        let bounds = FileBounds { bytes: 2000, files: 2 };
        for _ in 0..100 {
            let mut file = HashChainedFile::open(&path, bounds).unwrap();
            file.append(&entries(1)).unwrap();
        }
        let log = read(&path).unwrap();
        assert_eq!((log.files, log.lines.last().map(|(event, _)| event.as_str())), (3, Some("key_created")));
        assert!(log.first > 1 && log.last > 100, "{} {}", log.first, log.last);
        let middle = numbered(&path, 1);
        let text = fs::read(&middle).unwrap();
        fs::remove_file(&middle).unwrap();
        match read(&path) {
            Err(LogError::Broken(reason)) => assert!(reason.contains("security.log.1` is missing"), "{reason}"),
            other => panic!("{other:?}"),
        }
        fs::rename(numbered(&path, 2), &middle).unwrap();
        assert!(matches!(read(&path), Err(LogError::Broken(_))), "a file is missing");
        // A server that stopped between the two steps of a rotation.
        fs::write(&middle, text).unwrap();
        fs::remove_file(&path).unwrap();
        append(&path, 1);
        assert!(read(&path).is_ok());
    }

    #[test]
    fn a_line_that_is_being_written_is_no_fault_and_two_writers_are_one_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        append(&path, 1);
        let held = HashChainedFile::open(&path, FileBounds::default()).unwrap();
        assert!(HashChainedFile::open(&path, FileBounds::default()).is_err());
        drop(held);
        fs::File::options().append(true).open(&path).unwrap().write_all(b"{\"seq\":3,").unwrap();
        let log = read(&path).unwrap();
        assert!(log.is_unfinished && log.last == 2);
        let other = folder.path().join("other");
        fs::write(&other, "notes\n").unwrap();
        assert!(HashChainedFile::open(&other, FileBounds::default()).is_err(), "not a log");
        assert_eq!(fs::read_to_string(&other).unwrap(), "notes\n");
    }

    #[test]
    fn a_log_that_is_moved_away_goes_on_in_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("security.log"), folder.path().join("moved"));
        let mut file = HashChainedFile::open(&path, FileBounds::default()).unwrap();
        file.append(&entries(2)).unwrap();
        fs::rename(&path, &moved).unwrap();
        file.append(&entries(1)).unwrap();
        let log = read(&path).unwrap();
        assert_eq!((log.first, log.last, log.lines[0].0.as_str()), (4, 5, "log_continued"));
        assert!(log.lines[0].1.contains("removed or replaced"), "{:?}", log.lines);
        assert!(log.lacks_beginning() && !read(&moved).unwrap().lacks_beginning());
        // The chain is still the same.
        fs::rename(&moved, numbered(&path, 1)).unwrap();
        let log = read(&path).unwrap();
        assert_eq!((log.first, log.last, log.lacks_beginning()), (1, 5, false));
        fs::remove_file(&path).unwrap();
        file.append(&entries(1)).unwrap();
        assert_eq!(read(&path).map(|log| log.last).ok(), None, "the lines 4 and 5 are missing");
        // Another log in its place is not continued with this chain.
        let other = folder.path().join("other");
        append(&other, 1);
        fs::rename(&other, &path).unwrap();
        assert!(file.append(&entries(1)).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn only_its_owner_can_read_a_log_that_is_there_already_and_a_fifo_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        append(&path, 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        append(&path, 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(matches!(read(&fifo), Err(LogError::Io(_))));
    }
}
