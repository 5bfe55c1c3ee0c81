//! API tokens: how they are made, and how they are recognised by their hashes.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::ids::random_secret;
use crate::model::{Id, Secret};

/// Creates an API token. Returns the token, which is shown once, and the hash that is stored (D23).
pub fn token(key: &Id) -> (Secret, Secret) {
    let secret = Id::derived("", [random_secret().as_slice()]);
    (Secret::new(format!("ew_{key}_{secret}")), Secret::new(hash(secret.as_str())))
}

/// Splits a token into its key and its secret part.
pub(crate) fn split_token(token: &str) -> Option<(Id, &str)> {
    let (key, secret) = token.strip_prefix("ew_")?.rsplit_once('_')?;
    Some((Id::new(key), secret))
}

/// Compares a token's secret part with a stored hash, in constant time.
pub(crate) fn token_matches(secret: &str, kept: &Secret) -> bool {
    hash(secret).as_bytes().ct_eq(kept.expose().as_bytes()).into()
}

/// Hashes the secret part, as hexadecimal digits. It has 160 random bits, so it cannot be guessed and needs no slow hash.
fn hash(secret: &str) -> String {
    format!("{:x}", Sha256::digest(secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Kind, store::ids::fresh_id};

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
        assert_eq!(hash("abc"), kept);
        assert!(token_matches("abc", &Secret::new(kept)) && !token_matches("abc", &Secret::default()));
    }
}
