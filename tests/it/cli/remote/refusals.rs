//! What is refused through a server, by whom, and with which exit code; nothing has changed then.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
};

use serde_json::json;

use super::{KEY, Remote, SHOP, STRIPE, said, through};
use crate::support::{
    manifests::bare_edge,
    program::{Folder, finish},
};

#[test]
fn a_fault_of_the_files_is_told_before_anything_is_sent() {
    let folder = Folder::with_storefront();
    folder.edit(SHOP, "Product pages", "Product pages\n      colour: red");
    folder.write("empty/a.yaml", "");
    for line in ["plan storefront", "reconcile storefront", "plan --format json storefront", "plan empty", "plan none"]
    {
        // Nobody listens there.
        let run = finish(through(&folder, "http://127.0.0.1:1", "x", line), "");
        let mut local = folder.run(line);
        // What is said of a store is not said of a server.
        local.err = local
            .err
            .lines()
            .filter(|line| !line.contains("o store found in") && !line.starts_with("New store"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!((run.code, &run.out, said(&run)), (3, &local.out, said(&local)), "{line}");
    }
}

#[test]
fn what_only_the_server_can_know_is_told_at_its_line_too() {
    let remote = Remote::new(Folder::new());
    remote.here.write("m/a.yaml", &bare_edge("shop", ""));
    remote.same("reconcile --source a m");
    remote.refuses("reconcile --source b m", 3, &["ERR_EDGEWRIGHT_NOT_DELEGATED", "m/a.yaml:4:20", "`a`"]);
    remote.same("reconcile --source b m");
    // Columns count characters, here and there.
    let unknown =
        "description: é🦀é, mutual_tls: {certificate_authority_ids: [ca_000000000000000000000000000]}, hostports";
    remote.here.write("ca/a.yaml", &bare_edge("docs", "").replace("hostports", unknown));
    remote.here.ok("validate ca");
    for verb in ["plan", "reconcile"] {
        remote.refuses(&format!("{verb} ca"), 3, &["ERR_EDGEWRIGHT_UNKNOWN_REFERENCE", "ca/a.yaml:4:", "ca_000"]);
    }
    remote.same("plan --format github ca");
}

#[test]
fn the_safety_limits_hold() {
    let remote = Remote::new(Folder::new());
    for name in ["a", "b", "c", "d", "e"] {
        remote.here.write(&format!("m/{name}.yaml"), &bare_edge(name, ""));
    }
    remote.same("reconcile m");
    for name in ["b", "c", "d", "e"] {
        fs::remove_file(remote.here.path(&format!("m/{name}.yaml"))).unwrap();
    }
    for line in ["plan m", "reconcile m", "reconcile --max-deletes 3 m", "reconcile --max-deletes 79% m"] {
        let run = remote.refuses(line, 4, &["ERR_EDGEWRIGHT_TOO_MANY_DELETIONS", "--max-deletes 4"]);
        assert!(run.out.ends_with("0 to create, 0 to change, 0 to replace, 4 to delete, 1 unchanged\n"), "{}", run.out);
        remote.same(line);
    }
    assert_eq!(remote.same("reconcile --prune=false m").out, "No changes: 1 unchanged.\n");
    assert_eq!(remote.same("reconcile --max-deletes 80% m").code, 0);

    remote.here.write("m/a.yaml", &bare_edge("a", ", prevent_destroy: true"));
    remote.same("reconcile m");
    remote.here.write("m/a.yaml", "# nothing\n");
    let run = remote.refuses("reconcile --max-deletes 1 m", 4, &["ERR_EDGEWRIGHT_PREVENT_DESTROY", "HttpsEdge a ("]);
    assert!(run.out.contains("- HttpsEdge a "), "{}", run.out);
    remote.same("reconcile --max-deletes 1 m");
}

#[test]
fn a_refused_request_to_apply_is_in_the_history_and_a_dry_run_is_not() {
    let remote = Remote::new(Folder::new());
    let refused = || -> Vec<String> {
        let history = remote.serve.get("/history").json();
        let records = history["history"].as_array().unwrap().iter().filter(|record| record["outcome"] == "refused");
        records.map(|record| record["message"].as_str().unwrap().to_owned()).collect()
    };
    for name in ["a", "b", "c", "d", "e"] {
        remote.here.write(&format!("m/{name}.yaml"), &bare_edge(name, ""));
    }
    remote.ok("reconcile m");
    for name in ["b", "c", "d", "e"] {
        fs::remove_file(remote.here.path(&format!("m/{name}.yaml"))).unwrap();
    }
    // These commands plan first, and never ask to apply what is refused.
    for line in ["plan m", "reconcile m", "destroy --source default --confirm default --max-deletes 1"] {
        remote.refuses(line, 4, &["TOO_MANY_DELETIONS"]);
    }
    let unknown = "mutual_tls: {certificate_authority_ids: [ca_000000000000000000000000000]}, hostports";
    let manifest = bare_edge("f", "").replace("hostports", unknown);
    remote.here.write("m/f.yaml", &manifest);
    remote.refuses("reconcile m", 3, &["UNKNOWN_REFERENCE"]);
    assert!(refused().is_empty(), "{:?}", refused());
    for (name, text) in [("m/a.yaml", bare_edge("a", "")), ("m/f.yaml", manifest)] {
        let files = json!([{"name": name, "text": text}]);
        for dry_run in [true, false] {
            let body = json!({"source": "default", "files": files, "dry_run": dry_run});
            assert!(remote.serve.call("POST", "/reconciliations", &body.to_string()).status >= 400 || dry_run);
        }
    }
    let messages = refused();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].starts_with("ERR_EDGEWRIGHT_UNKNOWN_REFERENCE: m/f.yaml:4:"), "{messages:?}");
    assert!(messages[1].starts_with("ERR_EDGEWRIGHT_TOO_MANY_DELETIONS: "), "{messages:?}");
}

