//! What a behaviour diff has, as reports and the API show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How requests are treated differently once a plan is applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BehaviourDiff {
    /// The differences; those that open access first, then those that weaken TLS. Empty if every request is treated as before.
    pub changes: Vec<BehaviourChange>,
    /// What the effect of the plan depends on that manifests without a store do not show, as clauses: at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// Requests that are treated differently in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BehaviourChange {
    /// Whether fewer sorts of modules restrict access, one may admit more, or none does where all requests were refused: to these
    /// requests, or to their route, which took others before.
    pub opens: bool,
    /// Whether clients can use an older version of TLS, or TLS no longer ends at the edge.
    pub weakens_tls: bool,
    /// The difference, in words.
    pub change: String,
    /// The edge that served the requests, by its name in the manifests or ID; empty if there was none.
    pub before: String,
    /// The edge that serves them then, or empty.
    pub after: String,
    /// The requests.
    pub requests: Vec<RequestPattern>,
    /// The URL of one of them; empty if it is not known.
    pub example: String,
}

/// Requests to some hosts with some paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPattern {
    /// The scheme, host and port of URLs, such as `https://*.example.com`. Hosts that another pattern of the same edges
    /// selects more closely are not meant. With an empty path, words for requests without known URLs, such as `all hosts`.
    pub origins: Vec<String>,
    /// The path; it ends in `*` if more can follow.
    pub path: String,
    /// All paths below `path` that are not meant; one that ends in `*` stands for all that begin with it.
    pub except: Vec<String>,
}
