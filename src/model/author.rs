//! The authors of changes, as the history has them.

use serde::{Deserialize, Serialize};

use super::{diagnostics::fault::hide_tokens, id::Id};
use crate::syntax::text::escaped;

/// The author of a Git commit, unverified: anyone can commit under any name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitAuthor {
    /// The name.
    pub name: String,
    /// The email address.
    pub email: String,
}

/// The author of a commit as Git shows it, or the only one of both that is known.
pub(crate) fn commit_author_of(name: &str, email: &str) -> String {
    match (name, email) {
        (one, "") | ("", one) => one.to_owned(),
        _ => format!("{name} <{email}>"),
    }
}

/// The author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Author {
    /// An API request.
    Api {
        /// The API key of the request.
        key: Id,
        /// The API key's owner.
        owner: Id,
    },
    /// A reconciliation.
    Source {
        /// The name of the source.
        source: String,
        /// The commit of the manifests, if they are in Git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// The author of the commit, as recorded in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_author: Option<CommitAuthor>,
        /// The first line of the commit's message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit_message: Option<String>,
        /// The API key and its owner, if the reconciliation ran through the API.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<(Id, Id)>,
        /// Whether the source was destroyed: all of its resources were deleted (D108).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        destroyed: bool,
    },
    /// A rollback.
    Rollback {
        /// The revision whose state it brought back.
        to: u64,
        /// The source that it was limited to, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// The manifests that no loop applies again, of each source that it concerned.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rejected: Vec<RejectedManifests>,
        /// The API key and its owner, if it ran through the API.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<(Id, Id)>,
    },
    /// A command with direct access to the store.
    Local,
}

/// The prefix of a key's ID if the client authenticated with a certificate instead of an API key (D97).
pub(crate) const CERTIFICATE: &str = "certificate:";

/// The prefix of a key's ID if a person has signed in through a provider (D117). The name follows.
pub(crate) const PERSON: &str = "person:";

/// Describes the key of a request, or the certificate or the person in its place. The description of the key is empty if it
/// has none, or was deleted.
pub(crate) fn key_of(key: &str, description: &str, owner: &str) -> String {
    if let Some(name) = key.strip_prefix(PERSON) {
        // A name that is not verified has the owner already.
        let id = format!(" ({owner})");
        return format!("{}{id}", escaped(name.strip_suffix(&id).unwrap_or(name)));
    }
    match key.strip_prefix(CERTIFICATE) {
        Some(name) => format!("certificate {name} of {owner}"),
        None if description.is_empty() => format!("API key {key} of {owner}"),
        // The description becomes part of one-line messages.
        None => format!("\"{}\" ({key}) of {owner}", escaped(description)),
    }
}

/// Names the key of a request, or the certificate or the person in its place, without IDs if it has a name.
pub(crate) fn key_name(key: &str, description: &str, owner: &str) -> String {
    match (key.strip_prefix(PERSON), key.strip_prefix(CERTIFICATE)) {
        (None, None) if description.is_empty() => key_of(key, description, owner),
        (None, None) => description.to_owned(),
        (Some(name), _) => name.to_owned(),
        (_, Some(name)) => format!("certificate {name}"),
    }
}

/// Describes an owner, by the description of a key if there is one. Anything else that suspends a source has none.
pub(crate) fn owner_of(owner: &str, description: &str) -> String {
    if description.is_empty() { owner.to_owned() } else { format!("\"{}\" ({owner})", escaped(description)) }
}

/// Manifests whose state a rollback left: the loop that follows their source does not apply them again (D78).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedManifests {
    /// The source.
    pub source: String,
    /// The commit, if the manifests were applied from Git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// A keyed digest of what the source had when the rollback left it; empty if that is no longer known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// A keyed digest like it, with the names of resources in place of their IDs: the manifests can lead to others after the
    /// rollback. Empty if the state that was brought back is the same by name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest_by_name: String,
    /// A keyed digest of the files and values that the source had at its last sync; empty if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The paths of resources that changed hands with the rollback, and that the digest leaves out together with what they
    /// contain: until their other source has them, the manifests cannot lead to the whole state again (D104).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transferred_paths: Vec<String>,
    /// The paths of resources that were transferred to the source by command since the rollback: its manifests may declare
    /// them (D104). Kept in the last of the source's rejected manifests only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retransferred_paths: Vec<String>,
}

