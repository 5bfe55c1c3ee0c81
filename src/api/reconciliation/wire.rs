//! What is sent to `/reconciliations` and what comes back, for the server and for the command line with `--server`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    manifest::tree::SentFile,
    model::{operation::Author, secret::Secret},
    plan::{format::json::Document, safety::Budget, saved::SavedPlan},
    reconcile::DEFAULT_SOURCE,
    store::history::Record,
};

/// What every identifier of a reconciliation starts with.
const PREFIX: &str = "rec_";

/// Manifests to reconcile with the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReconciliationRequest")]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Every manifest of the source, for what it owns and no file declares is deleted.
    #[schemars(length(min = 1))]
    pub files: Vec<SentFile>,
    /// Plan and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// The name under which the resources are owned.
    #[serde(default = "default_source")]
    #[schemars(length(min = 1, max = 255))]
    pub source: String,
    /// Whether what the source owns and no longer declares is deleted.
    #[serde(default = "yes")]
    pub prune: bool,
    /// Whether what is faulty is set aside with its dependents, and the rest goes on.
    #[serde(default)]
    pub isolate: bool,
    /// How much may be deleted: a number of resources such as `20`, or a share of what the source owns such as `50%`;
    /// empty for what a normal day needs.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: Budget,
    /// The commit of the manifests, where they are in git.
    #[serde(default)]
    #[schemars(length(max = 255))]
    pub commit: String,
    /// Levels of lints by name: `allow`, `warn` or `deny`.
    #[serde(default)]
    pub lints: BTreeMap<String, String>,
    /// The label keys that manifests may use; null for any.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub allowed_labels: Option<BTreeSet<String>>,
    /// The `outcome` of the dry run that was looked at: nothing else is applied. Empty for anything.
    #[serde(default)]
    pub expect: String,
    /// The SHA-256 of the secret part of each new API key's token, in hexadecimal digits, by the identifier of the key.
    /// A token is `ew_`, the identifier, `_` and the secret part.
    #[serde(default)]
    pub token_hashes: BTreeMap<String, Secret>,
}

fn default_source() -> String {
    DEFAULT_SOURCE.to_owned()
}

fn yes() -> bool {
    true
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReconciliationRun")]
pub struct Run {
    /// The report, in the format that `--format json` has.
    #[serde(flatten)]
    pub report: Document,
    /// What was set aside: kind, identifier and name.
    pub left_out: Vec<String>,
    /// The plan as it can be saved, reviewed and expected; null when no plan could be made.
    pub saved_plan: Option<SavedPlan>,
    /// What the plan comes to, as `expect` names it; empty when no plan could be made.
    pub outcome: String,
    /// What was made; null for a dry run, and where there was nothing to do.
    pub reconciliation: Option<Reconciliation>,
}

/// A revision that a source has made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconciliation {
    /// What lists show of it.
    #[serde(flatten)]
    pub head: Head,
    /// What ran, in order: each call as `METHOD path`, and in parentheses what has no call, such as a change of ownership.
    pub calls: Vec<String>,
}

/// What a list shows of a reconciliation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReconciliationItem")]
pub struct Head {
    /// The identifier: its digits are the revision.
    pub id: String,
    /// Its address.
    pub uri: String,
    /// When it was committed.
    pub created_at: String,
    /// The revision that it made.
    pub revision: u64,
    /// The source that owns what it made.
    pub source: String,
    /// The commit of the manifests, where they were in git, or empty.
    pub commit: String,
    /// The API key that it came with; empty for one on the machine of the store.
    pub key_id: String,
    /// The owner of that key, or empty.
    pub owner_id: String,
    /// How many changes it made.
    pub operations: usize,
}

impl Reconciliation {
    /// A record of the store, if a source has made it.
    pub fn of(record: Record, base_url: &str) -> Option<Self> {
        let Author::Source { source, commit, through } = record.author else { return None };
        let (key, owner) = through.map(|(key, owner)| (key.to_string(), owner.to_string())).unwrap_or_default();
        let revision = record.revision?;
        let id = id_of(revision);
        let head = Head {
            uri: format!("{base_url}/reconciliations/{id}"),
            id,
            created_at: record.at.to_string(),
            revision,
            source,
            commit: commit.unwrap_or_default(),
            key_id: key,
            owner_id: owner,
            operations: record.calls.len(),
        };
        Some(Self { head, calls: record.calls })
    }
}

/// The identifier of the reconciliation that made a revision: it sorts as the revisions do.
pub fn id_of(revision: u64) -> String {
    format!("{PREFIX}{revision:027}")
}

/// The revision in an identifier.
pub fn revision_of(id: &str) -> Option<u64> {
    let revision = id.strip_prefix(PREFIX)?.parse().ok()?;
    (id_of(revision) == id).then_some(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_its_revision_and_nothing_else_is_one() {
        for revision in [0, 1, 42, u64::MAX] {
            assert_eq!(revision_of(&id_of(revision)), Some(revision));
        }
        assert_eq!(id_of(7).len(), PREFIX.len() + 27);
        for other in ["", "rec_7", "rec_+00000000000000000000000007", "7", "edg_000000000000000000000000007"] {
            assert_eq!(revision_of(other), None, "{other}");
        }
    }
}
