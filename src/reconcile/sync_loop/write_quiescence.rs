//! Detects files of a source that are still being written (D92).
//!
//! # The problem
//!
//! A sync that starts while a file is being saved can read half of it. Half of a file can be valid YAML: a route
//! without its login. No error would stop it from becoming a revision.
//!
//! # The idea
//!
//! A reading is used only if it is complete. Each file that a run reads is noted with its stamp: device, inode, length
//! and modification time. After the reading, [`WriteQuiescence::check`] compares the stamps with the files as they are
//! now, and with what [`OpenWrites`] knows from events. A file that differs was torn, one that changed within the
//! debounce may change again, and one that is open for writing is not finished. The check comes after the reading
//! because only manifests tell which values they take.
//!
//! For example, `cat > route.yaml` creates the file, pauses, and writes the second half two seconds later. The event of
//! the creation marks the file as open, so the source waits for the event of its closing, and applies all of it at
//! once. Without events, the modification time makes it wait for the debounce, which such a pause outlasts.
//!
//! A file that is waited for is not read again until it can be complete ([`WriteQuiescence::left`]). A modification
//! time in the future, such as from a file server with another clock, counts from when the file was first seen so.
//!
//! # What it never does
//!
//! It never waits longer than a minute, so that a log in the folder cannot stop a source. It does not ask the system
//! which files are open (`/proc`): that shows only processes of the same user and namespace, and events report their
//! writes already.

use std::ffi::OsStr;
use std::path::Path;

use super::{clock::Moment, open_writes::OpenWrites, schedule::QUIET};
use crate::manifest::tree::{FileStamp, NotedFile};
use crate::reconcile::prelude::*;
use crate::syntax::text::{escaped, first_of};

/// How long a file that is open for writing is waited for after its last change.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The longest wait of a source for files that keep changing.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The files of a source that is followed, and those that it waits for.
#[derive(Default)]
pub(super) struct WriteQuiescence {
    /// The name of the source, for the log.
    source: String,
    writes: Arc<OpenWrites>,
    /// The files that are being written, by device and inode, each with the time of its last event.
    open: HashMap<(u64, u64), Instant>,
    /// The files of the last reading that was complete, sorted.
    known: Vec<Arc<OsStr>>,
    /// Files that changed a moment ago: how they were seen, and since when they are like that.
    seen: HashMap<PathBuf, (Option<FileStamp>, Instant)>,
    /// The files that it waits for.
    pending: Vec<PathBuf>,
    /// The start of the wait.
    since: Option<Instant>,
    /// The files that are read although they are still open for writing, by device and inode.
    taken: HashMap<(u64, u64), PathBuf>,
}

/// The verdict on a reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadingCheck {
    /// All files are complete.
    Complete,
    /// A file is being written. It may be complete after this time, or when there is an event.
    Wait(Duration),
    /// A file keeps changing while it is read.
    Torn(PathBuf),
}

impl WriteQuiescence {
    /// Creates the check of a source whose files have not been read yet.
    pub(super) fn new(source: &str, writes: Arc<OpenWrites>) -> Self {
        Self { source: source.to_owned(), writes, ..Self::default() }
    }

    /// How much longer to wait for the files that the last reading waited for. They are not read again until then.
    pub(super) fn left(&mut self, at: Moment) -> Option<Duration> {
        self.find_open(at);
        let longest = left_of(LONGEST_WAIT, self.since?, at);
        let pending = std::mem::take(&mut self.pending);
        let left = pending.iter().filter_map(|path| self.wait_for(path, FileStamp::at(path), at)).max();
        self.pending = pending;
        left.map(|left| left.min(longest)).filter(|left| !left.is_zero())
    }

