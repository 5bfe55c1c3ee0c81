//! Digests of the rows of the state, which reveal a row that was changed, added or removed by anything but a commit.
//!
//! # The problem
//!
//! The history has digests and a chain of hashes. But servers start from the state, so a row that was edited by hand, or that a
//! partial restore has brought back, would be served, copied and backed up.
//!
//! # The idea
//!
//! Each row has a digest of its key and value, and `head` has the sum of all digests. Whatever writes rows adds the digests of the
//! new ones and subtracts those of the rows that they replace, in the same transaction, so nothing else has to be read. Whoever
//! reads the whole state computes each digest again, and compares the sum.
//!
//! The key of the digests comes from the root secret, so that nobody makes a row without the master key. Beyond that, they find
//! mistakes: they do not stop anybody who can write to the tables and corrects the sum, and removes rows or brings back former ones
//! with their digests.

use crate::store::seal::Keyring;

/// Computes the digests of the rows of a store.
#[derive(Clone, Copy)]
pub(super) struct RowDigests([u8; blake3::KEY_LEN]);

impl RowDigests {
    /// The digests of the store with these keys.
    pub(super) fn new(keyring: &Keyring) -> Self {
        Self(blake3::derive_key("edgewright 2026 rows of a state", &keyring.root_secret()))
    }

    /// The digest of a row.
    pub(super) fn of(&self, key: &[u8], value: &[u8]) -> i64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(key.len() as u64).to_le_bytes()).update(key).update(value);
        hasher.finalize().as_bytes().first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_row_is_of_its_key_its_value_and_its_store() {
        let digests = RowDigests([7; blake3::KEY_LEN]);
        let digest = digests.of(b"r/a", b"value");
        assert_eq!(digest, digests.of(b"r/a", b"value"));
        for (key, value) in [("r/b", "value"), ("r/a", "valuf"), ("r/av", "alue"), ("r/avalue", "")] {
            assert_ne!(digest, digests.of(key.as_bytes(), value.as_bytes()), "{key} {value}");
        }
        assert_ne!(digest, RowDigests([8; blake3::KEY_LEN]).of(b"r/a", b"value"));
    }
}
