//! A readable description of a commit's changes to each resource: made from the values before and after it.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::masking::each_digest;
use crate::model::{AnyResource, Claim, DigestKey, Entry, JsonError, Kind, Secrets, json};
use crate::store::commit::entries::{CommitEntries, CommitEntry};
use crate::store::commit::header::{ProtectionChange, ResourceChange, damaged};
use crate::store::commit::record;
use crate::store::commit::record_key::{RECORD, decode_key};
use crate::store::error::StoreError;
use crate::store::open_store::Store;
use crate::store::revision::ChangeEvent;

/// The field with the claim of a source.
pub(crate) const OWNED_BY: &str = "(owned by)";

impl Store {
    /// Returns what entries did to their resources.
    pub(super) fn changes_in(
        &self,
        entries: &CommitEntries,
    ) -> impl Iterator<Item = Result<ResourceChange, StoreError>> {
        entries.iter().filter_map(move |entry| self.change_in(&entry).transpose())
    }

    /// Returns what an entry did to its resource, or none if it is not the record of one. Secrets are keyed digests: of the digests
    /// that the record has, or of secrets in clear.
    pub(super) fn change_in(&self, entry: &CommitEntry<'_>) -> Result<Option<ResourceChange>, StoreError> {
        if !entry.key.starts_with(RECORD) {
            return Ok(None);
        }
        let key = decode_key(RECORD, entry.key.as_bytes()).map_err(damaged)?;
        let read = |value: Option<&[u8]>| {
            let decoded = value.map(|value| record::decode_digested(entry.key.as_bytes(), value));
            decoded.transpose().map_err(damaged)
        };
        let (new, old) = (read(entry.after)?, read(entry.before)?);
        let access = ProtectionChange::new(old.as_ref(), new.as_ref());
        let whole = |entry: Option<&Entry>| {
            entry.map(|entry| fields(entry, &self.digest_key)).transpose().map_err(StoreError::internal)
        };
        let mut was = whole(old.as_ref())?;
        if gets_or_loses_record(old.as_ref(), new.as_ref()) {
            let fields = was.iter_mut().flat_map(|was| was.values_mut());
            fields.for_each(|field| bind_digests(field, "unknown", &self.digest_key));
        }
        let (before, after) = match (was, whole(new.as_ref())?) {
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
            access,
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
    pub source: String,
    /// The source that may take the resource over.
    pub transfer_to: Option<String>,
}

impl ResourceChange {
    /// Returns whether the resource was created, updated or deleted.
    pub(crate) fn event(&self) -> Option<ChangeEvent> {
        ChangeEvent::from_existence(self.before.is_some(), self.after.is_some())
    }
}

impl ChangeOutline {
    /// Outlines what was done to a resource.
    pub(crate) fn new(touched: ResourceChange) -> Self {
        let event = touched.event();
        let ResourceChange { kind, path, name, source, reverted_drift, before, after, .. } = touched;
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

/// Whether only one of two states of a route records the origin of its secrets, so that they cannot be compared (D103). A
/// transfer by command leaves them as they are.
fn gets_or_loses_record(old: Option<&Entry>, new: Option<&Entry>) -> bool {
    let claims = old.and_then(|old| old.claim.as_deref()).zip(new.and_then(|new| new.claim.as_deref()));
    claims.is_some_and(|(old, new)| {
        let is_transfer = old.source != new.source && new.awaits_manifest();
        old.required_secrets.is_some() != new.required_secrets.is_some() && !is_transfer
    })
}

/// The fields of a Spec. The history compares the digests that records have, so a Spec that is compared with it needs these in
/// place of its secrets (`record::digested`). A secret that a route has from its edge has another digest than the same secret of
/// the route's own, so that whatever compares digests tells nobody whether a guess is right (D103).
pub(super) fn digested(
    spec: &dyn AnyResource,
    claim: Option<&Claim>,
    digest_key: &[u8; 32],
) -> Result<SpecFields, JsonError> {
    let mut fields = spec.to_json(Secrets::Digested(digest_key))?;
    for (slot, source) in claim.and_then(|claim| claim.required_secrets.as_deref()).into_iter().flatten() {
        if let Some(module) = fields.get_mut(slot) {
            bind_digests(module, &format!("of {source}"), digest_key);
        }
    }
    Ok(fields)
}

/// Replaces the digests of secrets by others, which are the same only for the same origin.
fn bind_digests(value: &mut Value, origin: &str, digest_key: &[u8; 32]) {
    let key = DigestKey::new(*digest_key);
    each_digest(value, &mut |text| {
        let digest = key.digest("origin of a secret", &[origin.as_bytes(), text.as_bytes()]).to_hex();
        *text = format!("(secret {digest:.16})");
    });
}

/// The fields of a resource, with its ownership.
pub(super) fn fields(entry: &Entry, digest_key: &[u8; 32]) -> Result<SpecFields, JsonError> {
    let mut fields = digested(entry.spec().as_ref(), entry.claim.as_deref(), digest_key)?;
    if let Some(claim) = &entry.claim {
        fields.insert(OWNED_BY.into(), json::value(claim, Secrets::Masked)?);
    }
    Ok(fields)
}
