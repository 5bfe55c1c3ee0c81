//! The history as text: a headline for each record, and below it the resources that changed, by name.

use std::fmt::Write;

use super::ShownRecord;
use crate::cli::command_prelude::*;
use crate::cli::inspect::get::{ResourceReader, short_name_of};
use crate::cli::target::to_change;
use crate::model::Claim;
use crate::model::author::commit_author_of;
use crate::server::notify::change_text::details;
use crate::server::operations::history::document::{HistoryAuthor, HistoryEntry};
use crate::store::history::change_description::ChangeOutline;
use crate::store::history::commits::{is_dirty, short_commit};
use crate::store::{ChangeEvent, OWNED_BY, ResourceChange};
use crate::syntax::text::{and_more, beginning};

/// The most resources of a record that a list names; of more, it shows how many there are.
const MOST_RESOURCES: usize = 10;
/// The most calls of a record that a list shows.
const MOST_CALLS: usize = 10;
/// The longest value of a field before or after a change, in characters.
const LONGEST_VALUE: usize = 200;
const WIDTH: usize = 80;

/// The details in the text of a record, besides the names of its resources.
#[derive(Clone, Copy)]
pub(super) struct RecordDetail<'p> {
    /// The fields of each resource before and after.
    pub changes: bool,
    pub calls: bool,
    /// The path of the only resource to show, whatever else the record changed.
    pub only: Option<&'p str>,
}

/// The names of parents, which a record does not have.
pub(super) struct ParentNames<'r> {
    reader: &'r ResourceReader,
    known: BTreeMap<Key, Option<String>>,
}

impl<'r> ParentNames<'r> {
    pub(super) fn new(reader: &'r ResourceReader) -> Self {
        Self { reader, known: BTreeMap::new() }
    }

    /// Adds the names in a record: its parents may be gone.
    fn add(&mut self, changes: &[ResourceChange]) {
        let is_parent = |change: &&ResourceChange| change.name.is_some() && change.kind.info().children.is_some();
        for change in changes.iter().filter(is_parent) {
            if let Some(key) = Key::at_path(change.kind, &change.path) {
                self.known.insert(key, change.name.clone());
            }
        }
    }

    /// The name of a resource, after that of its parent; its ID if it has none.
    fn full_name(&mut self, change: &ResourceChange) -> Result<String, Failure> {
        let Some(key) = Key::at_path(change.kind, &change.path) else { return Ok(change.path.clone()) };
        let own = change.name.as_deref().unwrap_or(key.id.as_str());
        let Some(parent) = key.parent_key() else { return Ok(own.to_owned()) };
        // An ID of this service is unique, and the one of the parent says nothing more.
        if change.name.is_none() && !key.kind.facts().prefix.is_empty() {
            return Ok(own.to_owned());
        }
        if !self.known.contains_key(&parent) {
            self.known.insert(parent.clone(), self.reader.name_of_key(&parent)?);
        }
        let name = self.known.get(&parent).cloned().flatten();
        Ok(format!("{}/{own}", name.as_deref().unwrap_or(parent.id.as_str())))
    }
}

/// A record as a headline, the message, and the resources.
pub(super) fn text(
    shown: &ShownRecord,
    detail: RecordDetail<'_>,
    names: &mut ParentNames<'_>,
) -> Result<String, Failure> {
    let ShownRecord { record, key_description } = shown;
    let revision = record.revision.map_or_else(|| "-".to_owned(), |revision| revision.to_string());
    let outcome = record.outcome;
    let source = record.source.as_ref().map(|source| format!(" source `{source}`")).unwrap_or_default();
    let (author, commit) = author(&record.author, key_description);
    let mut text = format!("{revision}  {}  {outcome}{}  {}", record.at, escaped(&source), escaped(&author));
    let mut line = |line: String| {
        text.push_str("\n    ");
        text.push_str(&escaped(&line));
    };
    commit.into_iter().for_each(&mut line);
    if !record.message.is_empty() {
        line(record.message.clone());
    }
    names.add(&record.resources);
    let is_shown = |change: &&ResourceChange| detail.only.is_none_or(|path| change.path == path);
    let changes: Vec<&ResourceChange> = record.resources.iter().filter(is_shown).collect();
    if detail.changes {
        for change in &changes {
            line(headline(change, names)?);
            fields(change).for_each(|field| line(format!("  {field}")));
        }
    } else if changes.len() <= MOST_RESOURCES {
        for change in &changes {
            let details = details_of(change).map(|details| format!("  {details}")).unwrap_or_default();
            line(format!("{} {} {}{details}{}", sign(change), change.kind, names.full_name(change)?, opened(change)));
        }
    } else {
        numbers(&record.resources).into_iter().for_each(&mut line);
        let opening: Vec<&ResourceChange> =
            changes.iter().copied().filter(|change| !opened(change).is_empty()).collect();
        let first: Result<Vec<_>, _> = opening.iter().take(MOST_RESOURCES).map(|it| names.full_name(it)).collect();
        if !opening.is_empty() {
            let more = opening.len().saturating_sub(MOST_RESOURCES);
            line(format!("opens access: {}", and_more(first?.into_iter(), more)));
        }
    }
    // What has no resource, such as the end of an exchange of names, is a call alone.
    let most = match detail {
        RecordDetail { calls: true, changes: true, .. } => usize::MAX,
        RecordDetail { calls: true, .. } => MOST_CALLS,
        _ if record.resources.is_empty() => MOST_CALLS,
        _ => 0,
    };
    record.calls.iter().take(most).for_each(|call| line(call.clone()));
    let is_cut = most < record.calls.len() && most > 0;
    let is_counted = !detail.changes && changes.len() > MOST_RESOURCES;
    if let Some(revision) = record.revision.filter(|_| is_cut || is_counted) {
        line(format!("… run `edgewright history show {revision}` for all of it"));
    }
    text.push('\n');
    Ok(text)
}

