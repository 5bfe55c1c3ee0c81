//! Operations, the only way to change state. A REST handler creates one, the planner creates many, and both go through
//! the same commit.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Kind,
    diagnostics::fault::hide_tokens,
    id::Id,
    json::JsonError,
    key::Key,
    module::{AnyModule, Slot},
    resource::AnyResource,
    secrets::{Secret, Secrets},
};
use crate::syntax::text::escaped;

/// The source of resources that a run uses as context, in a state without a store (D107). No source can have this name.
pub(crate) const CONTEXT_OWNER: &str = "(context)";

/// A source's ownership of a resource (D29).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The name of the source.
    pub source: String,
    /// The resource's name in the manifest.
    pub name: String,
    /// Whether plans cannot delete or replace the resource (D27).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prevent_destroy: bool,
    /// The former name, if resources exchange their names: the names alone do not show whether the exchange was applied
    /// (D54).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The source that may take the resource over: the consent of this one. The source itself, if a command gave it the
    /// resource and its manifests have not declared it yet: until then, they must not delete it (D104).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_to: Option<String>,
    /// The source that owned the resource before. Its manifests may still declare the resource, which must not be created
    /// again (D104).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_from: Option<String>,
    /// The name that the resource had in the manifests of `transferred_from`, if it has another one since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_as: Option<String>,
    /// Whether a rollback took the resource from `transferred_from`, and the source has not declared it since. The manifests
    /// of both sources may still be those that the rollback undid (D78).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returned: bool,
}

impl Claim {
    /// Whether the resource is promised to a source, so that it stays although its owner does not declare it.
    pub(crate) fn is_promised(&self) -> bool {
        self.transfer_to.is_some()
    }

    /// Whether a rollback took the resource from a source.
    pub(crate) fn is_returned_by(&self, source: &str) -> bool {
        self.returned && self.source != source && self.transferred_from.as_deref() == Some(source)
    }

    /// Whether a rollback brought the resource back, which nobody else may take over and which stays undeclared.
    pub(crate) fn is_kept_by_rollback(&self) -> bool {
        self.returned && self.is_promised() && self.receiver().is_none()
    }

    /// The source from which a rollback brought back a resource that is kept.
    pub(crate) fn returned_from(&self) -> Option<&str> {
        self.transferred_from.as_deref().filter(|_| self.is_kept_by_rollback())
    }

    /// Whether a command gave the resource to the source, whose manifests have not declared it yet.
    pub(crate) fn awaits_manifest(&self) -> bool {
        !self.returned && self.is_promised() && self.receiver().is_none()
    }

    /// The other source that may take the resource over.
    pub(crate) fn receiver(&self) -> Option<&str> {
        self.transfer_to.as_deref().filter(|to| *to != self.source)
    }
}

/// A change of state.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Creates a resource with all its fields and modules.
    Create {
        /// The key; its ID is already chosen (D11).
        key: Key,
        /// The Spec.
        spec: Arc<dyn AnyResource>,
        /// The claim of the source that declares the resource, if any.
        claim: Option<Arc<Claim>>,
        /// For an API key, the hash of its token.
        token: Option<Secret>,
    },
    /// Sets fields; a module among them is replaced as a whole.
    Patch {
        /// The resource.
        key: Key,
        /// A Spec with the new values.
        spec: Arc<dyn AnyResource>,
        /// The fields to set, in the Spec's order.
        fields: Vec<String>,
    },
    /// Sets a module, and replaces the former one as a whole (D21).
    PutModule {
        /// The host.
        host: Key,
        /// The host's slot.
        slot: &'static Slot,
        /// The module.
        module: Arc<dyn AnyModule>,
    },
    /// Removes a module.
    DeleteModule {
        /// The host.
        host: Key,
        /// The host's slot.
        slot: &'static Slot,
    },
    /// Deletes a resource.
    Delete {
        /// The resource.
        key: Key,
        /// Whether to delete the children too; otherwise there must be none (D35).
        with_children: bool,
    },
    /// Sets or removes a source's ownership of a resource, without changing the resource itself.
    Claim {
        /// The resource.
        key: Key,
        /// The new claim.
        claim: Option<Arc<Claim>>,
    },
}

impl Operation {
    /// Returns the key of the resource that changes.
    pub fn key(&self) -> &Key {
        match self {
            Operation::Create { key, .. }
            | Operation::Patch { key, .. }
            | Operation::Delete { key, .. }
            | Operation::Claim { key, .. } => key,
            Operation::PutModule { host, .. } | Operation::DeleteModule { host, .. } => host,
        }
    }

