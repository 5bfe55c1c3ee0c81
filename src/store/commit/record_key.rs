//! The keys of records in a state.

use crate::model::{Id, Key, Kind};

/// How the records of resources start in the one tree that everything is in.
pub(crate) const RECORD: &str = "r/";
/// How tombstones start: all that is kept of a deleted resource is its place in lists, and the source that owned it.
pub(crate) const DELETED: &str = "d/";

/// Writes a record's key: kind, parent and id. None of them can hold a slash.
pub(super) fn encode_key(prefix: &str, key: &Key) -> String {
    let parent = key.parent.as_ref().map(Id::as_str).unwrap_or_default();
    // A large commit has millions of bytes of keys. This takes exactly the memory that each needs.
    [prefix, key.kind.info().name, "/", parent, "/", key.id.as_str()].concat()
}

/// Reads what [`encode_key`] wrote.
pub(crate) fn decode_key(prefix: &str, record: &[u8]) -> Result<Key, String> {
    let name = std::str::from_utf8(record).map_err(|_| "a record's key is not UTF-8".to_owned())?;
    let mut parts = name.strip_prefix(prefix).unwrap_or(name).splitn(3, '/');
    let (Some(kind), Some(parent), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("the record {name} has an unknown format"));
    };
    let kind = Kind::all().find(|info| info.name == kind).map(|info| info.kind);
    let kind = kind.ok_or_else(|| format!("the record {name} has an unknown kind"))?;
    Ok(Key { kind, parent: (!parent.is_empty()).then(|| Id::new(parent)), id: Id::new(id) })
}
