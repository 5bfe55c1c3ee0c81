//! The patterns of the paths of many classes: a prefix stands for all that is inside of it, if all of it changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::routing::behaviour::PathClass;

/// A path, and whether it is exact: a prefix is before all that is inside of it.
type OwnedPath = (String, bool);

/// The classes of paths of some hosts, each with the classes directly inside of it.
#[derive(Debug, Default)]
pub(super) struct ChangedPaths(BTreeMap<OwnedPath, Vec<OwnedPath>>);

impl ChangedPaths {
    /// Adds a class. Returns the number of paths that this takes.
    pub(super) fn add(&mut self, class: PathClass<'_>) -> usize {
        let owned = |class: &PathClass<'_>| (class.path.to_owned(), class.is_exact);
        let inner: Vec<OwnedPath> = class.inner().iter().map(owned).collect();
        let added = 1 + inner.len();
        self.0.insert(owned(&class), inner);
        added
    }

    /// The patterns of all classes, each with those inside that it does not mean.
    pub(super) fn patterns(&self) -> Vec<(String, Vec<String>)> {
        // All that is inside of a prefix follows it.
        let mut whole: BTreeSet<&OwnedPath> = BTreeSet::new();
        for (path, inner) in self.0.iter().rev() {
            if inner.iter().all(|inner| whole.contains(inner)) {
                whole.insert(path);
            }
        }
        let (mut absorbed, mut patterns) = (BTreeSet::new(), Vec::new());
        for (path, inner) in &self.0 {
            absorbed.extend(inner.iter().filter(|inner| whole.contains(inner)));
            if !absorbed.contains(path) {
                let except = inner.iter().filter(|inner| !self.0.contains_key(*inner));
                patterns.push((shown(path), except.map(shown).collect()));
            }
        }
        patterns
    }
}

fn shown((path, is_exact): &OwnedPath) -> String {
    format!("{path}{}", if *is_exact { "" } else { "*" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(classes: &[(&str, &[&str])]) -> Vec<String> {
        let owned = |text: &str| match text.strip_suffix('*') {
            Some(prefix) => (prefix.to_owned(), false),
            None => (text.to_owned(), true),
        };
        let class = |(path, inner): &(&str, &[&str])| (owned(path), inner.iter().map(|path| owned(path)).collect());
        let paths = ChangedPaths(classes.iter().map(class).collect());
        let told = paths.patterns().into_iter().map(|(path, except)| match except.as_slice() {
            [] => path,
            except => format!("{path} except {}", except.join(" ")),
        });
        told.collect()
    }

    #[test]
    fn a_prefix_stands_for_all_that_is_inside() {
        assert_eq!(paths(&[("/*", &["/a*", "/b"]), ("/a*", &["/a/c"]), ("/a/c", &[]), ("/b", &[])]), ["/*"]);
        assert_eq!(paths(&[("/a*", &[]), ("/b", &[])]), ["/a*", "/b"]);
    }

    #[test]
    fn what_stays_inside_of_a_prefix_is_an_exception() {
        assert_eq!(paths(&[("/*", &["/a*", "/b"]), ("/b", &[])]), ["/* except /a*"]);
        let deeper = paths(&[("/*", &["/a*"]), ("/a*", &["/a/b", "/a/c"]), ("/a/c", &[])]);
        assert_eq!(deeper, ["/*", "/a* except /a/b"], "the exception is told once, where it is");
    }
}
