//! The time, new identifiers and tokens, which the pure model cannot produce.

use jiff::{SignedDuration, Timestamp, Unit};
use rand::RngCore;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use svix_ksuid::{KsuidLike, KsuidMs};

use crate::{
    files::fault::clock_jump,
    model::{Id, Kind, Secret},
};

/// Returns the time in whole seconds (D13).
pub fn now() -> Timestamp {
    let now = Timestamp::now() + SignedDuration::from_secs(clock_jump());
    now.round(Unit::Second)
        .map_or(now, |rounded| if rounded > now { rounded - SignedDuration::from_secs(1) } else { rounded })
}

/// Returns a time-ordered, random identifier (D11).
pub fn fresh_id(kind: Kind) -> Id {
    fresh(kind.info().prefix)
}

/// Returns a time-ordered, random identifier with a prefix, such as `op_` for a request.
pub(crate) fn fresh(prefix: &str) -> Id {
    // By default the crate asks the operating system for each payload, which is a system call per request.
    let mut payload = [0; KsuidMs::PAYLOAD_BYTES];
    rand::rng().fill_bytes(&mut payload);
    Id::from_bytes(prefix, *KsuidMs::new::<Timestamp>(None, Some(&payload)).bytes())
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
    digits(secret).as_slice().ct_eq(kept.expose().as_bytes()).into()
}

/// Hashes the secret part. It has 160 random bits, so it cannot be guessed and needs no slow hash.
fn hash(secret: &str) -> Secret {
    Secret::new(String::from_utf8_lossy(&digits(secret)))
}

/// The hexadecimal digits of the hash, without an allocation: every request needs them.
fn digits(secret: &str) -> [u8; 64] {
    let digest = Sha256::digest(secret.as_bytes());
    let mut digits = [0; 64];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest.iter()) {
        pair.copy_from_slice(
            &[byte >> 4, byte & 15].map(|half| if half < 10 { b'0' + half } else { b'a' + half - 10 }),
        );
    }
    digits
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
    fn a_hash_is_written_as_stores_have_it() {
        let kept = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash("abc").expose(), kept);
        assert!(token_matches("abc", &Secret::new(kept)) && !token_matches("abc", &Secret::default()));
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
