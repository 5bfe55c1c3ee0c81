//! `plan` and `reconcile` through a server say and do what they say and do with a store of their own machine (D45).

mod refusals;
mod uploads;

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    git::git,
    http::http,
    manifests::bare_edge,
    program::{Folder, Run, Serve, finish, rounds},
};

const SHOP: &str = "storefront/shop/storefront.yaml";
const STRIPE: &str = "storefront/secrets/stripe-webhook-secret.txt";
const KEY: &str = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: ci}\n\
                   spec: {description: for ci, token_file: ../ci.token}\n";

/// Manifests in one folder, and a server that works in another: it sees neither their files nor their variables.
struct Remote {
    // It is dropped before the folder that it works in.
    serve: Serve,
    here: Folder,
    there: Folder,
}

impl Remote {
    fn new(here: Folder) -> Self {
        Self::start(here, Folder::new(), "")
    }

    /// The server has no dashboard: there a plan has a page, and with the store of this machine none.
    fn start(here: Folder, there: Folder, options: &str) -> Self {
        let serve = there.serve(&format!("--no-dashboard {options}"));
        // A store of this machine to compare with: it has an admin too, and so the same revision.
        here.ok("keys create --role admin --store other");
        Self { serve, here, there }
    }

    fn command(&self, token: &str, line: &str) -> Command {
        through(&self.here, &format!("http://{}", self.serve.address), token, line)
    }

    /// Runs a line through the server, as the owner of a token.
    fn run_as(&self, token: &str, line: &str) -> Run {
        finish(self.command(token, line), "")
    }

    /// The same as the admin.
    fn run(&self, line: &str) -> Run {
        self.run_as(&self.serve.token, line)
    }

    /// The same, and it must end with 0.
    fn ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        run
    }

    /// Runs a line through the server and with the store of this machine: both must say the same.
    fn same(&self, line: &str) -> Run {
        let (through, local) = (self.run(line), self.here.run(&format!("{line} --store other")));
        assert_eq!((through.code, &through.out), (local.code, &local.out), "{line}\n{}", through.all());
        assert_eq!(said(&through), said(&local), "{line}");
        through
    }

    /// What was applied, newest first.
    fn applied(&self) -> Vec<Value> {
        self.serve.get("/reconciliations").json()["reconciliations"].as_array().unwrap().clone()
    }

    /// Asserts that a line ends with a code and says something, and that nothing has changed.
    fn refuses(&self, line: &str, code: i32, words: &[&str]) -> Run {
        let before = self.applied();
        let run = self.run(line);
        assert_eq!(run.code, code, "{line}\n{}", run.all());
        for word in words {
            assert!(run.err.contains(word), "{line}: no {word}\n{}", run.err);
        }
        assert_eq!(self.applied(), before, "{line}");
        run
    }
}

/// A line that works through a server.
fn through(folder: &Folder, url: &str, token: &str, line: &str) -> Command {
    let mut command = folder.command(&format!("{line} --server {url}"));
    command.env("EDGEWRIGHT_TOKEN", token);
    command
}

