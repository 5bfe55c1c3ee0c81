//! `edgewright diff`: two folders of manifests, or two revisions of one, compared without any store.

use std::{fs, os::unix::fs::symlink, process::Command};

use crate::support::{
    git::git,
    manifests::edge_with,
    program::{Folder, copy, finish},
};

#[test]
fn two_folders_are_compared_without_a_store() {
    let folder = Folder::with_storefront();
    copy(&folder.path("storefront"), &folder.path("next"));
    let same = folder.ok("diff --detailed-exitcode storefront next");
    assert!(same.out.contains("No changes: 24 unchanged."), "{}", same.out);

    folder.edit("next/shop/storefront.yaml", "Product pages", "All products");
    fs::remove_file(folder.path("next/teams/search/route.yaml")).unwrap();
    let run = folder.run("diff --detailed-exitcode storefront next");
    assert_eq!(run.code, 2, "{}", run.all());
    assert!(run.out.contains("+ description: All products") && run.out.contains("- HttpsEdgeRoute storefront/search"));
    assert!(run.out.contains("0 to create, 1 to change, 0 to replace, 1 to delete, 22 unchanged"), "{}", run.out);
    // The way back is the opposite.
    let back = folder.ok("diff next storefront");
    assert!(back.out.contains("1 to create, 1 to change, 0 to replace, 0 to delete, 22 unchanged"), "{}", back.out);
    assert!(!folder.path("edgewright.db").exists() && !folder.path("store").exists());
}

#[test]
fn either_folder_can_be_at_fault() {
    let folder = Folder::with_storefront();
    folder.write("bad/a.yaml", &edge_with("a", "{hostport: []}"));
    for line in ["diff bad storefront", "diff storefront bad"] {
        let run = folder.run(line);
        assert_eq!((run.code, run.err.contains("bad/a.yaml:4:8")), (3, true), "{line}: {}", run.err);
    }
}

/// The example in a repository of git, as two commits: `before`, and `HEAD`, where an edit and a new secret are.
fn in_git() -> Folder {
    let folder = Folder::with_storefront();
    git(&folder, "init -q -b main");
    git(&folder, "add .");
    git(&folder, "commit -q -m first");
    git(&folder, "tag before");
    folder.edit("storefront/shop/storefront.yaml", "Product pages", "All products");
    folder.write("storefront/secrets/stripe-webhook-secret.txt", "another\n");
    git(&folder, "commit -q -a -m second");
    folder
}

#[test]
fn two_revisions_of_one_folder_are_compared_whatever_is_checked_out() {
    let folder = in_git();
    fs::remove_dir_all(folder.path("storefront")).unwrap();
    for range in ["before..HEAD", "before..main", "before..", "before...HEAD", "HEAD~1..HEAD"] {
        let run = folder.run(&format!("diff --detailed-exitcode --rev {range} storefront"));
        assert_eq!(run.code, 2, "{range}: {}", run.all());
        assert!(run.out.contains("+ description: All products"), "{range}: {}", run.out);
        // Values come from the commit too, not from the disk.
        assert!(run.out.contains("secret: (secret, changed)"), "{range}: {}", run.out);
        assert!(run.out.contains("0 to create, 2 to change, 0 to replace, 0 to delete, 22 unchanged"), "{}", run.out);
    }
    let same = folder.ok("diff --detailed-exitcode --rev HEAD..HEAD storefront");
    assert!(same.out.contains("No changes: 24 unchanged."), "{}", same.out);
    // A part of the folder, from inside of the repository.
    let part = folder.run("diff --rev before..HEAD storefront/platform/events.yaml");
    assert_eq!(part.code, 0, "{}", part.all());
}

#[test]
fn one_revision_is_compared_with_the_files_on_disk() {
    let folder = in_git();
    let none = folder.ok("diff --detailed-exitcode --rev HEAD storefront");
    assert!(none.out.contains("No changes"), "{}", none.out);
    folder.edit("storefront/shop/storefront.yaml", "All products", "Some products");
    let run = folder.ok("diff --rev HEAD storefront");
    assert!(run.out.contains("- description: All products") && run.out.contains("+ description: Some products"));
}

#[test]
fn a_fault_of_an_old_revision_names_the_revision() {
    let folder = in_git();
    let good = folder.read("storefront/shop/storefront.yaml");
    folder.write("storefront/shop/storefront.yaml", &good.replace("match_type: path_prefix", "match_typ: path_prefix"));
    git(&folder, "commit -q -a -m third");
    let old = folder.run("diff --rev HEAD..before storefront");
    assert_eq!((old.code, old.err.contains("HEAD:storefront/shop/storefront.yaml:")), (3, true), "{}", old.err);
    let new = folder.run("diff --rev before..HEAD storefront");
    assert_eq!((new.code, new.err.contains("[storefront/shop/storefront.yaml:")), (3, true), "{}", new.err);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let folder = in_git();
    for (line, reason) in [
        ("diff storefront", "two paths are required"),
        ("diff --rev before..HEAD storefront elsewhere", "elsewhere cannot be read"),
        ("diff --rev before..nowhere storefront", "unknown Git revision `nowhere`"),
        ("diff --rev before..HEAD nowhere", "nowhere cannot be read: no such file or folder"),
        ("diff --rev before..HEAD storefront/certs", "no manifests found in storefront/certs"),
        ("diff --rev before..HEAD /", "is not in a readable Git repository"),
    ] {
        let run = folder.run(line);
        assert!([1, 3].contains(&run.code) && run.err.contains(reason), "{line}: {} {}", run.code, run.err);
        assert!(run.err.contains("ERR_EDGEWRIGHT_") && run.out.is_empty(), "{line}: {}", run.all());
    }
}

