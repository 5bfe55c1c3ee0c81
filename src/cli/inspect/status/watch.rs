//! `edgewright status --watch`: the sources again whenever something changes.

use std::{collections::BTreeMap, thread, time::Duration};

use jiff::Timestamp;

use super::{SOURCES, StatusFormat, reasons, short, state, text};
use crate::{
    cli::{
        CommandResult, Exit, Failure,
        output::{append, diagnostics::say, is_on_terminal, redraw},
        target::ApiClient,
    },
    model::{diagnostics::code::Code, json, secrets::secret::Secrets},
    reconcile::sync_loop::health::Reason,
    server::operations::sources::view::{SourceList, SourceState, SourceView},
    store::ids_and_clock,
    syntax::text::escaped,
};

/// How often the server is asked.
const INTERVAL: Duration = Duration::from_secs(2);

/// Shows the sources until the reader of the output is gone. A server that restarts is waited for.
pub(super) fn run(client: &ApiClient, format: StatusFormat) -> CommandResult {
    let mut list: SourceList = client.get(SOURCES)?;
    let mut shown = LastShown::default();
    loop {
        let is_read = match format {
            StatusFormat::Json => append(&shown.document(&list)?)?,
            StatusFormat::Table if is_on_terminal() => shown.screen(&list).map_or(Ok(true), |text| redraw(&text))?,
            StatusFormat::Table => append(&shown.lines(&list))?,
        };
        if !is_read {
            return Ok(Exit::Done);
        }
        thread::sleep(INTERVAL);
        list = wait_for_list(client)?;
    }
}

/// Asks the server until it answers.
fn wait_for_list(client: &ApiClient) -> Result<SourceList, Failure> {
    let mut is_told = false;
    loop {
        let failure = match client.get(SOURCES) {
            Ok(list) => return Ok(list),
            Err(failure) => failure,
        };
        if !failure.has_code(Code::Unreadable) && !failure.has_code(Code::Unavailable) {
            return Err(failure);
        }
        if !is_told {
            let message = failure.diagnostics.first().map(|it| it.message.as_str()).unwrap_or_default();
            say(&format!("{message}; trying again every {} seconds", INTERVAL.as_secs()));
            is_told = true;
        }
        thread::sleep(INTERVAL);
    }
}

/// What was shown last.
#[derive(Debug, Default)]
struct LastShown {
    document: Option<SourceList>,
    screen: String,
    lines: BTreeMap<String, String>,
    /// The revision that each source was last seen to apply.
    applied: BTreeMap<String, u64>,
}

impl LastShown {
    /// The document on one line; empty if nothing has changed but when the sources were looked at.
    fn document(&mut self, list: &SourceList) -> Result<String, Failure> {
        let mut now = list.clone();
        for source in &mut now.sources {
            source.next_look_at.clear();
            let looks = [&mut source.last_attempt, &mut source.last_applied];
            for look in looks.into_iter().flatten() {
                look.at.clear();
                // That of the store, which other sources change too.
                look.revision = 0;
            }
        }
        if self.document.as_ref() == Some(&now) {
            return Ok(String::new());
        }
        self.document = Some(now);
        let document = json::bytes(list, Secrets::Masked)?;
        Ok(String::from_utf8_lossy(&document).into_owned() + "\n")
    }

    /// The table, if it has changed.
    fn screen(&mut self, list: &SourceList) -> Option<String> {
        let screen = text(&list.sources, Timestamp::now());
        if screen == self.screen {
            return None;
        }
        self.screen.clone_from(&screen);
        Some(screen)
    }

    /// A line for each source that has changed, and for each that has ceased to be listed.
    fn lines(&mut self, list: &SourceList) -> String {
        for source in &list.sources {
            if let Some(revision) = applied_now(source) {
                self.applied.insert(source.name.clone(), revision);
            }
        }
        let line = |source: &SourceView| line(source, self.applied.get(&source.name).copied());
        let lines = list.sources.iter().map(|source| (source.name.clone(), line(source)));
        let lines: BTreeMap<String, String> = lines.collect();
        let changed = list.sources.iter().filter_map(|source| {
            let line = lines.get(&source.name)?;
            (self.lines.get(&source.name) != Some(line)).then(|| line.clone())
        });
        let gone = self.lines.keys().filter(|name| !lines.contains_key(*name));
        let gone = gone.map(|name| format!("{}  no longer listed", escaped(name)));
        let now = ids_and_clock::now();
        let told: String = changed.chain(gone).map(|line| format!("{now}  {line}\n")).collect();
        self.lines = lines;
        told
    }
}

/// The revision that a source has just applied, if that is its condition, or that a client applied last.
fn applied_now(source: &SourceView) -> Option<u64> {
    if !source.is_followed() {
        return source.last_applied.as_ref().map(|look| look.revision);
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
        facts.push(format!("commit {}", short(&look.commit)));
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
    let told: Vec<String> = [facts.join(", "), reasons].into_iter().filter(|part| !part.is_empty()).collect();
    escaped(&format!("{}  {}  {}", source.name, state(source), told.join(": "))).into_owned()
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
        // Another look alone is no change.
        view.next_look_at = "2026-07-01T12:06:00Z".into();
        view.last_attempt.iter_mut().for_each(|look| look.revision += 1);
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
