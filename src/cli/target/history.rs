//! The history of a server, page by page.

use std::ops::ControlFlow;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    client::{ApiClient, foreign_response},
    pages::Pages,
};
use crate::{
    cli::Failure,
    model::{
        diagnostics::{code::Code, diagnostic::Name},
        id::Id,
        operation::{Author, CommitAuthor},
    },
    server::operations::history::{
        document::{HistoryAuthor, HistoryEntry, HistoryItem, HistoryResource, PATH},
        parameters_of,
    },
    store::{
        commit::header::{CommitHeader, Outcome, Record, Touched},
        history::select::HistoryFilter,
    },
};

/// The largest page that a server returns.
const LARGEST_PAGE: usize = 1000;

/// A response of `/history`.
#[derive(Deserialize)]
struct HistoryPage {
    history: Vec<HistoryItem>,
    next_page_uri: Option<String>,
}

/// Visits the selected records before a position, newest first, until `visit` breaks. `page` is the number of records to
/// ask for at once.
pub(crate) fn each_record(
    client: &ApiClient,
    filter: &HistoryFilter,
    before: Option<u64>,
    page: usize,
    visit: &mut dyn FnMut(HistoryItem) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    let before = before.map(|position| format!("&before_id={position}")).unwrap_or_default();
    let limit = page.clamp(1, LARGEST_PAGE);
    let first = format!("limit={limit}{before}{}", parameters_of(filter));
    let mut pages = Pages::of_records(client, PATH);
    let mut query = Some(first);
    while let Some(parameters) = query {
        let found: HistoryPage = client.get(&format!("{PATH}?{parameters}"))?;
        let items = found.history.len();
        for item in found.history {
            if visit(item)?.is_break() {
                return Ok(());
            }
        }
        query = pages.next(items, found.next_page_uri.as_deref())?;
    }
    Ok(())
}

/// Gets a revision.
pub(crate) fn entry_of(client: &ApiClient, revision: u64) -> Result<HistoryEntry, Failure> {
    client.get(&format!("{PATH}/{revision}"))
}

/// Returns a record as a store has it, with masked secrets. A list has no calls and resources, so they are requested; only
/// those of attempts that changed nothing remain unknown.
pub(crate) fn record_of(client: &ApiClient, item: HistoryItem) -> Result<Record, Failure> {
    let entry = match item.revision.map(|revision| entry_of(client, revision)) {
        Some(Ok(entry)) => entry,
        // Dropped since it was listed.
        Some(Err(failure)) if is_gone(&failure) => {
            HistoryEntry { head: item, calls: Vec::new(), resources: Vec::new() }
        }
        Some(Err(failure)) => return Err(failure),
        None => HistoryEntry { head: item, calls: Vec::new(), resources: Vec::new() },
    };
    parsed(entry).ok_or_else(|| foreign_response(&client.address(PATH), 200))
}

fn is_gone(failure: &Failure) -> bool {
    failure.diagnostics.iter().any(|it| it.code == Name::Code(Code::RevisionGone))
}

fn parsed(entry: HistoryEntry) -> Option<Record> {
    let HistoryEntry { head, calls, resources } = entry;
    let outcome: Outcome = named(head.outcome)?;
    let is_about_source = matches!(outcome, Outcome::Suspended | Outcome::Resumed);
    let header = CommitHeader {
        position: head.id.parse().ok()?,
        revision: head.revision,
        at: head.created_at.parse().ok()?,
        milliseconds: head.milliseconds,
        source: is_about_source.then(|| head.author.source.clone()),
        author: author_of(head.author)?,
        outcome,
        message: head.message,
        operations: head.operations,
        changed: head.changed,
        scrubbed: Vec::new(),
    };
    let resources = resources.into_iter().map(touched_of).collect::<Option<Vec<Touched>>>()?;
    Some(Record { header, calls, resources })
}

fn author_of(author: HistoryAuthor) -> Option<Author> {
    let HistoryAuthor { by, key_id, owner_id, source, commit, destroyed, .. } = author;
    let (commit_author_name, commit_author_email) = (author.commit_author_name, author.commit_author_email);
    let (commit_message, rollback_to) = (given(author.commit_message), author.rollback_to);
    let through = given(key_id).map(|key| (Id::new(&key), Id::new(&owner_id)));
    match by.as_str() {
        "api" => through.map(|(key, owner)| Author::Api { key, owner }),
        "local" => Some(Author::Local),
        "rollback" => Some(Author::Rollback { to: rollback_to?, source: given(source), rejected: Vec::new(), through }),
        "source" => {
            let is_known = !commit_author_name.is_empty() || !commit_author_email.is_empty();
            let who = is_known.then_some(CommitAuthor { name: commit_author_name, email: commit_author_email });
            let commit = given(commit);
            Some(Author::Source { source, commit, commit_author: who, commit_message, through, destroyed })
        }
        _ => None,
    }
}

fn touched_of(resource: HistoryResource) -> Option<Touched> {
    let HistoryResource { kind, path, name, source, declared_at, reverted_drift, before, after } = resource;
    let (name, source, declared_at) = (given(name), given(source), given(declared_at));
    Some(Touched { kind: named(kind)?, path, name, source, declared_at, reverted_drift, before, after })
}

/// A text that is not empty.
fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The variant of an enum with a name.
fn named<T: DeserializeOwned>(name: String) -> Option<T> {
    serde_json::from_value(Value::String(name)).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::model::{Kind, snapshot::Snapshot};

    #[test]
    fn a_record_is_what_the_store_has() {
        let through = Some((Id::new("ak_1"), Id::new("usr_a")));
        let who = CommitAuthor { name: "Ada".into(), email: "ada@example.com".into() };
        let source = Author::Source {
            source: "shop".into(),
            commit: Some("4f2a".into()),
            commit_author: Some(who),
            commit_message: Some("Fix the login".into()),
            through: through.clone(),
            destroyed: false,
        };
        let back = Author::Rollback { to: 3, source: None, rejected: Vec::new(), through };
        let api = Author::Api { key: Id::new("ak_1"), owner: Id::new("usr_a") };
        let touched = Touched {
            kind: Kind::HttpsEdge,
            path: "/edges/https/edghts_1".into(),
            name: Some("one".into()),
            source: Some("shop".into()),
            declared_at: None,
            reverted_drift: vec!["/description".into()],
            before: None,
            after: Some(json!({"description": "first"})),
        };
        let applied = (Some(7), Outcome::Applied, None, vec![touched]);
        let suspended = (None, Outcome::Suspended, Some("shop".to_owned()), Vec::new());
        for (author, (revision, outcome, source, resources)) in [
            (source, applied.clone()),
            (back, applied.clone()),
            (Author::Local, applied.clone()),
            (Author::end_of("shop"), applied),
            (api, suspended.clone()),
            (Author::Local, suspended),
            (Author::source("shop", None), (None, Outcome::Resumed, Some("shop".to_owned()), Vec::new())),
        ] {
            let header = CommitHeader {
                position: 12,
                revision,
                at: Timestamp::UNIX_EPOCH,
                milliseconds: 4,
                author,
                source,
                outcome,
                message: "a reason".into(),
                operations: 1,
                changed: resources.len(),
                scrubbed: Vec::new(),
            };
            let record = Record { header, calls: vec!["POST /edges/https".into()], resources };
            let shown = serde_json::to_value(HistoryEntry::of(record.clone(), "", &Snapshot::default())).unwrap();
            let found = parsed(serde_json::from_value(shown).unwrap()).unwrap();
            assert_eq!(serde_json::to_value(found).unwrap(), serde_json::to_value(record).unwrap());
        }
    }
}
