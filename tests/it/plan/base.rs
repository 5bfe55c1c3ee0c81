//! `--base`: a review lists what is new, and counts the warnings that were there before.

use crate::support::{
    git::git,
    manifests::edge_with,
    program::{Folder, finish, has},
};

fn manifest(names: &[&str]) -> String {
    let set = |name: &&str| {
        format!(
            "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: {name}}}\nspec: {{compression: {{enabled: true}}}}\n"
        )
    };
    names.iter().map(set).collect::<Vec<_>>().join("---\n")
}

/// The manifest of an edge with a route.
fn edge() -> String {
    let route = "{name: all, match_type: path_prefix, match: /, backend: {backend_id: bkd_1}}";
    edge_with("shop", &format!("{{hostports: ['shop.example.com:443'], routes: [{route}]}}"))
}

#[test]
fn warnings_of_the_base_are_counted_and_new_ones_listed() {
    let folder = Folder::new();
    folder.write("m/edge.yaml", &edge());
    folder.write("m/old.yaml", &manifest(&["one", "two"]));
    git(&folder, "init -q -b main");
    git(&folder, "add .");
    git(&folder, "commit -q -m first");
    // What was there has moved to other lines.
    folder.write("m/old.yaml", &manifest(&["zero", "one", "two"]));
    folder.write("m/new.yaml", &manifest(&["three"]));
    for line in ["validate m", "plan m"] {
        let all = folder.run(line);
        assert_eq!((all.code, all.err.matches("no route uses the module set").count()), (0, 4), "{}", all.all());
        let new = folder.run(&format!("{line} --base main"));
        assert_eq!((new.code, new.err.matches("no route uses the module set").count()), (0, 2), "{}", new.all());
        assert!(new.err.contains("`zero`") && new.err.contains("`three`"), "{}", new.err);
        let counted = "2 warnings not listed: already in the manifests at `main`";
        assert!(new.err.contains(counted) && new.err.contains("ERR_EDGEWRIGHT_KNOWN_FINDINGS"), "{}", new.err);
        let counts = finish(folder.command(&format!("{line} --base main --format json")), "");
        let counts: serde_json::Value = serde_json::from_str(&counts.out).unwrap();
        assert_eq!(counts["summary"]["warnings"], 2, "{counts}");
    }
    let text = folder.run("validate m --base main").err;
    assert!(text.contains("3 files read: 0 errors, 2 warnings"), "{text}");
    // A folder that is new has no warnings at the base, and errors are always listed.
    folder.write("added/a.yaml", &manifest(&["four"]));
    folder.write("added/edge.yaml", &folder.read("m/edge.yaml"));
    let added = folder.ok("validate added --base main");
    assert!(added.err.contains("`four`") && !added.err.contains("not listed"), "{}", added.err);
    folder.write("m/new.yaml", "kind: [");
    let broken = folder.run("validate m --base main");
    assert!(broken.code == 3 && broken.err.contains("m/new.yaml"), "{}", broken.all());
    let unknown = finish(folder.command("validate m --base nowhere"), "");
    assert!(unknown.code != 0 && unknown.err.contains("unknown Git revision `nowhere`"), "{}", unknown.all());
    // As in a clone, which has a branch of its own only of what was checked out.
    git(&folder, "update-ref refs/remotes/origin/nowhere HEAD");
    let remote = folder.run("validate m --base nowhere");
    has(
        &remote,
        &["unknown Git revision `nowhere`; the repository has `main`", "use the remote's branch: `origin/nowhere`"],
    );
}

#[test]
fn a_difference_lists_no_warning_of_the_older_manifests() {
    let folder = Folder::new();
    for path in ["m", "before", "after"] {
        folder.write(&format!("{path}/edge.yaml"), &edge());
        folder.write(&format!("{path}/old.yaml"), &manifest(&["one", "two"]));
    }
    git(&folder, "init -q -b main");
    git(&folder, "add m");
    git(&folder, "commit -q -m first");
    for path in ["m", "after"] {
        folder.write(&format!("{path}/old.yaml"), &manifest(&["zero", "one", "two"]));
        folder.write(&format!("{path}/new.yaml"), &manifest(&["three"]));
    }
    for line in ["diff --rev main m", "diff --rev main ./m", "diff before after", "diff ./before/ after"] {
        let run = folder.ok(line);
        assert_eq!(run.err.matches("no route uses the module set").count(), 2, "{line}: {}", run.err);
        assert!(run.err.contains("`zero`") && run.err.contains("`three`"), "{line}: {}", run.err);
    }
    git(&folder, "add m");
    git(&folder, "commit -q -m second");
    // The files of neither side are on disk.
    std::fs::remove_dir_all(folder.path("m")).unwrap();
    let run = folder.ok("diff --rev main~1..main m");
    assert_eq!(run.err.matches("no route uses the module set").count(), 2, "{}", run.err);
    assert!(!folder.ok("diff --rev main..main m").err.contains("module set"));
}
