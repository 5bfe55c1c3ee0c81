//! The response bodies of `/history`, for the server and for the command line.

use crate::model::author::{commit_author_of, key_of};
use crate::model::json;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::store::commit::header::{CommitHeader, Record, ResourceChange};
use crate::store::history::blame::Blame;
use crate::store::history::commits::is_dirty;
use crate::store::history::masking;
use crate::store::history::records::CommitDetails;

/// The author of an attempt, and its manifests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HistoryAuthor {
    /// `api`, `source`, `rollback` or `local`; empty if unknown.
    pub by: String,
    /// The API key of the request, or empty.
    pub key_id: String,
    /// The current description of the API key; empty if it has none, or was deleted.
    #[serde(default)]
    pub key_description: String,
    /// The owner of the API key, or empty.
    pub owner_id: String,
    /// The source of the manifests, or the source that was rolled back, suspended or resumed; empty if there is none.
    pub source: String,
    /// The Git commit of the manifests, or empty.
    pub commit: String,
    /// The name of the commit's author, or empty.
    pub commit_author_name: String,
    /// The email address of the commit's author, or empty.
    pub commit_author_email: String,
    /// The first line of the commit's message, or empty.
    pub commit_message: String,
    /// The revision that a rollback brought back, or null.
    pub rollback_to: Option<u64>,
    /// Whether the source was destroyed: all of its resources were deleted.
    #[serde(default)]
    pub destroyed: bool,
}

impl HistoryAuthor {
    /// Describes an author. `state` has the present description of the API key.
    pub(crate) fn new(author: &Author, state: &Snapshot) -> Self {
        let description = author.key().map(|key| state.key_description(key));
        Self::with_key(author, description.unwrap_or_default())
    }

    /// Describes an author whose API key has a description.
    pub(crate) fn with_key(author: &Author, description: &str) -> Self {
        let by = |by: &str, through: &Option<(Id, Id)>| {
            let through = through.as_ref().map(|(key, owner)| (key.to_string(), owner.to_string()));
            let (key_id, owner_id) = through.unwrap_or_default();
            let key_description = description.to_owned();
            Self { by: by.to_owned(), key_id, key_description, owner_id, ..Self::default() }
        };
        match author {
            Author::Api { key, owner } => by("api", &Some((key.clone(), owner.clone()))),
            Author::Local => by("local", &None),
            Author::Rollback { to, source, through, .. } => {
                Self { source: source.clone().unwrap_or_default(), rollback_to: Some(*to), ..by("rollback", through) }
            }
            Author::Source { source, commit, commit_author, commit_message, through, destroyed } => {
                let who = commit_author.as_ref();
                Self {
                    source: source.clone(),
                    commit: commit.clone().unwrap_or_default(),
                    commit_author_name: who.map(|who| who.name.clone()).unwrap_or_default(),
                    commit_author_email: who.map(|who| who.email.clone()).unwrap_or_default(),
                    commit_message: commit_message.clone().unwrap_or_default(),
                    destroyed: *destroyed,
                    ..by("source", through)
                }
            }
        }
    }

    /// Removes the author of the commit and its message.
    fn without_committer(mut self) -> Self {
        for text in [&mut self.commit_author_name, &mut self.commit_author_email, &mut self.commit_message] {
            text.clear();
        }
        self
    }

    /// Describes the author in a few words.
    pub(crate) fn text(&self) -> String {
        let mut text = match (self.by.as_str(), self.rollback_to) {
            ("source", _) if self.destroyed => format!("destroy of source `{}`", self.source),
            ("source", _) => format!("source `{}`", self.source),
            (_, Some(to)) if self.source.is_empty() => format!("rollback to revision {to}"),
            (_, Some(to)) => format!("rollback to revision {to} of source `{}`", self.source),
            ("local", _) => "command line".to_owned(),
            _ => String::new(),
        };
        if !self.commit.is_empty() {
            text += &format!(" at {}", self.commit);
        }
        // The commit's author did not make the uncommitted changes.
        let is_dirty = is_dirty(&self.commit);
        let who = commit_author_of(&self.commit_author_name, &self.commit_author_email);
        if is_dirty {
            text += " (uncommitted changes)";
        } else if !who.is_empty() {
            text += &format!(" by {who}");
        }
        if !self.key_id.is_empty() {
            let with = if text.is_empty() { "" } else { " with " };
            text += &format!("{with}{}", key_of(&self.key_id, &self.key_description, &self.owner_id));
        }
        if !self.commit_message.is_empty() && !is_dirty {
            text += &format!(": {}", self.commit_message);
        }
        text
    }
}

