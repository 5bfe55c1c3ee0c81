//! The `saml` module: requires a login with a SAML identity provider.

use super::prelude::*;
use super::session_fields;
use crate::model::field_rule::{BLANK_IS_UNSET, deserialize_by};
use crate::model::secrets::{Reading, Text};
use crate::syntax::text::printable;
use crate::syntax::xml;

/// The supported name identifier formats (D18); the first is the default.
pub const NAMEID_FORMATS: &[&str] = &[
    "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
];
const PERSISTENT: &str = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent";

/// The result of checking an `idp_metadata`, with the reason if it is not SAML metadata.
pub struct IdpMetadata(Result<xml::MetadataFacts, String>);

impl IdpMetadata {
    /// Returns what the metadata contains; `None` if it is invalid.
    pub(crate) fn facts(&self) -> Option<xml::MetadataFacts> {
        self.0.as_ref().ok().copied()
    }
}

impl Reading for IdpMetadata {
    fn read(text: &str) -> Self {
        Self(xml::check_entity_descriptor(text))
    }
}

module! {
    /// Login with a SAML identity provider.
    pub struct Saml {
        ..login,
        /// The full XML EntityDescriptor of the identity provider, at most 1 MiB.
        #[schemars(extend("format" = "saml-metadata"))]
        pub idp_metadata: Text<IdpMetadata>,
        /// When true, the identity provider must ask for credentials even if the user has a session there.
        pub force_authn: bool,
        /// Whether the identity provider can start a login.
        pub allow_idp_initiated: bool = true,
        /// The groups whose members have access; an empty list admits every user who logs in.
        pub authorized_groups: Vec<String>,
        /// The required name identifier format of assertions; defaults to persistent.
        #[serde(deserialize_with = "nameid_format")]
        #[schemars(extend("enum" = NAMEID_FORMATS))]
        pub nameid_format: String = PERSISTENT.into(),
    }
}

/// A blank format is the default in a request only (D62).
fn nameid_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserialize_by(BLANK_IS_UNSET, PERSISTENT.to_owned(), deserializer)
}

/// The response form of [`Saml`]: its configuration, and the service provider settings for the identity provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SamlView {
    #[serde(flatten)]
    written: Saml,
    /// The service provider's entity ID, which is the metadata URL.
    entity_id: String,
    /// The URL that receives assertions.
    assertion_consumer_service_url: String,
    /// The single logout URL.
    single_logout_url: String,
    /// The PEM certificate of the key pair that signs requests to the identity provider.
    pub request_signing_certificate_pem: String,
    /// The public URL of the service provider's metadata.
    pub metadata_url: String,
    /// Always empty.
    idp_metadata_url: String,
}

impl Check for Saml {
    fn check(&self, faults: &mut Faults) {
        session_fields::check_cookie_prefix(faults, &self.cookie_prefix);
        if self.idp_metadata.as_str().trim().is_empty() {
            let help = "paste the identity provider's XML EntityDescriptor";
            faults.report(Fault::required("idp_metadata").help(help));
        } else if !self.idp_metadata.is_unknown()
            && let IdpMetadata(Err(reason)) = self.idp_metadata.read()
        {
            let help = if self.idp_metadata.as_str().trim_start().starts_with("http") {
                "download the document at this URL, and use its text"
            } else {
                "download the metadata of the identity provider again, and use it without changes"
            };
            faults.report(Fault::new(Code::InvalidXml, reason.as_str()).at("idp_metadata").help(help));
        }
        if !NAMEID_FORMATS.contains(&self.nameid_format.as_str()) {
            let message = format!("`{}` is not a supported name identifier format", printable(&self.nameid_format));
            let help = format!("use one of {}", NAMEID_FORMATS.join(", "));
            faults.report(Fault::new(Code::UnknownValue, message).at("nameid_format").help(help));
        }
    }
}

impl ModuleView<Saml> for SamlView {
    fn new(module: &Saml, host: &Key, base_urls: &BaseUrls) -> Self {
        let metadata_url = format!("{}/saml/{}", base_urls.saml_base_url, host.id);
        Self {
            written: module.clone(),
            entity_id: metadata_url.clone(),
            assertion_consumer_service_url: format!("{metadata_url}/acs"),
            single_logout_url: format!("{metadata_url}/slo"),
            request_signing_certificate_pem: (base_urls.saml_certificate)(&host.id),
            metadata_url,
            idp_metadata_url: String::new(),
        }
    }
}

impl Module for Saml {
    const SLOT: &'static str = "saml";
    const REQUIRED: &'static [&'static str] = &["idp_metadata"];
    const IS_LOGIN: bool = true;
    const SETTINGS_WITH_ID: Option<&'static str> = Some("SAML entity ID and ACS URL");
    type View = SamlView;

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("authorized_groups".into(), self.authorized_groups.len())]
    }

    fn lets_preflights_pass(&self) -> bool {
        self.options_passthrough
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        AccessChange::of_value(&former.idp_metadata, &self.idp_metadata).and(AccessChange::of_open_lists(
            &[former.authorized_groups.as_slice()],
            &[self.authorized_groups.as_slice()],
        ))
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        vec![Step::login(request, self.options_passthrough, "the SAML identity provider")]
    }

    fn example() -> Value {
        let metadata =
            "<EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://idp.example.com\"/>";
        json!({"idp_metadata": metadata, "authorized_groups": ["finance"]})
    }
}