#[test]
fn a_commit_that_cannot_be_read_is_not_an_unknown_revision() {
    let folder = in_git();
    let out_of = |line: &str| {
        let output = Command::new("git").args(line.split(' ')).current_dir(folder.path("")).output().unwrap();
        assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // An author without an address, which other programs write.
    folder.write("broken", &out_of("cat-file -p HEAD").replace("<t@example.com> ", ""));
    let broken = out_of("hash-object -t commit -w --literally broken").trim().to_owned();
    folder.write(".git/refs/heads/main", &format!("{broken}\n"));
    folder.write(".git/refs/heads/gone", &format!("{}\n", "1".repeat(40)));
    for revision in ["main", "heads/main", "main~1", "gone", &broken] {
        let run = folder.run(&format!("diff --rev before..{revision} storefront"));
        let reason = format!("cannot read the commit of Git revision `{revision}`: ");
        let told = run.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            [1, 3].contains(&run.code) && told.contains(&reason) && !told.contains("unknown"),
            "{revision}: {}",
            run.err
        );
    }
    for revision in ["nowhere", "before~9", "before:none", "2222222222222222222222222222222222222222"] {
        let run = folder.run(&format!("diff --rev before..{revision} storefront"));
        assert!(run.err.contains("unknown Git revision"), "{revision}: {}", run.err);
    }
}

#[test]
fn links_inside_of_a_commit_are_followed_and_never_out_of_it() {
    let folder = in_git();
    symlink("../storefront/secrets", folder.path("storefront/linked")).unwrap();
    let text = folder.read("storefront/shop/storefront.yaml");
    assert!(text.contains("../secrets/"), "{text}");
    folder.write("storefront/shop/storefront.yaml", &text.replace("../secrets/", "../linked/"));
    git(&folder, "add .");
    git(&folder, "commit -q -m links");
    let run = folder.ok("diff --rev HEAD~1..HEAD storefront");
    assert!(run.out.contains("No changes: 24 unchanged."), "{}", run.all());

    fs::remove_file(folder.path("storefront/linked")).unwrap();
    symlink("/etc", folder.path("storefront/linked")).unwrap();
    git(&folder, "add .");
    git(&folder, "commit -q -m out");
    let run = folder.run("diff --rev HEAD~1..HEAD storefront");
    assert_eq!((run.code, run.err.contains("a link leads outside the repository")), (3, true), "{}", run.all());
}

#[test]
fn tokens_stay_outside_of_the_source_tree_at_every_revision() {
    let folder = Folder::new();
    let key = |file: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {{name: ci}}\nspec: {{token_file: {file:?}, description: d}}\n"
        )
    };
    folder.write("repository/keys/ci.yaml", &key("../../ci.token"));
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(&folder, &format!("-C repository {line}"));
    }
    folder.write("repository/keys/ci.yaml", &key("../../ci.token").replace("description: d", "description: other"));
    git(&folder, "-C repository commit -q -a -m second");
    let diff = |line: &str| {
        let mut command = folder.command(line);
        command.current_dir(folder.path("repository"));
        finish(command, "")
    };
    // The root of the repository, from wherever it is named.
    for line in ["diff --rev HEAD~1 .", "diff --rev HEAD~1..HEAD", "diff --rev HEAD~1..HEAD keys"] {
        let run = diff(line);
        assert_eq!((run.code, run.out.contains("+ description: other")), (0, true), "{line}: {}", run.all());
    }
    assert_eq!(folder.run("diff --rev HEAD~1..HEAD repository").code, 0);
    for inside in ["ci.token", "../ci.token", &folder.path("repository/ci.token").display().to_string()] {
        folder.write("repository/keys/ci.yaml", &key(inside));
        git(&folder, "-C repository commit -q -a -m inside");
        let run = diff("diff --rev HEAD..HEAD .");
        assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED")), (3, true), "{inside}: {}", run.all());
    }
}

#[test]
fn a_manifest_of_a_commit_that_a_link_reaches_outside_the_folder_is_an_error() {
    let folder = in_git();
    folder.write("more.yaml", "# outside\n");
    symlink("../more.yaml", folder.path("storefront/more.yaml")).unwrap();
    git(&folder, "add .");
    git(&folder, "commit -q -m outside");
    let run = folder.run("diff --rev HEAD..HEAD storefront");
    assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_OUTSIDE_FILE")), (3, true), "{}", run.all());
    folder.ok("diff --allow-outside-files --rev HEAD..HEAD storefront");
}
