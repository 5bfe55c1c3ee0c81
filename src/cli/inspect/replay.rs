//! `edgewright replay`: the requests of access logs, sent once more through another state (D119).

mod log_files;
mod pipeline;
mod report;
mod text;

use clap::ValueEnum;

use crate::cli::command_prelude::*;
use crate::cli::input::choice::Choice;
use crate::cli::manifests::planned_state::{PlannedArgs, planned_state};
use crate::cli::operate::revision::{revision_failure, revision_in_store, revision_name, revision_on_server};
use crate::routing::edge_table::EdgeTable;
use crate::routing::replay::worker::ShownDetails;
use crate::server::operations::routing_report::RoutingState;
use crate::server::operations::routing_state::PATH;
use crate::syntax::access_log::AccessLogFormat;
use pipeline::{LineCounts, LogSettings};
use report::ReplayReport;

/// Show what a change would do to the requests of access logs.
///
/// Reads logs in the common and combined formats, also after the host, and as JSON of nginx or Envoy. Looks up each request in
/// the store or server, and in the state after a change: the plan of manifests, or another revision. Counts the requests that
/// are handled differently, by class; classes that open access come first. Without --against, counts the requests of each route.
///
/// Facts that are not in a log, such as a session or a header, are listed as dependencies of a request. The output omits
/// addresses, paths and queries unless you ask for them. Sends no request and changes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Access logs, plain or compressed with gzip or zstd, or `-` for standard input.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Manifest file or folder whose plan to compare with, or revision or Git commit of the history. Repeatable for
    /// manifests.
    #[arg(long, value_name = "PATH|REVISION", env = "EDGEWRIGHT_AGAINST", value_hint = clap::ValueHint::AnyPath)]
    against: Vec<String>,
    /// Compare with the state of this revision, or of the newest revision that was applied from this Git commit, instead
    /// of the current state.
    #[arg(long, value_name = "REVISION|COMMIT", value_parser = revision_name)]
    from: Option<RevisionName>,
    /// Format of the logs: combined (also without referrer and agent), vhost-combined or json. Recognized by default.
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_REPLAY_LOG_FORMAT")]
    #[arg(value_parser = log_format(), hide_possible_values = true)]
    log_format: Option<AccessLogFormat>,
    /// Host of the requests whose line has none.
    #[arg(long, value_name = "HOST", env = "EDGEWRIGHT_REPLAY_HOST", value_parser = host)]
    host: Option<String>,
    /// Port of all requests (default: that of the line, or 443).
    #[arg(long, value_name = "PORT", env = "EDGEWRIGHT_REPLAY_PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Maximum number of classes or routes to list.
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_TOP", default_value_t = 20)]
    top: usize,
    /// Show the method and the URL of examples, without the query.
    #[arg(long)]
    show_urls: bool,
    /// Show the client addresses of examples.
    #[arg(long)]
    show_clients: bool,
    /// Exit with code 2 if a request would be handled differently.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Form::Text, env = "EDGEWRIGHT_REPLAY_FORMAT")]
    format: Form,
    #[command(flatten)]
    pub planned: PlannedArgs,
}

/// The other side of a comparison with the current state.
enum ReplayTarget {
    Manifests(Vec<PathBuf>),
    Revision(RevisionName),
}

/// The state of the requests, and the one to compare with.
type ReplayStates = (Arc<Snapshot>, Option<Arc<Snapshot>>);

fn log_format() -> Choice<AccessLogFormat> {
    let parse = |name: &str| {
        let names = AccessLogFormat::ALL.map(AccessLogFormat::as_str).join(", ");
        AccessLogFormat::from_name(name).ok_or_else(|| format!("expected one of {names}"))
    };
    Choice::new(parse, || AccessLogFormat::ALL.map(|format| format.as_str().to_owned()).to_vec())
}

