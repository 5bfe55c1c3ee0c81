//! What a commit writes of the resources that it changes: their records, and their descriptions for the history. Both are
//! made from one serialization of each Spec, on all cores.

use std::collections::BTreeSet;

use rayon::{iter::ParallelIterator, slice::ParallelSlice};

use super::{
    StoreError,
    changes::{Changes, encode_change, encode_change_with},
    codec::{DELETED, RECORD, encode_deleted, encode_key},
    record,
    record_writer::RecordWriter,
    seal::Keyring,
    touched::Describer,
};
use crate::{
    background::give_way,
    model::{code::Code, json::JsonError, key::Key},
};

/// How many resources one core writes at once.
const AT_ONCE: usize = 256;
/// How many resources are written before their descriptions join those before them. Only so many are in memory twice.
const IN_MEMORY: usize = 64 * AT_ONCE;
/// Room for what follows the resources in a record: mostly a digest.
const END: usize = 128;
/// The most resources of a commit that keep their stored forms: those that people change, and change again.
const FEW: usize = 8;
/// How many bytes are hashed at once. BLAKE3 hashes many at a time several times as fast as few.
const HASHED_AT_ONCE: usize = 1 << 17;

/// Writes the resources that differ between two revisions: returns the changes of the state, and adds the descriptions to
/// the record.
pub(super) fn written(
    describer: &Describer<'_>,
    changed: &BTreeSet<Key>,
    keyring: Option<&Keyring>,
    record: &mut RecordWriter,
) -> Result<Changes, StoreError> {
    let keys: Vec<&Key> = changed.iter().collect();
    let mut changes = Changes::default();
    let mut add = |record: &mut RecordWriter, pieces: Vec<WrittenPiece>| {
        for WrittenPiece { encoded, count, descriptions } in pieces {
            record.add(&descriptions);
            changes.append(Changes::of_piece(encoded, count));
        }
    };
    let (first, others) = keys.split_at(keys.len().min(IN_MEMORY));
    let mut pieces = pieces_of(first, describer, keyring)?;
    let bytes: usize = pieces.iter().map(|piece| piece.descriptions.len() + 1).sum();
    record.reserve(match others {
        [] => bytes + END,
        // They are about as long as the first ones.
        _ => bytes / first.len() * keys.len() / 16 * 17,
    });
    for keys in others.chunks(IN_MEMORY) {
        let last = std::mem::take(&mut pieces);
        let ((), next) = rayon::join(|| add(record, last), || pieces_of(keys, describer, keyring));
        pieces = next?;
    }
    add(record, pieces);
    Ok(changes)
}

/// What is written of some resources.
struct WrittenPiece {
    /// The encoded changes of the state.
    encoded: Vec<u8>,
    /// How many changes these are.
    count: usize,
    /// The descriptions, with commas between them.
    descriptions: Vec<u8>,
}

fn pieces_of(
    keys: &[&Key],
    describer: &Describer<'_>,
    keyring: Option<&Keyring>,
) -> Result<Vec<WrittenPiece>, StoreError> {
    // Pieces grow in memory that each thread uses again, and stay in as much as they need.
    let write = |scratch: &mut PieceBuffers, keys: &[&Key]| piece(keys, describer, keyring, scratch);
    keys.par_chunks(AT_ONCE).map_init(PieceBuffers::default, write).collect()
}

#[derive(Default)]
struct PieceBuffers {
    encoded: Vec<u8>,
    descriptions: Vec<u8>,
}

fn piece(
    keys: &[&Key],
    describer: &Describer<'_>,
    keyring: Option<&Keyring>,
    scratch: &mut PieceBuffers,
) -> Result<WrittenPiece, StoreError> {
    let PieceBuffers { encoded, descriptions } = scratch;
    encoded.clear();
    descriptions.clear();
    let mut count = 0;
    let undescribed = |error: JsonError| StoreError::new(Code::Internal, error.to_string());
    // The files can have tombstones that are no longer in memory.
    let has_tombstones = describer.before.has_deleted();
    for (number, key) in keys.iter().enumerate() {
        if number > 0 {
            descriptions.push(b',');
        }
        give_way();
        let name = encode_key(RECORD, key);
        match describer.after.get(key) {
            Some(entry) => {
                if keys.len() <= FEW && describer.before.get(key).is_some() {
                    // The next change needs the form again, to undo that change. If it fails, it does so below.
                    let _ = entry.lazy_spec.stored();
                }
                record::with_form(entry, keyring, |form| {
                    describer.describe(key, Some(form), descriptions).map_err(undescribed)?;
                    encode_change_with(&name, encoded, |value| record::encode_form(entry, form, keyring, value))
                })?;
                if has_tombstones {
                    encode_change(&encode_key(DELETED, key), None, encoded);
                }
                count += 1 + usize::from(has_tombstones);
            }
            None => {
                describer.describe(key, None, descriptions).map_err(undescribed)?;
                encode_change(&name, None, encoded);
                let tombstone = describer.after.tombstone(key).map(encode_deleted);
                encode_change(&encode_key(DELETED, key), tombstone.as_deref(), encoded);
                count += 2;
            }
        }
    }
    Ok(WrittenPiece { encoded: encoded.as_slice().to_vec(), count, descriptions: descriptions.as_slice().to_vec() })
}

