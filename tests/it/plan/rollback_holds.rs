//! What a rollback holds stays held, whatever its manifests would lead to since (D78).

use serde_json::{Value, json};

use super::transfer::revision;
use crate::support::{
    git::{git, head},
    http::HttpAnswer,
    manifests::{edge, edge_with},
    program::{CONFIG, Folder, Serve, until},
    sources::{in_state, next_sync, repository, shown, soon_shown, status, until_reason, until_shown},
    users::client,
};

/// Sets how often the source of `m` is synced, and serves it.
fn serve_every_second(folder: &Folder) -> Serve {
    folder.write(CONFIG, "sources: [{name: shop, path: m, interval: 1s, max_deletes: 9}]\n");
    folder.serve("")
}

#[test]
fn a_rename_that_was_undone_is_not_made_up_for_by_a_new_resource() {
    let folder = Folder::new();
    let text = |metadata: &str, description: &str| {
        edge_with(
            metadata,
            &format!(
                "{{description: {description}, hostports: [\"one.example.com:443\"], routes: [{{name: cart, \
                 match_type: path_prefix, match: /cart, backend: {{backend_id: bkd_1}}}}]}}"
            ),
        )
    };
    folder.write("m/one.yaml", &text("one", "a"));
    let serve = serve_every_second(&folder);
    let before = revision(&serve);
    let edges = || serve.get("/edges/https").json()["https_edges"].clone();
    let id = edges()[0]["id"].clone();
    folder.write("m/one.yaml", &text("first, renamed_from: one", "a"));
    until("the rename", || (revision(&serve) > before).then_some(()));
    in_state(&serve, "shop", "Synced");
    assert_eq!(rollback(&serve, json!({"to": before})).status, 201);
    until_reason(&serve, "shop", "RolledBack");

    // The marker of a rename can be removed once that is applied.
    std::fs::remove_file(folder.path("m/one.yaml")).unwrap();
    folder.write("m/first.yaml", &text("first", "a"));
    let found = next_sync(&serve, "shop");
    assert_eq!(found["conditions"][0]["reason"], "RolledBack", "{found:#}");
    assert_eq!((edges().as_array().map(Vec::len), &edges()[0]["id"]), (Some(1), &id));
    folder.write("m/first.yaml", &text("first, renamed_from: one", "b"));
    until("the correction", || (edges()[0]["description"] == "b").then_some(()));
    assert_eq!((edges().as_array().map(Vec::len), &edges()[0]["id"]), (Some(1), &id));
}

#[test]
fn a_source_is_rolled_back_although_another_one_has_its_host_again() {
    for isolate in [false, true] {
        let folder = Folder::new();
        let source = |name: &str| format!("- {{name: {name}, path: {name}, interval: 1s, isolate: {isolate}}}\n");
        folder.write(CONFIG, &format!("sources:\n{}{}", source("a"), source("b")));
        let edge = |name: &str, host: &str| edge_with(name, &format!("{{hostports: [\"{host}.example.com:443\"]}}"));
        folder.write("a/one.yaml", &edge("one", "moved"));
        folder.write("b/two.yaml", &edge("two", "other"));
        let serve = folder.serve("");
        for source in ["a", "b"] {
            in_state(&serve, source, "Synced");
        }
        let before = revision(&serve);
        for (file, text) in [("a/one.yaml", edge("one", "new")), ("b/two.yaml", edge("two", "moved"))] {
            let last = revision(&serve);
            folder.write(file, &text);
            until("the move", || (revision(&serve) > last).then_some(()));
        }
        for source in ["a", "b"] {
            in_state(&serve, source, "Synced");
        }
        assert_eq!(rollback(&serve, json!({"to": before})).status, 201);
        for source in ["a", "b"] {
            let found = next_sync(&serve, source);
            assert_eq!(found["conditions"][0]["reason"], "RolledBack", "{isolate}: {found:#}");
        }
        let found = status(&serve, "b");
        assert!(found.to_string().contains("moved.example.com"), "the status says why: {found:#}");
        folder.write("a/one.yaml", &edge("one", "newer"));
        in_state(&serve, "a", "Synced");
        assert_eq!(next_sync(&serve, "b")["conditions"][0]["reason"], "RolledBack");
    }
}

