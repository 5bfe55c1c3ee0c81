//! Revisions that are named: by Git commits, for reads and rollbacks (D93), and by the responses to changes (D115).

use std::{collections::BTreeMap, thread};

use serde_json::json;

use crate::support::{
    git::git,
    manifests::edge,
    program::{Folder, Run, until},
    users::client,
};

/// Commits and applies a description. Returns the commit.
fn applied(folder: &Folder, description: &str) -> String {
    folder.write("m/one.yaml", &edge("one", description));
    git(folder, "-C m add .");
    git(folder, &format!("-C m commit -q -m {description}"));
    folder.ok("reconcile m");
    folder.read("m/.git/refs/heads/main").trim().to_owned()
}

#[test]
fn a_commit_names_the_newest_revision_that_was_applied_from_it() {
    let folder = Folder::new();
    git(&folder, "init -q -b main m");
    let (first, second) = (applied(&folder, "first"), applied(&folder, "second"));
    let short = &first[..9];
    for at in ["1", short, &first] {
        let shown = folder.ok(&format!("get edges --at {at} -o json")).out;
        assert!(shown.contains("\"first\"") && !shown.contains("\"second\""), "{at}: {shown}");
    }
    assert!(folder.ok(&format!("get edges --at {second} -o json")).out.contains("\"second\""));
    for (at, code, says) in [
        ("3", "ERR_EDGEWRIGHT_REVISION_NOT_FOUND", "the store is at revision 2"),
        ("0000000f", "ERR_EDGEWRIGHT_REVISION_NOT_FOUND", "no revision was applied from commit 0000000f"),
    ] {
        let run = folder.run(&format!("get edges --at {at}"));
        assert!(run.code == 1 && run.err.contains(code) && run.err.contains(says), "{at}: {}", run.all());
    }
    let usage = folder.run("get edges --at main");
    assert!(usage.code == 1 && usage.err.contains("at least 7 digits of a commit ID"), "{}", usage.all());
    let run = folder.ok(&format!("rollback --to {short}"));
    assert!(run.err.contains("Applied as revision 3."), "{}", run.err);

    let serve = folder.serve("");
    let shown = client(&folder, &serve, &format!("get edges --at {} -o json", &second[..7]));
    assert!(shown.code == 0 && shown.out.contains("\"second\""), "{}", shown.all());
    let run = client(&folder, &serve, &format!("rollback --to {second}"));
    assert!(run.code == 0 && run.err.contains("Applied as revision "), "{}", run.all());
    assert!(serve.get("/edges/https").body.contains("\"second\""));
    for (at, says) in [("0000000f", "no revision was applied from commit 0000000f"), ("7654321", "does not exist")] {
        let run = client(&folder, &serve, &format!("get edges --at {at}"));
        assert!(run.code == 1 && run.err.contains(says), "{at}: {}", run.all());
    }
}

#[test]
fn a_commit_that_changes_nothing_is_the_revision_that_it_is_in_sync_with() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    git(&folder, "init -q -b main m");
    git(&folder, "-C m add .");
    git(&folder, "-C m commit -q -m first");
    folder.write("edgewright.config.yaml", "sources: [{name: shop, repository: m, ref: main}]\n");
    let serve = folder.serve("");
    git(&folder, "-C m commit -q --allow-empty -m nothing");
    let commit = folder.read("m/.git/refs/heads/main").trim().to_owned();
    until("the commit", || (serve.get("/sources/shop").json()["last_applied"]["commit"] == commit).then_some(()));
    for at in [commit.as_str(), &commit[..9]] {
        let shown = serve.get(&format!("/edges/https?at={at}")).json();
        assert_eq!(shown["https_edges"][0]["description"], json!("first"), "{at}: {shown}");
        let shown = client(&folder, &serve, &format!("get edges --at {at} -o json"));
        assert!(shown.code == 0 && shown.out.contains("\"first\""), "{at}: {}", shown.all());
    }
    assert_eq!(serve.get("/edges/https?at=0000000f").status, 404);
}