/// A revision as a headline, the calls, and the resources before and after.
pub(super) fn entry(entry: HistoryEntry, names: &mut ParentNames<'_>) -> Result<String, Failure> {
    let HistoryEntry { head, calls, resources } = entry;
    let revision = head.revision.unwrap_or_default();
    let mut text = format!("revision {revision}  {}  {}\n", head.created_at, escaped(&head.author.text()));
    if !head.message.is_empty() {
        let _ = writeln!(text, "    {}", escaped(&head.message));
    }
    for call in &calls {
        let _ = writeln!(text, "    {}", escaped(call));
    }
    let changes: Vec<ResourceChange> = resources.into_iter().filter_map(to_change).collect();
    names.add(&changes);
    for change in &changes {
        let _ = writeln!(text, "{}", escaped(&headline(change, names)?));
        for field in fields(change) {
            let _ = writeln!(text, "  {}", escaped(&field));
        }
    }
    Ok(text)
}

/// The sign, kind and name of a change, with the place of its manifest.
fn headline(change: &ResourceChange, names: &mut ParentNames<'_>) -> Result<String, Failure> {
    let place = change.declared_at.as_deref().map(|place| format!(" ({place})")).unwrap_or_default();
    Ok(format!("{} {} {}{place}{}", sign(change), change.kind, names.full_name(change)?, opened(change)))
}

/// The mark of a change after which fewer modules restrict access; empty for others.
fn opened(change: &ResourceChange) -> String {
    let lost = &change.access.lost;
    if lost.is_empty() { String::new() } else { format!("  opens access: without {}", lost.join(", ")) }
}

/// The author, with the commits that a rollback left, and the message and author of the commit. A key with a description needs no
/// identifiers: `history show` has them.
fn author(author: &Author, key_description: &str) -> (String, Option<String>) {
    let mut shown = HistoryAuthor::with_key(author, key_description);
    let commit = commit_text(&mut shown);
    shown.commit = short_commit(&shown.commit);
    let mut text = shown.text();
    if !key_description.is_empty() {
        text = text.replace(&format!(" ({}) of {}", shown.key_id, shown.owner_id), "");
    }
    if let Author::Rollback { rejected, .. } = author {
        for commit in rejected.iter().filter_map(|left| left.commit.as_ref()) {
            let _ = write!(text, ", leaving {}", short_commit(commit));
        }
    }
    (text, commit)
}

/// Takes the message of the commit and its author from those of a record: they have a line of their own.
fn commit_text(author: &mut HistoryAuthor) -> Option<String> {
    let fields = [&mut author.commit_message, &mut author.commit_author_name, &mut author.commit_author_email];
    let [message, name, email] = fields.map(std::mem::take);
    // The commit's author did not make the uncommitted changes.
    if is_dirty(&author.commit) {
        return None;
    }
    let by = commit_author_of(&name, &email);
    match (message.is_empty(), by.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("by {by}")),
        (false, true) => Some(message),
        (false, false) => Some(format!("{message} ({by})")),
    }
}

/// The sign that a plan has for the change.
fn sign(change: &ResourceChange) -> char {
    match change.event() {
        Some(ChangeEvent::Created) => '+',
        Some(ChangeEvent::Deleted) => '-',
        _ => '~',
    }
}

/// The change in a few words: the fields that differ, the role of an owner, or the description of what has no name.
fn details_of(change: &ResourceChange) -> Option<String> {
    let of = |state: &Option<Value>, field: &str| state.as_ref()?.get(field)?.as_str().map(str::to_owned);
    if change.kind == Kind::Owner {
        return of(&change.after, "role").map(|role| format!("role {role}"));
    }
    let details = details(&ChangeOutline::new(change.clone()));
    if !details.is_empty() {
        return Some(details.join(", "));
    }
    let described =
        change.name.is_none().then(|| of(&change.after, "description").or(of(&change.before, "description")));
    described.flatten().filter(|text| !text.is_empty()).map(|text| format!("\"{text}\""))
}

