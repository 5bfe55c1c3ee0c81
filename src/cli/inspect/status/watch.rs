//! `edgewright status --watch`: the sources again whenever something changes.

use std::thread;

use super::text::{reasons, state, text};
use crate::cli::command_prelude::*;
use crate::cli::output::list::ListFormat;
use crate::cli::output::{append, is_on_terminal, json_line, redraw};
use crate::reconcile::sync_loop::condition::Reason;
use crate::server::operations::sources::view::{SourceList, SourceState, SourceView};
use crate::store::history::commits::short_commit;

const INTERVAL: Duration = Duration::from_secs(2);

/// Shows the sources until the reader of the output is gone. A server that restarts is waited for.
pub(super) fn run(client: &ApiClient, format: ListFormat) -> CommandResult {
    let mut list = client.sources(None)?;
    let mut shown = LastShown::default();
    loop {
        let is_read = match format {
            ListFormat::Json => append(&shown.document(&list)?)?,
            _ if is_on_terminal() => {
                let is_wide = format == ListFormat::Wide;
                shown.screen(&list, is_wide).map_or(Ok(true), |text| redraw(&text))?
            }
            _ => append(&shown.lines(&list))?,
        };
        if !is_read {
            return Ok(Exit::Done);
        }
        thread::sleep(INTERVAL);
        list = wait_for_list(client)?;
    }
}

fn wait_for_list(client: &ApiClient) -> Result<SourceList, Failure> {
    let mut is_reported = false;
    loop {
        match client.sources(None) {
            Err(failure) if failure.has_code(Code::Unreadable) || failure.has_code(Code::Unavailable) => {
                let first = failure.diagnostics.first().filter(|_| !is_reported);
                if let Some(message) = first.map(|it| it.message.as_str()) {
                    say(&format!("{message}; trying again every {} seconds", INTERVAL.as_secs()));
                }
                is_reported = true;
                thread::sleep(INTERVAL);
            }
            answered => return answered,
        }
    }
}

#[derive(Debug, Default)]
struct LastShown {
    document: Option<SourceList>,
    screen: String,
    lines: BTreeMap<String, String>,
    /// The revision that each source was last seen to apply.
    applied: BTreeMap<String, u64>,
}

impl LastShown {
    /// The document on one line; empty if nothing has changed but when the sources were synced.
    fn document(&mut self, list: &SourceList) -> Result<String, Failure> {
        let mut now = list.clone();
        for source in &mut now.sources {
            source.next_sync_at.clear();
            (source.syncs_begun, source.syncs_ended) = (0, 0);
            let syncs = [&mut source.last_attempt, &mut source.last_applied];
            for sync in syncs.into_iter().flatten() {
                sync.at.clear();
                // The revision is that of the store, which other sources change too.
                sync.revision = 0;
            }
        }
        if self.document.as_ref() == Some(&now) {
            return Ok(String::new());
        }
        self.document = Some(now);
        json_line(list)
    }

    fn screen(&mut self, list: &SourceList, is_wide: bool) -> Option<String> {
        let screen = text(&list.sources, Timestamp::now(), is_wide, &BTreeMap::new());
        let former = std::mem::replace(&mut self.screen, screen.clone());
        (screen != former).then_some(screen)
    }

    /// A line for each source that has changed, and for each that has ceased to be listed.
    fn lines(&mut self, list: &SourceList) -> String {
        for source in &list.sources {
            if let Some(revision) = applied_now(source) {
                self.applied.insert(source.name.clone(), revision);
            }
        }
        let line = |source: &SourceView| line(source, self.applied.get(&source.name).copied());
        let lines: Vec<(String, String)> =
            list.sources.iter().map(|source| (source.name.clone(), line(source))).collect();
        let changed = lines.iter().filter(|(name, line)| self.lines.get(name) != Some(line));
        let changed = changed.map(|(_, line)| line.clone());
        let gone = self.lines.keys().filter(|name| lines.iter().all(|(listed, _)| listed != *name));
        let gone = gone.map(|name| format!("{}  no longer listed", escaped(name)));
        let now = clock::now();
        let news = changed.chain(gone).map(|line| format!("{now}  {line}\n")).collect();
        self.lines = lines.into_iter().collect();
        news
    }
}

/// The revision that a source has just applied, if that is its condition, or that a client applied last.
fn applied_now(source: &SourceView) -> Option<u64> {
    if !source.is_followed() {
        return source.last_applied.as_ref().map(|sync| sync.revision);
    }
    let applied = Reason::Applied.to_string();
    source.conditions.iter().find(|it| it.reason == applied).map(|it| it.observed_revision)
}

/// A source on one line, without times.
fn line(source: &SourceView, applied: Option<u64>) -> String {
    let counts = &source.counts;
    let pending = counts.pending_create + counts.pending_change + counts.pending_delete;
    let mut facts = Vec::new();
    if let Some(look) = source.last_applied.as_ref().filter(|look| !look.commit.is_empty()) {
        facts.push(format!("commit {}", short_commit(&look.commit)));
    }
    facts.extend(applied.map(|revision| format!("revision {revision}")));
    let errors = if counts.errors == 1 { "error" } else { "errors" };
    for (count, what) in [(pending, "pending"), (counts.drifted, "drifted"), (counts.errors, errors)] {
        if count > 0 {
            facts.push(format!("{count} {what}"));
        }
    }
    let reasons = match source.state {
        SourceState::Synced => String::new(),
        _ => reasons(source, None, |_| false),
    };
    let parts: Vec<String> = [facts.join(", "), reasons].into_iter().filter(|part| !part.is_empty()).collect();
    escaped(&format!("{}  {}  {}", source.name, state(source), parts.join(": "))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::inspect::status::tests::source;

    fn list(sources: Vec<SourceView>) -> SourceList {
        SourceList { sources, uri: String::new() }
    }

    #[test]
    fn each_change_is_shown_once() {
        let mut shown = LastShown::default();
        let mut view = source("");
        let first = shown.lines(&list(vec![view.clone()]));
        let said = "storefront  OutOfSync  commit aaaaaaaa, 6 pending, 4 drifted, 100 errors: 1 error in the manifests";
        assert!(first.lines().count() == 1 && first.contains(said), "{first}");
        assert!(shown.document(&list(vec![view.clone()])).is_ok_and(|text| text.lines().count() == 1));
        // Another sync alone is no change.
        view.next_sync_at = "2026-07-01T12:06:00Z".into();
        view.last_attempt.iter_mut().for_each(|sync| sync.revision += 1);
        let same = list(vec![view.clone()]);
        assert_eq!(shown.lines(&same), "");
        assert!(shown.document(&same).is_ok_and(|text| text.is_empty()));
        // Two changes with the same summary are two.
        view.state = SourceState::Synced;
        for (reason, revision, line) in [
            ("Applied", 8, "storefront  Synced  commit aaaaaaaa, revision 8"),
            ("InSync", 9, ""),
            ("Applied", 9, "storefront  Synced  commit aaaaaaaa, revision 9"),
        ] {
            for condition in &mut view.conditions {
                (condition.reason, condition.observed_revision) = (reason.into(), revision);
            }
            let told = shown.lines(&list(vec![view.clone()]));
            assert!(told.contains(line) && told.is_empty() == line.is_empty(), "{reason}: {told}");
        }
        assert!(shown.document(&list(vec![view])).is_ok_and(|text| !text.is_empty()));
        let gone = shown.lines(&list(Vec::new()));
        assert!(gone.ends_with("storefront  no longer listed\n"), "{gone}");
    }
}
