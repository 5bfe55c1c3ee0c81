//! The `mutual_tls` module of an HTTPS edge: authenticates clients by certificate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::model::{
    Kind,
    base_urls::{Ref, Site},
    diagnostics::fault::{Check, Faults, Path},
    id::Id,
    key::Key,
    reference::Reference,
    traffic::{Stage, Step, StepEffect, TracedRequest, or_none},
};

/// Authenticates clients by certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MutualTls {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The IDs of the certificate authorities; manifests can also use names.
    #[schemars(extend("items" = serde_json::json!({"type": "string", "format": "certificate-authority-id"})))]
    pub certificate_authority_ids: Vec<String>,
}

impl Default for MutualTls {
    fn default() -> Self {
        Self { enabled: true, certificate_authority_ids: Vec::new() }
    }
}

/// The response form of [`MutualTls`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct MutualTlsView {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// The certificate authorities that validate client certificates.
    pub certificate_authorities: Vec<Ref>,
}

impl Check for MutualTls {
    fn check(&self, _faults: &mut Faults) {}
}

impl Module for MutualTls {
    const SLOT: &'static str = "mutual_tls";
    type View = MutualTlsView;

    fn view(&self, _host: &Key, site: &Site) -> MutualTlsView {
        let authorities = self.certificate_authority_ids.iter().map(|id| site.reference("certificate_authorities", id));
        MutualTlsView { enabled: self.enabled, certificate_authorities: authorities.collect() }
    }

    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        for (index, id) in self.certificate_authority_ids.iter().enumerate() {
            visit(Reference {
                target: Key::new(Kind::CertificateAuthority, Id::new(id)),
                path: Path::root().join("certificate_authority_ids").join(index),
            });
        }
    }
    fn set_references(&mut self, targets: &[Id]) {
        self.certificate_authority_ids = targets.iter().map(ToString::to_string).collect();
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("certificate_authority_ids".into(), self.certificate_authority_ids.len())]
    }

    fn restricts_access(&self) -> bool {
        true
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        let note = format!("requires a client certificate issued by {}", or_none(&self.certificate_authority_ids));
        vec![Step::new(Stage::Connection, StepEffect::Depends, note)]
    }

    fn example() -> Value {
        json!({"certificate_authority_ids": []})
    }
}
