//! The sources of a server as text: a table with coloured states, and the reasons below it.

use std::fmt::Write;

use owo_colors::OwoColorize;

use crate::cli::output::age::age;
use crate::cli::output::list::{SortKey, no_column};
use crate::cli::output::table::titled;
use crate::cli::prelude::*;
use crate::model::author::{key_of, owner_of};
use crate::plan::format::json::Item;
use crate::server::operations::sources::drift_view::undo_rollback;
use crate::server::operations::sources::view::{SourceCounts, SourceState, SourceView, SuspensionView};
use crate::store::history::commits::short_commit;

/// The most diagnostics of a source that are shown.
const MOST_SHOWN: usize = 10;
/// The most places of a diagnostic that are shown beside its own.
const MOST_RELATED: usize = 3;

/// A table of the sources, the reasons of those that are not synced, and the warnings of the others. `before` has the
/// revisions before the rollbacks of sources, as far as they are known.
pub(super) fn text(sources: &[SourceView], now: Timestamp, is_wide: bool, before: &BTreeMap<String, u64>) -> String {
    if sources.is_empty() {
        return "The server follows no sources.\n".to_owned();
    }
    let mut out = table(sources, now, is_wide);
    let has_news = |source: &&SourceView| source.state != SourceState::Synced || !source.diagnostics.is_empty();
    for source in sources.iter().filter(has_news) {
        let listed = || source.diagnostics.iter().take(MOST_SHOWN);
        let reasons = match source.state {
            SourceState::Synced => counted(&source.counts),
            // A diagnostic below has the message with its code and place, and the table has the state.
            _ => reasons(source, Some(now), |message| listed().any(|item| item.message == message)),
        };
        let _ = writeln!(out, "\n{}: {}", escaped(&source.name).bold(), escaped(&reasons));
        for (place, item) in listed().enumerate() {
            let _ = writeln!(out, "  {}", finding(item));
            // The same help is below the last of them.
            let help = item.help.iter().filter(|_| listed().skip(place + 1).all(|later| later.help != item.help));
            for (at, line) in help.flat_map(|help| help.lines()).enumerate() {
                let label = if at == 0 { "help:" } else { "     " };
                let _ = writeln!(out, "    {label} {}", escaped(line));
            }
        }
        let more = source.diagnostics.len().saturating_sub(MOST_SHOWN) + source.diagnostics_omitted;
        if more > 0 {
            let _ = writeln!(out, "  … and {more} more");
        }
        for resource in &source.drifted {
            let _ = writeln!(out, "  {}", escaped(&resource.to_string()));
        }
        if source.is_held() {
            let undo = undo_rollback(&source.name, before.get(&source.name).copied());
            let _ = writeln!(out, "  {}", escaped(&undo));
        } else if !source.drifted.is_empty() {
            let _ = writeln!(out, "  {}", escaped(&source.drift_repair().sentences()));
        }
    }
    for source in sources.iter().filter(|source| !source.values.is_empty()) {
        let _ = writeln!(out, "\n{}: values from the server", escaped(&source.name).bold());
        for value in &source.values {
            let changed = age(&value.changed_at, now).map_or_else(|| "-".to_owned(), |age| format!("{age} ago"));
            let _ = writeln!(out, "  {}  changed {changed}", escaped(&value.name));
        }
    }
    out
}

/// The sources as a table, with the states in colours.
fn table(sources: &[SourceView], now: Timestamp, is_wide: bool) -> String {
    let is_shown = |title: &str| match title {
        TAG => sources.iter().any(|source| !source.semver.is_empty()),
        ATTEMPTED => is_wide || sources.iter().any(is_behind),
        _ => is_wide || !WIDE_COLUMNS.contains(&title),
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| is_shown(column.0)).collect();
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let row = |source: &SourceView| columns.iter().map(|(_, cell)| cell(source, now)).collect();
    let table = titled(&titles, sources.iter().map(row).collect(), is_wide);
    let mut lines = table.lines();
    let head = lines.next().unwrap_or_default();
    let at = head.find(STATE).unwrap_or_default();
    let mut out = format!("{}\n", head.bold());
    for (line, source) in lines.zip(sources) {
        let (before, rest) =
            line.split_at_checked(line.char_indices().nth(at).map_or(0, |(at, _)| at)).unwrap_or_default();
        let _ = match rest.strip_prefix(state(source).as_str()) {
            Some(after) => writeln!(out, "{before}{}{after}", coloured_state(source)),
            None => writeln!(out, "{line}"),
        };
    }
    out
}

/// Why a source is not synced, or who applies it if the server does not. With `now`, it has the age of what changes by
/// itself.
pub(super) fn reasons(source: &SourceView, now: Option<Timestamp>, is_listed: impl Fn(&str) -> bool) -> String {
    if !source.is_followed() {
        return applied_by_others(source, now);
    }
    let suspension = source.suspension.as_ref().map(suspension_text);
    let conditions = source.conditions.iter().map(|condition| match is_listed(&condition.message) {
        true => counted(&source.counts),
        false => condition.message.clone(),
    });
    suspension.into_iter().chain(conditions).collect::<Vec<_>>().join("; ")
}

