//! The history of a server, page by page.

use std::ops::ControlFlow;

use serde::de::DeserializeOwned;

use super::client::ApiClient;
use super::error_response::foreign_response;
use super::pages::PageOrder;
use crate::cli::prelude::*;
use crate::model::CommitAuthor;
use crate::server::operations::history::document::{HistoryAuthor, HistoryEntry, HistoryItem, HistoryResource, PATH};
use crate::server::operations::history::parameters_of;
use crate::store::commit::header::ProtectionChange;
use crate::store::{CommitHeader, HistoryFilter, Outcome, Record, ResourceChange};

const LARGEST_PAGE: usize = 1000;

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
    let query = format!("limit={limit}{before}{}", parameters_of(filter));
    client.each_item(PATH, "history", &query, PageOrder::Records { before: u64::MAX }, visit)
}

pub(crate) fn get_entry(client: &ApiClient, revision: u64) -> Result<HistoryEntry, Failure> {
    client.get(&format!("{PATH}/{revision}"))
}

/// The revision before the last rollback of each of these sources, as far as the newest records have one.
pub(crate) fn before_rollback(client: &ApiClient, sources: &BTreeSet<&str>) -> BTreeMap<String, u64> {
    let (mut found, mut read) = (BTreeMap::new(), 0);
    if sources.is_empty() {
        return found;
    }
    let visited = each_record(client, &HistoryFilter::default(), None, LARGEST_PAGE, &mut |item| {
        read += 1;
        if let (Some(made), Some(_)) = (item.revision, item.author.rollback_to) {
            // A rollback of everything has no source.
            let of = item.author.source.as_str();
            for source in sources.iter().filter(|source| of.is_empty() || of == **source) {
                found.entry((*source).to_owned()).or_insert(made.saturating_sub(1));
            }
        }
        let is_done = found.len() == sources.len() || read == LARGEST_PAGE;
        Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    // They are a help that does without a number.
    visited.map_or_else(|_| BTreeMap::new(), |()| found)
}

/// Returns a record as a store has it, with masked secrets. A list has no calls and resources, so they are requested; only
/// those of attempts that changed nothing remain unknown.
pub(crate) fn to_record(client: &ApiClient, item: HistoryItem) -> Result<Record, Failure> {
    let entry = match item.revision.map(|revision| get_entry(client, revision)).transpose() {
        Ok(Some(entry)) => entry,
        // Dropped since it was listed.
        Err(failure) if !failure.has_code(Code::RevisionGone) => return Err(failure),
        _ => HistoryEntry { head: item, calls: Vec::new(), resources: Vec::new() },
    };
    parse_record(entry).ok_or_else(|| foreign_response(&client.address(PATH), 200))
}

fn parse_record(entry: HistoryEntry) -> Option<Record> {
    let HistoryEntry { head, calls, resources } = entry;
    let outcome: Outcome = parse_name(head.outcome)?;
    let is_about_source = matches!(outcome, Outcome::Suspended | Outcome::Resumed);
    let header = CommitHeader {
        position: head.id.parse().ok()?,
        revision: head.revision,
        at: head.created_at.parse().ok()?,
        milliseconds: head.milliseconds,
        source: is_about_source.then(|| head.author.source.clone()),
        author: parse_author(head.author)?,
        outcome,
        message: head.message,
        operations: head.operations,
        changed: head.changed,
        scrubbed: Vec::new(),
    };
    let resources = resources.into_iter().map(to_change).collect::<Option<Vec<ResourceChange>>>()?;
    Some(Record { header, calls, resources })
}

fn parse_author(author: HistoryAuthor) -> Option<Author> {
    let HistoryAuthor { by, key_id, owner_id, source, commit, destroyed, .. } = author;
    let (commit_author_name, commit_author_email) = (author.commit_author_name, author.commit_author_email);
    let (commit_message, rollback_to) = (non_empty(author.commit_message), author.rollback_to);
    let through = non_empty(key_id).map(|key| (Id::new(&key), Id::new(&owner_id)));
    match by.as_str() {
        "api" => through.map(|(key, owner)| Author::Api { key, owner }),
        "local" => Some(Author::Local),
        "rollback" => {
            Some(Author::Rollback { to: rollback_to?, source: non_empty(source), rejected: Vec::new(), through })
        }
        "source" => {
            let is_known = !commit_author_name.is_empty() || !commit_author_email.is_empty();
            let who = is_known.then_some(CommitAuthor { name: commit_author_name, email: commit_author_email });
            let commit = non_empty(commit);
            Some(Author::Source { source, commit, commit_author: who, commit_message, through, destroyed })
        }
        _ => None,
    }
}

/// Returns a resource as a record of a store has it.
pub(crate) fn to_change(resource: HistoryResource) -> Option<ResourceChange> {
    let HistoryResource { kind, path, reverted_drift, before, after, .. } = resource;
    let [name, source, declared_at] = [resource.name, resource.source, resource.declared_at].map(non_empty);
    let (kind, access) = (parse_name(kind)?, ProtectionChange::opening(resource.opens_access));
    Some(ResourceChange { kind, path, name, source, declared_at, reverted_drift, access, before, after })
}

fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The variant of an enum with a name.
fn parse_name<T: DeserializeOwned>(name: String) -> Option<T> {
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
        let touched = ResourceChange {
            kind: Kind::HttpsEdge,
            path: "/edges/https/edghts_1".into(),
            name: Some("one".into()),
            source: Some("shop".into()),
            declared_at: None,
            reverted_drift: vec!["/description".into()],
            access: ProtectionChange::opening(vec!["mutual_tls".into()]),
            before: None,
            after: Some(json!({"description": "first"})),
        };
        let applied = (Some(7), Outcome::Applied, None, vec![touched]);
        let suspended = (None, Outcome::Suspended, Some("shop".to_owned()), Vec::new());
        for (author, (revision, outcome, source, resources)) in [
            (source, applied.clone()),
            (back, applied.clone()),
            (Author::Local, applied.clone()),
            (Author::destroy_of("shop"), applied),
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
            let shown =
                serde_json::to_value(HistoryEntry::from_record(record.clone(), "", &Snapshot::default())).unwrap();
            let found = parse_record(serde_json::from_value(shown).unwrap()).unwrap();
            assert_eq!(serde_json::to_value(found).unwrap(), serde_json::to_value(record).unwrap());
        }
    }
}
