//! A line of the security log, as far as the chain of hashes needs it.

use serde::Deserialize;

use crate::store::commit::entries::Hash;

/// The text before the hash of a line, and after it.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";
const HASH_DIGITS: usize = 64;

/// The digits of a hash.
pub(super) fn hex(hash: &Hash) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}

/// The parts of a line that the chain needs.
#[derive(Debug)]
pub(super) struct LineHead {
    pub seq: u64,
    pub hash: Hash,
    pub event: String,
    pub previous: Option<Hash>,
    pub torn: Option<(usize, String)>,
    /// The text that the hash covers.
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
struct LineFields {
    seq: u64,
    event: String,
    previous: Option<String>,
    torn_bytes: Option<usize>,
    torn_digest: Option<String>,
}

impl LineHead {
    /// Parses a line without its line break; none if it is not a whole one.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let (rest, hash) = line.strip_suffix(AFTER_HASH)?.split_last_chunk::<HASH_DIGITS>()?;
        let hash = blake3::Hash::from_hex(hash).ok()?.into();
        let mut body = rest.strip_suffix(BEFORE_HASH)?.to_vec();
        body.push(b'}');
        let fields: LineFields = serde_json::from_slice(&body).ok()?;
        let LineFields { seq, event, previous, torn_bytes, torn_digest } = fields;
        let previous = match previous {
            Some(previous) => Some(blake3::Hash::from_hex(previous).ok()?.into()),
            None => None,
        };
        Some(Self { seq, hash, event, previous, torn: torn_bytes.zip(torn_digest), body })
    }
}
