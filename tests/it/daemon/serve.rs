//! `edgewright serve` as a process: it follows a folder, ends in order, and shares its store with nobody.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    process::Command,
    time::{Duration, Instant},
};

use crate::support::{
    http::{answer, http, request},
    manifests::edge,
    program::{Folder, finish, until},
    sources::{shown, until_shown},
    users::client,
};

#[test]
fn a_good_change_is_applied_and_a_broken_one_is_reported() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    assert_eq!(shown(&serve), ["first"], "the folder is applied before the first request");
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");

    folder.write("m/one.yaml", &edge("one", "third").replace("hostports", "hostprots"));
    for part in ["ERR_EDGEWRIGHT_UNKNOWN_FIELD", "m/one.yaml:4:", "the last good state stays in service"] {
        serve.wait_for(part);
    }
    assert_eq!(shown(&serve), ["second"]);
    fs::remove_file(folder.path("m/one.yaml")).unwrap();
    serve.wait_for("ERR_EDGEWRIGHT_EMPTY_SOURCE");
    assert_eq!(shown(&serve), ["second"], "an empty folder deletes nothing");

    folder.write("m/new/one.yaml", &edge("one", "fourth"));
    until_shown(&serve, "fourth");
    let run = serve.stop();
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.all());
}

#[test]
fn the_run_at_the_start_is_measured() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    let page = serve.get("/metrics").body;
    assert!(page.contains("edgewright_reconcile_total{result=\"applied\"} 1\n"), "{page}");
    assert!(page.contains("edgewright_reconcile_duration_seconds_count"), "{page}");
}

#[test]
fn broken_manifests_at_the_start_are_reported_and_the_api_is_up() {
    let folder = Folder::new();
    folder.write("m/one.yaml", "kind: Nothing\n");
    let serve = folder.serve("--manifests m");
    assert!(serve.said().contains("ERR_EDGEWRIGHT_API_VERSION"), "{}", serve.said());
    assert!(shown(&serve).is_empty());
    folder.write("m/one.yaml", &edge("one", "mended"));
    until_shown(&serve, "mended");
}

/// Points a link at something else in one step, as `kubelet` and `git-sync` do.
fn swap(folder: &Folder, link: &str, target: &str) {
    let aside = folder.path("swap.tmp");
    symlink(target, &aside).unwrap();
    fs::rename(aside, folder.path(link)).unwrap();
}

#[test]
fn a_mounted_config_map_is_followed_when_it_is_swapped() {
    let folder = Folder::new();
    folder.write("mount/..v1/one.yaml", &edge("one", "first"));
    symlink("..v1", folder.path("mount/..data")).unwrap();
    symlink("..data/one.yaml", folder.path("mount/one.yaml")).unwrap();
    let serve = folder.serve("--manifests mount");
    assert_eq!(shown(&serve), ["first"]);
    for (old, new, description) in [("..v1", "..v2", "second"), ("..v2", "..v3", "third")] {
        folder.write(&format!("mount/{new}/one.yaml"), &edge("one", description));
        swap(&folder, "mount/..data", new);
        fs::remove_dir_all(folder.path(&format!("mount/{old}"))).unwrap();
        until_shown(&serve, description);
    }
}

#[test]
fn a_checkout_behind_a_link_is_followed_when_it_is_swapped() {
    let folder = Folder::new();
    folder.write("r1/one.yaml", &edge("one", "first"));
    symlink("r1", folder.path("current")).unwrap();
    let serve = folder.serve("--manifests current");
    assert_eq!(shown(&serve), ["first"]);
    folder.write("r2/one.yaml", &edge("one", "second"));
    swap(&folder, "current", "r2");
    until_shown(&serve, "second");
    folder.write("r2/one.yaml", &edge("one", "third"));
    until_shown(&serve, "third");
}

