//! Where the requests of a host and path go, of those that came last. Each has one place by its hash, so that neither memory
//! nor the time of a search grows with the log.

/// The number of places: a power of two.
const PLACES: usize = 1 << 16;
/// The longest host and path that is kept, in bytes.
const LONGEST_KEY: usize = 256;

/// A cache by host, port and path.
pub(super) struct DecisionCache {
    places: Vec<CachedDecision>,
}

#[derive(Clone, Default)]
struct CachedDecision {
    key: Vec<u8>,
    pair: usize,
}

impl Default for DecisionCache {
    fn default() -> Self {
        Self { places: vec![CachedDecision::default(); PLACES] }
    }
}

impl DecisionCache {
    /// The pair of a key with a hash, if it is known.
    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        self.places.get(place(hash)).filter(|cached| cached.key == key).map(|cached| cached.pair)
    }

    /// Keeps the pair of a key in place of another one.
    pub(super) fn keep(&mut self, hash: u64, key: &[u8], pair: usize) {
        if key.len() > LONGEST_KEY {
            return;
        }
        if let Some(cached) = self.places.get_mut(place(hash)) {
            cached.key.clear();
            cached.key.extend_from_slice(key);
            cached.pair = pair;
        }
    }
}

fn place(hash: u64) -> usize {
    usize::try_from(hash).unwrap_or_default() % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_last_key_and_no_other() {
        let mut cache = DecisionCache::default();
        let other_hash = 7 + PLACES as u64;
        cache.keep(7, b"a/", 1);
        assert_eq!((cache.find(7, b"a/"), cache.find(other_hash, b"b/")), (Some(1), None));
        cache.keep(other_hash, b"b/", 2);
        assert_eq!((cache.find(7, b"a/"), cache.find(other_hash, b"b/")), (None, Some(2)));
        cache.keep(8, &[b'x'; LONGEST_KEY + 1], 3);
        assert_eq!(cache.find(8, &[b'x'; LONGEST_KEY + 1]), None);
    }
}