#[test]
fn whatever_has_changed_since_the_review_is_refused_with_its_reason() {
    let remote = Remote::new(Folder::with_storefront());
    let refuses = |line: &str, reason: &str| {
        remote.refuses(&format!("reconcile --plan {line}"), 5, &["ERR_EDGEWRIGHT_STALE", reason]);
    };
    remote.here.ok("plan --store other --out other.json storefront");
    refuses("other.json storefront", "another store");
    remote.ok("reconcile storefront");
    remote.here.edit(SHOP, "Product pages", "All products");
    remote.ok("plan --out plan.json storefront");
    let edited = remote.here.read("plan.json").replace("All products", "Evil products");
    remote.here.write("edited.json", &edited);
    refuses("edited.json storefront", "the saved plan was edited");
    remote.here.write("m/a.yaml", &bare_edge("a", ""));
    refuses("plan.json --source other m", "for source `default`");
    remote.here.edit(SHOP, "All products", "Some products");
    refuses("plan.json storefront", "the manifests");
    remote.here.edit(SHOP, "Some products", "All products");
    let secret = remote.here.read(STRIPE);
    remote.here.write(STRIPE, "whsec_another\n");
    refuses("plan.json storefront", "files or variables");
    remote.here.write(STRIPE, &secret);
    assert_eq!(remote.serve.call("POST", "/ip_restrictions", r#"{"type":"api"}"#).status, 201);
    // What others change does not matter: the same calls lead to the same state.
    remote.ok("reconcile --plan plan.json storefront");
}

#[test]
fn whoever_may_not_reconcile_is_told_why() {
    let there = Folder::new();
    let viewer = there.ok("keys create --role viewer").out;
    let remote = Remote::start(Folder::new(), there, "");
    remote.here.write("m/a.yaml", &bare_edge("a", ""));
    let unknown = format!("{}x", remote.serve.token);
    for (token, code, word) in [
        ("", "UNAUTHENTICATED", "EDGEWRIGHT_TOKEN"),
        (" \n", "UNAUTHENTICATED", "EDGEWRIGHT_TOKEN"),
        ("nonsense", "UNAUTHENTICATED", "EDGEWRIGHT_TOKEN"),
        (unknown.as_str(), "UNAUTHENTICATED", "EDGEWRIGHT_TOKEN"),
        (viewer.trim(), "FORBIDDEN", "the role `viewer` may only read and plan"),
    ] {
        // A viewer may plan.
        let verbs = if token == viewer.trim() { &["reconcile"][..] } else { &["plan", "reconcile"] };
        for verb in verbs {
            let run = remote.run_as(token, &format!("{verb} m"));
            assert_eq!(run.code, 1, "{token:?}\n{}", run.all());
            assert!(run.out.is_empty() || code == "FORBIDDEN", "{token:?}\n{}", run.all());
            assert!(run.err.contains(&format!("ERR_EDGEWRIGHT_{code}")) && run.err.contains(word), "{}", run.err);
            assert!(token.trim().is_empty() || !run.err.contains(token), "a token is a secret: {}", run.err);
        }
    }
    let mut without = remote.command("", "reconcile m");
    without.env_remove("EDGEWRIGHT_TOKEN");
    let run = finish(without, "");
    assert_eq!((run.code, run.err.contains("EDGEWRIGHT_TOKEN")), (1, true), "{}", run.all());
    let run = remote.run_as("a\nb", "plan m");
    assert!(run.code == 1 && !run.err.contains("was applied"), "it cannot be sent: {}", run.all());
    assert!(remote.applied().is_empty());
    // White space around a token, as a file has it, is no part of it.
    assert_eq!(remote.run_as(&format!("{}\n", remote.serve.token), "reconcile m").code, 0);
}

/// Answers one request with a page of the web, and returns where.
fn page(status: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 13\r\n\r\n");
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut request = BufReader::new(connection.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0);
        while request.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        request.read_exact(&mut vec![0; length]).unwrap();
        connection.write_all(format!("{head}<html></html>").as_bytes()).unwrap();
    });
    url
}

