//! Facts about SAML metadata, for lints: whether a login can work with it.

use jiff::Timestamp;

use super::syntax::normalized;
use super::tag::{Attributes, Tag};

/// The namespace of SAML metadata.
pub(super) const METADATA: &str = "urn:oasis:names:tc:SAML:2.0:metadata";

/// The parts of metadata that a login needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MetadataFacts {
    /// Whether the root element is in the namespace of SAML metadata.
    in_namespace: bool,
    /// Whether an EntityDescriptor has an `entityID`.
    has_entity_id: bool,
    /// Whether there is an IDPSSODescriptor.
    has_identity_provider: bool,
    /// Whether an IDPSSODescriptor has a SingleSignOnService.
    has_login_address: bool,
    /// Whether an IDPSSODescriptor has a key, for any use.
    has_key: bool,
    /// Whether an IDPSSODescriptor has a key that can verify signatures.
    has_signing_key: bool,
    /// Whether the `Location` of a SingleSignOnService is an http URL.
    pub has_plain_login_address: bool,
    /// The earliest `validUntil` that applies to the identity provider.
    pub valid_until: Option<Timestamp>,
}

impl MetadataFacts {
    /// Returns the first thing that is missing for a login, as a sentence.
    pub(crate) fn gap(self) -> Option<String> {
        if !self.in_namespace {
            Some(format!("the root element of `idp_metadata` is not in the namespace `{METADATA}`"))
        } else if !self.has_entity_id {
            Some("`idp_metadata` has no `entityID`".to_owned())
        } else if !self.has_identity_provider {
            Some("`idp_metadata` has no `IDPSSODescriptor`, so it does not describe an identity provider".to_owned())
        } else if !self.has_login_address {
            Some("the `IDPSSODescriptor` has no `SingleSignOnService`, so there is no login URL".to_owned())
        } else if !self.has_key {
            Some("the `IDPSSODescriptor` has no `KeyDescriptor`, so no assertion can be verified".to_owned())
        } else if !self.has_signing_key {
            Some("the `IDPSSODescriptor` has only keys for encryption, so no assertion can be verified".to_owned())
        } else {
            None
        }
    }
}

/// Collects facts from the start tags of a document.
#[derive(Default)]
pub(super) struct FactsReader {
    /// The facts so far.
    pub(super) facts: MetadataFacts,
    /// The depth of the last IDPSSODescriptor, while it can have children.
    provider: Option<usize>,
    /// Whether the root is an EntitiesDescriptor. The edge uses one of its entities, and it is unknown which.
    is_aggregate: bool,
}

impl FactsReader {
    /// Reads a start tag with valid attributes. The depth of the root is 0.
    pub(super) fn start(&mut self, tag: &Tag<'_>, local: &str, in_namespace: bool, depth: usize) {
        if depth == 0 {
            self.facts.in_namespace = in_namespace;
            self.is_aggregate = local == "EntitiesDescriptor";
        }
        self.provider = self.provider.filter(|provider| *provider < depth);
        if !in_namespace {
            return;
        }
        match local {
            "EntityDescriptor" => {
                self.facts.has_entity_id |= attribute(tag, "entityID").is_some_and(|id| !id.is_empty());
            }
            "IDPSSODescriptor" => {
                self.facts.has_identity_provider = true;
                self.provider = Some(depth);
            }
            _ => {}
        }
        let is_descriptor = matches!(local, "EntityDescriptor" | "IDPSSODescriptor");
        if depth == 0 || (is_descriptor && !self.is_aggregate) {
            let until = attribute(tag, "validUntil").and_then(|until| until.parse::<Timestamp>().ok());
            self.facts.valid_until = [self.facts.valid_until, until].into_iter().flatten().min();
        }
        if self.provider.is_some_and(|provider| provider + 1 == depth) {
            self.child(tag, local);
        }
    }