/// When a source that the server does not follow was applied, and by whom.
fn applied_by_others(source: &SourceView, now: Option<Timestamp>) -> String {
    let Some(applied) = &source.last_applied else {
        return "not followed by the server; the revision that was applied last is not known".to_owned();
    };
    let age = now.and_then(|now| age(&applied.at, now)).map(|age| format!(" {age} ago")).unwrap_or_default();
    let by = source.applied_by.as_ref();
    let by = by.map(|by| format!(" by {}", key_of(&by.key_id, &by.key_description, &by.owner_id)));
    format!("applied{age}{}, not followed by the server", by.unwrap_or_default())
}

pub(super) fn state(source: &SourceView) -> String {
    if source.is_followed() { source.state.to_string() } else { SourceView::NOT_FOLLOWED.to_owned() }
}

fn counted(counts: &SourceCounts) -> String {
    let counts = [(counts.errors, "error"), (counts.warnings, "warning")].into_iter().filter(|(count, _)| *count > 0);
    let counted = counts.map(|(count, what)| number_of(count, what));
    counted.collect::<Vec<_>>().join(", ")
}

/// The author, reason and end of a suspension.
pub(crate) fn suspension_text(suspension: &SuspensionView) -> String {
    let SuspensionView { reason, by, by_description, since, until } = suspension;
    let by = owner_of(by, by_description);
    let until = if until.is_empty() { "until it is resumed".to_owned() } else { format!("until {until}") };
    format!("suspended by {by} since {since} {until}: {reason}")
}

/// The columns by which the sources can be sorted.
pub(crate) fn sort_columns() -> Vec<&'static str> {
    COLUMNS.iter().map(|(title, _)| *title).collect()
}

pub(super) fn sort(sources: &mut [SourceView], column: &str, now: Timestamp) -> Result<(), Failure> {
    let Some((title, cell)) = COLUMNS.iter().find(|(title, _)| title.eq_ignore_ascii_case(column)) else {
        return Err(no_column("sources", column, &sort_columns()));
    };
    match *title {
        // An age is a text for people.
        AGE => sources.sort_by(|one, other| other.since.cmp(&one.since)),
        _ => sources.sort_by_cached_key(|source| SortKey::new(cell(source, now))),
    }
    Ok(())
}

