//! A readable description of a commit's changes to each resource: made from the values before and after it.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{Entry, JsonError, Kind, Secrets, json};
use crate::store::commit::entries::CommitEntry;
use crate::store::commit::header::{ResourceChange, damaged};
use crate::store::commit::record::{self, LostSecrets};
use crate::store::commit::record_key::{RECORD, decode_key};
use crate::store::error::StoreError;
use crate::store::revision::ChangeEvent;
use crate::store::seal::Keyring;

/// The field with the claim of a source.
pub(crate) const OWNED_BY: &str = "(owned by)";

/// Reads what a commit did to a resource.
#[derive(Clone, Copy)]
pub(super) struct EntryReader<'k> {
    /// The keys of the secrets, unless these are in clear.
    pub(super) keyring: Option<&'k Keyring>,
    /// Secrets are digests with this key.
    pub(super) digest_key: &'k [u8; 32],
}

impl EntryReader<'_> {
    /// Returns what an entry did to its resource, or none if it is not the record of one.
    pub(super) fn change(self, entry: &CommitEntry<'_>) -> Result<Option<ResourceChange>, StoreError> {
        if !entry.key.starts_with(RECORD) {
            return Ok(None);
        }
        let key = decode_key(RECORD, entry.key.as_bytes()).map_err(damaged)?;
        let read = |value: Option<&[u8]>, lost: LostSecrets<'_>| {
            let decoded = value.map(|value| record::decode(entry.key.as_bytes(), value, self.keyring, lost));
            decoded.transpose().map_err(damaged)
        };
        let new = read(entry.after, LostSecrets::Digested)?;
        // If the secrets of one of the states are lost, those of the other one tell whether they are the same.
        let old = match &new {
            Some(new) if !new.lazy_spec.has_lost_secrets() => read(entry.before, LostSecrets::SameAs(new))?,
            _ => read(entry.before, LostSecrets::Digested)?,
        };
        let whole = |entry: Option<&Entry>| {
            entry.map(|entry| fields(entry, self.digest_key)).transpose().map_err(StoreError::internal)
        };
        let (before, after) = match (whole(old.as_ref())?, whole(new.as_ref())?) {
            (Some(was), Some(is)) => {
                let (was, is) = without_same(was, is);
                (Some(was), Some(is))
            }
            sides => sides,
        };
        let claim = new.as_ref().or(old.as_ref()).and_then(|entry| entry.claim.as_deref());
        Ok(Some(ResourceChange {
            kind: key.kind,
            path: key.path(),
            name: claim.map(|claim| claim.name.clone()),
            source: claim.map(|claim| claim.source.clone()),
            declared_at: Some(entry.place).filter(|place| !place.is_empty()).map(str::to_owned),
            reverted_drift: drift_in(entry)?,
            before: before.map(Value::Object),
            after: after.map(Value::Object),
        }))
    }
}

fn drift_in(entry: &CommitEntry<'_>) -> Result<Vec<String>, StoreError> {
    if entry.drift.is_empty() { Ok(Vec::new()) } else { serde_json::from_str(entry.drift).map_err(damaged) }
}

/// A revision's change to a resource, without values.
#[derive(Debug)]
pub(crate) struct ChangeOutline {
    /// The kind.
    pub kind: Kind,
    /// The path in the API.
    pub path: String,
    /// The name in the manifests, if a source owns it.
    pub name: Option<String>,
    /// The source that owns it.
    pub source: Option<String>,
    /// The change.
    pub event: Option<ChangeEvent>,
    /// The names of the fields that differ; none of a resource that was created or deleted.
    pub fields: Vec<String>,
    /// The names of those that no longer have a value.
    pub unset: BTreeSet<String>,
    /// JSON pointers to the fields whose drift was reverted; an empty one is the whole resource.
    pub reverted_drift: Vec<String>,
    /// The source that owned the resource before, and the one that it was offered to, if that changed.
    pub owner_before: Option<OwnerOutline>,
    /// The owner after the change, likewise.
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

impl ChangeOutline {
    /// Outlines what was done to a resource.
    pub(crate) fn new(touched: ResourceChange) -> Self {
        let ResourceChange { kind, path, name, source, reverted_drift, before, after, .. } = touched;
        let event = ChangeEvent::from_existence(before.is_some(), after.is_some());
        let fields_of = |side: Option<Value>| match side {
            Some(Value::Object(fields)) if event == Some(ChangeEvent::Updated) => fields,
            _ => SpecFields::new(),
        };
        let (before, after) = (fields_of(before), fields_of(after));
        let is_set = |fields: &SpecFields, name: &str| fields.get(name).is_some_and(|value| !value.is_null());
        let unset = before.keys().filter(|name| is_set(&before, name) && !is_set(&after, name)).cloned().collect();
        let owner = |fields: &SpecFields| fields.get(OWNED_BY).and_then(|owner| OwnerOutline::deserialize(owner).ok());
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let fields = names.into_iter().cloned().collect();
        let (owner_before, owner_after) = (owner(&before), owner(&after));
        Self { kind, path, name, source, event, fields, unset, reverted_drift, owner_before, owner_after }
    }
}

/// The fields of a resource by their names.
type SpecFields = Map<String, Value>;

/// Removes the fields that two objects have with the same value.
fn without_same(mut was: SpecFields, mut is: SpecFields) -> (SpecFields, SpecFields) {
    let same: Vec<String> = was.keys().filter(|field| was.get(*field) == is.get(*field)).cloned().collect();
    for field in same {
        was.remove(&field);
        is.remove(&field);
    }
    (was, is)
}

/// The fields of a resource, with its ownership.
pub(super) fn fields(entry: &Entry, digest_key: &[u8; 32]) -> Result<SpecFields, JsonError> {
    let mut fields = entry.spec().to_json(Secrets::Digested(digest_key))?;
    if let Some(claim) = &entry.claim {
        fields.insert(OWNED_BY.into(), json::value(claim, Secrets::Masked)?);
    }
    Ok(fields)
}
