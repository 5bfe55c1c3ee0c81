//! `edgewright status`: the sources that a server follows, and whether the store matches their manifests (D83).

mod wait;
mod watch;

use std::fmt::Write;

use jiff::Timestamp;
use owo_colors::OwoColorize;

use crate::{
    cli::{
        output::{age::age, list::ListFormat, print_coloured, table::titled},
        prelude::*,
        serve::followed::duration,
        target::ServerArgs,
    },
    model::operation::key_of,
    plan::format::json::Item,
    server::operations::sources::view::{SourceCounts, SourceList, SourceState, SourceView, SuspensionView},
};

/// The path of the list.
const SOURCES: &str = "/sources";
/// The default address of `serve`.
const THIS_MACHINE: &str = "http://127.0.0.1:8484";
/// The most diagnostics of a source that are shown.
const MOST_SHOWN: usize = 10;
/// The length of a commit in the table.
const SHORT_COMMIT: usize = 8;

/// Show the sources of a server, and whether they are synced.
///
/// A source is synced if the store matches its manifests. Asks the server at --server, of the current context, or at
/// http://127.0.0.1:8484. Exits with code 0 if every source that the server follows is synced, and with code 2
/// otherwise. AGE is how long the source has been in its state, COMMIT the commit that is applied, and ATTEMPTED the one
/// that was synced last, if it differs. A source that clients apply is `NotFollowed`. `json` and `yaml` print
/// what the API returns.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output format.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = ListFormat::Table, env = "EDGEWRIGHT_STATUS_FORMAT")]
    format: ListFormat,
    /// Keep running, and show the sources again whenever something changes.
    ///
    /// Shows the table on a terminal, elsewhere one line for each source that has changed, and with `json` one document per
    /// line. Ctrl-C ends it.
    #[arg(long, env = "EDGEWRIGHT_STATUS_WATCH")]
    watch: bool,
    /// Sync the sources now, and wait until that has ended, at most for this time (30 seconds if none is given).
    ///
    /// Every source is then synced with its files, or the commit of its repository, as they were when the command began, and the
    /// exit code is that of its state. Also waits for a server that is starting. If the time runs out, the exit code is
    /// 1. Without the permission to apply a source, waits for the next scheduled sync.
    #[arg(long, value_name = "DURATION", env = "EDGEWRIGHT_STATUS_WAIT", num_args = 0..=1, require_equals = true,
        default_missing_value = "30s", value_parser = duration, conflicts_with = "watch")]
    wait: Option<Duration>,
    /// Show only this source.
    #[arg(long, value_name = "NAME", value_parser = source_name, conflicts_with = "watch")]
    source: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}

impl Args {
    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        if self.watch && matches!(self.format, ListFormat::Name | ListFormat::Yaml) {
            let fault = Diagnostic::error(Code::Parameter, "`--watch` shows a table or `json`");
            return Err(fault.help("set --format to `table`, `wide` or `json`").into());
        }
        let url = self.server.url().unwrap_or(THIS_MACHINE);
        let client = self.server.connect(url)?;
        if self.watch {
            return watch::run(&client, self.format);
        }
        let only = self.source.as_deref();
        let list = match self.wait {
            Some(longest) => during("Waiting for the sources", || wait::synced(&client, only, longest))?,
            None => sources(&client, only)?,
        };
        match self.format {
            ListFormat::Table | ListFormat::Wide => {
                print_coloured(&text(&list.sources, Timestamp::now(), self.format == ListFormat::Wide))?;
            }
            ListFormat::Name => {
                let names = list.sources.iter().map(|source| format!("{}\n", escaped(&source.name)));
                print(names.collect::<String>())?;
            }
            ListFormat::Json | ListFormat::Yaml => {
                print(self.format.document(&json::value(&list, Secrets::Masked)?))?;
            }
        }
        let is_synced = |source: &SourceView| source.state == SourceState::Synced || !source.is_followed();
        let is_synced = list.sources.iter().all(is_synced);
        Ok(if is_synced { Exit::Done } else { Exit::Pending })
    }
}

