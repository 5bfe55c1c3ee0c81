//! What a run is about: the manifests, the source, and what it may do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::cancel::Cancel;
use crate::{
    lint::{self, LINTS, Level},
    manifest::tree::{Disk, Tree},
    model::{
        code::Code,
        fault::{Fault, Path, nearest},
        operation::Author,
    },
    plan::safety::Budget,
    text::printable,
};

/// What a reconciliation is about.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the manifests are.
    pub tree: Arc<dyn Tree>,
    /// The name under which resources are owned (D40).
    pub source: String,
    /// Whether what is owned and no longer declared is deleted.
    pub prune: bool,
    /// Whether what is faulty is set aside with its dependents, and the rest goes on (D44).
    pub isolate: bool,
    /// How much may be deleted (D41).
    pub budget: Budget,
    /// The levels of lints.
    pub lints: LintLevels,
    /// Gives the run up when nobody waits for it any longer (D52).
    pub cancel: Cancel,
}

impl Options {
    /// The usual options for manifests.
    pub fn new(tree: impl Tree + 'static) -> Self {
        Self { tree: Arc::new(tree), ..Self::default() }
    }

    /// The author of what a run changes, for the history.
    pub fn author(&self) -> Author {
        Author::source(&self.source, self.tree.commit()).with_commit_author(self.tree.commit_author())
    }
}

/// The usual options, for no manifests at all.
impl Default for Options {
    fn default() -> Self {
        Self {
            tree: Arc::new(Disk::default()),
            source: DEFAULT_SOURCE.to_owned(),
            prune: true,
            isolate: false,
            budget: Budget::default(),
            lints: LintLevels::default(),
            cancel: Cancel::default(),
        }
    }
}

/// The source name of whoever does not name one (D40).
pub(crate) const DEFAULT_SOURCE: &str = "default";

/// Whether a source can have this name. The reason is for a person.
pub(crate) fn check_source(name: &str) -> Result<(), String> {
    let good = !name.trim().is_empty() && name.len() <= 255 && !name.contains(char::is_control);
    good.then_some(()).ok_or_else(|| "a source's name has 1 to 255 bytes and no control character".into())
}

/// What a configuration says of lints.
#[derive(Debug, Clone, Default)]
pub struct LintLevels {
    /// Levels by lint name.
    pub levels: BTreeMap<String, Level>,
    /// The label keys that manifests may use; none means any.
    pub allowed_labels: Option<BTreeSet<String>>,
    /// How many days before a certificate expires `expiring-certificate` reports it; none means 30.
    pub certificate_expiry_days: Option<u32>,
}

impl LintLevels {
    /// From the names of lints and levels, as people write them. The path of a fault starts at the lint's name.
    pub fn named(
        names: &BTreeMap<String, String>,
        allowed_labels: Option<BTreeSet<String>>,
    ) -> Result<LintLevels, Fault> {
        let mut levels = BTreeMap::new();
        for (name, level) in names {
            let path = Path::root().join(name.as_str());
            if lint::find(name).is_none() {
                let fault = Fault::new(Code::UnknownValue, format!("there is no lint `{}`", printable(name))).at(path);
                return Err(match nearest(name, LINTS.iter().map(|lint| lint.name)) {
                    Some(near) => fault.help(format!("did you mean `{near}`?")),
                    None => fault.help("`edgewright explain` lists them"),
                });
            }
            let level = Level::from_name(level).ok_or_else(|| {
                Fault::new(Code::UnknownValue, format!("`{}` is not a level of a lint", printable(level)))
                    .at(path)
                    .help("the levels are allow, warn and deny")
            })?;
            levels.insert(name.clone(), level);
        }
        Ok(Self { levels, allowed_labels, certificate_expiry_days: None })
    }
}
