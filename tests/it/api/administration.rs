//! Administration of a server that runs, and the contexts of its users (D105).

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use crate::support::{
    http::http,
    manifests::edge_with,
    program::{CONFIG_VARIABLE, Folder, finish},
    users::{CONTEXTS, assert_refused, client, login, run_as_user, run_with_token, url, user},
};

#[test]
fn keys_are_created_listed_and_revoked_while_the_server_runs() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let admin = |line: &str| client(&folder, &serve, line);
    let made = admin("keys create --role viewer --owner usr_dashboard --description dashboard");
    assert_eq!((made.code, made.err.as_str()), (0, ""), "{}", made.all());
    let token = made.out.trim();
    assert_eq!(made.out, format!("{token}\n"));
    assert_eq!(serve.call_as(token, "GET", "/edges/https", "").status, 200);
    assert_eq!(serve.call_as(token, "POST", "/edges/https", "{}").code(), "ERR_EDGEWRIGHT_FORBIDDEN");
    // A second key of the same owner; a role that the owner does not have is refused.
    assert_eq!(admin("keys create --owner usr_dashboard --role viewer").code, 0);
    let other_role = admin("keys create --owner usr_dashboard --role admin");
    assert_refused(&other_role, "`usr_dashboard` already has the role `viewer`; omit the role");
    // Without an owner, it is a new one.
    assert_eq!(admin("keys create --role admin").code, 0);

    let list = admin("keys list");
    assert_eq!(list.out.lines().count(), 5, "{}", list.all());
    let found = list.out.lines().find(|line| line.starts_with("dashboard") && line.contains("viewer")).unwrap();
    let id = found.split_whitespace().last().unwrap();
    // Nobody but admins sees roles, and nobody else makes keys for others.
    let of_viewer = run_with_token(&folder, &serve, token, "keys list");
    assert_eq!((of_viewer.code, of_viewer.out.lines().count()), (0, 5), "{}", of_viewer.all());
    assert!(of_viewer.err.contains("Only admins can see the roles."), "{}", of_viewer.err);
    assert_refused(&run_with_token(&folder, &serve, token, "keys create"), "ERR_EDGEWRIGHT_FORBIDDEN");

    let revoked = admin(&format!("keys revoke {id}"));
    assert!(revoked.code == 0 && revoked.out.is_empty(), "{}", revoked.all());
    assert_eq!(revoked.err, format!("Revoked {id} (dashboard) of usr_dashboard.\n"));
    assert_eq!(serve.call_as(token, "GET", "/edges/https", "").status, 401);
    assert_refused(&admin(&format!("keys revoke {id}")), "ERR_EDGEWRIGHT_NOT_FOUND");
    let list = admin("keys list");
    assert_eq!(serve.stop().code, 0);
    assert_eq!(folder.ok("keys list").out, list.out, "the store has the same keys");
}

#[test]
fn a_key_and_the_role_of_its_owner_are_one_revision() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let revision = || serve.get("/history?limit=1").json()["history"][0]["revision"].as_u64().unwrap();
    let before = revision();
    let made = client(&folder, &serve, "keys create --role gateway --owner bot_gateway");
    assert_eq!(made.code, 0, "{}", made.all());
    assert_eq!(revision(), before + 1);
    assert_eq!(serve.get("/owners/bot_gateway").json()["role"], "gateway");
    assert_eq!(serve.call_as(made.out.trim(), "GET", "/whoami", "").json()["role"], "gateway");
}

#[test]
fn of_parallel_new_keys_each_has_the_requested_role_or_is_refused() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let (address, bearer) = (serve.address.as_str(), format!("Bearer {}", serve.token));
    let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
    for owner in (0..8).map(|number| format!("bot_parallel_{number}")) {
        let body = format!(r#"{{"owner_id":"{owner}"}}"#);
        let create = |role: &'static str| {
            (role, http(address, "POST", &format!("/api_keys?owner_role={role}"), &headers, &body))
        };
        let answers: Vec<_> = std::thread::scope(|scope| {
            let roles = ["viewer", "planner", "editor", "gateway"].into_iter().cycle().take(20);
            let running: Vec<_> = roles.map(|role| scope.spawn(move || create(role))).collect();
            running.into_iter().map(|request| request.join().unwrap()).collect()
        });
        let made = serve.get(&format!("/owners/{owner}")).json();
        let has = made["role"].as_str().unwrap();
        for (role, answer) in &answers {
            if *role == has {
                assert_eq!(answer.status, 201, "{owner} {role}: {}", answer.body);
            } else {
                let refused = (answer.status, answer.code());
                assert_eq!(refused, (409, "ERR_EDGEWRIGHT_CONFLICT".to_owned()), "{owner} {role}: {}", answer.body);
                assert!(answer.contains(&format!("already has the role `{has}`")), "{}", answer.body);
            }
        }
    }
}

