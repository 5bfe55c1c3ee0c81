//! What lints know about a manifest besides its resource.

use crate::manifest::prelude::*;
use crate::model::Path;

/// Facts about a manifest for the lints.
#[derive(Debug, Clone, Default)]
pub(crate) struct LintFacts {
    /// The paths of plain-text secrets in the spec.
    pub plain_secrets: Vec<Path>,
    /// The document's label keys.
    pub labels: Vec<String>,
    /// The lint levels set by the document's annotations (D27).
    pub levels: BTreeMap<String, Level>,
}

impl LintFacts {
    /// Adds the facts about a subject to those about all manifests.
    pub(crate) fn note(&self, subject: impl Fn() -> Subject, all: &mut ManifestFacts) {
        all.plain_secrets.extend(self.plain_secrets.iter().map(|path| (subject(), path.clone())));
        for label in &self.labels {
            // Most manifests have the same few labels.
            match all.labels.get_mut(label) {
                Some(subjects) => subjects.insert(subject()),
                None => all.labels.entry(label.clone()).or_default().insert(subject()),
            };
        }
    }
}
