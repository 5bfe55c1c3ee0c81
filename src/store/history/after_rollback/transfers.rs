//! The resources that a rollback gives to another source: their former source waits for them, so its manifests lead to
//! another state than before, without declaring anything else (D104).

use std::collections::{BTreeSet, HashMap};

use crate::model::author::RejectedManifests;
use crate::model::{Claim, Entry, Id, Key, Kind, Snapshot};

/// Resources that are left out of a comparison together with what they contain, by their paths.
#[derive(Debug, Default)]
pub(super) struct TransferredPaths(BTreeSet<String>);

/// All resources that change hands between two states.
#[derive(Debug, Default)]
pub(super) struct TransferredKeys(BTreeSet<Key>);

impl TransferredPaths {
    /// The resources that the digest of rejected manifests leaves out.
    pub(super) fn from_rejected(manifests: &RejectedManifests) -> Self {
        Self(manifests.transferred_paths.iter().cloned().collect())
    }

    /// Whether a resource, or the one that contains it, is left out.
    pub(super) fn contains(&self, key: &Key) -> bool {
        let has = |key: &Key| self.0.contains(&key.path());
        !self.0.is_empty() && (has(key) || key.parent_key().is_some_and(|parent| has(&parent)))
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

impl TransferredKeys {
    /// The resources that change hands between a state and the one that a rollback brings back.
    pub(super) fn between(current: &Snapshot, target: &Snapshot) -> Self {
        let mut moved = BTreeSet::new();
        // A resource that was replaced when it changed hands is another one in each of the states.
        let mut replaced: HashMap<(Kind, Option<&Id>, &str), &Claim> = HashMap::new();
        for entry in current.iter() {
            let Some(claim) = &entry.claim else { continue };
            match target.get(&entry.key) {
                Some(then) if then.claim.as_deref().is_some_and(|then| then.source != claim.source) => {
                    moved.insert(entry.key.clone());
                }
                Some(_) => {}
                None if claim.transferred_from.is_some() => {
                    moved.insert(entry.key.clone());
                    replaced.insert((entry.key.kind, entry.key.parent.as_ref(), claim.name.as_str()), claim);
                }
                None => {}
            }
        }
        let gone = |entry: &&Entry| !replaced.is_empty() && current.get(&entry.key).is_none();
        for entry in target.iter().map(|entry| &**entry).filter(gone) {
            let Some(claim) = &entry.claim else { continue };
            let by = replaced.get(&(entry.key.kind, entry.key.parent.as_ref(), claim.name.as_str()));
            if by.is_some_and(|by| by.transferred_from.as_ref() == Some(&claim.source)) {
                moved.insert(entry.key.clone());
            }
        }
        Self(moved)
    }

    /// The resources that a source has in one of the states, without those inside of others.
    pub(super) fn owned_by(&self, source: &str, current: &Snapshot, target: &Snapshot) -> TransferredPaths {
        let is_own = |key: &Key| {
            let owned = |state: &Snapshot| state.get(key).is_some_and(|entry| entry.is_owned_by(source));
            self.0.contains(key) && (owned(current) || owned(target))
        };
        let is_inside = |key: &Key| key.parent_key().is_some_and(|parent| is_own(&parent));
        let own = self.0.iter().filter(|key| is_own(key) && !is_inside(key));
        TransferredPaths(own.map(Key::path).collect())
    }
}
