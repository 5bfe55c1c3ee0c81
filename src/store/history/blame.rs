//! Who set each field of a resource: the history of the resource, from the newest record to the oldest (D77).

use std::{collections::BTreeMap, ops::ControlFlow};

use jiff::Timestamp;
use serde_json::Value;

use super::{change_description::fields, masking};
use crate::model::{Author, Key};
use crate::store::commit::header::ResourceChange;
use crate::store::engine::Query;
use crate::store::error::StoreError;
use crate::store::open_store::Store;

/// How many records are found at once.
const RECORDS: usize = 50;

/// The fields of a resource, with what set their values.
#[derive(Debug, Clone)]
pub(crate) struct Blame {
    /// The name in the manifests, if a source owns it.
    pub name: Option<String>,
    /// The fields that are set, by JSON pointer. Secrets are masked.
    pub fields: Vec<BlamedField>,
    /// The oldest revision in the history.
    pub oldest: u64,
}

/// A field and what set its value.
#[derive(Debug, Clone)]
pub(crate) struct BlamedField {
    /// The JSON pointer.
    pub pointer: String,
    pub value: Value,
    /// The revision that set it; none if it was set before the oldest revision in the history.
    pub set: Option<SetBy>,
    /// Whether that reverted drift (D85).
    pub reverts_drift: bool,
}

/// A revision that set a value.
#[derive(Debug, Clone)]
pub(crate) struct SetBy {
    pub revision: u64,
    /// The time.
    pub at: Timestamp,
    pub author: Author,
}

impl Store {
    /// Finds what set each field of a resource, or none if the resource does not exist.
    pub(crate) fn blame(&self, key: &Key) -> Result<Option<Blame>, StoreError> {
        let snapshot = self.snapshot();
        let Some(entry) = snapshot.get(key) else { return Ok(None) };
        let now = fields(entry, &self.digest_key);
        let now = now.map_err(StoreError::internal)?;
        let mut search = FieldSearch::new(&Value::Object(now));
        if !search.open.is_empty() {
            self.resource_history(&key.path(), u64::MAX, None, &mut |header, entry| {
                let Some(revision) = header.revision.filter(|revision| *revision <= snapshot.revision) else {
                    return Ok(ControlFlow::Continue(()));
                };
                let set = SetBy { revision, at: header.at, author: header.author.clone() };
                let is_created = self.change_in(entry)?.is_some_and(|change| search.attribute(&change, &set));
                let is_over = is_created || search.open.is_empty();
                Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        }
        let name = entry.name().map(str::to_owned);
        Ok(Some(Blame { name, fields: search.finish(), oldest: self.oldest_revision()? }))
    }

    /// The oldest revision in the history.
    pub(crate) fn oldest_revision(&self) -> Result<u64, StoreError> {
        let mut before = self.statistics().oldest + 1;
        // Records of refused attempts have no revision.
        loop {
            let records = self.headers(&Query::All, before, RECORDS)?;
            let newest = records.first().map(|record| record.position);
            match (records.iter().rev().find_map(|record| record.revision), newest) {
                (Some(revision), _) => return Ok(revision),
                (None, Some(newest)) if newest + 1 >= before && newest < self.position() => {
                    before = newest + RECORDS as u64 + 1;
                }
                _ => return Ok(self.snapshot().revision),
            }
        }
    }
}

/// The fields whose origin is known, and the others.
struct FieldSearch {
    open: BTreeMap<String, Value>,
    found: Vec<BlamedField>,
}

impl FieldSearch {
    fn new(now: &Value) -> Self {
        let mut open = leaves(Some(now));
        open.retain(|_, value| is_set(value));
        Self { open, found: Vec::new() }
    }

    /// Attributes the fields that a record changed. Newer records have been visited before. Returns whether the record created
    /// the resource, so that older ones explain nothing.
    fn attribute(&mut self, change: &ResourceChange, set: &SetBy) -> bool {
        let (was, is) = (leaves(change.before.as_ref()), leaves(change.after.as_ref()));
        let created = change.before.is_none() || change.after.is_none();
        let found = &mut self.found;
        self.open.retain(|pointer, value| {
            let changed = created || was.get(pointer) != is.get(pointer);
            if changed {
                let reverts_drift = change.reverts_drift_of(pointer);
                let (pointer, value, set) = (pointer.clone(), std::mem::take(value), Some(set.clone()));
                found.push(BlamedField { pointer, value, set, reverts_drift });
            }
            !changed
        });
        created
    }

    /// The fields in order, with masked secrets.
    fn finish(self) -> Vec<BlamedField> {
        let unknown = |(pointer, value)| BlamedField { pointer, value, set: None, reverts_drift: false };
        let rest = self.open.into_iter().map(unknown);
        let mut fields: Vec<BlamedField> = self.found.into_iter().chain(rest).collect();
        fields.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        fields.iter_mut().for_each(|field| masking::hide(&mut field.value));
        fields
    }
}

/// The values without fields of their own, by JSON pointer. A list is one value: its items have no names.
fn leaves(value: Option<&Value>) -> BTreeMap<String, Value> {
    fn collect(value: &Value, pointer: &str, leaves: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, field) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    collect(field, &format!("{pointer}/{name}"), leaves);
                }
            }
            leaf => {
                leaves.insert(pointer.to_owned(), leaf.clone());
            }
        }
    }
    let mut leaves = BTreeMap::new();
    if let Some(value) = value {
        collect(value, "", &mut leaves);
    }
    leaves
}

