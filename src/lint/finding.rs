//! Findings, and what they are about.

use foldhash::HashSet;

use crate::model::{FaultTarget, Key, Path, Suggestions};
use crate::syntax::text::printable;

/// The subject of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A resource.
    Resource(Key),
    /// A module set, by name.
    ModuleSet(String),
}

/// A finding of a lint.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub lint: &'static str,
    pub subject: Subject,
    /// The field, relative to the subject's Spec or to the whole document.
    pub path: Path,
    /// Whether the path is relative to the document, as for `metadata`.
    pub in_document: bool,
    /// Whether the finding is about the resource as a whole: a module alone, as in a module set, does not cause it.
    pub of_whole: bool,
    /// Whether the finding is about the field's key or its value.
    pub target: FaultTarget,
    /// One sentence without a full stop.
    pub message: String,
    /// How to fix it, if the lint's cure also covers other cases.
    pub help: Option<&'static str>,
    /// A related location and its label.
    pub related: Option<(Subject, Path, &'static str)>,
    /// The lint that explains the cause better, if it has a finding about the same place, or one about the related place
    /// that is related to this one.
    pub yields_to: Option<&'static str>,
}

impl Finding {
    /// Adds a related location in a resource.
    pub(crate) fn relate(&mut self, key: &Key, path: impl Into<Path>, label: &'static str) {
        self.related = Some((Subject::Resource(key.clone()), path.into(), label));
    }
}

/// The message about an unknown word, with the known one that was probably meant.
pub(crate) fn unknown_word(what: &str, word: &str, near: Option<&str>) -> String {
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("unknown {what} `{}`{hint}", printable(word))
}

/// Collects findings.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The findings so far.
    pub found: Vec<Finding>,
    /// For misspelt words.
    pub suggestions: Suggestions,
}

impl Findings {
    /// Reports a finding about a field's value; [`run()`](super::run()) fills in the lint's name.
    pub(crate) fn report(&mut self, key: &Key, path: impl Into<Path>, message: impl Into<String>) -> &mut Finding {
        self.about(Subject::Resource(key.clone()), path, message)
    }

    /// Reports every entry of a list that has a fault. Of equal entries, it is the first one: the others are duplicates, which
    /// other lints report.
    pub(crate) fn report_entries<'t>(
        &mut self,
        key: &Key,
        list: &[&str],
        entries: &'t [String],
        mut fault: impl FnMut(&'t str) -> Option<String>,
    ) {
        let mut reported = HashSet::default();
        for (index, entry) in entries.iter().enumerate() {
            if let Some(message) = fault(entry)
                && reported.insert(entry)
            {
                let path = list.iter().fold(Path::root(), |path, step| path.join(*step));
                self.report(key, path.join(index), message);
            }
        }
    }

    /// Reports a finding about any subject.
    pub(crate) fn about(
        &mut self,
        subject: Subject,
        path: impl Into<Path>,
        message: impl Into<String>,
    ) -> &mut Finding {
        let (path, message) = (path.into(), message.into());
        self.found.push_mut(Finding {
            lint: "",
            subject,
            path,
            in_document: false,
            of_whole: false,
            target: FaultTarget::Value,
            message,
            help: None,
            related: None,
            yields_to: None,
        })
    }
}
