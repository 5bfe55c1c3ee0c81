//! Which files of the crate may use which: layers look down only, and files do not use each other in circles.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::source_files::{Source, assert_none, sources};
use crate::support::program::REPOSITORY;

/// The layers of `src/lib.rs`: a module may use those with a lower number.
const LAYERS: [(&str, u8); 19] = [
    ("facade", 9),
    ("cli", 8),
    ("server", 7),
    ("reconcile", 6),
    ("manifest", 5),
    ("plan", 5),
    ("store", 5),
    ("filter", 4),
    ("lint", 4),
    ("tenancy", 4),
    ("routing", 3),
    ("model", 2),
    ("background", 0),
    ("cache", 0),
    ("files", 0),
    ("http_client", 0),
    ("lock", 0),
    ("subprocess", 0),
    ("syntax", 1),
];

#[test]
fn every_room_is_private() {
    let declared = |word: &str| {
        let text = fs::read_to_string(format!("{REPOSITORY}/src/lib.rs")).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_suffix(';').map(str::to_owned));
        names.collect::<BTreeSet<_>>()
    };
    // `fuzzing` only with the feature of the same name; `server` is its own group of the public API.
    assert_eq!(declared("pub mod "), BTreeSet::from(["fuzzing".to_owned(), "server".to_owned()]));
    let rooms = LAYERS.iter().map(|(name, _)| (*name).to_owned()).filter(|name| name != "server");
    assert_eq!(declared("mod "), rooms.collect());
}

#[test]
fn layers_only_look_down() {
    let rank = |layer: &str| LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, rank)| *rank);
    let mut offenders = Vec::new();
    for file in sources("src", "rs") {
        let Some(from) = file.layer() else { continue };
        let Some(own) = rank(from) else {
            offenders.push(format!("{}: {from} is no layer", file.name));
            continue;
        };
        for path in file.paths() {
            let Some(target) = path.strip_prefix("crate::").and_then(|path| path.split("::").next()) else { continue };
            if target != from && rank(target).is_none_or(|rank| rank >= own) {
                offenders.push(format!("{}: {path}", file.name));
            }
        }
    }
    assert_none("paths that do not lead down", &offenders);
}

/// How many files of a folder may use each other in a circle, at most: in the model, the two files of the decoder; everywhere,
/// a few files with one idea.
const LARGEST_CIRCLES: [(&str, usize); 2] = [("src/model", 2), ("src", 3)];
/// The methods of `Kind` in `kind/table.rs`: a call uses that file without naming it.
const CALLS_OF_THE_TABLE: [&str; 4] = ["kind.info()", "kind().info()", "Kind::all()", "Kind::constraints()"];

/// The path of a file's module, such as `model::kind::owner`.
fn module_path(file: &str) -> String {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs");
    path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
}

/// A path in the code of `module`, from the root of the crate. A path of another crate becomes one inside `module`.
fn from_root(module: &str, path: &str) -> String {
    let mut at: Vec<&str> = module.split("::").collect();
    for step in path.split("::") {
        match step {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            name => at.push(name),
        }
    }
    at.join("::")
}

/// The files of a folder that each of its files uses, by their modules. Who uses what a file re-exports uses that file, which
/// uses the one that defines it.
fn uses(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files: Vec<Source> = sources(folder, "rs").into_iter().filter(|file| !file.is_test()).collect();
    let modules: BTreeSet<String> = files.iter().map(|file| module_path(&file.name)).collect();
    let owner = |path: &str| {
        let mut path = path;
        while !modules.contains(path) {
            path = path.rsplit_once("::")?.0;
        }
        Some(path.to_owned())
    };
    let mut uses = BTreeMap::new();
    for file in files {
        let module = module_path(&file.name);
        // A visibility uses nothing.
        let text = file.text.split("mod tests {").next().unwrap_or_default().replace("pub(in crate::", "pub(in ");
        let file = Source { name: file.name, text };
        let paths = file.paths();
        // The beginning of a tree is no path of its own, and what tests have is used by tests only.
        let is_whole = |path: &&String| {
            !path.contains("::tests::") && !paths.iter().any(|other| other.starts_with(&format!("{path}::")))
        };
        // The modules that the file imports, by the names that they have in it.
        let mut imports: BTreeMap<&str, String> = BTreeMap::new();
        for path in &paths {
            let target = from_root(&module, path);
            if modules.contains(&target) {
                imports.insert(path.trim_end_matches("::self").rsplit("::").next().unwrap_or_default(), target);
            }
        }
        let resolved = |path: &String| match path.split_once("::") {
            Some((first, rest)) if imports.contains_key(first) => owner(&from_root(&imports[first], rest)),
            _ => owner(&from_root(&module, path)),
        };
        let mut used: BTreeSet<String> = paths.iter().filter(is_whole).filter_map(resolved).collect();
        if module.starts_with("model::") && CALLS_OF_THE_TABLE.iter().any(|call| file.code().contains(call)) {
            used.insert("model::kind::table".to_owned());
        }
        used.remove(&module);
        uses.insert(module, used);
    }
    uses
}

/// The files that a file uses, directly or through others.
fn reachable<'u>(uses: &'u BTreeMap<String, BTreeSet<String>>, from: &'u str) -> BTreeSet<&'u str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for used in &uses[module] {
            if seen.insert(used.as_str()) {
                open.push(used);
            }
        }
    }
    seen
}

#[test]
fn files_do_not_use_each_other_in_circles() {
    // What a key is made of depends on nothing else, so that everything can depend on keys.
    let model = uses("src/model");
    assert_eq!(model["model::kind"], BTreeSet::new());
    assert_eq!(model["model::key"], BTreeSet::from(["model::id".to_owned(), "model::kind".to_owned()]));

    for (folder, most) in LARGEST_CIRCLES {
        let uses = uses(folder);
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            uses.keys().map(|module| (module.as_str(), reachable(&uses, module))).collect();
        let circle = |module: &&str| -> Vec<&str> {
            reached[module].iter().filter(|other| reached[*other].contains(module)).copied().collect()
        };
        let largest = reached.keys().map(circle).max_by_key(Vec::len).unwrap_or_default();
        assert!(largest.len() <= most, "a circle of {} files in {folder}: {largest:?}", largest.len());
    }
}
