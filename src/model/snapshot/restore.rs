//! The restoration of a state, when a store opens. Its resources can come piece by piece, so that the maps of one piece are
//! made while the next one is read, and are made of what the processor still has in its caches.

use std::sync::Arc;

use rayon::prelude::*;

use super::Snapshot;
use super::entry::{Entry, Tombstone};
use crate::model::key::Key;

/// A state of which resources may still be missing.
#[derive(Default)]
pub(crate) struct SnapshotBuilder(Snapshot);

impl SnapshotBuilder {
    /// Adds resources. That takes the least time, and the maps the least memory, if all come in the order of their keys.
    pub(crate) fn add(&mut self, mut added: Vec<Arc<Entry>>) {
        // Visits each once if they are in order.
        added.par_sort_unstable_by(|one, other| one.key.cmp(&other.key));
        self.0.place_all(&added);
    }

    /// Returns the state, which has all resources now.
    pub(crate) fn finish(
        self,
        revision: u64,
        next_order: u64,
        deleted: impl IntoIterator<Item = (Key, Tombstone)>,
    ) -> Snapshot {
        let next_order = next_order.max(self.0.next_order);
        Snapshot { revision, next_order, deleted: deleted.into_iter().collect(), ..self.0 }
    }
}

impl Snapshot {
    /// Builds a snapshot from all its parts.
    pub fn restore(
        revision: u64,
        next_order: u64,
        deleted: impl IntoIterator<Item = (Key, Tombstone)>,
        entries: impl IntoIterator<Item = impl Into<Arc<Entry>>>,
    ) -> Self {
        let mut builder = SnapshotBuilder::default();
        builder.add(entries.into_iter().map(Into::into).collect());
        builder.finish(revision, next_order, deleted)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::id::Id;
    use crate::model::kind::Kind;
    use crate::model::snapshot::lazy_spec::{LazySpec, StoredSecrets};

    fn entry(key: Key, order: u64, references: Vec<Key>) -> Arc<Entry> {
        let lazy_spec = LazySpec::from_stored(key.kind, references, "{}", StoredSecrets::Unknown);
        let created_at = Timestamp::UNIX_EPOCH;
        Arc::new(Entry { key, lazy_spec, created_at, order, claim: None, token: None, rendered: Arc::default() })
    }

    /// Everything that can be seen of a state.
    fn seen(snapshot: &Snapshot) -> Vec<String> {
        let entries = snapshot.iter().map(|entry| {
            let users: Vec<&Key> = snapshot.users(&entry.key).collect();
            let children: Vec<&Key> = snapshot.children(&entry.key).map(|child| &child.key).collect();
            format!("{:?} {} {users:?} {children:?}", entry.key, entry.order)
        });
        let edges = snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX).map(|edge| edge.key.to_string());
        entries.chain(edges).chain([format!("{} {}", snapshot.next_order(), snapshot.len())]).collect()
    }

    #[test]
    fn pieces_in_any_order_make_the_same_state_as_all_at_once() {
        let authority = Key::new(Kind::CertificateAuthority, Id::new("ca_1"));
        let mut entries = vec![entry(authority.clone(), 0, Vec::new())];
        for number in 0..200_u64 {
            let edge = Id::new(&format!("edghts_{number:03}"));
            entries.push(entry(Key::new(Kind::HttpsEdge, edge.clone()), 1000 - 2 * number, vec![authority.clone()]));
            let route = Key::child(Kind::HttpsEdgeRoute, edge, Id::new(&format!("edghtsrt_{number}")));
            entries.push(entry(route, 1001 - 2 * number, Vec::new()));
        }
        let whole = Snapshot::restore(3, 7, [], entries.clone());
        assert_eq!((whole.next_order(), whole.users(&authority).count()), (1002, 200));
        for pieces in [[0, 1], [1, 0]] {
            let (first, second) = entries.split_at(170);
            let mut restoring = SnapshotBuilder::default();
            for piece in pieces {
                restoring.add(if piece == 0 { first.to_vec() } else { second.to_vec() });
            }
            assert_eq!(seen(&restoring.finish(3, 7, [])), seen(&whole));
        }
    }
}
