//! The patterns of the paths of many classes: a prefix stands for all that changes inside of it, without what does not. So each
//! pattern is right by itself, and a class inside of an exception that changes has a pattern of its own.

use std::collections::BTreeMap;

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

    /// The patterns of all classes, each with all paths inside of it that it does not mean.
    pub(super) fn patterns(&self) -> Vec<(String, Vec<String>)> {
        let (mut patterns, mut places) = (Vec::<(String, Vec<String>)>::new(), BTreeMap::<&OwnedPath, usize>::new());
        // All that is inside of a prefix follows it.
        for (path, inner) in &self.0 {
            let place = *places.entry(path).or_insert_with(|| {
                patterns.push((shown(path), Vec::new()));
                patterns.len() - 1
            });
            for class in inner {
                if self.0.contains_key(class) {
                    places.insert(class, place);
                } else if let Some((_, except)) = patterns.get_mut(place) {
                    except.push(shown(class));
                }
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
        assert_eq!(deeper, ["/* except /a/b"], "the pattern is right without any other");
        let inside = paths(&[("/*", &["/a*", "/d"]), ("/a/b*", &["/a/b/c"]), ("/d", &[])]);
        assert_eq!(inside, ["/* except /a*", "/a/b* except /a/b/c"]);
    }
}
