//! All resources at one revision: immutable, cheap to clone, shared by every reader.
//!
//! A reader needs a state that does not change under it, and a writer the next one without a copy of everything. The maps of a
//! snapshot are persistent: a change copies the path to it and shares the rest.
//!
//! ```text
//! let (next, changed) = snapshot.apply(&operations, now)?;   // `snapshot` is as before
//! ```
//!
//! `apply.rs` is the only place where an operation takes effect, and `rules.rs` has what resources must meet together. A
//! snapshot is never partly applied: an operation that is refused leaves no trace.

mod apply;
mod bulk_insert;
mod create;
pub(crate) mod entry;
pub(crate) mod lazy_spec;
mod names;
mod rejections;
pub(crate) mod restore;
pub(crate) mod rules;
pub(crate) mod view;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::{OrdMap, OrdSet, ordmap::DiffItem};

use super::author::RejectedManifests;
use super::diagnostics::Fault;
use super::id::Id;
use super::key::Key;
use super::kind::Kind;
use super::kind::api_key::ApiKey;
use entry::{Entry, Tombstone};

/// The state at a revision.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The number of the revision; 0 is the empty store.
    pub revision: u64,
    /// The `order` of the next creation.
    next_order: u64,
    entries: OrdMap<Key, Arc<Entry>>,
    /// For lists of resources without a parent: kind and order. The children of a parent are neighbours in `entries`,
    /// and are sorted on request.
    by_order: OrdMap<(Kind, u64), Key>,
    /// The list positions of deleted resources, from which pagination can continue (D12), and the sources that owned them.
    deleted: OrdMap<Key, Tombstone>,
    /// The sources that had the IDs of deleted children last, whatever their parents were. Few plans ask for them.
    former_sources: OnceLock<OrdMap<(Kind, Id), Arc<str>>>,
    /// For deletions: the referrers of each resource.
    users: OrdMap<Key, OrdSet<Key>>,
    /// For addresses without the parent: the parent of each child with an id of its own. Most programs ask for none.
    parents: OnceLock<OrdMap<(Kind, Id), Id>>,
    /// The manifests that a rollback left, by source (D78).
    rejected: OrdMap<String, Arc<[RejectedManifests]>>,
}

/// Why a change is rejected.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The invalid resource.
    pub key: Key,
    /// The faults, with paths inside the resource's spec.
    pub faults: Vec<Fault>,
}

impl Refusal {
    fn new(key: &Key, fault: Fault) -> Self {
        Self { key: key.clone(), faults: vec![fault] }
    }
}

