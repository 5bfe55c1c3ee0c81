//! The request and response bodies of `/reconciliations`, for the server and for the command line with `--server`.

use crate::manifest::tree::SentValue;
use crate::model::Secret;
use crate::plan::format::json::ReportDocument;
use crate::plan::{DeletionBudget, SavedPlan};
use crate::reconcile::DEFAULT_SOURCE;
use crate::server::operations::routing_report::RoutingState;
use crate::server::operations::trace::report::{RequestToTrace, TraceReport};
use crate::server::prelude::*;
use crate::store::commit::header::CommitHeader;

/// The path of the list.
pub(super) const PATH: &str = "/reconciliations";
/// The prefix of reconciliation ids.
const PREFIX: &str = "rec_";

/// Manifests to reconcile with the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReconciliationCreate")]
#[serde(deny_unknown_fields)]
pub(crate) struct ReconciliationRequest {
    /// Plan without changing anything. Send it before `files`: a busy server then refuses a request before it receives all
    /// of it, and keeps places for applies.
    #[serde(default)]
    pub dry_run: bool,
    /// All manifests of the source: owned resources that no file declares are deleted.
    pub files: Vec<RequestFile>,
    /// The source that owns the resources.
    #[serde(default = "default_source")]
    #[schemars(length(min = 1, max = 255))]
    pub source: String,
    /// Whether to delete owned resources that are no longer declared.
    #[serde(default = "yes")]
    pub prune: bool,
    /// Whether to skip faulty resources and their dependents, and apply the rest.
    #[serde(default)]
    pub isolate: bool,
    /// Whether resources whose `metadata.id` does not exist are created under this ID; otherwise, it is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate_ids: bool,
    /// The deletion limit: a number of resources such as `20`, or a share of the source's resources such as `50%`;
    /// empty for the default.
    #[serde(default)]
    #[schemars(with = "String")]
    pub max_deletes: DeletionBudget,
    /// The Git commit of the manifests, if any.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"), length(max = 255))]
    pub commit: String,
    /// The name of the commit's author, if any, for the history.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"), length(max = 1024))]
    pub commit_author_name: String,
    /// The email address of the commit's author, if any, for the history.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"), length(max = 1024))]
    pub commit_author_email: String,
    /// The first line of the commit's message, if any, for the history.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"), length(max = 1024))]
    pub commit_message: String,
    /// Lint levels by name: `allow`, `warn` or `deny`.
    #[serde(default)]
    pub lints: BTreeMap<String, String>,
    /// The allowed label keys; null for any.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub allowed_labels: Option<BTreeSet<String>>,
    /// How many days before a certificate expires the lint `expiring-certificate` reports it; null for 30.
    #[serde(default)]
    pub certificate_expiry_days: Option<u32>,
    /// The `outcome` of the reviewed dry run: no other plan is applied. Omit it to apply any plan. If the reviewer did
    /// not see the secrets of the source, it begins with `masked:`; a dry run with it returns the plan in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// The SHA-256 of the secret part of each new API key's token, in hexadecimal, by key ID. A token is `ew_`, the ID,
    /// `_` and the secret part.
    #[serde(default)]
    pub token_hashes: BTreeMap<String, Secret>,
    /// Whether `from_env` and `from_file` values that the request lacks are taken from the store, or else unknown. Only
    /// for a dry run; its plan cannot be saved or expected.
    // This flag and later ones are left out if they are false, so that a server without them accepts the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assume_values: bool,
    /// Whether to return the changes from the files with `older` to the others, instead of those from the store. Only for a
    /// dry run; its plan cannot be saved or expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compare: bool,
    /// A request to trace in the store as it is and as the plan leaves it. Only for a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<RequestToTrace>,
    /// Whether the plan says how requests are treated differently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behaviour: bool,
    /// Whether to return the result of each request in the route tests, and what no test touches. The tests run in any case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests: bool,
    /// Whether to return what routes requests before and after the plan. Only for a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub routing: bool,
    /// Whether to return for each invariant whether it holds once the source has the resources that it declares. Only for a
    /// dry run that is no comparison. Invariants are enforced in any case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proofs: bool,
    /// Whether to keep the plan in memory for a page of the dashboard, and to return its address. Only for a dry run that is no
    /// comparison. Without the dashboard, without changes, and for a plan that is too large, no page is returned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page: bool,
}

