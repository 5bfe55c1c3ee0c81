//! The `tls_termination` module of an HTTPS edge: who reads the traffic, and how old its TLS may be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    code::Code,
    fault::{Check, Fault, Faults},
    key::Key,
    resource::ViewContext,
};

/// Where TLS ends, and the oldest version that is spoken.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsTermination {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// `edge`: the edge terminates TLS. `upstream`: TLS is passed through, and most other modules are disallowed.
    pub terminate_at: TerminateAt,
    /// The oldest TLS version; `1.2` when unspecified, null under `upstream`.
    pub min_version: Option<TlsVersion>,
}

/// Who terminates TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminateAt {
    /// The edge.
    #[default]
    Edge,
    /// The upstream agent or application.
    Upstream,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

impl Default for TlsTermination {
    fn default() -> Self {
        Self { enabled: true, terminate_at: TerminateAt::Edge, min_version: None }
    }
}

impl TlsTermination {
    /// The oldest version that is spoken; none where the edge does not speak TLS (D15).
    fn effective_min_version(&self) -> Option<TlsVersion> {
        match self.terminate_at {
            TerminateAt::Edge => Some(self.min_version.unwrap_or(TlsVersion::V1_2)),
            TerminateAt::Upstream => None,
        }
    }
}

/// An unspecified version and the one that it stands for are the same configuration.
impl PartialEq for TlsTermination {
    fn eq(&self, other: &Self) -> bool {
        let form = |it: &Self| (it.enabled, it.terminate_at, it.effective_min_version());
        form(self) == form(other)
    }
}

impl Check for TlsTermination {
    fn check(&self, faults: &mut Faults) {
        if self.terminate_at == TerminateAt::Upstream && self.min_version.is_some() {
            faults.within("min_version", |faults| {
                faults.report(
                    Fault::new(Code::NotAllowed, "`min_version` must be null when `terminate_at` is `upstream`")
                        .help("the edge passes TLS through unread: set the version at the upstream"),
                );
            });
        }
    }
}

impl Module for TlsTermination {
    const SLOT: &'static str = "tls_termination";
    type View = Self;

    fn view(&self, _host: &Key, _cx: &ViewContext<'_>) -> Self {
        Self { min_version: self.effective_min_version(), ..*self }
    }
}