#[test]
fn a_key_whose_token_nobody_gets_is_deleted_again() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let owners = || client(&folder, &serve, "owners list").out.lines().skip(1).count();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    // What can be known before makes no owner, either.
    for (stdout, remaining) in [(Stdio::null(), 1), (Stdio::from(full), 2)] {
        let mut command = folder.command(&format!("keys create --server {}", url(&serve)));
        command.env("EDGEWRIGHT_TOKEN", &serve.token).stdin(Stdio::null()).stdout(stdout);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.contains("No key was created.")), (Some(1), true), "{said}");
        let keys = serve.get("/api_keys").json();
        assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1), "{keys}");
        assert_eq!(owners(), remaining);
    }
}

#[test]
fn a_server_exports_and_traces_as_its_store_does() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let serve = folder.serve("");
    // A resource without a source, for --adopt.
    assert_eq!(serve.call("POST", "/edges/https", r#"{"hostports":["manual.example.com:443"]}"#).status, 201);
    let lines = [
        "export",
        "export --adopt",
        "export --source nobody",
        "trace https://shop.example.com/account/orders",
        "trace POST https://shop.example.com/hooks/stripe --client-ip 192.0.2.1 --user-agent a/1 --header X-A:1",
        "trace https://elsewhere.example.com",
    ];
    let found = lines.map(|line| client(&folder, &serve, line));
    let into_folder = client(&folder, &serve, "export out");
    let after = format!("trace https://shop.example.com/ --manifests storefront --after --server {}", url(&serve));
    let after = client(&folder, &serve, &after);
    assert!(after.code == 0 && after.out.contains("does not change the handling"), "{}", after.all());
    assert_eq!(serve.stop().code, 0);
    for (line, found) in lines.iter().zip(&found) {
        assert_eq!(found.all(), folder.run(line).all(), "{line}");
    }
    assert_eq!(into_folder.code, 0, "{}", into_folder.all());
    folder.ok("export from-store");
    let names = |name: &str| {
        let entries = fs::read_dir(folder.path(name)).unwrap();
        let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("out"), names("from-store"));
    for name in names("out") {
        assert_eq!(folder.read(&format!("out/{name}")), folder.read(&format!("from-store/{name}")), "{name}");
    }
}

#[test]
fn a_context_is_used_by_itself_only_to_read() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let done = login(&folder, &serve, "prod");
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{}", done.all());
    assert!(done.err.contains("(admin) with the API key ak_"), "{}", done.err);
    assert_eq!((folder.mode(CONTEXTS), folder.mode("config/edgewright")), (0o600, 0o700));
    let using = format!("Using context prod ({}).\n", url(&serve));

    let read = run_as_user(&folder, "keys list");
    assert_eq!((read.code, read.err.as_str(), read.out.lines().count()), (0, using.as_str(), 2), "{}", read.all());
    let status = run_as_user(&folder, "status");
    assert!(status.err.starts_with(&using) && status.out.contains("follows no source"), "{}", status.all());
    for line in ["keys create", "owners set-role usr_1 viewer", "store rekey", "suspend shop --reason x"] {
        assert_refused(&run_as_user(&folder, line), "do not use the current context `prod`");
    }
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    assert_refused(&run_as_user(&folder, "reconcile m"), "add `--context prod` to change that server");
    assert!(!folder.path("edgewright.db").exists(), "no store was made instead");
    let plan = run_as_user(&folder, "reconcile --dry-run m");
    assert_eq!((plan.code, plan.err.starts_with(&using)), (0, true), "{}", plan.all());
    let made = run_as_user(&folder, "keys create --role viewer --context prod");
    assert_eq!((made.code, made.err.as_str()), (0, using.as_str()), "{}", made.all());
    let mut named = user(&folder, "reconcile m");
    named.env("EDGEWRIGHT_CONTEXT", "prod");
    let named = finish(named, "");
    assert!(named.code == 0 && named.err.contains("Applied as revision"), "{}", named.all());

    // A store or a server that is named comes first, and the token of the environment is for such a server.
    let of_store = run_as_user(&folder, "plan m --store other.db");
    assert!(of_store.code == 0 && !of_store.err.contains("Using context"), "{}", of_store.all());
    let mut of_variable = user(&folder, "plan m");
    of_variable.env("EDGEWRIGHT_STORE", "other.db");
    let of_variable = finish(of_variable, "");
    assert!(of_variable.code == 0 && !of_variable.err.contains("Using context"), "{}", of_variable.all());
    assert_refused(&run_as_user(&folder, &format!("keys list --server {}", url(&serve))), "no token is set for");
    let mut wrong = user(&folder, "keys list");
    wrong.env("EDGEWRIGHT_TOKEN", "ew_of_another_server");
    assert_eq!(finish(wrong, "").code, 0);
    for line in ["get edges --context prod --store x", "get edges --context prod --server http://127.0.0.1:1"] {
        assert_refused(&run_as_user(&folder, line), "cannot be used together");
    }
    assert_refused(&run_as_user(&folder, "get edges --context none"), "the context `none` does not exist");
    // What reads files does not ask the server.
    assert_refused(&run_as_user(&folder, "history verify"), "no store found in `edgewright.db`");
}

