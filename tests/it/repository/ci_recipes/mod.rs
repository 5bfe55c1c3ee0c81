//! The recipes of `examples/ci`: their scripts against a real server, and the files of the forges that call them (D109).

mod forge;
mod requests;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use crate::support::{
    manifests::edge,
    program::{Folder, PROGRAM, REPOSITORY, Run, Serve, copy, finish},
};

const RECIPES: &str = "examples/ci";

fn has(tools: &[&str]) -> bool {
    let is_there = |tool: &&str| {
        let found = Command::new("sh").arg("-c").arg(format!("command -v {tool}")).output();
        found.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        eprintln!("skipped: not installed: {}", missing.join(", "));
    }
    missing.is_empty()
}

/// The checkouts of two teams, and the server that both use.
struct Estate {
    // It is dropped before the folder that it works in.
    serve: Serve,
    here: Folder,
    // The server's folder.
    _there: Folder,
}

impl Estate {
    /// Both teams have an applied edge.
    fn new() -> Self {
        let (here, there) = (Folder::new(), Folder::new());
        fs::create_dir(here.path("bin")).unwrap();
        symlink(PROGRAM, here.path("bin/edgewright")).unwrap();
        copy(&Path::new(REPOSITORY).join(RECIPES).join("scripts"), &here.path("ci/scripts"));
        let estate = Self { serve: there.serve(""), here, _there: there };
        for team in ["shop", "docs"] {
            estate.declare(team, "first");
            estate.ok(&format!("plan.sh {team} manifests/{team}"));
            estate.ok(&format!("apply.sh {team} manifests/{team}"));
        }
        estate
    }

    fn declare(&self, team: &str, description: &str) {
        self.here.write(&format!("manifests/{team}/edge.yaml"), &edge(team, description));
    }

    /// A script with arguments, with what CI sets.
    fn command(&self, line: &str, variables: &[(&str, &str)]) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(self.here.path("ci/scripts").join(words.next().unwrap()));
        command.args(words).current_dir(self.here.path(""));
        // Variables of the CI that runs this test are not for the scripts.
        command.env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.here.path("bin").display()));
        command.env("HOME", self.here.path(""));
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command.env("EDGEWRIGHT_SERVER", format!("http://{}", self.serve.address));
        command.env("EDGEWRIGHT_TOKEN", &self.serve.token);
        command.envs(variables.iter().copied());
        command
    }

    fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> Run {
        finish(self.command(line, variables), "")
    }

    fn run(&self, line: &str) -> Run {
        self.run_with(line, &[])
    }

    fn ok(&self, line: &str) -> Run {
        self.ok_with(line, &[])
    }

    fn ok_with(&self, line: &str, variables: &[(&str, &str)]) -> Run {
        let run = self.run_with(line, variables);
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        run
    }

    /// The descriptions of the edges that the server has.
    fn shown(&self) -> BTreeSet<String> {
        let list = self.serve.get("/edges/https").json();
        let edges = list["https_edges"].as_array().unwrap().iter();
        edges.map(|edge| edge["description"].as_str().unwrap().to_owned()).collect()
    }

    /// Commits everything in the checkout, and returns the commit.
    fn commit(&self) -> String {
        let git = |line: &str| {
            let mut command = Command::new("git");
            command.args(line.split(' ')).current_dir(self.here.path("")).env_clear();
            command.env("PATH", std::env::var("PATH").unwrap_or_default()).env("HOME", self.here.path(""));
            for role in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{role}_NAME"), "Jo").env(format!("GIT_{role}_EMAIL"), "jo@example.com");
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        if !self.here.path(".git").exists() {
            git("init --quiet");
        }
        git("add manifests");
        git("commit --quiet --allow-empty --message change");
        git("rev-parse HEAD")
    }
}

