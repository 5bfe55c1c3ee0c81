//! The options of a run: the manifests, the source, and the limits.

use unicode_normalization::is_nfkc;

use super::cancel::Cancel;
use crate::lint::validity::findings_valid_until;
use crate::lint::{self, Level};
use crate::manifest::load::reader::{lint_level, unknown_lint};
use crate::manifest::resolve::ResolveOptions;
use crate::manifest::tree::{Disk, GitCommitDetails};
use crate::model::claim::check_source_name;
use crate::model::{Desired, Path};
use crate::plan::deletion_budget::DeletionBudget;
use crate::reconcile::prelude::*;
use crate::syntax::text::{has_token, is_invisible};
use crate::tenancy::SourceScope;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The manifests.
    pub tree: Arc<dyn Tree>,
    /// The name of the source that owns the resources (D40).
    pub source: String,
    /// Whether to delete owned resources that are no longer declared.
    pub prune: bool,
    /// Whether to skip invalid resources and their dependents, and apply the rest (D44).
    pub isolate: bool,
    /// Whether a `metadata.id` that the store does not have creates the resource under this ID: for a store that is
    /// rebuilt, and for resources that were deleted by hand (D27).
    pub recreate_ids: bool,
    /// The deletion limit (D41).
    pub budget: DeletionBudget,
    /// The levels of lints.
    pub lints: LintLevels,
    /// The owner of keys that name none: the caller of the server, or else the bot of the source (D27).
    pub key_owner: Option<Id>,
    /// The limits on what the source may declare (D112).
    pub scope: Arc<SourceScope>,
    /// Whether the plan says how requests are treated differently.
    pub behaviour: bool,
    /// Cancels the run when nobody waits for it (D52).
    pub cancel: Cancel,
}

impl Options {
    /// Creates the default options for manifests.
    pub fn new(tree: impl Tree + 'static) -> Self {
        Self { tree: Arc::new(tree), ..Self::default() }
    }

    /// How the manifests are resolved.
    pub(super) fn resolving(&self) -> ResolveOptions<'_> {
        ResolveOptions { source: &self.source, prune: self.prune, recreate_ids: self.recreate_ids }
    }

    /// Returns the author of the run's changes, for the history.
    pub fn author(&self) -> Author {
        let GitCommitDetails { author, message, .. } = self.tree.commit_details();
        Author::source(&self.source, self.tree.commit()).with_commit_author(author).with_commit_message(message)
    }
}

/// The default options, without manifests.
impl Default for Options {
    fn default() -> Self {
        Self {
            tree: Arc::new(Disk::default()),
            source: DEFAULT_SOURCE.to_owned(),
            prune: true,
            isolate: false,
            recreate_ids: false,
            budget: DeletionBudget::default(),
            lints: LintLevels::default(),
            key_owner: None,
            scope: Arc::default(),
            behaviour: false,
            cancel: Cancel::default(),
        }
    }
}

/// The name of the source if none is set (D40).
pub(crate) const DEFAULT_SOURCE: &str = "default";

/// Validates the name of a source that a store may have.
pub(crate) fn check_source(name: &str) -> Result<(), Fault> {
    if has_token(name) {
        let message = "a source name cannot contain an API token; revoke its key with `edgewright keys revoke`";
        return Err(Fault::new(Code::NotAllowed, message));
    }
    check_source_name(name).map_err(invalid)
}

/// Validates the name of a source that gets resources, more strictly than [`check_source`] (D40).
pub(crate) fn check_new_source(name: &str) -> Result<(), Fault> {
    check_source(name)?;
    if name.contains('*') {
        return Err(invalid(
            "a source name cannot contain `*`, which selects several sources in the scope of an API key",
        ));
    }
    if name.contains(|c: char| c.is_whitespace() || is_invisible(c)) {
        return Err(invalid(
            "a source name cannot contain spaces, invisible characters or direction marks; use a name such as `team-shop`",
        ));
    }
    if !is_nfkc(name) {
        return Err(invalid(
            "a source name must be in the Unicode form NFKC: accented letters as one character, and no full-width letters",
        ));
    }
    Ok(())
}

fn invalid(message: &str) -> Fault {
    Fault::new(Code::InvalidFormat, message)
}

/// The configuration of lints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LintLevels {
    /// Levels by lint name.
    pub levels: BTreeMap<String, Level>,
    /// The label keys that manifests may use; none means any.
    pub allowed_labels: Option<BTreeSet<String>>,
    /// How many days before a certificate expires `expiring-certificate` reports it; none means 30.
    pub certificate_expiry_days: Option<u32>,
}

impl LintLevels {
    /// Parses the names of lints and levels. The path of a fault starts at the lint's name.
    pub fn named(
        names: &BTreeMap<String, String>,
        allowed_labels: Option<BTreeSet<String>>,
    ) -> Result<LintLevels, Fault> {
        let mut levels = BTreeMap::new();
        for (name, level) in names {
            let path = Path::root().join(name.as_str());
            if lint::find(name).is_none() {
                return Err(unknown_lint(name, "").at(path));
            }
            levels.insert(name.clone(), lint_level(level).map_err(|fault| fault.at(path))?);
        }
        Ok(Self { levels, allowed_labels, certificate_expiry_days: None })
    }

    /// How many days before a certificate expires it is reported.
    pub(super) fn expiry_days(&self) -> u32 {
        self.certificate_expiry_days.unwrap_or(lint::EXPIRY_DAYS)
    }

    /// The time from which lints may report something else about resources that are judged now.
    pub(crate) fn valid_until(&self, desired: &BTreeMap<Key, Desired>) -> Option<Timestamp> {
        findings_valid_until(desired, clock::now(), self.expiry_days())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_of_sources_that_differ_only_in_their_encoding_are_the_same() {
        for name in ["shop", "shop/eu", "größe", "caf\u{e9}", "магазин", "店"] {
            assert!(check_new_source(name).is_ok(), "{name}");
        }
        for name in ["cafe\u{301}", "\u{ff53}hop", "\u{fb01}sh", "sh\u{200d}op", "sh op", "shop*"] {
            let refused = check_new_source(name);
            assert!(refused.is_err_and(|fault| fault.code == Code::InvalidFormat), "{name}");
            // A store may have it from an earlier version.
            assert!(check_source(name).is_ok(), "{name}");
        }
    }
}
