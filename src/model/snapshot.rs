//! All resources at one revision: immutable, cheap to clone, shared by every reader.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use jiff::Timestamp;

use super::{
    Kind,
    code::Code,
    fault::{Fault, Faults},
    id::Id,
    key::Key,
    lazy_spec::LazySpec,
    operation::{Claim, Operation},
    resource::{AnyResource, Resource},
    rules,
    secret::Secret,
};

/// A resource in a snapshot.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The Spec, which may not be decoded yet.
    pub lazy_spec: LazySpec,
    /// The creation time in whole seconds (D13).
    pub created_at: Timestamp,
    /// The creation order, by which lists are sorted newest first (D12).
    pub order: u64,
    /// The claim of the source that owns it, if any (D29).
    pub claim: Option<Claim>,
    /// The hash of an API key's token.
    pub token: Option<Secret>,
    /// The cached responses to a GET. Empty after a change of the entry or a child.
    pub rendered: Arc<RenderedForms>,
}

/// The cached responses to a GET of one state of a resource, by what the caller may see.
#[derive(Debug, Default)]
pub struct RenderedForms {
    /// With all secrets.
    pub revealed: OnceLock<Box<Rendered>>,
    /// With masked secrets.
    pub masked: OnceLock<Box<Rendered>>,
}

/// A serialised response form; cheap to clone.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// JSON.
    pub body: Bytes,
    /// The strong ETag of these bytes (D25).
    pub etag: Arc<str>,
}

impl Entry {
    /// Whether a manifest source owns it.
    pub fn is_owned_by(&self, source: &str) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.source == source)
    }

    /// The Spec.
    pub fn spec(&self) -> &Arc<dyn AnyResource> {
        self.lazy_spec.spec()
    }

    /// The Spec as its concrete type.
    pub fn spec_as<R: Resource>(&self) -> Option<&R> {
        self.spec().as_any().downcast_ref()
    }
}

/// The state at a revision.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The number of the revision; 0 is the empty store.
    pub revision: u64,
    /// The `order` of the next creation.
    next_order: u64,
    entries: OrdMap<Key, Arc<Entry>>,
    /// For lists: kind, parent and order.
    by_order: OrdMap<(Kind, Option<Id>, u64), Key>,
    /// The list positions of deleted resources, from which pagination can continue (D12).
    deleted: OrdMap<Key, Tombstone>,
    /// For deletions: the referrers of each resource.
    users: OrdMap<Key, OrdSet<Key>>,
    /// For addresses without the parent: the parent of each child with an id of its own.
    parents: OrdMap<(Kind, Id), Id>,
}