/// A title, and the cell of a source.
type Column = (&'static str, fn(&SourceView, Timestamp) -> String);

const STATE: &str = "STATE";
const AGE: &str = "AGE";
/// The column that is shown only if a source reads the highest tag of a range.
const TAG: &str = "TAG";
/// The column that is shown only if the last sync of a source was of another commit than the one that is applied.
const ATTEMPTED: &str = "ATTEMPTED";
/// The further columns of `wide`.
const WIDE_COLUMNS: [&str; 3] = ["SINCE", ATTEMPTED, "OWNED"];

static COLUMNS: [Column; 12] = [
    ("SOURCE", |source, _| source.name.clone()),
    (STATE, |source, _| state(source)),
    (AGE, |source, now| age(&source.since, now).unwrap_or_default()),
    ("COMMIT", |source, _| applied(source)),
    (ATTEMPTED, |source, _| if is_behind(source) { attempted(source) } else { String::new() }),
    (TAG, |source, _| source.last_applied.as_ref().map(|sync| sync.tag.clone()).unwrap_or_default()),
    ("REVISION", |source, _| source.last_applied.as_ref().map(|sync| sync.revision.to_string()).unwrap_or_default()),
    ("PENDING", |source, _| {
        let counts = &source.counts;
        (counts.pending_create + counts.pending_change + counts.pending_delete).to_string()
    }),
    ("DRIFTED", |source, _| source.counts.drifted.to_string()),
    ("ERRORS", |source, _| source.counts.errors.to_string()),
    ("OWNED", |source, _| source.counts.owned.to_string()),
    ("SINCE", |source, _| source.since.clone()),
];

fn applied(source: &SourceView) -> String {
    source.last_applied.as_ref().map(|sync| short_commit(&sync.commit)).unwrap_or_default()
}

/// Whether the last sync was of another commit than the one that is applied.
fn is_behind(source: &SourceView) -> bool {
    source.last_attempt.is_some() && attempted(source) != applied(source)
}

fn attempted(source: &SourceView) -> String {
    source.last_attempt.as_ref().map(|sync| short_commit(&sync.commit)).unwrap_or_default()
}

fn coloured_state(source: &SourceView) -> String {
    let name = state(source);
    match source.state {
        SourceState::Synced => name.green().to_string(),
        SourceState::OutOfSync | SourceState::Suspended | SourceState::Drifted | SourceState::Unknown => {
            name.yellow().to_string()
        }
        SourceState::Invalid | SourceState::Refused | SourceState::Failed => name.red().to_string(),
    }
}

/// A diagnostic on one line.
fn finding(item: &Item) -> String {
    let severity = item.severity.as_str();
    let place = item.spot.position().map(|place| format!("{place}: ")).unwrap_or_default();
    let others = item.related.iter().filter_map(|it| Some(format!(" ({}: {})", it.message, it.spot.position()?)));
    let others: String = others.take(MOST_RELATED).collect();
    escaped(&format!("{severity} {}: {place}{}{others}", item.code, item.message)).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::inspect::status::tests::source;

    #[test]
    fn a_source_in_sync_is_shown_with_its_warnings_and_no_message_is_shown_twice() {
        let message = "m/one.yaml is still being written";
        let warning = json!({
            "code": "ERR_EDGEWRIGHT_UNREADABLE", "severity": "warning", "message": message,
            "help": "wait for it\nway: edge",
            "file": "m/one.yaml", "line": null, "column": null, "end_line": null, "end_column": null, "related": [],
        });
        let mut view = source("");
        view.conditions.first_mut().unwrap().message = message.to_owned();
        view.diagnostics = vec![serde_json::from_value(warning.clone()).unwrap()];
        let text = |sources: &[SourceView]| text(sources, Timestamp::UNIX_EPOCH, false, &BTreeMap::new());
        let shown = anstream::adapter::strip_str(&text(std::slice::from_ref(&view))).to_string();
        assert_eq!(
            (shown.matches(message).count(), shown.contains("\nstorefront: 100 errors\n")),
            (1, true),
            "{shown}"
        );
        view.state = SourceState::Synced;
        view.diagnostics.clear();
        assert_eq!(text(std::slice::from_ref(&view)).lines().count(), 2);
        (view.counts.errors, view.counts.warnings) = (0, 1);
        view.diagnostics = vec![serde_json::from_value(warning).unwrap()];
        let shown = anstream::adapter::strip_str(&text(std::slice::from_ref(&view))).to_string();
        let finding = format!("  warning ERR_EDGEWRIGHT_UNREADABLE: {message}\n");
        let help = "    help: wait for it\n          way: edge\n";
        let said = format!("\nstorefront: 1 warning\n{finding}{help}");
        assert!(shown.ends_with(&said), "{shown}");
        view.diagnostics = vec![view.diagnostics.pop().unwrap(); 3];
        let shown = anstream::adapter::strip_str(&text(&[view])).to_string();
        assert!(shown.ends_with(&format!("{finding}{finding}{finding}{help}")), "one help for equal ones: {shown}");
    }

    #[test]
    fn a_diagnostic_has_the_places_that_it_is_about() {
        let first = json!({
            "file": "dup/a.yaml", "line": 3, "column": 18, "end_line": 3, "end_column": 19, "message": "first here"
        });
        let item = json!({
            "file": "dup/b.yaml", "line": 3, "column": 18, "end_line": 3, "end_column": 19,
            "code": "ERR_EDGEWRIGHT_DUPLICATE_NAME", "severity": "error", "message": "duplicate HttpsEdge `a`",
            "help": null, "related": [first]
        });
        let shown = finding(&serde_json::from_value(item).unwrap());
        let said = "dup/b.yaml:3:18: duplicate HttpsEdge `a` (first here: dup/a.yaml:3:18)";
        assert_eq!(shown, format!("error ERR_EDGEWRIGHT_DUPLICATE_NAME: {said}"));
    }

    #[test]
    fn the_table_has_names_first_and_fits_80_columns() {
        let lines = |view: SourceView, is_wide: bool| -> Vec<String> {
            let text = table(&[view], "2026-07-01T15:06:00Z".parse().unwrap(), is_wide);
            text.lines().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
        };
        let words = |lines: &[String]| -> Vec<String> {
            lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let same = |mut view: SourceView| {
            view.last_attempt.clone_from(&view.last_applied);
            view
        };
        let shown = lines(same(source("")), false);
        assert_eq!(
            words(&shown),
            [
                "SOURCE STATE AGE COMMIT REVISION PENDING DRIFTED ERRORS",
                "storefront OutOfSync 3h aaaaaaaa 12345678 6 4 100"
            ]
        );
        assert!(shown.iter().all(|line| line.len() <= 80), "{shown:#?}");
        // A commit that is not applied, and a tag, have their columns.
        assert_eq!(
            words(&lines(source("^10"), false)).last().map(String::as_str),
            Some("storefront OutOfSync 3h aaaaaaaa bbbbbbbb v10.20.30 12345678 6 4 100")
        );
        assert_eq!(
            words(&lines(same(source("")), true)),
            [
                "SOURCE STATE AGE COMMIT ATTEMPTED REVISION PENDING DRIFTED ERRORS OWNED SINCE",
                "storefront OutOfSync 3h aaaaaaaa - 12345678 6 4 100 10000 2026-07-01T12:05:00Z"
            ]
        );
    }
}
