//! What edgewright asks of an identity provider's metadata, and the metadata that it gives out itself (D18).

use roxmltree::Document;

/// Checks that a text is well-formed XML without a DTD, with an EntityDescriptor or EntitiesDescriptor as its root.
/// The error is one sentence for a person.
pub fn check_entity_descriptor(text: &str) -> Result<(), String> {
    // The parser refuses a DTD, unless it is told to read one.
    let document = Document::parse(text.trim_start_matches('\u{feff}')).map_err(|error| match error {
        roxmltree::Error::DtdDetected => "a document type declaration (DTD) is not accepted".to_owned(),
        other => format!("this is not well-formed XML: {other}"),
    })?;
    match document.root_element().tag_name().name() {
        "EntityDescriptor" | "EntitiesDescriptor" => Ok(()),
        other => Err(format!("the root element is `{}`, not a SAML EntityDescriptor", crate::text::printable(other))),
    }
}

/// The service provider's metadata of a route, for its identity provider. `metadata_url` is the entity id too.
pub fn service_provider_metadata(metadata_url: &str, certificate_pem: &str, nameid_format: &str) -> String {
    let escaped = quick_xml::escape::escape(metadata_url);
    let certificate: String =
        certificate_pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="{escaped}">
  <md:SPSSODescriptor AuthnRequestsSigned="true" WantAssertionsSigned="true" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
    <md:KeyDescriptor use="signing">
      <ds:KeyInfo>
        <ds:X509Data>
          <ds:X509Certificate>{certificate}</ds:X509Certificate>
        </ds:X509Data>
      </ds:KeyInfo>
    </md:KeyDescriptor>
    <md:SingleLogoutService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="{escaped}/slo"/>
    <md:NameIDFormat>{nameid_format}</md:NameIDFormat>
    <md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="{escaped}/acs" index="0" isDefault="true"/>
  </md:SPSSODescriptor>
</md:EntityDescriptor>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_saml_descriptor_without_dtd_passes() {
        let ns = "xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\"";
        assert_eq!(
            check_entity_descriptor(&format!(
                "<?xml version=\"1.0\"?>\n<EntityDescriptor {ns}><a>x &amp; y</a></EntityDescriptor>\n"
            )),
            Ok(())
        );
        for bad in [
            String::new(),
            "not xml".into(),
            format!("<EntityDescriptor {ns}>"),
            format!("<EntityDescriptor {ns}><a></b></EntityDescriptor>"),
            format!("<Other {ns}/>"),
            format!("<!DOCTYPE x [<!ENTITY e \"x\">]><EntityDescriptor {ns}>&e;</EntityDescriptor>"),
            format!("<EntityDescriptor {ns}>&e;</EntityDescriptor>"),
            format!("<EntityDescriptor {ns}/><EntityDescriptor {ns}/>"),
            format!("<EntityDescriptor {ns} a=\"1\" a=\"2\"/>"),
            format!("<EntityDescriptor {ns} a=\"<\"/>"),
            format!("<EntityDescriptor {ns} a=\"&x;\"/>"),
            format!("<EntityDescriptor {ns}>&#0;</EntityDescriptor>"),
            format!("<EntityDescriptor {ns}>\u{1}</EntityDescriptor>"),
            "<md:EntityDescriptor/>".into(),
        ] {
            assert!(check_entity_descriptor(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn our_own_metadata_passes_our_own_check() {
        let metadata = service_provider_metadata(
            "https://e.example/saml/x?a&b",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "urn:x",
        );
        assert_eq!(check_entity_descriptor(&metadata), Ok(()));
    }
}