/// What a run says, but for its signs of life.
fn said(run: &Run) -> String {
    run.err.lines().filter(|line| !line.contains(" … ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_same_is_said_through_a_server_in_every_format() {
    let remote = Remote::new(Folder::with_storefront());
    // A usual run has two formats at a time.
    let in_formats = |first: usize| {
        let formats = ["text", "json", "markdown", "sarif", "junit", "github"];
        for format in formats.into_iter().cycle().skip(first).take(rounds(2, 6)) {
            remote.same(&format!("plan --detailed-exitcode --format {format} storefront"));
        }
    };
    in_formats(0);
    assert_eq!(remote.same("plan storefront").calls().len(), 26);
    remote.same("reconcile storefront");
    in_formats(2);
    remote.here.edit(SHOP, "description: Basket and payment", "description: Basket, address and payment");
    remote.here.edit(SHOP, "      compression: {}\n\n    - name: catalog", "\n    - name: catalog");
    remote.here.write(STRIPE, "whsec_another\n");
    in_formats(4);
    let changed = remote.same("reconcile --format json --output report.json storefront");
    assert!(changed.out.contains("(secret, changed)"), "{}", changed.out);
    in_formats(0);
    // A lint that warns, and a fault.
    let bare = bare_edge("a", "").replace("]}", "], routes: [{match_type: exact_path, match: /}]}");
    remote.here.write("m/a.yaml", &bare);
    assert!(remote.same("plan --source m m").err.contains("route-without-backend"));
    remote.here.edit("m/a.yaml", "hostports", "hostport");
    assert_eq!(remote.same("plan --source m --format json m").code, 3);
    assert!(!remote.here.path("store").exists(), "whoever works through a server needs no store");
}

#[test]
fn a_run_is_one_revision_that_the_api_answers_with() {
    let remote = Remote::new(Folder::with_storefront());
    let plan = remote.run("plan --detailed-exitcode storefront");
    assert_eq!((plan.code, remote.applied().len()), (2, 0), "{}", plan.all());
    let run = remote.ok("reconcile storefront");
    assert_eq!((&run.out, said(&run).as_str()), (&plan.out, "Applied as revision 2.\n"));
    for line in ["plan", "reconcile", "plan --detailed-exitcode", "reconcile --dry-run --detailed-exitcode"] {
        assert_eq!(remote.ok(&format!("{line} storefront")).out, "No changes: 24 unchanged.\n", "{line}");
    }
    assert_eq!(remote.applied().len(), 1, "nothing to do is no revision");
    for (kind, collection) in [("HttpsEdge", "edges/https"), ("TlsCertificate", "tls_certificates")] {
        let ids = plan.ids().into_iter().filter(|(name, _)| name.starts_with(&format!("{kind} ")));
        for (name, id) in ids {
            let answer = remote.serve.get(&format!("/{collection}/{id}"));
            assert_eq!((answer.status, answer.json()["id"].as_str()), (200, Some(id.as_str())), "{name}");
        }
    }
    assert_eq!(remote.serve.stop().code, 0);
    let snapshot = remote.there.snapshot("store");
    assert_eq!(snapshot.revision, 2);
    assert!(plan.ids().values().all(|id| snapshot.iter().any(|entry| entry.key.id.as_str() == id)));
}

#[test]
fn what_was_reviewed_is_what_runs_and_no_secret_is_in_it() {
    let remote = Remote::new(Folder::with_storefront());
    remote.ok("plan --out first.json storefront");
    let first = remote.here.read("first.json");
    let secrets = fs::read_dir(remote.here.path("storefront/secrets")).unwrap().map(|it| it.unwrap().path());
    let keys = ["shop.key.pem", "wildcard.key.pem"].map(|it| remote.here.path("storefront/certs").join(it));
    for file in secrets.chain(keys) {
        let text = fs::read_to_string(&file).unwrap();
        let line = text.lines().find(|line| !line.starts_with('-')).unwrap();
        assert!(line.len() > 8 && !first.contains(line), "{} is in the plan", file.display());
    }
    remote.ok("reconcile --plan first.json storefront");
    remote.here.edit(SHOP, "Product pages", "All products");
    remote.ok("reconcile --dry-run --out plan.json storefront");
    let saved: Value = serde_json::from_str(&remote.here.read("plan.json")).unwrap();
    assert_eq!((&saved["base"], saved["operations"].as_array().unwrap().len()), (&Value::from(2), 1));
    let run = remote.ok("reconcile --plan plan.json storefront");
    assert_eq!(said(&run), "Applied as revision 3.\n");
    let stale = ["ERR_EDGEWRIGHT_STALE", "the store changed (now revision 3)"];
    remote.refuses("reconcile --plan plan.json storefront", 5, &stale);
}

#[test]
fn the_token_of_a_new_key_stays_where_the_manifest_is() {
    let remote = Remote::new(Folder::new());
    remote.here.write("m/key.yaml", KEY);
    let plan = remote.ok("plan --source ci m");
    assert_eq!(plan.calls(), ["POST /api_keys"]);
    assert!(!remote.here.path("ci.token").exists(), "a plan writes nothing");
    let run = remote.ok("reconcile --source ci m");
    let text = remote.here.read("ci.token");
    let token = text.trim();
    assert_eq!((remote.here.mode("ci.token"), token.starts_with("ew_ak_")), (0o600, true));
    assert_eq!(remote.serve.call_as(token, "GET", "/edges/https", "").status, 200);
    let secret = token.rsplit_once('_').unwrap().1;
    assert!(!run.all().contains(secret), "{}", run.all());
    for entry in walkdir::WalkDir::new(remote.there.path("")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            assert!(
                !String::from_utf8_lossy(&bytes).contains(secret),
                "the server has it in {}",
                entry.path().display()
            );
        }
    }
    remote.here.edit("m/key.yaml", "for ci", "for the pipeline");
    assert!(remote.ok("reconcile --source ci m").calls()[0].starts_with("PATCH /api_keys/ak_"));
    assert_eq!(remote.here.read("ci.token"), text, "the next run leaves the token alone");
}

#[test]
fn what_is_faulty_is_set_aside() {
    let remote = Remote::new(Folder::new());
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: home}\n\
                 spec: {edge: bad, match_type: exact_path, match: /, backend: {backend_id: bkd_1}}\n";
    remote.here.write("m/good.yaml", &bare_edge("good", ""));
    remote.here.write("m/old.yaml", &bare_edge("old", ""));
    remote.here.write("m/bad.yaml", &bare_edge("bad", "").replace("hostports", "hostport"));
    remote.here.write("m/route.yaml", route);
    assert_eq!(remote.same("reconcile m").code, 3);
    assert_eq!(remote.same("plan --isolate m").code, 1);
    let run = remote.same("reconcile --isolate m");
    assert_eq!((run.code, remote.applied().len()), (1, 1), "{}", run.all());
    assert!(run.err.contains("Skipped: HttpsEdge") && run.err.contains("Applied as revision 2."), "{}", run.err);
    // What was removed may have been moved into the faulty file.
    fs::remove_file(remote.here.path("m/old.yaml")).unwrap();
    assert_eq!(remote.same("reconcile --isolate m").out, "No changes: 1 unchanged.\n");
    // Nor is anything deleted for a file that cannot be read at all.
    remote.here.write("m/bad.yaml", "");
    assert_eq!(remote.same("reconcile --isolate m").code, 1);
    assert_eq!(remote.serve.get("/edges/https").json()["https_edges"].as_array().unwrap().len(), 2);
}

