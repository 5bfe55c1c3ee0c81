//! The security log of a server: what is in it, what is not, and what `edgewright security-log` says of it (D99).

use serde_json::{Value, json};

use crate::support::{
    http::http,
    manifests::edge,
    program::{Folder, Run, Serve, until},
};

const LOG: &str = "store/security.log";

fn lines(folder: &Folder) -> Vec<Value> {
    let run = folder.ok("security-log show");
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn with_event<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// Waits until the log has an event.
fn wait_for(folder: &Folder, event: &str) -> Vec<Value> {
    until(event, || Some(lines(folder)).filter(|lines| !with_event(lines, event).is_empty()))
}

fn key_of(serve: &Serve, body: &Value) -> (String, String) {
    let made = serve.call("POST", "/api_keys", &body.to_string());
    assert_eq!(made.status, 201, "{}", made.body);
    let json = made.json();
    (json["id"].as_str().unwrap().to_owned(), json["token"].as_str().unwrap().to_owned())
}

#[test]
fn it_has_who_was_refused_what_and_who_changed_keys() {
    let folder = Folder::new();
    let serve = folder.serve("");
    assert_eq!(folder.mode(LOG), 0o600);
    let (id, token) = key_of(&serve, &json!({"owner_id": "usr_ed"}));
    let wrong = format!("{token}x");
    assert_eq!(serve.call_as(&wrong, "GET", "/edges/https/edghts_secretpath", "").status, 401);
    assert_eq!(http(&serve.address, "GET", "/api_keys", &[], "").status, 401);
    let keys = serve.get("/api_keys").json();
    let admin = keys["keys"].as_array().unwrap().iter().find(|key| key["id"] != id.as_str()).unwrap()["id"].clone();
    let path = format!("/api_keys/{}", admin.as_str().unwrap());
    let refused = serve.call_as(&token, "DELETE", &path, "");
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(serve.call("PATCH", &format!("/api_keys/{id}"), r#"{"description":"ci"}"#).status, 200);
    assert_eq!(serve.call("DELETE", &format!("/api_keys/{id}"), "").status, 204);

    let found = wait_for(&folder, "key_deleted");
    assert_eq!(with_event(&found, "started").len(), 1);
    let created = with_event(&found, "key_created")[0];
    assert_eq!((&created["target"], &created["key"], &created["method"]), (&json!(id), &admin, &json!("POST")));
    assert_eq!((&created["path"], &created["peer"]), (&json!("/api_keys"), &json!("127.0.0.1")));
    assert_eq!(with_event(&found, "owner_created")[0]["role"], "editor");
    let denied = with_event(&found, "permission_refused")[0];
    let request_id = refused.json()["details"]["operation_id"].clone();
    assert_eq!((&denied["key"], &denied["owner"], &denied["request_id"]), (&json!(id), &json!("usr_ed"), &request_id));
    assert_eq!((&denied["path"], &denied["status"]), (&json!("/api_keys/{p0}"), &json!(403)));
    let failed = with_event(&found, "authentication_failed");
    let reasons: Vec<&str> = failed.iter().filter_map(|line| line["reason"].as_str()).collect();
    assert_eq!(reasons, ["wrong secret", "no token"]);
    assert_eq!((&failed[0]["key"], failed[1].get("key")), (&json!(id), None));
    assert_eq!((with_event(&found, "key_changed").len(), with_event(&found, "key_deleted").len()), (1, 1));

    let page = serve.get("/metrics").body;
    assert!(page.contains("edgewright_security_events_total{event=\"permission_refused\"} 1\n"), "{page}");
    serve.stop();
    let text = folder.read(LOG);
    for secret in [token.as_str(), token.rsplit_once('_').unwrap().1, "secretpath"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(lines(&folder).last().unwrap()["event"], "stopped");
}

#[test]
fn a_flood_of_failures_is_two_lines() {
    let folder = Folder::new();
    let serve = folder.serve("");
    for _ in 0..30 {
        assert_eq!(http(&serve.address, "GET", "/api_keys", &[], "").status, 401);
    }
    serve.stop();
    let found = lines(&folder);
    let counts: Vec<Option<u64>> =
        with_event(&found, "authentication_failed").iter().map(|line| line["count"].as_u64()).collect();
    // On a very slow machine an interval ends meanwhile.
    assert!(counts.len() <= 4 && counts[0].is_none(), "{counts:?}");
    assert_eq!(counts.iter().map(|count| count.unwrap_or(1)).sum::<u64>(), 30);
}

fn verified(folder: &Folder) -> Run {
    folder.run("security-log verify")
}

#[test]
fn the_chain_survives_restarts_and_a_change_is_found() {
    let folder = Folder::new();
    for _ in 0..2 {
        let serve = folder.serve("");
        let while_serving = verified(&folder);
        assert_eq!(while_serving.code, 0, "{}", while_serving.all());
        serve.stop();
    }
    let whole = folder.read(LOG);
    assert!(verified(&folder).out.starts_with("Lines 1 to 5 in 1 file are unchanged.\n"));

    // The server was killed within a line.
    let cut = whole.len() - 40;
    folder.write(LOG, &whole[..cut]);
    drop(folder.serve(""));
    let run = verified(&folder);
    assert!(run.code == 0 && run.out.contains("lines cut off when a server stopped: 1"), "{}", run.all());
    let torn = lines(&folder);
    assert_eq!(with_event(&torn, "line_torn").len(), 1);

    folder.write(LOG, &whole.replacen("\"event\":\"stopped\"", "\"event\":\"started\"", 1));
    let run = verified(&folder);
    assert!(run.code == 1 && run.err.contains("line 3 or a line before it was changed"), "{}", run.all());
}

#[test]
fn keys_of_a_followed_source_are_logged_with_the_source() {
    let folder = Folder::new();
    let key = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: ci}\n\
               spec: {token_file: ../ci.token}\n";
    folder.write("m/edge.yaml", &edge("one", "one"));
    let serve = folder.serve("--manifests m");
    folder.write("m/key.yaml", key);
    let found = wait_for(&folder, "key_created");
    assert_eq!(with_event(&found, "key_created")[0]["source"], "default");
    assert_eq!(with_event(&found, "owner_created")[0]["role"], "editor");
    drop(serve);
}

#[test]
fn it_can_be_elsewhere_and_belongs_to_one_server() {
    let folder = Folder::new();
    let serve = folder.serve("--security-log elsewhere.log");
    assert!(folder.path("elsewhere.log").exists() && !folder.path(LOG).exists());
    let run = folder.run("serve --listen 127.0.0.1:0 --store other --security-log elsewhere.log");
    assert!(run.code == 1 && run.err.contains("another process writes to it"), "{}", run.all());
    folder.ok("security-log verify --security-log elsewhere.log");
    let none = folder.run("security-log verify --store nothing");
    assert!(none.code == 1 && none.err.contains("cannot open the security log"), "{}", none.all());
    drop(serve);
}

#[test]
fn commands_append_to_the_log_of_a_server_that_has_stopped() {
    let folder = Folder::new();
    // Only a server creates the log.
    folder.ok("keys create --role admin");
    assert!(!folder.path(LOG).exists());
    folder.serve("").stop();
    let id = folder.ok("keys list").out.split_whitespace().last().unwrap().to_owned();
    folder.ok("keys create --role editor --owner usr_ed");
    folder.ok("owners set-role usr_ed viewer");
    let before = lines(&folder).len();
    assert_ne!(folder.run("keys revoke ak_nobody").code, 0);
    assert_eq!(lines(&folder).len(), before, "what is refused changes nothing");
    let created = folder.ok("keys list").out;
    let second = created.split_whitespace().find(|word| word.starts_with("ak_") && *word != id).unwrap().to_owned();
    folder.ok(&format!("keys revoke {second}"));
    let found = lines(&folder);
    let by_command: Vec<&str> =
        found.iter().filter(|line| line["reason"] == "command line").map(|it| it["event"].as_str().unwrap()).collect();
    assert_eq!(by_command, ["owner_created", "key_created", "role_changed", "key_deleted"]);
    assert_eq!(
        (&with_event(&found, "role_changed")[0]["target"], &found[before - 1]["role"]),
        (&json!("usr_ed"), &json!("viewer"))
    );
    assert_eq!(with_event(&found, "key_deleted")[0]["target"], json!(second));
    assert_eq!(verified(&folder).code, 0, "the chain goes on");
    folder.serve("").stop();
    assert_eq!(verified(&folder).code, 0);
}

#[test]
fn a_command_that_cannot_log_changes_nothing() {
    let folder = Folder::new();
    let serve = folder.serve("--security-log elsewhere.log");
    let other = "keys create --role admin --store other --security-log elsewhere.log";
    let run = folder.run(other);
    assert!(run.code == 1 && run.out.is_empty() && run.err.contains("another process writes to it"), "{}", run.all());
    assert_eq!(folder.ok("keys list --store other").out, "");
    serve.stop();
    folder.ok(other);
    folder.ok("security-log verify --security-log elsewhere.log");
    assert!(folder.read("elsewhere.log").contains("\"reason\":\"command line\""));
    assert!(!folder.path("other/security.log").exists());
    folder.write("store/security.log", "not a log\n");
    let run = folder.run("keys create --role admin");
    assert!(run.code == 1 && run.out.is_empty() && run.err.contains("not a security log"), "{}", run.all());
}

#[test]
fn the_client_behind_a_trusted_proxy_is_named() {
    let folder = Folder::new();
    let serve = folder.serve("--trusted-proxy 127.0.0.1");
    let forwarded = [("X-Forwarded-For", "203.0.113.9, 198.51.100.7")];
    assert_eq!(http(&serve.address, "GET", "/api_keys", &forwarded, "").status, 401);
    let found = wait_for(&folder, "authentication_failed");
    let line = with_event(&found, "authentication_failed")[0];
    assert_eq!((&line["peer"], &line["through"]), (&json!("198.51.100.7"), &json!("127.0.0.1")));
}

#[test]
fn a_reload_that_changes_credentials_is_logged_without_them() {
    let folder = Folder::new();
    folder.write("token", "hunter2");
    folder.write("config.yaml", "{}\n");
    let serve = folder.serve_with("", &[("EDGEWRIGHT_CONFIG", "config.yaml")]);
    let source =
        "{name: shop, repository: 'https://127.0.0.1:1/shop.git', ref: main, username: deploy, password_file: token}";
    folder.write("m/edge.yaml", &edge("one", "one"));
    folder.write("config.yaml", &format!("sources:\n- {source}\n- {{name: local, path: m}}\n"));
    let found = wait_for(&folder, "credentials_changed");
    let changed = with_event(&found, "credentials_changed");
    assert_eq!((changed.len(), &changed[0]["source"], &changed[0]["reason"]), (1, &json!("shop"), &json!("added")));
    drop(serve);
    let text = folder.read(LOG);
    assert!(!text.contains("hunter2") && !text.contains("deploy"), "{text}");
}

#[test]
fn changes_of_roles_and_refused_ones_are_logged() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let (id, token) = key_of(&serve, &json!({"owner_id": "usr_ed"}));
    let role = |token: &str, role: &str| {
        serve.call_as(token, "PATCH", "/owners/usr_ed", &json!({"role": role}).to_string()).status
    };
    assert_eq!(role(&token, "admin"), 403);
    assert_eq!(role(&serve.token, "viewer"), 200);
    let found = wait_for(&folder, "role_changed");
    let changed = with_event(&found, "role_changed");
    assert_eq!((changed.len(), &changed[0]["target"], &changed[0]["role"]), (1, &json!("usr_ed"), &json!("viewer")));
    assert_eq!(
        (&changed[0]["method"], &changed[0]["path"], &changed[0]["status"]),
        (&json!("PATCH"), &json!("/owners/{p0}"), &json!(200))
    );
    let refused = with_event(&found, "permission_refused");
    assert_eq!((refused.len(), &refused[0]["key"], &refused[0]["owner"]), (1, &json!(id), &json!("usr_ed")));
}

#[test]
fn a_log_that_was_removed_goes_on_and_its_loss_is_found() {
    let folder = Folder::new();
    let serve = folder.serve("");
    wait_for(&folder, "started");
    std::fs::remove_file(folder.path(LOG)).unwrap();
    assert_eq!(http(&serve.address, "GET", "/api_keys", &[], "").status, 401);
    until("a new file", || folder.path(LOG).exists().then_some(()));
    serve.stop();
    let found = lines(&folder);
    assert_eq!(found[0]["event"], "log_continued");
    assert_eq!((&found[0]["seq"], with_event(&found, "authentication_failed").len()), (&json!(3), 1));
    let run = verified(&folder);
    assert!(run.code == 1 && run.err.contains("lines 1 to 2 were removed or moved"), "{}", run.all());
}