/// Rolls back through the API.
pub(crate) fn rollback(serve: &Serve, body: Value) -> HttpAnswer {
    serve.call("POST", "/rollbacks", &body.to_string())
}

#[test]
fn a_loop_does_not_apply_the_manifests_that_a_rollback_left() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
    let planned = rollback(&serve, json!({"to": 2, "dry_run": true}));
    assert_eq!((planned.status, &planned.json()["summary"]["change"]), (200, &json!(1)), "{}", planned.body);
    let applied = rollback(&serve, json!({"to": 2, "expect": planned.json()["outcome"]}));
    assert_eq!((applied.status, &applied.json()["applied"]), (201, &json!(4)), "{}", applied.body);
    serve.wait_for("A rollback undid these manifests. They are not applied until they change. source=\"default\"");
    for part in ["Rolled back to revision 2 as revision 4: 0 to create, 1 to change", "~ HttpsEdge one revision=4"] {
        serve.wait_for(part);
    }
    assert_eq!(shown(&serve), ["first"]);
    let ready = serve.get("/readyz");
    assert!(ready.status == 200 && ready.body.contains("OutOfSync (RolledBack)"), "{}", ready.body);
    // The same state in other words.
    folder.write("m/one.yaml", &format!("# a comment\n{}", edge("one", "second")));
    serve.signal("HUP");
    assert_eq!(serve.stop().code, 0);

    let serve = folder.serve("--manifests m");
    serve.wait_for("A rollback undid these manifests");
    assert_eq!(shown(&serve), ["first"], "the next process knows it too");
    folder.write("m/one.yaml", &edge("one", "third"));
    until_shown(&serve, "third");
    // Other manifests were applied since, so these are as good as any.
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
}

#[test]
fn manifests_that_a_rollback_left_can_be_applied_again_after_others_were_in_sync() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
    assert_eq!(rollback(&serve, json!({"to": 2})).status, 201);
    until_reason(&serve, "default", "RolledBack");
    for (command, held, undo) in [
        ("status", "held: a rollback undid what the manifests declare; applied again when they change", " 3`"),
        ("resume default", "held by a rollback: applied again when the manifests change", "` the revision before it"),
    ] {
        let run = client(&folder, &serve, command);
        assert_eq!((run.all().matches("held").count(), run.all().contains(held)), (1, true), "{}", run.all());
        let undo = format!("undo the rollback: `edgewright rollback --source default --to{undo}");
        assert!(run.all().contains(&undo), "{}", run.all());
    }
    // The revert declares what the rollback has brought back: there is nothing to change.
    folder.write("m/one.yaml", &edge("one", "first"));
    until_reason(&serve, "default", "InSync");
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
    let told = serve.get("/history").json();
    let accepted = &told["history"][1];
    let facts = ["outcome", "revision", "changed"].map(|field| accepted[field].clone());
    assert_eq!(facts, [json!("applied"), json!(5), json!(0)], "{told:#}");
}

#[test]
fn a_commit_that_a_rollback_undid_stays_undone_and_a_later_one_with_the_same_change_does_not() {
    let folder = repository();
    let serve = folder.serve("");
    let push = |description: &str| {
        folder.write("repo/edge/one.yaml", &edge("one", description));
        git(&folder, &format!("-C repo commit -qam {description}"));
    };
    let first = folder.read("repo/.git/refs/heads/main").trim().to_owned();
    push("b");
    soon_shown(&serve, &["b"]);
    let applied = rollback(&serve, json!({"to": 2, "source": "shop"}));
    assert_eq!(applied.status, 201, "{}", applied.body);
    until_reason(&serve, "shop", "RolledBack");
    let in_effect = |serve: &Serve| serve.get("/sources/shop").json()["last_applied"]["commit"].clone();
    assert_eq!(in_effect(&serve), json!(first));
    assert_eq!(serve.stop().code, 0);
    let serve = folder.serve("");
    until_reason(&serve, "shop", "RolledBack");
    assert_eq!(in_effect(&serve), json!(first), "also after a restart");
    // Somebody makes the change by hand: that commit is not accepted by that.
    let id = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    for (description, reason) in [("b", "InSync"), ("a", "RolledBack")] {
        let body = json!({"description": description}).to_string();
        assert_eq!(serve.call("PATCH", &format!("/edges/https/{id}"), &body).status, 200);
        serve.signal("HUP");
        until_reason(&serve, "shop", reason);
    }
    push("a");
    until_reason(&serve, "shop", "InSync");
    push("b");
    soon_shown(&serve, &["b"]);
}

