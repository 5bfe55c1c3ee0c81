//! The creation of many resources, such as by a first plan: the same as one after another, but on all cores and in the
//! order of the maps.

use std::{borrow::Borrow, collections::BTreeSet, sync::Arc};

use foldhash::{HashMap, HashMapExt as _};
use jiff::Timestamp;
use rayon::prelude::*;

use super::bulk_insert::insert_sorted;
use super::entry::Entry;
use super::{Snapshot, has_own_id};
use crate::background::yield_to_requests;
use crate::model::key::Key;
use crate::model::operation::Operation;

impl Snapshot {
    /// Returns the state after operations that only create resources, and their keys. The Specs must be checked. Returns none
    /// if an operation does something else or would be refused: then they are applied one after another.
    pub(super) fn with_created<O: Borrow<Operation> + Sync>(
        &self,
        operations: &[O],
        now: Timestamp,
    ) -> Option<(Snapshot, BTreeSet<Key>)> {
        let creates = |operation: &O| matches!(Borrow::<Operation>::borrow(operation), Operation::Create { .. });
        if !operations.iter().all(creates) {
            return None;
        }
        let entry = |(number, operation): (usize, &O)| {
            let Operation::Create { key, spec, claim, token } = Borrow::<Operation>::borrow(operation) else {
                return None;
            };
            yield_to_requests();
            let order = self.next_order + number as u64;
            let entry = Entry::new(key.clone(), Arc::clone(spec), now, order);
            Some(Arc::new(Entry { claim: claim.clone(), token: token.clone(), ..entry }))
        };
        let created = operations.par_iter().enumerate().with_min_len(256).map(entry);
        let mut created = created.collect::<Option<Vec<Arc<Entry>>>>()?;
        if !self.can_create(&created) {
            return None;
        }
        created.par_sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let mut next = self.clone();
        next.revision += 1;
        let keys = || created.iter().map(|entry| entry.key.clone()).collect::<BTreeSet<Key>>();
        let ((), keys) = rayon::join(|| next.place_all(&created), keys);
        // No client has seen a response of a new parent.
        if !self.is_empty() {
            next.refresh_parents(&keys);
        }
        Some((next, keys))
    }

    /// Whether no resource exists, and each comes after its parent and what it references.
    fn can_create(&self, created: &[Arc<Entry>]) -> bool {
        let mut positions: HashMap<&Key, usize> = HashMap::with_capacity(created.len());
        for (number, entry) in created.iter().enumerate() {
            yield_to_requests();
            if positions.insert(&entry.key, number).is_some() || self.get(&entry.key).is_some() {
                return false;
            }
        }
        let exists = |key: &Key, number: usize| {
            positions.get(key).is_some_and(|position| *position < number) || self.get(key).is_some()
        };
        let fits = |(number, entry): (usize, &Arc<Entry>)| {
            yield_to_requests();
            let has_parent = entry.key.parent_key().is_none_or(|parent| exists(&parent, number));
            has_parent && entry.lazy_spec.references().iter().all(|target| exists(target, number))
        };
        created.par_iter().enumerate().with_min_len(256).all(fits)
    }

    /// Adds new entries, which are sorted by key.
    pub(super) fn place_all(&mut self, added: &[Arc<Entry>]) {
        if !self.deleted.is_empty() {
            for entry in added {
                self.deleted.remove(&entry.key);
            }
            self.former_sources.take();
        }
        if let Some(parents) = self.parents.get_mut() {
            for key in added.iter().map(|entry| &entry.key).filter(|key| has_own_id(key.kind)) {
                if let Some(parent) = &key.parent {
                    parents.insert((key.kind, key.id.clone()), parent.clone());
                }
            }
        }
        let Self { entries, by_order, users, next_order, .. } = self;
        let by_key = || insert_sorted(entries, added, |entry| (entry.key.clone(), Arc::clone(entry)));
        let others = || {
            let roots = added.iter().filter(|entry| entry.key.parent.is_none());
            let mut places: Vec<_> = roots.map(|entry| ((entry.key.kind, entry.order), &entry.key)).collect();
            places.sort_unstable();
            insert_sorted(by_order, &places, |(place, key)| (*place, Key::clone(key)));
            for entry in added {
                yield_to_requests();
                *next_order = (*next_order).max(entry.order + 1);
                for target in entry.lazy_spec.references() {
                    users.entry(target.clone()).or_default().insert(entry.key.clone());
                }
            }
        };
        rayon::join(by_key, others);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::id::Id;
    use crate::model::kind::Kind;
    use crate::model::kind::https_edge::HttpsEdge;
    use crate::model::resource::any_resource::AnyResource;

    const MANY: usize = 1200;

    fn edge(number: usize) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{}", number / 3)))
    }

    fn key(number: usize) -> Key {
        if number.is_multiple_of(3) {
            return edge(number);
        }
        // Not in the order of creation.
        Key::child(Kind::HttpsEdgeRoute, edge(number).id, Id::new(&format!("edghtsrt_{}", 100_000 - number)))
    }

