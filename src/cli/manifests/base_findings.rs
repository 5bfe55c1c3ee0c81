//! The base of a change: warnings that its manifests have, too, are not listed (D114), and counted if the base was asked for.
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
type WarningIdentity = (Name, String, String);

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
        let hidden = remove_warnings_of(&before, report, [&revision_root(base), ""]);
        if hidden > 0 {
            let message = format!("{} not listed: already in the manifests at `{base}`", number_of(hidden, "warning"));
            let counted = Diagnostic::error(Code::KnownFindings, message).help("remove `--base` to list them all");
            report.diagnostics.push(Diagnostic { severity: Severity::Warning, ..counted });
        }
        Ok(())
    }
}

/// What the names of files at a revision begin with.
pub(super) fn revision_root(revision: &str) -> String {
    format!("{revision}:")
}

/// Removes from a report the warnings that earlier manifests have, too, and returns their number. `roots` are what the names of
/// files begin with, in the earlier manifests and in the report.
pub(super) fn remove_warnings_of(before: &PlanResult, report: &mut Report, roots: [&str; 2]) -> usize {
    let [earlier, later] = roots;
    let mut known: BTreeMap<WarningIdentity, usize> = BTreeMap::new();
    for warning in before.diagnostics.iter().filter_map(|it| identity(it, earlier)) {
        *known.entry(warning).or_default() += 1;
    }
    let all = report.diagnostics.len();
    report.diagnostics.retain(|it| {
        let left = identity(it, later).and_then(|warning| known.get_mut(&warning)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_none()
    });
    all - report.diagnostics.len()
}

/// The identity of a warning, with the name of its file after a root. A file that is the same on disk is named without its
/// revision. A warning without a file is about the review, and not a finding.
fn identity(diagnostic: &Diagnostic, root: &str) -> Option<WarningIdentity> {
    let place = diagnostic.place.as_ref().filter(|_| diagnostic.severity == Severity::Warning)?;
    let name = place.file.name.as_str();
    let inside = name.strip_prefix(root).unwrap_or(name).trim_start_matches('/');
    Some((diagnostic.code, diagnostic.message.clone(), inside.to_owned()))
}
