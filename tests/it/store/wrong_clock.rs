//! A clock that is wrong removes nothing from a store, neither records of the history nor former secrets, until it has lasted
//! (D58, D96).

use edgewright::{
    Store,
    resources::{Kind, Secrets},
};

use crate::support::program::{Folder, finish};

const DAY: i64 = 24 * 3600;
const YEARS: i64 = 3 * 365 * DAY;
/// The revisions of the store.
const REVISIONS: u64 = 4;

const ROUTE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec:\n  \
    hostports: ['a.example.com:443']\n  routes:\n    - {name: hook, match_type: path_prefix, match: /, \
    webhook_verification: {provider: github, secret: {from_file: s.txt}}}\n";

fn secret(revision: u64) -> String {
    format!("hunter2-number-{revision}")
}

/// A store with a segment of the log, a data key and another secret of each revision.
fn used() -> Folder {
    let folder = Folder::new();
    folder.write("m/a.yaml", ROUTE);
    for revision in 1..=REVISIONS {
        folder.write("m/s.txt", &secret(revision));
        folder.ok("reconcile m");
        folder.ok("store rekey");
    }
    folder
}

/// Writes a checkpoint, which removes what is too old, while the clock is so many seconds ahead. Returns what the command says.
fn checkpoint(folder: &Folder, ahead: i64) -> String {
    let mut command = folder.command("store rekey");
    command.env("FAILPOINTS", format!("clock=return({ahead})"));
    let run = finish(command, "");
    assert_eq!(run.code, 0, "{}", run.all());
    run.err
}

/// The oldest record that is kept.
fn oldest(folder: &Folder) -> u64 {
    Store::open_to_read(folder.path("store")).unwrap().statistics().oldest
}

/// The secret of a revision, if it can still be decrypted.
fn secret_at(folder: &Folder, revision: u64) -> String {
    let store = Store::open_to_read(folder.path("store")).unwrap();
    let state = store.snapshot_at(revision).unwrap();
    let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let spec = route.spec().to_json(Secrets::Revealed).unwrap();
    spec["webhook_verification"]["secret"].as_str().unwrap().to_owned()
}

#[track_caller]
fn has_everything(folder: &Folder) {
    assert_eq!(oldest(folder), 1);
    for revision in 1..=REVISIONS {
        assert_eq!(secret_at(folder, revision), secret(revision), "revision {revision}");
    }
}

#[test]
fn a_clock_that_is_wrong_for_a_moment_removes_nothing() {
    let folder = used();
    // Ahead, behind, and both, with the right time between.
    for ahead in [YEARS, YEARS + 10, 0, -YEARS, 0, YEARS, -YEARS, 0] {
        checkpoint(&folder, ahead);
        has_everything(&folder);
    }
    // Any command can be the one with the wrong clock.
    let mut command = folder.command("keys create --role viewer");
    command.env("FAILPOINTS", format!("clock=return({YEARS});checkpoint.bytes=return(1)"));
    assert_eq!(finish(command, "").code, 0);
    folder.ok("keys create --role viewer");
    has_everything(&folder);
}

#[test]
fn a_server_with_a_wrong_clock_removes_nothing() {
    let folder = used();
    let serve = folder.serve_with("", &[("FAILPOINTS", &format!("clock=return({YEARS})"))]);
    for _ in 0..2 {
        assert_eq!(serve.call("POST", "/store/rekey", "").status, 200);
    }
    serve.wait_for("until the clock has shown it for a day");
    drop(serve);
    has_everything(&folder);
}

#[test]
fn a_time_that_lasts_counts_and_only_a_part_is_removed_at_once() {
    let folder = used();
    let said = checkpoint(&folder, YEARS);
    assert!(!said.contains("Removed") && !said.contains("Destroyed"), "{said}");
    has_everything(&folder);
    // A day later by the same clock. Nobody has used the store for three years.
    let said = checkpoint(&folder, YEARS + DAY + 60);
    assert_eq!(oldest(&folder), 2);
    let starts = |start: &str, end: &str| said.lines().any(|line| line.starts_with(start) && line.ends_with(end));
    assert!(starts("Removed records 1 to 1 from the history, the last of ", ": they are too old."), "{said}");
    assert!(starts("Destroyed the former data key ", ": expired."), "{said}");
    // Nothing more goes for a day, and nothing at all when the clock was wrong after all.
    for ahead in [YEARS + DAY + 3600, 0, 60] {
        checkpoint(&folder, ahead);
        assert_eq!(oldest(&folder), 2, "{ahead}");
    }
    assert_eq!(secret_at(&folder, REVISIONS), secret(REVISIONS));
    // It goes on day by day, until the newest file is left.
    let mut removed = vec![oldest(&folder)];
    for day in 3..12 {
        checkpoint(&folder, YEARS + day * 2 * DAY);
        removed.push(oldest(&folder));
    }
    assert!(removed.is_sorted_by(|one, next| next - one <= 1), "{removed:?}");
    assert!(removed.last().is_some_and(|last| *last >= REVISIONS), "{removed:?}");
}

#[test]
fn limits_of_records_do_not_wait_and_a_server_says_what_it_removes() {
    let folder = used();
    let serve = folder.serve("--history-records 1");
    assert_eq!(serve.call("POST", "/store/rekey", "").status, 200);
    serve.wait_for("Removed records 1 to ");
    assert!(serve.said().contains("it is over its limit of records or bytes"), "{}", serve.said());
    drop(serve);
    assert!(oldest(&folder) >= REVISIONS, "{}", oldest(&folder));
}
