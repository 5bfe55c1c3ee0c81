//! A revision as those see it who follow the store: its state, and the resources that it changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::model::names::names;
use crate::model::{Author, Claim, Key, Snapshot};

/// A new visible revision, for subscribers.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The state.
    pub snapshot: Arc<Snapshot>,
    /// The resources that differ from the previous revision, in the order of their keys.
    pub changed: Arc<[ChangedResource]>,
    /// The author of the changes.
    pub author: Author,
    /// The time of the commit.
    pub at: Timestamp,
}

/// A revision's change to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeEvent {
    /// The resource is new.
    Created,
    /// The resource existed before.
    Updated,
    /// The resource no longer exists.
    Deleted,
}

names!(ChangeEvent: Created "created", Updated "updated", Deleted "deleted");

impl ChangeEvent {
    /// Returns what happened to a resource that existed before or after, or none if it did neither.
    pub(crate) fn from_existence(before: bool, after: bool) -> Option<Self> {
        match (before, after) {
            (false, true) => Some(ChangeEvent::Created),
            (true, true) => Some(ChangeEvent::Updated),
            (true, false) => Some(ChangeEvent::Deleted),
            (false, false) => None,
        }
    }
}

/// A resource that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedResource {
    /// The key.
    pub key: Key,
    /// The change.
    pub event: ChangeEvent,
    /// The claim of the source that owns it, or that owned it before this revision.
    pub claim: Option<Arc<Claim>>,
}

/// Describes the resources that differ between two revisions, in the order of their keys.
pub(crate) fn changed_resources(
    before: &Snapshot,
    after: &Snapshot,
    changed: &BTreeSet<Key>,
) -> Arc<[ChangedResource]> {
    let describe = |key: &Key| {
        let (old, new) = (before.get(key), after.get(key));
        let event = ChangeEvent::from_existence(old.is_some(), new.is_some())?;
        let claim = [new, old].into_iter().flatten().find_map(|entry| entry.claim.clone());
        Some(ChangedResource { key: key.clone(), event, claim })
    };
    let keys: Vec<&Key> = changed.iter().collect();
    keys.into_par_iter().with_min_len(256).filter_map(describe).collect::<Vec<_>>().into()
}