    /// Returns the equivalent API call as method and path. Changes of ownership and internal kinds have none.
    pub fn call(&self) -> Option<(&'static str, String)> {
        if self.key().kind == Kind::Owner {
            return None;
        }
        Some(match self {
            Operation::Create { key, .. } => ("POST", key.collection_path()),
            Operation::Patch { key, .. } => ("PATCH", key.path()),
            Operation::PutModule { host, slot, .. } => ("PUT", format!("{}/{}", host.path(), slot.name)),
            Operation::DeleteModule { host, slot } => ("DELETE", format!("{}/{}", host.path(), slot.name)),
            Operation::Delete { key, .. } => ("DELETE", key.path()),
            Operation::Claim { .. } => return None,
        })
    }

    /// Returns the body of the call.
    pub fn body(&self, secrets: Secrets<'_>) -> Result<Value, JsonError> {
        Ok(match self {
            Operation::Create { spec, .. } => Value::Object(spec.to_json(secrets)?),
            Operation::Patch { spec, fields, .. } => {
                let mut given = spec.to_json(secrets)?;
                given.retain(|field, _| fields.contains(field));
                // A field that is not written when it is unset.
                for field in fields.iter().filter(|field| spec.slots().iter().all(|slot| slot.name != field.as_str())) {
                    given.entry(field.as_str()).or_insert(Value::Null);
                }
                Value::Object(given)
            }
            Operation::PutModule { module, .. } => module.to_json(secrets)?,
            Operation::DeleteModule { .. } | Operation::Delete { .. } | Operation::Claim { .. } => Value::Null,
        })
    }
}

/// Displays the call as `METHOD path`, or a description of an operation without one.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.call(), self) {
            (Some((method, path)), _) => write!(f, "{method} {path}"),
            (None, Operation::Claim { key, claim: Some(claim) }) => {
                write!(f, "({key}: owned by source `{}` as `{}`", claim.source, claim.name)?;
                match claim.receiver() {
                    Some(to) => write!(f, ", offered to source `{to}`)"),
                    None => f.write_str(")"),
                }
            }
            (None, Operation::Claim { key, claim: None }) => write!(f, "({key}: no longer owned by a source)"),
            (None, other) => match other.body(Secrets::Masked) {
                Ok(body) => write!(f, "({} {body})", other.key()),
                // `to_string` panics if `fmt` returns an error.
                Err(_) => write!(f, "({})", other.key()),
            },
        }
    }
}

/// The author of a Git commit, unverified: anyone can commit under any name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitAuthor {
    /// The name.
    pub name: String,
    /// The email address.
    pub email: String,
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

/// Describes the key of a request, or the certificate that it had instead. The description of the key is empty if it
/// has none, or was deleted.
pub(crate) fn key_of(key: &str, description: &str, owner: &str) -> String {
    match key.strip_prefix(CERTIFICATE) {
        Some(name) => format!("certificate {name} of {owner}"),
        None if description.is_empty() => format!("API key {key} of {owner}"),
        // The description becomes part of one-line messages.
        None => format!("\"{}\" ({key}) of {owner}", escaped(description)),
    }
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
    /// The paths of resources that changed hands with the rollback, and that the digest leaves out together with what they
    /// contain: until their other source has them, the manifests cannot lead to the whole state again (D104).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<String>,
    /// The paths of resources that were transferred to the source by command since the rollback: its manifests may declare
    /// them (D104). Kept in the last of the source's rejected manifests only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved_again: Vec<String>,
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
    pub fn through(mut self, key: Id, owner: Id) -> Self {
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
        ] {
            assert_eq!(key_of(key, description, "bot_ci"), expected);
        }
    }

    #[test]
    fn a_claim_without_a_transfer_is_written_as_before() {
        let claim = Claim { source: "shop".into(), name: "a".into(), ..Claim::default() };
        assert_eq!(serde_json::to_string(&claim).unwrap(), r#"{"source":"shop","name":"a"}"#);
        let offered = Claim { transfer_to: Some("pay".into()), ..claim };
        let text = r#"{"source":"shop","name":"a","transfer_to":"pay"}"#;
        assert_eq!(serde_json::to_string(&offered).unwrap(), text);
        assert_eq!(serde_json::from_str::<Claim>(text).unwrap(), offered);
        let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        let told = Operation::Claim { key, claim: Some(Arc::new(offered)) }.to_string();
        assert!(told.ends_with("owned by source `shop` as `a`, offered to source `pay`)"), "{told}");
    }

    #[test]
    fn only_a_commit_has_an_author_and_a_message() {
        let ada = CommitAuthor { name: "Ada".into(), email: "ada@example.com".into() };
        let author = Author::source("shop", None).with_commit_author(Some(ada)).with_commit_message(Some("Why".into()));
        assert_eq!(author, Author::source("shop", None));
    }
}
