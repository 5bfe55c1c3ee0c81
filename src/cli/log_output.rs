//! Where the log goes: stderr, and the lines of requests many at a time. A line by itself costs a system call, and wakes the
//! program that collects the log: together as much as half of a small request.

use std::{
    io::{self, Write},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use crate::api::ACCESS_TARGET;

/// How long the lines of requests are gathered.
const GATHERED: Duration = Duration::from_millis(2);
/// The most bytes that wait. If stderr takes no more, requests wait for it.
const MOST_BYTES: usize = 1 << 20;

/// The lines of the process that wait.
static LINES: RequestLines =
    RequestLines { waiting: Mutex::new(Vec::new()), arrived: Condvar::new(), writing: Mutex::new(()) };

/// Lines of requests that are not written yet.
struct RequestLines {
    waiting: Mutex<Vec<u8>>,
    /// Notified of the first line that waits.
    arrived: Condvar,
    /// Held while something is written, so that lines stay in order.
    writing: Mutex<()>,
}

/// Makes the writers of events.
pub(super) struct LogOutput {
    /// Whether a thread writes what is gathered.
    gathers: bool,
}

/// Writes an event.
pub(super) struct EventWriter {
    gathers: bool,
}

/// Writes the lines that wait, before the process ends.
pub(super) fn finish() {
    let _ = LINES.write(&[]);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RequestLines {
    /// Adds a line to those that wait.
    fn add(&self, line: &[u8]) -> io::Result<()> {
        let mut waiting = locked(&self.waiting);
        let is_first = waiting.is_empty();
        waiting.extend_from_slice(line);
        let is_full = waiting.len() >= MOST_BYTES;
        drop(waiting);
        if is_first {
            self.arrived.notify_one();
        }
        if is_full { self.write(&[]) } else { Ok(()) }
    }

    /// Writes the lines that wait, and another one after them.
    fn write(&self, line: &[u8]) -> io::Result<()> {
        let _turn = locked(&self.writing);
        let mut lines = std::mem::take(&mut *locked(&self.waiting));
        lines.extend_from_slice(line);
        io::stderr().write_all(&lines)
    }

    /// Writes the lines that wait again and again.
    fn keep_writing(&self) {
        loop {
            drop(self.arrived.wait_while(locked(&self.waiting), |waiting| waiting.is_empty()));
            thread::sleep(GATHERED);
            // A closed stderr is no reason to end.
            let _ = self.write(&[]);
        }
    }
}

impl LogOutput {
    /// Starts the thread that writes what is gathered.
    pub(super) fn start() -> Self {
        let started = thread::Builder::new().name("log".into()).spawn(|| LINES.keep_writing());
        Self { gathers: started.is_ok() }
    }
}

impl<'a> MakeWriter<'a> for LogOutput {
    type Writer = EventWriter;

    fn make_writer(&'a self) -> EventWriter {
        EventWriter { gathers: false }
    }

    /// Errors and all other events are written at once, after the lines that wait.
    fn make_writer_for(&'a self, event: &Metadata<'_>) -> EventWriter {
        EventWriter { gathers: self.gathers && event.target() == ACCESS_TARGET && *event.level() != Level::ERROR }
    }
}

impl Write for EventWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.gathers {
            true => LINES.add(line)?,
            false => LINES.write(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
