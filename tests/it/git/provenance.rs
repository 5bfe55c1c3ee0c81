//! The commit that a revision is recorded with: that of all manifests, or none (D29).

use std::{fs, os::unix::fs::symlink};

use edgewright::{Disk, Store, Tree, resources::Author, storage::Query};

use crate::support::{
    git::{git, head},
    manifests::edge_with,
    program::{Folder, REPOSITORY, copy},
};

fn edge(folder: &Folder, file: &str, name: &str) {
    folder.write(file, &edge_with(name, "{description: one}"));
}

/// A repository of Git with a manifest in each of two folders.
fn repository(folder: &Folder, name: &str) {
    for part in ["a", "b"] {
        edge(folder, &format!("{name}/{part}/edge.yaml"), &format!("{name}-{part}"));
    }
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(folder, &format!("-C {name} {line}"));
    }
}

/// The commit that a reconcile of paths is recorded with, in a store of its own.
fn recorded(folder: &Folder, paths: &str) -> Option<String> {
    let _ = fs::remove_dir_all(folder.path("store"));
    folder.ok(&format!("reconcile {paths}"));
    let aside = Folder::new();
    copy(&folder.path("store"), &aside.path("store"));
    let store = Store::open(aside.path("store")).unwrap();
    match store.history(&Query::All, u64::MAX, 1).unwrap().remove(0).header.author {
        Author::Source { commit, .. } => commit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_path_counts() {
    let folder = Folder::new();
    repository(&folder, "one");
    let commit = Some(head(&folder, "one"));
    let dirty = commit.as_ref().map(|commit| format!("{commit}-dirty"));
    for paths in ["one", "one/a", "one/a one/b", "one/b/edge.yaml one/a"] {
        assert_eq!(recorded(&folder, paths), commit, "{paths}");
    }
    folder.edit("one/b/edge.yaml", "description: one", "description: another");
    assert_eq!(recorded(&folder, "one/a"), commit, "a change elsewhere does not count");
    for paths in ["one/b", "one/a one/b", "one/b one/a", "one"] {
        assert_eq!(recorded(&folder, paths), dirty, "{paths}");
    }
    // What is new counts as well.
    git(&folder, "-C one checkout -q .");
    edge(&folder, "one/b/new.yaml", "new");
    assert_eq!(recorded(&folder, "one/a one/b"), dirty);
}

#[test]
fn manifests_of_two_commits_have_none() {
    let folder = Folder::new();
    repository(&folder, "one");
    repository(&folder, "two");
    git(&folder, "-C two commit -q --allow-empty -m second");
    edge(&folder, "nowhere/edge.yaml", "nowhere");
    for paths in ["one/a two/a", "two/a one/a", "one/a nowhere", "nowhere one/a", "nowhere"] {
        assert_eq!(recorded(&folder, paths), None, "{paths}");
    }
    assert_eq!(recorded(&folder, "one/a one/b"), Some(head(&folder, "one")));
}

#[test]
fn a_link_leads_to_the_commit_of_its_target() {
    let folder = Folder::new();
    repository(&folder, "one");
    symlink("one/a", folder.path("current")).unwrap();
    assert_eq!(recorded(&folder, "current"), Some(head(&folder, "one")));
}

#[test]
fn what_is_read_and_not_in_the_commit_makes_it_dirty() {
    let folder = Folder::new();
    repository(&folder, "one");
    let pem = fs::read_to_string(format!("{REPOSITORY}/examples/storefront/certs/staff-devices.pem")).unwrap();
    let authority = |file: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {{name: staff}}\n\
             spec: {{ca_pem: {{from_file: {file}}}}}\n"
        )
    };
    folder.write("one/.gitignore", "*.local.yaml\n*.local.pem\n*.txt\n");
    folder.write("one/a/ca.yaml", &authority("staff.pem"));
    folder.write("one/a/staff.pem", &pem);
    folder.write("one/a/notes.txt", "ignored, and never read");
    git(&folder, "-C one add .");
    git(&folder, "-C one commit -q -m second");
    let commit = Some(head(&folder, "one"));
    let dirty = commit.as_ref().map(|commit| format!("{commit}-dirty"));
    for paths in ["one", "one/a", "one/a/ca.yaml"] {
        assert_eq!(recorded(&folder, paths), commit, "{paths}");
    }
    // A manifest that Git ignores is applied all the same.
    edge(&folder, "one/b/new.local.yaml", "new");
    assert_eq!(recorded(&folder, "one/b"), dirty);
    assert_eq!(recorded(&folder, "one/a"), commit, "only what is read counts");
    // A value that Git ignores.
    folder.write("one/a/staff.local.pem", &pem);
    assert_eq!(recorded(&folder, "one/a"), commit, "only what is read counts");
    folder.write("one/a/ca.yaml", &authority("staff.local.pem"));
    git(&folder, "-C one commit -q -a -m third");
    let third = format!("{}-dirty", head(&folder, "one"));
    assert_eq!(recorded(&folder, "one/a"), Some(third));
    // A value beside the one file that is named.
    git(&folder, "-C one reset -q --hard HEAD~1");
    folder.write("one/a/staff.pem", &format!("{pem}\n"));
    assert_eq!(recorded(&folder, "one/a/ca.yaml"), dirty);
    // A file that Git is told not to look at.
    git(&folder, "-C one checkout -q .");
    git(&folder, "-C one update-index --assume-unchanged a/edge.yaml");
    folder.edit("one/a/edge.yaml", "description: one", "description: another");
    assert_eq!(recorded(&folder, "one/a"), dirty);
}

#[test]
fn a_file_that_changes_after_it_was_read_is_not_taken_for_the_commits() {
    let folder = Folder::new();
    repository(&folder, "one");
    let disk = Disk::new([folder.path("one/a")]);
    folder.edit("one/a/edge.yaml", "description: one", "description: another one");
    assert_eq!(disk.manifests().0.len(), 1);
    git(&folder, "-C one checkout -q .");
    let (commit, dirty) = (head(&folder, "one"), format!("{}-dirty", head(&folder, "one")));
    assert_eq!(disk.commit(), Some(dirty));
    disk.manifests();
    assert_eq!(disk.commit(), Some(commit));
    git(&folder, "-C one commit -q --allow-empty -m second");
    assert_eq!(disk.commit(), Some(format!("{}-dirty", head(&folder, "one"))), "read before the commit");
}