/// A manifest file in a request.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SentFile")]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestFile {
    /// The path, used only in messages.
    #[schemars(length(min = 1, max = 4096))]
    pub name: String,
    /// The text: YAML, or JSON if the name ends in `.json`. Required unless `digest` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<String>>,
    /// The BLAKE3 hash of the text in lower-case hexadecimal, for a text that the same owner has sent before. With a
    /// `text`, it must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub digest: String,
    /// The values that its documents take from files and the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<SentValue>,
    /// Whether the file belongs to another source: only its names and module sets are used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surrounding: bool,
    /// Whether the file is one of those that the others are compared with, if the request has `compare`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older: bool,
}

/// Omits the text, which may contain secrets.
impl fmt::Debug for RequestFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.text.as_ref().map(|text| text.len());
        write!(f, "RequestFile({}, {size:?} bytes, {} values)", self.name, self.values.len())
    }
}

fn default_source() -> String {
    DEFAULT_SOURCE.to_owned()
}

fn yes() -> bool {
    true
}

/// The result of a reconciliation request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReconciliationRun {
    /// The report, in the format of `--format json`.
    #[serde(flatten)]
    pub report: ReportDocument,
    /// The skipped resources: kind, ID and name.
    pub left_out: Vec<String>,
    /// The plan as a document to save and review; null if planning failed.
    pub saved_plan: Option<SavedPlan>,
    /// The digest of the plan's result, for `expect`; empty if planning failed.
    pub outcome: String,
    /// The new reconciliation; null for a dry run and for an empty plan.
    pub reconciliation: Option<Reconciliation>,
    /// Whether the server reconciles the source from its own manifests. It then refuses to apply any other manifests.
    pub followed: bool,
    /// How the traced request is routed; null if the request traces none.
    #[serde(default)]
    pub traced: Option<TraceOfPlan>,
    /// The routing before and after the plan; null if the request does not ask for it.
    #[serde(default)]
    pub routing: Option<RoutingOfPlan>,
}

/// The routing before and after a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RoutingOfPlan {
    /// The edges and routes of the current revision.
    pub before: RoutingState,
    /// The edges and routes once the plan is applied; null if something else than an invariant refuses the plan.
    pub after: Option<RoutingState>,
}

/// How a request is routed before and after a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TraceOfPlan {
    /// The routing at the current revision.
    pub before: TraceReport,
    /// The routing once the plan is applied; null if something else than an invariant refuses the plan.
    pub after: Option<TraceReport>,
    /// How the plan treats the request differently, in words; empty if alike, and null if `after` is.
    #[serde(default)]
    pub difference: Option<String>,
}

/// A revision created by a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reconciliation {
    /// The fields shown in lists.
    #[serde(flatten)]
    pub head: ReconciliationItem,
    /// The operations in order: each call as `METHOD path`, and operations without a call, such as ownership changes,
    /// in parentheses.
    pub calls: Vec<String>,
}

/// A reconciliation in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReconciliationItem {
    /// The ID; its digits are the revision.
    pub id: String,
    /// The URI.
    pub uri: String,
    /// The time of the commit.
    pub created_at: String,
    /// The created revision.
    pub revision: u64,
    /// The source.
    pub source: String,
    /// The Git commit of the manifests, or empty.
    pub commit: String,
    /// The API key of the request; empty for a local reconciliation.
    pub key_id: String,
    /// The owner of the API key, or empty.
    pub owner_id: String,
    /// The number of changes.
    pub operations: usize,
    /// Whether the source was destroyed: all of its resources were deleted.
    #[serde(default)]
    pub destroyed: bool,
}

impl ReconciliationItem {
    /// Converts a record of the store, if it was created by a source.
    pub(crate) fn from_header(record: CommitHeader, base_url: &str) -> Option<Self> {
        let Author::Source { source, commit, through, destroyed, .. } = record.author else { return None };
        let (key, owner) = through.map(|(key, owner)| (key.to_string(), owner.to_string())).unwrap_or_default();
        let revision = record.revision?;
        let id = id_of(revision);
        Some(Self {
            uri: format!("{base_url}/reconciliations/{id}"),
            id,
            created_at: record.at.to_string(),
            revision,
            source,
            commit: commit.unwrap_or_default(),
            key_id: key,
            owner_id: owner,
            operations: record.operations,
            destroyed,
        })
    }
}

/// The help for a source that the server reconciles from its own manifests.
pub(crate) const FOLLOWED_HELP: &str = "change those manifests";

/// Why no others can be applied under the name of such a source.
pub(crate) fn followed_message(source: &str) -> String {
    format!("the server reconciles source `{}` from its own manifests", printable(source))
}

/// The id of the reconciliation of a revision; ids sort like revisions.
pub(crate) fn id_of(revision: u64) -> String {
    format!("{PREFIX}{revision:027}")
}

/// The revision in an id.
pub(crate) fn revision_of(id: &str) -> Option<u64> {
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
