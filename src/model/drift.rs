//! Drift: the causes of differences between a source's manifests and the store, field by field (D85).

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::author::{Author, key_name, key_of};
use super::diagnostics::Path;
use super::id::Id;
use super::key::Key;
use super::snapshot::Snapshot;

/// The fields of a resource, with secrets as digests.
pub(crate) type DriftFields = Map<String, Value>;

/// The cause of a difference between the manifests and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriftState {
    /// The manifests have changed.
    Pending,
    /// The store has changed.
    Drift,
    /// Both have changed.
    Conflict,
}

/// A field that the store and the manifests have with different values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldDrift {
    /// JSON pointer to the field; empty for a resource that was deleted.
    pub field: String,
    /// The cause of the difference.
    pub state: DriftState,
    /// Whether the value was removed from the store, not set.
    #[serde(default)]
    pub removed: bool,
    /// The author who set or removed the value in the store; empty for a pending field.
    pub by: String,
    /// The revision that did; null for a pending field.
    pub revision: Option<u64>,
    /// The time of the revision; empty for a pending field.
    pub at: String,
    /// The author without IDs: for pages alone.
    #[serde(skip)]
    pub(crate) by_name: String,
    /// Whether a rollback did, likewise.
    #[serde(skip)]
    pub(crate) by_rollback: bool,
    /// The value that the source applied last, with digests of secrets: for pages alone. Null for a pending field.
    #[serde(skip)]
    pub(crate) applied: Value,
    /// The value in the store, likewise.
    #[serde(skip)]
    pub(crate) live: Value,
}

/// The drift of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// `conflict` if that is the state of any field, and `drift` otherwise.
    pub state: DriftState,
    /// The fields that differ.
    pub fields: Vec<FieldDrift>,
}

/// A resource that drifted, for the status of its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DriftedResource {
    /// The kind.
    pub kind: String,
    /// The name in the manifests, prefixed with the parent's name.
    pub name: String,
    /// The identifier.
    pub id: String,
    /// The path in the API.
    pub path: String,
    /// The drift and conflicts, and who caused them.
    pub fields: Vec<FieldDrift>,
}

/// A write to a resource by anyone but its source. A resource that existed before and after has only the fields that
/// differ.
#[derive(Debug, Clone)]
pub(crate) struct ExternalWrite {
    /// The fields before, or none if the resource did not exist.
    pub before: Option<Value>,
    /// The fields after, or none if the resource no longer existed.
    pub after: Option<Value>,
    /// The source that owned the resource before, if it was deleted.
    pub owner: Option<String>,
    /// The author of the write.
    pub by: String,
    /// The author without the IDs of a key that has a description.
    pub by_name: String,
    /// Whether the write is part of a rollback.
    pub by_rollback: bool,
    /// The revision.
    pub revision: u64,
    /// The time of the revision.
    pub at: String,
}

/// Describes who made a change. `state` has the present descriptions of API keys.
pub(crate) fn writer(author: &Author, state: &Snapshot) -> String {
    writer_by(author, state, key_of)
}

/// Describes who made a change, without the IDs of a key that has a description.
pub(crate) fn named_writer(author: &Author, state: &Snapshot) -> String {
    writer_by(author, state, key_name)
}

fn writer_by(author: &Author, state: &Snapshot, of_key: fn(&str, &str, &str) -> String) -> String {
    let named = |key: &Id, owner: &Id| of_key(key.as_str(), state.key_description(key), owner.as_str());
    let through_key = |what: String, word: &str, through: &Option<(Id, Id)>| match through {
        Some((key, owner)) => format!("{what} {word} {}", named(key, owner)),
        None => what,
    };
    match author {
        Author::Api { key, owner } => named(key, owner),
        Author::Local => "command line".to_owned(),
        Author::Rollback { to, source, through, .. } => {
            let of = source.as_ref().map(|source| format!(" of source `{source}`")).unwrap_or_default();
            through_key(format!("rollback to revision {to}{of}"), "by", through)
        }
        Author::Source { source, through, .. } => through_key(format!("source `{source}`"), "with", through),
    }
}

