//! Sorted values into maps whose nodes stay full. A sorted map of `imbl` that is filled in the order of its keys splits each leaf in the middle and
//! never comes back to the first half, so that it takes twice the memory.

use imbl::OrdMap;

use crate::background::yield_to_requests;

/// Adds values whose keys are in order. Every second one goes in first, and the others fill the halves that these leave. That
/// takes no longer, because half as many leaves are split.
pub(super) fn insert_sorted<T, K: Ord + Clone, V: Clone>(
    map: &mut OrdMap<K, V>,
    sorted: &[T],
    pair: impl Fn(&T) -> (K, V),
) {
    for first in [0, 1] {
        for value in sorted.iter().skip(first).step_by(2) {
            yield_to_requests();
            let (key, value) = pair(value);
            map.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn map<V: Clone>(numbers: &[u32], value: impl Fn(u32) -> V) -> OrdMap<u32, V> {
        let mut map = OrdMap::new();
        insert_sorted(&mut map, numbers, |number| (*number, value(*number)));
        map
    }

    #[test]
    fn every_value_is_in_order() {
        for length in (0..70).chain([1000, 1001]) {
            let numbers: Vec<u32> = (0..length).collect();
            let map = map(&numbers, |number| number * 2);
            assert!(map.iter().map(|(key, value)| (*key, *value)).eq((0..length).map(|it| (it, it * 2))), "{length}");
            assert!(map.len() == numbers.len() && numbers.iter().all(|key| map.get(key) == Some(&(key * 2))));
        }
    }

    static CLONED: AtomicUsize = AtomicUsize::new(0);

    /// Counts how often it is cloned.
    struct CountedClone;

    impl Clone for CountedClone {
        fn clone(&self) -> Self {
            CLONED.fetch_add(1, Ordering::Relaxed);
            Self
        }
    }

    #[test]
    fn the_leaves_of_a_map_are_full() {
        let numbers: Vec<u32> = (0..10_000).collect();
        let map = map(&numbers, |_| CountedClone);
        // A change of a map that is shared copies one leaf.
        let mut changed = map.clone();
        CLONED.store(0, Ordering::Relaxed);
        changed.insert(5_000, CountedClone);
        let copied = CLONED.load(Ordering::Relaxed);
        assert!(copied > 12, "{copied} values in a leaf");
        assert_eq!(map.len(), changed.len());
    }
}
