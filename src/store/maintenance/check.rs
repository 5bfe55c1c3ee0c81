//! Reads everything in a store and verifies it (D100).

use std::{path::Path, sync::Arc};

use crate::model::diagnostics::code::Code;
use crate::model::snapshot::lazy_spec::{LazySpec, StoredSecrets};
use crate::model::{Entry, Snapshot};
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::{CommitHeader, Retention, Verified};
use crate::store::commit::record::{self, LostSecrets};
use crate::store::commit::record_key;
use crate::store::error::StoreError;
use crate::store::folder::FolderReader;
use crate::store::open_store::Store;
use crate::store::seal::{Keyring, MasterKeySource};
use crate::store::session_kind::SessionKind;

/// The most problems of one sort that are listed.
const MOST_LISTED: usize = 20;

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct StoreCheck {
    /// The current revision.
    pub revision: u64,
    /// The history; none if it is damaged.
    pub history: Option<Verified>,
    /// The number of resources.
    pub resources: u64,
    /// The number of resources with secrets, all of which open.
    pub sealed: u64,
    /// The number of references between resources.
    pub references: u64,
    /// The number of former values in the history.
    pub former: u64,
    /// The number of former values whose secrets can no longer be decrypted.
    pub former_lost: u64,
    pub problems: Vec<StoreError>,
}

impl StoreCheck {
    fn problem(&mut self, found: impl std::fmt::Display) {
        if self.problems.len() < MOST_LISTED {
            self.problems.push(StoreError::new(Code::StoreCorrupt, format!("the store is damaged: {found}")));
        }
    }

    /// Checks a resource of the current state.
    fn resource(&mut self, snapshot: &Snapshot, entry: &Entry) {
        self.resources += 1;
        let spec = match entry.lazy_spec.stored().map(|text| (entry.key.kind.info().restore)(text)) {
            Ok(Ok(spec)) => LazySpec::new(spec),
            _ => return self.problem(format!("the record of {} cannot be decoded", entry.key)),
        };
        let has_secrets = match entry.lazy_spec.secrets() {
            Ok(StoredSecrets::At(places)) => !places.is_empty(),
            Ok(StoredSecrets::Unknown) => false,
            _ => return self.problem(format!("the secrets of {} are lost", entry.key)),
        };
        self.sealed += u64::from(has_secrets || entry.token.is_some());
        for reference in spec.references().iter().chain(entry.key.parent_key().as_ref()) {
            self.references += 1;
            if snapshot.get(reference).is_none() {
                self.problem(format!("{} references {reference}, which does not exist", entry.key));
            }
        }
    }

    /// Checks the values before a commit, and that the commit is what its header says.
    fn batch(&mut self, before: Tip, batch: &Batch, keyring: Option<&Keyring>) {
        let position = batch.position;
        match CommitHeader::from_bytes(&batch.header) {
            Ok(header) => {
                let expected = header.revision.unwrap_or(before.revision);
                // One that makes a revision makes the next one.
                let follows = header.revision.is_none_or(|made| made == before.revision + 1);
                if header.position != position || batch.revision != expected || !follows {
                    self.problem(format!("record {position} does not belong to revision {}", batch.revision));
                }
            }
            Err(error) => self.problem(format!("record {position}: {error}")),
        }
        for entry in batch.entries.iter() {
            let Some(value) = entry.before else { continue };
            self.former += 1;
            if !entry.key.starts_with(record_key::RECORD) {
                continue;
            }
            match record::decode(entry.key.as_bytes(), value, keyring, LostSecrets::Masked) {
                Ok(entry) => self.former_lost += u64::from(entry.lazy_spec.has_lost_secrets()),
                Err(error) => self.problem(format!("an earlier value of record {position}: {error}")),
            }
        }
    }
}

impl Store {
    /// Opens a store for reading as it is: nothing is created or completed first.
    pub(crate) fn open_as_it_is(folder: &Path, source: &MasterKeySource) -> Result<Self, StoreError> {
        let missing = || {
            let message = format!("{} is not a complete store: it has no `head`", folder.display());
            StoreError::new(Code::StoreCorrupt, message)
        };
        let reader = FolderReader::open(folder, source)?.ok_or_else(missing)?;
        Self::load_from(Arc::new(reader), Retention::default(), SessionKind::Brief)
    }

    /// Reads every record of the state and the history, and verifies them, their hash chain and their references. Records
    /// whose secrets do not open kept the store from opening.
    pub(crate) fn check(&self) -> StoreCheck {
        let snapshot = self.snapshot();
        let mut check = StoreCheck { revision: snapshot.revision, ..StoreCheck::default() };
        for entry in snapshot.iter() {
            check.resource(&snapshot, entry);
        }
        match self.verify() {
            Ok(verified) => check.history = Some(verified),
            Err(error) => check.problems.push(error),
        }
        let keyring = self.keyring.as_deref();
        let mut end = None;
        let walked = self.walk(0, &mut |before, batch| {
            check.batch(before, &batch, keyring);
            end = Some(batch.revision);
            Ok(())
        });
        if let Err(error) = walked
            && !check.problems.contains(&error)
        {
            check.problems.push(error);
        }
        if end.is_some_and(|end| end != snapshot.revision) {
            check.problem("the history does not end at the current revision");
        }
        check
    }
}
