//! The records of a state and of its changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::batch::Batch;
use super::entries::{CommitEntries, CommitEntry};
use super::record::{self, LostSecrets};
use super::record_key::{DELETED, RECORD, decode_key, encode_key};
use crate::model::author::RejectedManifests;
use crate::model::snapshot::entry::Tombstone;
use crate::model::snapshot::restore::SnapshotBuilder;
use crate::model::{Code, Entry, Id, Key, Secrets, Snapshot, json};
use crate::store::engine::{KeyedRecord, State};
use crate::store::error::StoreError;
use crate::store::seal::Keyring;

/// How the manifests that a rollback left start; what follows is the source.
const REJECTED: &str = "x/";

/// Reads a tombstone.
fn decode_deleted(record: &[u8], value: &[u8]) -> Result<(Key, Tombstone), String> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    // The name of a source can have spaces.
    let mut words = text.splitn(3, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (order, revision) = number().zip(number()).ok_or("the record of a deletion cannot be read")?;
    let source = words.next().map(Arc::from);
    Ok((decode_key(DELETED, record)?, Tombstone { order, revision, source }))
}

pub(super) fn encode_deleted(tombstone: &Tombstone) -> Vec<u8> {
    let Tombstone { order, revision, source } = tombstone;
    let source = source.as_ref().map(|source| format!(" {source}")).unwrap_or_default();
    format!("{order} {revision}{source}").into_bytes()
}

fn damaged(found: String) -> StoreError {
    StoreError::new(Code::StoreCorrupt, format!("the store is damaged: {found}"))
}

/// How many records are read before their resources are added to the maps: they and their texts fit into a cache.
const PIECE: usize = 2_048;

/// Reads a whole state.
pub(crate) fn restore(state: State, keyring: Option<&Keyring>) -> Result<Snapshot, StoreError> {
    let State { tip, records, batches, .. } = state;
    let is_other = |(key, _): &KeyedRecord| key.starts_with(REJECTED) || key.starts_with(DELETED);
    let (others, resources): (Vec<_>, Vec<_>) = records.into_iter().partition(is_other);
    let (rejected, deleted): (Vec<_>, Vec<_>) = others.into_iter().partition(|(key, _)| key.starts_with(REJECTED));
    let deleted: Result<Vec<_>, String> =
        deleted.iter().map(|(key, value)| decode_deleted(key.as_bytes(), value)).collect();
    let restoring = rayon::scope(|_| restore_resources(resources, keyring)).map_err(damaged)?;
    let mut snapshot = restoring.finish(tip.revision, tip.next_order, deleted.map_err(damaged)?);
    for (key, value) in &rejected {
        set_rejected(&mut snapshot, key, Some(value)).map_err(damaged)?;
    }
    batches.iter().try_fold(snapshot, |snapshot, batch| advance(&snapshot, batch, keyring))
}

/// Reads the resources of a state. While one thread adds some of them to the maps, the others read the next ones.
fn restore_resources(records: Vec<KeyedRecord>, keyring: Option<&Keyring>) -> Result<SnapshotBuilder, String> {
    let (mut restoring, mut decoded, mut records) = (SnapshotBuilder::default(), Vec::new(), records.into_iter());
    while records.len() > 0 {
        let piece: Vec<KeyedRecord> = records.by_ref().take(PIECE).collect();
        let last = std::mem::take(&mut decoded);
        let ((), next) = rayon::join(|| restoring.add(last), || decode_piece(piece, keyring));
        decoded = next?;
    }
    restoring.add(decoded);
    Ok(restoring)
}

/// Reads the records of resources. Neighbours share the text of the ID of their parent.
fn decode_piece(piece: Vec<KeyedRecord>, keyring: Option<&Keyring>) -> Result<Vec<Arc<Entry>>, String> {
    let entry = |parent: &mut Option<Id>, (key, value): KeyedRecord| -> Result<Arc<Entry>, String> {
        let mut entry = record::decode(key.as_bytes(), &value, keyring, LostSecrets::Refused)?;
        if entry.key.parent == *parent {
            entry.key.parent.clone_from(parent);
        } else {
            parent.clone_from(&entry.key.parent);
        }
        Ok(Arc::new(entry))
    };
    piece.into_par_iter().with_min_len(64).with_max_len(1024).map_init(|| None, entry).collect()
}

/// Sets the manifests of a source that a rollback left, from their record.
fn set_rejected(snapshot: &mut Snapshot, key: &str, value: Option<&[u8]>) -> Result<(), String> {
    let unreadable = |_| format!("the record {key} cannot be read");
    let rejected: Option<Vec<RejectedManifests>> = value.map(serde_json::from_slice).transpose().map_err(unreadable)?;
    snapshot.set_rejected(key.strip_prefix(REJECTED).unwrap_or(key), rejected.unwrap_or_default());
    Ok(())
}

