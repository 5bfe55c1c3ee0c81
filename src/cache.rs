//! Caches with a bound in bytes, and caches of what can become invalid.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// The memory for an entry besides what it is weighed by.
pub(crate) const OVERHEAD: usize = 256;
/// So few expected entries make one part of the cache: with several, an entry could be as large as its part only.
const ONE_PART: usize = 32;
/// The part for entries that are asked for again. The rest is for new ones, however often others were asked for.
const OFTEN_USED: f64 = 0.5;

/// A cache whose entries take at most so many bytes together. One that is larger than all of it is not kept.
pub(crate) type WeightedCache<K, V> = Cache<K, V, EntryWeight<K, V>>;

/// How many bytes an entry takes.
pub(crate) struct EntryWeight<K, V>(fn(&K, &V) -> usize);

impl<K, V> Clone for EntryWeight<K, V> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<K, V> Weighter<K, V> for EntryWeight<K, V> {
    fn weight(&self, key: &K, value: &V) -> u64 {
        (self.0)(key, value).saturating_add(OVERHEAD) as u64
    }
}

/// Creates a cache of at most so many bytes.
pub(crate) fn weighted<K: Eq + Hash, V: Clone>(most_bytes: u64, bytes: fn(&K, &V) -> usize) -> WeightedCache<K, V> {
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(ONE_PART).weight_capacity(most_bytes).hot_allocation(OFTEN_USED);
    let weight = EntryWeight(bytes);
    match options.build() {
        Ok(options) => Cache::with_options(options, weight, DefaultHashBuilder::default(), DefaultLifecycle::default()),
        // Only options that are missing are an error.
        Err(_) => Cache::with_weighter(ONE_PART, most_bytes, weight),
    }
}

/// A cache of what can become invalid, also while it is being made.
pub(crate) struct VersionedCache<K, V> {
    entries: Cache<K, V>,
    /// How often entries became invalid.
    version: AtomicU64,
}

impl<K: Eq + Hash + Clone, V: Clone> VersionedCache<K, V> {
    /// Creates a cache of at most so many entries.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: Cache::new(most), version: AtomicU64::new(0) }
    }

    /// Returns an entry, and the version to make it from if there is none.
    pub(crate) fn get(&self, key: &K) -> (Option<V>, u64) {
        let version = self.version.load(Ordering::SeqCst);
        (self.entries.get(key), version)
    }

    /// Keeps an entry, unless it was made from an earlier version.
    pub(crate) fn keep(&self, key: K, value: V, version: u64) {
        self.entries.insert(key.clone(), value);
        if self.version.load(Ordering::SeqCst) != version {
            self.entries.remove(&key);
        }
    }

    /// Forgets all entries.
    pub(crate) fn forget(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.entries.clear();
    }

    /// Forgets the entries of some keys, which are sorted by `key_of`.
    pub(crate) fn forget_sorted<T>(&self, items: &[T], key_of: impl Fn(&T) -> &K)
    where
        K: Ord,
    {
        self.version.fetch_add(1, Ordering::SeqCst);
        if items.len() > self.entries.len() {
            self.entries.retain(|key, _| items.binary_search_by(|item| key_of(item).cmp(key)).is_err());
        } else {
            items.iter().for_each(|item| drop(self.entries.remove(key_of(item))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_an_entry_that_is_larger_displaces_nothing() {
        let most = 8 * (OVERHEAD as u64 + 100);
        let cache: WeightedCache<usize, String> = weighted(most, |_, text| text.len());
        for number in 0..8 {
            cache.insert(number, "x".repeat(100));
        }
        assert_eq!((cache.len(), cache.weight()), (8, most));
        cache.insert(8, "x".repeat(8 * (OVERHEAD + 100)));
        assert_eq!((cache.len(), cache.get(&8)), (8, None));
        for number in 9..1000 {
            cache.insert(number, "x".repeat(number % 1000));
            assert!(cache.weight() <= most);
        }
    }

    #[test]
    fn what_was_made_before_others_became_invalid_is_not_kept() {
        let cache: VersionedCache<u64, &str> = VersionedCache::new(100);
        let (none, version) = cache.get(&1);
        assert_eq!(none, None);
        cache.keep(1, "a", version);
        cache.keep(2, "b", version);
        assert_eq!(cache.get(&1), (Some("a"), version));
        cache.forget_sorted(&[2_u64, 3], |number| number);
        assert_eq!((cache.get(&1).0, cache.get(&2).0), (Some("a"), None));
        cache.keep(2, "old", version);
        assert_eq!(cache.get(&2).0, None, "it was being made meanwhile");
        let (_, version) = cache.get(&2);
        cache.keep(2, "new", version);
        assert_eq!(cache.get(&2).0, Some("new"));
        cache.forget();
        cache.keep(1, "old", version);
        assert_eq!((cache.get(&1).0, cache.get(&2).0), (None, None));
    }
}
