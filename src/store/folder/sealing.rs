//! Encrypts the secrets in a store of the format before (D96).
//!
//! A new base with encrypted secrets takes the place of the old one, and then every file of the log is written anew.
//! Each file is complete or missing at any time, and the file with the data keys notes that this has begun: after an
//! interruption, the next start continues.

use std::path::Path;

use rayon::iter::ParallelIterator;

use super::{
    FolderContent,
    base::{self, Header},
    beside, content_base,
    files::{self, Part},
    fold,
    head::{self, Head, HeadFile},
    index::Index,
    journal::Journal,
    reader::LogReader,
};
use crate::{
    model::code::Code,
    store::{
        StoreError, codec,
        engine::{State, Tip},
        seal::Keyring,
        state_records::StateRecord,
    },
};

/// What interrupted writes of any version leave, with secrets in clear.
const LEFTOVERS: [&str; 5] = ["base.tmp", "journal.tmp", "history.tmp", "head.tmp", "kept.tmp"];

/// Encrypts a store, or continues that.
pub(super) fn encrypt(
    folder: &Path,
    head: &mut HeadFile,
    content: FolderContent,
    keyring: &Keyring,
) -> Result<(), StoreError> {
    keyring.set_root(&content.state.root_secret);
    let is_continued = content.base_key.is_some();
    let generation = if is_continued { content_base(folder)? } else { write_base(folder, head, content, keyring)? };
    let mut seal = |key: &str, former: &[u8]| codec::sealed(key, former, keyring);
    for old in Part::Journal.generations(folder)?.into_iter().filter(|old| *old < generation) {
        fold::journal_to_history(folder, old, &mut seal)?;
        files::remove(&Part::Journal.path(folder, old))?;
    }
    base::remove_before(folder, generation)?;
    for old in Part::History.generations(folder)? {
        if is_clear(folder, old, keyring)? {
            match fold::rewrite_history(folder, old, &mut seal) {
                // Earlier states cannot be restored from it either, and the current one does not need it.
                Err(error) if error.code == Code::StoreCorrupt => {
                    tracing::warn!(code = %error.code, "A part of the history is not encrypted: {error}");
                }
                rewritten => rewritten?,
            }
        }
    }
    remove_leftovers(folder)?;
    beside::forget_runs(folder)?;
    // The records are elsewhere in their files now.
    Index::remove(&folder.join("index"))?;
    files::sync_folder(&head::path(folder))?;
    keyring.set_sealed()
}

/// Writes the state to a base of the next generation, which it returns.
fn write_base(
    folder: &Path,
    head: &mut HeadFile,
    content: FolderContent,
    keyring: &Keyring,
) -> Result<u64, StoreError> {
    let FolderContent { state, generation: last, end, .. } = content;
    let (root_secret, store) = (state.root_secret, base::id_of(&state.root_secret));
    let tip = state.batches.last().map_or(state.tip, Tip::after);
    // Cuts off the rest of an interrupted write: only the last journal may have one.
    drop(Journal::open(Part::Journal.path(folder, last), end)?);
    let generation = last + 1;
    drop(Journal::create(Part::Journal.path(folder, generation), store, tip)?);
    // A base is never ahead of the head, or it would look like one of another store.
    let acknowledged = head.write(Head { position: tip.position, generation, hash: tip.hash, store });
    let synced = acknowledged.and_then(|()| head.sync());
    synced.map_err(|error| StoreError::io("write", &head::path(folder), &error))?;
    let State { records, .. } = codec::merged(state);
    let seal = |StateRecord { key, value, .. }: StateRecord<'_>| -> Result<(String, Vec<u8>), StoreError> {
        let sealed = codec::sealed(key, value, keyring)?;
        Ok((key.to_owned(), sealed.unwrap_or_else(|| value.to_vec())))
    };
    let records = records.par_iter().map(seal).collect::<Result<Vec<_>, StoreError>>()?;
    let header = Header::new(tip, &root_secret, keyring)?;
    base::write(folder, generation, &header, &mut records.into_iter())?;
    Ok(generation)
}

