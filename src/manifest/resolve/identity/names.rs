//! The owned resources of a store by their names.

use std::{hash::BuildHasher as _, sync::Arc};

use foldhash::fast::RandomState;
use rayon::{
    iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator},
    slice::ParallelSliceMut,
};

use crate::model::{Kind, id::Id, snapshot::Entry};

/// Owned resources by kind, parent and name. A name can be used by two sources, or by a replacement and its predecessor
/// that was not pruned. A sorted list is made on all cores, unlike a map.
pub(super) struct NameIndex<'a> {
    /// In the order of their hashes.
    named: Vec<NamedEntry<'a>>,
    /// Where the hashes that begin with each number start: a binary search would wait for memory several times.
    starts: Vec<u32>,
    state: RandomState,
}

/// An owned resource.
struct NamedEntry<'a> {
    /// The hash of kind, parent and name.
    hash: u64,
    /// The place among those with the same name.
    rank: i64,
    entry: &'a Arc<Entry>,
}

impl<'a> NameIndex<'a> {
    /// The owned ones of some resources. Of those with one name, the ones of `source` come first, the last of them before
    /// the others.
    pub(super) fn new(entries: &[&'a Arc<Entry>], source: &str) -> Self {
        let state = RandomState::default();
        let named = |(position, entry): (usize, &'a Arc<Entry>)| -> Option<NamedEntry<'a>> {
            let claim = entry.claim.as_deref()?;
            let hash = state.hash_one((entry.key.kind, entry.key.parent.as_ref(), claim.name.as_str()));
            let position = i64::try_from(position).unwrap_or(i64::MAX);
            let rank = if claim.source == source { -position - 1 } else { position };
            Some(NamedEntry { hash, rank, entry })
        };
        let entries = entries.par_iter().copied().enumerate().with_min_len(256);
        let mut named: Vec<NamedEntry<'a>> = entries.filter_map(named).collect();
        named.par_sort_unstable_by_key(|it| (it.hash, it.rank));
        let mut starts = vec![0; named.len().next_power_of_two()];
        let shift = shift_of(&starts);
        let mut place = 0;
        for (beginning, start) in starts.iter_mut().enumerate() {
            while named.get(place).is_some_and(|it| it.hash.wrapping_shr(shift) < beginning as u64) {
                place += 1;
            }
            *start = u32::try_from(place).unwrap_or(u32::MAX);
        }
        Self { named, starts, state }
    }

    /// The resources with a name.
    pub(super) fn get<'k>(
        &'k self,
        kind: Kind,
        parent: Option<&'k Id>,
        name: &'k str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + use<'k, 'a> {
        let hash = self.state.hash_one((kind, parent, name));
        let beginning = hash.wrapping_shr(shift_of(&self.starts)) as usize;
        let first = self.starts.get(beginning).map_or(0, |first| *first as usize);
        let later = self.named.iter().skip(first).skip_while(move |it| it.hash < hash);
        let alike = later.take_while(move |it| it.hash == hash).map(|it| it.entry);
        alike.filter(move |entry| {
            let key = &entry.key;
            let is_beside = key.kind == kind && key.parent.as_ref() == parent;
            is_beside && entry.claim.as_deref().is_some_and(|claim| claim.name == name)
        })
    }
}

/// How many bits of a hash are not the number that it begins with.
fn shift_of(starts: &[u32]) -> u32 {
    u64::BITS - starts.len().trailing_zeros()
}
