//! The orders in which declarations are resolved, and their resources are placed.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use foldhash::HashMap;
use rayon::{
    iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator},
    slice::{ParallelSlice, ParallelSliceMut},
};

use super::{identity::Wanted, transfer};
use crate::{
    manifest::load::declaration::Declaration,
    model::{Kind, desired::Desired, key::Key, operation::Claim},
};

/// A declared resource in the order of keys. This is small, so that sorting moves little.
pub(super) struct KeyPlace<'w, 'a> {
    /// What nearly always decides the order: the starts of the parent's id and of the id.
    starts: (u64, u64),
    /// The position among the declarations.
    pub index: usize,
    pub wanted: &'w Wanted<'a>,
}

/// What a declared resource takes over from one with another name or another key.
pub(super) struct Succession<'a> {
    /// The claim on that resource.
    pub claim: Option<&'a Claim>,
    /// The former name, if declared resources swap names.
    pub renamed_from: Option<String>,
    /// The resource that is replaced.
    pub replaces: Option<Key>,
}

impl<'a> KeyPlace<'_, 'a> {
    fn compare(&self, other: &Self) -> Ordering {
        let by_key = || self.wanted.key.cmp(&other.wanted.key);
        self.starts.cmp(&other.starts).then_with(by_key).then(self.index.cmp(&other.index))
    }

    /// The desired resource. `left` has the positions of those that are left to other sources, in order.
    pub(super) fn desired(
        &self,
        source: &str,
        left: &[usize],
        successions: &HashMap<usize, Succession<'a>>,
    ) -> (Key, Desired) {
        let Wanted { declaration, key, spec, .. } = self.wanted;
        let (claim, renamed_from, replaces) = match successions.get(&self.index) {
            Some(it) => (it.claim, it.renamed_from.clone(), it.replaces.clone()),
            None => (self.wanted.claim(), None, None),
        };
        let claim = Arc::new(transfer::claim(declaration, source, claim, renamed_from));
        let position = self.index - left.partition_point(|it| *it < self.index);
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let (spec, token_file) = (Arc::clone(spec), declaration.token_file.clone());
        (key.clone(), Desired { key: key.clone(), spec, claim, position, token_file, replaces })
    }
}

/// The resources of one kind in the order of their keys, those with one key in the order of the declarations.
pub(super) fn in_order<'w, 'a>(wanted: &'w [Wanted<'a>]) -> Vec<KeyPlace<'w, 'a>> {
    let Some(kind) = wanted.first().map(|it| it.key.kind.facts()) else { return Vec::new() };
    let parent_prefix = kind.parent.map_or("", |parent| parent.facts().prefix);
    let place = |(index, wanted): (usize, &'w Wanted<'a>)| {
        let parent = wanted.key.parent.as_ref().map_or(0, |parent| start(parent.as_str(), parent_prefix));
        KeyPlace { starts: (parent, start(wanted.key.id.as_str(), kind.prefix)), index, wanted }
    };
    let mut places: Vec<KeyPlace<'w, 'a>> = wanted.par_iter().enumerate().with_min_len(256).map(place).collect();
    places.par_sort_unstable_by(KeyPlace::compare);
    places
}

/// A number for the start of an id without its prefix: if it is less for one of two ids, so is this id.
fn start(id: &str, prefix: &str) -> u64 {
    let Some(rest) = id.strip_prefix(prefix) else { return if id < prefix { 0 } else { u64::MAX } };
    let mut start = [0; 8];
    for (to, from) in start.iter_mut().zip(rest.bytes()) {
        *to = from;
    }
    u64::from_be_bytes(start)
}

/// The keys that several declarations have, each without a declaration yet.
pub(super) fn repeated<'w, 'a>(places: &[KeyPlace<'w, 'a>]) -> HashMap<&'w Key, Option<&'a Arc<Declaration>>> {
    let pairs = places.windows(2).filter_map(|pair| match pair {
        [one, other] if one.starts == other.starts && one.wanted.key == other.wanted.key => Some(&one.wanted.key),
        _ => None,
    });
    pairs.map(|key| (key, None)).collect()
}

/// Declarations by kind: parents come before children, and referenced kinds before the kinds that reference them. Those of
/// one kind are in the order of files and lines.
pub(super) fn by_kind(declarations: &[Arc<Declaration>]) -> BTreeMap<Kind, Vec<&Arc<Declaration>>> {
    // All cores wait for the memory of the declarations, instead of one.
    let kinds: Vec<Kind> = declarations.par_iter().with_min_len(1024).map(|it| it.kind).collect();
    let runs = || kinds.chunk_by(|one, other| one == other).filter_map(|run| Some((*run.first()?, run.len())));
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    runs().for_each(|(kind, length)| *counts.entry(kind).or_default() += length);
    // Lists that grow would be copied again and again, to memory that is cleared each time.
    let mut by_kind: BTreeMap<Kind, Vec<&Arc<Declaration>>> =
        counts.into_iter().map(|(kind, count)| (kind, Vec::with_capacity(count))).collect();
    let mut rest = declarations;
    for (kind, length) in runs() {
        let Some((run, later)) = rest.split_at_checked(length) else { break };
        by_kind.entry(kind).or_default().extend(run.iter());
        rest = later;
    }
    for of_one_kind in by_kind.values_mut() {
        // Files are nearly always read in the order of their names.
        let is_sorted = |pair: &[&Arc<Declaration>]| match pair {
            [one, other] => one.origin.cmp_files(&other.origin).is_le(),
            _ => true,
        };
        if !of_one_kind.par_windows(2).with_min_len(1024).all(is_sorted) {
            of_one_kind.par_sort_by(|one, other| one.origin.cmp_files(&other.origin));
        }
    }
    by_kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starts_of_ids_have_the_order_of_the_ids() {
        let ids = ["", "a", "edg", "edghts", "edghts_", "edghts_\0", "edghts_0", "edghts_01", "edghts_012345678", "z"];
        for (one, other) in ids.iter().zip(ids.iter().skip(1)) {
            assert!(one < other && start(one, "edghts_") <= start(other, "edghts_"), "{one} {other}");
        }
        assert!(start("edghts_0", "edghts_") < start("edghts_01", "edghts_"));
        assert_eq!(start("ab", ""), u64::from_be_bytes(*b"ab\0\0\0\0\0\0"));
    }
}
