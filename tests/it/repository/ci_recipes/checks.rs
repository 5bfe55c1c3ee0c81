//! The scripts that change nothing: drift, reports and the hook before a commit; and what all scripts read and refuse.

use std::{fs, path::Path};

use super::{Estate, RECIPES, has, set};
use crate::support::{manifests::edge, program::REPOSITORY};

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
fn every_script_reads_the_surrounding_manifests() {
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
    // A change of the surrounding manifests is one of the source.
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
