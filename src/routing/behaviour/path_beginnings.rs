//! Sets of paths by how they begin.

use std::collections::BTreeSet;
use std::ops::Bound;

/// Beginnings of paths, of which none begins with another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::routing) struct PathBeginnings<'s>(BTreeSet<&'s str>);

impl<'s> PathBeginnings<'s> {
    pub(in crate::routing) fn new(paths: BTreeSet<&'s str>) -> Self {
        let mut shortest: Vec<&str> = Vec::new();
        for path in paths {
            // In this order, all that begins with a path follows it.
            if shortest.last().is_none_or(|last| !path.starts_with(last)) {
                shortest.push(path);
            }
        }
        Self(shortest.into_iter().collect())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The beginnings.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'s str> {
        self.0.iter().copied()
    }

    /// Whether one of these begins a path.
    pub(super) fn begin(&self, path: &str) -> bool {
        let upto = (Bound::Unbounded, Bound::Included(path));
        self.0.range::<str, _>(upto).next_back().is_some_and(|shorter| path.starts_with(*shorter))
    }

    /// Whether a request can be selected by a path and by one of these, if all of them are prefixes.
    pub(in crate::routing) fn meet(&self, path: &str) -> bool {
        let from = (Bound::Included(path), Bound::Unbounded);
        self.begin(path) || self.0.range::<str, _>(from).next().is_some_and(|longer| longer.starts_with(path))
    }

    /// The beginnings of the paths that begin with one of these and with one of others.
    pub(super) fn both(&self, other: &Self) -> Self {
        let own = self.iter().filter(|path| other.begin(path));
        Self::new(own.chain(other.iter().filter(|path| self.begin(path))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_meet_if_one_begins_with_the_other() {
        let affected = PathBeginnings::new(BTreeSet::from(["/a/b", "/a/b/c", "/a/bd", "/x"]));
        for path in ["/", "/a", "/a/b", "/a/b/c", "/a/bzz", "/x/y"] {
            assert!(affected.meet(path), "{path}");
        }
        for path in ["/a/c", "/b", "/w", "/y", "/a/aa"] {
            assert!(!affected.meet(path), "{path}");
        }
        assert!(affected.begin("/a/bzz") && !affected.begin("/a"));
        assert!(!PathBeginnings::default().meet("/"));
    }

    #[test]
    fn both_have_the_paths_of_each() {
        let (one, other) = (BTreeSet::from(["/a", "/b/c", "/d"]), BTreeSet::from(["/a/x", "/b", "/e"]));
        let both = PathBeginnings::new(one).both(&PathBeginnings::new(other));
        assert_eq!(both.iter().collect::<Vec<_>>(), ["/a/x", "/b/c"]);
    }
}
