//! The thread that writes the security log. Requests only put events into a bounded queue.

use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::event::{SecurityEvent, SecurityRecord};
use super::hash_chained_file::{FileBounds, HashChainedFile};
use super::repeats::Repeats;
use crate::server::prelude::*;

/// The counters of events, and of those that the log does not have.
pub(in crate::server::telemetry) const EVENTS: &str = "edgewright_security_events_total";
pub(in crate::server::telemetry) const DROPPED: &str = "edgewright_security_events_dropped_total";

/// The events that may wait, and how many of them may be ones that anybody can cause: those must not displace changes.
const QUEUE: usize = 4096;
const REPEATED: usize = 1024;
/// The events that are written and synced together.
const BATCH: usize = 256;
/// How long to wait after a failed write.
const RETRY: Duration = Duration::from_secs(5);

/// A message to the thread.
enum LogMessage {
    Event(Box<SecurityRecord>),
    Stop,
}

/// State shared by requests and the thread.
#[derive(Debug, Default)]
struct LogState {
    queued: AtomicUsize,
    dropped: AtomicU64,
    sequence: AtomicU64,
    /// Whether the last attempt to write has failed.
    is_failing: AtomicBool,
}

/// A handle to log events with.
#[derive(Clone)]
pub(crate) struct SecurityLog {
    sender: SyncSender<LogMessage>,
    state: Arc<LogState>,
}

/// The thread of a log. When it is dropped, what was logged before is written.
pub(crate) struct SecurityLogThread {
    log: SecurityLog,
    thread: Option<JoinHandle<()>>,
}

/// Opens the log at a path, and starts its thread.
pub(crate) fn open(path: &Path) -> io::Result<(SecurityLog, SecurityLogThread)> {
    let file = match HashChainedFile::open(path, FileBounds::default()) {
        Ok(file) => Some(file),
        // A restart must not make a full disk an outage. The thread tries again.
        Err(error) if is_full(&error) => {
            tracing::error!(reason = %error, "cannot write the security log; its events are lost");
            None
        }
        Err(error) => return Err(error),
    };
    let sequence = AtomicU64::new(file.as_ref().map_or(0, HashChainedFile::sequence));
    let is_failing = AtomicBool::new(file.is_none());
    let state = Arc::new(LogState { sequence, is_failing, ..LogState::default() });
    let (sender, receiver) = sync_channel(QUEUE);
    let writer = LogWriter {
        path: path.to_owned(),
        file,
        retry: None,
        receiver,
        state: Arc::clone(&state),
        repeats: Repeats::default(),
    };
    let thread = std::thread::Builder::new().name("security log".into()).spawn(move || writer.run())?;
    let log = SecurityLog { sender, state };
    log.write(SecurityRecord::new(SecurityEvent::Started));
    Ok((log.clone(), SecurityLogThread { log, thread: Some(thread) }))
}

/// Whether there is no room for a file.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

impl SecurityLog {
    /// Logs an event. Never waits: if the queue is full, the event is dropped and counted.
    pub(crate) fn write(&self, record: SecurityRecord) {
        metrics::counter!(EVENTS, "event" => record.event.as_str()).increment(1);
        let most = if record.event.is_repeatable() { REPEATED } else { QUEUE };
        let queued = self.state.queued.fetch_add(1, Ordering::Relaxed);
        if queued >= most || self.sender.try_send(LogMessage::Event(Box::new(record))).is_err() {
            self.state.queued.fetch_sub(1, Ordering::Relaxed);
            self.state.lose(1);
        }
    }

    /// The number of the last line that was written.
    pub(crate) fn sequence(&self) -> u64 {
        self.state.sequence.load(Ordering::Relaxed)
    }

    /// Whether the file cannot be written, so that events are lost.
    pub(crate) fn is_failing(&self) -> bool {
        self.state.is_failing.load(Ordering::Relaxed)
    }
}

impl LogState {
    fn lose(&self, events: u64) {
        self.dropped.fetch_add(events, Ordering::Relaxed);
        metrics::counter!(DROPPED).increment(events);
    }
}

