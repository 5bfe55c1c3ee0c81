//! Circles of names that were exchanged.

use foldhash::{HashMap, HashMapExt as _};

/// The cycles in a graph where each item has at most one successor.
pub(super) fn find_cycles(items: &[usize], next: impl Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
    let mut walked: HashMap<usize, usize> = HashMap::new();
    let mut cycles = Vec::new();
    for &start in items {
        let mut here = Some(start);
        while let Some(at) = here.filter(|at| !walked.contains_key(at)) {
            walked.insert(at, start);
            here = next(at);
        }
        // A walk that meets itself is a cycle. One that meets an earlier walk is not new.
        let Some(first) = here.filter(|at| walked.get(at) == Some(&start)) else { continue };
        let mut cycle = vec![first];
        let mut at = next(first);
        while let Some(member) = at.filter(|member| *member != first) {
            cycle.push(member);
            at = next(member);
        }
        cycles.push(cycle);
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_once_and_their_tails_are_none() {
        // 0 → 1 → 2 → 0, 3 → 1, 4 → 4, 5 → nothing, 6 → 5.
        let next = |at: usize| [Some(1), Some(2), Some(0), Some(1), Some(4), None, Some(5)].get(at).copied().flatten();
        assert_eq!(find_cycles(&[3, 0, 1, 2, 4, 5, 6], next), [vec![1, 2, 0], vec![4]]);
    }
}
