//! One thread reads and decompresses the logs; others parse the lines and count their requests.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, sync_channel};

use super::log_files::{AccessLogReader, LogChunk};
use crate::cli::prelude::*;
use crate::model::traffic::host_name;
use crate::routing::edge_table::EdgeTable;
use crate::routing::replay::tally::{LinePlace, ReplayTally};
use crate::routing::replay::worker::{LoggedRequest, ReplayWorker, ShownDetails};
use crate::syntax::access_log::{AccessLine, AccessLogFormat, LineProblem};

const WAITING: usize = 2;
/// More threads than these wait for the one that reads.
const MOST_THREADS: usize = 8;
/// The unread lines that are shown.
const MOST_PROBLEMS: usize = 5;
/// The port of a request whose log does not say it.
const DEFAULT_PORT: u16 = 443;

/// Facts about the logs that are not in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogSettings<'a> {
    pub(super) format: Option<AccessLogFormat>,
    /// The host of requests without one.
    pub(super) host: Option<&'a str>,
    pub(super) port: Option<u16>,
    pub(super) shown: ShownDetails,
}

/// The lines of the logs, and those that were not counted as requests.
#[derive(Debug, Clone, Default)]
pub(super) struct LineCounts {
    pub(super) lines: u64,
    pub(super) unread: u64,
    pub(super) without_request: u64,
    pub(super) without_host: u64,
    pub(super) problems: Vec<(LinePlace, LineProblem)>,
}

impl LineCounts {
    fn note(&mut self, place: LinePlace, problem: LineProblem) {
        if problem == LineProblem::NoRequest {
            self.without_request += 1;
            return;
        }
        self.unread += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push((place, problem));
        }
    }

    fn merged(mut self, other: Self) -> Self {
        self.lines += other.lines;
        self.unread += other.unread;
        self.without_request += other.without_request;
        self.without_host += other.without_host;
        self.problems.extend(other.problems);
        self.problems.sort_by_key(|(place, _)| *place);
        self.problems.truncate(MOST_PROBLEMS);
        self
    }
}

/// Counts the requests of logs in one state, or those that another one treats differently.
pub(super) fn replay<'s>(
    logs: &[PathBuf],
    settings: LogSettings<'_>,
    before: &EdgeTable<'s>,
    after: Option<&EdgeTable<'s>>,
) -> Result<(ReplayTally, LineCounts), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(MOST_THREADS));
    std::thread::scope(|scope| {
        let started = (0..threads).map(|_| {
            let (sender, chunks) = sync_channel::<LogChunk>(WAITING);
            let worker = ReplayWorker::new(before, after, settings.shown);
            (sender, scope.spawn(move || count(&chunks, worker, settings)))
        });
        let (senders, running): (Vec<_>, Vec<_>) = started.unzip();
        let mut next_thread = senders.iter().cycle();
        let read = each_chunk(logs, settings.format, |chunk| {
            // A thread that is gone has failed, which is noticed below.
            next_thread.next().is_some_and(|sender| sender.send(chunk).is_ok())
        });
        drop(senders);
        let mut counted = (ReplayTally::default(), LineCounts::default());
        for thread in running {
            match thread.join() {
                Ok((tally, lines)) => counted = (counted.0.merged(tally), counted.1.merged(lines)),
                Err(failure) => std::panic::resume_unwind(failure),
            }
        }
        read.map(|()| counted)
    })
}

/// Reads the logs one after the other, until `send` is false.
fn each_chunk(
    logs: &[PathBuf],
    format: Option<AccessLogFormat>,
    mut send: impl FnMut(LogChunk) -> bool,
) -> Result<(), Failure> {
    for (file, path) in logs.iter().enumerate() {
        let mut reader = AccessLogReader::open(path, file, format)?;
        while let Some(chunk) = reader.next()? {
            if !send(chunk) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn count(
    chunks: &Receiver<LogChunk>,
    mut worker: ReplayWorker<'_, '_>,
    settings: LogSettings<'_>,
) -> (ReplayTally, LineCounts) {
    let mut counts = LineCounts::default();
    for chunk in chunks {
        for (line, number) in chunk.bytes.split(|byte| *byte == b'\n').zip(chunk.first_line..) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            counts.lines += 1;
            let place = LinePlace { file: chunk.file, line: number };
            match chunk.format.read(line) {
                Ok(line) => match request(line, settings) {
                    Some(request) => worker.count(&request, place),
                    None => counts.without_host += 1,
                },
                Err(problem) => counts.note(place, problem),
            }
        }
    }
    (worker.finish(), counts)
}

/// The request of a line, if its host is known.
fn request<'l>(line: AccessLine<'l>, settings: LogSettings<'l>) -> Option<LoggedRequest<'l>> {
    let AccessLine { method, host, port, path, client, user_agent, bytes } = line;
    let host = normal_host(host.or(settings.host.map(Cow::Borrowed))?);
    let port = settings.port.or(port).unwrap_or(DEFAULT_PORT);
    Some(LoggedRequest { method, host, port, path, client, user_agent, bytes })
}

/// The host in its normal form, which most hosts in logs have.
fn normal_host(host: Cow<'_, str>) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    let is_normal = host.bytes().all(is_plain) && !host.ends_with('.');
    if is_normal { host } else { Cow::Owned(host_name(&host)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_form() {
        let normal = |host: &str| normal_host(Cow::Borrowed(host)).into_owned();
        for (host, expected) in [
            ("shop.example.com", "shop.example.com"),
            ("Shop.Example.com.", "shop.example.com"),
            ("[2001:DB8:0::1]", "2001:db8::1"),
            ("192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(normal(host), expected);
        }
    }
}