impl Drift {
    /// Compares what a source applied last, what the store has (`None` if the resource was deleted), and what the
    /// manifests declare. `writes` are those of others since then, newest first. Returns none without drift.
    pub(crate) fn detect(
        source: &str,
        live: Option<&DriftFields>,
        wanted: &DriftFields,
        writes: &[ExternalWrite],
    ) -> Option<Self> {
        let newest = writes.first()?;
        let Some(live) = live else {
            let deleted = newest.after.is_none() && newest.owner.as_deref() == Some(source);
            let last = newest.before.as_ref()?.as_object().filter(|_| deleted)?;
            let applied = undo(last.clone(), writes.get(1..).unwrap_or_default());
            let is_same = names(&applied, wanted).into_iter().all(|name| same(at(&applied, name), at(wanted, name)));
            let state = if is_same { DriftState::Drift } else { DriftState::Conflict };
            return Some(Self { state, fields: vec![newest.field(String::new(), state, true)] });
        };
        let applied = undo(live.clone(), writes);
        let mut fields = Vec::new();
        for name in names(live, wanted) {
            let mut found = Vec::new();
            let pointer = Path::from(name).to_string();
            compare(at(&applied, name), at(live, name), at(wanted, name), pointer, &mut found);
            // A module is written as a whole, so what drifted in it cannot be kept while the rest is applied.
            if found.iter().any(|it| it.state != DriftState::Drift) {
                let mixed = found.iter_mut().filter(|it| it.state == DriftState::Drift);
                mixed.for_each(|it| it.state = DriftState::Conflict);
            }
            fields.extend(found.into_iter().map(|it| FieldDrift::new(it, writes)));
        }
        let state = fields.iter().map(|field| field.state).max()?;
        (state != DriftState::Pending).then_some(Self { state, fields })
    }

    /// Compares what a source applied last with what the store has, if nobody knows what the manifests declare now. `writes` are
    /// those of others since then, newest first. What others have created is none.
    pub(crate) fn since_applied(source: &str, live: Option<&DriftFields>, writes: &[ExternalWrite]) -> Option<Self> {
        if writes.iter().any(|write| write.before.is_none()) {
            return None;
        }
        let applied = match (live, writes.split_first()?) {
            (Some(live), _) => undo(live.clone(), writes),
            (None, (newest, earlier)) => undo(newest.before.as_ref()?.as_object()?.clone(), earlier),
        };
        Self::detect(source, live, &applied, writes)
    }

    /// Makes the drift that of a resource which the manifests replace: it is written as a whole, so nothing of its drift can
    /// be kept.
    pub(crate) fn into_conflict(mut self) -> Self {
        for field in self.fields.iter_mut().filter(|field| field.state == DriftState::Drift) {
            field.state = DriftState::Conflict;
        }
        self.state = DriftState::Conflict;
        self
    }

    /// The drift of some of the fields. None if none of them drifted.
    pub(crate) fn of_fields(&self, is_wanted: impl Fn(&FieldDrift) -> bool) -> Option<Self> {
        let fields: Vec<FieldDrift> = self.fields.iter().filter(|field| is_wanted(field)).cloned().collect();
        let state = fields.iter().map(|field| field.state).max()?;
        fields.iter().any(|field| field.state == DriftState::Drift).then_some(Self { state, fields })
    }

    /// Whether the resource was deleted.
    pub(crate) fn is_deletion(&self) -> bool {
        self.fields.iter().any(|field| field.field.is_empty())
    }

    /// The top-level fields, modules included, that only others have changed.
    pub(crate) fn units(&self) -> BTreeSet<&str> {
        let named = |drifted: bool| {
            let fields = self.fields.iter().filter(move |field| (field.state == DriftState::Drift) == drifted);
            fields.filter_map(FieldDrift::unit)
        };
        let others: BTreeSet<&str> = named(false).collect();
        named(true).filter(|unit| !others.contains(unit)).collect()
    }

    /// The fields that the manifests revert: only others have changed them.
    pub(crate) fn reverted(&self) -> impl Iterator<Item = &FieldDrift> {
        self.fields.iter().filter(|field| field.state == DriftState::Drift)
    }

