//! `edgewright status`: since when a source is in its state, who applies one that the server does not follow, and what
//! changes while somebody watches (D83).

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::support::{
    git::{git, head},
    manifests::{edge, edge_with},
    program::{CONFIG, Serve, until},
    sources::{in_state, repository, shown, status, two_sources, until_reason},
    users::{client, client_command, run_with_token, url},
};

/// Waits until the clock, which tells whole seconds, tells another one.
fn another_second() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = second();
    until("another second", || (second() > now + 1).then_some(()));
}

#[test]
fn a_state_begins_before_a_restart_and_not_with_it() {
    let folder = two_sources();
    folder.write("wiki/three.yaml", &edge("three", "c"));
    folder.write(
        CONFIG,
        "sources:\n- {name: shop, path: shop}\n- {name: docs, path: docs}\n- {name: wiki, path: wiki, suspend: true}\n",
    );
    let serve = folder.serve("");
    folder.write("docs/two.yaml", "kind: Nothing\n");
    let states = |serve: &Serve| {
        let states = [("shop", "Synced"), ("docs", "Invalid"), ("wiki", "Suspended")];
        states.map(|(source, state)| (source, in_state(serve, source, state)["since"].clone()))
    };
    let before = states(&serve);
    assert_eq!(serve.stop().code, 0);
    another_second();
    let serve = folder.serve("");
    assert_eq!(states(&serve), before);
    folder.write("docs/two.yaml", &edge("two", "b"));
    let synced = in_state(&serve, "docs", "Synced");
    assert!(synced["since"].as_str() > before[1].1.as_str(), "{synced:#}");
}

#[test]
fn an_error_begins_the_state_of_a_source_that_had_drifted() {
    let folder = two_sources();
    folder.write(CONFIG, "sources: [{name: shop, path: shop, drift: warn}]\n");
    let serve = folder.serve("");
    let id = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    let by_hand = json!({"description": "by hand"}).to_string();
    assert_eq!(serve.call("PATCH", &format!("/edges/https/{id}"), &by_hand).status, 200);
    serve.signal("HUP");
    let drifted = until("the sync that finds the drift", || {
        let found = status(&serve, "shop");
        (found["state"] == "Drifted" && found["last_attempt"]["revision"] == json!(3)).then_some(found)
    });
    another_second();
    folder.write("shop/one.yaml", "kind: Nothing\n");
    let invalid = in_state(&serve, "shop", "Invalid");
    assert!(invalid["since"].as_str() > drifted["since"].as_str(), "{invalid:#}");
    assert_eq!(invalid["since"], invalid["conditions"][0]["last_transition_time"]);
}

#[test]
fn the_commit_is_the_one_that_is_applied_also_beside_drift_and_errors() {
    let folder = repository();
    let source = "name: shop, repository: repo, ref: main, path: edge, interval: 1s, drift: warn, isolate: true";
    folder.write(CONFIG, &format!("sources: [{{{source}}}]\n"));
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    let id = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    let by_hand = json!({"description": "by hand"}).to_string();
    assert_eq!(serve.call("PATCH", &format!("/edges/https/{id}"), &by_hand).status, 200);
    in_state(&serve, "shop", "Drifted");
    let applied = |name: &str, text: &str| {
        folder.write(&format!("repo/edge/{name}.yaml"), text);
        git(&folder, "-C repo add .");
        git(&folder, "-C repo commit -q -m next");
        let commit = head(&folder, "repo");
        let found = until("the commit", || {
            let found = status(&serve, "shop");
            (found["last_applied"]["commit"] == json!(commit)).then_some(found)
        });
        assert_eq!(found["last_attempt"]["commit"], json!(commit), "{found:#}");
        found
    };
    let hosts = "hostports: [\"one.example.com:443\", \"uno.example.com:443\"]";
    let drifted = applied("one", &edge_with("one", &format!("{{description: a, {hosts}}}")));
    assert_eq!(
        (&drifted["state"], &drifted["last_applied"]["revision"]),
        (&json!("Drifted"), &json!(4)),
        "{drifted:#}"
    );
    let run = client(&folder, &serve, "status");
    assert!(run.code == 2 && !run.out.contains("ATTEMPTED"), "{}", run.all());
    applied("two", &edge_with("two", "{x: 1}"));
    until_reason(&serve, "shop", "PartlyApplied");
    let partly = status(&serve, "shop");
    assert_eq!(partly["conditions"][0]["message"], "1 error in the manifests; the rest is applied", "{partly:#}");
}

#[test]
fn a_command_waits_until_the_files_are_synced_as_they_are_now() {
    let folder = two_sources();
    let serve = folder.serve("");
    let wait = |line: &str| client(&folder, &serve, &format!("status {line}"));
    for number in 0..5 {
        let description = format!("number {number}");
        folder.write("docs/two.yaml", &edge("two", &description));
        let run = wait("--wait");
        assert_eq!(run.code, 0, "{}", run.all());
        assert!(shown(&serve).contains(&description), "{number}\n{}", run.all());
    }
    // Nothing has changed, and nothing is due for minutes.
    let began = Instant::now();
    assert_eq!(wait("--wait=20s --source docs").code, 0);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    folder.write("docs/two.yaml", "kind: Nothing\n");
    let invalid = wait("--wait -o json");
    assert_eq!(invalid.code, 2, "{}", invalid.all());
    let list: Value = serde_json::from_str(&invalid.out).unwrap();
    assert_eq!(list["sources"][1]["state"], "Invalid");
    let list: Value = serde_yaml::from_str(&wait("-o yaml").out).unwrap();
    assert_eq!(list["sources"][1]["state"], "Invalid");
    assert_eq!(wait("-o name").out, "shop\ndocs\n");
    let watched = wait("--watch -o yaml");
    assert!(watched.code == 1 && watched.err.contains("`--watch` shows a table or `json`"), "{}", watched.all());
    let only = wait("--wait --source shop");
    assert!(only.code == 0 && only.out.contains("shop") && !only.out.contains("docs"), "{}", only.all());
    let unknown = wait("--source shpo");
    assert!(unknown.code == 1 && unknown.err.contains("did you mean `shop`?"), "{}", unknown.all());

    // A file that somebody has open for writing is waited for.
    let mut open = fs::File::options().append(true).open(folder.path("shop/one.yaml")).unwrap();
    open.write_all(b"# half a line").unwrap();
    let waits = wait("--wait=1s --source shop");
    assert_eq!(waits.code, 1, "{}", waits.all());
    assert!(waits.err.contains("not synced within 1 second: source `shop`: "), "{}", waits.err);
    drop(open);
    assert_eq!(wait("--wait --source shop").code, 0);
}