/// Waits until the last sync of a source has ended, with a value in its status.
fn until_synced(serve: &Serve, source: &str, pointer: &str, value: &Value) {
    until(&format!("{pointer}: {value}"), || {
        let found = status(serve, source);
        (found["syncs_begun"] == found["syncs_ended"] && found.pointer(pointer) == Some(value)).then_some(())
    });
}

/// Commits everything, and waits until it is the commit of `pointer`.
fn pushed(folder: &Folder, serve: &Serve, subject: &str, pointer: &str) {
    git(folder, "-C repo add -A");
    git(folder, &format!("-C repo commit -q -m {subject}"));
    until_synced(serve, "shop", pointer, &json!(head(folder, "repo")));
}

/// Renames an edge, removes it, and declares it again, with another ID, while another edge is changed. Rolled back to the
/// first of these, the manifests of the last one do not lead to the same state as before.
fn declare_again(folder: &Folder, within: &str, mut applied: impl FnMut(&str)) {
    let spec = "{description: a, hostports: [\"one.example.com:443\"]}";
    folder.write(&format!("{within}/one.yaml"), &edge_with("first, renamed_from: one", spec));
    applied("renamed");
    std::fs::remove_file(folder.path(&format!("{within}/one.yaml"))).unwrap();
    applied("removed");
    folder.write(&format!("{within}/one.yaml"), &edge_with("first", spec));
    folder.write(&format!("{within}/two.yaml"), &edge("two", "b"));
    applied("again");
}

#[test]
fn what_a_rollback_undid_stays_undone_although_it_would_lead_to_another_state() {
    let folder = repository();
    folder.write("repo/edge/two.yaml", &edge("two", "a"));
    git(&folder, "-C repo add -A");
    git(&folder, "-C repo commit -q -m two");
    folder.write(CONFIG, "sources:\n- {name: shop, repository: repo, ref: main, path: edge, max_deletes: 9}\n");
    let serve = folder.serve("");
    declare_again(&folder, "repo/edge", |subject| pushed(&folder, &serve, subject, "/last_applied/commit"));
    assert_eq!(shown(&serve), ["a", "b"]);
    // The commit changes no resource, so the history does not have it.
    folder.write("repo/edge/README.md", "How to\n");
    pushed(&folder, &serve, "readme", "/last_applied/commit");
    let applied = rollback(&serve, json!({"to": 3, "max_deletes": "9"}));
    assert_eq!(applied.status, 201, "{}", applied.body);
    until_synced(&serve, "shop", "/conditions/0/reason", &json!("RolledBack"));
    folder.write("repo/edge/README.md", "How to go on\n");
    pushed(&folder, &serve, "more", "/last_attempt/commit");
    assert_eq!(status(&serve, "shop")["conditions"][0]["reason"], json!("RolledBack"));
    assert_eq!(shown(&serve), ["a", "a"]);
    assert_eq!(serve.stop().code, 0);
    let serve = folder.serve("");
    until_reason(&serve, "shop", "RolledBack");
    assert_eq!(shown(&serve), ["a", "a"]);
    folder.write("repo/edge/two.yaml", &edge("two", "c"));
    pushed(&folder, &serve, "corrected", "/last_applied/commit");
    assert_eq!(shown(&serve), ["a", "c"]);
}

#[test]
fn a_rollback_while_no_server_runs_undoes_what_the_source_had_at_its_last_sync() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "a"));
    folder.write("m/two.yaml", &edge("two", "a"));
    let serve = folder.serve("--manifests m --max-deletes 9");
    let mut revision = 2;
    declare_again(&folder, "m", |_| {
        revision += 1;
        until_synced(&serve, "default", "/last_applied/revision", &json!(revision));
    });
    assert_eq!(serve.stop().code, 0);
    folder.ok("rollback --to 3 --max-deletes 9");
    let serve = folder.serve("--manifests m --max-deletes 9");
    until_reason(&serve, "default", "RolledBack");
    assert_eq!(shown(&serve), ["a", "a"]);
}