impl Drop for SecurityLogThread {
    fn drop(&mut self) {
        let _ = self.log.sender.send(LogMessage::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct LogWriter {
    path: PathBuf,
    /// None after a failed write.
    file: Option<HashChainedFile>,
    /// When to try again after a failed write.
    retry: Option<Instant>,
    receiver: Receiver<LogMessage>,
    state: Arc<LogState>,
    repeats: Repeats,
}

impl LogWriter {
    fn run(mut self) {
        let mut is_running = true;
        while is_running {
            let mut records = Vec::new();
            let first = match self.repeats.ends() {
                None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(ends) => self.receiver.recv_timeout(ends.saturating_duration_since(Instant::now())),
            };
            is_running = !matches!(first, Err(RecvTimeoutError::Disconnected));
            for message in first.into_iter().chain(self.receiver.try_iter()).take(BATCH) {
                let LogMessage::Event(record) = message else {
                    is_running = false;
                    break;
                };
                self.state.queued.fetch_sub(1, Ordering::Relaxed);
                records.extend(self.repeats.add(*record, Instant::now()));
            }
            if !is_running || self.repeats.ends().is_some_and(|ends| ends <= Instant::now()) {
                records.extend(self.repeats.end());
            }
            if !is_running {
                records.push(SecurityRecord::new(SecurityEvent::Stopped));
            }
            self.append(records, is_running);
        }
    }

    fn append(&mut self, mut records: Vec<SecurityRecord>, may_wait: bool) {
        let Some(first) = records.first_mut() else { return };
        let dropped = self.state.dropped.swap(0, Ordering::Relaxed);
        first.dropped = NonZero::new(dropped);
        if let Err(error) = self.try_append(&records, may_wait) {
            self.state.dropped.fetch_add(dropped, Ordering::Relaxed);
            self.state.lose(records.len() as u64);
            // Said once for each attempt, and not for each event.
            if let Some(error) = error {
                tracing::error!(reason = %error, "cannot write the security log; its events are lost");
            }
        }
    }

    /// Appends to the file. The error is none if it is too early to try again.
    fn try_append(&mut self, records: &[SecurityRecord], may_wait: bool) -> Result<(), Option<io::Error>> {
        if may_wait && self.retry.is_some_and(|retry| Instant::now() < retry) {
            return Err(None);
        }
        let appended = match self.file.take() {
            Some(file) => Ok(file),
            None => HashChainedFile::open(&self.path, FileBounds::default()),
        };
        let appended = appended.and_then(|mut file| file.append(records).map(|()| file));
        match appended {
            Ok(file) => {
                self.state.sequence.store(file.sequence(), Ordering::Relaxed);
                self.state.is_failing.store(false, Ordering::Relaxed);
                (self.file, self.retry) = (Some(file), None);
                Ok(())
            }
            Err(error) => {
                self.state.is_failing.store(true, Ordering::Relaxed);
                self.retry = Some(Instant::now() + RETRY);
                Err(Some(error))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::server::telemetry::security::verification::read;

    fn names(path: &Path) -> Vec<String> {
        read(path).unwrap().lines.into_iter().map(|(event, _)| event).collect()
    }

    #[test]
    fn everything_is_written_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        let (log, thread) = open(&path).unwrap();
        for number in 0..100 {
            let peer = Some(IpAddr::from([192, 0, 2, 1]));
            log.write(SecurityRecord { peer, ..SecurityRecord::new(SecurityEvent::AuthenticationFailed) });
            if number % 50 == 0 {
                log.write(SecurityRecord::new(SecurityEvent::KeyDeleted));
            }
        }
        drop(thread);
        let (failed, deleted) = ("authentication_failed", "key_deleted");
        assert_eq!(names(&path), ["log_created", "started", failed, deleted, deleted, failed, "stopped"]);
        let lines = read(&path).unwrap().lines;
        assert!(lines.iter().any(|(event, line)| event == failed && line.contains("\"count\":99,")), "{lines:?}");
        // After the end, nothing waits and nothing is written.
        log.write(SecurityRecord::new(SecurityEvent::KeyDeleted));
        assert_eq!(log.sequence(), 7);
    }

    #[test]
    fn events_that_were_lost_are_counted_in_the_next_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        let (log, thread) = open(&path).unwrap();
        log.state.lose(3);
        log.write(SecurityRecord::new(SecurityEvent::KeyDeleted));
        drop(thread);
        let lines = read(&path).unwrap().lines;
        assert_eq!(lines.iter().filter(|(_, line)| line.contains("\"dropped\":3")).count(), 1, "{lines:?}");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_failing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        let (log, thread) = open(&path).unwrap();
        assert!(!log.is_failing());
        // The thread writes its first line, and would make the file again.
        while log.sequence() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        drop(thread);
        assert!(log.is_failing());
    }
}
