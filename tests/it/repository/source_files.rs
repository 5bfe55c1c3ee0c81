//! The files of the repository, as tests of their shape read them.

use std::{collections::BTreeSet, fs, path::Path};

use crate::support::program::REPOSITORY;

/// The files in `src` that are part of no layer: the root, which re-exports the API, the two programs beside it, and the
/// properties for fuzzers, which use what they check.
const OUTSIDE_LAYERS: [&str; 4] = ["lib", "main", "build", "fuzzing"];

/// A file of the repository.
pub(super) struct Source {
    /// Its path in the repository.
    pub(super) name: String,
    pub(super) text: String,
}

impl Source {
    /// The layer that the file is part of: a folder, or a file of its own; none for those that see the whole crate or nothing
    /// of it.
    pub(super) fn layer(&self) -> Option<&str> {
        let path = self.name.strip_prefix("src/")?.trim_end_matches(".rs");
        let layer = path.split_once('/').map_or(path, |(layer, _)| layer);
        (!OUTSIDE_LAYERS.contains(&layer)).then_some(layer)
    }

    /// Whether the file has only unit tests.
    pub(super) fn is_test(&self) -> bool {
        self.name.ends_with("/tests.rs") || self.name.contains("/tests/")
    }

    /// The text without what stands behind `//`.
    pub(super) fn code(&self) -> String {
        let lines = self.text.lines().map(|line| match line.find("//") {
            // The slashes of an address are no comment.
            Some(at) if !line[..at].ends_with(':') => &line[..at],
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Every path in the code, with the trees of `use` taken apart: `use a::{b, c::d}` is `a::b` and `a::c::d`.
    pub(super) fn paths(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut prefixes: Vec<String> = Vec::new();
        let mut word = String::new();
        for c in self.code().chars() {
            match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | ':' => word.push(c),
                _ => {
                    let whole = prefixes.concat() + &word;
                    match c {
                        '{' if word.ends_with("::") => prefixes.push(std::mem::take(&mut word)),
                        // A block inside of no path: its closing brace must not end a tree.
                        '{' => prefixes.push(String::new()),
                        '}' => drop(prefixes.pop()),
                        _ => {}
                    }
                    if whole.contains("::") {
                        found.insert(whole.trim_end_matches(':').to_owned());
                    }
                    word.clear();
                }
            }
        }
        found
    }
}

/// The files of a folder with an extension.
pub(super) fn sources(folder: &str, extension: &str) -> Vec<Source> {
    let root = Path::new(REPOSITORY);
    let walk = walkdir::WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().map(Result::unwrap);
    let files = walk.filter(|entry| entry.path().extension().is_some_and(|found| found == extension));
    files
        .map(|entry| Source {
            name: entry.path().strip_prefix(root).unwrap().display().to_string(),
            text: fs::read_to_string(entry.path()).unwrap(),
        })
        .collect()
}

/// The files with Rust.
pub(super) fn rust() -> Vec<Source> {
    let mut all = sources("src", "rs");
    all.extend(sources("tests", "rs"));
    assert!(all.len() > 60, "only {} files", all.len());
    all
}

#[track_caller]
pub(super) fn assert_none(what: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{what}:\n{}", offenders.join("\n"));
}
