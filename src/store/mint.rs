//! What the pure model cannot make: the time, fresh identifiers, tokens.

use jiff::{Timestamp, Unit};
use rand::RngCore;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use svix_ksuid::{KsuidLike, KsuidMs};

use crate::model::{Kind, id::Id, secret::Secret};

/// The time in whole seconds (D13).
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Second)
        .map_or(now, |rounded| if rounded > now { rounded - jiff::SignedDuration::from_secs(1) } else { rounded })
}

/// A time-ordered, random identifier (D11).
pub fn fresh_id(kind: Kind) -> Id {
    fresh(kind.info().prefix)
}

/// A time-ordered, random identifier with any prefix, such as `op_` for a request.
pub fn fresh(prefix: &str) -> Id {
    Id::from_bytes(prefix, *KsuidMs::new::<Timestamp>(None, None).bytes())
}

/// 256 random bits.
pub fn random_secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// A random salt, as text.
pub fn salt() -> String {
    Id::derived("", [random_secret().as_slice()]).to_string()
}

/// A new API token: what its owner is given once, and the hash that is kept (D23).
pub fn token(key: &Id) -> (Secret, Secret) {
    let secret = Id::derived("", [random_secret().as_slice()]);
    (Secret::new(format!("ew_{key}_{secret}")), hash(secret.as_str()))
}

/// The key that a token names, and its secret part.
pub fn split_token(token: &str) -> Option<(Id, &str)> {
    let (key, secret) = token.strip_prefix("ew_")?.rsplit_once('_')?;
    Some((Id::new(key), secret))
}

/// Whether a token's secret part is the one that a hash was made of; in constant time.
pub fn token_matches(secret: &str, kept: &Secret) -> bool {
    hash(secret).expose().as_bytes().ct_eq(kept.expose().as_bytes()).into()
}

/// The secret part has 160 random bits, so a plain hash is enough: there is nothing to guess.
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
