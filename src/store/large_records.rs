//! What is known of large records: the first apply of an estate has all of its resources in one. A search in the history of
//! one resource that ends there reads only the beginning of that record, and lists read it only once.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::{record_head::RecordHead, record_summary::RecordSummary};
use crate::model::operation::Author;

/// The size of a large record in bytes.
pub(super) const LARGE: usize = 1 << 20;
/// The most records that are noted. Only few commits are as large as an estate.
const MOST: usize = 64;

/// Large records by position. A position is never used again.
#[derive(Debug, Default)]
pub(super) struct LargeRecords(Mutex<BTreeMap<u64, LargeRecord>>);

/// What is known of a record.
#[derive(Debug)]
enum LargeRecord {
    /// The revision that it made, and its author. Nothing of it was verified.
    Begun(u64, Author),
    /// All that lists show. It was read as a whole.
    Read(RecordSummary),
}

impl LargeRecords {
    /// Notes the head of a record, of which the rest was not read.
    pub(super) fn note_head(&self, head: &RecordHead) {
        if let Some(revision) = head.revision {
            self.note(head.position, LargeRecord::Begun(revision, head.author.clone()));
        }
    }

    /// Notes a record that was read.
    pub(super) fn note_summary(&self, summary: &RecordSummary) {
        self.note(summary.position, LargeRecord::Read(summary.clone()));
    }

    fn note(&self, position: u64, record: LargeRecord) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(LargeRecord::Read(_)), LargeRecord::Begun(..)) = (noted.get(&position), &record) {
            return;
        }
        noted.insert(position, record);
        if noted.len() > MOST {
            noted.pop_first();
        }
    }

    /// Whether the record at a position is known.
    pub(super) fn knows(&self, position: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&position)
    }

    /// The summary of the record at a position, if it was read.
    pub(super) fn summary(&self, position: u64) -> Option<RecordSummary> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&position) {
            Some(LargeRecord::Read(summary)) => Some(summary.clone()),
            Some(LargeRecord::Begun(..)) | None => None,
        }
    }

    /// Whether the record at a position is known to be large, by a source, and of a revision up to `upto`.
    pub(super) fn is_of(&self, position: u64, wanted: &str, upto: u64) -> bool {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (revision, author) = match noted.get(&position) {
            Some(LargeRecord::Begun(revision, author)) => (*revision, author),
            Some(LargeRecord::Read(RecordSummary { revision: Some(revision), author, .. })) => (*revision, author),
            Some(LargeRecord::Read(_)) | None => return false,
        };
        revision <= upto && matches!(author, Author::Source { source, .. } if source == wanted)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::{ffi::OsStrExt as _, fs::FileExt as _},
        path::PathBuf,
        sync::Arc,
    };

    use super::*;
    use crate::{
        model::{Kind, id::Id, key::Key, kind::https_edge::HttpsEdge, operation::Operation},
        store::{Commit, Store, StoreError, mint},
    };

    fn key(number: u32) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number}")))
    }

    fn commit(store: &Store, author: Author, operations: Vec<Operation>) {
        store.commit(Commit { base: None, operations, author, at: mint::now() }).unwrap();
    }

    fn patch(text: &str) -> Vec<Operation> {
        let spec = Arc::new(HttpsEdge { description: text.into(), ..HttpsEdge::default() });
        vec![Operation::Patch { key: key(1), spec, fields: vec!["description".into()] }]
    }

    #[test]
    fn a_large_record_of_the_source_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let create = |number: u32| {
            let spec = Arc::new(HttpsEdge { metadata: "x".repeat(400), ..HttpsEdge::default() });
            Operation::Create { key: key(number), spec, claim: None, token: None }
        };
        let shop = || Author::source("shop", None);
        commit(&store, shop(), (1..=3_000).map(create).collect());
        commit(&store, Author::Local, patch("by hand"));
        commit(&store, shop(), patch("applied"));
        commit(&store, Author::Local, patch("again"));
        let found = |upto| -> Result<Vec<u64>, StoreError> {
            let writes = store.foreign_writes(&[key(1)], "shop", upto)?.remove(&key(1)).unwrap_or_default();
            Ok(writes.into_iter().map(|it| it.revision).collect())
        };
        // The record cannot be read as a whole.
        let is_journal = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"log."));
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let journals: Vec<PathBuf> = files.filter(is_journal).collect();
        assert_eq!(journals.len(), 1);
        File::options().write(true).open(&journals[0]).unwrap().write_all_at(b"damage", 500_000).unwrap();
        assert_eq!([found(4).unwrap(), found(3).unwrap(), found(2).unwrap()], [vec![4], vec![], vec![2]]);
        // Whoever asks for another source reads it.
        assert!(store.foreign_writes(&[key(1)], "other", 4).is_err());
        assert!(store.provenance(&key(1), Some("other")).is_err());
    }
}
