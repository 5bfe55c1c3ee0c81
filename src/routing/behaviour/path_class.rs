//! Classes of paths: one path, or those below a prefix that no longer prefix and no exact match takes.

use std::collections::BTreeSet;
use std::fmt;

use super::free_text::{TextState, free_text};

/// The letters that can follow a prefix in an example.
const LETTERS: &str = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~=@+,;:!$&'()*/.";

/// The prefixes and exact paths that split all paths. `/` is one of the prefixes, so that each path is in a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathSplit<'s> {
    prefixes: BTreeSet<&'s str>,
    exact: BTreeSet<&'s str>,
}

impl<'s> PathSplit<'s> {
    /// All paths in one class.
    pub(super) fn whole() -> Self {
        Self { prefixes: BTreeSet::from(["/"]), exact: BTreeSet::new() }
    }

    /// Splits off the paths that a match selects.
    pub(super) fn add(&mut self, path: &'s str, is_exact: bool) {
        if is_exact {
            self.exact.insert(path)
        } else {
            self.prefixes.insert(path)
        };
    }

    fn class<'c>(&'c self, path: &'c str, is_exact: bool) -> PathClass<'c> {
        PathClass { path, is_exact, split: self }
    }

    /// The classes, which together have every path.
    pub(super) fn classes(&self) -> impl Iterator<Item = PathClass<'_>> {
        let prefixes = self.prefixes.iter().map(move |path| self.class(path, false));
        prefixes.chain(self.exact.iter().map(move |path| self.class(path, true)))
    }
}

/// The paths that a match selects, without those that another one selects more closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathClass<'c> {
    /// The path, or the prefix.
    pub(crate) path: &'c str,
    /// Whether the class is the path alone.
    pub(crate) is_exact: bool,
    split: &'c PathSplit<'c>,
}

impl<'c> PathClass<'c> {
    /// Whether the class has a path.
    #[cfg(test)]
    pub(crate) fn contains(&self, path: &str) -> bool {
        if self.is_exact {
            return path == self.path;
        }
        let longer = (self.path.len() + 1..=path.len()).filter_map(|end| path.get(..end));
        path.starts_with(self.path)
            && !self.split.exact.contains(path)
            && !longer.into_iter().any(|prefix| self.split.prefixes.contains(prefix))
    }

    /// The largest classes inside of the prefix, whose paths this class does not have.
    pub(crate) fn inner(&self) -> Vec<PathClass<'c>> {
        if self.is_exact {
            return Vec::new();
        }
        let (own, split) = (self.path, self.split);
        let mut inner: Vec<PathClass<'c>> = Vec::new();
        for path in
            split.prefixes.range::<&str, _>(own..).take_while(|path| path.starts_with(own)).filter(|path| **path != own)
        {
            // In this order, all that begins with a prefix follows it.
            if inner.last().is_none_or(|last| !path.starts_with(last.path)) {
                inner.push(PathClass { path, is_exact: false, split });
            }
        }
        let prefixes = inner.len();
        for path in split.exact.range::<&str, _>(own..).take_while(|path| path.starts_with(own)) {
            let before = inner.get(..prefixes).unwrap_or_default();
            let last = before.partition_point(|it| it.path <= *path).checked_sub(1).and_then(|at| before.get(at));
            if last.is_none_or(|last| !path.starts_with(last.path)) {
                inner.push(PathClass { path, is_exact: true, split });
            }
        }
        inner
    }

    /// Whether a path of a request can be in the class: each ends where the query or the fragment begins.
    pub(super) fn may_be_sent(&self) -> bool {
        !self.path.contains(['?', '#'])
    }

    /// A path that stands for the class in all decisions about routing. No client can send it, and no match can have
    /// it.
    pub(super) fn probe(&self) -> String {
        if self.is_exact { self.path.to_owned() } else { format!("{}\0", self.path) }
    }

    /// A path of the class, if there is one without unusual letters.
    pub(super) fn example(&self) -> Option<String> {
        let split = self.split;
        if self.is_exact || !split.exact.contains(self.path) {
            return Some(self.path.to_owned());
        }
        free_text(self.path, LETTERS, |text| match split.prefixes.contains(text) {
            true => TextState::Closed,
            false if split.exact.contains(text) => TextState::Taken,
            false => TextState::Free,
        })
    }
}

/// The path, with `*` for what can follow a prefix.
impl fmt::Display for PathClass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.path, if self.is_exact { "" } else { "*" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'s>(prefixes: &[&'s str], exact: &[&'s str]) -> PathSplit<'s> {
        let mut split = PathSplit::whole();
        prefixes.iter().for_each(|path| split.add(path, false));
        exact.iter().for_each(|path| split.add(path, true));
        split
    }

    #[test]
    fn each_path_is_in_one_class() {
        let split = split(&["/a", "/a/b", "/ab", "/c/"], &["/a", "/a/x", "/c/d", "/e"]);
        for path in ["/", "/a", "/aa", "/a/", "/a/b", "/a/bc", "/a/x", "/a/xy", "/ab", "/c", "/c/", "/c/d", "/e", "/ef"]
        {
            assert_eq!(split.classes().filter(|class| class.contains(path)).count(), 1, "{path}");
        }
        for class in split.classes() {
            let example = class.example().unwrap_or_default();
            assert!(class.contains(&example), "{class}: {example}");
        }
    }

    #[test]
    fn what_is_inside_of_a_prefix_is_told_once() {
        let split = split(&["/a", "/a/b", "/a/b/c", "/b"], &["/a", "/a/b/d", "/e"]);
        let inner = |path: &str| {
            let class = split.classes().find(|class| class.path == path && !class.is_exact);
            class.map(|class| class.inner().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(inner("/").as_deref(), Some("/a* /b* /e"));
        assert_eq!(inner("/a").as_deref(), Some("/a/b* /a"));
        assert_eq!(inner("/a/b").as_deref(), Some("/a/b/c* /a/b/d"));
        assert_eq!(inner("/b").as_deref(), Some(""));
    }

    #[test]
    fn an_example_avoids_what_others_take() {
        let letters: Vec<String> = LETTERS.chars().map(|letter| format!("/{letter}")).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        let root = |split: &PathSplit<'_>| {
            let class = split.classes().find(|class| class.path == "/" && !class.is_exact);
            class.and_then(|class| class.example())
        };
        assert_eq!(root(&split(&letters, &[])).as_deref(), Some("/"));
        assert_eq!(root(&split(&letters, &["/"])), None, "no path is left");
        assert_eq!(root(&split(&["/x"], &["/", "/a", "/b"])).as_deref(), Some("/c"));
        let exact: Vec<&str> = letters.iter().copied().chain(["/"]).collect();
        assert_eq!(root(&split(&[], &exact)).as_deref(), Some("/xx"));
    }
}
