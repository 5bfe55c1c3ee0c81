//! The configuration file: a flag wins over the environment, and that over the file (D32).

use std::{fs, os::unix::fs::symlink, process::Command};

use crate::support::program::{CONFIG, CONFIG_VARIABLE, Folder, Run, finish};

const EDGE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a, labels: {team: x}}\nspec:\n  \
                    hostports: [a.example.com:443]\n  routes:\n  - {name: r, match_type: path_prefix, match: /}\n";

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.write("edgewright.config.yaml", "options: {store: from-file, prune: false}\n");
    let made = |name: &str| folder.path(name).join("head").exists();
    let run = |args: &[&str], variable: Option<&str>| {
        let mut command = folder.command("");
        command.args(args).env_remove("EDGEWRIGHT_STORE");
        if let Some(value) = variable {
            command.env("EDGEWRIGHT_STORE", value);
        }
        assert!(command.output().unwrap().status.success());
    };
    run(&["reconcile", "m"], None);
    assert!(made("from-file"));
    run(&["reconcile", "m"], Some("from-environment"));
    assert!(made("from-environment"));
    run(&["reconcile", "--store", "from-flag", "m"], Some("from-environment"));
    assert!(made("from-flag"));
}

#[test]
fn it_sets_the_levels_of_lints_for_all_manifests() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.write("edgewright.config.yaml", "lints: {route-without-backend: deny}\nallowed_labels: [owner]\n");
    let run = folder.run("validate m");
    assert_eq!((run.code, run.err.contains("route-without-backend")), (3, true), "{}", run.err);
    assert!(!run.err.contains("unknown-label"), "it is allowed by default: {}", run.err);
    folder.write(
        "edgewright.config.yaml",
        "lints: {route-without-backend: allow, unknown-label: warn}\nallowed_labels: [owner]\n",
    );
    let run = folder.ok("validate m");
    assert!(run.err.contains("unknown-label") && !run.err.contains("route-without-backend"), "{}", run.err);
    assert!(run.err.contains("m/a.yaml:3:30"), "at the label: {}", run.err);
}

#[test]
fn it_sets_when_a_certificate_is_reported_to_expire() {
    let folder = Folder::with_storefront();
    for (days, reported) in [(0, false), (100_000, true)] {
        folder.write("edgewright.config.yaml", &format!("certificate_expiry_days: {days}\n"));
        let run = folder.ok("validate storefront");
        assert_eq!(run.err.contains("expiring-certificate"), reported, "{days}: {}", run.err);
    }
}

#[test]
fn a_mistake_in_it_is_an_error_with_a_cure() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    for (text, said) in [
        ("lints: {route-without-backnd: deny}\n", "route-without-backend`?"),
        ("lints: {route-without-backend: no}\n", "use `allow`, `warn` or `deny`"),
        ("option: {}\n", "did you mean `options`?"),
        ("lints: {}\noptions:\n  stor: x\n", "at /options/stor (line 3): unknown option `stor`"),
        ("options:\n  format: banana\n", "at /options/format (line 2): invalid value 'banana'"),
        ("lints: [\n", "ERR_EDGEWRIGHT_SYNTAX"),
        ("sources:\n  - name: a\n    path: m\n   - name: b\n", "[edgewright.config.yaml:4:4]"),
        ("sources:\n  - name: a\n    path: m\n   - name: b\n", "start an entry of the list with `- `"),
    ] {
        folder.write("edgewright.config.yaml", text);
        let run = folder.run("validate m");
        assert_eq!((run.code, run.err.contains(said)), (1, true), "{text}: {}", run.err);
    }
}

#[test]
fn validate_checks_the_values_of_options_for_a_server() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    let text =
        "options:\n  max-requests: abc\n  base-url: nope\n  trusted-proxy: [127.0.0.1/32, x]\n  version-header: a:b\n";
    folder.write(CONFIG, &format!("{text}sources: [{{name: a, path: m, interval: soon}}]\n"));
    // A flag or variable of the server does not make a value right.
    let mut command = folder.command("validate m");
    command.env("EDGEWRIGHT_MAX_REQUESTS", "7");
    let run = finish(command, "");
    let told = [
        "at /options/max-requests (line 2): invalid value 'abc'",
        "at /options/base-url (line 3): invalid value 'nope'",
        "at /options/trusted-proxy (line 4): invalid value 'x'",
        "at /options/version-header (line 5): invalid value 'a:b'",
        "at /sources/0/interval (line 6)",
    ];
    for text in told {
        assert!(run.code == 1 && run.err.contains(text), "{text}: {}", run.all());
    }
    folder.ok("plan m");
}

