//! Plans and applies of teams that share a server: what was reviewed is applied, and nothing else.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{Estate, set};
use crate::support::program::{PROGRAM, finish};

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
    assert!(run.err.contains("ERR_EDGEWRIGHT_STALE") && run.err.contains("+++ now"), "why it is stale: {}", run.err);
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
    let denied = estate.run("plan.sh shop manifests/shop");
    assert!(denied.code == 4 && !estate.here.path("edgewright-review/plan-shop.json").exists(), "{}", denied.all());
    assert!(estate.here.read("edgewright-review/plan-shop.md").contains("this opens access"), "{}", denied.all());
    let planned = estate.run_with("plan.sh shop manifests/shop", &[("ACCESS_OPENED", "warn")]);
    assert_eq!(planned.code, 0, "{}", planned.all());
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
    for approved in ["", "true"] {
        let again = estate.ok_with("apply.sh shop manifests/shop", &[("APPROVED", approved)]);
        let expected = "No changes: 1 unchanged.\nSource 'shop' is in sync: there is nothing to apply.\n";
        assert_eq!((again.out.as_str(), again.err.as_str()), (expected, ""), "{approved}");
    }
}

#[test]
fn nothing_is_applied_without_a_review() {
    let estate = Estate::new();
    fs::remove_file(estate.here.path("edgewright-review/plan-shop.json")).unwrap();
    estate.declare("shop", "second");
    let run = estate.run("apply.sh shop manifests/shop");
    assert!(run.code == 5 && run.err.contains("There is no reviewed plan of source 'shop'."), "{}", run.all());
    let (_, plan) = run.out.split_once("There is no reviewed plan of source 'shop'. The current plan:").unwrap();
    assert!(plan.contains("description: second"), "the plan is above what asks to review it: {}", run.all());
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