#[test]
fn a_terminated_server_finishes_what_is_under_way() {
    let folder = Folder::new();
    let mut serve = folder.serve("");
    assert_eq!(serve.get("/edges/https").status, 200);
    let body = r#"{"hostports":["slow.example.com:443"],"description":"slow"}"#;
    let bearer = format!("Bearer {}", serve.token);
    let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
    let whole = request(&serve.address, "POST", "/edges/https", &headers, body);
    let (head, rest) = whole.split_at(whole.len() - 10);
    let mut connection = TcpStream::connect(&serve.address).unwrap();
    connection.write_all(head.as_bytes()).unwrap();
    // The server has to have seen the request, or it is not under way.
    std::thread::sleep(Duration::from_millis(300));
    serve.terminate();
    until("the closed door", || TcpStream::connect(&serve.address).is_err().then_some(()));
    connection.write_all(rest.as_bytes()).unwrap();
    assert_eq!(answer(connection).status, 201);
    let run = serve.ended();
    assert_eq!(run.code, 0, "{}", run.all());
    assert!(run.err.ends_with("Stopped.\n"), "{}", run.err);
    assert_eq!(folder.snapshot("store").revision, 2, "the admin, and the slow edge");
}

#[test]
fn a_rejected_body_is_not_waited_for() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let head = |path: &str, length: u64| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nService-Version: 2\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            serve.token
        )
    };
    let too_large = "HTTP/1.1 413 ";
    for (path, length, status) in [
        ("/edges/https", (2 << 20) + 1, too_large),
        ("/edges/https", u64::MAX / 4, too_large),
        ("/reconciliations", (64 << 20) + 1, too_large),
        ("/nowhere", 100, "HTTP/1.1 404 "),
    ] {
        let mut connection = TcpStream::connect(&serve.address).unwrap();
        let asked = Instant::now();
        connection.write_all(head(path, length).as_bytes()).unwrap();
        let mut start = [0; 13];
        connection.read_exact(&mut start).unwrap();
        assert_eq!(String::from_utf8_lossy(&start), status, "{path}");
        assert!(asked.elapsed() < Duration::from_secs(8), "{path}: {:?}", asked.elapsed());
    }
    // A client that sends everything before it reads gets its answer all the same, and can go on.
    let mut connection = TcpStream::connect(&serve.address).unwrap();
    connection.write_all(head("/edges/https", 3 << 20).as_bytes()).unwrap();
    connection.write_all(&vec![b' '; 3 << 20]).unwrap();
    connection.write_all(request(&serve.address, "GET", "/healthz", &[], "").as_bytes()).unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    assert!(text.starts_with(too_large) && text.contains("HTTP/1.1 200 "), "{text}");
}

#[test]
fn a_store_has_one_process_at_a_time() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("");
    for line in ["reconcile m", "plan m", "keys list", "keys create", "owners list"] {
        let run = folder.run(line);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{line}\n{}", run.all());
        assert!(run.err.contains("ERR_EDGEWRIGHT_STORE_LOCKED"), "{line}\n{}", run.err);
        let cure = format!("help: add `--server http://{}`, and set EDGEWRIGHT_TOKEN to the token", serve.address);
        assert!(run.err.contains(&cure), "{line}\n{}", run.err);
        let server = format!("perhaps `edgewright serve` at http://{}", serve.address);
        assert!(run.err.contains(&server), "{line}\n{}", run.err);
    }
    let second = folder.run("serve --listen 127.0.0.1:0");
    let said = [format!("at http://{} (process ", serve.address), "help: use the running server".to_owned()];
    assert!(second.code == 1 && said.iter().all(|it| second.err.contains(it)), "{}", second.all());
    assert_eq!(folder.ok("validate m").out, "", "what needs no store runs");
    assert_eq!(serve.stop().code, 0);
    folder.ok("reconcile m");
}

