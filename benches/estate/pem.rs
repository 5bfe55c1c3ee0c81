//! Keys and certificates, always the same for one seed.

use p256::{
    ecdsa::{Signature, SigningKey, signature::Signer as _},
    elliptic_curve::sec1::ToEncodedPoint as _,
    pkcs8::{EncodePrivateKey as _, LineEnding},
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod,
    KeyUsagePurpose, PublicKeyData, SerialNumber, SignatureAlgorithm, date_time_ymd,
};

/// A key pair with deterministic signatures (RFC 6979).
pub(crate) struct KeyPair {
    key: SigningKey,
    public: Vec<u8>,
}

impl KeyPair {
    /// Derives a key pair from a seed.
    pub(crate) fn derive(seed: u64, number: usize) -> Self {
        let hash = blake3::hash(format!("estate key {seed} {number}").as_bytes());
        let key = SigningKey::from_bytes(hash.as_bytes().into()).unwrap();
        let public = key.verifying_key().as_affine().to_encoded_point(false).as_bytes().to_vec();
        Self { key, public }
    }

    /// Returns the private key in PEM.
    pub(crate) fn private_pem(&self) -> String {
        let pem = self.key.to_pkcs8_pem(LineEnding::LF).unwrap();
        pem.as_str().to_owned()
    }

    /// Returns the PEM certificate of a certificate authority.
    pub(crate) fn authority(&self, name: &str) -> String {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        self.certificate(params, name)
    }

    /// Returns the PEM certificate of a server with these names, of which the first is the common name.
    pub(crate) fn server(&self, names: Vec<String>) -> String {
        let common = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.certificate(params, &common)
    }

    fn certificate(&self, mut params: CertificateParams, name: &str) -> String {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, name);
        params.distinguished_name = subject;
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2126, 1, 1);
        params.serial_number = Some(SerialNumber::from_slice(&digest(name.as_bytes(), 16)));
        params.key_identifier_method = KeyIdMethod::PreSpecified(digest(&self.public, 20));
        params.self_signed(self).unwrap().pem()
    }
}

/// The first bytes of a digest. The highest bit is unset, so that they are a positive number.
fn digest(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut digest = blake3::hash(bytes).as_bytes()[..length].to_vec();
    digest[0] = (digest[0] & 0x7f) | 1;
    digest
}

impl PublicKeyData for KeyPair {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }
    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for KeyPair {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature: Signature = self.key.sign(message);
        Ok(signature.to_der().as_bytes().to_vec())
    }
}