    /// The fields that others have changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &FieldDrift> {
        self.fields.iter().filter(|field| field.state != DriftState::Pending)
    }
}

impl DriftedResource {
    /// Creates it from the drift of a resource, without the fields that only the manifests have changed.
    pub(crate) fn new(key: &Key, name: String, drift: &Drift) -> Self {
        let (kind, id, path) = (key.kind.to_string(), key.id.to_string(), key.path());
        Self { kind, name, id, path, fields: drift.changed().cloned().collect() }
    }
}

/// Whether only others have changed fields, and the manifests none of them.
pub(crate) fn only_others_changed(fields: &[FieldDrift]) -> bool {
    fields.iter().all(|field| field.state == DriftState::Drift)
}

/// Displays what happened, on one line.
impl fmt::Display for FieldDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            DriftState::Pending => return write!(f, "pending: {}", self.field),
            DriftState::Drift => "drift",
            DriftState::Conflict => "conflict",
        };
        write!(f, "{state}: {}", self.happened(&self.field))
    }
}

/// Displays the resource and what happened, on one line.
impl fmt::Display for DriftedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.kind, self.name, self.id)?;
        // One person usually writes several fields at once.
        let mut writes: Vec<(&FieldDrift, Vec<&str>)> = Vec::new();
        for field in &self.fields {
            match writes.iter_mut().find(|(first, _)| first.is_of_write(field)) {
                Some((_, fields)) => fields.push(field.field.as_str()),
                None => writes.push((field, vec![field.field.as_str()])),
            }
        }
        for (at, (first, fields)) in writes.iter().enumerate() {
            let state = if first.state == DriftState::Conflict { "conflict: " } else { "" };
            write!(f, "{}{state}{}", if at == 0 { ": " } else { "; " }, first.happened(&fields.join(", ")))?;
        }
        Ok(())
    }
}

impl FieldDrift {
    fn new(difference: Difference<'_>, writes: &[ExternalWrite]) -> Self {
        let Difference { field, state, applied, live } = difference;
        let value = |side: &Option<Value>| side.as_ref().and_then(|side| side.pointer(&field)).cloned();
        let has_value = |side: &Option<Value>| value(side).is_some_and(|value| !value.is_null());
        let set = writes.iter().find(|write| value(&write.before) != value(&write.after)).or(writes.first());
        match set.filter(|_| state != DriftState::Pending) {
            Some(write) => {
                let removed = has_value(&write.before) && !has_value(&write.after);
                Self { applied: applied.clone(), live: live.clone(), ..write.field(field, state, removed) }
            }
            None => {
                let (by, by_name, by_rollback, at, applied, live) = Default::default();
                Self { field, state, removed: false, by, revision: None, at, by_name, by_rollback, applied, live }
            }
        }
    }

    /// The top-level field, or the module, that it is in; none for a resource that was deleted.
    pub(crate) fn unit(&self) -> Option<&str> {
        self.field.split('/').nth(1)
    }

    /// Whether another field was changed by the same write in the same way.
    fn is_of_write(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.state, it.removed, it.revision);
        of(self) == of(other) && (&self.by, &self.at) == (&other.by, &other.at)
    }

    /// Describes the effect of a write on fields of a resource; no fields means the whole resource.
    fn happened(&self, fields: &str) -> String {
        let Self { removed, by, revision, at, .. } = self;
        let what = match (fields, removed) {
            ("", _) => "deleted".to_owned(),
            (fields, true) => format!("{fields} removed"),
            (fields, false) => format!("{fields} set"),
        };
        format!("{what} by {by}, revision {}, {at}", revision.unwrap_or_default())
    }
}

impl ExternalWrite {
    fn field(&self, field: String, state: DriftState, removed: bool) -> FieldDrift {
        let (by, by_name, at) = (self.by.clone(), self.by_name.clone(), self.at.clone());
        let (applied, live, revision) = (Value::Null, Value::Null, Some(self.revision));
        FieldDrift { field, state, removed, by, revision, at, by_name, by_rollback: self.by_rollback, applied, live }
    }
}