/// Whether a value is other than unset (D14).
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Kind;
    use crate::store::commit::header::ProtectionChange;

    fn resource_change(before: Option<Value>, after: Option<Value>) -> ResourceChange {
        let (path, reverted_drift) = ("/a".into(), vec!["/b/x".into()]);
        let (name, source, declared_at, access) = (None, None, None, ProtectionChange::default());
        ResourceChange { kind: Kind::HttpsEdge, path, name, source, declared_at, reverted_drift, access, before, after }
    }

    fn revision(number: u64) -> SetBy {
        SetBy { revision: number, at: Timestamp::UNIX_EPOCH, author: Author::Local }
    }

    #[test]
    fn each_field_belongs_to_the_last_change_of_its_value() {
        let now = json!({"a": 1, "b": {"x": "new", "y": [1, 2]}, "unset": "", "c": "old"});
        let mut search = FieldSearch::new(&now);
        let b = |x: &str, y: Value| json!({"b": {"x": x, "y": y}});
        let records = [
            (5, resource_change(Some(b("old", json!([1, 2]))), Some(b("new", json!([1, 2]))))),
            (4, resource_change(Some(b("older", json!([1]))), Some(b("old", json!([1, 2]))))),
            (3, resource_change(Some(json!({"c": "older"})), Some(json!({"c": "old"})))),
        ];
        for (number, record) in &records {
            assert!(!search.attribute(record, &revision(*number)));
        }
        let told = |fields: Vec<BlamedField>| -> Vec<(String, Option<u64>)> {
            fields.into_iter().map(|field| (field.pointer, field.set.map(|set| set.revision))).collect()
        };
        let of = |pointer: &str, revision: Option<u64>| (pointer.to_owned(), revision);
        assert!(search.found.iter().all(|field| field.reverts_drift == (field.pointer == "/b/x")));
        let cut = FieldSearch { open: search.open.clone(), found: search.found.clone() };
        let rest = [of("/b/x", Some(5)), of("/b/y", Some(4)), of("/c", Some(3))];
        assert_eq!(told(cut.finish()), [[of("/a", None)].as_slice(), &rest].concat());
        assert!(search.attribute(&resource_change(None, Some(json!({"a": 1}))), &revision(2)));
        assert_eq!(told(search.finish()), [[of("/a", Some(2))].as_slice(), &rest].concat());
    }
}
