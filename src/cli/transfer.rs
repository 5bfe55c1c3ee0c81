//! `edgewright transfer`: moves resources from one source to another (D104).

use super::{
    CommandResult, Exit, Failure,
    get::kind_of,
    leave,
    output::Output,
    reconcile::{applied, failed},
    show::{self, say},
    source::source_name,
    store_or_server::StoreOrServer,
    target::TransferTarget,
};
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name},
    },
    plan::{outline::Outline, transfer::Transfer},
};

/// Move resources from one source to another.
///
/// The resources keep their identifiers and content, and an edge moves with its routes. Move the manifests as well: as long
/// as the old source declares a resource that it no longer owns, its runs fail. To move resources through reviewed
/// manifests alone, use `metadata.transfer_to` and `metadata.transfer_from`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Resources, as KIND/NAME such as edge/shop and route/shop/cart, or by ID.
    #[arg(value_name = "RESOURCE", required_unless_present = "all", conflicts_with = "all")]
    resources: Vec<String>,
    /// Name of the source that owns the resources.
    #[arg(long, value_name = "SOURCE", env = "EDGEWRIGHT_TRANSFER_FROM", value_parser = source_name)]
    from: String,
    /// Name of the source that owns them afterwards.
    #[arg(long, value_name = "SOURCE", env = "EDGEWRIGHT_TRANSFER_TO", value_parser = source_name)]
    to: String,
    /// Move every resource of the source.
    #[arg(long, env = "EDGEWRIGHT_TRANSFER_ALL")]
    all: bool,
    /// Show the plan without applying it.
    #[arg(long, env = "EDGEWRIGHT_DRY_RUN")]
    dry_run: bool,
    /// Exit with code 2 if changes are pending.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    pub place: StoreOrServer,
}

impl Args {
    /// Whether it changes nothing.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        if self.from == self.to {
            let error = Diagnostic::error(Code::NotAllowed, "`--from` and `--to` are the same source");
            return Err(error.help("name two sources").into());
        }
        let resources = self.resources.iter().map(|resource| in_full(resource));
        let resources = resources.collect::<Result<Vec<String>, Failure>>()?;
        let transfer = Transfer { from: self.from.clone(), to: self.to.clone(), resources };
        let mut target = match self.place.client()? {
            Some(client) => TransferTarget::through(client),
            None => TransferTarget::open(&self.place.store, self.dry_run)?,
        };
        let nothing = || {
            if !self.dry_run {
                say("Nothing was applied.");
            }
        };
        let mut report = target.propose(&transfer, self.output.detail())?;
        let is_empty = report.plan.as_ref().is_none_or(Outline::is_empty);
        // "No changes" would contradict the errors.
        if !is_empty || report.refusals.is_empty() {
            self.output.announce(&report, target.plan()).inspect_err(|_| nothing())?;
        }
        let mut started = None;
        let exit = if report.has_errors() {
            nothing();
            Exit::Error
        } else if !report.refusals.is_empty() {
            if let Some(first) = report.refusals.first().filter(|_| !self.dry_run) {
                target.refuse(&first.message);
            }
            show::diagnostics(&report.refusals);
            nothing();
            // A resource that the source does not have is a mistake in the arguments, and no plan that a limit refuses.
            let is_mistake = |refusal: &Diagnostic| refusal.code == Name::Code(Code::NotFound);
            if report.refusals.iter().any(is_mistake) { Exit::Error } else { Exit::Refused }
        } else if is_empty {
            Exit::Done
        } else if self.dry_run {
            if self.detailed_exitcode { Exit::Pending } else { Exit::Done }
        } else {
            started = Some(self.output.start(&report).inspect_err(|_| nothing())?);
            match target.apply(&transfer) {
                Ok(revision) => {
                    report.applied = Some(revision);
                    applied(revision)
                }
                Err(failure) => failed(&mut report, failure),
            }
        };
        match started {
            Some(started) => self.output.finish(started, &report)?,
            None => self.output.conclude(&report)?,
        }
        leave(report);
        Ok(exit)
    }
}

/// A resource with the full name of its kind, for which the command line has short ones.
fn in_full(resource: &str) -> Result<String, Failure> {
    match resource.split_once('/') {
        Some((kind, name)) => Ok(format!("{}/{name}", kind_of(kind)?)),
        None => Ok(resource.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_get() {
        for (given, expected) in [
            ("edge/shop", "HttpsEdge/shop"),
            ("route/shop/path_prefix /cart", "HttpsEdgeRoute/shop/path_prefix /cart"),
            ("edghts_1", "edghts_1"),
        ] {
            assert_eq!(in_full(given).ok().as_deref(), Some(expected));
        }
        assert!(in_full("pod/shop").is_err());
    }
}