/// The record of a deleted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tombstone {
    /// The `order` of the resource.
    pub order: u64,
    /// The revision that deleted it.
    pub revision: u64,
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
    /// Builds a snapshot from all its parts, when a store opens.
    pub fn restore(
        revision: u64,
        next_order: u64,
        deleted: impl IntoIterator<Item = (Key, Tombstone)>,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Self {
        let deleted = deleted.into_iter().collect();
        let mut snapshot = Self { revision, next_order, deleted, ..Self::default() };
        for entry in entries {
            // Nobody has seen a parent without its children yet, so none needs a refresh: that would copy it once per child.
            snapshot.place(entry);
        }
        snapshot
    }

    /// Returns the snapshot of a later revision from its changes: entries, and tombstones of deleted ones.
    pub fn advance(
        &self,
        revision: u64,
        next_order: u64,
        changed: impl IntoIterator<Item = (Key, Result<Entry, Tombstone>)>,
    ) -> Self {
        let mut next = self.clone();
        // Each parent is refreshed once, however many of its children change.
        let mut parents = BTreeSet::new();
        for (key, change) in changed {
            parents.extend(key.parent_key());
            match change {
                Ok(entry) => next.place(entry),
                Err(tombstone) => {
                    next.take_out(&key);
                    next.deleted.insert(key, tombstone);
                }
            }
        }
        for parent in parents {
            next.refresh(&parent);
        }
        Self { revision, next_order, ..next }
    }

    /// Returns the state without the tombstones of deletions up to a revision.
    #[must_use]
    pub fn without_tombstones(mut self, upto: u64) -> Self {
        if upto > 0 {
            self.deleted =
                self.deleted.iter().filter(|(_, it)| it.revision > upto).map(|(key, it)| (key.clone(), *it)).collect();
        }
        self
    }

    /// The tombstone of a deleted resource.
    pub fn tombstone(&self, key: &Key) -> Option<Tombstone> {
        self.deleted.get(key).copied()
    }

    /// All tombstones.
    pub fn tombstones(&self) -> impl Iterator<Item = (&Key, Tombstone)> {
        self.deleted.iter().map(|(key, tombstone)| (key, *tombstone))
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

    /// A child by its id alone, for addresses without the parent.
    pub fn find_child(&self, kind: Kind, id: &Id) -> Option<&Arc<Entry>> {
        let parent = self.parents.get(&(kind, id.clone()))?;
        self.entries.get(&Key::child(kind, parent.clone(), id.clone()))
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
        self.by_order.range((kind, None, 0)..).take_while(|((of, ..), _)| *of == kind).count()
    }

    /// Whether the snapshot has no resources.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The children of a resource, oldest first.
    pub fn children(&self, parent: &Key, kind: Kind) -> impl Iterator<Item = &Arc<Entry>> {
        self.in_order(kind, Some(&parent.id), u64::MAX).rev()
    }

    /// The resources of a kind and parent that were created before `before`, newest first.
    pub fn newest_first(&self, kind: Kind, parent: Option<&Id>, before: u64) -> impl Iterator<Item = &Arc<Entry>> {
        self.in_order(kind, parent, before)
    }

    fn in_order(&self, kind: Kind, parent: Option<&Id>, before: u64) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let parent = parent.cloned();
        self.by_order
            .range((kind, parent.clone(), 0)..(kind, parent, before))
            .rev()
            .filter_map(|(_, key)| self.entries.get(key))
    }

    /// The resources that reference this one.
    pub fn users(&self, key: &Key) -> impl Iterator<Item = &Key> {
        self.users.get(key).into_iter().flatten()
    }

    /// Applies operations in order. Returns the next revision, which is not published yet, and the changed keys. After
    /// each operation all references resolve; rules that span several resources hold at the end.
    pub fn apply(&self, operations: &[Operation], now: Timestamp) -> Result<(Snapshot, BTreeSet<Key>), Refusal> {
        let mut next = self.clone();
        next.revision += 1;
        let mut touched = BTreeSet::new();
        for operation in operations {
            next.apply_one(operation, now, &mut touched)?;
        }
        match rules::check(self, &next, &touched) {
            Some((key, faults)) => Err(Refusal { key, faults }),
            None => Ok((next, touched)),
        }
    }

    fn apply_one(&mut self, operation: &Operation, now: Timestamp, touched: &mut BTreeSet<Key>) -> Result<(), Refusal> {
        match operation {
            Operation::Create { key, spec, claim, token } => {
                if key.kind == Kind::Owner && self.entries.contains_key(key) {
                    // Two new keys may create the same owner.
                    return Ok(());
                }
                if self.entries.contains_key(key) {
                    return Err(Refusal::new(key, Fault::new(Code::Conflict, format!("{key} already exists"))));
                }
                if let Some(parent) = key.parent_key() {
                    self.require_parent(&parent, key, now, touched)?;
                }
                let entry = self.new_entry(key.clone(), Arc::clone(spec), now);
                self.put(Entry { claim: claim.clone(), token: token.clone(), ..entry }, touched)
            }
            Operation::Patch { key, spec, fields } => {
                let entry = self.require(key)?;
                let patched = entry
                    .spec()
                    .patched(spec.as_ref(), fields)
                    .map_err(|error| Refusal::new(key, Fault::new(Code::Internal, error.to_string())))?;
                self.change(&entry, patched, touched)
            }
            Operation::PutModule { host, slot, module } => {
                let entry = match self.entries.get(host) {
                    Some(entry) => Arc::clone(entry),
                    None if host.kind.info().implicit => {
                        Arc::new(self.new_entry(host.clone(), (host.kind.info().empty)(), now))
                    }
                    None => return Err(not_found(host)),
                };
                self.change(&entry, entry.spec().with_modules(&[(slot, Some(Arc::clone(module)))]), touched)
            }
            Operation::DeleteModule { host, slot } => {
                let entry = self.require(host)?;
                if entry.spec().module(slot).is_none() {
                    return Err(Refusal::new(
                        host,
                        Fault::new(Code::NotFound, format!("{host} has no {} module", slot.name)),
                    ));
                }
                let spec = entry.spec().with_modules(&[(slot, None)]);
                let info = host.kind.info();
                if info.implicit && info.slots.iter().all(|slot| spec.module(slot).is_none()) {
                    self.remove(host, touched);
                    return Ok(());
                }
                self.change(&entry, spec, touched)
            }
            Operation::Delete { key, with_children } => {
                self.require(key)?;
                if let Some(kind) = key.kind.info().children {
                    let children: Vec<Key> = self.children(key, kind).map(|child| child.key.clone()).collect();
                    if !with_children && !children.is_empty() {
                        return Err(Refusal::new(key, in_use(key, &children)));
                    }
                    for child in children {
                        self.remove(&child, touched);
                    }
                }
                let users: Vec<Key> = self.users(key).cloned().collect();
                if !users.is_empty() {
                    return Err(Refusal::new(key, in_use(key, &users)));
                }
                self.remove(key, touched);
                if let Some(parent) = key.parent_key()
                    && parent.kind.info().implicit
                    && self.children(&parent, key.kind).next().is_none()
                {
                    self.remove(&parent, touched);
                }
                Ok(())
            }
            Operation::Claim { key, claim } => {
                let entry = self.require(key)?;
                let entry = Entry { claim: claim.clone(), ..Entry::clone(&entry) };
                self.insert(entry);
                touched.insert(key.clone());
                Ok(())
            }
        }
    }

    fn require(&self, key: &Key) -> Result<Arc<Entry>, Refusal> {
        self.entries.get(key).cloned().ok_or_else(|| not_found(key))
    }

    fn require_parent(
        &mut self,
        parent: &Key,
        child: &Key,
        now: Timestamp,
        touched: &mut BTreeSet<Key>,
    ) -> Result<(), Refusal> {
        if self.entries.contains_key(parent) {
            return Ok(());
        }
        if !parent.kind.info().implicit {
            return Err(Refusal { key: child.clone(), ..not_found(parent) });
        }
        let entry = self.new_entry(parent.clone(), (parent.kind.info().empty)(), now);
        self.put(entry, touched)
    }

    fn new_entry(&mut self, key: Key, spec: Arc<dyn AnyResource>, created_at: Timestamp) -> Entry {
        let order = self.next_order;
        self.next_order += 1;
        let lazy_spec = LazySpec::new(spec);
        Entry { key, lazy_spec, created_at, order, claim: None, token: None, rendered: Arc::default() }
    }

    /// Replaces an entry's spec.
    fn change(
        &mut self,
        entry: &Entry,
        spec: Arc<dyn AnyResource>,
        touched: &mut BTreeSet<Key>,
    ) -> Result<(), Refusal> {
        self.put(Entry { lazy_spec: LazySpec::new(spec), rendered: Arc::default(), ..entry.clone() }, touched)
    }

    /// Checks an entry and its references, and inserts it.
    fn put(&mut self, entry: Entry, touched: &mut BTreeSet<Key>) -> Result<(), Refusal> {
        let mut faults = Faults::new();
        entry.spec().check(&mut faults);
        let mut faults = faults.into_vec();
        entry.spec().references(&mut |reference| {
            if !self.entries.contains_key(&reference.target) {
                faults.push(rules::unknown_reference(&reference));
            }
        });
        if !faults.is_empty() {
            return Err(Refusal { key: entry.key, faults });
        }
        touched.insert(entry.key.clone());
        self.insert(entry);
        Ok(())
    }

    fn insert(&mut self, entry: Entry) {
        let parent = entry.key.parent_key();
        self.place(entry);
        if let Some(parent) = parent {
            self.refresh(&parent);
        }
    }

    fn place(&mut self, entry: Entry) {
        let key = entry.key.clone();
        self.forget_references(&key);
        for target in entry.lazy_spec.references() {
            self.users.entry(target.clone()).or_default().insert(key.clone());
        }
        self.next_order = self.next_order.max(entry.order + 1);
        self.by_order.insert((key.kind, key.parent.clone(), entry.order), key.clone());
        self.deleted.remove(&key);
        if let Some(parent) = key.parent.clone().filter(|_| has_own_id(key.kind)) {
            self.parents.insert((key.kind, key.id.clone()), parent);
        }
        self.entries.insert(key, Arc::new(entry));
    }

    fn remove(&mut self, key: &Key, touched: &mut BTreeSet<Key>) {
        if let Some(entry) = self.take_out(key) {
            self.deleted.insert(key.clone(), Tombstone { order: entry.order, revision: self.revision });
        }
        if let Some(parent) = key.parent_key() {
            self.refresh(&parent);
        }
        touched.insert(key.clone());
    }

    fn take_out(&mut self, key: &Key) -> Option<Arc<Entry>> {
        self.forget_references(key);
        let entry = self.entries.remove(key)?;
        self.by_order.remove(&(key.kind, key.parent.clone(), entry.order));
        if has_own_id(key.kind) {
            self.parents.remove(&(key.kind, key.id.clone()));
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

/// Whether the ids of a kind are unique in a store, and not only within their parent.
fn has_own_id(kind: Kind) -> bool {
    let info = kind.info();
    info.parent.is_some() && !info.prefix.is_empty()
}

fn not_found(key: &Key) -> Refusal {
    Refusal::new(key, Fault::new(Code::NotFound, format!("{key} does not exist")))
}

fn in_use(key: &Key, users: &[Key]) -> Fault {
    let named: Vec<String> = users.iter().take(10).map(ToString::to_string).collect();
    let more = users.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Fault::new(Code::InUse, format!("{key} is in use by {}{more}", named.join(", ")))
}
