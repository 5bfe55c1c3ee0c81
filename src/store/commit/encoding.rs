//! The entries of the resources that a commit changes, encoded on all cores.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::{iter::ParallelIterator, slice::ParallelSlice};

use super::codec::encode_deleted;
use super::entries::{CommitEntries, CommitEntry};
use super::record;
use super::record_key::{DELETED, RECORD, encode_key};
use crate::background::yield_to_requests;
use crate::model::{Key, Snapshot};
use crate::store::attempt::Attempt;
use crate::store::error::StoreError;
use crate::store::seal::Keyring;

/// How many resources one core writes at once.
const AT_ONCE: usize = 256;

/// A commit's effect on the state.
pub(crate) struct StateTransition {
    pub(crate) before: Arc<Snapshot>,
    pub(crate) after: Arc<Snapshot>,
    pub(crate) changed: Arc<BTreeSet<Key>>,
}

/// Writes the entries of the resources that differ between two states.
pub(crate) fn encode_changes(
    applied: &StateTransition,
    attempt: &Attempt,
    keyring: Option<&Keyring>,
) -> Result<CommitEntries, StoreError> {
    let keys: Vec<&Key> = applied.changed.iter().collect();
    let pieces = keys.par_chunks(AT_ONCE).map(|keys| piece(keys, applied, attempt, keyring));
    let mut entries = CommitEntries::default();
    pieces.collect::<Result<Vec<_>, StoreError>>()?.into_iter().for_each(|piece| entries.append(piece));
    Ok(entries)
}

fn piece(
    keys: &[&Key],
    applied: &StateTransition,
    attempt: &Attempt,
    keyring: Option<&Keyring>,
) -> Result<CommitEntries, StoreError> {
    let StateTransition { before, after, .. } = applied;
    let mut entries = CommitEntries::default();
    for key in keys {
        yield_to_requests();
        let encoded = |state: &Snapshot| state.get(key).map(|entry| record::encode(entry, keyring)).transpose();
        let (old, new) = (encoded(before)?, encoded(after)?);
        let drift = attempt.reverted_drift.get(key).map(serde_json::to_string).transpose();
        let drift = drift.map_err(StoreError::internal)?.unwrap_or_default();
        entries.push(&CommitEntry {
            key: &encode_key(RECORD, key),
            after: new.as_deref(),
            before: old.as_deref(),
            place: attempt.places.get(key).map_or("", String::as_str),
            drift: &drift,
        });
        let (was, is) = (before.tombstone(key).map(encode_deleted), after.tombstone(key).map(encode_deleted));
        // The state on the disk can have tombstones that are no longer in memory.
        if was.is_some() || is.is_some() || (before.has_deleted() && old.is_none()) {
            let name = encode_key(DELETED, key);
            let (after, before) = (is.as_deref(), was.as_deref());
            entries.push(&CommitEntry { key: &name, after, before, ..CommitEntry::default() });
        }
    }
    // Each core makes what it has written as small as it is.
    entries.end_piece();
    Ok(entries)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Author, HttpsEdge, Id, Kind, Operation};

    fn key(number: usize) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number:04}")))
    }

    /// The entries between two states, without encryption.
    fn entries_between(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> CommitEntries {
        let (before, after, changed) = (before.clone(), after.clone(), changed.clone());
        let applied = StateTransition { before: Arc::new(before), after: Arc::new(after), changed: Arc::new(changed) };
        encode_changes(&applied, &Attempt::new(Author::Local), None).unwrap_or_default()
    }

    fn create(number: usize) -> Operation {
        let spec = HttpsEdge { description: format!("number {number}"), ..HttpsEdge::default() };
        Operation::create(key(number), Arc::new(spec))
    }

    #[test]
    fn many_resources_are_written_as_each_by_itself() {
        let many = 2 * AT_ONCE + 1;
        let create: Vec<Operation> = (0..many).map(create).collect();
        let (before, _) = Snapshot::default().apply(&create, Timestamp::UNIX_EPOCH).unwrap();
        let delete: Vec<Operation> =
            (0..many).step_by(3).map(|number| Operation::Delete { key: key(number), with_children: false }).collect();
        let (after, _) = before.apply(&delete, Timestamp::UNIX_EPOCH).unwrap();
        let all: BTreeSet<Key> = (0..many).map(key).collect();
        for (before, after, entries) in [
            // As long as nothing was ever deleted, there are no tombstones to remove.
            (&Snapshot::default(), &before, many),
            (&before, &after, many + delete.len()),
            (&after, &before, many + delete.len()),
        ] {
            let together = entries_between(before, after, &all);
            let mut single = CommitEntries::default();
            all.iter().for_each(|key| single.append(entries_between(before, after, &BTreeSet::from([key.clone()]))));
            assert!(together == single && together.len() == entries, "{together:?}, {entries} expected");
            let undone: Vec<CommitEntry<'_>> = together.iter().collect();
            let back = entries_between(after, before, &all);
            assert!(
                back.iter().zip(undone).all(|(back, there)| (back.before, back.after) == (there.after, there.before))
            );
        }
    }
}