    fn create(number: usize) -> Operation {
        let key = key(number);
        let spec: Arc<dyn AnyResource> = match key.kind {
            Kind::HttpsEdge => Arc::new(HttpsEdge::default()),
            _ => (key.kind.info().restore)(&format!(r#"{{"match_type":"path_prefix","match":"/{number}"}}"#)).unwrap(),
        };
        Operation::create(key, spec)
    }

    fn apply(snapshot: &Snapshot, operations: &[Operation]) -> Snapshot {
        snapshot.apply(operations, Timestamp::UNIX_EPOCH).unwrap().0
    }

    /// Everything that can be seen of a state.
    fn seen(snapshot: &Snapshot) -> Vec<String> {
        let entries = snapshot.iter().map(|entry| {
            let children: Vec<&Key> = snapshot.children(&entry.key).map(|child| &child.key).collect();
            let users: Vec<&Key> = snapshot.users(&entry.key).collect();
            let found = snapshot.find_child(entry.key.kind, &entry.key.id).map(|child| &child.key);
            format!("{:?} {} {children:?} {users:?} {found:?}", entry.key, entry.order)
        });
        let deleted = snapshot.tombstones().map(|(key, _)| format!("deleted {key:?}"));
        entries.chain(deleted).chain([format!("{} {}", snapshot.next_order(), snapshot.len())]).collect()
    }

    #[test]
    fn many_creations_at_once_are_what_they_are_one_after_another() {
        let operations: Vec<Operation> = (0..MANY).map(create).collect();
        let empty = Snapshot::default();
        let (together, keys) = empty.with_created(&operations, Timestamp::UNIX_EPOCH).unwrap();
        let single = operations.chunks(100).fold(empty.clone(), |snapshot, some| apply(&snapshot, some));
        assert_eq!(seen(&together), seen(&single));
        assert_eq!(seen(&apply(&empty, &operations)), seen(&single));
        assert_eq!((together.revision, keys), (1, (0..MANY).map(key).collect()));
    }

    #[test]
    fn children_are_listed_by_their_creation_and_from_any_place() {
        let state = apply(&Snapshot::default(), &(0..9).map(create).collect::<Vec<_>>());
        let parent = edge(3);
        let keys: Vec<&Key> = state.children(&parent).map(|child| &child.key).collect();
        assert_eq!(keys, [&key(4), &key(5)]);
        assert!(key(5) < key(4), "the order of their keys is another one");
        let newest = |before: u64| {
            let listed = state.newest_first(Kind::HttpsEdgeRoute, Some(&parent.id), before);
            listed.map(|child| child.key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(newest(u64::MAX), [key(5), key(4)]);
        assert_eq!(newest(state.order_of(&key(5)).unwrap()), [key(4)]);
        assert!(newest(state.order_of(&key(4)).unwrap()).is_empty());
        assert_eq!((state.count(Kind::HttpsEdge), state.count(Kind::HttpsEdgeRoute)), (3, 6));
    }

    #[test]
    fn creations_beside_others_keep_them_and_end_tombstones() {
        let first = apply(&Snapshot::default(), &(0..90).map(create).collect::<Vec<_>>());
        let delete: Vec<Operation> = [key(1), key(4)].map(|key| Operation::Delete { key, with_children: false }).into();
        let base = apply(&first, &delete);
        assert!(base.find_child(Kind::HttpsEdgeRoute, &key(2).id).is_some(), "the map of parents exists");
        let mut operations: Vec<Operation> = vec![create(1)];
        operations.extend((90..MANY).map(create));
        let (together, _) = base.with_created(&operations, Timestamp::UNIX_EPOCH).unwrap();
        let single = operations.chunks(100).fold(base.clone(), |snapshot, some| apply(&snapshot, some));
        assert_eq!(seen(&together), seen(&single));
        let rendered = |snapshot: &Snapshot, number: usize| Arc::clone(&snapshot.get(&key(number)).unwrap().rendered);
        assert!(!Arc::ptr_eq(&rendered(&base, 0), &rendered(&together, 0)), "its children have changed");
        assert!(Arc::ptr_eq(&rendered(&base, 6), &rendered(&together, 6)));
    }

    #[test]
    fn what_is_refused_or_does_more_is_applied_one_after_another() {
        let operations = |numbers: &[usize]| {
            let mut operations: Vec<Operation> = (3..MANY).map(create).collect();
            operations.extend(numbers.iter().copied().map(create));
            operations
        };
        let base = apply(&Snapshot::default(), &[create(0)]);
        let created = |operations: &[Operation]| base.with_created(operations, Timestamp::UNIX_EPOCH).is_some();
        assert!(created(&operations(&[1, 2])));
        for refused in [&[0][..], &[7], &[MANY + 1, MANY]] {
            assert!(!created(&operations(refused)), "{refused:?}");
            assert!(base.apply(&operations(refused), Timestamp::UNIX_EPOCH).is_err(), "{refused:?}");
        }
        let mut more = operations(&[]);
        more.push(Operation::Delete { key: edge(0), with_children: false });
        assert!(!created(&more) && apply(&base, &more).get(&edge(0)).is_none());
    }
}