#[test]
fn an_option_that_can_be_repeated_takes_a_list() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    let options = "trusted-proxy: [127.0.0.1/32, 10.0.0.0/8], cors-origin: [], manifests: [m]";
    folder.write(CONFIG, &format!("options: {{{options}}}\n"));
    folder.ok("validate m");
    let serve = folder.serve("");
    assert!(serve.get("/edges/https").body.contains("a.example.com"));
    drop(serve);
    folder.write(CONFIG, "options:\n  trusted-proxy: '127.0.0.1/32,x'\n");
    let run = folder.run("serve --listen 127.0.0.1:0");
    let said = "at /options/trusted-proxy (line 2): invalid value 'x'";
    assert!(run.code == 1 && run.err.contains(said), "{}", run.all());
    folder.write(CONFIG, "options:\n  store: [a, b]\n");
    let run = folder.run("history");
    let said = "at /options/store (line 2): option `store` takes one value (found 2)";
    assert!(run.code == 1 && run.err.contains(said), "{}", run.all());
}

#[test]
fn a_mistake_in_it_is_in_the_report() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.write("edgewright.config.yaml", "lints: {nope: warn}\n");
    let run = folder.run("validate m --format sarif");
    let log: serde_json::Value =
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()));
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!((run.code, results.len()), (1, 1), "{log:#}");
    let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "edgewright.config.yaml");
    assert!(results[0]["message"]["text"].as_str().unwrap().contains("invalid configuration"), "{log:#}");
    // The report goes where the options say; text is for people, and the failure is on the terminal.
    let run = folder.run("plan m --format json --output report.json");
    let report: serde_json::Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    assert_eq!((run.code, report["command"].as_str()), (1, Some("plan")), "{report:#}");
    assert_eq!(folder.run("validate m").out, "");
}

#[test]
fn a_file_that_is_just_there_sends_nothing_anywhere() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    for option in ["server: http://127.0.0.1:1", "allow-outside-files: true", "insecure-http: true"] {
        let text = format!("options: {{{option}}}\n");
        folder.write("edgewright.config.yaml", &text);
        let line = if option.starts_with("insecure-http") { "serve" } else { "plan m" };
        let run = with_found_file(&folder, line);
        assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED")), (1, true), "{option}: {}", run.err);
        fs::rename(folder.path("edgewright.config.yaml"), folder.path("named.yaml")).unwrap();
        let named = folder.command("plan m").env("EDGEWRIGHT_CONFIG", "named.yaml").output().unwrap();
        let said = String::from_utf8_lossy(&named.stderr).into_owned();
        assert!(!said.contains("NOT_ALLOWED"), "{option}: {said}");
    }
}

#[test]
fn a_store_that_a_flag_names_is_meant_whatever_server_is_configured() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    let mut command = folder.command("reconcile --store mine m");
    let output = command.env("EDGEWRIGHT_SERVER", "http://127.0.0.1:1").output().unwrap();
    assert!(output.status.success() && folder.path("mine/head").exists());
    let run = folder.run("reconcile --store mine --server http://127.0.0.1:1 m");
    assert_eq!(
        (run.code, run.err.contains("`--store` and `--server` cannot be used together")),
        (1, true),
        "{}",
        run.err
    );
}

