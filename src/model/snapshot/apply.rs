//! The effect of operations on a state: the only place where an operation takes effect.

use std::{borrow::Borrow, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use rayon::prelude::*;

use super::entry::{Entry, Tombstone};
use super::lazy_spec::LazySpec;
use super::{Refusal, Snapshot, has_own_id, rules};
use crate::background::yield_to_requests;
use crate::model::diagnostics::{Code, Fault, Faults};
use crate::model::id::Id;
use crate::model::key::Key;
use crate::model::kind::Kind;
use crate::model::module::Slot;
use crate::model::operation::Operation;
use crate::model::resource::any_resource::AnyResource;

impl Snapshot {
    /// Applies operations in order. Returns the next revision, which is not published yet, and the changed keys. After
    /// each operation all references resolve; rules that span several resources hold at the end.
    pub fn apply<O: Borrow<Operation> + Sync>(
        &self,
        operations: &[O],
        now: Timestamp,
    ) -> Result<(Snapshot, BTreeSet<Key>), Refusal> {
        self.index_parents_for(operations);
        let is_checked = check_at_once(operations);
        let created = if is_checked { self.with_created(operations, now) } else { None };
        let (next, touched) = match created {
            Some(created) => created,
            None => self.apply_each(operations, now, is_checked)?,
        };
        match rules::check(self, &next, &touched) {
            Some((key, faults)) => Err(Refusal { key, faults }),
            None => Ok((next, touched)),
        }
    }

    /// Makes the map of parents before the next state is made of this one, if that gets more children: it keeps the map up to
    /// date, and so do all states after it.
    fn index_parents_for<O: Borrow<Operation>>(&self, operations: &[O]) {
        let created = operations.iter().find_map(|operation| match Borrow::<Operation>::borrow(operation) {
            Operation::Create { key, .. } if has_own_id(key.kind) => Some(key.kind),
            _ => None,
        });
        if created.is_some_and(|kind| self.entries_after(Key::new(kind, Id::new(""))).next().is_some()) {
            self.parents();
        }
    }

    /// Returns the faults of a change that are not those of its resource's own fields: references to missing resources, and
    /// violations of rules that span several resources. Faults of fields do not hide them (D9).
    pub(crate) fn faults_beside_fields(&self, operation: &Operation) -> Vec<Fault> {
        let former = |key: &Key| self.entries.get(key).map(|entry| Arc::clone(entry.spec()));
        let changed = match operation {
            // The owner of a new key is created with it.
            Operation::Create { key, spec, .. } if key.kind != Kind::ApiKey => Some((key, Arc::clone(spec))),
            Operation::Patch { key, spec, fields } => {
                let patched = former(key).and_then(|former| former.patched(spec.as_ref(), fields).ok());
                patched.map(|patched| (key, patched))
            }
            Operation::PutModule { host, slot, module } => {
                former(host).map(|former| (host, former.with_modules(&[(slot, Some(Arc::clone(module)))])))
            }
            _ => None,
        };
        let Some((key, spec)) = changed else { return Vec::new() };
        let entry = match self.entries.get(key) {
            Some(former) => Entry { lazy_spec: LazySpec::new(spec), ..Entry::clone(former) },
            None => Entry::new(key.clone(), spec, Timestamp::UNIX_EPOCH, self.next_order),
        };
        let mut faults = self.unknown_references(&entry);
        faults.extend(self.rule_faults(entry));
        faults
    }

    /// Returns a fault for each reference of an entry to a missing resource.
    fn unknown_references(&self, entry: &Entry) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !entry.lazy_spec.references().is_empty() {
            entry.spec().references(&mut |reference| {
                if !self.entries.contains_key(&reference.target) {
                    faults.push(rules::unknown_reference(&reference));
                }
            });
        }
        faults
    }

    /// Returns the faults of the rules that span several resources, if this state had an entry.
    fn rule_faults(&self, entry: Entry) -> Vec<Fault> {
        let (mut faulty, key) = (self.clone(), entry.key.clone());
        faulty.place(entry);
        rules::check(self, &faulty, &BTreeSet::from([key])).map(|(_, faults)| faults).unwrap_or_default()
    }

    fn apply_each<O: Borrow<Operation>>(
        &self,
        operations: &[O],
        now: Timestamp,
        is_checked: bool,
    ) -> Result<(Snapshot, BTreeSet<Key>), Refusal> {
        let mut application = Application { next: self.clone(), now, is_checked, touched: BTreeSet::new() };
        application.next.revision += 1;
        for operation in operations {
            application.apply(Borrow::<Operation>::borrow(operation))?;
        }
        let Application { mut next, touched, .. } = application;
        next.refresh_parents(&touched);
        Ok((next, touched))
    }

    fn new_entry(&mut self, key: Key, spec: Arc<dyn AnyResource>, created_at: Timestamp) -> Entry {
        self.next_order += 1;
        Entry::new(key, spec, created_at, self.next_order - 1)
    }

    /// Drops the cached responses of the parents of changed resources: each once, however many of its children change.
    pub(super) fn refresh_parents(&mut self, touched: &BTreeSet<Key>) {
        let mut last = None;
        // The children of a parent are neighbours.
        for key in touched.iter().filter(|key| key.parent.is_some()) {
            yield_to_requests();
            let parent = key.parent_key();
            if parent != last {
                parent.iter().for_each(|parent| self.refresh(parent));
                last = parent;
            }
        }
    }
}