/// An attempt to change the store, in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HistoryItem {
    /// The number of the record, for `before_id` in lists.
    pub id: String,
    /// The URI of the revision, or empty if the attempt changed nothing.
    pub uri: String,
    /// The revision that the attempt made; null if it changed nothing.
    pub revision: Option<u64>,
    /// The time of the attempt.
    pub created_at: String,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// `applied`, `refused` or `failed`; `suspended` or `resumed` if a source was; `scrubbed` if API tokens were removed.
    pub outcome: String,
    /// Why it was refused or failed, or why the source was suspended; which source an applied change overrides, or the drift
    /// that it reverted; or empty.
    pub message: String,
    /// The author.
    #[serde(flatten)]
    pub author: HistoryAuthor,
    /// The number of calls.
    pub operations: usize,
    /// The number of resources that it changed.
    pub changed: usize,
}

/// A revision with everything that it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HistoryEntry {
    /// The fields shown in lists.
    #[serde(flatten)]
    pub head: HistoryItem,
    /// The operations in order: each call as `METHOD path`, and operations without a call, such as ownership changes,
    /// in parentheses.
    pub calls: Vec<String>,
    /// The resources that changed.
    pub resources: Vec<HistoryResource>,
}

/// A resource before and after a change. Secrets show only as `(secret)` and whether they changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HistoryResource {
    /// The kind.
    pub kind: String,
    /// The path in the API.
    pub path: String,
    /// The name in the manifests, or empty.
    pub name: String,
    /// The source that owns it, or empty.
    pub source: String,
    /// The file and line that declare it, or empty.
    pub declared_at: String,
    /// JSON pointers to the fields whose drift was reverted; an empty one is the whole resource.
    #[serde(default)]
    pub reverted_drift: Vec<String>,
    /// The modules that no longer restrict access to the resource: the change opens it.
    #[serde(default)]
    pub opens_access: Vec<String>,
    /// The fields before; null if it did not exist. Of a changed resource, only the fields that differ.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub before: Option<Value>,
    /// The fields after; null if it no longer exists.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub after: Option<Value>,
}

/// The last change of each field of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResourceBlame {
    /// The kind.
    pub kind: String,
    /// The path in the API.
    pub resource: String,
    /// The name in the manifests, or empty.
    pub name: String,
    /// The fields that are set, in order.
    pub fields: Vec<FieldBlame>,
}

/// The change that set the value of a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FieldBlame {
    /// JSON pointer to the field.
    pub field: String,
    /// The value, with masked secrets. A long text is its size and digest.
    pub value: Value,
    /// The revision that set it; null if that is no longer in the history.
    pub revision: Option<u64>,
    /// The oldest revision in the history, if the value is older; otherwise null.
    pub before_revision: Option<u64>,
    /// The time of the revision, or empty.
    pub created_at: String,
    /// Whether the revision reverted drift of the field. If so, no commit author is named.
    #[serde(default)]
    pub reverts_drift: bool,
    /// The author.
    #[serde(flatten)]
    pub author: HistoryAuthor,
}

impl FieldBlame {
    /// Describes in a few words who set the value.
    pub(crate) fn author_text(&self) -> String {
        let author = self.author.text();
        if self.reverts_drift { format!("drift reverted: {author}") } else { author }
    }
}

impl HistoryItem {
    /// Describes a record.
    pub(crate) fn from_header(record: &CommitHeader, base_url: &str, state: &Snapshot) -> Self {
        let mut author = HistoryAuthor::new(&record.author, state);
        if let Some(source) = &record.source {
            author.source.clone_from(source);
        }
        Self {
            id: record.position.to_string(),
            uri: record.revision.map(|revision| format!("{base_url}{PATH}/{revision}")).unwrap_or_default(),
            revision: record.revision,
            created_at: record.at.to_string(),
            milliseconds: record.milliseconds,
            outcome: record.outcome.to_string(),
            message: record.message.clone(),
            author,
            operations: record.operations,
            changed: record.changed,
        }
    }
}

impl HistoryEntry {
    /// Describes a record with what it changed.
    pub(crate) fn from_record(record: Record, base_url: &str, state: &Snapshot) -> Self {
        let head = HistoryItem::from_header(&record, base_url, state);
        let resources = record.resources.into_iter().map(HistoryResource::new).collect();
        Self { head, resources, calls: record.calls }
    }