#[test]
fn a_port_in_use_is_a_clear_error_and_makes_no_store() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let run = folder.run(&format!("serve --store other --listen {}", serve.address));
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.err.contains("ERR_EDGEWRIGHT_CANNOT_LISTEN"), "{}", run.err);
    assert!(run.err.contains(&format!("cannot listen on {}", serve.address)), "{}", run.err);
    let cure = run.err.split_once("help: ").unwrap().1;
    assert!(cure.contains("another program uses the port") && cure.contains("--listen"), "{}", run.err);
    assert!(!cure.contains("8484"), "{}", run.err);
    assert!(!folder.path("other").exists());
}

#[test]
fn a_folder_with_other_files_is_not_taken_for_a_store() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    for line in ["plan --store m m", "reconcile --store m m", "serve --store m --listen 127.0.0.1:0"] {
        let run = folder.run(line);
        assert_eq!(run.code, 1, "{line}\n{}", run.all());
        assert!(run.err.contains("ERR_EDGEWRIGHT_STORE_FORMAT"), "{line}\n{}", run.err);
    }
    assert_eq!(fs::read_dir(folder.path("m")).unwrap().count(), 1);
    let none = folder.run("keys list");
    assert_eq!(none.code, 1);
    assert!(none.err.contains("no store found in `store`"), "{}", none.err);
    assert!(!folder.path("store").exists());
}

#[test]
fn the_version_header_can_be_renamed() {
    let folder = Folder::new();
    let serve = folder.serve("--version-header Shop-Version");
    let bearer = format!("Bearer {}", serve.token);
    let ask = |header: &str| {
        let headers = [("Authorization", bearer.as_str()), (header, "2")];
        http(&serve.address, "GET", "/edges/https", &headers, "")
    };
    assert_eq!(ask("Shop-Version").status, 200);
    let refused = ask("Service-Version");
    assert_eq!((refused.status, refused.code().as_str()), (400, "ERR_EDGEWRIGHT_VERSION_HEADER"));
    assert!(refused.body.contains("Shop-Version: 2"), "{}", refused.body);
    let run = folder.run("serve --store other --listen 127.0.0.1:0 --version-header a:b");
    assert!(run.code == 1 && run.err.contains("must be a valid header name"), "{}", run.all());
}

#[test]
fn the_documentation_follows_the_path_of_the_base_url() {
    let folder = Folder::new();
    let serve = folder.serve("--base-url https://edge.example.com/edges-api/");
    assert_eq!(serve.get("/edges/https").json()["uri"], "https://edge.example.com/edges-api/edges/https");
    assert_eq!(serve.get("/openapi.json").json()["servers"], serde_json::json!([{"url": "/edges-api"}]));
    let redirect = serve.get("/docs");
    assert_eq!((redirect.status, redirect.header("location")), (303, vec!["docs/"]), "{redirect:?}");
    let script = serve.get("/docs/script.js").body;
    assert!(script.contains("\"../openapi.json\""), "{script}");
    drop(serve);
    for bad in [
        "gateway.example.com",
        "ftp://h",
        "https://",
        "https://h/a?x=1",
        "https://h/#f",
        "https://u:p@h",
        "https://h/a\tb",
        "https://h:99999",
        "https://h:",
        "https://:443",
    ] {
        for option in ["--base-url", "--saml-base-url"] {
            let mut command = folder.command("serve --store other --listen 127.0.0.1:0");
            command.args([option, bad]);
            let run = finish(command, "");
            assert_eq!((run.code, run.err.contains("must be an http or https URL")), (1, true), "{bad}: {}", run.all());
        }
    }
    assert!(!folder.path("other").exists());
}