/// How many resources of each kind were created, updated and deleted, on lines of at most [`WIDTH`] characters.
fn numbers(changes: &[ResourceChange]) -> Vec<String> {
    let mut lines = Vec::new();
    for wanted in [ChangeEvent::Created, ChangeEvent::Updated, ChangeEvent::Deleted] {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        for change in changes.iter().filter(|change| change.event() == Some(wanted)) {
            *counts.entry(change.kind).or_default() += 1;
        }
        let all: usize = counts.values().sum();
        if all == 0 {
            continue;
        }
        let noun = |kind: Kind| match short_name_of(kind) {
            "" => "owner",
            // In a sentence, the name that a command line takes is no word, or another one.
            "ca" => "authority",
            "source" => "event source",
            name => name,
        };
        let mut items: Vec<String> = counts.iter().map(|(kind, count)| number_of(*count, noun(*kind))).collect();
        let last = items.len().saturating_sub(1);
        items.iter_mut().take(last).for_each(|item| item.push(','));
        let mut line = format!("{all} {}:", wanted.as_str());
        for item in items {
            if line.chars().count() + 1 + item.chars().count() > WIDTH - 4 {
                lines.push(std::mem::replace(&mut line, " ".to_owned()));
            }
            line.push(' ');
            line.push_str(&item);
        }
        lines.push(line);
    }
    lines
}

/// The fields of a resource before and after.
fn fields(change: &ResourceChange) -> impl Iterator<Item = String> {
    let state = |sign: &'static str, state: &Option<Value>| {
        let fields = state.iter().filter_map(Value::as_object).flatten();
        fields.map(|(field, value)| format!("{sign} {}", field_text(field, value))).collect::<Vec<String>>()
    };
    state("-", &change.before).into_iter().chain(state("+", &change.after))
}

/// A field with its value, with `…` for what is too long to read; `--format json` has all of it.
fn field_text(field: &str, value: &Value) -> String {
    if field == OWNED_BY
        && let Ok(claim) = Claim::deserialize(value)
    {
        return owner_text(&claim);
    }
    format!("{field}: {}", beginning(&value.to_string(), LONGEST_VALUE))
}

/// Which source owns a resource, and on which terms.
fn owner_text(claim: &Claim) -> String {
    let mut text = format!("owned by source `{}` as `{}`", claim.source, claim.name);
    if claim.prevent_destroy {
        text.push_str(", prevent_destroy");
    }
    if let Some(former) = &claim.renamed_from {
        let _ = write!(text, ", renamed from `{former}`");
    }
    if let Some(to) = claim.receiver() {
        let _ = write!(text, ", offered to source `{to}`");
    }
    if let Some(from) = &claim.transferred_from {
        let _ = write!(text, ", transferred from source `{from}`");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::commit::header::ProtectionChange;

    fn change(kind: Kind, before: Option<Value>, after: Option<Value>) -> ResourceChange {
        let (path, name) = (String::new(), None);
        let (source, declared_at, reverted_drift, access) = (None, None, Vec::new(), ProtectionChange::default());
        ResourceChange { kind, path, name, source, declared_at, reverted_drift, access, before, after }
    }

    #[test]
    fn many_changes_are_numbers_on_lines_that_fit() {
        let created = |kind: Kind, count: usize| (0..count).map(move |_| change(kind, None, Some(json!({}))));
        let mut changes: Vec<ResourceChange> =
            created(Kind::HttpsEdgeRoute, 13).chain(created(Kind::HttpsEdge, 1)).collect();
        changes.push(change(Kind::Owner, Some(json!({"role": "editor"})), None));
        assert_eq!(numbers(&changes), ["14 created: 1 edge, 13 routes", "1 deleted: 1 owner"]);
        let named: Vec<ResourceChange> =
            created(Kind::CertificateAuthority, 2).chain(created(Kind::EventSource, 2)).collect();
        let lines = numbers(&named);
        assert!(
            lines.iter().any(|line| line.contains("2 authorities") && line.contains("2 event sources")),
            "{lines:?}"
        );
        for kind in Kind::all() {
            changes.extend(created(kind.kind, 1_000));
        }
        let lines = numbers(&changes);
        assert!(lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= WIDTH - 4), "{lines:?}");
    }

    #[test]
    fn an_owner_has_its_role_and_a_claim_its_terms() {
        let owner = change(Kind::Owner, None, Some(json!({"role": "viewer"})));
        assert_eq!(details_of(&owner).as_deref(), Some("role viewer"));
        let key = change(Kind::ApiKey, None, Some(json!({"description": "ci"})));
        assert_eq!(details_of(&key).as_deref(), Some("\"ci\""));
        let claim = json!({"source": "shop", "name": "cart", "prevent_destroy": true, "transfer_to": "pay"});
        let terms = "owned by source `shop` as `cart`, prevent_destroy, offered to source `pay`";
        assert_eq!(field_text(OWNED_BY, &claim), terms);
        assert_eq!(field_text("match", &json!("/")), "match: \"/\"");
    }
}
