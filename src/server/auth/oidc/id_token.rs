//! ID tokens: what a provider says of somebody who has signed in, and whether that is to be trusted (OpenID Connect Core,
//! 3.1.3.7; RFC 7519).
//!
//! A token is read, then its signature is verified with a key that the provider publishes, and then its claims are checked. A
//! refusal is a fixed text: nothing that a token contains gets into a log or a page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;

use super::jwk::{ProviderKey, SigningAlgorithm};
use crate::server::prelude::*;

/// The longest token: providers put the groups of a person into it.
const MOST_BYTES: usize = 64 << 10;
/// The longest subject, as the specification limits it.
const MOST_SUBJECT_BYTES: usize = 255;
/// By how many seconds the clocks of the provider and of this server may differ.
const SKEW: i64 = 60;

const MALFORMED: &str = "malformed ID token";

/// An ID token whose signature is not verified yet.
#[derive(Debug)]
pub(super) struct IdToken<'t> {
    algorithm: SigningAlgorithm,
    /// The name of the key that has signed it, if it names one.
    key: Option<String>,
    /// The text that is signed.
    signed: &'t str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    /// Extensions that whoever reads the token must understand.
    crit: Option<Value>,
}

/// The required claims of a token.
pub(super) struct ExpectedClaims<'e> {
    pub issuer: &'e str,
    pub client_id: &'e str,
    /// The nonce of the sign-in; none if the flow has none.
    pub nonce: Option<&'e str>,
    pub now: Timestamp,
}

impl<'t> IdToken<'t> {
    /// Reads a token.
    pub(super) fn parse(text: &'t str) -> Result<Self, &'static str> {
        if text.len() > MOST_BYTES {
            return Err("the ID token is too long");
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(MALFORMED)?;
        // A third dot is in no part: it is not base64.
        let (header, claims) = signed.split_once('.').ok_or(MALFORMED)?;
        let header: TokenHeader = decoded(header)?;
        if header.crit.is_some() {
            return Err("the ID token has an unknown extension");
        }
        let algorithm = SigningAlgorithm::named(&header.alg);
        let algorithm = algorithm.ok_or("the signature of the ID token is neither RS256 nor ES256")?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| MALFORMED)?;
        Ok(Self { algorithm, key: header.kid, signed, signature, claims: decoded(claims)? })
    }

    /// Whether one of some keys has signed the token.
    pub(super) fn is_signed_by(&self, keys: &[ProviderKey]) -> bool {
        let mut named = keys.iter().filter(|key| key.is_named(self.key.as_deref()));
        named.any(|key| key.verifies(self.algorithm, self.signed.as_bytes(), &self.signature))
    }

    /// Checks the claims, and returns them. The signature must be verified.
    pub(super) fn into_claims(self, expected: &ExpectedClaims<'_>) -> Result<Map<String, Value>, &'static str> {
        let claims = self.claims;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(expected.issuer) {
            return Err("the ID token is from another issuer");
        }
        check_audience(&claims, expected.client_id)?;
        let now = expected.now.as_second();
        let expiry = seconds(&claims, "exp").ok_or("the ID token never expires")?;
        if expiry.saturating_add(SKEW) <= now {
            return Err("the ID token has expired");
        }
        let issued = seconds(&claims, "iat").ok_or("the ID token does not say when it was issued")?;
        let begins = match claims.contains_key("nbf") {
            true => seconds(&claims, "nbf").ok_or("the ID token has a wrong `nbf`")?.max(issued),
            false => issued,
        };
        if begins > now.saturating_add(SKEW) {
            return Err("the ID token is from the future: compare the clocks of the provider and of this server");
        }
        if expected.nonce.is_some() && text("nonce") != expected.nonce {
            return Err("the ID token is for another sign-in (wrong nonce)");
        }
        let is_subject = |text: &str| !text.is_empty() && text.len() <= MOST_SUBJECT_BYTES;
        if text("sub").is_some_and(is_subject) { Ok(claims) } else { Err("the ID token has no subject") }
    }
}

/// Checks that a token is for this server, and was given to it.
fn check_audience(claims: &Map<String, Value>, client_id: &str) -> Result<(), &'static str> {
    const OTHER: &str = "the ID token is for another client";
    let audiences = match claims.get("aud") {
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    if !audiences.iter().any(|audience| audience.as_str() == Some(client_id)) {
        return Err(OTHER);
    }
    match claims.get("azp") {
        Some(party) if party.as_str() != Some(client_id) => Err(OTHER),
        None if audiences.len() > 1 => Err("the ID token does not say to which client it was given"),
        _ => Ok(()),
    }
}

/// The Unix time in a claim, which can have a fraction.
fn seconds(claims: &Map<String, Value>, name: &str) -> Option<i64> {
    let value = claims.get(name)?;
    value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64))
}