#[test]
fn a_list_that_a_blank_empties_is_warned_of_once() {
    let folder = Folder::new();
    let serve = folder.serve("--blanks-count");
    let body = r#"{"type": "api", "enforced": true, "ip_policy_ids": ["ipp_1"], "description": "office"}"#;
    let made = serve.call("POST", "/ip_restrictions", body).json();
    let path = format!("/ip_restrictions/{}", made["id"].as_str().unwrap());
    let patched = serve.call("PATCH", &path, r#"{"ip_policy_ids": [], "description": ""}"#);
    assert_eq!((patched.status, &patched.json()["ip_policies"]), (200, &serde_json::json!([])), "{}", patched.body);
    let expected = ["`description` is empty now", "`ip_policy_ids` is empty now, and the restriction is enforced"];
    assert_eq!(patched.header("edgewright-warning"), expected, "{patched:?}");
}

#[test]
fn the_first_admin_token_is_given_once() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let token = serve.token.clone();
    assert!(token.starts_with("ew_ak_"), "{token}");
    assert_eq!(folder.mode("admin.token"), 0o600);
    assert_eq!(serve.get("/api_keys").status, 200);
    let said = serve.stop();
    assert!(!said.err.contains("ew_"), "{}", said.err);
    fs::remove_file(folder.path("admin.token")).unwrap();
    let again = folder.serve("");
    assert_eq!(again.call_as(&token, "GET", "/api_keys", "").status, 200);
    let said = again.stop().err;
    assert!(said.contains("The store already has an admin: admin.token was not written."), "{said}");
    assert!(!folder.path("admin.token").exists(), "the second start writes none");
}