    /// Reads a child of an IDPSSODescriptor.
    fn child(&mut self, tag: &Tag<'_>, local: &str) {
        match local {
            "SingleSignOnService" => {
                let location = attribute(tag, "Location").unwrap_or_default();
                let is_plain = location.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
                self.facts.has_login_address = true;
                self.facts.has_plain_login_address |= is_plain;
            }
            "KeyDescriptor" => {
                // Without `use`, a key is for both signing and encryption.
                let is_for_signing = attribute(tag, "use").is_none_or(|purpose| purpose == "signing");
                self.facts.has_key = true;
                self.facts.has_signing_key |= is_for_signing;
            }
            _ => {}
        }
    }
}

/// Returns an attribute's value without references and outer spaces.
fn attribute(tag: &Tag<'_>, name: &str) -> Option<String> {
    let attribute = Attributes(tag.attributes).flatten().find(|attribute| attribute.name == name)?;
    Some(normalized(attribute.value).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use crate::syntax::xml::{MetadataFacts, check_entity_descriptor};

    const KEY: &str = "<KeyDescriptor/>";
    const LOGIN: &str = "<SingleSignOnService Location='https://id.example.com/sso'/>";

    /// The facts of an EntityDescriptor with these attributes and content.
    fn facts(attributes: &str, inside: &str) -> MetadataFacts {
        let text = format!(
            "<EntityDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata' entityID='a' {attributes}>{inside}\
             </EntityDescriptor>"
        );
        check_entity_descriptor(&text).unwrap_or_default()
    }

    fn provider(inside: &str) -> String {
        format!("<IDPSSODescriptor>{inside}</IDPSSODescriptor>")
    }

    #[test]
    fn a_login_needs_an_address_and_a_signing_key() {
        let gap = |inside: &str| facts("", inside).gap().unwrap_or_default();
        for good in [
            provider(&format!("{KEY}{LOGIN}")),
            provider(&format!(
                "<KeyDescriptor use='encryption'/><KeyDescriptor use=' signing '>x</KeyDescriptor>{LOGIN}"
            )),
        ] {
            assert_eq!(gap(&good), "", "{good}");
        }
        for (bad, part) in [
            (provider(KEY), "SingleSignOnService"),
            (provider(LOGIN), "KeyDescriptor"),
            (provider(&format!("<KeyDescriptor use='encryption'/>{LOGIN}")), "encryption"),
            // Elements elsewhere do not count.
            (format!("{}{LOGIN}{KEY}", provider("")), "SingleSignOnService"),
            (format!("<IDPSSODescriptor/><SPSSODescriptor>{KEY}{LOGIN}</SPSSODescriptor>"), "SingleSignOnService"),
            (provider(&format!("<Extensions>{KEY}{LOGIN}</Extensions>")), "SingleSignOnService"),
        ] {
            assert!(gap(&bad).contains(part), "{bad}: {}", gap(&bad));
        }
    }

    #[test]
    fn the_earliest_end_of_validity_counts() {
        let until = |attributes: &str, inside: &str| facts(attributes, inside).valid_until.map(|it| it.to_string());
        assert_eq!(until("", ""), None);
        assert_eq!(until("validUntil='soon'", ""), None);
        assert_eq!(until("validUntil='2030-01-02T03:04:05Z'", "").as_deref(), Some("2030-01-02T03:04:05Z"));
        let provider =
            "<IDPSSODescriptor validUntil='2020-01-01T00:00:00Z'/><SPSSODescriptor validUntil='2010-01-01T00:00:00Z'/>";
        assert_eq!(until("validUntil='2030-01-02T03:04:05Z'", provider).as_deref(), Some("2020-01-01T00:00:00Z"));
        let one_of_many = "<EntitiesDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata'>\
                           <EntityDescriptor entityID='a' validUntil='2020-01-01T00:00:00Z'/></EntitiesDescriptor>";
        assert_eq!(check_entity_descriptor(one_of_many).unwrap_or_default().valid_until, None);
    }

    #[test]
    fn a_login_address_is_plain_by_its_scheme() {
        let is_plain = |location: &str| {
            facts("", &provider(&format!("<SingleSignOnService Location='{location}'/>"))).has_plain_login_address
        };
        assert!(is_plain("http://id.example.com") && is_plain(" HTTP://id.example.com"));
        assert!(!is_plain("https://id.example.com") && !is_plain("") && !is_plain("/sso"));
    }
}
