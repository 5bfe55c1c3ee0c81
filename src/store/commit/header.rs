//! The header of a commit, and the chain of hashes that reveals changes to the history.
//!
//! The history is of use only if nobody can change it unnoticed, not even whoever has the files. So each commit has a hash of
//! its header, of the digest of its calls and entries, and of the hash before it. Who changes a record, removes one or puts
//! one in between has to compute all later hashes anew, and then the end of the chain is another one than in a backup.
//!
//! ```text
//! digest 42 = BLAKE3(calls 42 · entries 42)
//! hash 42   = BLAKE3(hash 41 · digest 42 · header 42)
//! hash 43   = BLAKE3(hash 42 · …)
//! ```
//!
//! To verify the chain, headers are enough: the digest is checked when somebody reads the rest.
//!
//! Tokens that somebody has pasted into a text must be removed all the same (D23). A record that is scrubbed keeps its hash,
//! so all later ones stay, and does not match it any more. It is accepted if a *later* record lists it with the hash of its
//! new form: the removal is an entry of the history itself, and the chain protects it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{batch::Batch, entries::Hash};
use crate::model::author::Author;
use crate::model::diagnostics::code::Code;
use crate::model::key::Key;
use crate::model::secrets::Secrets;
use crate::model::{Kind, json};
use crate::store::error::StoreError;

/// How much history is kept. Older records are dropped, together with the tombstones of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of records.
    pub records: u64,
    /// Maximum age of a record.
    pub age: Duration,
    /// Maximum bytes on disk, without the newest segment of the log.
    pub bytes: u64,
}

/// The default is 100,000 records, two years and 1 GiB.
impl Default for Retention {
    fn default() -> Self {
        Self { records: 100_000, age: Duration::from_secs(2 * 365 * 24 * 3600), bytes: 1 << 30 }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The attempt made a revision.
    Applied,
    /// A rule, a precondition or a limit refused it; nothing changed.
    Refused,
    /// An error occurred; nothing changed.
    Failed,
    /// A source was suspended: its manifests are not applied (D84). The message is the reason.
    Suspended,
    /// The suspension of a source ended.
    Resumed,
    /// API tokens were scrubbed from the history (D23). The message has the counts.
    Scrubbed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The header of a commit: who made it, when and why, and how much it changed. It contains no secret (D58).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommitHeader {
    /// The number of the commit: 1 for the first, without gaps.
    pub position: u64,
    /// The new revision, or none if the attempt changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The time at which the attempt began, in whole seconds.
    pub at: Timestamp,
    /// The time until the commit was written, in milliseconds.
    #[serde(default)]
    pub milliseconds: u64,
    /// The author.
    pub author: Author,
    /// The source that was suspended or resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The outcome.
    pub outcome: Outcome,
    /// The reason why the attempt was refused or failed, or why the source was suspended; or a note about what was applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The number of calls.
    #[serde(default)]
    pub operations: usize,
    /// The number of resources that the attempt changed.
    #[serde(default)]
    pub changed: usize,
    /// The earlier commits that were scrubbed of API tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scrubbed: Vec<ScrubbedRecord>,
}

/// A commit with what it did to each resource, as people read it.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// The header.
    #[serde(flatten)]
    pub header: CommitHeader,
    /// The calls as `METHOD path`, in order.
    pub calls: Vec<String>,
    /// The resources that the attempt changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceChange>,
}

/// A record is read like its header.
impl std::ops::Deref for Record {
    type Target = CommitHeader;

    fn deref(&self) -> &CommitHeader {
        &self.header
    }
}

impl CommitHeader {
    /// Returns the canonical form, which the hash chain covers.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        json::bytes(self, Secrets::Masked)
            .map_err(|error| StoreError::new(Code::Internal, format!("cannot write history: {error}")))
    }

    /// Parses the canonical form.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// The source that made the revision, if one did.
    pub(crate) fn applied_by(&self) -> Option<&str> {
        match &self.author {
            Author::Source { source, .. } if self.outcome == Outcome::Applied => Some(source),
            _ => None,
        }
    }
}

/// The error of a part of the history that cannot be read.
pub(crate) fn damaged(error: impl std::fmt::Display) -> StoreError {
    StoreError::new(Code::StoreCorrupt, format!("a history record is damaged: {error}"))
}

/// Reads the calls of a commit.
pub(crate) fn calls_of(batch: &Batch) -> Result<Vec<String>, StoreError> {
    if batch.calls.is_empty() { Ok(Vec::new()) } else { serde_json::from_slice(&batch.calls).map_err(damaged) }
}

/// A record that was scrubbed of API tokens. It keeps the hash that it had before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScrubbedRecord {
    /// The position.
    pub position: u64,
    /// The BLAKE3 hash of its scrubbed header and of the digest of the rest, in hexadecimal.
    pub digest: String,
}

impl ScrubbedRecord {
    /// Describes the scrubbed form of a commit.
    pub(crate) fn new(batch: &Batch) -> Self {
        let hash = blake3::Hasher::new().update(&batch.header).update(&batch.digest).finalize();
        Self { position: batch.position, digest: hash.to_hex().to_string() }
    }
}

/// The records that later ones list as scrubbed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScrubbedRecords(BTreeSet<ScrubbedRecord>);

impl ScrubbedRecords {
    /// Adds the records that the record at a position lists. Only earlier ones count.
    pub(crate) fn add(&mut self, position: u64, listed: &[ScrubbedRecord]) {
        self.0.extend(listed.iter().filter(|it| it.position < position).cloned());
    }

    /// Adds the records that a header lists, if it can be read.
    pub(crate) fn add_from(&mut self, header: &[u8]) {
        if let Ok(CommitHeader { position, scrubbed, .. }) = CommitHeader::from_bytes(header) {
            self.add(position, &scrubbed);
        }
    }

