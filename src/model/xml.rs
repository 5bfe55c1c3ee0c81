//! What edgewright asks of an identity provider's metadata, and the metadata that it gives out itself (D18).

use quick_xml::{Reader, events::Event};

/// Checks that a text is well-formed XML without a DTD, with an EntityDescriptor or EntitiesDescriptor as its root.
/// The error is one sentence for a person.
pub fn check_entity_descriptor(text: &str) -> Result<(), String> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.check_end_names = true;
    config.check_comments = true;
    config.allow_unmatched_ends = false;
    let (mut depth, mut roots) = (0usize, 0usize);
    loop {
        let event = match reader.read_event() {
            Ok(read) => read,
            Err(error) => return Err(format!("this is not well-formed XML: {error}")),
        };
        match event {
            Event::Start(ref element) | Event::Empty(ref element) => {
                if let Some(error) = element.attributes().find_map(Result::err) {
                    return Err(format!("this is not well-formed XML: {error}"));
                }
                if depth == 0 {
                    roots += 1;
                    let name = String::from_utf8_lossy(element.local_name().as_ref()).into_owned();
                    if roots > 1 {
                        return Err("this has more than one root element".into());
                    }
                    if !["EntityDescriptor", "EntitiesDescriptor"].contains(&name.as_str()) {
                        return Err(format!("the root element is `{name}`, not a SAML EntityDescriptor"));
                    }
                }
                if matches!(event, Event::Start(_)) {
                    depth += 1;
                }
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::DocType(_) => return Err("a document type declaration (DTD) is not accepted".into()),
            Event::Text(text) if depth == 0 && !text.iter().all(u8::is_ascii_whitespace) => {
                return Err("this is not well-formed XML: there is text outside of the root element".into());
            }
            Event::GeneralRef(reference) => {
                let predefined =
                    ["amp", "lt", "gt", "apos", "quot"].iter().any(|name| reference.as_ref() == name.as_bytes());
                if depth == 0 || !(predefined || reference.is_char_ref()) {
                    return Err("this is not well-formed XML: it has an unknown entity".into());
                }
            }
            Event::Eof if depth > 0 => return Err("this is not well-formed XML: it ends inside an element".into()),
            Event::Eof if roots == 0 => return Err("this is not well-formed XML: it has no element".into()),
            Event::Eof => return Ok(()),
            _ => {}
        }
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
