//! The time, new identifiers and tokens, which the pure model cannot produce.

use jiff::{Timestamp, Unit};
use rand::RngCore;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use svix_ksuid::{KsuidLike, KsuidMs};

use crate::model::{Kind, id::Id, secret::Secret};

/// Returns the time in whole seconds (D13).
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Second)
        .map_or(now, |rounded| if rounded > now { rounded - jiff::SignedDuration::from_secs(1) } else { rounded })
}

/// Returns a time-ordered, random identifier (D11).
pub fn fresh_id(kind: Kind) -> Id {
    fresh(kind.info().prefix)
}

/// Returns a time-ordered, random identifier with a prefix, such as `op_` for a request.
pub(crate) fn fresh(prefix: &str) -> Id {
    Id::from_bytes(prefix, *KsuidMs::new::<Timestamp>(None, None).bytes())
}

/// Returns 256 random bits.
pub(crate) fn random_secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// A random salt, as text.
pub(crate) fn salt() -> String {
    Id::derived("", [random_secret().as_slice()]).to_string()
}

/// Creates an API token. Returns the token, which is shown once, and the hash that is stored (D23).
pub fn token(key: &Id) -> (Secret, Secret) {
    let secret = Id::derived("", [random_secret().as_slice()]);
    (Secret::new(format!("ew_{key}_{secret}")), hash(secret.as_str()))
}

/// Splits a token into its key and its secret part.
pub(crate) fn split_token(token: &str) -> Option<(Id, &str)> {
    let (key, secret) = token.strip_prefix("ew_")?.rsplit_once('_')?;
    Some((Id::new(key), secret))
}

/// Compares a token's secret part with a stored hash, in constant time.
pub(crate) fn token_matches(secret: &str, kept: &Secret) -> bool {
    hash(secret).expose().as_bytes().ct_eq(kept.expose().as_bytes()).into()
}

/// Hashes the secret part. It has 160 random bits, so it cannot be guessed and needs no slow hash.
fn hash(secret: &str) -> Secret {
    let digest = Sha256::digest(secret.as_bytes());
    Secret::new(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_by_its_hash_only() {
        let key = fresh_id(Kind::ApiKey);
        let (token, kept) = token(&key);
        let (named, secret) = split_token(token.expose()).unwrap_or((key.clone(), ""));
        assert_eq!(named, key);
        assert!(token_matches(secret, &kept));
        assert!(!token_matches("other", &kept));
        assert!(!kept.expose().contains(secret));
    }

    #[test]
    fn ids_made_later_sort_later() {
        let ids: Vec<Id> = (0..5)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(6));
                fresh("x_")
            })
            .collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