/// The sources of a server, or only one of them.
fn sources(client: &ApiClient, only: Option<&str>) -> Result<SourceList, Failure> {
    let mut list: SourceList = client.get(SOURCES)?;
    let Some(name) = only else { return Ok(list) };
    let names: Vec<String> = list.sources.iter().map(|source| source.name.clone()).collect();
    list.sources.retain(|source| source.name == name);
    if list.sources.is_empty() {
        let near = nearest(name, names.iter().map(String::as_str));
        let help = near.map_or_else(|| "list the sources with `edgewright status`".to_owned(), did_you_mean);
        return Err(Diagnostic::error(Code::NotFound, format!("the server has no source `{}`", printable(name)))
            .help(help)
            .into());
    }
    Ok(list)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{}`?", printable(name))
}

/// A table of the sources, the reasons of those that are not synced, and the warnings of the others.
fn text(sources: &[SourceView], now: Timestamp, is_wide: bool) -> String {
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
        for item in listed() {
            let _ = writeln!(out, "  {}", finding(item));
            if let Some(help) = &item.help {
                let _ = writeln!(out, "    help: {}", escaped(help));
            }
        }
        let more = source.diagnostics.len().saturating_sub(MOST_SHOWN) + source.diagnostics_omitted;
        if more > 0 {
            let _ = writeln!(out, "  … and {more} more");
        }
        for resource in &source.drifted {
            let _ = writeln!(out, "  {}", escaped(&resource.to_string()));
        }
    }
    for source in sources.iter().filter(|source| !source.values.is_empty()) {
        let _ = writeln!(out, "\n{}: values from the server", escaped(&source.name).bold());
        for value in &source.values {
            let changed = age(&value.changed_at, now).map(|age| format!("{age} ago")).unwrap_or_default();
            let _ = writeln!(out, "  {}  changed {}", escaped(&value.name), or_dash(changed));
        }
    }
    out
}

/// The sources as a table, with the states in colours.
fn table(sources: &[SourceView], now: Timestamp, is_wide: bool) -> String {
    let is_behind = |source: &SourceView| source.last_attempt.is_some() && attempted(source) != applied(source);
    let is_shown = |title: &str| match title {
        TAG => sources.iter().any(|source| !source.semver.is_empty()),
        ATTEMPTED => is_wide || sources.iter().any(is_behind),
        _ => is_wide || !WIDE_COLUMNS.contains(&title),
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| is_shown(column.0)).collect();
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let row = |source: &SourceView| columns.iter().map(|(_, cell)| cell(source, now)).collect();
    let table = titled(&titles, sources.iter().map(row).collect());
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
fn reasons(source: &SourceView, now: Option<Timestamp>, is_listed: impl Fn(&str) -> bool) -> String {
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
    let Some(applied) = &source.last_applied else { return "not followed by the server".to_owned() };
    let age = now.and_then(|now| age(&applied.at, now)).map(|age| format!(" {age} ago")).unwrap_or_default();
    let by = source.applied_by.as_ref();
    let by = by.map(|by| format!(" by {}", key_of(&by.key_id, &by.key_description, &by.owner_id)));
    format!("applied{age}{}, not followed by the server", by.unwrap_or_default())
}

/// The state in the table.
fn state(source: &SourceView) -> String {
    if source.is_followed() { source.state.to_string() } else { SourceView::NOT_FOLLOWED.to_owned() }
}

/// The number of a source's findings.
fn counted(counts: &SourceCounts) -> String {
    let counts = [(counts.errors, "error"), (counts.warnings, "warning")].into_iter().filter(|(count, _)| *count > 0);
    let counted = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    counted.collect::<Vec<_>>().join(", ")
}

/// The author, reason and end of a suspension.
pub(crate) fn suspension_text(suspension: &SuspensionView) -> String {
    let SuspensionView { reason, by, since, until } = suspension;
    let until = if until.is_empty() { "until it is resumed".to_owned() } else { format!("until {until}") };
    format!("suspended by {by} since {since} {until}: {reason}")
}

/// A title, and the cell of a source.
type Column = (&'static str, fn(&SourceView, Timestamp) -> String);

const STATE: &str = "STATE";
/// The column that is shown only if a source reads the highest tag of a range.
const TAG: &str = "TAG";
/// The column that is shown only if the last sync of a source was of another commit than the one that is applied.
const ATTEMPTED: &str = "ATTEMPTED";
/// The further columns of `wide`.
const WIDE_COLUMNS: [&str; 3] = ["SINCE", ATTEMPTED, "OWNED"];

static COLUMNS: [Column; 12] = [
    ("SOURCE", |source, _| source.name.clone()),
    (STATE, |source, _| state(source)),
    ("AGE", |source, now| age(&source.since, now).unwrap_or_default()),
    ("COMMIT", |source, _| applied(source)),
    (ATTEMPTED, |source, _| attempted(source)),
    (TAG, |source, _| source.last_applied.as_ref().map(|look| look.tag.clone()).unwrap_or_default()),
    ("REVISION", |source, _| source.last_applied.as_ref().map(|look| look.revision.to_string()).unwrap_or_default()),
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
    source.last_applied.as_ref().map(|look| short_commit(&look.commit)).unwrap_or_default()
}

fn attempted(source: &SourceView) -> String {
    source.last_attempt.as_ref().map(|look| short_commit(&look.commit)).unwrap_or_default()
}

fn or_dash(cell: String) -> String {
    if cell.is_empty() { "-".to_owned() } else { escaped(&cell).into_owned() }
}

/// A commit's first digits, and the suffix of uncommitted changes.
pub(super) fn short_commit(commit: &str) -> String {
    match commit.split_once('-') {
        Some((hash, suffix)) => format!("{}-{suffix}", short_commit(hash)),
        None => commit.chars().take(SHORT_COMMIT).collect(),
    }
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
    let severity = match item.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = match (&item.spot.file, item.spot.line, item.spot.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
        _ => String::new(),
    };
    escaped(&format!("{severity} {}: {place}{}", item.code, item.message)).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(super) fn source(semver: &str) -> SourceView {
        let look =
            |commit: &str| json!({"at": "", "commit": commit.repeat(40), "tag": "v10.20.30", "revision": 12345678});
        let since = "2026-07-01T12:05:00Z";
        let condition = json!({
            "type": "Synced", "status": "OutOfSync", "reason": "Invalid", "message": "1 error in the manifests",
            "last_transition_time": since, "observed_revision": 7,
        });
        let counts = json!({
            "owned": 10000, "declared": 1, "files": 1, "errors": 100, "warnings": 0, "pending_create": 1,
            "pending_change": 2, "pending_delete": 3, "drifted": 4,
        });
        let view = json!({
            "name": "storefront", "uri": "", "state": "OutOfSync", "since": since, "conditions": [condition],
            "paths": [], "repository": "r", "ref": "", "drift": "warn", "semver": semver, "interval_seconds": 30,
            "last_attempt": look("b"), "last_applied": look("a"), "suspension": null, "replaced_suspension": null,
            "next_look_at": "", "counts": counts, "diagnostics": [], "diagnostics_omitted": 0, "drifted": [],
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_source_in_sync_is_shown_with_its_warnings_and_no_message_is_shown_twice() {
        let message = "m/one.yaml is still being written";
        let warning = json!({
            "code": "ERR_EDGEWRIGHT_UNREADABLE", "severity": "warning", "message": message, "help": "wait for it",
            "file": "m/one.yaml", "line": null, "column": null, "end_line": null, "end_column": null, "related": [],
        });
        let mut view = source("");
        view.conditions.first_mut().unwrap().message = message.to_owned();
        view.diagnostics = vec![serde_json::from_value(warning.clone()).unwrap()];
        let text = |sources: &[SourceView]| text(sources, Timestamp::UNIX_EPOCH, false);
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
        let shown = anstream::adapter::strip_str(&text(&[view])).to_string();
        let said =
            format!("\nstorefront: 1 warning\n  warning ERR_EDGEWRIGHT_UNREADABLE: {message}\n    help: wait for it\n");
        assert!(shown.ends_with(&said), "{shown}");
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
                "storefront OutOfSync 3h aaaaaaaa aaaaaaaa 12345678 6 4 100 10000 2026-07-01T12:05:00Z"
            ]
        );
    }
}
