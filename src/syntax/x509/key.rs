//! Certificate keys: type, size, and matching private key.

use base64::{Engine, engine::general_purpose::STANDARD};
use pkcs1::{RsaPrivateKey, RsaPublicKey};
use pkcs8::PrivateKeyInfo;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::{self, Decode, ErrorKind};
use ring::signature::{Ed25519KeyPair, KeyPair};
use sec1::{EcParameters, EcPrivateKey};
use x509_parser::{asn1_rs, error::X509Error, x509::SubjectPublicKeyInfo};

use super::asn1::dotted;
use super::pem::{PemBlock, PemFault, blocks};

/// The supported key types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyType {
    Rsa,
    Ecdsa,
    Ed25519,
}

impl KeyType {
    fn from_oid(dotted: &str) -> Option<Self> {
        match dotted {
            // rsaEncryption, and RSASSA-PSS, whose keys are RSA keys with restricted use
            "1.2.840.113549.1.1.1" | "1.2.840.113549.1.1.10" => Some(Self::Rsa),
            "1.2.840.10045.2.1" => Some(Self::Ecdsa),
            "1.3.101.112" => Some(Self::Ed25519),
            _ => None,
        }
    }

    /// Returns the type of a certificate's key.
    pub(super) fn certified(public: &SubjectPublicKeyInfo<'_>) -> Result<Self, PemFault> {
        let oid = dotted(&public.algorithm.algorithm).ok_or(PemFault::NotX509(1))?;
        Self::from_oid(&oid).ok_or(PemFault::UnsupportedPublicKey(oid))
    }

    /// The API value.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rsa => "rsa",
            Self::Ecdsa => "ecdsa",
            Self::Ed25519 => "ed25519",
        }
    }
}

/// Returns the bits of an RSA key, rounded up to whole bytes, or `None` for other key types.
pub(super) fn rsa_bits(public: &SubjectPublicKeyInfo<'_>) -> Option<usize> {
    KeyType::certified(public).ok().filter(|it| *it == KeyType::Rsa)?;
    let key = RsaPublicKey::from_der(&public.subject_public_key.data).ok()?;
    Some(key.modulus.as_bytes().len() * 8)
}

/// Returns the curve of an ECDSA key, unless it is one that all common clients support.
pub(super) fn uncommon_curve(public: &SubjectPublicKeyInfo<'_>) -> Option<String> {
    KeyType::certified(public).ok().filter(|it| *it == KeyType::Ecdsa)?;
    let parameters = public.algorithm.parameters.as_ref();
    let Some(oid) = parameters.and_then(|any| any.as_oid().ok()).and_then(|oid| dotted(&oid)) else {
        return Some("explicit parameters".to_owned());
    };
    let name = match oid.as_str() {
        "1.2.840.10045.3.1.7" | "1.3.132.0.34" | "1.3.132.0.35" => return None,
        "1.2.840.10045.3.1.1" => "P-192",
        "1.3.132.0.33" => "P-224",
        "1.3.132.0.10" => "secp256k1",
        "1.3.36.3.3.2.8.1.1.7" => "brainpoolP256r1",
        "1.3.36.3.3.2.8.1.1.11" => "brainpoolP384r1",
        "1.3.36.3.3.2.8.1.1.13" => "brainpoolP512r1",
        other => other,
    };
    Some(name.to_owned())
}

/// Whether a text is an ECDSA public key: PEM, or the base64 of its DER.
pub(crate) fn is_ecdsa_public_key(text: &str) -> bool {
    let der = match blocks(text).as_deref() {
        Ok([]) => STANDARD.decode(text.split_whitespace().collect::<String>()).ok(),
        Ok([block]) if block.label == "PUBLIC KEY" => Some(block.der.to_vec()),
        _ => None,
    };
    let Some(der) = der else { return false };
    match <SubjectPublicKeyInfo<'_> as asn1_rs::FromDer<'_, X509Error>>::from_der(&der) {
        Ok(([], public)) => KeyType::certified(&public).is_ok_and(|it| it == KeyType::Ecdsa),
        _ => false,
    }
}

