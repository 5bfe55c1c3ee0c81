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

/// Records start with this byte in the one tree that everything is in.
pub const RECORD: &str = "r/";

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

/// The record's key: kind, parent and id. None of them can hold a slash.
pub fn encode_key(key: &Key) -> String {
    let parent = key.parent.as_ref().map(Id::as_str).unwrap_or_default();
    format!("{RECORD}{}/{parent}/{}", key.kind, key.id)
}

/// The record's value. Here secrets are written as they are: the store is the one place that keeps them.
pub fn encode(entry: &Entry) -> Result<Vec<u8>, serde_json::Error> {
    secret::reveal(|| {
        let Entry { created_at, order, claim, token, .. } = entry;
        serde_json::to_vec(&Written {
            spec: &entry.spec.to_json(),
            created_at: *created_at,
            order: *order,
            claim,
            token,
        })
    })
}

/// Reads a record. The error says what is wrong with it, without its content.
pub fn decode(key: &[u8], value: &[u8]) -> Result<Entry, String> {
    let name = std::str::from_utf8(key).map_err(|_| "a record's key is not text".to_owned())?;
    let mut parts = name.trim_start_matches(RECORD).splitn(3, '/');
    let (Some(kind), Some(parent), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("the record {name} has an unknown form"));
    };
    let info =
        Kind::all().find(|info| info.name == kind).ok_or_else(|| format!("the record {name} has an unknown kind"))?;
    let parent = (!parent.is_empty()).then(|| Id::new(parent));
    let unreadable = |error: serde_json::Error| {
        format!("the record {name} cannot be read (line {}, column {})", error.line(), error.column())
    };
    let read: Read<'_> = serde_json::from_slice(value).map_err(unreadable)?;
    Ok(Entry {
        key: Key { kind: info.kind, parent, id: Id::new(id) },
        spec: (info.restore)(read.spec).map_err(unreadable)?,
        created_at: read.created_at,
        order: read.order,
        claim: read.claim,
        token: read.token,
        rendered: Arc::default(),
    })
}
