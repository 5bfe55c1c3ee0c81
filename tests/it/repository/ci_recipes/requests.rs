//! The scripts that talk to a forge: comments on requests, reviewed plans, and the package.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use serde_json::json;

use super::{
    Estate,
    forge::{BOT, Forge},
    has, set,
};
use crate::support::program::finish;

#[test]
fn each_source_has_one_comment_that_is_replaced() {
    if !has(&["curl", "jq"]) {
        return;
    }
    let (estate, forge) = (Estate::new(), Forge::start());
    let url = forge.url();
    let github = [
        ("GITHUB_API_URL", url.as_str()),
        ("GITHUB_REPOSITORY", "example/edge"),
        ("GITHUB_TOKEN", "forge-token"),
        ("PULL_REQUEST", "7"),
    ];
    // Somebody else starts a comment like the bot, and the bot's own is on the second page.
    forge.add_comment("mallory", "<!-- edgewright-ci shop -->\nnot a plan");
    (0..120).for_each(|at| forge.add_comment("reviewer", &format!("comment {at}")));
    for (team, description) in [("shop", "second"), ("docs", "third"), ("shop", "\"@fourth $(id) `id`\"")] {
        estate.declare(team, description);
        estate.ok(&format!("plan.sh {team} manifests/{team}"));
        estate.ok_with(&format!("comment.sh {team}"), &github);
    }
    let comments = forge.comments();
    assert_eq!(comments.len(), 123);
    assert_eq!(comments[0].body, "<!-- edgewright-ci shop -->\nnot a plan");
    let own: Vec<_> = comments.iter().filter(|comment| comment.author == BOT).collect();
    let [shop, docs] = own[..] else { panic!("{own:?}") };
    assert!(shop.body.starts_with("<!-- edgewright-ci shop -->\n**Source `shop`**\n\n"), "{}", shop.body);
    assert!(shop.body.contains("fourth $(id)") && !shop.body.contains("second"), "{}", shop.body);
    assert!(docs.body.contains("**Source `docs`**") && docs.body.contains("third"), "{}", docs.body);
    let requests = forge.requests();
    let paths: Vec<&str> = requests.iter().map(|(_, path, _)| path.as_str()).collect();
    assert!(paths.contains(&"/repos/example/edge/issues/7/comments?per_page=100&page=2"), "{paths:?}");
    assert!(paths.contains(&"/repos/example/edge/issues/comments/122"), "{paths:?}");
    assert!(requests.iter().all(|(_, _, token)| token == "Bearer forge-token"), "{requests:?}");
    // A forge that refuses is an error.
    let refused = estate.run_with("comment.sh shop", &[github[0], github[2], github[3], ("GITHUB_REPOSITORY", "a/b?")]);
    assert_ne!(refused.code, 0, "{}", refused.all());
    assert_eq!(forge.comments().len(), 123);
}

#[test]
fn merge_requests_of_gitlab_get_comments_and_keep_their_plans() {
    if !has(&["curl", "jq"]) {
        return;
    }
    let (estate, forge) = (Estate::new(), Forge::start());
    let url = forge.url();
    let gitlab = [
        ("GITLAB_CI", "true"),
        ("CI_API_V4_URL", url.as_str()),
        ("CI_PROJECT_ID", "42"),
        ("CI_MERGE_REQUEST_IID", "3"),
        ("CI_COMMIT_SHA", "abc"),
        ("GITLAB_TOKEN", "forge-token"),
    ];
    forge.add("/user", json!({"username": BOT}).to_string().as_bytes());
    for description in ["second", "third"] {
        estate.declare("shop", description);
        estate.ok("plan.sh shop manifests/shop");
        estate.ok_with("comment.sh shop", &gitlab);
    }
    let comments = forge.comments();
    assert!(comments.len() == 1 && comments[0].body.contains("third"), "{comments:?}");
    assert!(forge.requests().iter().all(|(_, _, token)| token == "forge-token"));

    // The merged commit leads to the plan of its review.
    let none = estate.ok_with("reviewed-plan.sh docs job", &{
        forge.add("/projects/42/repository/commits/none/merge_requests", b"[]");
        gitlab.map(|(name, value)| if name == "CI_COMMIT_SHA" { (name, "none") } else { (name, value) })
    });
    assert!(none.out.contains("No reviewed plan of source 'docs' was found"), "{}", none.all());
    let merged = json!([{"iid": 8, "state": "closed"}, {"iid": 9, "state": "merged"}]);
    forge.add("/projects/42/repository/commits/abc/merge_requests", merged.to_string().as_bytes());
    forge.add("/projects/42/merge_requests/9/pipelines", json!([{"id": 11}, {"id": 10}]).to_string().as_bytes());
    let jobs = json!([{"id": 1, "name": "validate", "status": "success"}, {"id": 2, "name": "plan:shop", "status": "success"}]);
    forge.add("/projects/42/pipelines/11/jobs?per_page=100", jobs.to_string().as_bytes());
    let plan = estate.here.path("edgewright-review/plan-shop.json");
    forge.add("/projects/42/jobs/2/artifacts/edgewright-review/plan-shop.json", &fs::read(&plan).unwrap());
    fs::remove_file(&plan).unwrap();
    estate.ok_with("reviewed-plan.sh shop plan:shop", &gitlab);
    estate.ok_with("apply.sh shop manifests/shop", &gitlab);
    assert_eq!(estate.shown(), set(&["third", "first"]));
}