fn set(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn two_teams_that_merge_at_the_same_time_are_both_applied() {
    let estate = Estate::new();
    for round in 0..3 {
        for team in ["shop", "docs"] {
            estate.declare(team, &format!("{team}-{round}"));
            let planned = estate.ok(&format!("plan.sh {team} manifests/{team}"));
            assert!(planned.out.contains("0 to create, 1 to change"), "{}", planned.all());
        }
        let jobs = ["shop", "docs"].map(|team| {
            let command = estate.command(&format!("apply.sh {team} manifests/{team}"), &[]);
            std::thread::spawn(move || finish(command, ""))
        });
        for job in jobs {
            let run = job.join().unwrap();
            assert_eq!(run.code, 0, "{}", run.all());
        }
        assert_eq!(estate.shown(), set(&[&format!("shop-{round}"), &format!("docs-{round}")]));
    }
}

#[test]
fn a_stale_plan_is_not_applied_and_the_plan_of_now_is_shown() {
    let estate = Estate::new();
    estate.declare("shop", "reviewed");
    estate.ok("plan.sh shop manifests/shop");
    // Somebody merges another change of the same source first.
    let reviewed = estate.here.read("edgewright-review/plan-shop.json");
    estate.declare("shop", "other");
    estate.ok("plan.sh shop manifests/shop");
    estate.ok("apply.sh shop manifests/shop");
    estate.here.write("edgewright-review/plan-shop.json", &reviewed);
    estate.declare("shop", "merged");
    let summary = estate.here.path("summary.md");
    let run = estate.run_with("apply.sh shop manifests/shop", &[("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())]);
    assert_eq!(run.code, 5, "{}", run.all());
    assert!(run.err.contains("The reviewed plan of source 'shop' is stale. Nothing was applied."), "{}", run.err);
    assert_eq!(estate.shown(), set(&["other", "first"]));
    assert!(estate.here.read("summary.md").contains("+ description: merged"));
    assert_eq!(run.out.matches(" to change, ").count(), 1, "one plan is enough: {}", run.out);
    // The second way to the store: a plan and its approval.
    estate.ok("plan.sh shop manifests/shop");
    estate.ok("apply.sh shop manifests/shop");
    assert_eq!(estate.shown(), set(&["merged", "first"]));
}

#[test]
fn a_plan_that_opens_access_needs_an_approval() {
    let estate = Estate::new();
    let manifest = |restriction: &str| {
        let edge = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: admin}\nspec:\n  hostports: ['admin.example.com:443']\n  \
                    routes: [{name: all, match_type: path_prefix, match: /, backend: {backend_id: bkd_a}";
        estate.here.write("manifests/shop/admin.yaml", &format!("{edge}{restriction}}}]\n"));
    };
    manifest(", ip_restriction: {enabled: true, ip_policy_ids: [ipp_office]}");
    estate.ok("plan.sh shop manifests/shop");
    estate.ok("apply.sh shop manifests/shop");
    manifest("");
    let planned = estate.ok("plan.sh shop manifests/shop");
    assert!(estate.here.read("edgewright-review/plan-shop.md").contains("this opens access"), "{}", planned.all());
    let run = estate.run("apply.sh shop manifests/shop");
    assert!(run.code == 5 && run.err.contains("opens access. Nothing was applied."), "{}", run.all());
    estate.ok_with("apply.sh shop manifests/shop", &[("APPROVED", "true")]);
    assert!(estate.ok("apply.sh shop manifests/shop").out.contains("in sync"));
}

#[test]
fn nothing_is_applied_if_nobody_knows_what_the_plan_opens() {
    let estate = Estate::new();
    estate.declare("shop", "second");
    estate.ok("plan.sh shop manifests/shop");
    // The server answers the apply, and has not answered the plan before it.
    let program = estate.here.path("bin/edgewright");
    fs::remove_file(&program).unwrap();
    let script = format!("#!/bin/sh\n[ \"$1\" != plan ] || exit 1\nexec '{PROGRAM}' \"$@\"\n");
    estate.here.write("bin/edgewright", &script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = estate.run("apply.sh shop manifests/shop");
    assert!(
        run.code == 1 && run.err.contains("The plan of source 'shop' failed. Nothing was applied."),
        "{}",
        run.all()
    );
    assert_eq!(estate.shown(), set(&["first"]));
}

#[test]
fn a_job_that_is_run_again_has_nothing_to_do() {
    let estate = Estate::new();
    estate.declare("shop", "second");
    estate.ok("plan.sh shop manifests/shop");
    estate.ok("apply.sh shop manifests/shop");
    let again = estate.ok("apply.sh shop manifests/shop");
    assert!(again.out.contains("Source 'shop' is in sync: there is nothing to apply."), "{}", again.all());
}

#[test]
fn nothing_is_applied_without_a_review() {
    let estate = Estate::new();
    fs::remove_file(estate.here.path("edgewright-review/plan-shop.json")).unwrap();
    estate.declare("shop", "second");
    let run = estate.run("apply.sh shop manifests/shop");
    assert!(run.code == 5 && run.err.contains("There is no reviewed plan of source 'shop'."), "{}", run.all());
    assert_eq!(estate.shown(), set(&["first"]));
    // Invalid manifests have their own exit code, and leave no plan of an earlier run behind.
    estate.here.write("manifests/shop/torn.yaml", "kind: [");
    assert_eq!(estate.run("apply.sh shop manifests/shop").code, 3);
    assert_eq!(estate.run("plan.sh shop manifests/shop").code, 3);
    assert!(estate.here.read("edgewright-review/plan-shop.md").contains("ERR_EDGEWRIGHT_SYNTAX"));
    assert!(!estate.here.path("edgewright-review/plan-shop.json").exists());
}

#[test]
fn a_push_applies_only_the_sources_that_it_changes() {
    let estate = Estate::new();
    let before = estate.commit();
    estate.declare("shop", "second");
    estate.ok("plan.sh shop manifests/shop");
    estate.commit();
    // The other team has merged since, which this checkout does not have.
    estate.declare("docs", "newer");
    estate.ok("plan.sh docs manifests/docs");
    estate.ok("apply.sh docs manifests/docs");
    estate.declare("docs", "first");
    let push = [("BEFORE", before.as_str())];
    let docs = estate.ok_with("apply.sh docs manifests/docs", &push);
    assert!(docs.out.contains("The push does not change source 'docs'."), "{}", docs.all());
    estate.ok_with("apply.sh shop manifests/shop", &push);
    assert_eq!(estate.shown(), set(&["second", "newer"]));
    // A folder that both teams share, and the first push of a branch.
    let shared = [("BEFORE", before.as_str()), ("SHARED", "manifests/shop")];
    assert_eq!(estate.run_with("apply.sh docs manifests/docs", &shared).code, 5);
    let zeros = "0".repeat(40);
    assert_eq!(estate.run_with("apply.sh docs manifests/docs", &[("BEFORE", zeros.as_str())]).code, 5);
}

#[test]
fn drift_is_found_and_nothing_is_changed() {
    let estate = Estate::new();
    let run = estate.ok("drift.sh shop manifests/shop");
    assert!(run.out.contains("Source 'shop' is in sync."), "{}", run.all());
    let list = estate.serve.get("/edges/https?name=shop").json();
    let id = list["https_edges"][0]["id"].as_str().unwrap();
    let patched = estate.serve.call("PATCH", &format!("/edges/https/{id}"), r#"{"description": "by hand"}"#);
    assert_eq!(patched.status, 200, "{}", patched.body);
    let run = estate.run("drift.sh shop manifests/shop");
    assert!(run.code == 2 && run.err.contains("Source 'shop' differs from its manifests"), "{}", run.all());
    assert!(estate.here.read("edgewright-review/drift-shop.md").contains("- description: by hand"));
    assert_eq!(estate.shown(), set(&["by hand", "first"]));
    // The other team is not affected, and an error is no drift.
    estate.ok("drift.sh docs manifests/docs");
    estate.here.write("manifests/docs/torn.yaml", "kind: [");
    assert_eq!(estate.run("drift.sh docs manifests/docs").code, 3);
}

#[test]
fn a_fork_is_checked_without_secrets_and_without_the_server() {
    let estate = Estate::new();
    let secret = edge("shop", "first").trim_end().trim_end_matches('}').to_owned()
        + ", routes: [{name: hook, match_type: exact_path, match: /, backend: {backend_id: bkd_1}, \
           webhook_verification: {provider: github, secret: {from_env: HOOK_SECRET}}}]}\n";
    estate.here.write("manifests/shop/edge.yaml", &secret);
    let base = estate.commit();
    estate.here.write("manifests/shop/edge.yaml", &secret.replace("description: first", "description: forked"));
    estate.commit();
    // The server is away, and the token is wrong.
    let variables = [("EDGEWRIGHT_SERVER", "http://127.0.0.1:1"), ("EDGEWRIGHT_TOKEN", "none")];
    let run = estate.ok_with(&format!("plan-fork.sh shop manifests/shop {base}"), &variables);
    assert!(run.out.contains("+ description: forked"), "{}", run.all());
    assert!(estate.here.read("edgewright-review/plan-shop.md").contains("+ description: forked"));
    assert_eq!(estate.shown(), set(&["first"]));
    // A mistake is found.
    estate.here.write("manifests/shop/torn.yaml", "kind: [");
    estate.commit();
    let run = estate.run_with(&format!("plan-fork.sh shop manifests/shop {base}"), &variables);
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(estate.here.read("edgewright-review/plan-shop.md").contains("ERR_EDGEWRIGHT_SYNTAX"));
}

#[test]
fn links_in_the_checkout_of_a_fork_lead_nowhere() {
    let estate = Estate::new();
    let base = estate.commit();
    let fork = format!("plan-fork.sh shop manifests/shop {base}");
    let victim = estate.here.path("victim");
    let place_link = |name: &str| {
        let link = estate.here.path(name);
        if link.exists() {
            fs::remove_file(&link).unwrap();
        }
        symlink(&victim, link).unwrap();
    };
    estate.here.write("victim", "victim");
    for name in ["plan-shop.md", "diff-shop.md"] {
        place_link(&format!("edgewright-review/{name}"));
    }
    estate.ok(&fork);
    assert!(estate.here.read("edgewright-review/plan-shop.md").starts_with("<!-- edgewright:shop -->"));
    // A report that could not be written is not the file that a link leads to.
    place_link("edgewright-review/plan-shop.md");
    let run = estate.run_with(&fork, &[("WITH", "--no-such-option")]);
    assert!(run.code != 0 && !estate.here.path("edgewright-review/plan-shop.md").exists(), "{}", run.all());
    // The jobs of the forges call the program itself, too.
    for line in ["validate manifests --format sarif --output link", "plan manifests/shop --source shop --out link"] {
        place_link("link");
        estate.here.ok(line);
        assert!(estate.here.read("link").starts_with('{'), "{line}");
    }
    if has(&["jq"]) {
        for name in ["report.json", "report.json.sarif"] {
            place_link(name);
        }
        estate.ok("code-quality.sh manifests report.json");
    }
    assert_eq!(estate.here.read("victim"), "victim");
    // The folder itself can be a link to another one.
    fs::rename(estate.here.path("edgewright-review"), estate.here.path("elsewhere")).unwrap();
    symlink("elsewhere", estate.here.path("edgewright-review")).unwrap();
    for line in [fork.as_str(), "plan.sh shop manifests/shop", "drift.sh shop manifests/shop"] {
        let run = estate.run(line);
        assert!(run.code == 1 && run.err.contains("edgewright-review is a link"), "{line}: {}", run.all());
    }
}

#[test]
fn a_fork_that_adds_a_folder_is_compared_in_its_context() {
    let estate = Estate::new();
    let head =
        |kind: &str, name: &str| format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
    let delegates =
        "spec: {hostports: [\"all.example.com:443\"], delegates_to: [{source: help, path_prefix: /help/}]}\n";
    estate.here.write("manifests/shared/edge.yaml", &(head("HttpsEdge", "all") + delegates));
    let base = estate.commit();
    let route = "spec: {edge: all, match_type: path_prefix, match: /help/, backend: {backend_id: bkd_1}}\n";
    estate.here.write("manifests/help/route.yaml", &(head("HttpsEdgeRoute", "help") + route));
    estate.commit();
    let line = format!("plan-fork.sh help manifests/help {base}");
    let with = [("WITH", "manifests/docs manifests/shared")];
    let run = estate.ok_with(&line, &with);
    assert!(run.out.contains("+ HttpsEdgeRoute all/help"), "{}", run.all());
    let report = estate.here.read("edgewright-review/plan-help.md");
    assert!(report.starts_with("<!-- edgewright:help -->") && report.contains("HttpsEdgeRoute all/help"), "{report}");
    // If the base cannot be read, the report has the findings in the change.
    estate.here.write("manifests/help/route.yaml", "kind: [");
    let torn = estate.commit();
    estate.here.write("manifests/help/route.yaml", &(head("HttpsEdgeRoute", "help") + route));
    estate.commit();
    let run = estate.run_with(&format!("plan-fork.sh help manifests/help {torn}"), &with);
    assert!(run.code == 3 && run.err.contains("could not be compared with"), "{}", run.all());
    let report = estate.here.read("edgewright-review/plan-help.md");
    assert!(report.starts_with("<!-- edgewright:help -->") && !report.contains("SYNTAX"), "{report}");
    assert!(!estate.here.path("edgewright-review/diff-help.md").exists());
}

#[test]
fn every_script_reads_the_context() {
    let estate = Estate::new();
    let head =
        |kind: &str, name: &str| format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
    estate.here.write("manifests/shared/sets.yaml", &(head("ModuleSet", "usual") + "spec: {compression: {}}\n"));
    let route =
        "spec: {edge: shop, match_type: path_prefix, match: /, backend: {backend_id: bkd_1}, modules_from: [usual]}\n";
    estate.here.write("manifests/shop/route.yaml", &(head("HttpsEdgeRoute", "home") + route));
    let with = [("WITH", "manifests/shared")];
    assert_eq!(estate.run("plan.sh shop manifests/shop").code, 3);
    for line in ["plan.sh", "apply.sh", "drift.sh"] {
        estate.ok_with(&format!("{line} shop manifests/shop"), &with);
    }
    // A change of the context is one of the source.
    let before = estate.commit();
    estate.here.edit("manifests/shared/sets.yaml", "compression: {}", "compression: {enabled: false}");
    estate.commit();
    let push = [("WITH", "manifests/shared"), ("BEFORE", before.as_str())];
    estate.ok_with("plan.sh shop manifests/shop", &with);
    let run = estate.ok_with("apply.sh shop manifests/shop", &push);
    assert!(run.err.contains("Applied as revision"), "{}", run.all());
    estate.here.ok("fmt manifests");
    estate.ok_with("pre-commit.sh manifests/shop", &with);
}

#[test]
fn a_missing_variable_is_an_error_and_no_drift() {
    let estate = Estate::new();
    for line in ["plan.sh shop manifests/shop", "apply.sh shop manifests/shop", "drift.sh shop manifests/shop"] {
        let run = estate.run_with(line, &[("EDGEWRIGHT_SERVER", "")]);
        assert!(run.code == 1 && run.err.contains("set EDGEWRIGHT_SERVER"), "{line}: {}", run.all());
    }
    for entry in fs::read_dir(Path::new(REPOSITORY).join(RECIPES).join("scripts")).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(entry.path()).unwrap();
        let code = text.lines().filter(|line| !line.starts_with('#'));
        assert!(code.into_iter().all(|line| !line.contains(":?")), "{}", entry.path().display());
    }
}

#[test]
fn a_name_that_leads_out_of_the_folder_is_refused() {
    let estate = Estate::new();
    for name in ["../shop", ".shop", "-shop", "a/b", "a$b"] {
        let run = estate.run(&format!("plan.sh {name} manifests/shop"));
        assert!(run.code == 1 && run.err.contains("cannot be the name of a source"), "{name}: {}", run.all());
    }
}

#[test]
fn findings_become_a_code_quality_report() {
    if !has(&["jq"]) {
        return;
    }
    let estate = Estate::new();
    estate.ok("code-quality.sh manifests report.json");
    assert_eq!(estate.here.read("report.json").trim(), "[]");
    estate.here.write("manifests/shop/torn.yaml", "kind: [");
    assert_eq!(estate.run("code-quality.sh manifests report.json").code, 3);
    let report: serde_json::Value = serde_json::from_str(&estate.here.read("report.json")).unwrap();
    let finding = &report[0];
    assert_eq!(finding["check_name"], "ERR_EDGEWRIGHT_SYNTAX", "{report}");
    assert_eq!(finding["location"]["path"], "manifests/shop/torn.yaml");
    assert!(finding["location"]["lines"]["begin"].is_u64() && finding["severity"] == "critical", "{report}");
    assert!(!finding["fingerprint"].as_str().unwrap().is_empty());
}

#[test]
fn the_hook_checks_format_and_content() {
    let estate = Estate::new();
    let run = estate.run("pre-commit.sh");
    if run.code != 0 {
        assert!(run.err.contains("Run `edgewright fmt manifests`"), "{}", run.all());
        estate.here.ok("fmt manifests");
    }
    estate.ok("pre-commit.sh");
    estate.here.write(
        "manifests/shop/loose.yaml",
        &edge("loose", "x").replace("metadata: {name: loose}", "metadata:\n      name: loose"),
    );
    let run = estate.run("pre-commit.sh manifests");
    assert!(run.code != 0 && run.err.contains("Run `edgewright fmt manifests`"), "{}", run.all());
    estate.here.ok("fmt manifests");
    estate.ok("pre-commit.sh manifests");
    // Who commits has no secrets.
    let secret = ", routes: [{name: hook, match_type: exact_path, match: /, backend: {backend_id: bkd_1}, \
                  webhook_verification: {provider: github, secret: {from_env: HOOK_SECRET}}}]}\n";
    let text = edge("hooks", "x").trim_end().trim_end_matches('}').to_owned() + secret;
    estate.here.write("manifests/shop/hooks.yaml", &text);
    estate.here.ok("fmt manifests");
    estate.ok("pre-commit.sh manifests");
    estate.here.edit("manifests/shop/loose.yaml", "hostports", "hostprots");
    assert_eq!(estate.run("pre-commit.sh manifests").code, 3);
}

/// A secret of an environment reaches only the jobs that name one. As a secret of the repository, every branch could read it.
#[test]
fn each_job_with_the_token_that_applies_has_an_environment() {
    let (_, text) = yaml_files().into_iter().find(|(name, _)| name.ends_with("github/apply.yaml")).unwrap();
    let workflow: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let mut count = 0;
    for (name, job) in workflow["jobs"].as_mapping().unwrap() {
        if serde_yaml::to_string(job).unwrap().contains("secrets.EDGEWRIGHT_APPLY_TOKEN") {
            assert!(job["environment"].is_string(), "{name:?}");
            count += 1;
        }
    }
    assert_eq!(count, 2);
}

/// The YAML files of the recipes.
fn yaml_files() -> Vec<(String, String)> {
    let walk = walkdir::WalkDir::new(Path::new(REPOSITORY).join(RECIPES)).sort_by_file_name();
    let files = walk.into_iter().map(Result::unwrap).filter(|entry| {
        let extension = entry.path().extension().and_then(|it| it.to_str());
        matches!(extension, Some("yaml" | "yml"))
    });
    files.map(|entry| (entry.path().display().to_string(), fs::read_to_string(entry.path()).unwrap())).collect()
}

#[test]
fn the_files_of_the_forges_call_scripts_that_exist() {
    let scripts = Path::new(REPOSITORY).join(RECIPES).join("scripts");
    let mut called = BTreeSet::new();
    let files = yaml_files();
    assert!(files.len() >= 5, "{files:?}");
    for (name, text) in files {
        let parsed: Result<serde_yaml::Value, _> = serde_yaml::from_str(&text);
        assert!(parsed.is_ok(), "{name}: {parsed:?}");
        for (at, _) in text.match_indices("ci/scripts/") {
            let script = &text[at + "ci/scripts/".len()..];
            let script = script.split(|c: char| c.is_whitespace() || c == '"' || c == '\'').next().unwrap();
            assert!(scripts.join(script).is_file(), "{name} calls {script}");
            called.insert(script.to_owned());
        }
        // What somebody writes into the title of a request must not become a command.
        let is_command = |line: &&str| line.trim_start().trim_start_matches("- ").starts_with("run:");
        for line in text.lines().filter(is_command) {
            assert!(!line.contains("${{"), "{name}: {line}");
        }
    }
    for entry in fs::read_dir(&scripts).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let is_library = name == "common.sh";
        assert!(is_library || called.contains(&name), "nothing calls {name}");
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111 == 0, is_library, "{name}: {mode:o}");
        let text = fs::read_to_string(entry.path()).unwrap();
        assert!(is_library || (text.starts_with("#!/bin/sh\n") && text.contains("\nset -eu\n")), "{name}");
    }
}