/// Undoes writes, newest first.
fn undo(mut fields: DriftFields, writes: &[ExternalWrite]) -> DriftFields {
    for write in writes {
        let side = |side: &Option<Value>| side.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        for name in side(&write.after).keys() {
            fields.remove(name);
        }
        fields.extend(side(&write.before));
    }
    fields
}

fn names<'a>(one: &'a DriftFields, other: &'a DriftFields) -> BTreeSet<&'a str> {
    one.keys().chain(other.keys()).map(String::as_str).collect()
}

fn at<'a>(fields: &'a DriftFields, name: &str) -> &'a Value {
    fields.get(name).unwrap_or(&Value::Null)
}

/// A field in which a resource differs from its manifest.
struct Difference<'v> {
    field: String,
    state: DriftState,
    applied: &'v Value,
    live: &'v Value,
}

fn compare<'v>(applied: &'v Value, live: &'v Value, wanted: &Value, field: String, found: &mut Vec<Difference<'v>>) {
    if same(live, wanted) {
        return;
    }
    if let (Value::Object(applied), Value::Object(live), Value::Object(wanted)) = (applied, live, wanted)
        && ![applied, live, wanted].iter().any(|fields| fields.is_empty())
    {
        for name in names(live, wanted) {
            let field = format!("{field}{}", Path::from(name));
            compare(at(applied, name), at(live, name), at(wanted, name), field, found);
        }
        return;
    }
    let state = match (same(applied, live), same(applied, wanted)) {
        (true, _) => DriftState::Pending,
        (false, true) => DriftState::Drift,
        (false, false) => DriftState::Conflict,
    };
    found.push(Difference { field, state, applied, live });
}