#[test]
fn contexts_are_listed_chosen_and_removed_without_showing_a_token() {
    let folder = Folder::new();
    let serve = folder.serve("");
    assert_eq!(login(&folder, &serve, "prod --source shop").code, 0);
    assert_eq!(login(&folder, &serve, "").code, 0, "the name is the host");
    let list = run_as_user(&folder, "context list");
    assert!(list.out.contains(&format!("{}  *", serve.address)), "{}", list.out);
    let contexts: serde_json::Value = serde_json::from_str(&run_as_user(&folder, "context list -o json").out).unwrap();
    let server = url(&serve);
    let prod = serde_json::json!(
        {"name": "prod", "current": false, "server": server, "source": "shop", "token": "saved"}
    );
    assert!(contexts.as_array().unwrap().contains(&prod), "{contexts:#}");
    assert_eq!(run_as_user(&folder, "context use prod").code, 0);
    let shown = run_as_user(&folder, "context show");
    let expected = format!("name: prod\nserver: {}\nsource: shop\ntoken: saved\n", url(&serve));
    assert_eq!(shown.out, expected, "{}", shown.all());
    // What a command would use, and why.
    let effective = |options: &str| run_as_user(&folder, &format!("context show --effective {options}")).out;
    let (of_current, of_prod) = (
        "context: prod (current context; only for read-only commands)\n",
        format!("server: {} (context prod)\n", url(&serve)),
    );
    let told = effective("");
    assert!(told.starts_with(&format!("{of_current}{of_prod}token: saved (context prod)\n")), "{told}");
    let refused = "commands that make changes: refused (they do not use the current context; add --context prod, --server or \
                   --store)\n";
    assert!(told.ends_with(&format!("source: shop (context prod)\n{refused}")), "{told}");
    let named = effective("--context prod");
    assert!(named.ends_with("source: shop (context prod)\n"), "{named}");
    assert!(effective("--source docs").ends_with(&format!("source: docs (flag --source)\n{refused}")));
    assert!(effective("--context prod").starts_with("context: prod (flag --context)\n"));
    let of_store = "store: none.db (flag --store; no store found there)\nsource: default (default)\n";
    assert_eq!(effective("--store none.db"), of_store);
    let mut command = user(&folder, "context show --effective");
    command.env("EDGEWRIGHT_SERVER", url(&serve)).env("EDGEWRIGHT_TOKEN", &serve.token);
    let told = finish(command, "").out;
    let of_variables =
        format!("server: {} (variable EDGEWRIGHT_SERVER)\ntoken: set (variable EDGEWRIGHT_TOKEN)\n", url(&serve));
    assert!(told.starts_with(&of_variables) && !told.contains(&serve.token), "{told}");
    assert_refused(&run_as_user(&folder, "context show --store none.db"), "`--store` requires `--effective`");
    folder.write("own.yaml", "lints: {}\n");
    let mut command = user(&folder, "context show --effective --store none.db");
    command.env("EDGEWRIGHT_CONFIG", "own.yaml");
    let of_file = "configuration file: own.yaml (variable EDGEWRIGHT_CONFIG)\n";
    assert_eq!(finish(command, "").out, format!("{of_file}{of_store}"));
    // Another login replaces the token, and keeps the rest.
    assert_eq!(login(&folder, &serve, "prod").code, 0);
    assert_eq!(run_as_user(&folder, "context show").out, expected);
    // The source of the context is the default of --source.
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    assert_eq!(run_as_user(&folder, "reconcile m --context prod").code, 0);
    // So is the mark of its comments.
    for (options, mark) in [("", "<!-- edgewright:shop -->"), ("--source docs", "<!-- edgewright:docs -->")] {
        let plan = run_as_user(&folder, &format!("plan m --context prod --format markdown {options}"));
        assert!(plan.out.starts_with(mark), "{}", plan.all());
    }
    assert!(run_as_user(&folder, "export").out.contains("name: a"));
    assert!(!run_as_user(&folder, "export --source default").out.contains("name: a"));

    assert_refused(&run_as_user(&folder, "context use nothing"), "the context `nothing` does not exist");
    assert_eq!(run_as_user(&folder, "context use --none").code, 0);
    assert_refused(&run_as_user(&folder, "context show"), "there is no current context");
    let removed = run_as_user(&folder, "logout prod");
    assert!(removed.code == 0 && removed.err.contains("`edgewright keys revoke ak_"), "{}", removed.all());
    for run in [list, shown, removed] {
        assert!(!run.all().contains(&serve.token), "{}", run.all());
    }
    assert_refused(&run_as_user(&folder, "logout prod"), "the context `prod` does not exist");
    assert_eq!(run_as_user(&folder, &format!("logout {}", serve.address)).code, 0);
    assert!(!folder.read(CONTEXTS).contains(&serve.token));
}