/// The Snapshot after a batch.
pub(crate) fn advance(snapshot: &Snapshot, batch: &Batch, keyring: Option<&Keyring>) -> Result<Snapshot, StoreError> {
    let changes = batch.entries.iter().map(|entry| (entry.key, entry.after));
    let (rejected, changed): (Vec<_>, Vec<_>) = changes.partition(|(key, _)| key.starts_with(REJECTED));
    let changed: Vec<_> = changed.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let changed = changed.into_par_iter().with_min_len(64).map(|(key, value)| {
        if key.starts_with(DELETED) {
            decode_deleted(key.as_bytes(), value).map(|(key, tombstone)| (key, Err(tombstone)))
        } else {
            let entry = record::decode(key.as_bytes(), value, keyring, LostSecrets::Refused);
            entry.map(|entry| (entry.key.clone(), Ok(entry)))
        }
    });
    let changed: Result<Vec<_>, String> = changed.collect();
    let mut next = snapshot.advance(batch.revision, batch.next_order, changed.map_err(damaged)?);
    for (key, value) in rejected {
        set_rejected(&mut next, key, value).map_err(damaged)?;
    }
    Ok(next)
}

/// The state without the tombstones whose records are not `left`; none if all of them are.
pub(crate) fn without_tombstones_but(state: &Snapshot, left: &BTreeSet<String>) -> Option<Snapshot> {
    let is_left = |key: &Key| left.contains(&encode_key(DELETED, key));
    let has_others = state.tombstones().any(|(key, _)| !is_left(key));
    has_others.then(|| state.clone().with_tombstones_that(|key, _| is_left(key)))
}

/// The entries of resources, without tombstones and what rollbacks left.
pub(crate) fn resource_changes(entries: &CommitEntries) -> impl Iterator<Item = CommitEntry<'_>> {
    entries.iter().filter(|entry| entry.key.starts_with(RECORD))
}

/// The keys of the resources that a batch changes.
pub(crate) fn changed_keys(batch: &Batch) -> Result<BTreeSet<Key>, StoreError> {
    let keys = resource_changes(&batch.entries).map(|entry| decode_key(RECORD, entry.key.as_bytes()));
    keys.collect::<Result<_, String>>().map_err(damaged)
}

/// The entries of the manifests that rollbacks left.
pub(crate) fn rejections(before: &Snapshot, after: &Snapshot) -> Result<CommitEntries, StoreError> {
    let sources: BTreeSet<&String> = before.sources_with_rejected().chain(after.sources_with_rejected()).collect();
    let mut entries = CommitEntries::default();
    for source in sources.into_iter().filter(|source| before.rejected(source) != after.rejected(source)) {
        let (was, is) = (encode_rejected(before.rejected(source))?, encode_rejected(after.rejected(source))?);
        let key = format!("{REJECTED}{source}");
        entries.push(&CommitEntry {
            key: &key,
            after: is.as_deref(),
            before: was.as_deref(),
            ..CommitEntry::default()
        });
    }
    Ok(entries)
}

fn encode_rejected(rejected: &[RejectedManifests]) -> Result<Option<Vec<u8>>, StoreError> {
    let written = (!rejected.is_empty()).then(|| json::bytes(rejected, Secrets::Masked)).transpose();
    written.map_err(|error| StoreError::new(Code::Internal, format!("a rollback cannot be stored: {error}")))
}

/// The former records of batches that are undone, by key.
#[derive(Default)]
pub(crate) struct FormerValues(HashMap<String, Option<Vec<u8>>>);

impl FormerValues {
    /// Adds the values before a batch. Batches must be added oldest first.
    pub(crate) fn add(&mut self, batch: &Batch) {
        for entry in batch.entries.iter().filter(|entry| !entry.key.starts_with(REJECTED)) {
            // The oldest batch has the value before all of them.
            self.0.entry(entry.key.to_owned()).or_insert_with(|| entry.before.map(<[u8]>::to_vec));
        }
    }

