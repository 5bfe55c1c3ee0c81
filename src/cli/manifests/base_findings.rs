//! The base of a change: warnings that its manifests have, too, are counted and not listed (D114).
//!
//! A comment that repeats ten old warnings below each change teaches everybody to scroll past the eleventh. So the
//! manifests at the base are judged as well, without a store, and each of their warnings takes one away with the same
//! lint, message and file. Lines do not count, because they move. For example, of two equal warnings in a file where
//! the base has one, one is new.
//!
//! Errors are always listed, and exit codes stay as they are. A warning that needs a store or a server counts as new.

use clap::Args;

use super::review::{ComparedRevision, ReviewArgs};
use super::source_args::Manifests;
use crate::{cli::prelude::*, manifest::load, reconcile::validate_loaded};

/// The revision that a change begins from.
#[derive(Debug, Clone, Args)]
pub(super) struct BaseArgs {
    /// Git revision that the change is based on, such as `origin/main`.
    ///
    /// Warnings that its manifests already have are counted, not listed.
    #[arg(help_heading = help::MANIFESTS, long, value_name = "REV", env = "EDGEWRIGHT_BASE")]
    base: Option<String>,
}

/// The identity of a warning in two revisions, without its line, which moves.
type WarningIdentity = (Name, String, Option<String>);

impl BaseArgs {
    /// Removes from a report the warnings that the manifests at the base have, too.
    pub(super) fn remove_known(
        &self,
        report: &mut Report,
        review: &ReviewArgs,
        manifests: &Manifests,
        lints: &LintLevels,
        source: &str,
    ) -> Result<(), Failure> {
        let Some(base) = &self.base else { return Ok(()) };
        let before = review.at(ComparedRevision::Older(base), &manifests.paths, &manifests.loading)?;
        let before = validate_loaded(&load(before.as_ref()), lints, source);
        let mut known: BTreeMap<WarningIdentity, usize> = BTreeMap::new();
        for warning in before.diagnostics.iter().filter(|it| it.severity == Severity::Warning) {
            *known.entry(identity(warning, Some(base))).or_default() += 1;
        }
        let all = report.diagnostics.len();
        report.diagnostics.retain(|it| {
            let left = known.get_mut(&identity(it, None)).filter(|left| it.severity == Severity::Warning && **left > 0);
            left.map(|left| *left -= 1).is_none()
        });
        let hidden = all - report.diagnostics.len();
        if hidden > 0 {
            let message = format!("{} not listed: already in the manifests at `{base}`", number_of(hidden, "warning"));
            let counted = Diagnostic::error(Code::KnownFindings, message).help("remove `--base` to list them all");
            report.diagnostics.push(Diagnostic { severity: Severity::Warning, ..counted });
        }
        Ok(())
    }
}

/// The identity of a warning. The file names of a revision begin with its name.
fn identity(warning: &Diagnostic, revision: Option<&str>) -> WarningIdentity {
    let file = warning.place.as_ref().map(|place| place.file.name.as_str());
    let file = file.map(|name| match revision.and_then(|revision| name.strip_prefix(revision)?.strip_prefix(':')) {
        Some(path) => path.to_owned(),
        None => name.to_owned(),
    });
    (warning.code, warning.message.clone(), file)
}
