//! The `tls_termination` module of an HTTPS edge: where TLS terminates, and the minimum TLS version.

use super::prelude::*;
use crate::model::decode::variant_or_blank;
use crate::model::field_rule::{BLANK_IS_UNSET, deserialize_by};
use crate::model::names::names;
use crate::model::schema::condition;

/// Where TLS terminates, and the minimum TLS version.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsTermination {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// Where TLS terminates: at the `edge`, or at the `upstream`, which disallows most other modules.
    #[serde(deserialize_with = "variant_or_blank")]
    pub terminate_at: TerminateAt,
    /// The minimum TLS version; defaults to `1.2`, and must be null for `upstream`.
    #[serde(deserialize_with = "version_or_blank")]
    pub min_version: Option<TlsVersion>,
}

/// Where TLS terminates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminateAt {
    /// At the edge.
    #[default]
    Edge,
    /// At the upstream agent or application.
    Upstream,
}

/// A TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.0.
    #[serde(rename = "1.0")]
    V1_0,
    /// TLS 1.1.
    #[serde(rename = "1.1")]
    V1_1,
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V1_3,
}

names!(TlsVersion: V1_0 "1.0", V1_1 "1.1", V1_2 "1.2", V1_3 "1.3");

/// A blank version means the default, not null, so it is rejected with `upstream` like any other (D62).
fn version_or_blank<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TlsVersion>, D::Error> {
    deserialize_by(BLANK_IS_UNSET, Some(TlsVersion::V1_2), deserializer)
}

impl Default for TlsTermination {
    fn default() -> Self {
        Self { enabled: true, terminate_at: TerminateAt::Edge, min_version: None }
    }
}

impl TlsTermination {
    /// Returns the minimum version with its default; `None` if the edge does not terminate TLS (D15).
    pub(crate) fn effective_min_version(&self) -> Option<TlsVersion> {
        match self.terminate_at {
            TerminateAt::Edge => Some(self.min_version.unwrap_or(TlsVersion::V1_2)),
            TerminateAt::Upstream => None,
        }
    }
}

/// An unset version equals the default version, so that a plan does not show a change between them.
impl PartialEq for TlsTermination {
    fn eq(&self, other: &Self) -> bool {
        let form = |it: &Self| (it.enabled, it.terminate_at, it.effective_min_version());
        form(self) == form(other)
    }
}

impl Check for TlsTermination {
    fn check(&self, faults: &mut Faults) {
        if self.terminate_at == TerminateAt::Upstream && self.min_version.is_some() {
            let message = "`min_version` must be null when `terminate_at` is `upstream`";
            let fault = Fault::new(Code::NotAllowed, message).at("min_version");
            faults.report(fault.help("remove it, and set the version at the upstream"));
        }
    }
}

impl Toggle for TlsTermination {
    fn enabled(&self) -> bool {
        self.enabled
    }
}

impl Module for TlsTermination {
    const SLOT: &'static str = "tls_termination";
    const NEEDS_TERMINATION: bool = false;
    type View = Self;

    fn view(&self, _host: &Key, _base_urls: &BaseUrls) -> Self {
        Self { min_version: self.effective_min_version(), ..*self }
    }

    /// A trace shows TLS termination with the edge, not as a step.
    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        Vec::new()
    }

    fn example() -> Value {
        json!({"terminate_at": "edge", "min_version": "1.3"})
    }

    fn constraints() -> Vec<Constraint> {
        let rule = condition(
            json!({"required": ["terminate_at"], "properties": {"terminate_at": {"const": "upstream"}}}),
            json!({"properties": {"min_version": {"type": "null"}}}),
        );
        vec![Constraint::keywords("TlsTermination", rule)]
    }
}
