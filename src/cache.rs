//! Caches with a bound in bytes.

use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};

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
pub(crate) fn weighted<K: Eq + std::hash::Hash, V: Clone>(
    most_bytes: u64,
    bytes: fn(&K, &V) -> usize,
) -> WeightedCache<K, V> {
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(ONE_PART).weight_capacity(most_bytes).hot_allocation(OFTEN_USED);
    let weight = EntryWeight(bytes);
    match options.build() {
        Ok(options) => Cache::with_options(options, weight, DefaultHashBuilder::default(), DefaultLifecycle::default()),
        // Only options that are missing are an error.
        Err(_) => Cache::with_weighter(ONE_PART, most_bytes, weight),
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
}
