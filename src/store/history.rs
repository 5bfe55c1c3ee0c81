//! History: a record of every attempt to change the store, in a hash chain that reveals changes to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StoreError, engine::Hash, recent::ChangeEvent, side_outline::SideOutline};
use crate::model::{Kind, code::Code, json, key::Key, operation::Author, secret::Secrets};

/// From this size on, a record is hashed on all cores.
const LARGE_RECORD: usize = 1 << 20;

/// How much history is kept. Older records are dropped, together with the tombstones of their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of records.
    pub records: u64,
    /// Maximum age of a record.
    pub age: Duration,
    /// Maximum bytes on disk, without the newest history file.
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

/// An attempt to change the store. It contains no secret (D58).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The number of the record: 1 for the first, without gaps.
    pub position: u64,
    /// The new revision, or none if the attempt changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The time at which the attempt began, in whole seconds.
    pub at: Timestamp,
    /// The time until the record was written, in milliseconds.
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
    /// The calls as `METHOD path`, in order.
    pub calls: Vec<String>,
    /// The resources that the attempt changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Touched>,
    /// A keyed digest of the changes of the state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changes: String,
    /// The earlier records that were scrubbed of API tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scrubbed: Vec<ScrubbedRecord>,
}

/// A record that was scrubbed of API tokens. It keeps the hash that it had before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubbedRecord {
    /// Its position.
    pub position: u64,
    /// The BLAKE3 hash of its scrubbed form, in hexadecimal.
    pub digest: String,
}

impl ScrubbedRecord {
    /// Describes the scrubbed form of a record.
    pub(crate) fn new(position: u64, record: &[u8]) -> Self {
        Self { position, digest: blake3::hash(record).to_hex().to_string() }
    }
}

/// The records that later ones list as scrubbed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScrubbedRecords(BTreeSet<(u64, String)>);

impl ScrubbedRecords {
    /// Adds the records that the record at a position lists. Only earlier ones count.
    pub(crate) fn add(&mut self, position: u64, listed: &[ScrubbedRecord]) {
        let earlier = listed.iter().filter(|it| it.position < position);
        self.0.extend(earlier.map(|it| (it.position, it.digest.clone())));
    }

    /// Adds the records that a record in its canonical form lists, if it can be read.
    pub(crate) fn add_from(&mut self, record: &[u8]) {
        #[derive(Deserialize)]
        struct ScrubListing {
            position: u64,
            #[serde(default)]
            scrubbed: Vec<ScrubbedRecord>,
        }
        if let Ok(ScrubListing { position, scrubbed }) = serde_json::from_slice(record) {
            self.add(position, &scrubbed);
        }
    }

    /// Adds the records of another list.
    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Whether a record has the listed form.
    pub(crate) fn contains(&self, record: &ScrubbedRecord) -> bool {
        self.0.contains(&(record.position, record.digest.clone()))
    }

    /// Returns the records up to a position, oldest first.
    pub(crate) fn up_to(self, last: u64) -> Vec<ScrubbedRecord> {
        let listed = self.0.into_iter().take_while(|(position, _)| *position <= last);
        listed.map(|(position, digest)| ScrubbedRecord { position, digest }).collect()
    }
}

/// A resource before and after a change. A resource that existed before and after has only the fields that differ.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Touched {
    /// Its kind.
    pub kind: Kind,
    /// Its path in the API.
    pub path: String,
    /// Its name in the manifests, if a source owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The source that owns it. Earlier versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The file and line that declare it; only the file if the attempt changed more than 2,000 resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_at: Option<String>,
    /// JSON pointers to the fields whose drift the attempt put back; an empty one is the whole resource (D85).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverted_drift: Vec<String>,
    /// The fields before, or none if it did not exist. A secret is a keyed digest, a long text a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The fields after, or none if it no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The file that declares each resource, as `file:line` or without the line.
pub type Places = BTreeMap<Key, String>;

/// The fields of each resource whose drift is put back, as JSON pointers.
pub type RevertedDrift = BTreeMap<Key, Vec<String>>;

impl Touched {
    /// Whether the attempt put drift of a field back.
    pub(crate) fn reverts_drift_of(&self, pointer: &str) -> bool {
        let begins = |reverted: &String| pointer.strip_prefix(reverted.as_str());
        self.reverted_drift.iter().filter_map(begins).any(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Record {
    /// Returns the canonical form, which the hash chain covers.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        json::bytes(self, Secrets::Masked)
            .map_err(|error| StoreError::new(Code::Internal, format!("cannot write history: {error}")))
    }

    /// Parses the canonical form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes)
            .map_err(|error| StoreError::new(Code::StoreCorrupt, format!("a history record is damaged: {error}")))
    }
}

/// A record of a revision without the values of its resources: those of a first commit do not belong in memory.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordOutline {
    /// The time at which the attempt began.
    pub at: Timestamp,
    /// The author.
    pub author: Author,
    /// The resources that the revision changed.
    #[serde(default)]
    pub resources: Vec<TouchedOutline>,
}