/// The application of operations, one after another.
struct Application {
    next: Snapshot,
    now: Timestamp,
    /// Whether the Specs of the operations that create resources were checked before.
    is_checked: bool,
    touched: BTreeSet<Key>,
}

impl Application {
    fn apply(&mut self, operation: &Operation) -> Result<(), Refusal> {
        match operation {
            Operation::Create { key, spec, claim, token } => {
                let exists = self.next.entries.contains_key(key);
                if exists && key.kind == Kind::Owner {
                    // Two new keys may create the same owner.
                    return Ok(());
                }
                if exists {
                    let message = format!("{} already exists", self.next.name_of(key));
                    return Err(Refusal::new(key, Fault::new(Code::Conflict, message)));
                }
                if let Some(parent) = key.parent_key() {
                    self.require_parent(&parent, key)?;
                }
                let faults = if self.is_checked { Vec::new() } else { faults_of(spec.as_ref()) };
                let entry = self.next.new_entry(key.clone(), Arc::clone(spec), self.now);
                self.put(Entry { claim: claim.clone(), token: token.clone(), ..entry }, faults)
            }
            Operation::Patch { key, spec, fields } => {
                let entry = self.require(key)?;
                let patched = entry.spec().patched(spec.as_ref(), fields);
                let internal = |error: serde_json::Error| Fault::new(Code::Internal, error.to_string());
                self.change(&entry, patched.map_err(|error| Refusal::new(key, internal(error)))?)
            }
            Operation::PutModule { host, slot, module } => {
                let entry = match self.next.entries.get(host) {
                    Some(entry) => Arc::clone(entry),
                    None if host.kind.info().implicit => Arc::new(self.empty_entry(host)),
                    None => return Err(not_found(host)),
                };
                self.change(&entry, entry.spec().with_modules(&[(slot, Some(Arc::clone(module)))]))
            }
            Operation::DeleteModule { host, slot } => self.delete_module(host, slot),
            Operation::Delete { key, with_children } => self.delete(key, *with_children),
            Operation::Claim { key, claim } => {
                let entry = self.require(key)?;
                self.next.place(Entry { claim: claim.clone(), ..Entry::clone(&entry) });
                self.touched.insert(key.clone());
                Ok(())
            }
        }
    }

    fn delete_module(&mut self, host: &Key, slot: &'static Slot) -> Result<(), Refusal> {
        let entry = self.require(host)?;
        if entry.spec().module(slot).is_none() {
            let message = format!("{} has no {} module", self.next.name_of(host), slot.name);
            return Err(Refusal::new(host, Fault::new(Code::NotFound, message)));
        }
        let spec = entry.spec().with_modules(&[(slot, None)]);
        let info = host.kind.info();
        if info.implicit && info.slots.iter().all(|slot| spec.module(slot).is_none()) {
            self.remove(host);
            return Ok(());
        }
        self.change(&entry, spec)
    }