fn decoded<T: DeserializeOwned>(part: &str) -> Result<T, &'static str> {
    let text = URL_SAFE_NO_PAD.decode(part).map_err(|_| MALFORMED)?;
    serde_json::from_slice(&text).map_err(|_| MALFORMED)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
    };
    use serde_json::json;

    use super::super::jwk::keys_of;
    use super::*;

    const RSA: &str = include_str!("../../../../tests/it/data/oidc-provider.key.pem");
    const NOW: i64 = 1_800_000_000;

    fn encoded(value: &Value) -> String {
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    fn token(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let signed = format!("{}.{}", encoded(header), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// A key of a provider, and how it is published.
    struct TestSigner {
        pair: EcdsaKeyPair,
        keys: Vec<ProviderKey>,
    }

    impl TestSigner {
        fn new() -> Self {
            let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
            let (x, y) = pair.public_key().as_ref().split_at(1).1.split_at(32);
            let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
            let keys =
                keys_of(&json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "one"}]})).unwrap();
            Self { pair, keys }
        }

        fn sign(&self, message: &[u8]) -> Vec<u8> {
            self.pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
        }
    }

    fn claims() -> Value {
        json!({
            "iss": "https://id.example.com",
            "aud": "edge",
            "sub": "ada",
            "exp": NOW + 300,
            "iat": NOW - 1,
            "nonce": "n",
        })
    }

    fn checked(claims: &Value, nonce: Option<&str>) -> Result<(), &'static str> {
        let signer = TestSigner::new();
        let text = token(&json!({"alg": "ES256", "kid": "one"}), claims, |message| signer.sign(message));
        let token = IdToken::parse(&text)?;
        assert!(token.is_signed_by(&signer.keys));
        let expected = ExpectedClaims {
            issuer: "https://id.example.com",
            client_id: "edge",
            nonce,
            now: Timestamp::from_second(NOW).unwrap(),
        };
        token.into_claims(&expected).map(drop)
    }

    #[test]
    fn claims_must_be_those_of_this_sign_in() {
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims.as_object_mut().unwrap().insert(name.to_owned(), value);
            checked(&claims, Some("n"))
        };
        assert_eq!(checked(&claims(), Some("n")), Ok(()));
        assert_eq!(checked(&claims(), None), Ok(()));
        for (name, value) in [
            ("aud", json!(["edge"])),
            ("azp", json!("edge")),
            ("exp", json!(NOW - SKEW + 1)),
            ("exp", json!(NOW as f64 + 0.5)),
            ("iat", json!(NOW + SKEW)),
            ("nbf", json!(NOW + SKEW)),
        ] {
            assert_eq!(with(name, value.clone()), Ok(()), "{name}: {value}");
        }
        for (name, value, reason) in [
            ("iss", json!("https://id.example.com/"), "another issuer"),
            ("iss", json!(null), "another issuer"),
            ("aud", json!("edge2"), "another client"),
            ("aud", json!([]), "another client"),
            ("aud", json!([["edge"]]), "another client"),
            ("aud", json!(["edge", "other"]), "to which client"),
            ("azp", json!("other"), "another client"),
            ("azp", json!(null), "another client"),
            ("exp", json!(NOW - SKEW), "expired"),
            ("exp", json!("soon"), "never expires"),
            ("exp", json!(-1e300), "expired"),
            ("iat", json!(NOW + SKEW + 1), "future"),
            ("iat", json!(null), "when it was issued"),
            ("nbf", json!(NOW + SKEW + 1), "future"),
            ("nbf", json!("later"), "a wrong `nbf`"),
            ("nbf", json!(null), "a wrong `nbf`"),
            ("nonce", json!("m"), "wrong nonce"),
            ("nonce", json!(null), "wrong nonce"),
            ("sub", json!(""), "no subject"),
            ("sub", json!(7), "no subject"),
            ("sub", json!("x".repeat(MOST_SUBJECT_BYTES + 1)), "no subject"),
        ] {
            let found = with(name, value.clone()).err().unwrap_or_default();
            assert!(found.contains(reason), "{name}: {value}: {found}");
        }
    }

    #[test]
    fn only_a_key_of_the_provider_signs() {
        let (signer, other) = (TestSigner::new(), TestSigner::new());
        let by = |header: Value, signer: &TestSigner| token(&header, &claims(), |message| signer.sign(message));
        let good = by(json!({"alg": "ES256", "kid": "one"}), &signer);
        let is_signed = |text: &str| IdToken::parse(text).unwrap().is_signed_by(&signer.keys);
        assert!(is_signed(&good) && is_signed(&by(json!({"alg": "ES256"}), &signer)));
        assert!(!is_signed(&by(json!({"alg": "ES256", "kid": "one"}), &other)));
        let two = by(json!({"alg": "ES256", "kid": "two"}), &signer);
        assert!(!is_signed(&two));
        // The same signature under other claims.
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let mut raised = claims();
        raised["sub"] = json!("root");
        assert!(!is_signed(&format!("{header}.{}.{signature}", encoded(&raised))));
        assert!(!is_signed(&format!("{signed}.")));
    }

    #[test]
    fn the_header_of_a_token_chooses_no_weaker_signature() {
        let signer = TestSigner::new();
        let public = signer.pair.public_key().as_ref().to_vec();
        let hmac = |message: &[u8]| {
            ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public), message).as_ref().to_vec()
        };
        for alg in ["none", "None", "", "HS256", "RS512", "PS256", "ES384", "EdDSA"] {
            let text = token(&json!({"alg": alg}), &claims(), hmac);
            assert!(IdToken::parse(&text).is_err_and(|reason| reason.contains("neither RS256")), "{alg}");
        }
        let confused = token(&json!({"alg": "RS256"}), &claims(), |message| signer.sign(message));
        assert!(!IdToken::parse(&confused).unwrap().is_signed_by(&signer.keys));
        let critical = token(&json!({"alg": "ES256", "crit": ["b64"]}), &claims(), |message| signer.sign(message));
        assert!(IdToken::parse(&critical).is_err_and(|reason| reason.contains("extension")));
    }

    #[test]
    fn a_key_of_rsa_signs_too() {
        let pem: String = RSA.lines().filter(|line| !line.starts_with('-')).collect();
        let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(pem).unwrap()).unwrap();
        let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
        let (n, e) =
            (URL_SAFE_NO_PAD.encode([[0].as_slice(), public.n.as_slice()].concat()), URL_SAFE_NO_PAD.encode(public.e));
        let keys = keys_of(&json!({"keys": [{"kty": "RSA", "n": n, "e": e, "use": "sig", "alg": "RS256"}]})).unwrap();
        let sign = |message: &[u8]| {
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
            signature
        };
        for (alg, expected) in [("RS256", true), ("ES256", false)] {
            let text = token(&json!({"alg": alg, "kid": "any"}), &claims(), sign);
            assert_eq!(IdToken::parse(&text).unwrap().is_signed_by(&keys), expected, "{alg}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let good = token(&json!({"alg": "ES256"}), &claims(), |_| vec![1]);
        let (signed, _) = good.rsplit_once('.').unwrap();
        for text in ["", ".", "..", "a.b.c", signed, &format!("{good}.x"), &format!("{good}="), &format!(" {good}")] {
            assert!(IdToken::parse(text).is_err(), "{text}");
        }
        assert!(IdToken::parse(&"x".repeat(MOST_BYTES + 1)).is_err_and(|reason| reason.contains("too long")));
        let list = format!("{}.{}.AA", encoded(&json!({"alg": "ES256"})), encoded(&json!([1])));
        assert!(IdToken::parse(&list).is_err());
    }
}