/// Whether a history file has secrets in clear.
fn is_clear(folder: &Path, generation: u64, keyring: &Keyring) -> Result<bool, StoreError> {
    let mut history = LogReader::open(&Part::History.path(folder, generation), true)?;
    while let Some(framed) = history.batch()? {
        for (key, value) in framed.batch.changes.iter() {
            if let Some(value) = value
                && codec::sealed(key, value, keyring)?.is_some()
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes the incomplete files of interrupted writes.
fn remove_leftovers(folder: &Path) -> Result<(), StoreError> {
    LEFTOVERS.into_iter().try_for_each(|name| files::remove(&folder.join(name)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{fs, sync::Arc};

    use bytes::Bytes;
    use jiff::Timestamp;

    use super::*;
    use crate::{
        model::{
            Kind,
            id::Id,
            key::Key,
            kind::https_edge::HttpsEdge,
            operation::{Author, Operation},
            resource::AnyResource,
            secret::Secrets,
            snapshot::Snapshot,
        },
        store::{
            Store,
            changes::encode_change,
            engine::Batch,
            folder::{frame::BatchFrame, journal},
            history::{Outcome, Record, chain},
            written::changes_between,
        },
    };

    const ROOT: [u8; 32] = [9; 32];

    fn route() -> Key {
        Key::child(Kind::HttpsEdgeRoute, Id::new("edghts_1"), Id::new("edghtsrt_1"))
    }

    fn with_secret(secret: &str) -> Arc<dyn AnyResource> {
        let module = format!(r#"{{"enabled":true,"provider":"github","secret":"{secret}"}}"#);
        let text = format!(r#"{{"match_type":"path_prefix","match":"/","webhook_verification":{module}}}"#);
        (Kind::HttpsEdgeRoute.info().restore)(&text).unwrap()
    }

    fn patch(secret: &str) -> Vec<Operation> {
        vec![Operation::Patch { key: route(), spec: with_secret(secret), fields: vec!["webhook_verification".into()] }]
    }

    /// The batches of three revisions, as the version before wrote them, and the state after each.
    fn batches() -> Vec<(Batch, Snapshot)> {
        let edge = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        let create = |key: Key, spec: Arc<dyn AnyResource>| Operation::Create { key, spec, claim: None, token: None };
        let first = vec![create(edge, Arc::new(HttpsEdge::default())), create(route(), with_secret("hunter2-first"))];
        let (mut now, mut tip, mut batches) = (Snapshot::default(), Tip::default(), Vec::new());
        for operations in [first, patch("hunter2-second"), patch("hunter2-third")] {
            let (next, changed) = now.apply(&operations, Timestamp::UNIX_EPOCH).unwrap();
            let mut changes = changes_between(&now, &next, &changed);
            changes.append(codec::undo(&now, &changed, None).unwrap());
            let record = Record {
                position: tip.position + 1,
                revision: Some(next.revision),
                at: Timestamp::UNIX_EPOCH,
                milliseconds: 0,
                author: Author::Local,
                source: None,
                outcome: Outcome::Applied,
                message: String::new(),
                calls: Vec::new(),
                resources: Vec::new(),
                changes: String::new(),
            };
            let record = Bytes::from(record.to_bytes().unwrap());
            let hash = chain(&tip.hash, &record);
            let (revision, next_order) = (next.revision, next.next_order());
            let batch = Batch { position: tip.position + 1, revision, next_order, hash, record, changes };
            tip = Tip::after(&batch);
            now = next;
            batches.push((batch, now.clone()));
        }
        batches
    }

    fn base(tip: Tip, state: &Snapshot) -> Vec<u8> {
        let hex = |bytes: [u8; 32]| blake3::Hash::from(bytes).to_hex().to_string();
        let header = serde_json::json!({
            "format": "edgewright 2",
            "position": tip.position,
            "hash": hex(tip.hash),
            "revision": tip.revision,
            "next_order": tip.next_order,
            "root_secret": hex(ROOT),
        });
        let header = header.to_string();
        let mut bytes = [b"ewbase2\n".as_slice(), &(header.len() as u32).to_le_bytes(), header.as_bytes()].concat();
        let records = codec::records(state, None).unwrap();
        records.iter().for_each(|(key, value)| encode_change(key, Some(value), &mut bytes));
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    /// A store of the format before: two revisions in the history, and one in the journal.
    fn old_store(folder: &Path) {
        fs::create_dir(folder).unwrap();
        let (store, batches) = (base::id_of(&ROOT), batches());
        let mut history = batches.iter().take(2).map(|(batch, _)| {
            let mut batch = batch.clone();
            batch.changes = batch.changes.undoing();
            batch
        });
        journal::write_history(&Part::History.path(folder, 1), store, Tip::default(), || Ok(history.next())).unwrap();
        let (second, state) = batches.get(1).unwrap();
        fs::write(Part::Base.path(folder, 2), base(Tip::after(second), state)).unwrap();
        let mut journal = Journal::create(Part::Journal.path(folder, 2), store, Tip::after(second)).unwrap();
        let (third, _) = batches.get(2).unwrap();
        assert!(journal.append(&[BatchFrame::new(third)]).is_ok());
        let head = Head { position: third.position, generation: 2, hash: third.hash, store };
        drop(HeadFile::create(folder, head).unwrap());
    }

    /// The files that have a secret in clear.
    fn clear_files(folder: &Path) -> Vec<String> {
        let root = blake3::Hash::from(ROOT).to_hex();
        let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|it| it.file_type().is_file());
        let clear = files.filter(|file| {
            let text = String::from_utf8_lossy(&fs::read(file.path()).unwrap()).into_owned();
            text.contains("hunter2") || text.contains(root.as_str())
        });
        clear.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
    }

    fn has_everything(store: &Store) {
        for (revision, secret) in [(3, "hunter2-third"), (2, "hunter2-second"), (1, "hunter2-first")] {
            let state = store.snapshot_at(revision).unwrap();
            let spec = state.get(&route()).unwrap().spec().to_json(Secrets::Revealed).unwrap();
            let found = spec.get("webhook_verification").and_then(|module| module.get("secret"));
            assert_eq!(found.and_then(|found| found.as_str()), Some(secret), "revision {revision}");
        }
        assert_eq!((store.verify().unwrap().records, store.root_secret()), (3, ROOT));
    }

    #[test]
    fn a_store_of_the_format_before_is_encrypted_when_it_is_opened_for_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        old_store(&path);
        fs::write(path.join("history.tmp"), "hunter2 of an interrupted checkpoint").unwrap();
        fs::write(path.join("remembered"), "hunter2 of a dry run").unwrap();
        has_everything(&Store::open_to_read(&path).unwrap());
        assert_eq!(clear_files(&path).len(), 5, "a reader changes nothing");
        assert!(!folder.path().join("store.master.key").exists());
        for _ in 0..2 {
            has_everything(&Store::open(&path).unwrap());
            assert_eq!(clear_files(&path), [""; 0]);
            has_everything(&Store::open_to_read(&path).unwrap());
        }
    }

    #[test]
    fn an_interrupted_encryption_goes_on() {
        for obstacle in ["keys.tmp", "journal.tmp", "base.tmp", "history.tmp"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store");
            old_store(&path);
            // No file can be written through it.
            fs::create_dir(path.join(obstacle)).unwrap();
            for _ in 0..2 {
                assert!(Store::open(&path).is_err(), "{obstacle}");
                has_everything(&Store::open_to_read(&path).unwrap());
            }
            fs::remove_dir(path.join(obstacle)).unwrap();
            has_everything(&Store::open(&path).unwrap());
            assert_eq!(clear_files(&path), [""; 0], "{obstacle}");
        }
    }
}