#[test]
fn a_value_that_is_not_there_is_told_in_the_words_of_this_machine() {
    let remote = Remote::new(Folder::new());
    let hook =
        "], routes: [{match_type: exact_path, match: /, webhook_verification: {provider: github, secret: FROM}}]}";
    for (place, from, word) in [
        ("env", "{from_env: HOOK_SECRET}", "`HOOK_SECRET` is not set"),
        ("file", "{from_file: none.txt}", "none.txt"),
        ("outside", "{from_file: ../../hosts}", "is outside the source tree"),
    ] {
        remote.here.write(&format!("m/{place}.yaml"), &bare_edge(place, "").replace("]}", &hook.replace("FROM", from)));
        for line in ["plan m", "plan --isolate m"] {
            assert!(remote.same(line).err.contains(word), "{line}: {word}");
        }
    }
}

#[test]
fn values_lints_and_standard_input_are_those_of_whoever_reconciles() {
    let remote = Remote::new(Folder::new());
    let hook = |place: &str, secret: &str| {
        let route = format!("match_type: exact_path, match: /{place}");
        format!("  - {{{route}, webhook_verification: {{provider: github, secret: {secret}}}}}\n")
    };
    let edge = bare_edge("hooks", "").replace("spec: {", "spec:\n  ").replace("]}", "]\n  routes:");
    let text = edge + &hook("env", "{from_env: HOOK_SECRET}") + &hook("file", "{from_file: hook.txt}");
    remote.here.write("m/a.yaml", &text);
    remote.here.write("m/hook.txt", "hush-file\n");
    remote.here.write("edgewright.config.yaml", "lints: {route-without-backend: allow}\n");
    let with = |secret: &str, line: &str| {
        let mut command = remote.command(&remote.serve.token, line);
        command.env("HOOK_SECRET", secret);
        let run = finish(command, "");
        assert!(!run.all().contains("hush") && !run.err.contains("route-without-backend"), "{}", run.all());
        run
    };
    remote.refuses("plan m", 3, &["ERR_EDGEWRIGHT_ENV_UNSET", "m/a.yaml:7:"]);
    assert_eq!(said(&with("hush-env", "reconcile m")), "Applied as revision 2.\n");
    assert_eq!(with("hush-env", "plan m").out, "No changes: 3 unchanged.\n");
    let held = remote.serve.get("/edges/https").json()["https_edges"][0]["routes"].to_string();
    assert!(held.contains("\"hush-env\"") && held.contains("\"hush-file"), "{held}");
    let changed = |run: &Run| run.out.matches("(secret, changed)").count();
    assert_eq!(changed(&with("hush-other", "plan m")), 1);
    remote.here.write("m/hook.txt", "hush-another\n");
    assert_eq!((changed(&with("hush-env", "plan m")), changed(&with("hush-other", "plan m"))), (1, 2));

    remote.here.write("edgewright.config.yaml", "lints: {route-without-backend: deny}\n");
    let piped =
        text.replace("hooks", "piped").replace("{from_env: HOOK_SECRET}", "x").replace("{from_file: hook.txt}", "x");
    let denied = finish(remote.command(&remote.serve.token, "reconcile --source piped -"), &piped);
    assert_eq!((denied.code, denied.err.contains("[-:7:")), (3, true), "{}", denied.all());
    fs::remove_file(remote.here.path("edgewright.config.yaml")).unwrap();
    let run = finish(remote.command(&remote.serve.token, "reconcile --source piped -"), &piped);
    assert_eq!((run.code, run.err.contains("route-without-backend")), (0, true), "{}", run.all());
}