#[test]
fn a_commit_that_changes_nothing_does_not_end_what_a_rollback_holds_beside_drift() {
    let folder = repository();
    folder.write(CONFIG, "sources:\n- {name: shop, repository: repo, ref: main, path: edge, drift: off}\n");
    let serve = folder.serve("");
    let id = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    let by_hand = json!({"metadata": "by hand"}).to_string();
    assert_eq!(serve.call("PATCH", &format!("/edges/https/{id}"), &by_hand).status, 200);
    folder.write("repo/edge/one.yaml", &edge("one", "b"));
    pushed(&folder, &serve, "b", "/last_applied/commit");
    assert_eq!(rollback(&serve, json!({"to": 3})).status, 201);
    until_synced(&serve, "shop", "/conditions/0/reason", &json!("RolledBack"));
    folder.write("repo/edge/README.md", "How to\n");
    pushed(&folder, &serve, "readme", "/last_attempt/commit");
    let found = status(&serve, "shop");
    assert_eq!((&found["state"], &found["conditions"][0]["reason"]), (&json!("OutOfSync"), &json!("RolledBack")));
    assert_eq!(shown(&serve), ["a"]);
}

#[test]
fn what_was_declared_after_it_had_been_set_by_hand_is_held_beside_drift() {
    let folder = Folder::new();
    for name in ["c", "d", "e"] {
        folder.write(&format!("m/{name}.yaml"), &edge(name, name));
    }
    let serve = folder.serve("--manifests m --drift warn");
    let set_by_hand = |from: &str, description: &str| {
        let edges = serve.get("/edges/https").json()["https_edges"].clone();
        let edge = edges.as_array().unwrap().iter().find(|it| it["description"] == from).unwrap().clone();
        let path = format!("/edges/https/{}", edge["id"].as_str().unwrap());
        let body = json!({"description": description}).to_string();
        assert_eq!(serve.call("PATCH", &path, &body).status, 200);
    };
    set_by_hand("d", "drift");
    folder.write("m/e.yaml", &edge("e", "two"));
    until_synced(&serve, "default", "/conditions/0/observed_revision", &json!(4));
    set_by_hand("c", "two");
    until_synced(&serve, "default", "/counts/drifted", &json!(2));
    // Nothing is applied, so the history does not have it.
    folder.write("m/c.yaml", &edge("c", "two"));
    until_synced(&serve, "default", "/counts/drifted", &json!(1));
    assert_eq!(rollback(&serve, json!({"to": 4})).status, 201);
    until_synced(&serve, "default", "/conditions/0/reason", &json!("RolledBack"));
    let mut found = shown(&serve);
    found.sort();
    assert_eq!(found, ["c", "drift", "two"]);
}

#[test]
fn a_source_that_a_rollback_undid_shows_it_before_its_next_sync() {
    let folder = repository();
    let serve = folder.serve("");
    let head = || folder.read("repo/.git/refs/heads/main").trim().to_owned();
    let first = head();
    folder.write("repo/edge/one.yaml", &edge("one", "b"));
    git(&folder, "-C repo commit -qam b");
    let second = head();
    until("the end of the sync", || {
        let found = status(&serve, "shop");
        let has_ended = found["syncs_begun"] == found["syncs_ended"];
        (has_ended && found["last_applied"]["commit"] == json!(second)).then_some(())
    });
    assert_eq!(client(&folder, &serve, "rollback --to 2 --source shop").code, 0);
    let told = client(&folder, &serve, "status");
    assert_eq!(told.code, 2, "{}", told.all());
    assert!(told.out.contains("OutOfSync") && told.out.contains(&first[..8]), "{}", told.all());
    assert!(told.all().contains(&format!("undid what the manifests of commit {second} declare;")), "{}", told.all());
    until_reason(&serve, "shop", "RolledBack");
}