impl Author {
    /// Creates the author of a local reconciliation.
    pub fn source(source: &str, commit: Option<String>) -> Self {
        Self::from_source(source, commit, false)
    }

    /// Creates the author of a commit that destroys a source (D108).
    pub(crate) fn destroy_of(source: &str) -> Self {
        Self::from_source(source, None, true)
    }

    /// Creates the author of a rollback to a revision, of one source if it is limited to it.
    pub(crate) fn rollback_to(to: u64, source: Option<String>) -> Self {
        Author::Rollback { to, source, rejected: Vec::new(), through: None }
    }

    fn from_source(source: &str, commit: Option<String>, destroyed: bool) -> Self {
        let source = source.to_owned();
        Author::Source { source, commit, commit_author: None, commit_message: None, through: None, destroyed }
    }

    /// Returns the API key of the request, or of the one that a reconciliation or rollback ran through.
    pub(crate) fn key(&self) -> Option<&Id> {
        match self {
            Author::Api { key, .. } => Some(key),
            Author::Source { through, .. } | Author::Rollback { through, .. } => through.as_ref().map(|(key, _)| key),
            Author::Local => None,
        }
    }

    /// Sets the API key and its owner, if the reconciliation or rollback ran through the API.
    #[must_use]
    pub fn with_api_key(mut self, key: Id, owner: Id) -> Self {
        if let Author::Source { through, .. } | Author::Rollback { through, .. } = &mut self {
            *through = Some((key, owner));
        }
        self
    }

    /// Sets the author of the commit, if there is a commit.
    #[must_use]
    pub fn with_commit_author(mut self, who: Option<CommitAuthor>) -> Self {
        if let Author::Source { commit: Some(_), commit_author, .. } = &mut self {
            *commit_author = who.map(|CommitAuthor { name, email }| CommitAuthor {
                name: hide_tokens(name),
                email: hide_tokens(email),
            });
        }
        self
    }

    /// Removes the author of the commit and its message.
    #[must_use]
    pub(crate) fn without_committer(self) -> Self {
        self.with_commit_author(None).with_commit_message(None)
    }

    /// Sets the first line of the commit's message, if there is a commit.
    #[must_use]
    pub fn with_commit_message(mut self, message: Option<String>) -> Self {
        if let Author::Source { commit: Some(_), commit_message, .. } = &mut self {
            *commit_message = message.map(hide_tokens);
        }
        self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_written_as_it_was_read() {
        for text in [
            r#"{"by":"local"}"#,
            r#"{"by":"source","source":"shop","commit":"4f2a"}"#,
            r#"{"by":"rollback","to":3}"#,
            r#"{"by":"rollback","to":3,"source":"shop","rejected":[{"source":"shop","commit":"4f2a","digest":"00"}]}"#,
            r#"{"by":"rollback","to":3,"rejected":[{"source":"shop","digest":"00","digest_by_name":"01"}]}"#,
            r#"{"by":"source","source":"shop","commit":"4f2a","commit_author":{"name":"Ada","email":"ada@example.com"}}"#,
            r#"{"by":"source","source":"shop","commit":"4f2a","commit_message":"Fix the login"}"#,
            r#"{"by":"source","source":"shop","destroyed":true}"#,
        ] {
            let author: Author = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&author).unwrap(), text);
        }
    }

    #[test]
    fn a_key_is_described_on_one_line() {
        for (key, description, expected) in [
            ("ak_1", "CI of shop", "\"CI of shop\" (ak_1) of bot_ci"),
            ("ak_1", "a\nb", "\"a\\nb\" (ak_1) of bot_ci"),
            ("ak_1", "", "API key ak_1 of bot_ci"),
            ("certificate:uri:urn:ci", "", "certificate uri:urn:ci of bot_ci"),
            ("person:ada@example.com", "", "ada@example.com (bot_ci)"),
            ("person:ada (bot_ci)", "", "ada (bot_ci)"),
        ] {
            assert_eq!(key_of(key, description, "bot_ci"), expected);
        }
    }

    #[test]
    fn only_a_commit_has_an_author_and_a_message() {
        let ada = CommitAuthor { name: "Ada".into(), email: "ada@example.com".into() };
        let author = Author::source("shop", None).with_commit_author(Some(ada)).with_commit_message(Some("Why".into()));
        assert_eq!(author, Author::source("shop", None));
    }
}
