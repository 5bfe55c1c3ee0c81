//! Certificate authorities, which validate client certificates.

use super::prelude::*;
use crate::syntax::x509::{self, AuthorityFacts, Chain, Link, PemFault};

/// A parsed `ca_pem`.
pub struct CaPem(Result<Chain<AuthorityFacts>, PemFault>);

impl Reading for CaPem {
    fn read(text: &str) -> Self {
        Self(x509::authority(text))
    }
}

impl CaPem {
    /// Returns the facts of the first certificate; `None` if the text is faulty.
    pub(crate) fn facts(&self) -> Option<&AuthorityFacts> {
        self.0.as_ref().ok().map(|chain| &chain.facts)
    }

    /// Returns the certificates; none if the text is faulty.
    pub(crate) fn links(&self) -> &[Link] {
        self.0.as_ref().map(|chain| chain.links.as_slice()).unwrap_or_default()
    }
}

/// An uploaded certificate authority.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CertificateAuthority {
    /// A human-readable description, at most 255 bytes.
    #[schemars(length(max = 255))]
    pub description: String,
    /// Arbitrary user-defined data, at most 4096 bytes.
    #[schemars(length(max = 4096))]
    pub metadata: String,
    /// The authority's PEM; cannot change after creation.
    #[schemars(extend("format" = "ca-pem"))]
    pub ca_pem: Text<CaPem>,
}

view! {
    /// The response form of [`CertificateAuthority`].
    pub struct CertificateAuthorityView(spec: &CertificateAuthority, at) {
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this certificate authority.
        pub uri: String = at.uri(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        /// The authority's PEM.
        pub ca_pem: String = spec.ca_pem.as_str().to_owned(),
        /// Facts from the certificate.
        #[serde(flatten)]
        // A stored PEM was validated, so it can be parsed.
        pub facts: AuthorityFacts = spec.ca_pem.read().0.as_ref().map(|chain| chain.facts.clone()).unwrap_or_default(),
    }
}

impl Check for CertificateAuthority {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        if self.ca_pem.as_str().is_empty() {
            faults.report(Fault::required("ca_pem"));
        } else if !self.ca_pem.is_unknown()
            && let CaPem(Err(fault)) = self.ca_pem.read()
        {
            faults.report(Fault::new(Code::InvalidPem, fault.to_string()).at("ca_pem").help(fault.help()));
        }
    }
}

impl Resource for CertificateAuthority {
    const INFO: KindInfo = KindInfo {
        fixed: &["ca_pem"],
        required: &["ca_pem"],
        ..KindInfo::new::<CertificateAuthority>(Kind::CertificateAuthority)
    };

    type View = CertificateAuthorityView;

    fn example() -> Option<Value> {
        Some(json!({
            "description": "Partners",
            "ca_pem": include_str!("../../../examples/storefront/certs/partner-devices.pem"),
        }))
    }

    fn keep_readings(&mut self, former: &Self) {
        self.ca_pem.keep_reading(&former.ca_pem);
    }

    fn as_stored(&self, stored: &Self) -> Option<Self> {
        let is_same = x509::same_pem(self.ca_pem.as_str(), stored.ca_pem.as_str());
        is_same.then(|| Self { ca_pem: stored.ca_pem.clone(), ..self.clone() })
    }
}
