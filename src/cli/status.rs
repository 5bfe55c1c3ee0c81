//! `edgewright status`: the sources that a server follows, and whether the store matches their manifests (D83).

use std::fmt::Write;

use clap::ValueEnum;
use owo_colors::OwoColorize;

use super::{
    CommandResult, Exit,
    output::{print, print_coloured},
    target::{ApiClient, ServerArgs},
    trace::write_table,
};
use crate::{
    api::sources::view::{SourceList, SourceState, SourceView, SuspensionView},
    model::{diagnostic::Severity, json, secret::Secrets},
    plan::format::json::Item,
    text::escaped,
};

/// Where `serve` listens by default.
const THIS_MACHINE: &str = "http://127.0.0.1:8484";
/// The most diagnostics of a source that are shown.
const MOST_SHOWN: usize = 10;
/// The length of a commit in the table.
const SHORT_COMMIT: usize = 12;

/// Show the sources that a server follows, and whether the store matches their manifests.
///
/// Asks the server at --server, or at http://127.0.0.1:8484. Exits with code 0 if every source is synced, and with code 2
/// otherwise. `json` is what the API returns.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Output format.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = StatusFormat::Table, env = "EDGEWRIGHT_STATUS_FORMAT")]
    format: StatusFormat,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatusFormat {
    Table,
    Json,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        let url = self.server.url().unwrap_or(THIS_MACHINE);
        let client = ApiClient::new(url, &self.server.version_header)?;
        let list: SourceList = client.get("/sources")?;
        match self.format {
            StatusFormat::Json => print(json::text(&list, Secrets::Masked)?)?,
            StatusFormat::Table => print_coloured(&text(&list.sources))?,
        }
        let is_synced = list.sources.iter().all(|source| source.state == SourceState::Synced);
        Ok(if is_synced { Exit::Done } else { Exit::Pending })
    }
}

/// A table of the sources, and the reasons of those that are not synced.
fn text(sources: &[SourceView]) -> String {
    if sources.is_empty() {
        return "The server follows no source.\n".to_owned();
    }
    let titles = ["STATE", "SOURCE", "SINCE", "COMMIT", "REVISION", "OWNED", "PENDING", "ERRORS", "NEXT-LOOK"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(sources.iter().map(row));
    let mut table = String::new();
    write_table(&mut table, "", &rows);
    let states = [None].into_iter().chain(sources.iter().map(|source| Some(source.state)));
    let mut out = String::new();
    for (line, state) in table.lines().zip(states) {
        let _ = match state.and_then(|state| Some((state, line.strip_prefix(state.as_str())?))) {
            Some((state, rest)) => writeln!(out, "{}{rest}", coloured(state)),
            None => writeln!(out, "{}", line.bold()),
        };
    }
    for source in sources.iter().filter(|source| source.state != SourceState::Synced) {
        let suspension = source.suspension.as_ref().map(suspended);
        let conditions = source.conditions.iter().map(|condition| condition.message.clone());
        let reasons = suspension.into_iter().chain(conditions).collect::<Vec<_>>().join("; ");
        let _ = writeln!(out, "\n{}: {}", escaped(&source.name).bold(), escaped(&reasons));
        for item in source.diagnostics.iter().take(MOST_SHOWN) {
            let _ = writeln!(out, "  {}", finding(item));
        }
        let more = source.diagnostics.len().saturating_sub(MOST_SHOWN) + source.diagnostics_omitted;
        if more > 0 {
            let _ = writeln!(out, "  … and {more} more");
        }
        for resource in &source.drifted {
            let _ = writeln!(out, "  {}", escaped(&resource.to_string()));
        }
    }
    out
}

/// Who suspended a source, why, and for how long.
pub(super) fn suspended(suspension: &SuspensionView) -> String {
    let SuspensionView { reason, by, since, until } = suspension;
    let until = if until.is_empty() { "until it is resumed".to_owned() } else { format!("until {until}") };
    format!("suspended by {by} since {since} {until}: {reason}")
}

fn row(source: &SourceView) -> Vec<String> {
    let counts = &source.counts;
    let since = source.conditions.first().map(|condition| condition.last_transition_time.as_str());
    let last = source.last_applied.as_ref();
    let pending = counts.pending_create + counts.pending_change + counts.pending_delete;
    let cells = [
        source.state.as_str().to_owned(),
        source.name.clone(),
        since.unwrap_or_default().to_owned(),
        last.map(|last| short(&last.commit)).unwrap_or_default(),
        last.map(|last| last.revision.to_string()).unwrap_or_default(),
        counts.owned.to_string(),
        pending.to_string(),
        counts.errors.to_string(),
        source.next_look_at.clone(),
    ];
    let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { escaped(&cell).into_owned() };
    cells.into_iter().map(shown).collect()
}

/// A commit's first digits, and the suffix of uncommitted changes.
fn short(commit: &str) -> String {
    match commit.split_once('-') {
        Some((hash, suffix)) => format!("{}-{suffix}", short(hash)),
        None => commit.chars().take(SHORT_COMMIT).collect(),
    }
}

fn coloured(state: SourceState) -> String {
    let name = state.as_str();
    match state {
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