#[test]
fn a_login_that_fails_saves_nothing() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let line = format!("login prod --server {}", url(&serve));
    let wrong = finish(user(&folder, &line), "ew_ak_1_hunter2\n");
    assert_refused(&wrong, "ERR_EDGEWRIGHT_UNAUTHENTICATED");
    assert!(!wrong.all().contains("hunter2"), "{}", wrong.all());
    assert_refused(&finish(user(&folder, &line), "\n"), "it is empty");
    assert!(!folder.path(CONTEXTS).exists());
    assert_refused(&run_as_user(&folder, &format!("login {}", url(&serve))), "run `edgewright login --server URL`");
    let none = run_as_user(&folder, "context list");
    assert!(none.code == 0 && none.out.is_empty() && none.err.contains("`edgewright login"), "{}", none.all());
    assert_eq!(run_as_user(&folder, "context list -o json").all(), "exit 0\n--- stdout\n[]\n\n--- stderr\n");
    // The context of another server is not replaced.
    assert_eq!(login(&folder, &serve, "prod").code, 0);
    let other = run_as_user(&folder, "login prod --server http://127.0.0.1:1");
    assert_refused(&other, "the context `prod` already exists");
    assert_refused(&run_as_user(&folder, "login a/b --server http://127.0.0.1:1"), "invalid value 'a/b'");
}

#[test]
fn a_token_command_runs_for_each_use_and_its_output_is_never_shown() {
    let folder = Folder::new();
    let serve = folder.serve("");
    folder.write("token.sh", "echo >> uses; cat admin.token\n");
    let mut command = user(&folder, &format!("login prod --server {}", url(&serve)));
    command.args(["--token-command", "sh token.sh"]);
    let done = finish(command, "");
    assert_eq!(done.code, 0, "{}", done.all());
    let file = folder.read(CONTEXTS);
    assert!(file.contains("sh token.sh") && !file.contains(&serve.token), "{file}");
    assert_eq!(run_as_user(&folder, "get edges").code, 0);
    assert_eq!(folder.read("uses").lines().count(), 2);
    folder.write("token.sh", "echo hunter2; echo hunter2 >&2; exit 3\n");
    let failed = run_as_user(&folder, "get edges");
    assert_refused(&failed, "the token command failed");
    assert!(!failed.all().contains("hunter2"), "{}", failed.all());
    assert!(run_as_user(&folder, "context list").out.contains("from a command"));
}

#[test]
fn a_file_of_contexts_that_is_open_or_broken_is_refused() {
    let folder = Folder::new();
    let serve = folder.serve("");
    assert_eq!(login(&folder, &serve, "prod").code, 0);
    let mode = |mode: u32| fs::set_permissions(folder.path(CONTEXTS), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    for line in ["get edges", "context list", "keys create --context prod", "logout"] {
        assert_refused(&run_as_user(&folder, line), "is open to other users (mode 0644)");
    }
    // Whoever names a store or a server needs no context.
    assert_refused(&run_as_user(&folder, "get edges --store other.db"), "no store found in `other.db`");
    mode(0o600);
    assert_eq!(run_as_user(&folder, "get edges").code, 0);
    let text = folder.read(CONTEXTS).replace("    token:", "    tokn:");
    fs::write(folder.path(CONTEXTS), text).unwrap();
    let broken = run_as_user(&folder, "get edges");
    assert_refused(&broken, "/contexts/prod/tokn (line 5): unknown field `tokn`");
    assert!(!broken.all().contains(&serve.token), "{}", broken.all());
}

#[test]
fn a_configuration_file_of_the_working_folder_chooses_no_context() {
    let folder = Folder::new();
    const LOGIN: &str = "login --server http://127.0.0.1:1";
    for (option, line) in [("context: prod", "get edges"), ("token-command: id", LOGIN), ("ca-file: ca.pem", LOGIN)] {
        folder.write("edgewright.config.yaml", &format!("options: {{{option}}}\n"));
        let mut command = user(&folder, line);
        command.env_remove(CONFIG_VARIABLE);
        assert_refused(&finish(command, ""), "cannot be set in a configuration file found in the working folder");
    }
}
