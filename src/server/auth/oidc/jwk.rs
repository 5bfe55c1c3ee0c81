//! The public keys of a provider, and signatures by them (RFC 7517, RFC 7518).
//!
//! A key verifies signatures of its own kind only, whatever the header of a token says: nobody can have an RSA key taken for
//! the secret of an HMAC. There is no such thing as a signature by `none`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};

use crate::server::prelude::*;

/// The most keys of a provider that are looked at.
const MOST_KEYS: usize = 64;
/// The length of a coordinate of a point of P-256.
const COORDINATE: usize = 32;
/// The first byte of a point that is not compressed.
const UNCOMPRESSED: u8 = 4;

/// An algorithm of signatures that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SigningAlgorithm {
    /// RSA with PKCS #1 and SHA-256.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
}

impl SigningAlgorithm {
    /// The algorithm with this name in the header of a token.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// A public key that verifies signatures.
pub(super) struct ProviderKey {
    /// The name in the headers of tokens, if it has one.
    id: Option<String>,
    numbers: KeyNumbers,
}

/// The numbers of a public key.
enum KeyNumbers {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point of P-256.
    Point(Vec<u8>),
}

/// A key as the provider publishes it.
#[derive(Deserialize)]
struct JwkEntry {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys in a JWK set that verify signatures. Others, such as those for encryption, are left out.
pub(super) fn keys_of(set: &Value) -> Option<Vec<ProviderKey>> {
    let entries = set.get("keys")?.as_array()?.iter().take(MOST_KEYS);
    let entries = entries.filter_map(|entry| serde_json::from_value::<JwkEntry>(entry.clone()).ok());
    Some(entries.filter_map(ProviderKey::from_entry).collect())
}

impl ProviderKey {
    fn from_entry(entry: JwkEntry) -> Option<Self> {
        if entry.usage.is_some_and(|usage| usage != "sig") {
            return None;
        }
        let numbers = match (entry.kty.as_str(), entry.crv.as_deref()) {
            ("RSA", _) => KeyNumbers::Rsa { modulus: number(&entry.n?)?, exponent: number(&entry.e?)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&entry.x?)?, bytes(&entry.y?)?);
                let point = [[UNCOMPRESSED].as_slice(), x.as_slice(), y.as_slice()].concat();
                KeyNumbers::Point(Some(point).filter(|_| x.len() == COORDINATE && y.len() == COORDINATE)?)
            }
            _ => return None,
        };
        let key = Self { id: entry.kid, numbers };
        // What is for another algorithm of the same kind is no key of this one.
        let is_usable = entry.alg.is_none_or(|alg| SigningAlgorithm::named(&alg) == Some(key.algorithm()));
        is_usable.then_some(key)
    }

    fn algorithm(&self) -> SigningAlgorithm {
        match self.numbers {
            KeyNumbers::Rsa { .. } => SigningAlgorithm::Rs256,
            KeyNumbers::Point(_) => SigningAlgorithm::Es256,
        }
    }

    /// Whether a token that names this key, or none, can be signed by it.
    pub(super) fn is_named(&self, id: Option<&str>) -> bool {
        id.is_none() || self.id.is_none() || self.id.as_deref() == id
    }

    /// Whether this key has made a signature with an algorithm.
    pub(super) fn verifies(&self, algorithm: SigningAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        if algorithm != self.algorithm() {
            return false;
        }
        let verified = match &self.numbers {
            KeyNumbers::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus.as_slice(), e: exponent.as_slice() };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            KeyNumbers::Point(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point.as_slice()).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// A number without the zeros that some providers write before it.
fn number(text: &str) -> Option<Vec<u8>> {
    Some(bytes(text)?.into_iter().skip_while(|byte| *byte == 0).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_for_other_purposes_are_left_out() {
        let coordinate = URL_SAFE_NO_PAD.encode([7; COORDINATE]);
        let ec = |more: Value| {
            let mut key = json!({"kty": "EC", "crv": "P-256", "x": coordinate, "y": coordinate});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            keys_of(&json!({"keys": [key]})).unwrap().len()
        };
        assert_eq!(ec(json!({})), 1);
        assert_eq!(ec(json!({"use": "sig", "alg": "ES256", "kid": "a", "x5c": []})), 1);
        for other in [
            json!({"use": "enc"}),
            json!({"alg": "ES384"}),
            json!({"alg": "none"}),
            json!({"crv": "P-384"}),
            json!({"x": "AA"}),
            json!({"x": "*"}),
            json!({"kty": "oct", "k": "AA"}),
            json!({"kty": 7}),
        ] {
            assert_eq!(ec(other.clone()), 0, "{other}");
        }
        for no_set in [json!(null), json!([]), json!({"keys": {}})] {
            assert!(keys_of(&no_set).is_none(), "{no_set}");
        }
        let many: Vec<Value> = (0..1000).map(|_| json!({"kty": "RSA", "n": "AAE", "e": "AQAB"})).collect();
        assert_eq!(keys_of(&json!({"keys": many})).unwrap().len(), MOST_KEYS);
    }
}
