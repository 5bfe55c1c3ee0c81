//! Commits that stand for far more than they have.
#![allow(clippy::unwrap_used)]

use std::fs;

use git2::Signature;
use miniz_oxide::deflate::compress_to_vec_zlib;

use super::files::LINK;
use super::*;

const FILE: i32 = 0o100_644;
const FOLDER: i32 = 0o040_000;
const REFUSED: &str = "more than 500000 files and folders";

/// Writes a tree with entries of one object and one mode.
fn tree(repository: &Repository, names: impl Iterator<Item = String>, id: Oid, mode: i32) -> Oid {
    let mut builder = repository.treebuilder(None).unwrap();
    for name in names {
        builder.insert(name, id, mode).unwrap();
    }
    builder.write().unwrap()
}

/// Writes the header of a blob of 60 MiB that cannot be read.
fn large(repository: &Repository) -> Oid {
    let folder = repository.path().join("objects/ab");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ab".repeat(19)), compress_to_vec_zlib(b"blob 62914560\0text", 1)).unwrap();
    Oid::from_str(&"ab".repeat(20)).unwrap()
}

/// The message of a commit that cannot be read. `write` returns its tree.
fn refused(write: impl FnOnce(&Repository) -> Oid) -> String {
    refusal(write).message
}

/// The error of a commit that cannot be read.
fn refusal(write: impl FnOnce(&Repository) -> Oid) -> Diagnostic {
    let folder = tempfile::tempdir().unwrap();
    let repository = Repository::init_bare(folder.path()).unwrap();
    let tree = write(&repository);
    let author = Signature::now("t", "t@example.com").unwrap();
    let id = {
        let tree = repository.find_tree(tree).unwrap();
        repository.commit(Some("HEAD"), &author, &author, "edge", &tree, &[]).unwrap()
    };
    let (files, mut diagnostics) = CommitTree::at(repository, id, "main".into(), &[PathBuf::new()]).manifests();
    assert!(files.is_empty() && diagnostics.len() == 1, "{} files, {diagnostics:?}", files.len());
    diagnostics.pop().unwrap()
}

#[test]
fn a_link_has_a_path_and_nothing_else() {
    let link = |write: &dyn Fn(&Repository) -> Oid| {
        refused(|repository| tree(repository, ["l".to_owned()].into_iter(), write(repository), LINK))
    };
    let long = link(&large);
    assert!(long.ends_with(" cannot be read: l: a link is longer than 4096 bytes"), "{long}");
    let odd = link(&|repository| repository.blob(b"a\0b").unwrap());
    assert!(odd.ends_with(" cannot be read: l: no such file or folder"), "{odd}");
}

#[test]
fn manifests_that_are_too_large_together_are_not_read() {
    let manifests = |count: usize| {
        refused(|repository| tree(repository, (0..count).map(|at| format!("{at}.yaml")), large(repository), FILE))
    };
    assert!(manifests(20).contains("more than 100000 manifests or more than 1024 MiB"), "{}", manifests(20));
    assert!(!manifests(1).contains("more than"), "it can be read: {}", manifests(1));
}

#[test]
fn hidden_files_count() {
    let error = refusal(|repository| {
        let hidden = repository.blob(b"text").unwrap();
        let hidden = tree(repository, (0..6_000).map(|at| format!(".{at}")), hidden, FILE);
        tree(repository, (0..100).map(|at| format!("{at}")), hidden, FOLDER)
    });
    assert!(error.message.ends_with(REFUSED), "{error:?}");
    assert!(error.help.is_some_and(|help| help.contains("`.edgewrightignore`")));
}

#[test]
fn the_parts_of_links_count() {
    let message = refused(|repository| {
        let mut deep = repository.blob(b"text").unwrap();
        for depth in 0..95 {
            deep = tree(repository, ["d".to_owned()].into_iter(), deep, if depth == 0 { FILE } else { FOLDER });
        }
        let link = repository.blob("d/".repeat(96).trim_end_matches('/').as_bytes()).unwrap();
        let mut builder = repository.treebuilder(None).unwrap();
        builder.insert("d", deep, FOLDER).unwrap();
        for at in 0..6_000 {
            builder.insert(format!("l{at}"), link, LINK).unwrap();
        }
        builder.write().unwrap()
    });
    assert!(message.ends_with(REFUSED), "{message}");
}
