//! Commits that must be signed: an unsigned or foreign one is not applied (D89).

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{
    git::{git, head},
    manifests::edge_with,
    program::{CONFIG, Folder, Serve, until},
    users::client,
};

/// Commits a description of the edge; with a key, the commit is signed.
fn commit(folder: &Folder, description: &str, key: Option<&str>) -> String {
    folder.write("repo/one.yaml", &edge_with("one", &format!("{{description: {description}}}")));
    git(folder, "-C repo add .");
    let sign = key.map(|key| {
        let key = folder.path(key).display().to_string();
        (format!("-c gpg.format=ssh -c user.signingkey={key}"), "-S")
    });
    let (options, sign) = sign.unwrap_or_default();
    git(folder, &format!("-C repo {options} commit -q {sign} -m next"));
    head(folder, "repo")
}

/// Moves the branch to a commit.
fn move_to(folder: &Folder, commit: &str) {
    git(folder, &format!("-C repo reset -q --hard {commit}"));
}

/// Follows a revision of the repository, such as `ref: main`.
fn follow(folder: &Folder, keys: &str) {
    folder.write(CONFIG, &format!("sources:\n- {{name: shop, repository: repo, {keys}}}\n"));
}

/// An empty repository, the keys `own` and `foreign`, and a file of signers that allows the first one. None if there is no
/// program for the keys.
fn with_keys() -> Option<Folder> {
    if Command::new("ssh-keygen").arg("-?").output().is_err() {
        eprintln!("skipped: ssh-keygen is not installed");
        return None;
    }
    let folder = Folder::new();
    for key in ["own", "foreign"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-C", "", "-N", "", "-f"]).arg(folder.path(key));
        assert!(command.status().unwrap().success());
    }
    folder.write("signers", &format!("t@example.com namespaces=\"git\" {}", folder.read("own.pub")));
    git(&folder, "init -q -b main repo");
    Some(folder)
}

/// Waits until a commit is applied.
fn synced(serve: &Serve, commit: &str) -> Value {
    until("the commit", || {
        let found = serve.get("/sources/shop").json();
        (found["state"] == "Synced" && found["last_applied"]["commit"] == commit).then_some(found)
    })
}

/// Serves a source that has applied two signed commits, and returns them.
fn serve_two(folder: &Folder, keys: &str) -> (Serve, [String; 2]) {
    follow(folder, keys);
    let first = commit(folder, "first", Some("own"));
    let serve = folder.serve("");
    synced(&serve, &first);
    let second = commit(folder, "second", Some("own"));
    synced(&serve, &second);
    (serve, [first, second])
}

fn shown(serve: &Serve) -> String {
    let list = serve.get("/edges/https").json();
    list["https_edges"][0]["description"].as_str().unwrap_or_default().to_owned()
}

