//! The content of notifications: a JSON object, and one line for people.

use serde_json::json;

use super::transitions::{EventContent, Transition};
use super::{change_text, cursors::Cursor, event_filter::EventFilter, events::EventType};
use crate::model::CommitAuthor;
use crate::model::drift::writer;
use crate::server::prelude::*;
use crate::server::resources::change::actor;
use crate::store::ChangeEvent;
use crate::store::commit::entries::Hash;
use crate::store::history::change_description::ChangeOutline;
use crate::store::history::commits::{is_dirty, short_commit};
use crate::store::history::records::CommitDetails;
use crate::syntax::text::{beginning, without_tokens};

/// The most changes in a notification. A revision with more has several.
const MOST_CHANGES: usize = 500;
/// The most changes that a text names.
const NAMED_CHANGES: usize = 5;
/// The most characters of a text: a chat cuts longer ones.
const MOST_CHARACTERS: usize = 2000;

/// A notification. Its id depends only on what it is about and whom it tells, so it stays the same in each attempt.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) id: Id,
    /// JSON on one line.
    pub(super) body: Vec<u8>,
    /// The notification on one line for people.
    pub(super) text: String,
    /// The cursor of the target after it was delivered.
    pub(super) after: Cursor,
}

impl Notification {
    fn new(id: Id, r#type: &str, timestamp: Timestamp, text: String, data: &Value, after: Cursor) -> Self {
        let body = json!({"id": id, "type": r#type, "timestamp": timestamp, "text": text, "data": data});
        Self { id, body: body.to_string().into_bytes(), text, after }
    }
}

#[derive(Serialize)]
struct NotifiedChange {
    event: ChangeEvent,
    kind: Kind,
    id: Id,
    parent: Option<Id>,
    source: Option<String>,
    name: Option<String>,
    uri: String,
    fields: Vec<String>,
    reverted_drift: Vec<String>,
    /// One line for people.
    #[serde(skip)]
    text: String,
}

/// The recipient of notifications.
pub(super) struct Recipient<'a> {
    /// Tells the notifications of this store from those of others.
    pub(super) store: &'a [u8],
    /// The name of the target.
    pub(super) name: &'a str,
}

impl Recipient<'_> {
    fn id(&self, about: &[u8], number: u64) -> Id {
        Id::derived("msg_", [self.store, self.name.as_bytes(), about, &number.to_le_bytes()])
    }
}

/// An outline of a revision, without the values of its resources: those of a first commit do not belong in memory.
#[derive(Debug)]
pub(super) struct RevisionOutline {
    /// The hash of its commit: after a restored backup, another revision can have the same number.
    hash: Hash,
    at: Timestamp,
    author: Author,
    resources: Vec<ChangeOutline>,
}

impl RevisionOutline {
    /// Outlines a commit.
    pub(super) fn new(details: &CommitDetails, store: &Store) -> Result<Self, StoreError> {
        let (at, author) = (details.header.at, details.header.author.clone());
        Ok(Self { hash: details.hash(), at, author, resources: details.outlines(store)? })
    }
}