    fn delete(&mut self, key: &Key, with_children: bool) -> Result<(), Refusal> {
        self.require(key)?;
        let children: Vec<Key> = self.next.children(key).map(|child| child.key.clone()).collect();
        if !with_children && !children.is_empty() {
            return Err(self.in_use(key, &children));
        }
        for child in children {
            self.remove(&child);
        }
        let users: Vec<Key> = self.next.users(key).cloned().collect();
        if !users.is_empty() {
            return Err(self.in_use(key, &users));
        }
        self.remove(key);
        if let Some(parent) = key.parent_key()
            && parent.kind.info().implicit
            && self.next.children(&parent).next().is_none()
        {
            self.remove(&parent);
        }
        Ok(())
    }

    fn in_use(&self, key: &Key, users: &[Key]) -> Refusal {
        let message = format!("{} is in use by {}", self.next.name_of(key), self.next.names_of(users));
        Refusal::new(key, Fault::new(Code::InUse, message))
    }

    fn require(&self, key: &Key) -> Result<Arc<Entry>, Refusal> {
        self.next.entries.get(key).cloned().ok_or_else(|| not_found(key))
    }

    fn require_parent(&mut self, parent: &Key, child: &Key) -> Result<(), Refusal> {
        if self.next.entries.contains_key(parent) {
            return Ok(());
        }
        if !parent.kind.info().implicit {
            return Err(Refusal { key: child.clone(), ..not_found(parent) });
        }
        let entry = self.empty_entry(parent);
        self.put(entry, Vec::new())
    }

    fn empty_entry(&mut self, key: &Key) -> Entry {
        self.next.new_entry(key.clone(), (key.kind.info().empty)(), self.now)
    }

    /// Replaces an entry's spec.
    fn change(&mut self, entry: &Entry, spec: Arc<dyn AnyResource>) -> Result<(), Refusal> {
        let faults = new_faults(entry.spec().as_ref(), spec.as_ref());
        self.put(Entry { lazy_spec: LazySpec::new(spec), rendered: Arc::default(), ..entry.clone() }, faults)
    }

    /// Inserts an entry without faults, if its references resolve.
    fn put(&mut self, entry: Entry, mut faults: Vec<Fault>) -> Result<(), Refusal> {
        faults.extend(self.next.unknown_references(&entry));
        let key = entry.key.clone();
        if faults.is_empty() {
            self.next.place(entry);
            self.touched.insert(key);
            return Ok(());
        }
        // One response reports all faults (D9), also those of the rules that are checked last.
        faults.extend(self.next.rule_faults(entry));
        Err(Refusal { key, faults })
    }

    fn remove(&mut self, key: &Key) {
        let next = &mut self.next;
        if let Some(entry) = next.take_out(key) {
            let source = entry.source().map(Arc::from);
            next.deleted.insert(key.clone(), Tombstone { order: entry.order, revision: next.revision, source });
            next.former_sources.take();
        }
        self.touched.insert(key.clone());
    }
}

/// The operations from which on it pays to check Specs on all cores.
const MANY_OPERATIONS: usize = 1000;

/// Checks what many operations create on all cores. If there is a fault, the operations check one after another, which
/// finds the first one.
fn check_at_once<O: Borrow<Operation> + Sync>(operations: &[O]) -> bool {
    let is_valid = |operation: &O| {
        yield_to_requests();
        match Borrow::<Operation>::borrow(operation) {
            Operation::Create { spec, .. } => faults_of(spec.as_ref()).is_empty(),
            _ => true,
        }
    };
    operations.len() >= MANY_OPERATIONS && operations.par_iter().with_min_len(256).all(is_valid)
}

fn faults_of(spec: &dyn AnyResource) -> Vec<Fault> {
    let mut faults = Faults::new();
    spec.check(&mut faults);
    faults.into_vec()
}

/// Returns the faults of a changed Spec that the former one does not have: a value that an earlier version accepted does not
/// prevent other changes (D2).
fn new_faults(former: &dyn AnyResource, changed: &dyn AnyResource) -> Vec<Fault> {
    let mut faults = faults_of(changed);
    if !faults.is_empty() {
        let known = faults_of(former);
        // A record that cannot be decoded would be lost.
        faults.retain(|fault| fault.code == Code::StoreCorrupt || !known.contains(fault));
    }
    faults
}

