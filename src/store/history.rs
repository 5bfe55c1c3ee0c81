//! History: a record of every attempt to change the store, hash-chained, so that what was done can be shown and trusted.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    StoreError,
    engine::{Hash, Query},
};
use crate::model::{Kind, code::Code, json, key::Key, operation::Author, secret::Secrets};

/// How much history is kept. What is over either limit is dropped, with the tombstones of that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most records.
    pub records: u64,
    /// The greatest age of a record.
    pub age: Duration,
    /// The most bytes on the disk, of all but the newest history file.
    pub bytes: u64,
}

/// 100,000 records, two years, and 1 GiB.
impl Default for Retention {
    fn default() -> Self {
        Self { records: 100_000, age: Duration::from_secs(2 * 365 * 24 * 3600), bytes: 1 << 30 }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It made a revision.
    Applied,
    /// A rule, a precondition or a limit refused it; nothing changed.
    Refused,
    /// Something broke; nothing changed.
    Failed,
}

/// One attempt to change the store: who, when, what, and how it ended. It holds no secret (D58).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The number of the record: 1 for the first, without gaps.
    pub position: u64,
    /// The revision that it made; none for an attempt that changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// When it began, in whole seconds.
    pub at: Timestamp,
    /// How long it took until it could be written down, in milliseconds.
    #[serde(default)]
    pub milliseconds: u64,
    /// Who made it.
    pub author: Author,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was refused or failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The calls, as `METHOD path`, in the order in which they ran.
    pub calls: Vec<String>,
    /// The resources that differ after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Touched>,
    /// A keyed digest of the changes that were written to the state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changes: String,
}

/// A resource before and after. Of a resource that existed before and after, only the fields that differ.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Touched {
    /// Its kind.
    pub kind: Kind,
    /// Its path in the API.
    pub path: String,
    /// Its name in the manifests, where a source owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is declared: file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_at: Option<String>,
    /// What it was; none if it did not exist. A secret is a keyed digest, a long text a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is; none if it no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Where resources are declared, for the history: file and line by key.
pub type Places = BTreeMap<Key, String>;

impl Record {
    /// The canonical form, which the chain covers.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        json::bytes(self, Secrets::Masked)
            .map_err(|error| StoreError::new(Code::Internal, format!("cannot write history: {error}")))
    }

    /// Whether a query asks for this record.
    pub fn matches(&self, query: &Query) -> bool {
        match query {
            Query::All => true,
            Query::Revision(revision) => self.revision == Some(*revision),
            Query::Reconciliations => matches!(self.author, Author::Source { .. }) && self.outcome == Outcome::Applied,
            Query::Resource(path) => self.resources.iter().any(|resource| resource.path == *path),
        }
    }

    /// Reads the canonical form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes)
            .map_err(|error| StoreError::new(Code::StoreCorrupt, format!("a history record is damaged: {error}")))
    }
}

/// The hash of a record that follows the record with the hash `before`.
pub fn chain(before: &Hash, record: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("edgewright 2026 history chain");
    hasher.update(before);
    hasher.update(record);
    hasher.finalize().into()
}

/// What a walk along the chain has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many records are kept.
    pub records: u64,
    /// The first one's position.
    pub oldest: u64,
    /// The last one's hash.
    pub hash: Hash,
}

impl Verified {
    /// Checks that a record continues the chain and counts it.
    pub fn next(&mut self, before: &Hash, record: &[u8], hash: &Hash) -> Result<(), StoreError> {
        let parsed = Record::from_bytes(record)?;
        let broken = |what: &str| {
            let message = format!("the history is broken at record {}: {what}", parsed.position);
            Err(StoreError::new(Code::StoreCorrupt, message))
        };
        if self.records > 0 && self.hash != *before {
            return broken("it does not continue the record before it");
        }
        if self.records > 0 && self.oldest + self.records != parsed.position {
            return broken("a record is missing before it");
        }
        if chain(before, record) != *hash {
            return broken("its hash does not match its content");
        }
        if self.records == 0 {
            self.oldest = parsed.position;
        }
        self.records += 1;
        self.hash = *hash;
        Ok(())
    }
}
