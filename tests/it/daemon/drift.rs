//! Changes by others than the source: how plans, the status and the loop tell them from changed manifests (D85).

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    git::git,
    manifests::edge_with,
    program::{Folder, Serve, until, within},
    sources::next_sync,
    users::through,
};

/// Far below the 30 seconds after which a source is synced without an event, unless it sets another interval.
const SOON: Duration = Duration::from_secs(20);

fn edge(description: &str, hostports: &str) -> String {
    edge_with("one", &format!("{{description: {description}, hostports: [{hostports}]}}"))
}

/// A source with a policy that is synced every second.
fn source(policy: &str) -> (Folder, Serve) {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("a", "\"one.example.com:443\""));
    let config = format!("sources:\n- {{name: shop, path: shop, interval: 1s, drift: {policy}}}\n");
    folder.write("edgewright.config.yaml", &config);
    let serve = folder.serve("");
    (folder, serve)
}

fn status(serve: &Serve) -> Value {
    serve.get("/sources/shop").json()
}

/// Waits until the status satisfies a condition.
fn in_status(serve: &Serve, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    until(what, || Some(status(serve)).filter(&is_wanted))
}

fn the_edge(serve: &Serve) -> Value {
    serve.get("/edges/https").json()["https_edges"][0].clone()
}

fn change(serve: &Serve, description: &str) {
    let path = format!("/edges/https/{}", the_edge(serve)["id"].as_str().unwrap());
    assert_eq!(serve.call("PATCH", &path, &json!({"description": description}).to_string()).status, 200);
}

fn soon(serve: &Serve, what: &str, is_wanted: impl Fn(&Value) -> bool) {
    within(SOON, what, || is_wanted(&the_edge(serve)).then_some(()));
}