#[test]
fn a_mistake_in_a_part_fails_only_the_commands_that_use_it() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.ok("reconcile m");
    for (text, said) in [
        ("sources: [{name: a, path: m, interval: soon}]\n", "at /sources/0/interval"),
        ("sources: [{name: a, repository: 'git@git.example.com:e'}]\n", "ERR_EDGEWRIGHT_NOT_ALLOWED"),
        ("notifications: {files: [{name: a, path: x}]}\n", "ERR_EDGEWRIGHT_NOT_ALLOWED"),
        ("hooks: {git: {secret: x}}\n", "at /hooks/git/secret"),
    ] {
        folder.write("edgewright.config.yaml", text);
        for line in ["get edges", "history", "blame edge a", "keys list", "owners list", "plan m", "diff m m"] {
            folder.ok(line);
        }
        let run = with_found_file(&folder, "serve --listen 127.0.0.1:0");
        assert_eq!((run.code, run.err.contains(said)), (1, true), "{text}: {}", run.all());
        // What only a server may not do does not fail the check of manifests, which warns of it.
        let run = with_found_file(&folder, "validate m");
        let expected = i32::from(!said.contains("NOT_ALLOWED"));
        let warning = format!("`serve` will refuse {CONFIG}, which was only found and not named: it sets");
        assert!(run.code == expected && run.err.contains(said), "{text}: {}", run.all());
        assert!(run.err.contains(&warning), "{text}: {}", run.all());
    }
    folder.write("edgewright.config.yaml", "lints: {nope: warn}\n");
    folder.ok("get edges");
    for line in ["plan m", "reconcile m", "diff m m", "validate m", "serve --listen 127.0.0.1:0"] {
        let run = folder.run(line);
        assert_eq!((run.code, run.err.contains("unknown lint `nope`")), (1, true), "{line}: {}", run.all());
    }
    folder.write("edgewright.config.yaml", "options: {stor: x}\n");
    assert_eq!(folder.run("get edges").code, 1, "every command uses the options");
}

#[test]
fn what_a_server_refuses_is_found_before_it_starts() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    let clients = "client_certificates: [{subject_alt_name: 'dns:ci.example.com', owner: bot_ci}]\n";
    for (options, keys, said, code) in [
        ("manifests: m", "sources: [{name: a, path: m}]\n", "`--manifests` cannot be combined with `sources`", 1),
        ("master-key-file: a.key, master-key-command: 'true'", "", "more than one master key is set", 1),
        ("local-copy: copy, store: a.db", "", "`--local-copy` requires a store in a database", 0),
        ("tls-cert: a.pem", "", "`--tls-cert` requires `--tls-key`", 0),
        ("store: a.db", clients, "`client_certificates` requires `--tls-client-ca`", 0),
    ] {
        folder.write(CONFIG, &format!("options: {{{options}}}\n{keys}"));
        let refused =
            format!("`serve` refuses {CONFIG}{}: {said}", if code == 0 { " without another option" } else { "" });
        let found = finish(folder.command("validate m"), "");
        let told = found.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(found.code == code && told.contains(&refused), "{options}: {}", found.all());
        let serve = folder.run("serve --listen 127.0.0.1:0");
        assert!(serve.code == 1 && serve.err.contains(said), "{options}: {}", serve.all());
    }
    folder.write(CONFIG, "options: {manifests: m, local-copy: copy, store: 'postgres://a.example.com/edge'}\n");
    let valid = folder.run("validate m");
    assert!(valid.code == 0 && !valid.err.contains("refuses"), "{}", valid.all());
}

/// Runs the program where it finds the configuration file itself.
fn with_found_file(folder: &Folder, line: &str) -> Run {
    let mut command = folder.command(line);
    command.env_remove(CONFIG_VARIABLE).env_remove("EDGEWRIGHT_STORE");
    finish(command, "")
}

