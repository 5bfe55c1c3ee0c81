//! What a commit writes of the resources that it changes: their records, and their descriptions for the history. Both are
//! made from one serialization of each Spec, on all cores.

use std::collections::BTreeSet;

use rayon::{iter::ParallelIterator, slice::ParallelSlice};

use super::{
    StoreError,
    codec::{DELETED, RECORD, encode_deleted, encode_key},
    engine::RecordChange,
    history::Places,
    record,
    seal::Keyring,
    touched::Describer,
};
use crate::model::{code::Code, json::JsonError, key::Key, snapshot::Snapshot};

/// How many resources one core writes at once.
const AT_ONCE: usize = 256;
/// The most resources of a commit that keep their stored forms: those that people change, and change again.
const FEW: usize = 8;
/// How many bytes are hashed at once. BLAKE3 hashes many at a time several times as fast as few.
const HASHED_AT_ONCE: usize = 1 << 17;

/// What a commit writes of resources.
#[derive(Default)]
pub(super) struct WrittenResources {
    /// The changes of the state.
    pub(super) changes: Vec<RecordChange>,
    /// The descriptions for the history: pieces of JSON, which only lack the commas between them.
    pub(super) descriptions: Vec<Vec<u8>>,
}

/// Writes the resources that differ between two revisions. Secrets in the history are digests with the given key.
pub(super) fn written(
    before: &Snapshot,
    after: &Snapshot,
    changed: &BTreeSet<Key>,
    places: &Places,
    digest_key: &[u8; 32],
    keyring: Option<&Keyring>,
) -> Result<WrittenResources, StoreError> {
    let describer = Describer { before, after, places, digest_key };
    // A description grows in memory that each thread uses again, and stays in as much as it needs.
    let write = |scratch: &mut Vec<u8>, keys: &[&Key]| piece(keys, &describer, keyring, scratch);
    let keys: Vec<&Key> = changed.iter().collect();
    let pieces = keys.par_chunks(AT_ONCE).map_init(Vec::new, write).collect::<Result<Vec<_>, StoreError>>()?;
    let mut all = WrittenResources {
        // With room for what undoes them.
        changes: Vec::with_capacity(3 * keys.len() + 1),
        descriptions: Vec::with_capacity(pieces.len()),
    };
    for (changes, descriptions) in pieces {
        all.changes.extend(changes);
        all.descriptions.push(descriptions);
    }
    Ok(all)
}

fn piece(
    keys: &[&Key],
    describer: &Describer<'_>,
    keyring: Option<&Keyring>,
    descriptions: &mut Vec<u8>,
) -> Result<(Vec<RecordChange>, Vec<u8>), StoreError> {
    let mut changes = Vec::with_capacity(2 * keys.len());
    descriptions.clear();
    let undescribed = |error: JsonError| StoreError::new(Code::Internal, error.to_string());
    for (number, key) in keys.iter().enumerate() {
        if number > 0 {
            descriptions.push(b',');
        }
        let (name, deleted) = (encode_key(RECORD, key), encode_key(DELETED, key));
        match describer.after.get(key) {
            Some(entry) => {
                if keys.len() <= FEW && describer.before.get(key).is_some() {
                    // The next change needs the form again, to undo that change. If it fails, it does so below.
                    let _ = entry.lazy_spec.stored();
                }
                let value = record::with_form(entry, keyring, |form| {
                    describer.describe(key, Some(form), descriptions).map_err(undescribed)?;
                    record::encode_form(entry, form, keyring)
                })?;
                changes.extend([(name, Some(value)), (deleted, None)]);
            }
            None => {
                describer.describe(key, None, descriptions).map_err(undescribed)?;
                changes.extend([(name, None), (deleted, describer.after.tombstone(key).map(encode_deleted))]);
            }
        }
    }
    Ok((changes, descriptions.as_slice().to_vec()))
}

/// Returns the keyed digest of changes for the history.
pub(super) fn digest_of(changes: &[RecordChange], digest_key: &[u8; 32]) -> String {
    let mut hasher = blake3::Hasher::new_keyed(digest_key);
    let mut waiting = Vec::new();
    for (key, value) in changes {
        for part in [key.as_bytes(), value.as_deref().unwrap_or_default()] {
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
    use crate::model::{Kind, id::Id, kind::https_edge::HttpsEdge, operation::Operation};

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
        let all: BTreeSet<Key> = (0..many).map(key).collect();
        let (places, digest_key) = (Places::new(), [1; 32]);
        let of = |changed: &BTreeSet<Key>| written(&before, &after, changed, &places, &digest_key, None).unwrap();
        let together = of(&all);
        let form_of = |number: usize| before.get(&key(number)).map(|entry| entry.lazy_spec.form_once());
        let is_kept =
            |number: usize| form_of(number).is_some_and(|form| form.is_ok_and(|it| it.public_text().is_none()));
        assert!(!is_kept(1), "many forms would take much memory");
        let single: Vec<WrittenResources> = all.iter().map(|key| of(&BTreeSet::from([key.clone()]))).collect();
        let changes: Vec<RecordChange> = single.iter().flat_map(|one| one.changes.clone()).collect();
        assert!(together.changes == changes && changes.len() == 2 * many);
        let descriptions: Vec<Vec<u8>> = single.into_iter().flat_map(|one| one.descriptions).collect();
        assert_eq!((together.descriptions.len(), descriptions.len()), (3, many));
        assert_eq!(together.descriptions.join(&b","[..]), descriptions.join(&b","[..]));
    }

    #[test]
    fn the_digest_does_not_depend_on_how_much_is_hashed_at_once() {
        let change =
            |number: usize| (format!("r/{number}"), (!number.is_multiple_of(5)).then(|| vec![7; 100 * number]));
        for many in [0, 1, 60] {
            let changes: Vec<RecordChange> = (0..many).map(change).collect();
            let mut hasher = blake3::Hasher::new_keyed(&[1; 32]);
            for (key, value) in &changes {
                for part in [key.as_bytes(), value.as_deref().unwrap_or_default()] {
                    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
                }
            }
            assert_eq!(digest_of(&changes, &[1; 32]), hasher.finalize().to_hex().to_string());
        }
    }
}