#[test]
fn a_server_can_have_another_version_header() {
    let remote = Remote::start(Folder::new(), Folder::new(), "--version-header Acme-Version");
    remote.here.write("m/a.yaml", &bare_edge("a", ""));
    let run = remote.run("plan m");
    assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_VERSION_HEADER")), (1, true), "{}", run.all());
    assert!(run.err.contains("--version-header"), "{}", run.err);
    remote.ok("reconcile --version-header Acme-Version m");
    let mut command = remote.command(&remote.serve.token, "plan m");
    command.env("EDGEWRIGHT_VERSION_HEADER", "acme-version");
    assert_eq!(finish(command, "").out, "No changes: 1 unchanged.\n");
}

#[test]
fn the_history_tells_who_has_applied_which_commit() {
    let there = Folder::new();
    there.write("m/own.yaml", &bare_edge("own", ""));
    there.ok("reconcile --source own m");
    let remote = Remote::start(Folder::with_storefront(), there, "");
    git(&remote.here, "init -q -b main");
    git(&remote.here, "add storefront");
    git(&remote.here, "commit -q -m first");
    remote.ok("plan --source shop --out plan.json storefront");
    remote.ok("reconcile --source shop --plan plan.json storefront");
    assert_eq!(remote.serve.call("POST", "/ip_restrictions", r#"{"type":"api"}"#).status, 201);

    let applied = remote.applied();
    assert_eq!(applied.len(), 2, "{applied:?}");
    let key = remote.serve.get("/api_keys").json()["keys"][0].clone();
    let commit = git(&remote.here, "rev-parse HEAD");
    for (field, shop, own) in [
        ("source", "shop", "own"),
        ("commit", commit.as_str(), ""),
        ("key_id", key["id"].as_str().unwrap(), ""),
        ("owner_id", key["owner_id"].as_str().unwrap(), ""),
    ] {
        assert_eq!((applied[0][field].as_str(), applied[1][field].as_str()), (Some(shop), Some(own)), "{field}");
    }
    let one = remote.serve.get(&format!("/reconciliations/{}", applied[0]["id"].as_str().unwrap())).json();
    let saved: Value = serde_json::from_str(&remote.here.read("plan.json")).unwrap();
    let calls: Vec<Value> = saved["operations"].as_array().unwrap().iter().map(|it| it["call"].clone()).collect();
    assert!(calls.len() > 24 && one["operations"] == calls.len());
    assert_eq!(one["calls"], Value::from(calls));
}

#[test]
fn edits_go_through_and_whole_while_others_write() {
    let remote = Remote::new(Folder::new());
    let write = |round: usize| {
        for name in ["one", "two"] {
            let text = bare_edge(name, "").replace("spec: {", &format!("spec: {{description: round {round}, "));
            remote.here.write(&format!("m/{name}.yaml"), &text);
        }
    };
    write(0);
    remote.ok("reconcile m");
    let (address, bearer) = (remote.serve.address.as_str(), format!("Bearer {}", remote.serve.token));
    let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
    let (done, since) = (AtomicBool::new(false), Instant::now());
    let runs = std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && since.elapsed() < Duration::from_secs(60) {
                assert_eq!(http(address, "POST", "/ip_restrictions", &headers, r#"{"type":"api"}"#).status, 201);
                let edges = http(address, "GET", "/edges/https", &headers, "").json();
                assert_eq!(
                    edges["https_edges"][0]["description"], edges["https_edges"][1]["description"],
                    "half of it"
                );
            }
        });
        let round = |round| {
            write(round);
            remote.run("reconcile m")
        };
        let runs: Vec<Run> = (1..=10).map(round).collect();
        done.store(true, Ordering::Relaxed);
        others.join().unwrap();
        runs
    });
    for (round, run) in runs.iter().enumerate() {
        assert_eq!((run.code, said(run).starts_with("Applied as revision ")), (0, true), "{round}: {}", run.all());
    }
    let edges = remote.serve.get("/edges/https").json();
    assert_eq!(edges["https_edges"][0]["description"], "round 10");
    assert_eq!(remote.applied().len(), 11);
}
