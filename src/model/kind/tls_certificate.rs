//! TLS certificates, which the gateway presents to clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    model::{
        Kind, check,
        code::Code,
        fault::{Check, Fault, Faults},
        resource::{KindInfo, Resource, ViewContext},
        secret::{Secret, Text},
        snapshot::Entry,
    },
    x509::{self, CertificateFacts},
};

/// An uploaded certificate chain and its private key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsCertificate {
    /// A human-readable description, at most 255 bytes.
    #[schemars(length(max = 255))]
    pub description: String,
    /// Arbitrary user-defined data, at most 4096 bytes.
    #[schemars(length(max = 4096))]
    pub metadata: String,
    /// The chain of PEM certificates, leaf first; cannot change after creation.
    #[schemars(extend("format" = "certificate-pem"))]
    pub certificate_pem: Text,
    /// The leaf's PEM private key; cannot change after creation, and is never part of a response.
    #[schemars(extend("format" = "private-key-pem"))]
    pub private_key_pem: Secret,
}

/// The response form of [`TlsCertificate`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct TlsCertificateView {
    /// The unique ID.
    pub id: String,
    /// The URI of this certificate.
    pub uri: String,
    /// The time of creation.
    pub created_at: String,
    /// The description.
    pub description: String,
    /// The user-defined data.
    pub metadata: String,
    /// The chain of PEM certificates, leaf first.
    pub certificate_pem: String,
    /// The time of automatic issuance; null, because the certificate was uploaded.
    pub issued_at: Option<String>,
    /// Facts from the leaf certificate.
    #[serde(flatten)]
    pub facts: CertificateFacts,
}

impl Check for TlsCertificate {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        let chain = self.certificate_pem.as_str();
        let mut readable = false;
        faults.within("certificate_pem", |faults| {
            if chain.is_empty() {
                faults.report(Fault::new(Code::Required, "`certificate_pem` is required"));
            } else if let Err(fault) = x509::certificate(chain) {
                faults.report(Fault::new(Code::InvalidPem, fault.to_string()).help(fault.help()));
            } else {
                readable = true;
            }
        });
        faults.within("private_key_pem", |faults| {
            if self.private_key_pem.is_empty() {
                faults.report(Fault::new(Code::Required, "`private_key_pem` is required"));
            } else if readable && let Err(fault) = x509::check_key(chain, self.private_key_pem.expose()) {
                let code = if fault.is_key_mismatch() { Code::KeyMismatch } else { Code::InvalidPem };
                faults.report(Fault::new(code, fault.to_string()).help(fault.help()));
            }
        });
    }
}

impl Resource for TlsCertificate {
    const INFO: KindInfo = KindInfo {
        prefix: "cert_",
        collection: "/tls_certificates",
        list: "tls_certificates",
        fixed: &["certificate_pem", "private_key_pem"],
        ..KindInfo::of::<TlsCertificate>(Kind::TlsCertificate, "TlsCertificate")
    };

    type View = TlsCertificateView;

    fn view(&self, at: &Entry, cx: &ViewContext<'_>) -> TlsCertificateView {
        TlsCertificateView {
            id: at.key.id.to_string(),
            uri: cx.site.uri(&at.key),
            created_at: at.created_at.to_string(),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            certificate_pem: self.certificate_pem.as_str().to_owned(),
            issued_at: None,
            // Stored PEM has passed the check, so it is readable.
            facts: x509::certificate(self.certificate_pem.as_str()).unwrap_or_default(),
        }
    }
}