    /// Checks files that were read, as they were then.
    pub(super) fn check(&mut self, read: Vec<NotedFile>, at: Moment) -> ReadingCheck {
        self.find_open(at);
        let (mut torn, mut wait) = (None, Duration::ZERO);
        self.pending.clear();
        let mut files = Vec::with_capacity(read.len());
        for file in read {
            let stamp = file.now();
            let NotedFile { path, stamp: as_read } = file;
            let is_torn = stamp != Some(as_read);
            let left = if is_torn { Some(QUIET) } else { self.wait_for(Path::new(&path), stamp, at) };
            if let Some(left) = left {
                wait = wait.max(left);
                self.pending.push(PathBuf::from(&*path));
            }
            if is_torn && torn.is_none() {
                torn = Some(PathBuf::from(&*path));
            }
            files.push(path);
        }
        // The files of a source are sorted, and so are those of its surrounding manifests.
        files.sort_unstable();
        // An editor may delete a file and write it again.
        for path in self.gone(&files) {
            if let Some(left) = self.wait_for(&path, None, at) {
                wait = wait.max(left);
                self.pending.push(path);
            }
        }
        if self.pending.is_empty() {
            return self.complete(files);
        }
        let is_first = self.since.is_none();
        let longest = left_of(LONGEST_WAIT, *self.since.get_or_insert(at.now), at);
        if !longest.is_zero() {
            if is_first && wait > QUIET {
                tracing::info!(source = self.source, "Waiting for {}.", self.waits_for());
            }
            return ReadingCheck::Wait(wait.min(longest));
        }
        if let Some(torn) = torn {
            self.since = None;
            self.pending.clear();
            return ReadingCheck::Torn(torn);
        }
        tracing::warn!(source = self.source, "Reading {}, which kept changing for a minute.", self.waits_for());
        for path in std::mem::take(&mut self.pending) {
            if let Some(stamp) = FileStamp::at(&path).filter(|stamp| self.open.contains_key(&stamp.identity)) {
                self.taken.insert(stamp.identity, path);
            }
        }
        self.complete(files)
    }

    /// Returns the warnings for the source's status: the files that it waits for, and those that may be incomplete.
    pub(super) fn notices(&self) -> Vec<(&Path, Diagnostic)> {
        fn notice<'p>(path: &'p Path, message: &str, help: &str) -> (&'p Path, Diagnostic) {
            (path, Diagnostic::warning(Code::Unreadable, format!("{} {message}", path.display())).help(help))
        }
        let waits = self.pending.iter().map(|path| {
            notice(path, "is still being written: nothing is applied until it is complete", "close the file")
        });
        let taken = self.taken.values().map(|path| {
            let help = "close the file, or write it under another name and rename it";
            notice(path, "was read while open for writing, and may be incomplete", help)
        });
        waits.chain(taken).collect()
    }

    /// How long to wait for a file as it is now; none if it can be read, or has gone for good.
    fn wait_for(&mut self, path: &Path, stamp: Option<FileStamp>, at: Moment) -> Option<Duration> {
        let identity = stamp.map(|stamp| stamp.identity);
        if identity.is_some_and(|file| self.taken.contains_key(&file)) {
            return None;
        }
        let quiet_for = match stamp {
            // A file server may have another time. Then it counts how long the file has looked the same.
            Some(stamp) => at.wall.duration_since(stamp.modified).unwrap_or_default(),
            None => self.writes.quiet_for(path, at.now).unwrap_or_default(),
        };
        if quiet_for < QUIET {
            let seen = self.seen.entry(path.to_owned()).or_insert((stamp, at.now));
            if seen.0 != stamp {
                *seen = (stamp, at.now);
            }
            let left = left_of(QUIET, seen.1, at).min(QUIET.saturating_sub(quiet_for));
            if !left.is_zero() {
                return Some(left);
            }
        }
        let file = identity?;
        let left = left_of(LONGEST_PAUSE, *self.open.get(&file)?, at);
        if left.is_zero() {
            tracing::warn!(
                source = self.source,
                "Reading {}, which is open for writing and has not changed for {} seconds.",
                escaped(&path.display().to_string()),
                LONGEST_PAUSE.as_secs()
            );
            self.taken.insert(file, path.to_owned());
            return None;
        }
        Some(left)
    }

    /// Finds the files that are being written.
    fn find_open(&mut self, at: Moment) {
        self.open = self.writes.open(at.now);
        self.taken.retain(|file, _| self.open.contains_key(file));
    }

    /// The files of the last complete reading that are not among these, which are sorted, and do not exist.
    fn gone(&self, files: &[Arc<OsStr>]) -> Vec<PathBuf> {
        if self.known == files {
            return Vec::new();
        }
        let missing = self.known.iter().filter(|path| files.binary_search(path).is_err());
        missing.map(|path| PathBuf::from(&**path)).filter(|path| FileStamp::at(path).is_none()).collect()
    }

    fn complete(&mut self, files: Vec<Arc<OsStr>>) -> ReadingCheck {
        self.known = files;
        self.seen.clear();
        self.pending.clear();
        self.since = None;
        ReadingCheck::Complete
    }

    /// The first file that it waits for, and the number of others.
    fn waits_for(&self) -> String {
        first_of(self.pending.iter().map(|path| escaped(&path.display().to_string()).into_owned()), 1)
    }
}

