//! The log of syncs: what changed, from which commit, and on whose behalf (D87).
//!
//! One block for each new result: counts, and a line for each of the first changes; or the errors with their positions;
//! or why nothing is applied. Syncs of clients, rollbacks, transfers and destroyed sources have the same block. A
//! result that stays as it was is not logged again ([`report_dedup`](super::report_dedup)). Values of manifests are
//! never in it.

use crate::model::author::commit_author_of;
use crate::model::drift::FieldDrift;
use crate::plan::format::text::sign;
use crate::reconcile::prelude::*;
use crate::syntax::text::escaped;

/// The log target of syncs.
pub(crate) const SYNC: &str = "edgewright::sync";

/// The most changes of a sync that are logged.
const SHOWN_CHANGES: usize = 20;
/// The most drifted fields of a change that are logged.
const SHOWN_FIELDS: usize = 10;

/// The origin of a sync, as the fields of its log lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyncOrigin<'a> {
    /// The name of the source; none for a rollback of all resources.
    pub source: Option<&'a str>,
    /// The commit of the manifests, if they are in Git.
    pub commit: Option<&'a str>,
    /// The author of the commit.
    pub author: Option<String>,
    /// The API key, if the sync ran through the API.
    pub key: Option<&'a str>,
}

impl<'a> SyncOrigin<'a> {
    /// Returns the origin of a sync by its author.
    pub(crate) fn from_author(author: &'a Author) -> Self {
        let key = |through: &'a Option<(Id, Id)>| through.as_ref().map(|(key, _)| key.as_str());
        match author {
            Author::Source { source, commit, commit_author, through, .. } => Self {
                source: Some(source.as_str()),
                commit: commit.as_deref(),
                author: commit_author.as_ref().map(|who| commit_author_of(&who.name, &who.email)),
                key: key(through),
            },
            Author::Rollback { source, through, .. } => {
                Self { source: source.as_deref(), key: key(through), ..Self::default() }
            }
            Author::Api { .. } | Author::Local => Self::default(),
        }
    }
}

/// Logs an applied plan, of manifests, of a rollback or of a destroyed source: a line with the counts, and a line for each of the first changes.
pub(crate) fn applied(author: &Author, plan: &Plan, revision: u64) {
    let mut origin = SyncOrigin::from_author(author);
    if plan.is_uncommitted() {
        origin.author = None;
    }
    let summary = plan.summary();
    let (to, deed) = match author {
        Author::Rollback { to, .. } => (Some(*to), format!("Rolled back to revision {to}")),
        Author::Source { destroyed: true, .. } => (None, "Destroyed the source".to_owned()),
        _ if plan.only_reverts_drift() => (None, format!("Reverted {}", number_of(summary.drift, "drifted resource"))),
        _ => (None, "Applied".to_owned()),
    };
    tracing::info!(
        target: SYNC,
        source = origin.source,
        commit = origin.commit,
        author = origin.author,
        key = origin.key,
        to,
        revision,
        created = summary.create,
        changed = summary.change,
        replaced = summary.replace,
        adopted = summary.adopt,
        deleted = summary.delete,
        unchanged = summary.unchanged,
        drift = summary.drift,
        "{deed} as revision {revision}: {summary}."
    );
    changes(origin.source, plan, revision);
}

fn changes(source: Option<&str>, plan: &Plan, revision: u64) {
    for warning in &plan.effects.warnings {
        tracing::warn!(target: SYNC, source, revision, id = %warning.key.id, "{}", warning.message);
    }
    for lost in &plan.effects.lost_certificates {
        tracing::warn!(target: SYNC, source, revision, id = %lost.certificate.id, "{lost}");
    }
    for kept in plan.kept_resources.iter().take(SHOWN_CHANGES) {
        tracing::warn!(target: SYNC, source, revision, id = %kept.key.id, "{kept}");
    }
    for change in plan.changes.iter().take(SHOWN_CHANGES) {
        tracing::info!(
            target: SYNC,
            source,
            revision,
            effect = ?change.effect,
            kind = %change.key.kind,
            id = %change.key.id,
            "{} {} {}{}",
            sign(change.effect),
            change.key.kind,
            escaped(&change.name),
            escaped(&drift(change))
        );
    }
    let more = plan.changes.len().saturating_sub(SHOWN_CHANGES);
    if more > 0 {
        tracing::info!(target: SYNC, source, revision, "… and {more} more");
    }
}

/// The changes that others made to a resource, in parentheses.
fn drift(change: &Change) -> String {
    let fields: Vec<String> =
        change.drift.iter().flat_map(Drift::changed).take(SHOWN_FIELDS).map(FieldDrift::to_string).collect();
    if fields.is_empty() { String::new() } else { format!(" ({})", fields.join("; ")) }
}

/// The value of a result, or none after a warning of what a source cannot do: it goes on without that.
pub(crate) fn or_warn<T>(source: &str, failure: &str, result: Result<T, StoreError>) -> Option<T> {
    result.map_err(|error| tracing::warn!(source, code = %error.code, "{failure}: {error}")).ok()
}

/// Logs a sync that had nothing to change.
pub(crate) fn in_sync(author: &Author, unchanged: usize, revision: u64) {
    let SyncOrigin { source, commit, author, key } = SyncOrigin::from_author(author);
    tracing::info!(
        target: SYNC,
        source,
        commit,
        author = author.as_deref(),
        key,
        revision,
        unchanged,
        "In sync with the manifests: {unchanged} unchanged."
    );
}

/// Logs a sync that the server refused for its client. The client has the whole error.
pub(crate) fn refused(author: &Author, code: Code, reason: &str) {
    let SyncOrigin { source, commit, author, key } = SyncOrigin::from_author(author);
    tracing::warn!(
        target: SYNC,
        source,
        commit,
        author = author.as_deref(),
        key,
        code = %code,
        "Nothing is applied: {}",
        escaped(reason)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{author::CommitAuthor, id::Id};

    #[test]
    fn an_origin_names_the_commit_its_author_and_the_key() {
        let who = |name: &str, email: &str| CommitAuthor { name: name.to_owned(), email: email.to_owned() };
        for (name, email, expected) in [
            ("Ada", "ada@example.com", "Ada <ada@example.com>"),
            ("Ada", "", "Ada"),
            ("", "ada@example.com", "ada@example.com"),
        ] {
            let author = Author::source("shop", Some("4f2a".into())).with_commit_author(Some(who(name, email)));
            let author = author.with_api_key(Id::new("ak_1"), Id::new("usr_1"));
            let origin = SyncOrigin::from_author(&author);
            assert_eq!((origin.source, origin.commit, origin.key), (Some("shop"), Some("4f2a"), Some("ak_1")));
            assert_eq!(origin.author.as_deref(), Some(expected));
        }
    }
}