fn not_found(key: &Key) -> Refusal {
    Refusal::new(key, Fault::new(Code::NotFound, format!("{key} does not exist")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::model::claim::Claim;
    use crate::model::kind::https_edge::HttpsEdge;
    use crate::model::kind::ip_restriction::{IpRestriction, Traffic};

    fn edge(name: &str) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{name}")))
    }

    /// A route of an edge. All have one ID.
    fn route(edge: &str) -> Key {
        Key::child(Kind::HttpsEdgeRoute, self::edge(edge).id, Id::new("edghtsrt_1"))
    }

    fn create(key: Key) -> Operation {
        let spec: Arc<dyn AnyResource> = match key.kind {
            Kind::HttpsEdge => Arc::new(HttpsEdge::default()),
            _ => (key.kind.info().restore)(r#"{"match_type":"path_prefix","match":"/"}"#).unwrap(),
        };
        Operation::create(key, spec)
    }

    fn delete(key: Key) -> Operation {
        Operation::Delete { key, with_children: false }
    }

    fn after(state: &Snapshot, operations: &[Operation]) -> Snapshot {
        state.apply(operations, Timestamp::UNIX_EPOCH).unwrap().0
    }

    #[test]
    fn a_route_has_an_id_that_no_route_of_another_edge_has() {
        let refused = |state: &Snapshot, operations: &[Operation]| {
            let refusal = state.apply(operations, Timestamp::UNIX_EPOCH).unwrap_err();
            (refusal.key, refusal.faults[0].code)
        };
        let edges = after(&Snapshot::default(), &["a", "b"].map(|name| create(edge(name))));
        assert_eq!(refused(&edges, &["a", "b"].map(|name| create(route(name)))), (route("b"), Code::Conflict));
        let state = after(&edges, &[create(route("a"))]);
        assert_eq!(refused(&state, &[create(route("b"))]), (route("b"), Code::Conflict));
        // One change can move it, and it is found where it is, whichever of the two came first.
        let found = |state: &Snapshot| state.find_child(Kind::HttpsEdgeRoute, &route("a").id).map(|it| it.key.clone());
        let there = after(&state, &[create(route("b")), delete(route("a"))]);
        let back = after(&there, &[create(route("a")), delete(route("b"))]);
        let again = after(&back, &[delete(route("a")), create(route("b"))]);
        assert_eq!([there, back, again].map(|it| found(&it)), ["b", "a", "b"].map(|name| Some(route(name))));
    }

    #[test]
    fn a_tombstone_has_the_last_source_of_the_resource() {
        let claim = |source: &str| Some(Arc::new(Claim::new(source, "a")));
        let owned = |source: &str| Operation::Claim { key: edge("a"), claim: claim(source) };
        let former = |operations: &[Operation]| {
            let state = after(&after(&Snapshot::default(), operations), &[delete(edge("a"))]);
            state.tombstone(&edge("a")).unwrap().source.as_deref().map(str::to_owned)
        };
        assert_eq!(former(&[create(edge("a"))]), None);
        assert_eq!(former(&[create(edge("a")), owned("shop")]).as_deref(), Some("shop"));
        assert_eq!(former(&[create(edge("a")), owned("shop"), owned("docs")]).as_deref(), Some("docs"));
    }

    #[test]
    fn a_stored_value_that_is_refused_now_does_not_prevent_other_changes() {
        let key = Key::new(Kind::IpRestriction, Id::new("ipx_1"));
        let with = |description: &str, policy: &str| -> Arc<dyn AnyResource> {
            Arc::new(IpRestriction {
                description: description.to_owned(),
                r#type: Some(Traffic::Api),
                ip_policy_ids: vec![policy.to_owned()],
                ..IpRestriction::default()
            })
        };
        let now = Timestamp::UNIX_EPOCH;
        let stored = Snapshot::default().new_entry(key.clone(), with("", "a b"), now);
        let state = Snapshot::restore(1, 1, [], [stored]);
        let patch = |spec: Arc<dyn AnyResource>, field: &str| {
            let operation = Operation::Patch { key: key.clone(), spec, fields: vec![field.to_owned()] };
            state.apply(&[operation], now).map(|(next, _)| next)
        };
        let next = patch(with("office", ""), "description").unwrap();
        assert!(next.get(&key).unwrap().spec().same(with("office", "a b").as_ref()));
        let refused = patch(with("", "c d"), "ip_policy_ids").unwrap_err();
        assert_eq!(refused.faults[0].path.to_string(), "/ip_policy_ids/0");
        let create = Operation::create(key.clone(), with("", "a b"));
        assert!(Snapshot::default().apply(&[create], now).is_err());
    }
}
