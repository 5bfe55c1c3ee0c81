//! The folder of a store: what cannot be read is no empty store, and nobody else can read what is in it (D23).

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use crate::support::program::Folder;

const EDGE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {description: one}\n";

#[test]
fn a_store_that_cannot_be_looked_at_is_not_taken_for_an_empty_one() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.write("file", "x");
    symlink("circle", folder.path("circle")).unwrap();
    for store in ["circle", "circle/store", "file/store"] {
        for verb in ["plan", "reconcile", "plan --format json"] {
            let run = folder.run(&format!("{verb} --store {store} m"));
            let said = run.err.contains("ERR_EDGEWRIGHT_STORE_FAILED") && run.err.contains(store);
            assert!(run.code == 1 && said && run.out.is_empty(), "{verb} {store}: {}", run.all());
        }
    }
}

#[test]
fn a_store_of_somebody_else_is_not_taken_for_an_empty_one() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.ok("reconcile --store outer/store m");
    for name in ["outer/store", "outer"] {
        let allow = |mode| fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
        allow(0o000);
        let bound = fs::read_dir(folder.path(name)).is_err();
        let runs = ["plan", "reconcile", "export", "keys list"].map(|verb| {
            let paths = if verb.starts_with(['p', 'r']) { " m" } else { "" };
            folder.run(&format!("{verb} --store outer/store{paths}"))
        });
        allow(0o755);
        if !bound {
            eprintln!("not tried: permissions do not bind the user who runs this test");
            return;
        }
        for run in runs {
            assert_eq!((run.code, run.out.as_str()), (1, ""), "{name}: {}", run.all());
            assert!(run.err.contains("ERR_EDGEWRIGHT_STORE_FAILED") && run.err.contains("ermission"), "{}", run.err);
        }
    }
}

#[test]
fn the_files_of_a_store_are_private_in_any_folder() {
    let folder = Folder::new();
    fs::create_dir(folder.path("store")).unwrap();
    fs::set_permissions(folder.path("store"), fs::Permissions::from_mode(0o755)).unwrap();
    folder.write("m/a.yaml", EDGE);
    folder.ok("reconcile m");
    let walk = walkdir::WalkDir::new(folder.path("store")).into_iter().map(Result::unwrap);
    let files: Vec<_> = walk.filter(|entry| entry.file_type().is_file()).collect();
    assert!(!files.is_empty());
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has the mode {mode:o}", file.path().display());
    }
}
