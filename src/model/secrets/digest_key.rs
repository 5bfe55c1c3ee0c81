//! The secret key of digests that are kept on a disk: without it, nobody can find a short secret by hashing guesses.

use std::fmt;

use zeroize::Zeroizing;

/// A secret key of digests.
#[derive(Clone)]
pub(crate) struct DigestKey(Zeroizing<[u8; 32]>);

impl DigestKey {
    /// Wraps a key, which must be as hard to guess as a random one.
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(Zeroizing::new(key))
    }

    /// The digest of parts for a purpose. Other parts or purposes never have the same input.
    pub(crate) fn digest(&self, purpose: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_the_key_the_purpose_and_each_part() {
        let key = DigestKey::new([1; 32]);
        let digest = key.digest("a", &[b"b", b"cd"]);
        assert_eq!(digest, key.digest("a", &[b"b", b"cd"]));
        let others = [
            DigestKey::new([2; 32]).digest("a", &[b"b", b"cd"]),
            key.digest("b", &[b"b", b"cd"]),
            key.digest("a", &[b"bc", b"d"]),
            key.digest("ab", &[b"cd"]),
        ];
        assert!(!others.contains(&digest));
    }
}
