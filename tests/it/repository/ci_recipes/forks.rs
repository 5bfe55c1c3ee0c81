//! Changes from a fork: they are checked without secrets and without the server.

use std::{fs, os::unix::fs::symlink};

use super::{Estate, has, set};
use crate::support::manifests::edge;

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
fn a_fork_that_opens_access_is_stopped() {
    let estate = Estate::new();
    let route = |modules: &str| {
        edge("shop", "first").trim_end().trim_end_matches('}').to_owned()
            + ", routes: [{name: admin, match_type: exact_path, match: /, backend: {backend_id: bkd_1}"
            + modules
            + "}]}\n"
    };
    estate.here.write("manifests/shop/edge.yaml", &route(", ip_restriction: {ip_policy_ids: [ipp_office]}"));
    let base = estate.commit();
    estate.here.write("manifests/shop/edge.yaml", &route(""));
    estate.commit();
    let line = format!("plan-fork.sh shop manifests/shop {base}");
    let run = estate.run(&line);
    assert!(run.code == 4 && !run.err.contains("could not be compared"), "{}", run.all());
    assert!(estate.here.read("edgewright-review/plan-shop.md").contains("opens access"));
    let warned = estate.ok_with(&line, &[("ACCESS_OPENED", "warn")]);
    assert!(warned.all().contains("opens access"), "{}", warned.all());
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
fn a_fork_that_adds_a_folder_is_compared_with_surrounding_manifests() {
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
