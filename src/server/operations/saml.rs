//! The SAML service provider of a route: its signing certificate and metadata (D18, D36).

use std::convert::Infallible;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use p256::{
    ecdsa::{Signature, SigningKey, signature::Signer as _},
    elliptic_curve::sec1::ToEncodedPoint,
    pkcs8::{EncodePrivateKey, LineEnding},
};
use quick_cache::sync::Cache;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyUsagePurpose, PublicKeyData, SignatureAlgorithm, date_time_ymd,
};

use crate::{
    model::{
        Kind, diagnostics::code::Code, id::Id, kind::https_edge_route::HttpsEdgeRoute, module::Module,
        secrets::secret::Secret,
    },
    server::{App, http::response::ApiError},
};

/// The most certificates in memory, of about a KiB each. To make one takes a signature.
const MOST_CERTIFICATES: usize = 64 << 10;

/// Derives the certificates of routes from the store's root secret: a different one for each route, always the same.
pub(crate) struct Signer {
    root: [u8; 32],
    made: Cache<Id, String>,
}

impl Signer {
    /// Creates a signer from a store's root secret.
    pub(crate) fn new(root: [u8; 32]) -> Self {
        Self { root, made: Cache::new(MOST_CERTIFICATES) }
    }

    /// Returns the PEM certificate of a route's key pair.
    pub(crate) fn certificate_pem(&self, route: &Id) -> String {
        let make = || Ok::<_, Infallible>(self.make(route).unwrap_or_default());
        let Ok(pem) = self.made.get_or_insert_with(route, make);
        pem
    }

    /// Returns the PEM private key of a route's key pair, for the gateway that signs requests with it.
    pub(crate) fn private_key_pem(&self, route: &Id) -> Option<Secret> {
        let pem = RouteKey::derive(&self.root, route)?.key.to_pkcs8_pem(LineEnding::LF).ok()?;
        Some(Secret::new(pem.as_str()))
    }

    fn make(&self, route: &Id) -> Option<String> {
        let key = RouteKey::derive(&self.root, route)?;
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, format!("edgewright SAML {route}"));
        params.distinguished_name = name;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2126, 1, 1);
        let serial = blake3::derive_key("edgewright 2026 saml certificate serial", route.as_str().as_bytes());
        params.serial_number = Some(rcgen::SerialNumber::from_slice(serial.get(..16)?));
        Some(params.self_signed(&key).ok()?.pem())
    }
}

/// A key pair with deterministic signatures (RFC 6979), so that its certificate never changes.
struct RouteKey {
    key: SigningKey,
    public: Vec<u8>,
}

impl RouteKey {
    fn derive(root: &[u8; 32], route: &Id) -> Option<Self> {
        // Almost every 256-bit number is a valid key; the counter handles the one in four billion that is not.
        (0u8..=u8::MAX).find_map(|attempt| {
            let mut hasher = blake3::Hasher::new_keyed(root);
            hasher.update(b"edgewright saml signing key ");
            hasher.update(&[attempt]);
            hasher.update(route.as_str().as_bytes());
            let key = SigningKey::from_bytes(hasher.finalize().as_bytes().into()).ok()?;
            let public = key.verifying_key().as_affine().to_encoded_point(false).as_bytes().to_vec();
            Some(Self { key, public })
        })
    }
}

impl PublicKeyData for RouteKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }
    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for RouteKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature: Signature = self.key.sign(message);
        Ok(signature.to_der().as_bytes().to_vec())
    }
}

/// Responds with the metadata of a route's service provider, without authentication for identity providers.
pub(crate) fn metadata(app: &App, parameters: Vec<String>) -> Result<Response, ApiError> {
    let unknown = || ApiError::of(Code::NotFound, "not found: no route with a `saml` module at this path");
    let id = parameters.into_iter().next().ok_or_else(unknown)?;
    let snapshot = app.store.snapshot();
    let route = snapshot.find_child(Kind::HttpsEdgeRoute, &Id::new(&id)).ok_or_else(unknown)?;
    let saml = route.spec_as::<HttpsEdgeRoute>().and_then(|route| route.saml.as_ref()).ok_or_else(unknown)?;
    let view = saml.view(&route.key, &app.site);
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