/// Parses a host without a port.
fn host(text: &str) -> Result<String, String> {
    let is_host = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '*' | '@'));
    let has_port = !text.ends_with(']') && text.matches(':').count() == 1;
    if is_host && !has_port { Ok(text.to_owned()) } else { Err("expected a host; set the port with --port".to_owned()) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl Args {
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let (before, after) = self.states(lints)?;
        let (old, new) = (EdgeTable::of_store(&before), after.as_deref().map(EdgeTable::of_store));
        let shown = ShownDetails { urls: self.show_urls, clients: self.show_clients };
        let settings = LogSettings { format: self.log_format, host: self.host.as_deref(), port: self.port, shown };
        let (tally, lines) = during("Reading logs", || pipeline::replay(&self.logs, settings, &old, new.as_ref()))?;
        self.check_read(&lines, tally.all.requests)?;
        let report = ReplayReport::new(&self.logs, (&tally, &lines), &old, new.as_ref(), self.top);
        print(match self.format {
            Form::Json => json::text(&report, Secrets::Masked)?,
            Form::Text => text::text(&report, self.top),
        })?;
        Ok(if self.detailed_exitcode && tally.differing.requests > 0 { Exit::Pending } else { Exit::Done })
    }

    /// Fails if no line is a request: a report would say that nothing changes.
    fn check_read(&self, lines: &LineCounts, requests: u64) -> Result<(), Failure> {
        if requests > 0 {
            return Ok(());
        }
        let (message, help) = if lines.lines == 0 {
            ("the logs are empty", "check where they come from, such as the command before a pipe")
        } else if lines.without_host > 0 {
            ("no line of the logs has a host", "set --host to the host of the requests")
        } else {
            ("no line of the logs is a request that can be read", "set --log-format to the format of the logs")
        };
        Err(Diagnostic::error(Code::InvalidFormat, message).help(help).into())
    }

    fn target(&self) -> Option<ReplayTarget> {
        if let [one] = self.against.as_slice()
            && !Path::new(one).exists()
            && let Some(name) = RevisionName::parse(one)
        {
            return Some(ReplayTarget::Revision(name));
        }
        let paths: Vec<PathBuf> = self.against.iter().map(PathBuf::from).collect();
        (!paths.is_empty()).then_some(ReplayTarget::Manifests(paths))
    }

    fn states(&self, lints: LintLevels) -> Result<ReplayStates, Failure> {
        if let Some(client) = self.planned.place.client()? {
            return self.states_of_server(&client, lints);
        }
        let store = self.planned.place.store.read_existing()?;
        let at =
            |name: &RevisionName| store.snapshot_at(revision_in_store(&store, name, None)?).map_err(revision_failure);
        let before = self.from.as_ref().map_or_else(|| Ok(store.snapshot()), at)?;
        let after = match self.target() {
            None => None,
            Some(ReplayTarget::Revision(name)) => Some(at(&name)?),
            Some(ReplayTarget::Manifests(paths)) => {
                Some(Arc::new(planned_state(self.planned.options(&paths, lints), Some(&before))?))
            }
        };
        Ok((before, after))
    }

    fn states_of_server(&self, client: &ApiClient, lints: LintLevels) -> Result<ReplayStates, Failure> {
        let received = |state: RoutingState| -> Result<Arc<Snapshot>, Failure> { Ok(Arc::new(state.into_snapshot()?)) };
        let at = |name: Option<&RevisionName>| {
            let revision = name.map(|name| revision_on_server(client, name, None)).transpose()?;
            let query = revision.map(|revision| format!("?at={revision}")).unwrap_or_default();
            received(client.get(&format!("{PATH}{query}"))?)
        };
        match self.target() {
            None => Ok((at(self.from.as_ref())?, None)),
            Some(ReplayTarget::Revision(name)) => Ok((at(self.from.as_ref())?, Some(at(Some(&name))?))),
            Some(ReplayTarget::Manifests(_)) if self.from.is_some() => {
                let message = "a server plans manifests from its current state only";
                Err(Diagnostic::error(Code::Parameter, message).help("remove --from, or compare two revisions").into())
            }
            Some(ReplayTarget::Manifests(paths)) => {
                let url = self.planned.place.server.url().unwrap_or_default();
                let options = self.planned.options(&paths, lints);
                let (before, after) = ServerTarget::new(url, &self.planned.place.server, options)?.routing()?;
                Ok((received(before)?, Some(received(after)?)))
            }
        }
    }
}
