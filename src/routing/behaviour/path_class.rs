//! Classes of paths: one path, or those below a prefix that no longer prefix and no exact match takes.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::free_text::{TextState, free_text};
use super::path_beginnings::PathBeginnings;

/// The letters that can follow a prefix in an example.
const LETTERS: &str = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~=@+,;:!$&'()*/.";

/// Whether a path is exact, and the path: prefixes come first.
pub(super) type PathKey<'s> = (bool, &'s str);

/// The prefixes and exact paths that split all paths. `/` is one of the prefixes, so that each path is in a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathSplit<'s> {
    prefixes: BTreeSet<&'s str>,
    exact: BTreeSet<&'s str>,
    /// The split that this one refines. Many hosts share it.
    base: Option<Arc<PathSplit<'s>>>,
    /// The beginnings of paths that the splits which this one refines do not split, but for the first of them.
    hides: PathBeginnings<'s>,
}

impl<'s> PathSplit<'s> {
    /// All paths in one class.
    pub(super) fn whole() -> Self {
        let (exact, hides) = (BTreeSet::new(), PathBeginnings::default());
        Self { prefixes: BTreeSet::from(["/"]), exact, base: None, hides }
    }

    /// A split with more paths.
    pub(super) fn refining(
        base: &Arc<Self>,
        paths: impl IntoIterator<Item = PathKey<'s>>,
        hides: PathBeginnings<'s>,
    ) -> Self {
        let (prefixes, exact) = (BTreeSet::new(), BTreeSet::new());
        let mut refined = Self { prefixes, exact, base: Some(Arc::clone(base)), hides };
        paths.into_iter().for_each(|(is_exact, path)| refined.add(path, is_exact));
        refined
    }

    /// Splits off the paths that a match selects.
    pub(super) fn add(&mut self, path: &'s str, is_exact: bool) {
        if is_exact {
            self.exact.insert(path)
        } else {
            self.prefixes.insert(path)
        };
    }

    /// This split, the one that it refines, and so on.
    fn layers(&self) -> impl Iterator<Item = &PathSplit<'s>> {
        std::iter::successors(Some(self), |split| split.base.as_deref())
    }

    fn own(&self, is_exact: bool) -> &BTreeSet<&'s str> {
        if is_exact { &self.exact } else { &self.prefixes }
    }

    /// Whether there is a class of a prefix or an exact path.
    pub(super) fn has(&self, is_exact: bool, path: &str) -> bool {
        let mut is_hidden = false;
        for layer in self.layers() {
            if (!is_hidden || layer.base.is_none()) && layer.own(is_exact).contains(path) {
                return true;
            }
            is_hidden = is_hidden || layer.hides.begin(path);
        }
        false
    }

    /// The classes whose paths begin in some way.
    pub(super) fn below(&self, beginning: &str) -> BTreeSet<PathKey<'s>> {
        let mut found = BTreeSet::new();
        let mut hides: Vec<&PathBeginnings<'s>> = Vec::new();
        for layer in self.layers() {
            let is_hidden = |path: &str| layer.base.is_some() && hides.iter().any(|hidden| hidden.begin(path));
            if !is_hidden(beginning) {
                for is_exact in [false, true] {
                    let from = (Bound::Included(beginning), Bound::Unbounded);
                    let inside = layer.own(is_exact).range::<str, _>(from).take_while(|it| it.starts_with(beginning));
                    found.extend(inside.filter(|it| !is_hidden(it)).map(|it| (is_exact, *it)));
                }
            }
            hides.push(&layer.hides);
        }
        found
    }

    /// The class of a prefix or an exact path.
    pub(super) fn class<'c>(&'c self, (is_exact, path): PathKey<'c>) -> PathClass<'c> {
        PathClass { path, is_exact, split: self }
    }

    /// The classes, which together have every path.
    #[cfg(test)]
    pub(super) fn classes(&self) -> impl Iterator<Item = PathClass<'_>> {
        self.below("").into_iter().map(move |key| self.class(key))
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
        let mut longer = (self.path.len() + 1..=path.len()).filter_map(|end| path.get(..end));
        path.starts_with(self.path)
            && !self.split.has(true, path)
            && !longer.any(|prefix| self.split.has(false, prefix))
    }

    /// The largest classes inside of the prefix, whose paths this class does not have.
    pub(crate) fn inner(&self) -> Vec<PathClass<'c>> {
        if self.is_exact {
            return Vec::new();
        }
        let (own, split) = (self.path, self.split);
        let mut inner: Vec<PathClass<'c>> = Vec::new();
        let (exact, prefixes): (Vec<PathKey<'c>>, Vec<PathKey<'c>>) =
            split.below(own).into_iter().partition(|(is_exact, _)| *is_exact);
        for (_, path) in prefixes.into_iter().filter(|(_, path)| *path != own) {
            // In this order, all that begins with a prefix follows it.
            if inner.last().is_none_or(|last| !path.starts_with(last.path)) {
                inner.push(PathClass { path, is_exact: false, split });
            }
        }
        let prefixes = inner.len();
        for (_, path) in exact {
            let before = inner.get(..prefixes).unwrap_or_default();
            let last = before.partition_point(|it| it.path <= path).checked_sub(1).and_then(|at| before.get(at));
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
        let is_taken = |text: &str| split.has(true, text) || has_dot_segment(text);
        if self.is_exact || !is_taken(self.path) {
            return Some(self.path.to_owned());
        }
        // More letters make another segment of the last one only.
        let is_closed = |text: &str| has_dot_segment(text.rsplit_once('/').map_or("", |(whole, _)| whole));
        free_text(self.path, LETTERS, |text| match split.has(false, text) || is_closed(text) {
            true => TextState::Closed,
            false if is_taken(text) => TextState::Taken,
            false => TextState::Free,
        })
    }
}

