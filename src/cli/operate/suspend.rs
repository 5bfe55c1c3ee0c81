//! `edgewright suspend`: a followed source is planned and not applied (D84).

use std::num::TryFromIntError;

use ureq::http::Method;

use crate::cli::command_prelude::*;
use crate::cli::input::durations::duration_with_unit;
use crate::cli::inspect::status::text::suspension_text;
use crate::cli::target::source_action;
use crate::reconcile::sync_loop::suspension::{SourceRecords, Suspension};
use crate::server::operations::sources::view::{SourceSuspend, SourceView, SuspensionView};

/// The help for a suspension that may have been changed.
pub(super) const SEE_SUSPENSION: &str = "run `edgewright status` to see whether the source is suspended";

/// Suspend a source: `serve` stops applying it.
///
/// The server keeps reporting what it would change. Use this to keep an emergency fix that was made over the API. The
/// suspension survives a restart of the server. `edgewright status` shows who suspended a source, and why. Works
/// through a server with --server, or on an offline store.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the source.
    #[arg(value_name = "SOURCE", value_parser = source_name)]
    source: String,
    /// Reason, shown in the status of the source.
    #[arg(long, value_name = "TEXT", env = "EDGEWRIGHT_SUSPEND_REASON")]
    reason: String,
    /// Resume the source automatically after this time, such as 2h (default: never).
    #[arg(long = "for", value_name = "DURATION", env = "EDGEWRIGHT_SUSPEND_FOR", value_parser = duration_with_unit)]
    time: Option<Duration>,
    #[command(flatten)]
    pub place: StoreOrServer,
    #[command(flatten)]
    retention: RetentionArgs,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        if self.time.is_some_and(|time| time.is_zero()) {
            let fault = Diagnostic::error(Code::OutOfRange, "`--for` must be longer than 0 seconds");
            return Err(fault
                .help("use a time such as 2h, or omit --for to suspend the source until you resume it")
                .into());
        }
        let too_long =
            || Diagnostic::error(Code::OutOfRange, "`--for` is too long").help("use a shorter time, or none");
        let (named, replaced) = match self.place.client()? {
            Some(client) => {
                let for_seconds = self.time.map(whole_seconds).transpose().map_err(|_| too_long())?;
                let wanted = SourceSuspend { reason: self.reason, until: String::new(), for_seconds };
                let body = json::bytes(&wanted, Secrets::Masked)?;
                let path = source_action(&self.source, "suspend");
                let status: Result<SourceView, Failure> =
                    client.change(&Method::POST, &path, Some(&body), SEE_SUSPENSION);
                let status = status.map_err(|failure| match failure.has_code(Code::UnknownField) {
                    // It knows the other fields.
                    true => {
                        client.too_old("it cannot suspend a source for a time", "upgrade the server, or omit --for")
                    }
                    false => failure,
                })?;
                (status.suspension.as_ref().map(suspension_text), status.replaced_suspension)
            }
            None => {
                let since = clock::now();
                let until = self.time.map(|time| since.checked_add(time)).transpose().map_err(|_| too_long())?;
                let suspension = Suspension::new(self.reason, "command line", since, until)?;
                let store = Arc::new(self.place.store.open_existing(&self.retention)?);
                let state = store.snapshot();
                let records = SourceRecords::open(store)?;
                if records.conditions.get(&self.source).is_none() {
                    say(&unfollowed(&self.source, &state));
                }
                let replaced = records.set_suspension(&self.source, Some(suspension.clone()), Author::Local)?;
                let view = |suspension| SuspensionView::new(suspension, &state);
                (Some(suspension_text(&view(suspension))), replaced.map(view))
            }
        };
        match named {
            Some(named) => say(&format!("{}: {named}", self.source)),
            None => say(&format!("Suspended source {}.", self.source)),
        }
        if let Some(replaced) = replaced {
            say(&format!("This replaces an earlier suspension: {}", suspension_text(&replaced)));
        }
        Ok(Exit::Done)
    }
}

/// The warning for a source that no server has followed on an offline store. One may do so later, so the source is suspended.
fn unfollowed(source: &str, state: &Snapshot) -> String {
    match state.iter().any(|entry| entry.is_owned_by(source)) {
        true => format!(
            "No server has followed source {source}. If its pipeline applies it, this does not stop it: disable the \
             pipeline or revoke its key (`edgewright keys list`)."
        ),
        false => format!("No server has followed source {source}, and it owns no resource: check the name."),
    }
}

/// The seconds of a duration, rounded up. The server counts them by its own clock, which also ends the suspension.
fn whole_seconds(time: Duration) -> Result<u32, TryFromIntError> {
    u32::try_from(time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)))
}
