//! A process that is killed in the middle of applying two thousand routes leaves the old or the new revision, whole.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use edgewright::{Store, resources::Kind, storage::Query};

use crate::support::program::{Folder, copy, rounds};

const EDGES: usize = 100;
const ROUTES_OF_AN_EDGE: usize = 20;
/// Revision, edges and routes, before and after.
const OLD: (u64, usize, usize) = (1, 1, 10);
const NEW: (u64, usize, usize) = (2, EDGES, EDGES * ROUTES_OF_AN_EDGE);

/// Edges with their routes, as one file.
fn manifests(names: impl Iterator<Item = String>, routes: usize) -> String {
    let mut text = String::new();
    for name in names {
        let _ = write!(
            text,
            "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: [\"{name}.example.com:443\"]\n  routes:\n"
        );
        for route in 0..routes {
            let _ = writeln!(
                text,
                "    - {{name: r{route}, match_type: path_prefix, match: /r{route}, backend: {{backend_id: bkd_{route}}}}}"
            );
        }
    }
    text
}

/// Begins to apply the new state. The receiver hears when the whole plan has been printed: the commit comes next.
fn apply(folder: &Folder, store: &str) -> (Child, Receiver<()>) {
    let mut command = folder.command(&format!("reconcile --max-deletes 100% --store {store} new"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (tell, planned) = channel();
    // It ends with the process, whose end of the pipe closes then.
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if line.ends_with(" unchanged") {
                let _ = tell.send(());
            }
        }
    });
    (child, planned)
}

/// Opens a store as the next start of the program would, and counts what it holds.
fn state(store: &Path) -> (u64, usize, usize) {
    let store = Store::open(store).unwrap_or_else(|error| panic!("{}: {error}", error.code));
    let snapshot = store.snapshot();
    let count = |kind: Kind| snapshot.iter().filter(|entry| entry.key.kind == kind).count();
    let (edges, routes) = (count(Kind::HttpsEdge), count(Kind::HttpsEdgeRoute));
    assert_eq!(edges + routes, snapshot.len(), "there is something else");
    for entry in snapshot.iter() {
        let parent = entry.key.parent_key();
        assert!(parent.is_none_or(|edge| snapshot.get(&edge).is_some()), "{} has lost its edge", entry.key);
    }
    assert_eq!(
        store.history(&Query::All, u64::MAX, 10).unwrap().len() as u64,
        snapshot.revision,
        "history belongs to its revision"
    );
    (snapshot.revision, edges, routes)
}

#[test]
fn a_store_survives_kill_9() {
    let rounds = rounds(4, 20);
    let folder = Folder::new();
    folder.write("old/old.yaml", &manifests(["old".to_owned()].into_iter(), OLD.2));
    for file in 0..4 {
        let names = (file..EDGES).step_by(4).map(|edge| format!("e{edge}"));
        folder.write(&format!("new/{file}.yaml"), &manifests(names, ROUTES_OF_AN_EDGE));
    }
    folder.ok("reconcile --store before old");
    let copied = |name: &str| copy(&folder.path("before"), &folder.path(name));

    // One run to its end tells how long each half takes.
    copied("whole");
    let start = Instant::now();
    let (mut child, planned) = apply(&folder, "whole");
    planned.recv().unwrap();
    let planning = start.elapsed();
    assert!(child.wait().unwrap().success());
    let committing = start.elapsed() - planning;
    assert_eq!(state(&folder.path("whole")), NEW);

    let (mut killed, mut old) = (0, Vec::new());
    for round in 0..rounds {
        let store = format!("round-{round}");
        copied(&store);
        let (mut child, planned) = apply(&folder, &store);
        // A quarter of the rounds ends while it plans, the others while it commits.
        let (quarter, rest) = (rounds / 4, rounds - rounds / 4);
        if round < quarter {
            std::thread::sleep(planning * (round + 1) / (quarter + 1));
        } else {
            let _ = planned.recv_timeout(Duration::from_secs(60));
            std::thread::sleep(committing * (round - quarter) / rest);
        }
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let path = folder.path(&store);
        match state(&path) {
            OLD => old.push(store),
            NEW => std::fs::remove_dir_all(path).unwrap(),
            other => panic!("round {round} left {other:?}, neither {OLD:?} nor {NEW:?}"),
        }
    }
    eprintln!("{killed} of {rounds} were killed; {} kept the old revision", old.len());
    assert!(killed > 0, "every run was faster than its killer");

    // What was interrupted can be done again.
    let Some(store) = old.last() else { return };
    copy(&folder.path(store), &folder.path("again"));
    folder.ok("reconcile --max-deletes 100% --store again new");
    assert_eq!(state(&folder.path("again")), NEW);
}
