//! The keys and certificates with which the service providers of routes sign their requests (D36).
//!
//! A key is derived from the ID of its route and the root secret of the store, and its certificate from the key alone, so that nothing
//! has to be stored: both survive every change of the module, and differ between stores and between routes. The
//! ID alone, which is public, is not enough to forge a signature.

use std::convert::Infallible;

use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::sec1::ToEncodedPoint;
use p256::pkcs8::{EncodePrivateKey, LineEnding};
use quick_cache::sync::Cache;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyUsagePurpose, PublicKeyData, SignatureAlgorithm, date_time_ymd,
};

use crate::model::{Id, Secret};

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
