//! Tables of what clients have done last. Their names are for clients to choose, so the tables are bounded.

use std::borrow::Borrow;

use crate::server::prelude::*;

/// The last value of each name. When there are more than so many names, the one that was noted the longest ago makes room: the
/// moments tell which one that is, as the clock can go back, and has whole seconds.
pub(crate) struct LatestEntries<K, V, const MOST: usize>(Lock<BTreeMap<K, (Instant, V)>>);

impl<K, V, const MOST: usize> Default for LatestEntries<K, V, MOST> {
    fn default() -> Self {
        Self(Lock::default())
    }
}

impl<K: Ord + Clone, V: Clone, const MOST: usize> LatestEntries<K, V, MOST> {
    /// Notes the value that a name has from now on.
    pub(in crate::server) fn note(&self, name: K, value: V) {
        let mut entries = self.0.lock();
        entries.insert(name, (Instant::now(), value));
        if entries.len() > MOST {
            let oldest = entries.iter().min_by_key(|(_, (noted, _))| *noted).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                entries.remove(&oldest);
            }
        }
    }

    /// The value of a name.
    pub(in crate::server) fn get<Q: Ord + ?Sized>(&self, name: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.lock().get(name).map(|(_, value)| value.clone())
    }

    /// All names with their values, in the order of the names.
    pub(in crate::server) fn all(&self) -> Vec<(K, V)> {
        self.0.lock().iter().map(|(name, (_, value))| (name.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_name_makes_room_and_a_name_that_is_noted_again_is_new() {
        let table: LatestEntries<u32, u32, 100> = LatestEntries::default();
        // The newest ones are kept, although their names are the first.
        (0..=100).for_each(|number| table.note(1000 - number, number));
        table.note(999, 500);
        table.note(1, 1);
        assert_eq!((table.all().len(), table.get(&1000), table.get(&999)), (100, None, Some(500)));
        assert_eq!((table.get(&998), table.all().first().copied()), (None, Some((1, 1))));
    }
}
