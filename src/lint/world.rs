//! The input of the lint stage.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{finding::Subject, manifest_facts::ManifestFacts};
use crate::model::{Desired, Entry};

/// The input of all lints.
pub(crate) struct World<'a> {
    /// The resources to judge, by key: all that have no error.
    pub judged: &'a [&'a Desired],
    /// Whether nothing is left out or missing because of an error. A lint that judges what is missing must ask.
    pub is_whole: bool,
    /// The resources of other sources in the store and the routes without a source on edges of sources, by key; empty without a
    /// store.
    pub others: &'a [Arc<Entry>],
    /// Facts about the manifests that the desired state does not include.
    pub manifests: &'a ManifestFacts,
    /// The current time, to judge the validity of certificates.
    pub now: Timestamp,
    /// How many days before a certificate expires it is reported.
    pub expiry_days: u32,
    /// The label keys that the configuration file allows; `None` allows every key.
    pub allowed_labels: Option<&'a BTreeSet<String>>,
}

impl World<'_> {
    /// Whether findings about a subject count. Facts about the manifests include those of resources that are not judged.
    pub(super) fn judges(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Resource(key) => self.judged.binary_search_by(|desired| desired.key.cmp(key)).is_ok(),
            Subject::ModuleSet(_) => true,
        }
    }
}