#[test]
fn the_reviewed_plan_of_a_pull_request_is_found() {
    if !has(&["curl", "jq"]) {
        return;
    }
    let (estate, forge) = (Estate::new(), Forge::start());
    let (url, output) = (forge.url(), estate.here.path("output"));
    let github = [
        ("GITHUB_API_URL", url.as_str()),
        ("GITHUB_REPOSITORY", "example/edge"),
        ("GITHUB_TOKEN", "forge-token"),
        ("GITHUB_SHA", "abc"),
        ("GITHUB_OUTPUT", output.to_str().unwrap()),
    ];
    let pulls =
        json!([{"merged_at": null, "head": {"sha": "no"}}, {"merged_at": "2026-11-22", "head": {"sha": "def"}}]);
    forge.add("/repos/example/edge/commits/abc/pulls", pulls.to_string().as_bytes());
    let artifacts = json!({"artifacts": [{"expired": false, "workflow_run": {"id": 77}}]});
    let path = "/repos/example/edge/actions/artifacts?name=edgewright-plan-shop-def&per_page=1";
    forge.add(path, artifacts.to_string().as_bytes());
    let path = "/repos/example/edge/actions/artifacts?name=edgewright-plan-docs-def&per_page=1";
    forge.add(path, json!({"artifacts": []}).to_string().as_bytes());
    estate.ok_with("reviewed-plan.sh shop", &github);
    assert_eq!(estate.here.read("output"), "run=77\nname=edgewright-plan-shop-def\n");
    let none = estate.ok_with("reviewed-plan.sh docs", &github);
    assert!(none.out.contains("there is no artifact edgewright-plan-docs-def"), "{}", none.all());
    // A forge that does not answer is an error, not a missing review.
    let lost = github.map(|(name, value)| if name == "GITHUB_SHA" { (name, "lost") } else { (name, value) });
    let run = estate.run_with("reviewed-plan.sh shop", &lost);
    assert_ne!(run.code, 0, "{}", run.all());
}

#[test]
fn the_program_comes_out_of_a_package_that_is_the_expected_one() {
    if !has(&["curl", "dpkg-deb", "sha256sum"]) {
        return;
    }
    let estate = Estate::new();
    estate.here.write(
        "package/DEBIAN/control",
        "Package: edgewright\nVersion: 1\nArchitecture: all\nMaintainer: Jo <jo@example.com>\nDescription: test\n",
    );
    estate.here.write("package/usr/bin/edgewright", "#!/bin/sh\necho edgewright 1\n");
    let program = estate.here.path("package/usr/bin/edgewright");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build", "package", "edgewright.deb"]).current_dir(estate.here.path(""));
    let built = finish(build, "");
    assert_eq!(built.code, 0, "{}", built.all());
    let mut sum = Command::new("sha256sum");
    sum.arg("edgewright.deb").current_dir(estate.here.path(""));
    let sum = finish(sum, "").out.split(' ').next().unwrap().to_owned();
    let forge = Forge::start();
    forge.add("/edgewright.deb", &fs::read(estate.here.path("edgewright.deb")).unwrap());
    let url = format!("{}/edgewright.deb", forge.url());
    let run = estate.ok_with("install.sh tools", &[("PACKAGE_URL", url.as_str()), ("PACKAGE_SHA256", sum.as_str())]);
    assert_eq!(run.out.trim(), "edgewright 1");
    let other = "0".repeat(64);
    let run = estate.run_with("install.sh other", &[("PACKAGE_URL", url.as_str()), ("PACKAGE_SHA256", other.as_str())]);
    assert!(run.code == 1 && run.err.contains("is not the expected one"), "{}", run.all());
    assert!(!estate.here.path("other").exists());
}