/// The rest of a time span that began then.
fn left_of(time: Duration, began: Instant, at: Moment) -> Duration {
    time.saturating_sub(at.now.saturating_duration_since(began))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use notify::event::{AccessKind, AccessMode, DataChange, ModifyKind, RemoveKind};
    use notify::{Event, EventKind};
    use tempfile::TempDir;

    use super::*;

    const MODIFY: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSE: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const SECOND: Duration = Duration::from_secs(1);

    /// A folder with a file that was written a minute before `began`.
    struct WatchedFile {
        folder: TempDir,
        writes: Arc<OpenWrites>,
        quiescence: WriteQuiescence,
        began: Moment,
    }

    impl WatchedFile {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let writes = Arc::new(OpenWrites::default());
            let quiescence = WriteQuiescence::new("shop", Arc::clone(&writes));
            let began = Moment { now: Instant::now(), wall: SystemTime::now() };
            let watched = Self { folder, writes, quiescence, began };
            watched.write("one", began.wall - 60 * SECOND);
            watched
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("a.yaml")
        }

        fn write(&self, text: &str, modified: SystemTime) {
            fs::write(self.path(), text).unwrap();
            File::options().write(true).open(self.path()).unwrap().set_modified(modified).unwrap();
        }

        fn after(&self, time: Duration) -> Moment {
            Moment { now: self.began.now + time, wall: self.began.wall + time }
        }

        fn event(&self, kind: EventKind, after: Duration) {
            self.writes.note(&Event::new(kind).add_path(self.path()), self.began.now + after);
        }

        /// The file as it is now.
        fn noted(&self) -> Option<NotedFile> {
            let noted = |stamp| NotedFile { path: self.path().into_os_string().into(), stamp };
            FileStamp::at(&self.path()).map(noted)
        }

        /// Reads what is there, so long after the beginning.
        fn read(&mut self, after: Duration) -> ReadingCheck {
            let (read, at) = (self.noted(), self.after(after));
            self.quiescence.check(read.into_iter().collect(), at)
        }
    }

    #[test]
    fn a_file_is_read_once_it_has_not_changed_for_the_debounce() {
        let mut watched = WatchedFile::new();
        assert_eq!(watched.read(Duration::ZERO), ReadingCheck::Complete);
        watched.write("two", watched.began.wall + SECOND);
        let ms = Duration::from_millis;
        assert_eq!(watched.read(ms(1_050)), ReadingCheck::Wait(ms(100)));
        assert_eq!(watched.quiescence.left(watched.after(ms(1_100))), Some(ms(50)));
        assert_eq!(watched.quiescence.left(watched.after(ms(1_150))), None);
        assert_eq!(watched.read(ms(1_150)), ReadingCheck::Complete);
        assert!(watched.quiescence.notices().is_empty());
        // The time of the file is that of a server whose clock is ahead.
        watched.write("three", watched.began.wall + 600 * SECOND);
        assert_eq!(watched.read(ms(2_000)), ReadingCheck::Wait(QUIET));
        assert_eq!(watched.read(ms(2_000) + QUIET), ReadingCheck::Complete);
    }

    #[test]
    fn a_file_that_keeps_changing_is_read_after_a_minute() {
        let mut watched = WatchedFile::new();
        let mut waited = 0u32;
        loop {
            let after = Duration::from_millis(100) * waited;
            watched.write(&waited.to_string(), watched.began.wall + after);
            match watched.read(after) {
                ReadingCheck::Wait(_) => waited += 1,
                done => {
                    assert_eq!(done, ReadingCheck::Complete);
                    break;
                }
            }
        }
        assert_eq!(waited, 600);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_open_for_writing_is_waited_for_and_not_for_ever() {
        let mut watched = WatchedFile::new();
        watched.event(MODIFY, Duration::ZERO);
        assert_eq!(watched.read(SECOND), ReadingCheck::Wait(9 * SECOND));
        let notices = watched.quiescence.notices();
        assert!(notices.iter().any(|(_, it)| it.message.contains("a.yaml is still being written")), "{notices:?}");
        watched.event(CLOSE, 2 * SECOND);
        assert_eq!(watched.quiescence.left(watched.after(2 * SECOND)), None, "it is closed");
        assert_eq!(watched.read(2 * SECOND), ReadingCheck::Complete);

        watched.event(MODIFY, 3 * SECOND);
        assert_eq!(watched.read(4 * SECOND), ReadingCheck::Wait(9 * SECOND));
        watched.event(MODIFY, 5 * SECOND);
        assert_eq!(watched.quiescence.left(watched.after(13 * SECOND)), Some(2 * SECOND), "it was written again");
        assert_eq!(watched.quiescence.left(watched.after(15 * SECOND)), None);
        assert_eq!(watched.read(15 * SECOND), ReadingCheck::Complete);
        let notices = watched.quiescence.notices();
        assert!(
            notices.iter().any(|(_, it)| it.message.contains("a.yaml was read while open for writing")),
            "{notices:?}"
        );
        watched.event(MODIFY, 16 * SECOND);
        assert_eq!(watched.read(16 * SECOND), ReadingCheck::Complete, "a log is not waited for again");
        watched.event(CLOSE, 17 * SECOND);
        assert_eq!(watched.read(17 * SECOND), ReadingCheck::Complete);
        assert!(watched.quiescence.notices().is_empty());
    }

    #[test]
    fn a_file_that_has_gone_is_read_again() {
        let mut watched = WatchedFile::new();
        assert_eq!(watched.read(Duration::ZERO), ReadingCheck::Complete);
        fs::remove_file(watched.path()).unwrap();
        assert_eq!(watched.read(SECOND), ReadingCheck::Wait(QUIET), "no event has told when");
        watched.write("written anew", watched.began.wall);
        assert_eq!(watched.read(SECOND + QUIET), ReadingCheck::Complete);

        fs::remove_file(watched.path()).unwrap();
        assert_eq!(watched.read(2 * SECOND), ReadingCheck::Wait(QUIET));
        assert_eq!(watched.read(2 * SECOND + QUIET), ReadingCheck::Complete, "it was deleted");

        watched.write("back", watched.began.wall);
        assert_eq!(watched.read(3 * SECOND), ReadingCheck::Complete);
        fs::remove_file(watched.path()).unwrap();
        watched.event(EventKind::Remove(RemoveKind::File), 4 * SECOND);
        assert_eq!(watched.read(4 * SECOND + QUIET), ReadingCheck::Complete, "it went a debounce ago");
    }

    #[test]
    fn a_file_that_differs_from_what_was_read_is_read_again_and_then_reported() {
        let mut watched = WatchedFile::new();
        let read = vec![watched.noted().unwrap()];
        watched.write("another text", watched.began.wall - 60 * SECOND);
        for after in [0u32, 30, 59] {
            let at = watched.after(after * SECOND);
            assert_eq!(watched.quiescence.check(read.clone(), at), ReadingCheck::Wait(QUIET), "{after}");
        }
        let at = watched.after(60 * SECOND);
        assert_eq!(watched.quiescence.check(read, at), ReadingCheck::Torn(watched.path()));
        assert_eq!(watched.read(61 * SECOND), ReadingCheck::Complete);
    }
}
