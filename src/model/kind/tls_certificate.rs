//! TLS certificates, which the gateway presents to clients.

use std::sync::OnceLock;

use super::prelude::*;
use crate::model::secrets::Secret;
use crate::syntax::x509::{self, CertificateFacts, Chain, Link, PemFault};

/// A parsed `certificate_pem`.
pub struct CertificatePem {
    chain: Result<Chain<CertificateFacts>, PemFault>,
    /// A private key, and whether it belongs to the leaf. Kept here because the two fields never change separately.
    key: OnceLock<(Secret, Result<(), PemFault>)>,
}

impl Reading for CertificatePem {
    fn read(text: &str) -> Self {
        Self { chain: x509::certificate(text), key: OnceLock::new() }
    }
}

impl CertificatePem {
    /// Returns the facts of the leaf.
    pub(crate) fn facts(&self) -> Result<&CertificateFacts, &PemFault> {
        self.chain.as_ref().map(|chain| &chain.facts)
    }

    /// Returns the certificates; none if the text is invalid.
    pub(crate) fn links(&self) -> &[Link] {
        self.chain.as_ref().map(|chain| chain.links.as_slice()).unwrap_or_default()
    }
}

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
    pub certificate_pem: Text<CertificatePem>,
    /// The leaf's private key as PEM; cannot change after creation, and is never returned.
    #[schemars(extend("format" = "private-key-pem"))]
    pub private_key_pem: Secret,
    /// The other sources whose edges may present the certificate; if none, all that name its source. Only manifests set it
    /// (D112).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub shared_with: Option<Vec<String>>,
}

view! {
    /// The response form of [`TlsCertificate`].
    pub struct TlsCertificateView(spec: &TlsCertificate, at) {
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this certificate.
        pub uri: String = at.uri(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        /// The chain of PEM certificates, leaf first.
        pub certificate_pem: String = spec.certificate_pem.as_str().to_owned(),
        /// The time of automatic issuance; null, because the certificate was uploaded.
        pub issued_at: Option<String> = None,
        /// Facts from the leaf certificate.
        #[serde(flatten)]
        // A stored PEM was validated, so it can be parsed.
        pub facts: CertificateFacts = spec.certificate_pem.read().facts().cloned().unwrap_or_default(),
    }
}

impl TlsCertificate {
    /// Whether edges of another source may present the certificate.
    pub(crate) fn is_shared_with(&self, source: &str) -> bool {
        self.shared_with.as_ref().is_none_or(|sources| sources.iter().any(|it| it == source))
    }

    /// Checks that the private key belongs to the leaf.
    fn check_key(&self) -> Result<(), PemFault> {
        let check = || x509::check_key(self.certificate_pem.as_str(), self.private_key_pem.expose());
        let remembered = &self.certificate_pem.read().key;
        let (key, verdict) = remembered.get_or_init(|| (self.private_key_pem.clone(), check()));
        if *key == self.private_key_pem { verdict.clone() } else { check() }
    }
}

impl Check for TlsCertificate {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        let mut readable = false;
        let at = |field: &str, code: Code, fault: &PemFault| {
            Fault::new(code, fault.to_string()).at(field).help(fault.help())
        };
        if self.certificate_pem.as_str().is_empty() {
            faults.report(Fault::required("certificate_pem"));
        } else if !self.certificate_pem.is_unknown() {
            match self.certificate_pem.read().facts() {
                Ok(_) => readable = true,
                Err(fault) => faults.report(at("certificate_pem", Code::InvalidPem, fault)),
            }
        }
        if self.private_key_pem.is_empty() {
            faults.report(Fault::required("private_key_pem"));
        } else if readable
            && !self.private_key_pem.is_unknown()
            && let Err(fault) = self.check_key()
        {
            let code = if fault.is_key_mismatch() { Code::KeyMismatch } else { Code::InvalidPem };
            faults.report(at("private_key_pem", code, &fault));
        }
    }
}

impl Resource for TlsCertificate {
    const INFO: KindInfo = KindInfo {
        fixed: &["certificate_pem", "private_key_pem"],
        required: &["certificate_pem", "private_key_pem"],
        hidden: &["shared_with"],
        ..KindInfo::new::<TlsCertificate>(Kind::TlsCertificate)
    };

    type View = TlsCertificateView;

    // No example: no private key belongs in a public document, not even a demo key.

    fn keep_readings(&mut self, former: &Self) {
        self.certificate_pem.keep_reading(&former.certificate_pem);
    }

    /// A certificate has one private key, so its encoding does not matter either.
    fn as_stored(&self, stored: &Self) -> Option<Self> {
        let is_same = x509::same_pem(self.certificate_pem.as_str(), stored.certificate_pem.as_str())
            && (self.private_key_pem.is_unknown() || self.check_key().is_ok());
        is_same.then(|| Self {
            certificate_pem: stored.certificate_pem.clone(),
            private_key_pem: stored.private_key_pem.clone(),
            ..self.clone()
        })
    }
}
