//! How a resource is written into a record, and read from it.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::{
    Kind,
    id::Id,
    key::Key,
    operation::Claim,
    secret::{self, Secret},
    snapshot::Entry,
};

/// How the records of resources start in the one tree that everything is in.
pub const RECORD: &str = "r/";
/// How the records of what was deleted start: all that is kept is its place in lists.
pub const DELETED: &str = "d/";

#[derive(Serialize)]
struct Written<'a> {
    spec: &'a serde_json::Map<String, serde_json::Value>,
    created_at: Timestamp,
    order: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: &'a Option<Claim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: &'a Option<Secret>,
}

#[derive(Deserialize)]
struct Read<'a> {
    #[serde(borrow)]
    spec: &'a RawValue,
    created_at: Timestamp,
    order: u64,
    #[serde(default)]
    claim: Option<Claim>,
    #[serde(default)]
    token: Option<Secret>,
}

/// A record's key: kind, parent and id. None of them can hold a slash.
pub fn encode_key(prefix: &str, key: &Key) -> String {
    let parent = key.parent.as_ref().map(Id::as_str).unwrap_or_default();
    format!("{prefix}{}/{parent}/{}", key.kind, key.id)
}

fn decode_key(prefix: &str, record: &[u8]) -> Result<Key, String> {
    let name = std::str::from_utf8(record).map_err(|_| "a record's key is not text".to_owned())?;
    let mut parts = name.strip_prefix(prefix).unwrap_or(name).splitn(3, '/');
    let (Some(kind), Some(parent), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("the record {name} has an unknown form"));
    };
    let kind = Kind::all().find(|info| info.name == kind).map(|info| info.kind);
    let kind = kind.ok_or_else(|| format!("the record {name} has an unknown kind"))?;
    Ok(Key { kind, parent: (!parent.is_empty()).then(|| Id::new(parent)), id: Id::new(id) })
}

/// Reads the record of something that was deleted.
pub fn decode_deleted(record: &[u8], value: &[u8]) -> Result<(Key, u64), String> {
    let order = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    Ok((decode_key(DELETED, record)?, order.ok_or("the record of a deletion cannot be read")?))
}

/// The record's value. Here secrets are written as they are: the store is the one place that keeps them.
pub fn encode(entry: &Entry) -> Result<Vec<u8>, serde_json::Error> {
    let spec = secret::reveal(|| entry.spec.to_json())?;
    secret::reveal(|| {
        let Entry { created_at, order, claim, token, .. } = entry;
        serde_json::to_vec(&Written { spec: &spec, created_at: *created_at, order: *order, claim, token })
    })
}

/// Reads a record. The error says what is wrong with it, without its content.
pub fn decode(key: &[u8], value: &[u8]) -> Result<Entry, String> {
    let name = String::from_utf8_lossy(key);
    let key = decode_key(RECORD, key)?;
    let unreadable = |error: serde_json::Error| {
        format!("the record {name} cannot be read (line {}, column {})", error.line(), error.column())
    };
    let read: Read<'_> = serde_json::from_slice(value).map_err(unreadable)?;
    let spec = (key.kind.info().restore)(read.spec).map_err(unreadable)?;
    Ok(Entry {
        key,
        spec,
        created_at: read.created_at,
        order: read.order,
        claim: read.claim,
        token: read.token,
        rendered: Arc::default(),
    })
}