/// Waits until a commit is refused with a code, and returns why.
fn refused(serve: &Serve, commit: &str, code: &str) -> Value {
    let found = until("the refusal", || {
        let found = serve.get("/sources/shop").json();
        let message = found["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
        message.contains(commit).then_some(found)
    });
    assert_eq!((&found["state"], &found["conditions"][0]["reason"]), (&json!("Refused"), &json!("Refused")));
    assert_eq!(found["diagnostics"][0]["code"], format!("ERR_EDGEWRIGHT_{code}"), "{found:#}");
    assert_eq!(found["last_attempt"]["commit"], commit, "{found:#}");
    until("the attempt", || {
        let history = serve.get(&format!("/history?commit={commit}")).json();
        let mut attempts = history["history"].as_array().unwrap().iter();
        attempts.any(|it| it["outcome"] == "refused").then_some(())
    });
    found["conditions"][0]["message"].clone()
}

#[test]
fn only_a_commit_with_the_signature_of_an_allowed_key_is_applied() {
    let Some(folder) = with_keys() else { return };
    commit(&folder, "signed", Some("own"));
    follow(&folder, "ref: main, verify: {allowed_signers_file: signers}");
    let serve = folder.serve("");
    assert_eq!(shown(&serve), "signed");

    let unsigned = commit(&folder, "unsigned", None);
    let why = refused(&serve, &unsigned, "UNVERIFIED_COMMIT");
    assert_eq!(why, format!("commit {unsigned} is not applied: it is not signed"));
    let foreign = commit(&folder, "foreign", Some("foreign"));
    let why = refused(&serve, &foreign, "UNVERIFIED_COMMIT");
    assert!(why.as_str().unwrap().contains("signers does not list its key SHA256:"), "{why}");
    assert_eq!(shown(&serve), "signed", "the last good state stays");

    // A signed commit is applied, whatever is before it.
    commit(&folder, "signed again", Some("own"));
    until("the signed commit", || (shown(&serve) == "signed again").then_some(()));
    until("its status", || (serve.get("/sources/shop").json()["state"] == "Synced").then_some(()));

    // A key that may not sign any more is noticed at the next sync.
    folder.write("signers", "# nobody\n");
    assert_eq!(serve.call("POST", "/sources/shop/resume", "").status, 200);
    refused(&serve, &head(&folder, "repo"), "UNVERIFIED_COMMIT");
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_branch_that_is_moved_back_is_refused_until_somebody_accepts_the_commit() {
    let Some(folder) = with_keys() else { return };
    let (serve, [first, second]) = serve_two(&folder, "ref: main, verify: {allowed_signers_file: signers}");
    move_to(&folder, &first);
    let why = refused(&serve, &first, "REWOUND");
    let said =
        format!("commit {first} is not applied: it does not descend from {second}, the commit that was applied last");
    assert_eq!(why, said);
    let newest = |serve: &Serve| serve.get("/history?limit=1").json()["history"][0].clone();
    let of = |record: &Value| (record["outcome"].clone(), record["message"].clone());
    until("the record", || (of(&newest(&serve)) == (json!("refused"), json!(said))).then_some(()));
    // Nor is another one beside it.
    let side = commit(&folder, "side", Some("own"));
    refused(&serve, &side, "REWOUND");
    assert_eq!(shown(&serve), "second");
    assert_eq!(serve.stop().code, 0);

    // A restart forgets nothing, and neither does the history.
    let serve = folder.serve("");
    refused(&serve, &side, "REWOUND");
    assert_eq!(serve.stop().code, 0);
    std::fs::remove_file(folder.path("store/applied")).unwrap();
    let serve = folder.serve("");
    refused(&serve, &side, "REWOUND");
    assert_eq!(shown(&serve), "second");
    // What was not applied can be taken back.
    move_to(&folder, &second);
    synced(&serve, &second);

    move_to(&folder, &first);
    refused(&serve, &first, "REWOUND");
    for body in [r#"{"accept_commit": "main"}"#, r#"{"accept_commit": ""}"#] {
        let answer = serve.call("POST", "/sources/shop/resume", body);
        assert_eq!((answer.status, answer.code().as_str()), (400, "ERR_EDGEWRIGHT_INVALID_FORMAT"), "{}", answer.body);
    }
    let run = client(&folder, &serve, &format!("resume shop --accept-commit {first}"));
    let said = format!("Source shop continues from commit {first}.");
    assert_eq!((run.code, run.err.contains(&said)), (0, true), "{}", run.all());
    synced(&serve, &first);
    assert_eq!(shown(&serve), "first");
    let records = serve.get("/history?source=shop").json();
    let accepted = |record: &Value| of(record) == (json!("resumed"), json!(format!("accepted commit {first}")));
    assert!(records["history"].as_array().unwrap().iter().any(accepted), "{records:#}");

    // The source goes on from there, also to what it had before.
    move_to(&folder, &second);
    synced(&serve, &second);
    assert_eq!(serve.stop().code, 0);
    move_to(&folder, &first);
    folder.ok(&format!("resume shop --accept-commit {first}"));
    let serve = folder.serve("");
    synced(&serve, &first);
    assert_eq!(shown(&serve), "first");
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_refused_commit_of_an_isolated_source_is_refused_by_each_sync() {
    let Some(folder) = with_keys() else { return };
    let keys = "ref: main, interval: 1s, isolate: true, verify: {allowed_signers_file: signers}";
    let (serve, [first, second]) = serve_two(&folder, keys);
    let unsigned = commit(&folder, "unsigned", None);
    for (moved, code) in [(&unsigned, "UNVERIFIED_COMMIT"), (&first, "REWOUND")] {
        move_to(&folder, moved);
        refused(&serve, moved, code);
        let begun = serve.get("/sources/shop").json()["syncs_begun"].as_u64().unwrap();
        until("two more syncs", || {
            (serve.get("/sources/shop").json()["syncs_ended"].as_u64().unwrap() > begun + 1).then_some(())
        });
        refused(&serve, moved, code);
        let found = serve.get("/sources/shop").json();
        assert_eq!((shown(&serve).as_str(), &found["last_applied"]["commit"]), ("second", &json!(second)), "{found:#}");
    }
    move_to(&folder, &second);
    synced(&serve, &second);
}

#[test]
fn a_rollback_and_a_change_of_the_configuration_are_no_replays() {
    let Some(folder) = with_keys() else { return };
    let verified = |revision: &str| follow(&folder, &format!("{revision}, verify: {{allowed_signers_file: signers}}"));
    verified("ref: main");
    let first = commit(&folder, "first", Some("own"));
    let serve = folder.serve("");
    let revision = synced(&serve, &first)["last_applied"]["revision"].clone();
    let second = commit(&folder, "second", Some("own"));
    synced(&serve, &second);

    // The commit that a rollback left stays the last one.
    let answer = serve.call("POST", "/rollbacks", &json!({"to": revision}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    until("the rollback", || {
        let found = serve.get("/sources/shop").json();
        (found["conditions"][0]["reason"] == "RolledBack").then_some(())
    });
    assert_eq!(shown(&serve), "first");
    let third = commit(&folder, "third", Some("own"));
    synced(&serve, &third);

    git(&folder, &format!("-C repo branch former {first}"));
    for (revision, commit) in [("ref: former", &first), ("ref: main", &third)] {
        verified(revision);
        synced(&serve, commit);
    }
    verified(&format!("ref: '{second}'"));
    synced(&serve, &second);
    git(&folder, &format!("-C repo tag v1.0.0 {first}"));
    git(&folder, &format!("-C repo tag v1.1.0 {third}"));
    verified("semver: ^1");
    synced(&serve, &third);
    // The highest version is a lower one.
    git(&folder, "-C repo tag -d v1.1.0");
    refused(&serve, &first, "REWOUND");
    assert_eq!(shown(&serve), "third");
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_branch_of_an_unverified_source_that_is_moved_back_is_applied_with_one_warning() {
    let folder = Folder::new();
    git(&folder, "init -q -b main repo");
    follow(&folder, "ref: main");
    let first = commit(&folder, "first", None);
    let serve = folder.serve("");
    synced(&serve, &first);
    let second = commit(&folder, "second", None);
    let warnings = |found: &Value| -> Vec<Value> {
        let found = found["diagnostics"].as_array().unwrap().iter();
        found.filter(|it| it["code"] == "ERR_EDGEWRIGHT_REWOUND").cloned().collect()
    };
    assert!(warnings(&synced(&serve, &second)).is_empty());
    assert_eq!(serve.stop().code, 0);

    move_to(&folder, &first);
    let serve = folder.serve("");
    let found = synced(&serve, &first);
    assert_eq!(shown(&serve), "first");
    let warned = warnings(&found);
    assert!(warned.len() == 1 && warned[0]["severity"] == "warning", "{found:#}");
    let said = format!("commit {first} does not descend from {second}, the commit that was applied before it");
    serve.wait_for(&said);
    let third = commit(&folder, "third", None);
    assert!(warnings(&synced(&serve, &third)).is_empty());
    assert_eq!(serve.said().matches(&said).count(), 1, "{}", serve.said());
}