#[test]
fn a_rollback_that_puts_back_drift_leaves_a_source_in_sync() {
    let (_folder, serve) = source("warn");
    change(&serve, "by hand");
    let answer = serve.call("POST", "/rollbacks", &json!({"to": 2}).to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    let found = in_status(&serve, "the end of the drift", |found| {
        assert_ne!(found["conditions"][0]["reason"], "RolledBack", "{found:#}");
        found["state"] == "Synced"
    });
    assert_eq!((&found["counts"]["drifted"], &the_edge(&serve)["description"]), (&json!(0), &json!("a")), "{found:#}");
}

#[test]
fn a_rollback_of_drift_does_not_hold_manifests_with_another_comment() {
    let text =
        |comment: &str, host: &str| format!("# {comment}\n{}", edge("a", &format!("\"{host}.example.com:443\"")));
    let rolled_back_to = |serve: &Serve, revision: u64| {
        let answer = serve.call("POST", "/rollbacks", &json!({"to": revision}).to_string());
        assert_eq!(answer.status, 201, "{}", answer.body);
    };
    let (folder, serve) = source("warn");
    change(&serve, "by hand");
    folder.write("shop/one.yaml", &text("first", "one"));
    next_sync(&serve, "shop");
    rolled_back_to(&serve, 2);
    change(&serve, "again");
    let found = next_sync(&serve, "shop");
    assert_eq!(found["conditions"][0]["reason"], "Drifted", "{found:#}");

    // The same beside drift that the rollback leaves.
    folder.write("shop/one.yaml", &text("first", "two"));
    soon(&serve, "the new host", |edge| edge["hostports"][0] == "two.example.com:443");
    let applied = next_sync(&serve, "shop")["last_attempt"]["revision"].as_u64().unwrap();
    folder.write("shop/one.yaml", &text("second", "two"));
    next_sync(&serve, "shop");
    change(&serve, "once more");
    rolled_back_to(&serve, applied);
    let found = next_sync(&serve, "shop");
    assert_eq!(found["conditions"][0]["reason"], "Drifted", "{found:#}");
    assert_eq!(the_edge(&serve)["description"], "again");
}

#[test]
fn drift_that_is_only_reported_stays_and_the_manifests_are_applied_next_to_it() {
    let (folder, serve) = source("warn");
    assert_eq!((&status(&serve)["state"], &status(&serve)["drift"]), (&json!("Synced"), &json!("warn")));
    change(&serve, "by hand");
    let found = in_status(&serve, "the drift", |found| found["state"] == "Drifted");
    let (field, counts) = (&found["drifted"][0]["fields"][0], &found["counts"]);
    assert_eq!((&counts["drifted"], &counts["pending_change"]), (&json!(1), &json!(0)), "{found:#}");
    assert_eq!(
        (&field["field"], &field["state"], &field["revision"]),
        (&json!("/description"), &json!("drift"), &json!(3))
    );
    assert!(field["by"].as_str().unwrap().starts_with("\"first admin\" (ak_"), "{field}");
    assert_eq!(
        (&found["conditions"][0]["status"], &found["conditions"][0]["reason"]),
        (&json!("OutOfSync"), &json!("Drifted"))
    );
    assert!(serve.get("/metrics").body.contains("edgewright_drifted_resources{source=\"shop\"} 1"));
    assert_eq!(serve.get("/readyz").status, 200);

    folder.write("shop/one.yaml", &edge("a", "\"one.example.com:443\", \"uno.example.com:443\""));
    soon(&serve, "the new host", |edge| edge["hostports"][1] == "uno.example.com:443");
    let found = in_status(&serve, "the drift", |found| found["state"] == "Drifted");
    assert_eq!((&the_edge(&serve)["description"], &found["counts"]["drifted"]), (&json!("by hand"), &json!(1)));
    assert!(!serve.said().contains("Reverted"), "{}", serve.said());
    // The source's own commit next to it does not make the drift its own.
    let synced_at = found["last_attempt"]["at"].clone();
    let found = in_status(&serve, "the next sync", |found| found["last_attempt"]["at"] != synced_at);
    assert_eq!((&the_edge(&serve)["description"], &found["state"]), (&json!("by hand"), &json!("Drifted")));

    // What the manifests change, too, is applied.
    folder.write("shop/one.yaml", &edge("c", "\"one.example.com:443\""));
    soon(&serve, "the new description", |edge| edge["description"] == "c");
    in_status(&serve, "the sync", |found| found["state"] == "Synced" && found["counts"]["drifted"] == json!(0));

    let path = format!("/edges/https/{}", the_edge(&serve)["id"].as_str().unwrap());
    assert_eq!(serve.call("DELETE", &path, "").status, 204);
    let found = in_status(&serve, "the deletion", |found| found["state"] == "Drifted");
    assert_eq!((&found["drifted"][0]["fields"][0]["field"], &found["counts"]["owned"]), (&json!(""), &json!(0)));
    assert_eq!(the_edge(&serve), Value::Null);
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn what_the_manifests_have_taken_over_can_be_set_back_as_any_other_change() {
    for (policy, lasting) in [("warn", false), ("warn", true), ("off", true), ("enforce", false)] {
        let (folder, serve) = source(policy);
        let other = edge_with("two", "{description: two, hostports: [\"two.example.com:443\"]}");
        folder.write("shop/two.yaml", &other);
        let named = |host: &str| {
            let edges = serve.get("/edges/https").json()["https_edges"].as_array().unwrap().clone();
            edges.into_iter().find(|edge| edge["hostports"][0] == host)
        };
        let (first, second) = (|| named("one.example.com:443"), || named("two.example.com:443"));
        within(SOON, "the second edge", || second().map(|_| ()));
        let describe = |edge: Option<Value>, description: &str| {
            let path = format!("/edges/https/{}", edge.unwrap()["id"].as_str().unwrap());
            assert_eq!(serve.call("PATCH", &path, &json!({"description": description}).to_string()).status, 200);
        };
        if lasting {
            describe(second(), "by hand");
        }
        assert_eq!(serve.call("POST", "/sources/shop/suspend", r#"{"reason": "emergency"}"#).status, 200);
        describe(first(), "emergency");
        folder.write("shop/one.yaml", &edge("emergency", "\"one.example.com:443\""));
        let begun = status(&serve)["syncs_begun"].as_u64().unwrap();
        in_status(&serve, "another sync", |found| found["syncs_ended"].as_u64().unwrap() > begun);
        assert_eq!(serve.call("POST", "/sources/shop/resume", "").status, 200);
        let state = if policy == "warn" && lasting { "Drifted" } else { "Synced" };
        in_status(&serve, state, |found| found["state"] == state);
        folder.write("shop/one.yaml", &edge("a", "\"one.example.com:443\""));
        let is_back = || first().filter(|edge| edge["description"] == "a").map(|_| ());
        within(SOON, &format!("the value from before ({policy}, {lasting})"), is_back);
        let record = serve.get("/history?limit=1").json()["history"][0].clone();
        assert!(!record["message"].as_str().unwrap().contains("drift"), "{policy}: {record:#}");
        let other = if lasting { "by hand" } else { "two" };
        assert_eq!(second().unwrap()["description"], other, "{policy}: other drift stays");
    }
}

/// Three routes with webhook secrets, the first of which is given.
fn hooks(secret: &str) -> String {
    let route = |name: &str, secret: &str| {
        format!(
            "{{name: {name}, match_type: path_prefix, match: /{name}, \
             webhook_verification: {{provider: github, secret: {secret}}}}}"
        )
    };
    let routes = [route("hook", secret), route("gone", "hunter2-gone"), route("kept", "hunter2-kept")];
    edge_with("one", &format!("{{hostports: [\"one.example.com:443\"], routes: [{}]}}", routes.join(", ")))
}

#[test]
fn drift_of_secrets_stays_when_the_former_ones_are_forgotten() {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &hooks("hunter2-hook"));
    folder.write("edgewright.config.yaml", "sources: [{name: shop, path: shop, interval: 1s, drift: warn}]\n");
    let serve = folder.serve("");
    let edge = format!("/edges/https/{}/routes", the_edge(&serve)["id"].as_str().unwrap());
    let modules = || {
        let shown = the_edge(&serve);
        let routes = shown["routes"].as_array().unwrap().iter();
        let module = |it: &Value, field: &str| it["webhook_verification"][field].as_str().unwrap().to_owned();
        let mut found: Vec<_> = routes
            .map(|it| (it["match"].as_str().unwrap().to_owned(), module(it, "provider"), module(it, "secret")))
            .collect();
        found.sort();
        found
    };
    let path_of = |prefix: &str| {
        let shown = the_edge(&serve);
        let route = shown["routes"].as_array().unwrap().iter().find(|it| it["match"] == prefix).unwrap();
        format!("{edge}/{}", route["id"].as_str().unwrap())
    };
    let put = |prefix: &str, provider: &str, secret: &str| {
        let body = json!({"provider": provider, "secret": secret}).to_string();
        let answer = serve.call("PUT", &format!("{}/webhook_verification", path_of(prefix)), &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    assert_eq!(serve.call("DELETE", &path_of("/gone"), "").status, 204);
    put("/hook", "github", "hunter2-by-hand");
    put("/kept", "gitlab", "hunter2-kept");
    // What was written after the last sync is listed last.
    let drift = |found: &Value| {
        let mut drift = found["drifted"].as_array().unwrap().clone();
        drift.sort_by_key(|it| it["name"].to_string());
        drift
    };
    let found = in_status(&serve, "the drift", |found| found["counts"]["drifted"] == json!(3));
    let (by_hand, before) = (modules(), drift(&found));

    for _ in 0..2 {
        let run = through(&folder, &serve, "store rekey --forget-secrets");
        assert!(run.code == 0 && run.err.contains("Destroyed the former data keys"), "{}", run.all());
        let begun = status(&serve)["syncs_begun"].as_u64().unwrap();
        let found = in_status(&serve, "a sync since", |found| found["syncs_ended"].as_u64() > Some(begun));
        assert_eq!(drift(&found), before, "{found:#}");
        assert_eq!(modules(), by_hand, "{}", serve.said());
    }

    // What the manifests change is applied all the same.
    folder.write("shop/one.yaml", &hooks("hunter2-new"));
    within(SOON, "the new secret", || modules().iter().any(|(.., secret)| secret == "hunter2-new").then_some(()));
    let found = in_status(&serve, "the sync", |found| found["counts"]["drifted"] == json!(2));
    assert_eq!(modules().len(), 2, "{found:#}");
    assert_eq!(serve.stop().code, 0);
    // Who puts drift back says so.
    let run = folder.ok("reconcile shop --source shop");
    assert!(run.all().contains("gone"), "{}", run.all());
    let note = folder.ok("history --limit 1 --format json").out;
    for reverted in
        ["drift reverted: ", "HttpsEdgeRoute one/gone (deleted in revision 3)", "/webhook_verification/provider"]
    {
        assert!(note.contains(reverted), "{reverted}: {note}");
    }
}

#[test]
fn a_resource_of_a_suspended_source_is_drifted_or_pending_and_not_both() {
    let (folder, serve) = source("enforce");
    assert_eq!(serve.call("POST", "/sources/shop/suspend", r#"{"reason": "an incident"}"#).status, 200);
    change(&serve, "by hand");
    let counted = |found: &Value| ["pending_change", "drifted"].map(|count| found["counts"][count].clone());
    let found = in_status(&serve, "the drift", |found| found["counts"]["drifted"] == json!(1));
    assert_eq!(counted(&found), [json!(0), json!(1)], "{found:#}");
    // The manifests change another field of the same resource.
    folder.write("shop/one.yaml", &edge("a", "\"uno.example.com:443\""));
    let found = in_status(&serve, "the change", |found| found["counts"]["pending_change"] == json!(1));
    assert_eq!(counted(&found), [json!(1), json!(0)], "{found:#}");
    let drift = &found["drifted"][0]["fields"];
    assert!(drift.to_string().contains("(ak_"), "who changed it is still told: {found:#}");
}

#[test]
fn drift_that_is_off_is_only_counted() {
    let (_folder, serve) = source("off");
    change(&serve, "by hand");
    let found = in_status(&serve, "the count", |found| found["counts"]["drifted"] == json!(1));
    assert_eq!((&found["state"], &found["drifted"]), (&json!("Synced"), &json!([])), "{found:#}");
    assert_eq!(the_edge(&serve)["description"], "by hand");
}

#[test]
fn drift_is_put_back_and_counted_until_it_is_a_fight() {
    let (_folder, serve) = source("enforce");
    change(&serve, "by hand");
    soon(&serve, "the repair", |edge| edge["description"] == "a");
    serve.wait_for("Reverted 1 drifted resource as revision");
    serve.wait_for("drift: /description set by \"first admin\" (ak_");
    assert!(serve.get("/metrics").body.contains("edgewright_drift_repairs_total{source=\"shop\"} 1"));
    let fought = until("the fight", || {
        if the_edge(&serve)["description"] == "a" {
            change(&serve, "by hand again");
        }
        Some(status(&serve)).filter(|found| found["conditions"][0]["reason"] == "Fight")
    });
    let condition = &fought["conditions"][0];
    assert_eq!(condition["reason"], "Fight", "{fought:#}");
    let message = condition["message"].as_str().unwrap();
    let until = message.strip_prefix("1 drifted resource left as is until ").and_then(|rest| rest.split_once("Z: "));
    let (until, _) = until.unwrap_or_else(|| panic!("{message}"));
    serve.wait_for(&format!(
        "other writers keep changing the fields that this source reverts; its drift is left as is until {until}Z"
    ));
    serve.wait_for(&format!("1 drifted resource left as is until {until}Z, because others keep changing"));
}

#[test]
fn a_change_by_hand_is_told_at_once_in_every_state_of_its_source() {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("a", "\"one.example.com:443\""));
    folder.write("edgewright.config.yaml", "sources:\n- {name: shop, path: shop, interval: 5m}\n");
    let serve = folder.serve("");
    in_status(&serve, "the first sync", |found| found["state"] == "Synced");
    change(&serve, "by hand");
    // Long before the next sync.
    let found = status(&serve);
    assert_eq!((&found["state"], &found["counts"]["drifted"]), (&json!("Drifted"), &json!(1)), "{found:#}");
    let (condition, field) = (&found["conditions"][0], &found["drifted"][0]["fields"][0]);
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("OutOfSync"), &json!("Drifted")), "{found:#}");
    assert_eq!((&field["field"], &field["state"]), (&json!("/description"), &json!("drift")), "{found:#}");
    assert!(field["by"].as_str().unwrap().starts_with("\"first admin\" (ak_"), "{field}");
    let told = through(&folder, &serve, "status");
    assert_eq!(told.code, 2, "{}", told.all());
    assert!(told.out.contains("\n  Put back at the next sync, 2"), "{}", told.out);
    // Somebody else puts it back.
    change(&serve, "a");
    assert_eq!((&status(&serve)["state"], &status(&serve)["drifted"]), (&json!("Synced"), &json!([])));

    let broken = edge("a", "\"one.example.com:443\"").replace("hostports", "hostprots");
    folder.write("shop/one.yaml", &broken);
    in_status(&serve, "the mistake", |found| found["state"] == "Invalid");
    change(&serve, "by hand");
    let told_while_invalid = || {
        let found = status(&serve);
        let description = found["drifted"][0]["fields"][0]["field"].clone();
        assert_eq!((&found["counts"]["drifted"], description), (&json!(1), json!("/description")), "{found:#}");
        assert_eq!(found["state"], "Invalid", "{found:#}");
        assert_eq!(serve.metric("edgewright_drifted_resources{source=\"shop\"}"), Some(1.0));
        let told = through(&folder, &serve, "status").out;
        let when = "\n  Put back once the source is valid again: fix ";
        assert!(told.contains(when) && told.contains("one.yaml:4.\n"), "{told}");
    };
    told_while_invalid();
    let ended = status(&serve)["syncs_ended"].as_u64();
    assert_eq!(serve.call("POST", "/sources/shop/sync", "").status, 200);
    in_status(&serve, "another sync", |found| found["syncs_ended"].as_u64() > ended);
    told_while_invalid();
    assert_eq!(serve.stop().code, 0);
    let serve = folder.serve("");
    let found = in_status(&serve, "the mistake", |found| found["state"] == "Invalid");
    assert_eq!(found["counts"]["drifted"], json!(1), "another process knows it: {found:#}");

    folder.write("shop/one.yaml", &edge("a", "\"one.example.com:443\""));
    soon(&serve, "the repair", |edge| edge["description"] == "a");
    in_status(&serve, "the sync", |found| found["state"] == "Synced" && found["counts"]["drifted"] == json!(0));
}

#[test]
fn a_plan_names_the_drift_and_who_caused_it() {
    let (folder, serve) = source("off");
    change(&serve, "by hand");
    let files = json!([{"name": "one.yaml", "text": edge("a", "\"new.example.com:443\"")}]);
    let body = json!({"files": files, "source": "shop", "dry_run": true}).to_string();
    let run = serve.call("POST", "/reconciliations", &body).json();
    assert_eq!((&run["summary"]["drift"], &run["plan"]["changes"][0]["drift"]["state"]), (&json!(1), &json!("drift")));
    let fields = run["plan"]["changes"][0]["drift"]["fields"].clone();
    let states: Vec<_> =
        fields.as_array().unwrap().iter().map(|it| (it["field"].clone(), it["state"].clone())).collect();
    assert_eq!(states, [(json!("/description"), json!("drift")), (json!("/hostports"), json!("pending"))]);
    assert_eq!(serve.stop().code, 0);
    // The command reads the same from the files of the store, where the manifests are as they were applied.
    let plan = folder.ok("plan --source shop shop");
    assert!(plan.out.contains("\n    drift: /description set by \"first admin\" (ak_"), "{}", plan.out);
    assert!(plan.summary().ends_with("(1 drift)"), "{}", plan.out);
    let markdown = folder.ok("plan --source shop --format markdown shop");
    assert!(markdown.out.contains("- drift: /description set by \"first admin\" (ak_"), "{}", markdown.out);
}

#[test]
fn what_is_put_back_names_no_author_of_a_commit() {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("a", "\"one.example.com:443\""));
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(&folder, &format!("-C shop {line}"));
    }
    let by_hand = || {
        let serve = folder.serve("");
        change(&serve, "by hand");
        assert_eq!(serve.stop().code, 0);
    };
    let blamed = |field: &str| -> Value {
        let blame: Value = serde_json::from_str(&folder.ok("blame edge one --format json").out).unwrap();
        blame["fields"].as_array().unwrap().iter().find(|it| it["field"] == field).unwrap().clone()
    };
    folder.ok("reconcile --source shop shop");
    by_hand();
    folder.ok("reconcile --source shop shop");
    let told = folder.ok("history --limit 1").out;
    assert!(told.starts_with("4  ") && !told.contains("t@example.com"), "{told}");
    let message = "\n    drift reverted: /description of HttpsEdge one (set in revision 3)\n";
    assert!(told.contains(message) && folder.ok("history show 4").out.contains(message), "{told}");
    let blame = folder.ok("blame edge one").out;
    assert!(blame.contains("] drift reverted: source `shop` at "), "{blame}");
    assert_eq!(blame.matches("t@example.com").count(), 1, "an author is told once: {blame}");

    // Next to what the commit has changed, only the field that was reverted has no author of the commit.
    by_hand();
    folder.write("shop/one.yaml", &edge("a", "\"two.example.com:443\""));
    git(&folder, "-C shop commit -q -a -m second");
    folder.ok("reconcile --source shop shop");
    let told = folder.ok("history --limit 1").out;
    assert!(told.starts_with("6  ") && told.contains("t@example.com"), "{told}");
    assert!(told.contains("\n    drift reverted: /description of HttpsEdge one (set in revision 5)\n"), "{told}");
    for (field, reverts, author) in [("/description", true, ""), ("/hostports", false, "t@example.com")] {
        let blamed = blamed(field);
        assert_eq!((&blamed["revision"], &blamed["reverts_drift"]), (&json!(6), &json!(reverts)), "{blamed}");
        assert_eq!(blamed["commit_author_email"], author, "{blamed}");
    }
    assert!(folder.ok("history verify").out.starts_with("6 records verified"));
}

#[test]
fn a_replaced_resource_tells_what_others_have_changed_of_it() {
    let folder = Folder::new();
    let restriction = |traffic: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: office}}\nspec: {{type: {traffic}, description: a, enforced: false}}\n"
        )
    };
    folder.write("shop/one.yaml", &restriction("dashboard"));
    folder.write("edgewright.config.yaml", "sources: [{name: shop, path: shop, interval: 1s, drift: warn}]\n");
    let serve = folder.serve("");
    let found = serve.get("/ip_restrictions").json()["ip_restrictions"][0].clone();
    let path = format!("/ip_restrictions/{}", found["id"].as_str().unwrap());
    assert_eq!(serve.call("PATCH", &path, r#"{"description": "by hand"}"#).status, 200);

    // The description is as it was applied, and the type cannot be changed.
    let files = json!([{"name": "one.yaml", "text": restriction("api")}]);
    let body = json!({"files": files, "source": "shop", "dry_run": true}).to_string();
    let run = serve.call("POST", "/reconciliations", &body).json();
    assert_eq!((&run["summary"]["replace"], &run["summary"]["conflict"]), (&json!(1), &json!(1)), "{run:#}");
    let changes = run["plan"]["changes"].as_array().unwrap();
    let replaces = changes.iter().find(|change| change["effect"] == "replace").unwrap();
    let fields = replaces["drift"]["fields"].as_array().unwrap().iter();
    let states: Vec<_> = fields.map(|it| (it["field"].clone(), it["state"].clone(), it["revision"].clone())).collect();
    let description = (json!("/description"), json!("conflict"), json!(3));
    assert_eq!(states, [description, (json!("/type"), json!("pending"), Value::Null)], "{run:#}");

    folder.write("shop/one.yaml", &restriction("api"));
    serve.wait_for("± IpRestriction office (conflict: /description set by \"first admin\" (ak_");
    let shown = serve.get("/ip_restrictions").json()["ip_restrictions"][0].clone();
    assert_eq!((&shown["type"], &shown["description"]), (&json!("api"), &json!("a")));
}

#[test]
fn an_unknown_policy_is_reported_at_its_field() {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("a", ""));
    folder.write("edgewright.config.yaml", "sources: [{name: shop, path: shop, drift: maybe}]\n");
    let run = folder.run("validate shop");
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.err.contains("at /sources/0/drift (line 1): expected `enforce`, `warn` or `off`"), "{}", run.err);
}