#[test]
fn a_file_that_is_only_found_sets_nothing_that_reads_writes_or_sends() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    let refused = "cannot be set in a configuration file found in the working folder";
    // What the author of a pull request would set.
    for (text, line) in [
        ("options:\n  with: /etc/passwd\n", "validate m"),
        ("options:\n  output: m/a.yaml\n", "validate m"),
        ("options:\n  out: m/a.yaml\n", "plan m"),
        ("options:\n  store: elsewhere\n", "reconcile m"),
        ("options:\n  max-deletes: 100%\n", "plan m"),
        ("options:\n  max-deletes: 4\n", "plan m"),
        ("options:\n  source: other\n", "plan m"),
        ("options:\n  history-records: 1\n", "reconcile m"),
        ("options:\n  role: admin\n", "keys create"),
        ("options:\n  owner: usr_root\n", "keys create"),
        ("options:\n  base-url: https://evil.example.com\n", "serve"),
        ("options:\n  admin-token-file: m/a.yaml\n", "serve"),
        ("options:\n  listen: 0.0.0.0:80\n", "serve"),
        ("lints: {}\nsources: [{name: a, path: m}]\n", "serve"),
        ("lints: {}\nrest_writes: {shop: drift}\n", "serve"),
        ("lints: {}\nnotifications: {files: [{name: a, path: x}]}\n", "serve"),
    ] {
        folder.write(CONFIG, text);
        let run = with_found_file(&folder, line);
        let names = ["NOT_ALLOWED", refused, "(line 2)", "name the file in EDGEWRIGHT_CONFIG"];
        assert!(run.code == 1 && names.iter().all(|word| run.err.contains(word)), "{text}{line}: {}", run.all());
        assert_eq!(folder.read("m/a.yaml"), EDGE, "{text}");
        assert!(!folder.path("elsewhere").exists() && !folder.path("edgewright.db").exists());
    }
    // What changes only what is shown, or makes a limit lower.
    for text in [
        "options: {format: json}\n",
        "options: {max-deletes: 0}\n",
        "lints: {route-without-backend: allow}\n",
        "certificate_expiry_days: 3\nallowed_labels: [team]\n",
    ] {
        folder.write(CONFIG, text);
        assert_eq!(with_found_file(&folder, "plan m").code, 0, "{text}");
    }
    // All of it is told at once, with the lines of the keys.
    folder.write(
        CONFIG,
        "options: {store: elsewhere, admin-token-file: x}\nsources:\n- {name: a, path: m}\nrest_writes: {a: drift}\n",
    );
    let run = with_found_file(&folder, "serve");
    let told =
        ["/options/store (line 1)", "/options/admin-token-file (line 1)", "/sources (line 2)", "/rest_writes (line 4)"];
    assert!(run.code == 1 && told.iter().all(|place| run.err.contains(place)), "{}", run.all());
    let run = with_found_file(&folder, "validate m");
    let warned =
        ["it sets `admin-token-file`, `store`, `rest_writes`, `sources`", "EDGEWRIGHT_CONFIG=edgewright.config.yaml"];
    assert!(run.code == 0 && warned.iter().all(|part| run.err.contains(part)), "{}", run.all());
    // What another command would use, or a flag sets, is in nobody's way.
    folder.write(CONFIG, "options: {listen: '127.0.0.1:1', store: elsewhere}\n");
    assert_eq!(with_found_file(&folder, "validate m").code, 0);
    assert_eq!(with_found_file(&folder, "plan --store mine m").code, 0);
}

#[test]
fn a_client_shares_the_folder_of_its_server() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    let serve = folder.serve("--store shop.db");
    folder.write(CONFIG, "options: {store: shop.db, history-days: 9}\nsources: [{name: shop, path: m}]\n");
    let client = |line: &str| {
        let mut command = folder.command(line);
        command.env_remove(CONFIG_VARIABLE).env_remove("EDGEWRIGHT_STORE").env("EDGEWRIGHT_TOKEN", &serve.token);
        finish(command, "")
    };
    let server = format!("--server http://{}", serve.address);
    for line in ["plan m", "get edges", "history", "export", "keys list"] {
        let run = client(&format!("{line} {server}"));
        assert_eq!(run.code, 0, "{line}: {}", run.all());
    }
    for line in ["validate m", "diff m m", "trace --manifests m https://a.example.com/"] {
        let run = client(line);
        assert_eq!(run.code, 0, "{line}: {}", run.all());
    }
    // Without a server, the command would work on another store than the file says.
    for line in ["plan m", "get edges", "plan m --store shop.db"] {
        let run = client(line);
        assert_eq!((run.code, run.err.contains("cannot be set in a configuration file")), (1, true), "{}", run.all());
    }
    folder.write(CONFIG, "options: {server: 'http://127.0.0.1:1'}\n");
    assert_eq!(client("plan m --store mine").code, 0);
}

#[test]
fn a_server_in_the_file_is_in_nobodys_way_who_works_with_files() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    for option in ["server: 'http://127.0.0.1:1'", "context: prod"] {
        let text = format!("options: {{{option}}}\n");
        folder.write(CONFIG, &text);
        folder.write("named.yaml", &text);
        for line in ["validate m", "diff m m", "test m", "trace --manifests m https://a.example.com/"] {
            let found = with_found_file(&folder, line);
            let mut command = folder.command(line);
            command.env(CONFIG_VARIABLE, "named.yaml");
            let named = finish(command, "");
            for run in [&found, &named] {
                assert!(!run.err.contains("NOT_ALLOWED") && !run.err.contains("cannot reach"), "{line}: {}", run.all());
            }
            assert_eq!((found.code, &found.out), (named.code, &named.out), "{line}: {}", found.all());
            assert_eq!(found.code, 0, "{line}: {}", found.all());
        }
        // What would send something there is refused as before.
        for line in ["plan m", "get edges", "prove m", "trace https://a.example.com/"] {
            let run = with_found_file(&folder, line);
            assert_eq!((run.code, run.err.contains("NOT_ALLOWED")), (1, true), "{line}: {}", run.all());
        }
    }
}

