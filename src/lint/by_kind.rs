//! The resources of one kind in a sorted list.

use std::sync::Arc;

use crate::model::{Desired, Entry, Kind};

/// The resources of a kind, which are neighbours: keys sort by kind first.
pub(super) fn of_kind<'d, 'a>(sorted: &'d [&'a Desired], kind: Kind) -> &'d [&'a Desired] {
    of_one_kind(sorted, kind, |desired| desired.key.kind)
}

/// Like [`of_kind`], for the resources of a store.
pub(super) fn entries_of_kind(sorted: &[Arc<Entry>], kind: Kind) -> &[Arc<Entry>] {
    of_one_kind(sorted, kind, |entry| entry.key.kind)
}

fn of_one_kind<T>(sorted: &[T], kind: Kind, kind_of: impl Fn(&T) -> Kind) -> &[T] {
    let from = sorted.partition_point(|it| kind_of(it) < kind);
    let to = sorted.partition_point(|it| kind_of(it) <= kind);
    sorted.get(from..to).unwrap_or_default()
}