    /// Describes a revision as the body of a response. Each resource is described by itself.
    pub(crate) fn body_of(
        revision: &CommitDetails,
        base_url: &str,
        store: &Store,
        state: &Snapshot,
    ) -> Result<Vec<u8>, ApiError> {
        let head = HistoryItem::from_header(&revision.header, base_url, state);
        let calls = revision.calls()?;
        let without_resources = Self { head, calls, resources: Vec::new() };
        let mut body = json::bytes(&without_resources, Secrets::Masked)?;
        // The resources are the last field.
        let end = body.split_off(body.len().saturating_sub(END.len()));
        debug_assert_eq!(end, END);
        for (number, touched) in revision.changes(store).enumerate() {
            if number > 0 {
                body.push(b',');
            }
            body.extend_from_slice(&json::bytes(&HistoryResource::new(touched?), Secrets::Masked)?);
        }
        body.extend_from_slice(&end);
        Ok(body)
    }
}

impl HistoryResource {
    pub(crate) fn new(mut touched: ResourceChange) -> Self {
        masking::hide_change(touched.before.as_mut(), touched.after.as_mut());
        Self {
            kind: touched.kind.to_string(),
            path: touched.path,
            name: touched.name.unwrap_or_default(),
            source: touched.source.unwrap_or_default(),
            declared_at: touched.declared_at.unwrap_or_default(),
            reverted_drift: touched.reverted_drift,
            opens_access: touched.access.lost,
            before: touched.before,
            after: touched.after,
        }
    }
}

impl ResourceBlame {
    /// Describes who set the fields of a resource.
    pub(crate) fn new(key: &Key, blame: Blame, state: &Snapshot) -> Self {
        let Blame { name, fields, oldest } = blame;
        let fields = fields.into_iter().map(|field| {
            let set = field.set.as_ref();
            let author = set.map(|set| HistoryAuthor::new(&set.author, state)).unwrap_or_default();
            FieldBlame {
                field: field.pointer,
                value: field.value,
                revision: set.map(|set| set.revision),
                before_revision: set.is_none().then_some(oldest),
                created_at: set.map(|set| set.at.to_string()).unwrap_or_default(),
                reverts_drift: field.reverts_drift,
                // Whoever committed last has not changed this field.
                author: if field.reverts_drift { author.without_committer() } else { author },
            }
        });
        let fields = fields.collect();
        Self { kind: key.kind.to_string(), resource: key.path(), name: name.unwrap_or_default(), fields }
    }
}

/// The end of a [`HistoryEntry`] without resources, after the bracket that opens the list of them.
const END: &[u8] = b"]}";

/// The path of the list.
pub(crate) const PATH: &str = "/history";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Kind;
    use crate::model::kind::https_edge::HttpsEdge;
    use crate::model::operation::Operation;
    use crate::store::{MEMORY, Store};

    #[test]
    fn uncommitted_changes_are_not_of_the_author_of_the_commit() {
        let of_commit = |commit: &str| HistoryAuthor {
            by: "source".to_owned(),
            source: "shop".to_owned(),
            commit: commit.to_owned(),
            commit_author_name: "Alex Doe".to_owned(),
            commit_author_email: "alex@example.com".to_owned(),
            commit_message: "The shop".to_owned(),
            ..HistoryAuthor::default()
        };
        let clean = of_commit("d07368db").text();
        assert_eq!(clean, "source `shop` at d07368db by Alex Doe <alex@example.com>: The shop");
        assert_eq!(of_commit("d07368db-dirty").text(), "source `shop` at d07368db-dirty (uncommitted changes)");
    }

    #[test]
    fn the_body_of_a_revision_is_the_entry_of_its_record() {
        let store = Store::open(MEMORY).unwrap();
        let operation = |number: u32| {
            let key = Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{number}")));
            let spec = Arc::new(HttpsEdge { description: format!("\"{number}\""), ..HttpsEdge::default() });
            Operation::create(key, spec)
        };
        let base = "https://edge.example.com";
        for numbers in [1..2_u32, 2..5, 5..5] {
            let revision = store.commit(Author::Local, numbers.map(operation).collect()).unwrap().revision;
            let state = store.snapshot();
            let whole = HistoryEntry::from_record(store.record(revision).unwrap().unwrap(), base, &state);
            let details = store.details(revision).unwrap().unwrap();
            let body = HistoryEntry::body_of(&details, base, &store, &state).unwrap();
            assert_eq!(body, json::bytes(&whole, Secrets::Masked).unwrap());
        }
    }
}
