//! `edgewright status --wait`: the sources once each was synced with its manifests as they are now.

use std::thread;

use crate::cli::command_prelude::*;
use crate::cli::target::source_action;
use crate::server::operations::sources::view::{SourceCounts, SourceList, SourceState, SourceView};

const INTERVAL: Duration = Duration::from_millis(200);

/// The numbers of syncs when a sync was requested.
struct SyncMark {
    begun: u64,
    ended: u64,
}

impl SyncMark {
    fn new(source: &SourceView) -> Self {
        Self { begun: source.syncs_begun, ended: source.syncs_ended }
    }

    /// Whether a sync that began after the mark has ended. Every one of a server that has restarted since then did.
    fn is_passed(&self, source: &SourceView) -> bool {
        let ended = source.syncs_ended;
        ended > self.begun || (ended > 0 && ended < self.ended)
    }
}

/// The evidence that a source has settled: unchanged after another sync.
type SettledState = Vec<(String, SourceState, SourceCounts)>;

/// Returns the sources once each is synced, or has the same state after two syncs: one that waits for another source needs
/// the second.
pub(super) fn synced(client: &ApiClient, only: Option<&str>, longest: Duration) -> Result<SourceList, Failure> {
    let deadline = Instant::now() + longest;
    let mut last: Option<SettledState> = None;
    loop {
        let marks = until_answered(deadline, || request_syncs(client, only))?;
        let list = wait_for_syncs(client, only, &marks, deadline, longest)?;
        let followed = || list.sources.iter().filter(|source| source.is_followed());
        let state: SettledState =
            followed().map(|source| (source.name.clone(), source.state, source.counts.clone())).collect();
        if followed().all(|source| source.state == SourceState::Synced) || last.as_ref() == Some(&state) {
            return Ok(list);
        }
        last = Some(state);
    }
}

/// Requests a sync of each source that the server follows.
fn request_syncs(client: &ApiClient, only: Option<&str>) -> Result<BTreeMap<String, SyncMark>, Failure> {
    let list = client.sources(only)?;
    let request = |source: &SourceView| {
        let requested = client.query::<SourceView>(&source_action(&source.name, "sync"), b"");
        match requested {
            Ok(requested) => Ok((source.name.clone(), SyncMark::new(&requested))),
            // The next sync is due by itself.
            Err(failure) if failure.has_code(Code::Forbidden) => Ok((source.name.clone(), SyncMark::new(source))),
            Err(failure) => Err(failure),
        }
    };
    list.sources.iter().filter(|source| source.is_followed()).map(request).collect()
}

/// Waits until the syncs that were requested have ended.
fn wait_for_syncs(
    client: &ApiClient,
    only: Option<&str>,
    marks: &BTreeMap<String, SyncMark>,
    deadline: Instant,
    longest: Duration,
) -> Result<SourceList, Failure> {
    loop {
        let list = until_answered(deadline, || client.sources(only))?;
        let is_waited_for = |source: &&SourceView| marks.get(&source.name).is_some_and(|mark| !mark.is_passed(source));
        let waited_for: Vec<String> = list.sources.iter().filter(is_waited_for).map(open_sync).collect();
        if waited_for.is_empty() {
            return Ok(list);
        }
        if Instant::now() >= deadline {
            let longest = number_of(longest.as_secs() as usize, "second");
            let message = format!("not synced within {longest}: {}", waited_for.join("; "));
            let help = "wait longer with --wait=DURATION, and check the server log";
            return Err(Diagnostic::error(Code::Timeout, message).help(help).into());
        }
        thread::sleep(INTERVAL);
    }
}

/// The condition that a sync of a source waits for, as far as the server knows.
fn open_sync(source: &SourceView) -> String {
    // A file that is still being written.
    let open = source.diagnostics.iter().find(|item| item.code == Code::Unreadable.to_string());
    let reason = open.map_or("its sync has not finished", |item| item.message.as_str());
    format!("source `{}`: {}", printable(&source.name), escaped(reason))
}

/// Asks again and again until the server answers: it may be starting.
fn until_answered<T>(deadline: Instant, ask: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    loop {
        match ask() {
            Err(failure)
                if (failure.has_code(Code::Unreadable) || failure.has_code(Code::Unavailable))
                    && Instant::now() < deadline => {}
            answered => return answered,
        }
        thread::sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::inspect::status::tests::source;

    #[test]
    fn a_sync_counts_if_it_began_after_the_request() {
        let view = |begun: u64, ended: u64| SourceView { syncs_begun: begun, syncs_ended: ended, ..source("") };
        for (mark, now, is_passed) in [
            // Idle, then synced.
            ((4, 4), (4, 4), false),
            ((4, 4), (5, 4), false),
            ((4, 4), (5, 5), true),
            // One that ran already may have read the files before they changed.
            ((5, 4), (5, 5), false),
            ((5, 4), (6, 6), true),
            // The server has restarted.
            ((5, 4), (1, 0), false),
            ((5, 4), (1, 1), true),
        ] {
            let mark = SyncMark::new(&view(mark.0, mark.1));
            assert_eq!(mark.is_passed(&view(now.0, now.1)), is_passed, "{now:?}");
        }
    }
}
