//! The log of `edgewright serve` on stderr: lines of text for people, or one JSON object per line (D87). Other commands log only
//! what they remove.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, filter::Directive, fmt::format};

use crate::cli::output::diagnostics;
use crate::cli::prelude::*;
use crate::model::diagnostics::diagnostic::counted;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::sync_loop::sync_log::{self, SYNC, SyncOrigin};
use crate::store::REMOVAL;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The variable that selects what is logged, such as `info,edgewright::access=warn`.
const FILTER: &str = "EDGEWRIGHT_LOG";
/// Targets that no filter makes more talkative. At trace, a log file beside the followed folder would cause an event with each
/// line, without end; and the HTTP client logs the URLs of webhooks, which can have tokens in their queries.
const QUIET: [&str; 3] = ["notify=warn", "ureq=info", "ureq_proto=info"];
const DIAGNOSTIC: &str = "edgewright::diagnostic";
/// The most errors and warnings of one sync that are logged as JSON.
const MOST_DIAGNOSTICS: usize = 20;

pub(super) fn start(format: LogFormat) {
    let mut filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new("info"));
    for quiet in QUIET.iter().filter_map(|directive| directive.parse::<Directive>().ok()) {
        filter = filter.add_directive(quiet);
    }
    // A failed write must not panic, as it would if its error were printed to the same closed stderr.
    let builder = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter).with_writer(io::stderr);
    let _ = match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => {
            std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
            builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
        }
    };
}

/// Starts the log of a command that writes to a store, which has only what it removes (D58): a line of text for each event.
pub(crate) fn start_for_command() {
    let message = format::debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{value:?}"),
        _ => Ok(()),
    });
    let builder = tracing_subscriber::fmt().log_internal_errors(false).with_ansi(false);
    let builder = builder.without_time().with_level(false).with_target(false).fmt_fields(message);
    let filter = EnvFilter::new(format!("{REMOVAL}=info"));
    let _ = builder.with_env_filter(filter).with_writer(io::stderr).try_init();
}

/// Writes the first admin's token, which is shown only once. It is no event: no filter may hide it.
pub(super) fn admin_token(format: LogFormat, token: &Secret) -> io::Result<()> {
    const WHAT: &str = "Admin token (shown only once)";
    diagnostics::say_all(&match format {
        LogFormat::Text => format!("{WHAT}: {}", token.expose()),
        LogFormat::Json => {
            let timestamp = clock::now().to_string();
            json!({"timestamp": timestamp, "level": "INFO", "message": WHAT, "admin_token": token.expose()}).to_string()
        }
    })
}

/// Reports errors and warnings: with excerpts to people, and as events to programs.
pub(super) fn diagnostics(format: LogFormat, found: &[Diagnostic], author: Option<&Author>) {
    if format == LogFormat::Text {
        return diagnostics::diagnostics(found);
    }
    let origin = author.map(SyncOrigin::from_author);
    let source = origin.as_ref().and_then(|origin| origin.source);
    let commit = origin.as_ref().and_then(|origin| origin.commit);
    for it in found.iter().take(MOST_DIAGNOSTICS) {
        let place = it.position();
        let (file, line, column) = (place.map(|it| it.0), place.map(|it| it.1), place.map(|it| it.2));
        let (code, help) = (it.code.to_string(), it.help.as_deref());
        match it.severity {
            Severity::Error => {
                tracing::error!(target: DIAGNOSTIC, source, commit, code, file, line, column, help, "{}", it.message);
            }
            Severity::Warning => {
                tracing::warn!(target: DIAGNOSTIC, source, commit, code, file, line, column, help, "{}", it.message);
            }
        }
    }
    let more = found.len().saturating_sub(MOST_DIAGNOSTICS);
    if more > 0 {
        tracing::warn!(target: DIAGNOSTIC, source, commit, "… and {more} more");
    }
}

/// Reports a run of the reconcile loop. The function is long because each kind of report has an arm.
pub(super) fn run(format: LogFormat, report: &RunReport, author: &Author, revision: u64) {
    let SyncOrigin { source, commit, author: who, .. } = SyncOrigin::from_author(author);
    let who = who.as_deref();
    let found = |planned: &PlanResult| {
        diagnostics(format, &planned.diagnostics, Some(author));
        let files = number_of(planned.files.len(), "file");
        format!("{} in {files}", counted(&planned.diagnostics, Severity::Error))
    };
    // Whoever watches the log for a state needs no further line for it.
    let (reason, _) = report.condition();
    let status = reason.status();
    let error = |text: String| {
        tracing::error!(target: SYNC, source, commit, author = who, %status, %reason, revision, "{text}");
    };
    let warning = |text: String| {
        tracing::warn!(target: SYNC, source, commit, author = who, %status, %reason, revision, "{text}");
    };
    match report {
        RunReport::Applied { plan, revision } => sync_log::applied(author, plan, *revision),
        RunReport::InSync { unchanged, revision } => sync_log::in_sync(author, *unchanged, *revision),
        RunReport::Unfetched { applied, resources, .. } => {
            if let Some((plan, revision)) = applied {
                sync_log::applied(author, plan, *revision);
            }
            // The failure has a line of its own.
            let resources = number_of(*resources, "resource");
            warning(format!("Cannot fetch the repository. The store matches the last fetched commit: {resources}."));
        }
        RunReport::Invalid(planned) if planned.files.is_empty() => {
            diagnostics(format, &planned.diagnostics, Some(author));
            error("Nothing is applied; the last good state stays in service.".to_owned());
        }
        RunReport::Invalid(planned) => {
            let state = match planned.tests.passed_until {
                Some(revision) => format!(
                    "Route tests fail because of a change by others after revision {revision}. Nothing is applied until \
                     they pass."
                ),
                None => "The manifests are not applied; the last good state stays in service.".to_owned(),
            };
            error(format!("{}. {state}", found(planned)));
        }
        RunReport::Partly(planned) => {
            let found = found(planned);
            for left_out in planned.left_out_names() {
                tracing::warn!(target: SYNC, source, commit, "Skipped: {}", escaped(&left_out));
            }
            error(format!(
                "{found}. No resource is deleted until these errors are fixed. The rest is applied; the store is at \
                 revision {revision}."
            ));
        }
        RunReport::Suspended(planned) => {
            diagnostics(format, &planned.diagnostics, Some(author));
            let summary = planned.plan.as_ref().map(|plan| plan.summary()).unwrap_or_default();
            warning(format!("Not applied, because the source is suspended: {summary}."));
        }
        RunReport::RolledBack { .. } => {
            warning("A rollback undid these manifests. They are not applied until they change.".to_owned());
        }
        RunReport::Drifted { applied, drifted, resources, fight_until } => {
            if let Some((plan, revision)) = applied {
                sync_log::applied(author, plan, *revision);
            }
            let until = fight_until
                .map(|until| format!(" until {until}, because others keep changing them back"))
                .unwrap_or_default();
            for resource in resources {
                tracing::warn!(target: SYNC, source, commit, "Drifted: {}", escaped(resource));
            }
            warning(format!("{} left as is{until}.", number_of(*drifted, "drifted resource")));
        }
        RunReport::Failed(found) => {
            diagnostics(format, found, Some(author));
            error("Nothing is applied; the last good state stays in service.".to_owned());
        }
    }
}