#[test]
fn without_a_file_the_first_admin_token_is_shown_on_stderr_once() {
    let folder = Folder::new();
    let log = fs::File::create(folder.path("log")).unwrap();
    let mut child = folder.command("serve --listen 127.0.0.1:0").stderr(log).spawn().unwrap();
    let said = until("the address", || Some(folder.read("log")).filter(|log| log.contains("(listening on ")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("(shown only once): ew_ak_"), "{said}");
    let again = folder.serve("");
    assert!(!again.said().contains("ew_"), "{}", again.said());
}

#[test]
fn keys_and_owners_are_managed_on_a_stopped_servers_store() {
    let folder = Folder::new();
    assert_eq!(folder.serve("").stop().code, 0);
    let created = folder.ok("keys create --role viewer --owner usr_dashboard --description board");
    let token = created.out.trim_end_matches('\n').to_owned();
    assert!(token.starts_with("ew_ak_") && !token.contains(char::is_whitespace), "just the token: {created:?}");
    assert_eq!(created.err, "");
    let id = token[3..].rsplit_once('_').unwrap().0;

    let words = |line: &str| -> Vec<Vec<String>> {
        let list = folder.ok(line).out;
        list.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let keys = words("keys list");
    assert_eq!(keys[0], ["DESCRIPTION", "ROLE", "SCOPE", "ID"]);
    let board = ["board", "viewer", "reads", "only", id].map(str::to_owned);
    assert_eq!((keys.len(), &keys[1]), (3, &board.to_vec()), "newest first");
    let wide = words("keys list -o wide");
    assert!(wide[0].ends_with(&["OWNER".to_owned(), "CREATED-AT".to_owned()]), "{wide:?}");
    assert!(wide[1].contains(&"usr_dashboard".to_owned()), "{wide:?}");
    assert!(!folder.ok("keys list -o wide").out.contains("ew_"));
    assert!(words("owners list").contains(&vec!["viewer".to_owned(), "usr_dashboard".to_owned()]));
    let document = |line: &str| -> serde_json::Value { serde_yaml::from_str(&folder.ok(line).out).unwrap() };
    for format in ["json", "yaml"] {
        let board = document(&format!("keys list -o {format}"))[0].clone();
        let fields = ["id", "description", "owner_id", "role", "scope"].map(|field| board[field].clone());
        assert_eq!(serde_json::json!(fields), serde_json::json!([id, "board", "usr_dashboard", "viewer", null]));
        let owners = document(&format!("owners list -o {format}"));
        let dashboard = serde_json::json!({"id": "usr_dashboard", "role": "viewer"});
        assert!(owners.as_array().unwrap().contains(&dashboard), "{owners}");
    }
    assert!(folder.ok("keys list -o name").out.starts_with(&format!("{id}\n")));
    assert!(folder.ok("owners list -o name").out.contains("usr_dashboard\n"));

    let body = r#"{"hostports":["one.example.com:443"]}"#;
    let serve = folder.serve("");
    assert_eq!(serve.call_as(&token, "GET", "/edges/https", "").status, 200);
    let refused = serve.call_as(&token, "POST", "/edges/https", body);
    assert_eq!((refused.status, refused.code().as_str()), (403, "ERR_EDGEWRIGHT_FORBIDDEN"));
    serve.stop();

    folder.ok("owners set-role usr_dashboard editor");
    let serve = folder.serve("");
    assert_eq!(serve.call_as(&token, "POST", "/edges/https", body).status, 201);
    serve.stop();

    folder.ok(&format!("keys revoke {id}"));
    let serve = folder.serve("");
    let refused = serve.call_as(&token, "GET", "/edges/https", "");
    assert_eq!((refused.status, refused.code().as_str()), (401, "ERR_EDGEWRIGHT_UNAUTHENTICATED"));
    serve.stop();

    let unknown = folder.run(&format!("keys revoke {id}"));
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("ERR_EDGEWRIGHT_NOT_FOUND"), "{}", unknown.err);
    assert_eq!(folder.run("keys create --role boss").code, 1, "a usage error is 1, for 2 means pending changes");
}

#[test]
fn roles_are_set_while_the_server_runs() {
    let folder = Folder::new();
    assert_eq!(folder.serve("").stop().code, 0);
    folder.ok("keys create --role editor --owner bot_gateway");
    let serve = folder.serve("");
    let client = |line: &str| client(&folder, &serve, line);
    assert_eq!(client("owners set-role bot_gateway gateway").code, 0);
    let list = client("owners list");
    let is_gateway = |line: &str| line.split_whitespace().eq(["gateway", "bot_gateway"]);
    assert!(list.code == 0 && list.out.lines().any(is_gateway), "{}", list.all());
    let unknown = client("owners set-role usr_nobody viewer");
    assert_eq!((unknown.code, unknown.err.contains("`edgewright owners list`")), (1, true), "{}", unknown.all());

    for line in ["keys create --role viewer", "keys list", "keys revoke ak_1", "owners set-role bot_gateway viewer"] {
        let locked = folder.run(line);
        let said = locked.err.contains("ERR_EDGEWRIGHT_STORE_LOCKED") && locked.err.contains("add `--server http");
        assert_eq!((locked.code, said), (1, true), "{line}: {}", locked.all());
    }
    let bare = folder.run("suspend shop --reason x --for 2");
    assert!(bare.code == 1 && bare.err.contains("add a unit, such as 2h, 5m or 30s"), "{}", bare.all());
    let zero = folder.run("suspend shop --reason x --for 0s");
    assert_eq!((zero.code, zero.err.contains("`--for` must be longer than 0 seconds")), (1, true), "{}", zero.all());
    assert_eq!(serve.stop().code, 0);
    assert_eq!(list.out, folder.ok("owners list").out, "the store has the same");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = Folder::with_storefront();
    let script = format!("set -o pipefail; {} plan storefront | head -n 1", crate::support::program::PROGRAM);
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder.path(""));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // There is no store yet, and nothing else to say.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.lines().all(|line| line.starts_with("No store found")), "{output:?}");
}

#[test]
fn only_files_and_folders_can_be_followed() {
    let folder = Folder::new();
    let run = folder.run("serve --listen 127.0.0.1:0 --manifests -");
    assert_eq!((run.code, run.err.contains("`--manifests` cannot be standard input")), (1, true), "{}", run.err);
    let run = folder.run("serve --listen 127.0.0.1:0 --manifests mainfests");
    assert_eq!((run.code, run.err.contains("mainfests does not exist")), (1, true), "{}", run.err);
    assert!(!folder.path("store").exists() && !folder.path("store.master.key").exists());
    folder.ok("keys create --role admin");
    let serve = folder.serve("--manifests mainfests");
    assert!(serve.said().contains("ERR_EDGEWRIGHT_UNREADABLE"), "a store is served without them: {}", serve.said());
}
