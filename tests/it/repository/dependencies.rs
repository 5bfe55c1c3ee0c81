//! The list of crates in `docs/explanation/security.md`: complete, and with a reason for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use crate::support::program::REPOSITORY;

fn read(path: &str) -> String {
    fs::read_to_string(format!("{REPOSITORY}/{path}")).unwrap()
}

/// The names in a section of `Cargo.toml`.
fn dependencies(section: &str) -> BTreeSet<String> {
    let text = read("Cargo.toml");
    let heading = format!("[{section}]");
    let lines = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.trim().to_owned());
    names.filter(|name| !name.starts_with('#')).collect()
}

/// The rows of the table, by crate: whether it parses foreign bytes, and the reason.
fn rows() -> BTreeMap<String, (String, String)> {
    let text = read("docs/explanation/security.md");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, parses, reason] = cells[..] else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        Some((name.to_owned(), (parses.to_owned(), reason.to_owned())))
    });
    rows.collect()
}

#[test]
fn each_dependency_states_whether_it_parses_foreign_bytes() {
    let (declared, rows) = (dependencies("dependencies"), rows());
    assert!(declared.len() > 50, "{declared:?}");
    let listed: BTreeSet<String> = rows.keys().cloned().collect();
    let missing: Vec<&String> = declared.difference(&listed).collect();
    let former: Vec<&String> = listed.difference(&declared).collect();
    assert!(
        missing.is_empty() && former.is_empty(),
        "add to docs/explanation/security.md: {missing:?}; remove: {former:?}"
    );
    for (name, (parses, reason)) in rows {
        assert!(["yes", "no"].contains(&parses.as_str()) && !reason.is_empty(), "{name}: {parses} {reason}");
    }
}

#[test]
fn every_package_comes_from_the_registry_with_a_checksum() {
    let lock = read("Cargo.lock");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    assert!(packages.len() > 200, "only {} packages", packages.len());
    let own = "name = \"edgewright\"";
    for package in packages.iter().filter(|package| !package.contains(own)) {
        let registry = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
        assert!(package.contains(registry) && package.contains("checksum = \""), "{package}");
    }
}