/// Whether two values are the same. A fraction that was read from the history may differ in its last digit.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one != other => match (one.as_f64(), other.as_f64()) {
            (Some(a), Some(b)) => (one.is_f64() || other.is_f64()) && (a - b).abs() <= a.abs() * 1e-12,
            _ => false,
        },
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            names(one, other).into_iter().all(|name| same(at(one, name), at(other, name)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> DriftFields {
        value.as_object().cloned().unwrap()
    }

    fn write(revision: u64, before: Value, after: Value) -> ExternalWrite {
        let side = |value: Value| Some(value).filter(|value| !value.is_null());
        let owner = after.is_null().then(|| "shop".to_owned());
        let (before, after, by) = (side(before), side(after), format!("key {revision}"));
        let (by_name, at) = (by.clone(), "now".to_owned());
        ExternalWrite { before, after, owner, by, by_name, by_rollback: false, revision, at }
    }

    fn states(drift: Option<Drift>) -> Vec<(String, DriftState, Option<u64>)> {
        let all = drift.map(|drift| drift.fields).unwrap_or_default();
        all.into_iter().map(|it| (it.field, it.state, it.revision)).collect()
    }

    #[test]
    fn drift_pending_and_conflict_are_told_apart_field_by_field() {
        let live = fields(json!({"a": "hand", "b": "old", "c": "hand", "d": "same", "e": [1]}));
        let wanted = fields(json!({"a": "one", "b": "new", "c": "new", "d": "same", "e": []}));
        let writes = [
            write(7, json!({"a": "other"}), json!({"a": "hand"})),
            write(6, json!({"c": "old", "e": []}), json!({"c": "hand", "e": [1]})),
            write(5, json!({"a": "one"}), json!({"a": "other"})),
        ];
        let drift = Drift::detect("shop", Some(&live), &wanted, &writes).unwrap();
        assert_eq!(drift.state, DriftState::Conflict);
        assert_eq!(drift.units().into_iter().collect::<Vec<_>>(), ["a", "e"]);
        let values: Vec<Value> = drift.changed().map(|it| json!([it.applied, it.live])).collect();
        assert_eq!(values, [json!(["one", "hand"]), json!(["old", "hand"]), json!([[], [1]])]);
        let of = |name: &str, state, revision| (name.to_owned(), state, revision);
        let expected = [
            of("/a", DriftState::Drift, Some(7)),
            of("/b", DriftState::Pending, None),
            of("/c", DriftState::Conflict, Some(6)),
            of("/e", DriftState::Drift, Some(6)),
        ];
        assert_eq!(states(Some(drift)), expected);
        assert_eq!(Drift::detect("shop", Some(&live), &wanted, &[]), None, "nobody else has written");
        let replaced = states(Drift::detect("shop", Some(&live), &wanted, &writes).map(Drift::into_conflict));
        let told: Vec<DriftState> = replaced.into_iter().map(|(_, state, _)| state).collect();
        let (pending, conflict) = (DriftState::Pending, DriftState::Conflict);
        assert_eq!(told, [conflict, pending, conflict, conflict], "nothing is kept of a resource that is replaced");
        let nothing = [write(7, json!({"d": "x"}), json!({"d": "same"}))];
        assert_eq!(Drift::detect("shop", Some(&live), &wanted, &nothing), None, "what differs is pending");
    }

    #[test]
    fn a_drifted_resource_names_each_write_once_and_what_it_removed() {
        let live = fields(json!({"a": "hand", "b": "hand", "oauth": null}));
        let wanted = fields(json!({"a": "one", "b": "one", "oauth": {"x": 1}}));
        let writes = [
            write(7, json!({"a": "one", "b": "one"}), json!({"a": "hand", "b": "hand"})),
            write(6, json!({"oauth": {"x": 1}}), json!({})),
        ];
        let drift = Drift::detect("shop", Some(&live), &wanted, &writes).unwrap();
        let [kind, name, id, path] = ["HttpsEdge", "one", "edghts_1", ""].map(str::to_owned);
        let resource = DriftedResource { kind, name, id, path, fields: drift.fields };
        let expected = "HttpsEdge one (edghts_1): /a, /b set by key 7, revision 7, now; \
                        /oauth removed by key 6, revision 6, now";
        assert_eq!(resource.to_string(), expected);
    }

    #[test]
    fn a_rollback_is_described_with_its_source_and_key() {
        let through = Some((Id::new("ak_1"), Id::new("usr_1")));
        let author = |source: Option<&str>| Author::Rollback {
            to: 31,
            source: source.map(str::to_owned),
            rejected: Vec::new(),
            through: through.clone(),
        };
        let described = |source| writer(&author(source), &Snapshot::default());
        assert_eq!(described(Some("docs")), "rollback to revision 31 of source `docs` by API key ak_1 of usr_1");
        assert_eq!(described(None), "rollback to revision 31 by API key ak_1 of usr_1");
    }

    #[test]
    fn a_module_is_one_unit() {
        let live = fields(json!({"m": {"x": 1, "y": 2}, "n": {"x": 1}}));
        let wanted = fields(json!({"m": {"x": 0, "y": 3}, "n": null}));
        let writes =
            [write(4, json!({"m": {"x": 0, "y": 2}, "n": null}), json!({"m": {"x": 1, "y": 2}, "n": {"x": 1}}))];
        let drift = Drift::detect("shop", Some(&live), &wanted, &writes).unwrap();
        assert_eq!(drift.units().into_iter().collect::<Vec<_>>(), ["n"], "`m` also has a pending field");
        let found = states(Some(drift));
        let of = |name: &str, state, revision| (name.to_owned(), state, revision);
        assert_eq!(
            found,
            [
                of("/m/x", DriftState::Conflict, Some(4)),
                of("/m/y", DriftState::Pending, None),
                of("/n", DriftState::Drift, Some(4)),
            ]
        );
    }

    #[test]
    fn a_deleted_resource_drifted_unless_its_manifest_has_changed() {
        let before = json!({"a": "hand", "b": 1});
        let writes = [write(9, before.clone(), Value::Null), write(8, json!({"a": "one"}), json!({"a": "hand"}))];
        let of = |a: &str| Drift::detect("shop", None, &fields(json!({"a": a, "b": 1})), &writes);
        let deleted = of("one").unwrap();
        assert!(deleted.is_deletion() && deleted.state == DriftState::Drift);
        assert_eq!(deleted.fields.first().unwrap().to_string(), "drift: deleted by key 9, revision 9, now");
        assert_eq!(of("two").unwrap().state, DriftState::Conflict);
        assert_eq!(Drift::detect("docs", None, &fields(before), &writes), None, "it was another source's");
    }
}