    /// Adds the records of another list.
    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Whether a record has the listed form.
    pub(crate) fn contains(&self, record: &ScrubbedRecord) -> bool {
        self.0.contains(record)
    }

    /// Returns the records up to a position, oldest first.
    pub(crate) fn up_to(self, last: u64) -> Vec<ScrubbedRecord> {
        self.0.into_iter().take_while(|it| it.position <= last).collect()
    }
}

/// A resource before and after a change. A resource that existed before and after has only the fields that differ.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourceChange {
    /// The kind.
    pub kind: Kind,
    /// The path in the API.
    pub path: String,
    /// The name in the manifests, if a source owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The source that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The file and line that declare it; only the file if the attempt changed more than 2,000 resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_at: Option<String>,
    /// JSON pointers to the fields whose drift the attempt reverted; an empty one is the whole resource (D85).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted_drift: Vec<String>,
    /// What the change did to access.
    #[serde(flatten)]
    pub(crate) access: ProtectionChange,
    /// The fields before, or none if it did not exist. A secret is a keyed digest, a long text a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The fields after, or none if it no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The effect of a change of a resource on access. Over the API, only what the change opens is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProtectionChange {
    /// The modules that no longer restrict access.
    #[serde(rename = "opens_access", default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The modules that restrict access from then on.
    #[serde(skip)]
    pub gained: Vec<String>,
    /// Whether the change made a route without any.
    #[serde(skip)]
    pub is_new_and_open: bool,
}

impl ProtectionChange {
    /// The effect of a change after which some modules no longer restrict access.
    pub(crate) fn opening(lost: Vec<String>) -> Self {
        Self { lost, ..Self::default() }
    }
}

/// The file that declares each resource, as `file:line` or without the line.
pub type Places = BTreeMap<Key, String>;

/// The fields of each resource whose drift is reverted, as JSON pointers.
pub type RevertedDrift = BTreeMap<Key, Vec<String>>;

impl ResourceChange {
    /// Whether the attempt put drift of a field back.
    pub(crate) fn reverts_drift_of(&self, pointer: &str) -> bool {
        let begins = |reverted: &String| pointer.strip_prefix(reverted.as_str());
        self.reverted_drift.iter().filter_map(begins).any(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Returns the hash of a record after the one with the hash `before`.
pub(crate) fn chain(before: &Hash, record: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("edgewright 2026 history chain");
    hasher.update(before).update(record);
    hasher.finalize().into()
}

/// Returns the hash of a commit after the one with the hash `before`.
pub(crate) fn chain_commit(before: &Hash, header: &[u8], digest: &Hash) -> Hash {
    chain(before, &[digest.as_slice(), header].concat())
}

/// The result of verifying the hash chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of records that are kept.
    pub records: u64,
    /// The position of the oldest record.
    pub oldest: u64,
    /// The hash of the newest record.
    pub hash: Hash,
    /// The number of records that were scrubbed of API tokens.
    pub scrubbed: u64,
    /// The records whose hash does not match their content. Later ones may list them as scrubbed.
    replaced: Vec<ScrubbedRecord>,
    /// The scrubbed records that the records so far list.
    listed: ScrubbedRecords,
    /// The scrubbed record that is listed last, for each position.
    expected: BTreeSet<ScrubbedRecord>,
    /// Whether a record does not have the form that is listed last.
    is_being_scrubbed: bool,
}

impl Verified {
    /// Checks that a commit continues the chain, and counts it. [`Verified::finish`] must follow the last one.
    pub(crate) fn next(&mut self, before: &Hash, batch: &Batch) -> Result<(), StoreError> {
        let parsed = CommitHeader::from_bytes(&batch.header)?;
        let broken = |what: &str| Err(broken_at(parsed.position, what));
        if self.records > 0 && self.hash != *before {
            return broken("it does not follow the previous record");
        }
        if self.records > 0 && self.oldest + self.records != parsed.position {
            return broken("the previous record is missing");
        }
        if chain_commit(before, &batch.header, &batch.digest) == batch.hash {
            self.listed.add(parsed.position, &parsed.scrubbed);
            if !parsed.scrubbed.is_empty() {
                let again: BTreeSet<u64> = parsed.scrubbed.iter().map(|it| it.position).collect();
                self.expected.retain(|it| !again.contains(&it.position));
                self.expected.extend(parsed.scrubbed.into_iter().filter(|it| it.position < parsed.position));
            }
        } else {
            self.replaced.push(ScrubbedRecord::new(batch));
        }
        if self.records == 0 {
            self.oldest = parsed.position;
        }
        self.records += 1;
        self.hash = batch.hash;
        Ok(())
    }

    /// Checks that every record whose hash does not match its content was scrubbed.
    pub fn finish(mut self) -> Result<Self, StoreError> {
        let (listed, expected) = (std::mem::take(&mut self.listed), std::mem::take(&mut self.expected));
        let mut scrubbed = BTreeSet::new();
        for record in std::mem::take(&mut self.replaced) {
            if !listed.contains(&record) {
                return Err(broken_at(record.position, "its hash does not match its content"));
            }
            self.scrubbed += 1;
            scrubbed.extend(expected.contains(&record).then_some(record.position));
        }
        self.is_being_scrubbed =
            expected.iter().any(|it| it.position >= self.oldest && !scrubbed.contains(&it.position));
        Ok(self)
    }

    /// Whether a scrub has listed records that it has not changed: it goes on, or was interrupted.
    pub(crate) fn is_being_scrubbed(&self) -> bool {
        self.is_being_scrubbed
    }
}

fn broken_at(position: u64, what: &str) -> StoreError {
    StoreError::new(Code::StoreCorrupt, format!("the history is broken at record {position}: {what}"))
}