    /// Returns the state at an earlier revision. Secrets whose data key is destroyed are lost in it, unless the current
    /// state has the same ones.
    pub(crate) fn before(
        self,
        current: &Snapshot,
        revision: u64,
        next_order: u64,
        keyring: Option<&Keyring>,
    ) -> Result<Snapshot, StoreError> {
        let (deleted, records): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(key, _)| key.starts_with(DELETED));
        let deleted = deleted.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let deleted = deleted.map(|(key, value)| decode_deleted(key.as_bytes(), value));
        let deleted = deleted.collect::<Result<BTreeMap<Key, Tombstone>, String>>().map_err(damaged)?;
        let records = records.into_par_iter().map(|(key, value)| match value {
            Some(value) => {
                let decode = |lost: LostSecrets<'_>| record::decode(key.as_bytes(), &value, keyring, lost);
                let entry = decode(LostSecrets::Masked).and_then(|entry| match current.get(&entry.key) {
                    Some(now) if entry.lazy_spec.has_lost_secrets() => decode(LostSecrets::SameAs(now)),
                    _ => Ok(entry),
                });
                entry.map(|entry| (entry.key.clone(), Some(entry)))
            }
            None => decode_key(RECORD, key.as_bytes()).map(|key| (key, None)),
        });
        let records = records.collect::<Result<Vec<(Key, Option<Entry>)>, String>>().map_err(damaged)?;
        let former = records.into_iter().map(|(key, entry)| {
            // A later deletion left no trace in the earlier state.
            let tombstone = deleted.get(&key).filter(|tombstone| tombstone.revision <= revision);
            (key, entry.ok_or_else(|| tombstone.cloned()))
        });
        Ok(current.rewind(revision, next_order, former))
    }
}

/// How many resources of a state are written at once.
const WRITTEN_AT_ONCE: usize = 4_096;

/// Every record of a state, in the order of their keys. Only a part of them is in memory at once.
pub(crate) fn records<'s>(
    state: &'s Snapshot,
    keyring: Option<&'s Keyring>,
) -> Result<impl Iterator<Item = Result<KeyedRecord, StoreError>> + use<'s>, StoreError> {
    let mut deleted: Vec<KeyedRecord> =
        state.tombstones().map(|(key, tombstone)| (encode_key(DELETED, key), encode_deleted(tombstone))).collect();
    deleted.sort_unstable();
    let mut rejected = Vec::new();
    for source in state.sources_with_rejected() {
        let written = encode_rejected(state.rejected(source))?;
        rejected.extend(written.map(|written| (format!("{REJECTED}{source}"), written)));
    }
    rejected.sort_unstable();
    let mut entries: Vec<&Arc<Entry>> = state.iter().collect();
    let place = |entry: &Entry| (entry.key.kind.info().name, entry.key.parent.clone(), entry.key.id.clone());
    entries.sort_by_cached_key(|entry| place(entry));
    let written = move |entry: &&Arc<Entry>| -> Result<KeyedRecord, StoreError> {
        Ok((encode_key(RECORD, &entry.key), record::encode(entry, keyring)?))
    };
    let mut next = 0;
    let pieces = std::iter::from_fn(move || {
        let piece = entries.get(next..).filter(|rest| !rest.is_empty())?;
        let piece = piece.get(..WRITTEN_AT_ONCE).unwrap_or(piece);
        next += piece.len();
        Some(piece.par_iter().with_min_len(64).map(written).collect::<Vec<_>>())
    });
    let others = |records: Vec<KeyedRecord>| records.into_iter().map(Ok);
    Ok(others(deleted).chain(pieces.flatten()).chain(others(rejected)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{HttpsEdgeRoute, Kind};

    #[test]
    fn a_deletion_is_read_as_it_was_written_also_by_an_earlier_version() {
        let key = Key::new(Kind::TlsEdge, Id::new("edgtls_1"));
        let record = encode_key(DELETED, &key);
        for (source, written) in [(None, "3 7"), (Some("team a"), "3 7 team a")] {
            let tombstone = Tombstone { order: 3, revision: 7, source: source.map(Arc::from) };
            assert_eq!(encode_deleted(&tombstone), written.as_bytes());
            assert_eq!(decode_deleted(record.as_bytes(), written.as_bytes()).unwrap(), (key.clone(), tombstone));
        }
        assert!(decode_deleted(record.as_bytes(), b"3").is_err());
    }

    #[test]
    fn the_children_of_a_parent_share_its_id() {
        let route = |at: u64| {
            let key = Key::child(Kind::HttpsEdgeRoute, Id::new("edghts_1"), Id::new(&format!("edghtsrt_{at}")));
            Entry::new(key, Arc::new(HttpsEdgeRoute::default()), Timestamp::UNIX_EPOCH, at)
        };
        let state = Snapshot::restore(1, 0, [], (0..50).map(route));
        let written = records(&state, None).unwrap().map(Result::unwrap).collect();
        let restored = restore(State { records: written, ..State::default() }, None).unwrap();
        let keys = |of: &Snapshot| of.iter().map(|it| it.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&restored), keys(&state));
        let parents: Vec<&str> = restored.iter().filter_map(|it| Some(it.key.parent.as_ref()?.as_str())).collect();
        assert_eq!(parents.len(), 50);
        assert!(parents.iter().all(|it| std::ptr::eq(*it, parents[0])), "each has a text of its own");
    }
}