#[test]
fn a_source_shows_its_commit_after_a_rollback_to_a_change_by_hand() {
    let folder = repository();
    let serve = folder.serve("");
    let first = folder.read("repo/.git/refs/heads/main").trim().to_owned();
    let id = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    let by_hand = |fields: serde_json::Value| {
        assert_eq!(serve.call("PATCH", &format!("/edges/https/{id}"), &fields.to_string()).status, 200);
    };
    by_hand(json!({"metadata": "by hand"}));
    folder.write("repo/edge/one.yaml", &edge("one", "b"));
    git(&folder, "-C repo commit -qam b");
    soon_shown(&serve, &["b"]);
    assert_eq!(rollback(&serve, json!({"to": 3})).status, 201);
    until_reason(&serve, "shop", "RolledBack");
    let in_effect = |serve: &Serve| serve.get("/sources/shop").json()["last_applied"].clone();
    let brought_back = (json!(first), json!(2));
    let found = in_effect(&serve);
    assert_eq!((found["commit"].clone(), found["revision"].clone()), brought_back);
    // A rollback of the rollback leads to the same manifests, and so does a change by hand.
    by_hand(json!({"metadata": "again"}));
    assert_eq!(rollback(&serve, json!({"to": 5})).status, 201);
    assert_eq!(serve.stop().code, 0);
    let serve = folder.serve("");
    until_reason(&serve, "shop", "RolledBack");
    let found = in_effect(&serve);
    assert_eq!((found["commit"].clone(), found["revision"].clone()), brought_back, "after a restart");
}

#[test]
fn a_source_that_clients_apply_shows_the_commit_that_a_rollback_brought_back() {
    let folder = repository();
    std::fs::remove_file(folder.path(CONFIG)).unwrap();
    let serve = folder.serve("");
    let applied = || {
        let run = client(&folder, &serve, "reconcile --source ci repo/edge");
        assert_eq!(run.code, 0, "{}", run.all());
        status(&serve, "ci")["last_applied"].clone()
    };
    let first = applied();
    folder.write("repo/edge/one.yaml", &edge("one", "b"));
    git(&folder, "-C repo commit -qam b");
    let second = applied();
    assert_ne!(first["commit"], second["commit"]);
    assert_eq!(rollback(&serve, json!({"to": first["revision"], "source": "ci"})).status, 201);
    assert_eq!(status(&serve, "ci")["last_applied"], first);
    // A rollback of the rollback, and then the pipeline again.
    assert_eq!(rollback(&serve, json!({"to": second["revision"], "source": "ci"})).status, 201);
    assert_eq!(status(&serve, "ci")["last_applied"], second);
    assert_eq!(rollback(&serve, json!({"to": first["revision"], "source": "ci"})).status, 201);
    let third = applied();
    assert_eq!(third["commit"], second["commit"]);
    assert!(third["revision"].as_u64() > second["revision"].as_u64(), "{third:#}");
}

#[test]
fn a_source_that_is_rolled_back_while_it_is_suspended_is_not_applied_when_it_is_resumed() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
    let suspended = serve.call("POST", "/sources/default/suspend", &json!({"reason": "an incident"}).to_string());
    assert_eq!(suspended.status, 200, "{}", suspended.body);
    let applied = rollback(&serve, json!({"to": 2}));
    assert_eq!((applied.status, &applied.json()["applied"]), (201, &json!(4)), "{}", applied.body);
    let with_reason = |reason: &str| {
        until(reason, || {
            let found = serve.get("/sources/default").json();
            (found["conditions"][0]["reason"] == reason).then_some(found)
        })
    };
    let found = with_reason("Suspended");
    // Others have changed it, and the manifests are as they were applied.
    let counted = |found: &Value| ["pending_change", "drifted"].map(|count| found["counts"][count].clone());
    assert_eq!((&found["state"], counted(&found)), (&json!("Suspended"), [json!(0), json!(1)]), "{found:#}");

    let resumed = serve.call("POST", "/sources/default/resume", "");
    assert_eq!(resumed.status, 200, "{}", resumed.body);
    let found = with_reason("RolledBack");
    assert_eq!((&found["state"], counted(&found)), (&json!("OutOfSync"), [json!(0), json!(1)]), "{found:#}");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("a rollback undid"), "{message}");
    assert_eq!(shown(&serve), ["first"]);
    let metrics = serve.get("/metrics").body;
    for result in ["suspended", "rolled_back"] {
        let series = format!("edgewright_reconcile_total{{result=\"{result}\"}} ");
        let runs = metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok());
        assert!(runs.is_some_and(|runs| runs > 0), "{series}{runs:?}");
    }
    folder.write("m/one.yaml", &edge("one", "third"));
    until_shown(&serve, "third");
}