#[test]
fn all_errors_are_told_at_once() {
    let folder = Folder::new();
    folder.write(CONFIG, "lints: {nope: warn}\nsources: [{name: a, path: m, interval: soon}]\nhooks: {git: {}}\n");
    let run = folder.run("validate .");
    let told = ["/lints/nope", "/sources/0/interval", "/hooks/git"];
    assert!(run.code == 1 && told.iter().all(|place| run.err.contains(place)), "{}", run.all());
    let sources = "[{name: a, path: m, interval: soon}, {name: b, nope: 1}, {name: a, path: m}, {path: m}, {name: c, path: m, drift: x}]";
    folder.write(CONFIG, &format!("soruces: []\noptions: {{stor: x, banana: 1}}\nsources: {sources}\n"));
    let run = folder.run("history");
    let told = [
        "at /soruces (line 1): unknown field `soruces`",
        "`sources` is already set",
        "at /options/stor (line 2): unknown option `stor`",
        "did you mean `store`?",
        "at /options/banana (line 2)",
        "/sources/0/interval",
        "/sources/1/nope",
        "/sources/2/name",
        "`name` is required",
        "/sources/4/drift",
    ];
    for text in told {
        assert!(run.code == 1 && run.err.contains(text), "{text}: {}", run.all());
    }
    folder.write(CONFIG, "store: shop.db\n");
    let run = folder.run("history");
    assert!(run.code == 1 && run.err.contains("below `options`"), "{}", run.all());
    let webhooks =
        "[{name: a, url: 'https://a.example.com/', format: slak}, {name: b, secret_file: s}, {name: c, formt: slack}]";
    folder.write(CONFIG, &format!("notifications: {{webhooks: {webhooks}}}\n"));
    let run = folder.run("validate .");
    let told = ["/notifications/webhooks/0/format", "/notifications/webhooks/1/url", "/notifications/webhooks/2/formt"];
    assert!(told.iter().all(|place| run.err.contains(place)), "{}", run.all());
    assert!(!run.err.contains("/webhooks/2/url"), "it may be a consequence: {}", run.all());
}

#[test]
fn a_file_that_is_found_is_a_regular_file_of_a_bounded_size() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.write("private", "root:hunter2:20000:0\n");
    let config = folder.path(CONFIG);
    for target in ["private", "missing", "m", "/dev/zero"] {
        symlink(target, &config).unwrap();
        for line in ["validate m", "validate m --format github"] {
            let run = with_found_file(&folder, line);
            let said = run.err.contains("must be a regular file, not a link") && !run.all().contains("hunter2");
            assert!(run.code == 1 && said, "{target}: {line}: {}", run.all());
        }
        fs::remove_file(&config).unwrap();
    }
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    let run = with_found_file(&folder, "validate m");
    assert!(run.code == 1 && run.err.contains("must be a regular file"), "{}", run.all());
    fs::remove_file(&config).unwrap();
    folder.write(CONFIG, &"#".repeat((1 << 20) + 1));
    let run = with_found_file(&folder, "validate m");
    assert!(run.code == 1 && run.err.contains("larger than 1 MiB"), "{}", run.all());
    fs::remove_file(&config).unwrap();
    // Whoever names a file means what it leads to.
    folder.write("team.yaml", "lints: {route-without-backend: deny}\n");
    symlink("team.yaml", folder.path("link.yaml")).unwrap();
    for (named, code) in [("link.yaml", 3), ("/dev/null", 0), ("/dev/stdin", 3), ("/dev/zero", 1)] {
        let mut command = folder.command("validate m");
        command.env(CONFIG_VARIABLE, named);
        let run = finish(command, "lints: {route-without-backend: deny}\n");
        assert_eq!(run.code, code, "{named}: {}", run.all());
    }
}
