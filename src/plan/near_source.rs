//! The help for a source that owns nothing.

use crate::model::{Snapshot, suggest};

/// Returns the most similar name of a source that owns something in these states, or `otherwise`.
pub(super) fn near_source(states: &[&Snapshot], source: &str, otherwise: &str) -> String {
    let mut known: Vec<&str> =
        states.iter().flat_map(|state| state.iter()).filter_map(|entry| entry.source()).collect();
    known.sort_unstable();
    known.dedup();
    suggest(source, known, otherwise)
}