/// Whether a path has a segment of one or two dots, as clients resolve it before they send a request: also of encoded ones.
pub(super) fn has_dot_segment(path: &str) -> bool {
    let is_of_dots = |segment: &str| matches!(segment, "." | "..");
    let is_encoded = |segment: &str| is_of_dots(&segment.to_ascii_lowercase().replace("%2e", "."));
    path.split('/').any(|segment| is_of_dots(segment) || (segment.contains('%') && is_encoded(segment)))
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
    fn a_refined_split_hides_what_it_takes_as_a_whole() {
        let mut first = PathSplit::whole();
        first.add("/a/scope", false);
        let none = PathBeginnings::default;
        let base =
            Arc::new(PathSplit::refining(&Arc::new(first), [(false, "/a/1"), (true, "/a/2"), (false, "/b")], none()));
        let hides = PathBeginnings::new(BTreeSet::from(["/a"]));
        let refined = Arc::new(PathSplit::refining(&base, [(false, "/a"), (true, "/b")], hides));
        let told = |split: &PathSplit<'_>| split.classes().map(|class| class.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(told(&refined), "/* /a* /a/scope* /b* /b");
        assert!(refined.has(false, "/a/scope") && !refined.has(false, "/a/1") && !refined.has(true, "/a/2"));
        assert_eq!(
            told(&PathSplit::refining(&refined, [(false, "/a/1/x")], none())),
            "/* /a* /a/1/x* /a/scope* /b* /b"
        );
        assert_eq!(refined.below("/a").into_iter().collect::<Vec<_>>(), [(false, "/a"), (false, "/a/scope")]);
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
        // Clients resolve segments of dots.
        let below = |path: &str| {
            let split = split(&[path], &[]);
            let class = split.classes().find(|class| class.path == path);
            class.and_then(|class| class.example())
        };
        let found = ["/.", "/a/%2e", "/a/../b"].map(below);
        assert_eq!(found.each_ref().map(|it| it.as_deref()), [Some("/.x"), Some("/a/%2ex"), None]);
    }
}