/// Returns the notifications about the revision after a cursor; none if the filter selects no change.
pub(super) fn revision_notifications(
    recipient: &Recipient<'_>,
    filter: &EventFilter,
    base_url: &str,
    before: Cursor,
    outline: RevisionOutline,
    now: &Snapshot,
) -> Vec<Notification> {
    let revision = before.revision + 1;
    let RevisionOutline { hash, at, author, resources } = outline;
    let parents = parent_names(&resources);
    let parent_name = |parent: &Key| {
        let current = || now.get(parent)?.name().map(str::to_owned);
        parents.get(parent).cloned().or_else(current)
    };
    let changes: Vec<NotifiedChange> =
        resources.into_iter().filter_map(|outline| change(outline, &author, filter, base_url, &parent_name)).collect();
    let actor = actor(&author);
    let (parts, r#type) = (changes.len().div_ceil(MOST_CHANGES), EventType::RevisionApplied.to_string());
    let notifications = changes.chunks(MOST_CHANGES).zip(1..).map(|(changes, part)| {
        let id = recipient.id(&hash, part as u64);
        let text = revision_text(revision, &writer(&author, now), &author, changes, (part, parts));
        let data = json!({
            "revision": revision,
            "time": at,
            "actor": actor,
            "part": part,
            "parts": parts,
            "changes": changes,
        });
        let after = match part == parts {
            true => Cursor { revision, parts: 0, ..before },
            false => Cursor { parts: part, ..before },
        };
        Notification::new(id, &r#type, at, text, &data, after)
    });
    notifications.collect()
}

/// Returns the notification about revisions whose records are no longer kept.
pub(super) fn gap_notification(
    recipient: &Recipient<'_>,
    before: Cursor,
    to_revision: u64,
    now: Timestamp,
) -> Notification {
    let from_revision = before.revision + 1;
    let id = recipient.id(&from_revision.to_le_bytes(), to_revision);
    let text = format!("The history no longer has revisions {from_revision} to {to_revision}");
    let data = json!({"from_revision": from_revision, "to_revision": to_revision});
    Notification::new(id, "gap", now, text, &data, Cursor { revision: to_revision, parts: 0, ..before })
}

/// Returns the notification about an event of a source or certificate.
pub(super) fn transition_notification(
    recipient: &Recipient<'_>,
    before: Cursor,
    transition: Transition,
) -> Notification {
    let Transition { number, at, content: EventContent { r#type, text, data, .. }, .. } = transition;
    let r#type = r#type.to_string();
    // After a lost file, another event can have the same number.
    let id = recipient.id(format!("{} {at} {text}", r#type).as_bytes(), number);
    Notification::new(id, &r#type, at, text, &data, Cursor { transition: number, ..before })
}

/// Puts a text on one line of limited length.
pub(super) fn line(text: &str) -> String {
    let text = without_tokens(text);
    beginning(&escaped(&text), MOST_CHARACTERS).into_owned()
}

/// A commit and its author, for a text.
pub(super) fn commit_text(commit: &str, author: Option<&CommitAuthor>) -> String {
    let short = short_commit(commit);
    // The commit's author did not make the uncommitted changes.
    let author = author.filter(|_| !is_dirty(commit));
    let who = author.map(|who| if who.name.is_empty() { who.email.as_str() } else { who.name.as_str() });
    match who.filter(|who| !who.is_empty()) {
        Some(who) => format!("commit {short} by {who}"),
        None => format!("commit {short}"),
    }
}

/// The changes of a part of a revision.
fn revision_text(
    revision: u64,
    by: &str,
    author: &Author,
    changes: &[NotifiedChange],
    (part, parts): (usize, usize),
) -> String {
    let commit = match author {
        Author::Source { commit: Some(commit), commit_author, .. } => {
            format!(" ({})", commit_text(commit, commit_author.as_ref()))
        }
        _ => String::new(),
    };
    let part = if parts > 1 { format!(", part {part} of {parts}") } else { String::new() };
    let count = |event: ChangeEvent| match changes.iter().filter(|change| change.event == event).count() {
        0 => None,
        count => Some(format!("{count} {}", event.as_str())),
    };
    let counts = [ChangeEvent::Created, ChangeEvent::Updated, ChangeEvent::Deleted].into_iter().filter_map(count);
    let counts: Vec<String> = counts.collect();
    let mut named: Vec<String> = changes.iter().take(NAMED_CHANGES).map(|change| change.text.clone()).collect();
    // A text that names all changes needs no numbers.
    let mut counted = String::new();
    if changes.len() > NAMED_CHANGES {
        counted = format!("{}: ", counts.join(", "));
        named.push(format!("and {} more", changes.len() - NAMED_CHANGES));
    }
    line(&format!("Revision {revision} by {by}{commit}{part}: {counted}{}", named.join("; ")))
}

/// The names of the changed resources that can have children.
fn parent_names(resources: &[ChangeOutline]) -> HashMap<Key, String> {
    let named = resources.iter().filter_map(|outline| {
        let key = Key::at_path(outline.kind, &outline.path).filter(|key| key.parent.is_none())?;
        Some((key, outline.name.clone()?))
    });
    named.collect()
}

fn change(
    outline: ChangeOutline,
    author: &Author,
    filter: &EventFilter,
    base_url: &str,
    parent_name: &impl Fn(&Key) -> Option<String>,
) -> Option<NotifiedChange> {
    let event = outline.event?;
    let text = change_text::describe(&outline, event, parent_name)?;
    let ChangeOutline { kind, path, name, source, fields, reverted_drift, .. } = outline;
    // A record of an earlier version does not name the source.
    let source = source.or_else(|| match author {
        Author::Source { source, .. } if name.is_some() => Some(source.clone()),
        _ => None,
    });
    if !filter.selects_change(kind, source.as_deref(), event) {
        return None;
    }
    let Key { parent, id, .. } = Key::at_path(kind, &path)?;
    let uri = format!("{base_url}{path}");
    Some(NotifiedChange { event, kind, id, parent, source, name, uri, fields, reverted_drift, text })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::server::resources::change::ChangeFilter;
    use crate::store::commit::header::ResourceChange;

    const RECIPIENT: Recipient<'_> = Recipient { store: b"store", name: "audit" };

    fn outline(resources: Value) -> RevisionOutline {
        let resources: Vec<ResourceChange> = serde_json::from_value(resources).unwrap();
        RevisionOutline {
            hash: [1; 32],
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            author: Author::source("shop", Some("4f2a".into())),
            resources: resources.into_iter().map(ChangeOutline::new).collect(),
        }
    }

    fn notifications(resources: Value, filter: &EventFilter) -> Vec<Notification> {
        let before = Cursor { revision: 6, parts: 0, transition: 4 };
        revision_notifications(
            &RECIPIENT,
            filter,
            "https://edge.example",
            before,
            outline(resources),
            &Snapshot::default(),
        )
    }

    #[test]
    fn a_notification_names_what_changed_without_its_values() {
        let resources = json!([
            {"kind": "Owner", "path": "/owners/usr_1", "after": {}},
            {"kind": "HttpsEdge", "path": "/edges/https/edghts_1", "name": "shop", "before": {"a": 1},
             "after": {"a": 2, "b": "hush"}, "reverted_drift": ["/b/c"]},
            {"kind": "HttpsEdgeRoute", "path": "/edges/https/edghts_1/routes/edghtsrt_1", "before": {"x": "secret"}},
        ]);
        let made = notifications(resources.clone(), &EventFilter::default());
        let body: Value = serde_json::from_slice(&made[0].body).unwrap();
        let expected = json!({
            "id": made[0].id.as_str(),
            "type": "revision.applied",
            "timestamp": "2026-01-02T03:04:05Z",
            "text": "Revision 7 by source `shop` (commit 4f2a): updated HttpsEdge shop (a, drift of b reverted); \
                     deleted HttpsEdgeRoute shop/edghtsrt_1",
            "data": {
                "revision": 7,
                "time": "2026-01-02T03:04:05Z",
                "actor": {"by": "source", "source": "shop", "commit": "4f2a"},
                "part": 1,
                "parts": 1,
                "changes": [
                    {"event": "updated", "kind": "HttpsEdge", "id": "edghts_1", "parent": null, "source": "shop",
                     "name": "shop", "uri": "https://edge.example/edges/https/edghts_1", "fields": ["a", "b"],
                     "reverted_drift": ["/b/c"]},
                    {"event": "deleted", "kind": "HttpsEdgeRoute", "id": "edghtsrt_1", "parent": "edghts_1",
                     "source": null, "name": null,
                     "uri": "https://edge.example/edges/https/edghts_1/routes/edghtsrt_1", "fields": [],
                     "reverted_drift": []},
                ],
            },
        });
        assert_eq!((made.len(), body), (1, expected));
        assert_eq!(made[0].after, Cursor { revision: 7, parts: 0, transition: 4 });
        let resources_of = ChangeFilter { kinds: [Kind::TlsEdge].into(), ..ChangeFilter::default() };
        let none = EventFilter { resources: resources_of, ..EventFilter::default() };
        assert!(notifications(resources, &none).is_empty());
    }

    #[test]
    fn a_text_says_what_happened_to_ownership_modules_and_drift() {
        let owned = |source: &str| json!({"source": source, "name": "shop"});
        let cases = [
            (json!({"(owned by)": owned("shop")}), json!({"(owned by)": owned("docs")}), "now owned by `docs`"),
            (json!({"(owned by)": owned("shop")}), json!({}), "no longer owned by `shop`"),
            (
                json!({"(owned by)": owned("shop")}),
                json!({"(owned by)": {"source": "shop", "name": "shop", "transfer_to": "docs"}}),
                "offered to `docs`",
            ),
            (json!({"oauth": {"a": 1}, "cors": null}), json!({"oauth": null, "cors": {}}), "cors, removed oauth"),
        ];
        for (before, after, told) in cases {
            let path = "/edges/https/edghts_1/routes/edghtsrt_1";
            let route = json!([
                {"kind": "HttpsEdgeRoute", "path": path, "name": "a", "before": before, "after": after},
            ]);
            let made = notifications(route, &EventFilter::default());
            let expected = format!("Revision 7 by source `shop` (commit 4f2a): updated HttpsEdgeRoute a ({told})");
            assert_eq!(made[0].text, expected);
        }
        let edges =
            (1..=6).map(|at| json!({"kind": "HttpsEdge", "path": format!("/edges/https/edghts_{at}"), "after": {}}));
        let many = notifications(edges.collect(), &EventFilter::default());
        assert!(many[0].text.contains("): 6 created: created HttpsEdge edghts_1; "), "{}", many[0].text);
        assert!(many[0].text.ends_with("; created HttpsEdge edghts_5; and 1 more"), "{}", many[0].text);
    }

    #[test]
    fn a_large_revision_has_several_notifications_whose_ids_stay_the_same() {
        let edge = |number| json!({"kind": "HttpsEdge", "path": format!("/edges/https/edghts_{number}"), "after": {}});
        let resources: Value = (0..=2 * MOST_CHANGES).map(edge).collect();
        let made = notifications(resources.clone(), &EventFilter::default());
        let after: Vec<Cursor> = made.iter().map(|it| it.after).collect();
        let cursor = |revision, parts| Cursor { revision, parts, transition: 4 };
        assert_eq!(after, [cursor(6, 1), cursor(6, 2), cursor(7, 0)]);
        let ids = |made: &[Notification]| made.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        let unique: std::collections::BTreeSet<Id> = ids(&made).into_iter().collect();
        assert_eq!(unique.len(), 3);
        assert_eq!(ids(&notifications(resources, &EventFilter::default())), ids(&made));
    }

    #[test]
    fn a_gap_names_the_revisions() {
        let before = Cursor { revision: 2, parts: 0, transition: 4 };
        let gap = gap_notification(&RECIPIENT, before, 9, Timestamp::UNIX_EPOCH);
        let body: Value = serde_json::from_slice(&gap.body).unwrap();
        assert_eq!((&body["type"], &body["data"]), (&json!("gap"), &json!({"from_revision": 3, "to_revision": 9})));
        assert_eq!(gap.after, Cursor { revision: 9, parts: 0, transition: 4 });
    }
}