#[test]
fn what_is_no_server_is_told_from_one_that_refuses() {
    let remote = Remote::new(Folder::new());
    remote.here.write("m/a.yaml", &bare_edge("a", ""));
    let (not_found, found, behind) =
        (page("404 Not Found"), page("200 OK"), format!("http://{}/x", remote.serve.address));
    let nowhere = format!("http://{}", "x".repeat(70));
    let dashboard = format!("http://{}/ui", remote.serve.address);
    for (url, code, word) in [
        ("http://127.0.0.1:1", "UNREADABLE", "cannot reach http://127.0.0.1:1/reconciliations"),
        (nowhere.as_str(), "UNREADABLE", "cannot reach"),
        (not_found.as_str(), "UNREADABLE", "(status 404): not an edgewright server"),
        (found.as_str(), "UNREADABLE", "not an edgewright server"),
        (behind.as_str(), "NOT_FOUND", "--server"),
        ("ftp://x", "INVALID_FORMAT", "`ftp://x` is not an HTTP or HTTPS URL"),
        ("localhost:8484", "INVALID_FORMAT", "`localhost:8484` is not an HTTP or HTTPS URL"),
        ("localhost:8484", "INVALID_FORMAT", "did you mean `http://localhost:8484`?"),
        ("edge.example.com", "INVALID_FORMAT", "did you mean `https://edge.example.com`?"),
        ("me:secret@edge.example.com", "INVALID_FORMAT", "must not contain a user name or password"),
        (dashboard.as_str(), "NOT_FOUND", "remove `/ui` from the URL in --server"),
        ("http://[::1", "INVALID_FORMAT", "`http://[::1` is not an HTTP or HTTPS URL"),
    ] {
        let run = finish(through(&remote.here, url, &remote.serve.token, "plan m"), "");
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{url}\n{}", run.all());
        assert!(run.err.contains(&format!("ERR_EDGEWRIGHT_{code}")) && run.err.contains(word), "{url}\n{}", run.err);
        assert!(!run.err.contains("was applied"), "a plan applies nothing: {}", run.err);
    }
    let slash = format!("http://{}/", remote.serve.address);
    let run = finish(through(&remote.here, &slash, &remote.serve.token, "reconcile m"), "");
    assert_eq!(run.code, 0, "a slash at the end is none too many: {}", run.all());
}

#[test]
fn a_file_that_is_there_already_is_never_written_over() {
    let remote = Remote::new(Folder::new());
    // The first of two keys is taken back with the second.
    let key = KEY.replace("description: for ci", "owner_id: bot_ci");
    remote.here.write("m/a.yaml", &key.replace("name: ci", "name: a").replace("ci.token", "a.token"));
    remote.here.write("m/b.yaml", &key.replace("name: ci", "name: b").replace("ci.token", "b.token"));
    remote.here.write("b.token", "precious");
    for verb in ["plan", "reconcile"] {
        let words = ["ERR_EDGEWRIGHT_CONFLICT", "[m/b.yaml:4:", "b.token", "name a new file"];
        remote.refuses(&format!("{verb} m"), 1, &words);
        remote.same(&format!("{verb} m"));
    }
    assert_eq!(remote.here.read("b.token"), "precious");
    assert!(!remote.here.path("a.token").exists());
    let keys = remote.serve.get("/api_keys").json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "{keys}");
}

#[test]
fn an_editor_makes_no_key_for_others() {
    let there = Folder::new();
    let editor = there.ok("keys create --role editor --owner usr_editor").out;
    let remote = Remote::start(Folder::new(), there, "");
    remote.here.write("m/a.yaml", &bare_edge("a", ""));
    assert_eq!(remote.run_as(editor.trim(), "reconcile m").code, 0);
    assert_eq!(remote.applied()[0]["owner_id"], "usr_editor");
    remote.here.write("keys/key.yaml", &KEY.replace("description: for ci", "owner_id: usr_admin"));
    for verb in ["plan", "reconcile"] {
        let run = remote.run_as(editor.trim(), &format!("{verb} --source keys keys"));
        assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_FORBIDDEN")), (1, true), "{}", run.all());
    }
    assert_eq!((remote.applied().len(), remote.here.path("ci.token").exists()), (1, false));
    remote.here.write("keys/key.yaml", KEY);
    let own = remote.run_as(editor.trim(), "reconcile --source keys keys");
    assert_eq!(own.code, 0, "for itself it does, also without saying so: {}", own.all());
    let of_the_editor = || remote.run("keys list -o wide").out.matches("usr_editor").count();
    assert_eq!(of_the_editor(), 2);
    // Who applies it next does not become its owner.
    remote.here.write("keys/key.yaml", &KEY.replace("for ci", "for the pipeline"));
    let next = remote.run("reconcile --source keys keys");
    assert_eq!(next.code, 0, "{}", next.all());
    assert_eq!(of_the_editor(), 2);
}