/// The changes of the state between two revisions, without encryption.
#[cfg(test)]
pub(super) fn changes_between(
    before: &crate::model::snapshot::Snapshot,
    after: &crate::model::snapshot::Snapshot,
    changed: &BTreeSet<Key>,
) -> Changes {
    let (places, reverted_drift) = (super::history::Places::new(), super::history::RevertedDrift::new());
    let describer = Describer { before, after, places: &places, reverted_drift: &reverted_drift, digest_key: &[0; 32] };
    written(&describer, changed, None, &mut RecordWriter::default()).unwrap_or_default()
}

/// Returns the keyed digest of changes for the history.
pub(super) fn digest_of(changes: &Changes, digest_key: &[u8; 32]) -> String {
    let mut hasher = blake3::Hasher::new_keyed(digest_key);
    let mut waiting = Vec::new();
    for (key, value) in changes.iter() {
        for part in [key.as_bytes(), value.unwrap_or_default()] {
            waiting.extend_from_slice(&(part.len() as u64).to_le_bytes());
            waiting.extend_from_slice(part);
        }
        if waiting.len() >= HASHED_AT_ONCE {
            hasher.update(&waiting);
            waiting.clear();
        }
    }
    hasher.update(&waiting);
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::{
        model::{Kind, id::Id, kind::https_edge::HttpsEdge, operation::Operation, snapshot::Snapshot},
        store::history::{Places, RevertedDrift},
    };

    fn key(number: usize) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number:04}")))
    }

    fn create(number: usize) -> Operation {
        let spec = HttpsEdge { description: format!("number {number}"), ..HttpsEdge::default() };
        Operation::Create { key: key(number), spec: Arc::new(spec), claim: None, token: None }
    }

    #[test]
    fn many_resources_are_written_as_each_by_itself() {
        let many = 2 * AT_ONCE + 1;
        let create: Vec<Operation> = (0..many).map(create).collect();
        let (before, _) = Snapshot::default().apply(&create, Timestamp::UNIX_EPOCH).unwrap();
        let delete: Vec<Operation> =
            (0..many).step_by(3).map(|number| Operation::Delete { key: key(number), with_children: false }).collect();
        let (after, _) = before.apply(&delete, Timestamp::UNIX_EPOCH).unwrap();
        // As long as nothing was ever deleted, there are no tombstones to remove.
        assert_same(&Snapshot::default(), &before, many, many);
        let form = before.get(&key(1)).unwrap().lazy_spec.form_once().unwrap();
        assert!(form.public_text().is_some(), "many forms would take much memory");
        assert_same(&before, &after, many, many + delete.len());
        assert_same(&after, &before, many, 2 * many);
        let more = IN_MEMORY + AT_ONCE + 1;
        let create: Vec<Operation> = (0..more).map(super::tests::create).collect();
        let (large, _) = Snapshot::default().apply(&create, Timestamp::UNIX_EPOCH).unwrap();
        assert_same(&Snapshot::default(), &large, more, more);
    }

    /// Checks that resources are written together as each is by itself.
    fn assert_same(before: &Snapshot, after: &Snapshot, many: usize, changes: usize) {
        let all: BTreeSet<Key> = (0..many).map(key).collect();
        let (places, reverted_drift, digest_key) = (Places::new(), RevertedDrift::new(), [1; 32]);
        let describer =
            Describer { before, after, places: &places, reverted_drift: &reverted_drift, digest_key: &digest_key };
        let of = |changed: &BTreeSet<Key>| {
            let mut record = RecordWriter::default();
            let changes = written(&describer, changed, None, &mut record).unwrap();
            (changes, record.finish(""))
        };
        let (together, record) = of(&all);
        let (mut single, mut descriptions) = (Changes::default(), RecordWriter::default());
        for key in &all {
            let mut one = Vec::new();
            describer
                .describe(key, after.get(key).map(|it| it.lazy_spec.form_once().unwrap()).as_ref(), &mut one)
                .unwrap();
            descriptions.add(&one);
            single.append(of(&BTreeSet::from([key.clone()])).0);
        }
        assert!(together == single && together.len() == changes, "{together:?}, {changes} expected");
        assert!(record == descriptions.finish(""));
    }

    #[test]
    fn the_digest_does_not_depend_on_how_much_is_hashed_at_once() {
        let change =
            |number: usize| (format!("r/{number}"), (!number.is_multiple_of(5)).then(|| vec![7; 100 * number]));
        for many in [0, 1, 60] {
            let changes: Changes = (0..many).map(change).collect();
            let mut hasher = blake3::Hasher::new_keyed(&[1; 32]);
            for (key, value) in changes.iter() {
                for part in [key.as_bytes(), value.unwrap_or_default()] {
                    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
                }
            }
            assert_eq!(digest_of(&changes, &[1; 32]), hasher.finalize().to_hex().to_string());
        }
    }
}