/// What a revision did to a resource, without its values.
#[derive(Debug, Deserialize)]
#[serde(from = "TouchedNames")]
pub(crate) struct TouchedOutline {
    /// Its kind.
    pub kind: Kind,
    /// Its path in the API.
    pub path: String,
    /// Its name in the manifests, if a source owns it.
    pub name: Option<String>,
    /// The source that owns it.
    pub source: Option<String>,
    /// What happened to it.
    pub event: Option<ChangeEvent>,
    /// The names of the fields that differ; none of a resource that was created or deleted.
    pub fields: Vec<String>,
    /// The names of those that no longer have a value.
    pub unset: BTreeSet<String>,
    /// JSON pointers to the fields whose drift was put back; an empty one is the whole resource.
    pub reverted_drift: Vec<String>,
    /// The source that owned the resource before, and the one that it was offered to, if that changed.
    pub owner_before: Option<OwnerOutline>,
    /// The same after the change.
    pub owner_after: Option<OwnerOutline>,
}

/// The ownership of a resource, if a revision changed it.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct OwnerOutline {
    /// The source.
    pub source: String,
    /// The source that may take the resource over.
    pub transfer_to: Option<String>,
}

/// What is read for a [`TouchedOutline`].
#[derive(Deserialize)]
struct TouchedNames {
    kind: Kind,
    path: String,
    name: Option<String>,
    source: Option<String>,
    #[serde(default)]
    reverted_drift: Vec<String>,
    before: Option<SideOutline>,
    after: Option<SideOutline>,
}

impl From<TouchedNames> for TouchedOutline {
    fn from(touched: TouchedNames) -> Self {
        let TouchedNames { kind, path, name, source, reverted_drift, before, after } = touched;
        let event = ChangeEvent::of(before.is_some(), after.is_some());
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            _ => (SideOutline::default(), SideOutline::default()),
        };
        let unset = before.set.difference(&after.set).cloned().collect();
        let fields: BTreeSet<String> = before.names.into_iter().chain(after.names).collect();
        Self {
            kind,
            path,
            name,
            source,
            event,
            fields: fields.into_iter().collect(),
            unset,
            reverted_drift,
            owner_before: before.owner,
            owner_after: after.owner,
        }
    }
}

impl RecordOutline {
    /// Parses the canonical form of a record.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes)
            .map_err(|error| StoreError::new(Code::StoreCorrupt, format!("a history record is damaged: {error}")))
    }
}

/// Returns the hash of a record after the record with the hash `before`.
pub(crate) fn chain(before: &Hash, record: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("edgewright 2026 history chain");
    hasher.update(before);
    if record.len() < LARGE_RECORD {
        hasher.update(record)
    } else {
        hasher.update_rayon(record)
    };
    hasher.finalize().into()
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
    /// What the records so far list.
    listed: ScrubbedRecords,
}

impl Verified {
    /// Checks that a record continues the chain, and counts it. [`Verified::finish`] must follow the last one.
    pub fn next(&mut self, before: &Hash, record: &[u8], hash: &Hash) -> Result<(), StoreError> {
        let parsed = Record::from_bytes(record)?;
        let broken = |what: &str| Err(broken_at(parsed.position, what));
        if self.records > 0 && self.hash != *before {
            return broken("it does not follow the previous record");
        }
        if self.records > 0 && self.oldest + self.records != parsed.position {
            return broken("the previous record is missing");
        }
        if chain(before, record) == *hash {
            self.listed.add(parsed.position, &parsed.scrubbed);
        } else {
            self.replaced.push(ScrubbedRecord::new(parsed.position, record));
        }
        if self.records == 0 {
            self.oldest = parsed.position;
        }
        self.records += 1;
        self.hash = *hash;
        Ok(())
    }

    /// Checks that every record whose hash does not match its content was scrubbed.
    pub fn finish(mut self) -> Result<Self, StoreError> {
        let listed = std::mem::take(&mut self.listed);
        for record in std::mem::take(&mut self.replaced) {
            if !listed.contains(&record) {
                return Err(broken_at(record.position, "its hash does not match its content"));
            }
            self.scrubbed += 1;
        }
        Ok(self)
    }
}

fn broken_at(position: u64, what: &str) -> StoreError {
    StoreError::new(Code::StoreCorrupt, format!("the history is broken at record {position}: {what}"))
}