impl Snapshot {
    /// Returns the resources that were created, changed or deleted since an earlier revision, by key. What both revisions
    /// share is not compared.
    pub(crate) fn changed_since<'a>(&'a self, earlier: &'a Snapshot) -> impl Iterator<Item = &'a Key> {
        earlier.entries.diff(&self.entries).map(|difference| match difference {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) => key,
            DiffItem::Update { new: (key, _), .. } => key,
        })
    }

    /// Returns the snapshot of a later revision from its changes: entries, and tombstones of deleted ones.
    pub fn advance(
        &self,
        revision: u64,
        next_order: u64,
        changed: impl IntoIterator<Item = (Key, Result<Entry, Tombstone>)>,
    ) -> Self {
        self.rewind(revision, next_order, changed.into_iter().map(|(key, change)| (key, change.map_err(Some))))
    }

    /// Returns the snapshot of another revision from what it has instead of each resource that differs: an entry, or the
    /// tombstone of a deletion, if any.
    pub(crate) fn rewind(
        &self,
        revision: u64,
        next_order: u64,
        different: impl IntoIterator<Item = (Key, Result<Entry, Option<Tombstone>>)>,
    ) -> Self {
        let mut other = self.clone();
        // Each parent is refreshed once, however many of its children change.
        let mut parents = BTreeSet::new();
        for (key, different) in different {
            parents.extend(key.parent_key());
            let is_in_place = |entry: &Entry| other.get(&key).is_some_and(|known| known.order == entry.order);
            if !different.as_ref().is_ok_and(is_in_place) {
                other.take_out(&key);
            }
            match different {
                Ok(entry) => other.place(entry),
                Err(Some(tombstone)) => drop(other.deleted.insert(key, tombstone)),
                Err(None) => drop(other.deleted.remove(&key)),
            }
        }
        for parent in parents {
            other.refresh(&parent);
        }
        Self { revision, next_order, former_sources: OnceLock::new(), ..other }
    }

    /// Returns the state without the tombstones of deletions up to a revision.
    #[must_use]
    pub fn without_tombstones(self, upto: u64) -> Self {
        if upto == 0 { self } else { self.with_tombstones_that(|_, it| it.revision > upto) }
    }

    /// Returns the state with those tombstones that stay.
    pub(crate) fn with_tombstones_that(mut self, stays: impl Fn(&Key, &Tombstone) -> bool) -> Self {
        let kept = self.deleted.iter().filter(|(key, it)| stays(key, it));
        self.deleted = kept.map(|(key, it)| (key.clone(), it.clone())).collect();
        self.former_sources.take();
        self
    }

    /// Whether this is the same state as another snapshot in memory: one is a clone of the other, or both are empty. Two
    /// stores can have the same revision and other resources.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let entries = self.entries.ptr_eq(&other.entries) || (self.entries.is_empty() && other.entries.is_empty());
        let deleted = self.deleted.ptr_eq(&other.deleted) || (self.deleted.is_empty() && other.deleted.is_empty());
        entries
            && deleted
            && self.rejected == other.rejected
            && (self.revision, self.next_order) == (other.revision, other.next_order)
    }

    /// The tombstone of a deleted resource.
    pub fn tombstone(&self, key: &Key) -> Option<&Tombstone> {
        self.deleted.get(key)
    }

    /// The source of the last deleted resource with the ID of a key that had one: a route can have had it on another edge.
    pub(crate) fn former_source(&self, key: &Key) -> Option<&str> {
        if !has_own_id(key.kind) {
            return self.tombstone(key)?.source.as_deref();
        }
        let known = self.former_sources.get_or_init(|| index_former_sources(self.tombstones()));
        known.get(&(key.kind, key.id.clone())).map(AsRef::as_ref)
    }

    /// Whether the ID of a key was last that of another source than this one.
    pub(crate) fn was_of_another(&self, key: &Key, source: &str) -> bool {
        self.former_source(key).is_some_and(|former| former != source)
    }

    /// Whether a resource was ever deleted: then earlier states can have tombstones that this one has no longer.
    pub fn has_deleted(&self) -> bool {
        !self.deleted.is_empty() || self.next_order != self.entries.len() as u64
    }

    /// All tombstones.
    pub fn tombstones(&self) -> impl Iterator<Item = (&Key, &Tombstone)> {
        self.deleted.iter()
    }

    /// The `order` of the next creation.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// The list position of a resource, also after its deletion.
    pub fn order_of(&self, key: &Key) -> Option<u64> {
        self.entries.get(key).map(|entry| entry.order).or_else(|| self.tombstone(key).map(|tombstone| tombstone.order))
    }

    /// A resource.
    pub fn get(&self, key: &Key) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// The current description of an API key; empty if it has none, or was deleted.
    pub(crate) fn key_description(&self, id: &Id) -> &str {
        let entry = self.get(&Key::new(Kind::ApiKey, id.clone()));
        entry.and_then(|entry| entry.spec_as::<ApiKey>()).map_or("", |key| key.description.as_str())
    }

    /// A child by its id alone, for addresses without the parent.
    pub fn find_child(&self, kind: Kind, id: &Id) -> Option<&Arc<Entry>> {
        let parent = self.parents().get(&(kind, id.clone()))?;
        self.entries.get(&Key::child(kind, parent.clone(), id.clone()))
    }

    fn parents(&self) -> &OrdMap<(Kind, Id), Id> {
        self.parents.get_or_init(|| index_parents(self.entries.values()))
    }

    /// All resources, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// The number of resources of all kinds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counts the resources of a kind, in linear time.
    pub fn count(&self, kind: Kind) -> usize {
        self.entries.range(Key::new(kind, Id::new(""))..).take_while(|(key, _)| key.kind == kind).count()
    }

    /// Whether the snapshot has no resources.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The children of a resource, oldest first.
    pub fn children(&self, parent: &Key) -> impl Iterator<Item = &Arc<Entry>> {
        let kind = parent.kind.facts().children;
        kind.map(|kind| self.siblings(kind, &parent.id, u64::MAX)).unwrap_or_default().into_iter().rev()
    }

    /// The children of a resource, and the resources that reference it.
    pub(crate) fn dependents(&self, key: &Key) -> impl Iterator<Item = &Key> {
        self.children(key).map(|child| &child.key).chain(self.users(key))
    }

    /// The children of a resource after one of them, by key: they are read one after the other, however many there are.
    pub(crate) fn children_after(&self, parent: &Key, after: Option<&Id>) -> impl Iterator<Item = &Arc<Entry>> {
        let first = Key {
            kind: parent.kind.facts().children.unwrap_or(parent.kind),
            parent: Some(parent.id.clone()),
            id: after.cloned().unwrap_or_else(|| Id::new("")),
        };
        self.entries_after(first.clone()).take_while(move |entry| entry.key.parent == first.parent)
    }

    /// The resources of the kind of a key that come after it, by key, likewise.
    pub(crate) fn entries_after(&self, key: Key) -> impl Iterator<Item = &Arc<Entry>> {
        let kind = key.kind;
        let after = self.entries.range((Bound::Excluded(key), Bound::Unbounded));
        after.take_while(move |(key, _)| key.kind == kind).map(|(_, entry)| entry)
    }

    /// The resources of a kind without a parent, oldest first, from an `order` on.
    pub(crate) fn oldest_first(&self, kind: Kind, from: u64) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_order.range((kind, from)..=(kind, u64::MAX)).filter_map(|(_, key)| self.entries.get(key))
    }

    /// The resources of a kind and parent that were created before `before`, newest first.
    pub fn newest_first(
        &self,
        kind: Kind,
        parent: Option<&Id>,
        before: u64,
    ) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let (siblings, others) = match parent {
            Some(parent) => (Some(self.siblings(kind, parent, before)), None),
            None => (None, Some(self.by_order.range((kind, 0)..(kind, before)).rev())),
        };
        let others = others.into_iter().flatten().filter_map(|(_, key)| self.entries.get(key));
        siblings.into_iter().flatten().chain(others)
    }

    /// The children of a parent that were created before `before`, newest first.
    fn siblings(&self, kind: Kind, parent: &Id, before: u64) -> Vec<&Arc<Entry>> {
        let first = Key::child(kind, parent.clone(), Id::new(""));
        let is_sibling = |key: &Key| key.kind == kind && key.parent.as_ref() == Some(parent);
        let siblings = self.entries.range(first..).take_while(|(key, _)| is_sibling(key)).map(|(_, entry)| entry);
        let mut siblings: Vec<&Arc<Entry>> = siblings.filter(|entry| entry.order < before).collect();
        siblings.sort_unstable_by_key(|entry| Reverse(entry.order));
        siblings
    }

    /// The resources that reference this one.
    pub fn users(&self, key: &Key) -> impl Iterator<Item = &Key> {
        self.users.get(key).into_iter().flatten()
    }

    fn place(&mut self, entry: Entry) {
        if let Some(former) = self.entries.get_mut(&entry.key)
            && former.order == entry.order
            && former.lazy_spec.references() == entry.lazy_spec.references()
        {
            // The other maps have what they need. Each change would copy a path of them.
            *former = Arc::new(entry);
            return;
        }
        let key = entry.key.clone();
        self.forget_references(&key);
        for target in entry.lazy_spec.references() {
            self.users.entry(target.clone()).or_default().insert(key.clone());
        }
        self.next_order = self.next_order.max(entry.order + 1);
        if key.parent.is_none() {
            self.by_order.insert((key.kind, entry.order), key.clone());
        }
        if self.deleted.remove(&key).is_some() {
            self.former_sources.take();
        }
        if let Some(parents) = self.parents.get_mut()
            && let Some(parent) = key.parent.clone().filter(|_| has_own_id(key.kind))
        {
            parents.insert((key.kind, key.id.clone()), parent);
        }
        self.entries.insert(key, Arc::new(entry));
    }

    fn take_out(&mut self, key: &Key) -> Option<Arc<Entry>> {
        self.forget_references(key);
        let entry = self.entries.remove(key)?;
        if key.parent.is_none() {
            self.by_order.remove(&(key.kind, entry.order));
        }
        if let Some(parents) = self.parents.get_mut()
            && has_own_id(key.kind)
        {
            let child = (key.kind, key.id.clone());
            // The ID may be that of a child of another parent by now: one change can delete it here and create it there.
            if parents.get(&child) == key.parent.as_ref() {
                parents.remove(&child);
            }
        }
        Some(entry)
    }

    fn forget_references(&mut self, key: &Key) {
        let Some(entry) = self.entries.get(key).cloned() else { return };
        for target in entry.lazy_spec.references() {
            if let Some(users) = self.users.get_mut(target) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(target);
                }
            }
        }
    }

    /// Drops the cached response of a parent, because it contains its children.
    fn refresh(&mut self, parent: &Key) {
        if let Some(entry) = self.entries.get_mut(parent) {
            // Even if it is not cached yet: a reader of the older revision may be about to cache it.
            *entry = Arc::new(Entry { rendered: Arc::default(), ..Entry::clone(entry) });
        }
    }
}

/// The parents of children with ids of their own.
fn index_parents<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> OrdMap<(Kind, Id), Id> {
    let children = entries.filter(|entry| has_own_id(entry.key.kind));
    children.filter_map(|entry| Some(((entry.key.kind, entry.key.id.clone()), entry.key.parent.clone()?))).collect()
}

/// The last sources of deleted children with ids of their own.
fn index_former_sources<'a>(
    tombstones: impl Iterator<Item = (&'a Key, &'a Tombstone)>,
) -> OrdMap<(Kind, Id), Arc<str>> {
    let mut owned: Vec<_> = tombstones
        .filter(|(key, _)| has_own_id(key.kind))
        .filter_map(|(key, it)| Some((it.revision, (key.kind, key.id.clone()), Arc::clone(it.source.as_ref()?))))
        .collect();
    owned.sort_by_key(|(revision, ..)| *revision);
    // Of several with an ID, the last one stays.
    owned.into_iter().map(|(_, child, source)| (child, source)).collect()
}

/// Whether the ids of a kind are unique in a store, and not only within their parent.
fn has_own_id(kind: Kind) -> bool {
    let info = kind.info();
    info.parent.is_some() && !info.prefix.is_empty()
}
