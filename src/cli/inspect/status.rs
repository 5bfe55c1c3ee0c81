//! `edgewright status`: the sources that a server follows, and whether the store matches their manifests (D83).

pub(crate) mod text;
mod wait;
mod watch;

use crate::cli::command_prelude::*;
use crate::cli::input::durations::duration;
use crate::cli::output::list::ListFormat;
use crate::cli::output::print_coloured;
use crate::cli::target::before_rollback;
use crate::server::operations::sources::view::{SourceState, SourceView};
use text::text;

/// The default address of `serve`.
const THIS_MACHINE: &str = "http://127.0.0.1:8484";

/// Show the sources of a server, and whether they are synced.
///
/// A source is synced if the store matches its manifests. Asks the server at --server, of the current context, or at
/// http://127.0.0.1:8484. Exits with code 0 if every source that the server follows is synced, and with code 2
/// otherwise. A source that clients apply is `NotFollowed`. `json` and `yaml` print what the API returns.
///
/// AGE is how long the source has been in its state, COMMIT the commit that is applied, ATTEMPTED the one that was synced
/// last, if it differs, and REVISION the revision of the store that last matched the manifests, or that first had the commit
/// in effect apart from drift and invalid resources; `history` has the revisions that changed it. PENDING counts the
/// resources that the manifests would change, DRIFTED those that others have changed, and ERRORS the errors in the manifests.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output format; `name` prints the names of the sources alone, one per line.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = ListFormat::Table, env = "EDGEWRIGHT_STATUS_FORMAT")]
    format: ListFormat,
    /// Keep running, and show the sources again whenever something changes.
    ///
    /// Shows the table on a terminal, elsewhere one line for each source that has changed, and with `json` one document per
    /// line. Ctrl-C ends it.
    #[arg(long, env = "EDGEWRIGHT_STATUS_WATCH")]
    watch: bool,
    /// Sync the sources now, and wait for the result, at most for this time (30 seconds if none is given).
    ///
    /// Every source is then synced with its files, or the commit of its repository, as they were when the command began, and the
    /// exit code is that of its state. Also waits for a server that is starting. If the time runs out, the exit code is
    /// 1. Without the permission to apply a source, waits for the next scheduled sync.
    #[arg(long, value_name = "DURATION", env = "EDGEWRIGHT_STATUS_WAIT", num_args = 0..=1, require_equals = true,
        default_missing_value = "30s", value_parser = duration, conflicts_with = "watch")]
    wait: Option<Duration>,
    /// Sort by a column of the table or of `wide` (default: the order of the server).
    #[arg(long, value_name = "COLUMN", env = "EDGEWRIGHT_STATUS_SORT_BY", conflicts_with = "watch")]
    sort_by: Option<String>,
    /// Show only this source.
    #[arg(long, value_name = "NAME", value_parser = source_name, conflicts_with = "watch")]
    source: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}

impl Args {
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
        let mut list = match self.wait {
            Some(longest) => during("Waiting for the sources", || wait::synced(&client, only, longest))?,
            None => client.sources(only)?,
        };
        let now = Timestamp::now();
        if let Some(column) = &self.sort_by {
            text::sort(&mut list.sources, column, now)?;
        }
        match self.format {
            ListFormat::Table | ListFormat::Wide => {
                let held = list.sources.iter().filter(|source| source.is_held());
                let held: BTreeSet<&str> = held.map(|source| source.name.as_str()).collect();
                let before = before_rollback(&client, &held);
                let mut shown = text(&list.sources, now, self.format == ListFormat::Wide, &before);
                for note in client.notes_on_server() {
                    shown += &format!("\nserver: {}\n", escaped(&note));
                }
                print_coloured(&shown)?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use crate::server::operations::sources::view::SourceView;

    pub(super) fn source(semver: &str) -> SourceView {
        let sync =
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
            "last_attempt": sync("b"), "last_applied": sync("a"), "suspension": null, "replaced_suspension": null,
            "next_sync_at": "", "counts": counts, "diagnostics": [], "diagnostics_omitted": 0, "drifted": [],
        });
        serde_json::from_value(view).unwrap()
    }
}
