//! The facts about manifests that lints judge beside the resources.

use foldhash::{HashMap, HashSet};

use super::finding::Subject;
use crate::model::{Key, Path};

/// Facts about manifests that the desired state does not include.
#[derive(Debug, Default)]
pub(crate) struct ManifestFacts {
    /// Module sets that no route uses.
    pub unused_module_sets: Vec<String>,
    /// The resources that list a module set twice, with their `modules_from`.
    pub repeated_module_sets: Vec<(Key, Vec<String>)>,
    /// The locations of secrets in plain text.
    pub plain_secrets: Vec<(Subject, Path)>,
    /// The subjects whose documents have a label, by its key. Nearly all documents have labels, with few keys.
    pub labels: HashMap<String, HashSet<Subject>>,
}

impl ManifestFacts {
    /// Removes the facts about some subjects.
    pub(crate) fn forget(&mut self, subjects: &HashSet<Subject>) {
        self.repeated_module_sets.retain(|(key, _)| !subjects.contains(&Subject::Resource(key.clone())));
        self.plain_secrets.retain(|(subject, _)| !subjects.contains(subject));
        self.labels.retain(|_, labelled| {
            subjects.iter().for_each(|subject| {
                labelled.remove(subject);
            });
            !labelled.is_empty()
        });
    }
}
