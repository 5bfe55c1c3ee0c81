//! The shares of the history (D77): nobody can push out what others have recorded.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::support::manifests::edge_with;
use crate::support::program::{Folder, Serve, until};

/// A share is an eighth of it.
const RECORDS: usize = 8000;
const SHARE: usize = RECORDS / 8;
const WRITERS: usize = 8;

fn token(folder: &Folder, owner: &str, role: &str) -> String {
    folder.ok(&format!("keys create --role {role} --owner {owner}")).out.trim().to_owned()
}

fn created(serve: &Serve, token: &str) -> String {
    let answer = serve.call_as(token, "POST", "/edges/https", &json!({"description": "new"}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    format!("/edges/https/{}", answer.json()["id"].as_str().unwrap())
}

fn patched(serve: &Serve, token: &str, path: &str, number: usize) -> u16 {
    let body = json!({"description": format!("number {number}")}).to_string();
    serve.call_as(token, "PATCH", path, &body).status
}

/// Changes an edge until that is refused, with several requests at a time. Returns how many were not.
fn flood(serve: &Serve, token: &str, path: &str) -> usize {
    let changed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let changed = &changed;
            scope.spawn(move || {
                for number in 0..RECORDS {
                    match patched(serve, token, path, number * WRITERS + writer) {
                        200 => changed.fetch_add(1, Ordering::Relaxed),
                        429 => return,
                        status => panic!("{status}"),
                    };
                }
            });
        }
    });
    changed.into_inner()
}

#[test]
fn an_owner_cannot_push_out_what_others_have_recorded() {
    let folder = Folder::new();
    let admin = token(&folder, "usr_admin", "admin");
    let (flooding, other) = (token(&folder, "usr_flood", "editor"), token(&folder, "usr_other", "editor"));
    let second = token(&folder, "usr_flood", "editor");
    let options = format!("--history-records {RECORDS}");
    let serve = folder.serve(&options);
    let (own, others) = (created(&serve, &flooding), created(&serve, &other));
    let changed = flood(&serve, &flooding, &own);
    assert!((SHARE - 1..=SHARE + 2 * WRITERS).contains(&changed), "{changed}");

    // The answer says when to go on, and nothing of the refused request is recorded.
    let records = || serve.call_as(&admin, "GET", "/history?limit=1", "").json()["history"][0]["id"].clone();
    let before = records();
    let refused = serve.call_as(&flooding, "DELETE", &own, "");
    assert_eq!(refused.status, 429, "{refused:?}");
    for expected in ["retry-after: ", "ERR_EDGEWRIGHT_RATE_LIMITED", "usr_flood", "its share of the history"] {
        assert!(refused.contains(expected), "{expected}: {refused:?}");
    }
    // Another key of the owner has the same share.
    assert_eq!(patched(&serve, &second, &own, 0), 429);
    let text = edge_with("a", "{hostports: ['a.example.com:443']}");
    let run = |dry_run: bool| {
        let files = json!([{"name": "a.yaml", "text": text}]);
        let body = json!({"source": "shop", "files": files, "dry_run": dry_run}).to_string();
        serve.call_as(&flooding, "POST", "/reconciliations", &body).status
    };
    assert_eq!(run(false), 429);
    assert_eq!(serve.call_as(&flooding, "POST", "/rollbacks", &json!({"to": 1}).to_string()).status, 429);
    assert_eq!(records(), before);

    // Reads and dry runs are answered, and all others work as before.
    assert_eq!(run(true), 200);
    assert_eq!(serve.call_as(&flooding, "GET", &own, "").status, 200);
    assert_eq!(patched(&serve, &other, &others, 1), 200);
    assert_eq!(patched(&serve, &admin, &own, 1), 200);
    drop(serve);

    // A restart empties no share: the server counts the records again, soon after its start.
    let serve = folder.serve(&options);
    let mut more = 0;
    until("a full share", || {
        more += 1;
        (patched(&serve, &flooding, &own, more) == 429).then_some(())
    });
    assert!(more < SHARE / 2, "{more}");
    assert_eq!(patched(&serve, &other, &others, 2), 200);
}

#[test]
fn an_admin_without_a_scope_has_no_share() {
    let folder = Folder::new();
    let admin = token(&folder, "usr_admin", "admin");
    let serve = folder.serve(&format!("--history-records {RECORDS}"));
    let edge = created(&serve, &admin);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (serve, admin, edge) = (&serve, &admin, &edge);
            scope.spawn(move || {
                for number in 0..SHARE / WRITERS + 10 {
                    assert_eq!(patched(serve, admin, edge, number * WRITERS + writer), 200);
                }
            });
        }
    });
}
