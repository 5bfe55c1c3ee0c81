//! The desired state of one source, and what was found in it.

use std::collections::HashSet;

use super::origin::DocumentKey;
use crate::manifest::load::declaration::{ModuleSet, Origins};
use crate::manifest::prelude::*;
use crate::model::{Entry, Path};

/// The desired state of one source.
#[derive(Debug, Default)]
pub(crate) struct Resolution {
    /// The desired resources by key.
    pub desired: BTreeMap<Key, Desired>,
    /// The declaration of each resource.
    pub origins: Origins,
    /// The module sets.
    pub(super) sets: BTreeMap<String, Arc<ModuleSet>>,
    /// Facts for the lints.
    pub facts: ManifestFacts,
    /// Errors in names and references; with those of all rules and lints, once the resources were judged.
    pub diagnostics: Vec<Diagnostic>,
    /// The skipped resources (D44).
    pub left_out: Vec<Desired>,
    /// Incomplete resources: the document, a module set or a reference has errors.
    pub faulty: BTreeSet<Key>,
    /// Pairs of a resource and the one that gives up its name: the first cannot be applied without the second.
    pub after: Vec<(Key, Key)>,
    /// Whether resources move between this source and others.
    pub(super) has_transfers: bool,
    /// Whether a rollback returned declared resources to other sources, or undeclared ones to this source.
    pub transfer_was_undone: bool,
    /// Whether resources name a former name.
    pub(super) has_renames: bool,
    /// The fields with a secret that the store has, because the manifests have none (D106).
    pub(super) stored_secrets: BTreeSet<(Key, Path)>,
    /// The resources of other sources, those that [`Resolution::keep_undeclared`] counts as such, and the routes without a source on
    /// edges of sources. Those that the source takes over are its own.
    pub others: Arc<Vec<Arc<Entry>>>,
    /// The resources that may differ from those in the store. None if these may be any.
    pub may_differ: Option<BTreeSet<Key>>,
    /// Whether nothing depends on edges of other sources, or on what its edge requires (D103).
    pub is_self_contained: bool,
}

impl Resolution {
    /// Whether each resource has the identity that its name always had: nothing is faulty or renamed.
    pub(crate) fn keeps_all_names(&self) -> bool {
        self.diagnostics.is_empty()
            && self.faulty.is_empty()
            && self.after.is_empty()
            && !self.has_transfers
            && !self.has_renames
    }

    /// The resources without errors, by key.
    pub(crate) fn sound_resources(&self) -> Vec<&Desired> {
        let all = self.desired.values();
        if self.faulty.is_empty() { all.collect() } else { all.filter(|it| !self.faulty.contains(&it.key)).collect() }
    }

    /// Marks the dependents of faulty resources as faulty, too.
    pub(crate) fn spread_faults(&mut self) {
        while !self.faulty.is_empty() {
            let before = self.faulty.len();
            // Without the rename that frees its name, a resource would overwrite the renamed one.
            for (key, first) in &self.after {
                if self.faulty.contains(first) {
                    self.faulty.insert(key.clone());
                }
            }
            // Parents and referenced kinds come first, so one pass finds all dependents.
            for (key, desired) in &self.desired {
                let mut depends = key.parent_key().is_some_and(|parent| self.faulty.contains(&parent));
                desired.spec.references(&mut |reference| depends |= self.faulty.contains(&reference.target));
                if depends {
                    self.faulty.insert(key.clone());
                }
            }
            if self.faulty.len() == before {
                break;
            }
        }
    }

    /// Counts the resources of the source that nothing declares as those of others: nothing is deleted, so they stay in service.
    /// Resources that were counted before, in the last run or before more was set aside, are counted anew.
    pub(crate) fn keep_undeclared(&mut self, snapshot: &Snapshot, source: &str) {
        let is_kept = |it: &&Arc<Entry>| it.is_owned_by(source) && !self.desired.contains_key(&it.key);
        let of_others = self.others.iter().filter(|it| !it.is_owned_by(source));
        let mut others: Vec<Arc<Entry>> = snapshot.iter().filter(is_kept).chain(of_others).cloned().collect();
        others.sort_by(|one, other| one.key.cmp(&other.key));
        self.others = Arc::new(others);
    }

    /// Leaves out the faulty resources, their dependents, and all other resources of the documents of these: half a document
    /// can open what the whole one protects.
    pub(crate) fn set_aside(&mut self) {
        loop {
            self.spread_faults();
            let document = |key: &Key| self.origins.get(key).map(|it| it.origin.document_key());
            let documents: HashSet<DocumentKey> = self.faulty.iter().filter_map(document).collect();
            let is_sound = |key: &&Key| !self.faulty.contains(*key);
            let is_part = |key: &&Key| document(key).is_some_and(|document| documents.contains(&document));
            let rest: Vec<Key> = self.desired.keys().filter(is_sound).filter(is_part).cloned().collect();
            if rest.is_empty() {
                break;
            }
            self.faulty.extend(rest);
        }
        self.left_out.extend(self.faulty.iter().filter_map(|key| self.desired.remove(key)));
    }
}