#[test]
fn a_revision_that_does_not_exist_is_one_error_everywhere() {
    let folder = Folder::new();
    assert_eq!(folder.serve("").stop().code, 0, "the first start makes a key");
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.ok("reconcile m");
    let last = folder.snapshot("store").revision;
    let lines = ["history show 99", "rollback --to 99", "rollback --to 99 --dry-run", "get edges --at 99"];
    let local: Vec<Run> = lines.iter().map(|line| folder.run(line)).collect();
    let serve = folder.serve("");
    let served: Vec<Run> = lines.iter().map(|line| client(&folder, &serve, line)).collect();
    for (line, run) in lines.iter().chain(&lines).zip(local.into_iter().chain(served)) {
        assert_eq!(run.code, 1, "{line}: {}", run.all());
        for said in [
            "ERR_EDGEWRIGHT_REVISION_NOT_FOUND",
            &format!("revision 99 does not exist; the store is at revision {last}"),
            "Run `edgewright history` to list the revisions",
        ] {
            assert!(run.err.contains(said), "{line}: {}", run.all());
        }
    }
    for path in ["/history/99", "/edges/https?at=99"] {
        let refused = serve.get(path);
        assert_eq!((refused.status, refused.code().as_str()), (404, "ERR_EDGEWRIGHT_REVISION_NOT_FOUND"), "{path}");
    }
}

#[test]
fn latest_is_the_current_revision_for_every_command() {
    let folder = Folder::new();
    assert_eq!(folder.serve("").stop().code, 0, "the first start makes a key");
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.ok("reconcile m");
    folder.write("m/one.yaml", "kind: [");
    assert_eq!(folder.run("reconcile m").code, 3, "the newest record is no revision");
    let lines = ["get edges --at latest -o json", "history show latest", "rollback --to latest"];
    let local: Vec<Run> = lines.iter().map(|line| folder.ok(line)).collect();
    assert!(local[0].out.contains("\"first\""), "{}", local[0].out);
    assert!(local[1].out.starts_with("revision 2 "), "{}", local[1].out);
    assert!(local[2].out.starts_with("No changes: "), "{}", local[2].out);
    let serve = folder.serve("");
    for (line, local) in lines.iter().zip(local) {
        let served = client(&folder, &serve, line);
        assert_eq!(served.code, 0, "{line}: {}", served.all());
        assert_eq!(served.out.is_empty(), local.out.is_empty(), "{line}");
    }
    let [latest, second] = ["history show latest", "history show 2"].map(|line| client(&folder, &serve, line).out);
    assert_eq!(latest, second);
}

#[test]
fn the_response_to_a_change_names_the_revision_that_it_has_made() {
    const CLIENTS: usize = 8;
    const CHANGES: usize = 20;
    let folder = Folder::new();
    let serve = folder.serve("");
    let create = |client: usize, number: usize| -> (u64, String) {
        let body = json!({"hostports": [format!("host-{client}-{number}.example.com:443")]}).to_string();
        let created = serve.call("POST", "/edges/https", &body);
        assert_eq!(created.status, 201, "{}", created.body);
        let revision = created.header("edgewright-revision")[0].parse().unwrap();
        (revision, created.json()["id"].as_str().unwrap().to_owned())
    };
    let create_all =
        |client: usize| -> Vec<(u64, String)> { (0..CHANGES).map(|number| create(client, number)).collect() };
    let create_all = &create_all;
    let made: BTreeMap<u64, String> = thread::scope(|scope| {
        let running: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || create_all(client))).collect();
        running.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(made.len(), CLIENTS * CHANGES, "each has its own");
    for (revision, id) in made.iter().step_by(CHANGES) {
        let at = |revision: u64| serve.get(&format!("/edges/https/{id}?at={revision}")).status;
        assert_eq!((at(revision - 1), at(*revision)), (404, 200), "{revision}");
    }
}
