//! `/saml/{id}`: the metadata of the SAML service provider of a route (D18). [`signer`] has its keys (D36).

pub(crate) mod signer;

use axum::extract::Path;

use crate::model::{HttpsEdgeRoute, Module};
use crate::server::handler_prelude::*;

/// A URL of the `saml` module of a route rather than an operation of a client: the OpenAPI document does not have it.
pub(super) static GET: ApiOperation = ApiOperation::open(MethodFilter::GET, "/saml/{id}", |method| on(method, get));

/// Responds with the metadata of a route's service provider, without authentication for identity providers.
async fn get(State(AppState { served, .. }): State<AppState>, Path(id): Path<String>) -> ApiResult {
    let unknown = || ApiError::with_code(Code::NotFound, "not found: no route with a `saml` module at this path");
    let snapshot = served.store.snapshot();
    let route = snapshot.find_child(Kind::HttpsEdgeRoute, &Id::new(&id)).ok_or_else(unknown)?;
    let saml = route.spec_as::<HttpsEdgeRoute>().and_then(|route| route.saml.as_ref()).ok_or_else(unknown)?;
    let view = saml.view(&route.key, &served.base_urls);
    let text =
        service_provider_metadata(&view.metadata_url, &view.request_signing_certificate_pem, &saml.nameid_format);
    Ok(([(header::CONTENT_TYPE, "application/samlmetadata+xml")], text).into_response())
}

/// Renders service provider metadata. `metadata_url` is also the entity id.
fn service_provider_metadata(metadata_url: &str, certificate_pem: &str, nameid_format: &str) -> String {
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
    use crate::syntax::xml::check_entity_descriptor;

    #[test]
    fn our_own_metadata_passes_our_own_check() {
        let metadata = service_provider_metadata(
            "https://e.example/saml/x?a&b",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "urn:x",
        );
        assert_eq!(check_entity_descriptor(&metadata).err(), None);
    }
}
