//! The orders in which declarations are resolved, and their resources are placed.

use std::{collections::BTreeMap, sync::Arc};

use rayon::{
    iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator},
    slice::{ParallelSlice, ParallelSliceMut},
};

use crate::{manifest::declaration::Declaration, model::Kind};

/// Declarations by kind: parents come before children, and referenced kinds before the kinds that reference them. Those of
/// one kind are in the order of files and lines.
pub(super) fn by_kind(declarations: &[Arc<Declaration>]) -> BTreeMap<Kind, Vec<&Arc<Declaration>>> {
    // All cores wait for the memory of the declarations, instead of one.
    let kinds: Vec<Kind> = declarations.par_iter().with_min_len(1024).map(|it| it.kind).collect();
    let mut by_kind: BTreeMap<Kind, Vec<&Arc<Declaration>>> = BTreeMap::new();
    for (kind, declaration) in kinds.into_iter().zip(declarations) {
        by_kind.entry(kind).or_default().push(declaration);
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
