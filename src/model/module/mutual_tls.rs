//! The `mutual_tls` module of an HTTPS edge: authenticates clients by certificate.

use super::prelude::*;
use crate::model::diagnostics::Path;
use crate::model::id::Id;
use crate::model::kind::Kind;
use crate::model::reference::Reference;
use crate::model::traffic::or_none;

module! {
    /// Authenticates clients by certificate.
    pub struct MutualTls {
        /// The IDs of the certificate authorities; manifests can also use names.
        #[schemars(extend("items" = serde_json::json!({"type": "string", "format": "certificate-authority-id"})))]
        pub certificate_authority_ids: Vec<String>,
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

impl Check for MutualTls {}

impl ModuleView<MutualTls> for MutualTlsView {
    fn new(module: &MutualTls, _host: &Key, base_urls: &BaseUrls) -> Self {
        let ids = module.certificate_authority_ids.iter();
        let certificate_authorities = ids.map(|id| base_urls.reference("certificate_authorities", id)).collect();
        Self { enabled: module.enabled, certificate_authorities }
    }
}

impl Module for MutualTls {
    const SLOT: &'static str = "mutual_tls";
    type View = MutualTlsView;

    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        for (index, id) in self.certificate_authority_ids.iter().enumerate() {
            visit(Reference {
                target: Key::new(Kind::CertificateAuthority, Id::new(id)),
                path: Path::from("certificate_authority_ids").join(index),
            });
        }
    }

    fn set_references(&mut self, targets: &[Id]) {
        self.certificate_authority_ids = targets.iter().map(ToString::to_string).collect();
    }

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("certificate_authority_ids".into(), self.certificate_authority_ids.len())]
    }

    fn restricts_access(&self) -> bool {
        true
    }

    fn admits(&self) -> Admittance {
        // Whether an empty list admits everybody or nobody is up to the gateway.
        if self.certificate_authority_ids.is_empty() { Admittance::Unknown } else { Admittance::Somebody }
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        AccessChange::of_list(&former.certificate_authority_ids, &self.certificate_authority_ids)
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        let effect = match request.client_certificate {
            None => StepEffect::Depends,
            Some(true) => StepEffect::Passes,
            Some(false) => StepEffect::Refused,
        };
        let note = format!("requires a client certificate issued by {}", or_none(&self.certificate_authority_ids));
        vec![Step::new(Stage::Connection, effect, note)]
    }

    fn example() -> Value {
        json!({"certificate_authority_ids": []})
    }
}