#[test]
fn whoever_may_not_apply_a_source_waits_for_the_sync_that_is_due() {
    let folder = two_sources();
    folder.write(CONFIG, "sources:\n- {name: shop, path: shop, interval: 1s}\n");
    let serve = folder.serve("");
    let viewer = client(&folder, &serve, "keys create --role viewer").out;
    let run = run_with_token(&folder, &serve, viewer.trim(), "status --wait=15s");
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_source_that_stays_invalid_is_one_attempt_across_restarts() {
    let folder = two_sources();
    folder.write("docs/two.yaml", "kind: Nothing\n");
    let attempts = |serve: &Serve| {
        let history = serve.get("/history").json();
        history["history"].as_array().unwrap().iter().filter(|record| record["outcome"] == "refused").count()
    };
    for _ in 0..2 {
        let serve = folder.serve("");
        in_state(&serve, "docs", "Invalid");
        assert_eq!(serve.stop().code, 0);
    }
    let serve = folder.serve("");
    in_state(&serve, "docs", "Invalid");
    assert_eq!(attempts(&serve), 1);
    // It is another attempt once the source was in sync, and also with another error.
    for (text, state, expected) in [
        (edge("two", "b"), "Synced", 1),
        ("kind: Nothing\n".to_owned(), "Invalid", 2),
        (edge("two", "b").replace("hostports", "hostprots"), "Invalid", 3),
    ] {
        folder.write("docs/two.yaml", &text);
        in_state(&serve, "docs", state);
        until("the attempts", || (attempts(&serve) == expected).then_some(()));
    }
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_source_that_clients_apply_shows_its_commit_and_who_applied_it() {
    let folder = repository();
    fs::remove_file(folder.path(CONFIG)).unwrap();
    let serve = folder.serve("");
    let key = serve.call("POST", "/api_keys", r#"{"owner_id": "bot_ci", "description": "CI deploy"}"#).json();
    let token = key["token"].as_str().unwrap();
    let run = run_with_token(&folder, &serve, token, "reconcile --source ci repo/edge");
    assert_eq!(run.code, 0, "{}", run.all());
    let commit = folder.read("repo/.git/refs/heads/main").trim().to_owned();
    let shown = |serve: &Serve| {
        let found = status(serve, "ci");
        assert_eq!((&found["state"], &found["conditions"][0]["reason"]), (&json!("Unknown"), &json!("NotFollowed")));
        assert_eq!(found["since"], found["last_applied"]["at"]);
        assert_eq!(found["last_applied"]["commit"], json!(commit), "{found:#}");
        let by = json!({"key_id": key["id"], "key_description": "CI deploy", "owner_id": "bot_ci"});
        assert_eq!(found["applied_by"], by, "{found:#}");
        found["last_applied"].clone()
    };
    let before = shown(&serve);
    let run = client(&folder, &serve, "status");
    let row: Vec<&str> = run.out.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!((run.code, row.len()), (0, 8), "{}", run.all());
    let revision = before["revision"].to_string();
    assert_eq!([row[0], row[1], row[3], row[4]], ["ci", "NotFollowed", &commit[..8], revision.as_str()]);
    let by = format!(" ago by \"CI deploy\" ({}) of bot_ci, not followed by the server\n", key["id"].as_str().unwrap());
    assert!(run.out.contains("\nci: applied ") && run.out.ends_with(&by), "{}", run.out);
    assert_eq!(serve.stop().code, 0);
    assert_eq!(shown(&folder.serve("")), before, "after a restart");
}

/// A running command, and the lines that it writes.
struct Watching(Child, Receiver<String>);

impl Watching {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (lines, received) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        Self(child, received)
    }

    fn next(&self, what: &str) -> String {
        self.1.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_watch_writes_each_change_without_a_terminal() {
    let folder = two_sources();
    let serve = folder.serve("");
    let watch = |line: &str| Watching::start(client_command(&folder, &url(&serve), &serve.token, line));
    let lines = watch("status --watch");
    let documents = watch("status --watch --format json");
    for source in ["shop", "docs"] {
        let line = lines.next(source);
        assert!(line.contains(&format!("Z  {source}  Synced")), "{line}");
    }
    let document = || serde_json::from_str::<Value>(&documents.next("a document")).unwrap();
    assert_eq!(document()["sources"][1]["state"], "Synced");
    folder.write("docs/two.yaml", "kind: Nothing\n");
    until("the error", || lines.next("the error").contains("Z  docs  Invalid  ").then_some(()));
    until("the error", || (document()["sources"][1]["state"] == "Invalid").then_some(()));
}