/// Whether a private key belongs to a certificate.
pub(super) fn is_key_of(certified: &SubjectPublicKeyInfo<'_>, key: &PemBlock<'_>) -> Result<bool, PemFault> {
    let wanted = KeyType::certified(certified)?;
    if key.encrypted || key.label == "ENCRYPTED PRIVATE KEY" {
        return Err(PemFault::EncryptedPrivateKey);
    }
    let (key_type, curve, private) = match key.label {
        "PRIVATE KEY" => {
            let info = PrivateKeyInfo::from_der(&key.der).map_err(unreadable)?;
            let curve = info.algorithm.parameters_oid().ok().map(|oid| oid.to_string());
            (KeyType::from_oid(&info.algorithm.oid.to_string()), curve, info.private_key)
        }
        "RSA PRIVATE KEY" => (Some(KeyType::Rsa), None, key.der.as_slice()),
        "EC PRIVATE KEY" => (Some(KeyType::Ecdsa), None, key.der.as_slice()),
        other => return Err(PemFault::UnsupportedPrivateKey(other.to_owned())),
    };
    if key_type != Some(wanted) {
        return Ok(false);
    }
    match wanted {
        KeyType::Rsa => {
            let public = RsaPublicKey::from_der(&certified.subject_public_key.data);
            let public = public.map_err(|_| PemFault::NotX509(1))?;
            Ok(RsaPrivateKey::from_der(private).map_err(unreadable)?.public_key() == public)
        }
        KeyType::Ecdsa => is_ec_key_of(certified, curve, private),
        KeyType::Ed25519 => {
            let seed = OctetStringRef::from_der(private).map_err(unreadable)?;
            let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_bytes());
            let pair = pair.map_err(|_| PemFault::UnreadablePrivateKey)?;
            Ok(pair.public_key().as_ref() == &*certified.subject_public_key.data)
        }
    }
}

fn is_ec_key_of(certified: &SubjectPublicKeyInfo<'_>, curve: Option<String>, private: &[u8]) -> Result<bool, PemFault> {
    let key = EcPrivateKey::from_der(private).map_err(unreadable)?;
    let inner = || key.parameters.and_then(EcParameters::named_curve).map(|oid| oid.to_string());
    let curve = curve.or_else(inner);
    let parameters = certified.algorithm.parameters.as_ref();
    let wanted = parameters.and_then(|any| any.as_oid().ok()).and_then(|oid| dotted(&oid));
    if curve.is_some() && curve != wanted {
        return Ok(false);
    }
    let point = &certified.subject_public_key.data;
    if wanted.as_deref() == Some("1.2.840.10045.3.1.7") {
        // On P-256, computing the point proves more than trusting the one in the key.
        let derived = p256::SecretKey::from_slice(key.private_key).map(|secret| secret.public_key().to_sec1_bytes());
        return Ok(derived.is_ok_and(|derived| same_point(&derived, point)));
    }
    key.public_key.map(|own| same_point(own, point)).ok_or(PemFault::PublicPointMissing)
}

fn same_point(one: &[u8], other: &[u8]) -> bool {
    one == other || coordinates(one).is_some_and(|one| coordinates(other) == Some(one))
}

/// Returns the x coordinate and the parity of y: a compressed point has nothing else, so points in any form compare.
fn coordinates(point: &[u8]) -> Option<(&[u8], u8)> {
    let (form, rest) = point.split_first()?;
    match form {
        2 | 3 => Some((rest, form & 1)),
        4 | 6 | 7 => Some((rest.get(..rest.len() / 2)?, rest.last()? & 1)),
        _ => None,
    }
}

/// Keeps only the kind of a decoder error, because its text quotes positions in a secret.
fn unreadable(error: der::Error) -> PemFault {
    match error.kind() {
        ErrorKind::TrailingData { .. } => PemFault::TrailingData,
        _ => PemFault::UnreadablePrivateKey,
    }
}
