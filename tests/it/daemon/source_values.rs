//! A followed source in Git takes values from a folder on the server's machine, which no other source can read (D28).

use std::{os::unix::fs::symlink, time::Duration};

use crate::support::{
    git::git,
    program::{CONFIG, Folder, Serve, within},
    sources::{in_state, until_logged, until_reason},
};

/// Far below the 30 seconds after which a source is synced without an event.
const SOON: Duration = Duration::from_secs(10);

fn edge(from_file: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  hostports: ['a.example.com:443']\n  \
         routes:\n    - match_type: path_prefix\n      match: /\n      backend: {{backend_id: bkd_1}}\n      \
         webhook_verification: {{provider: github, secret: {{from_file: {from_file}}}}}\n"
    )
}

/// A repository whose manifest takes a value from a file that is not in the commit.
fn repository(from_file: &str, source: &str) -> Folder {
    let folder = Folder::new();
    folder.write("repo/edge/one.yaml", &edge(from_file));
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(&folder, &format!("-C repo {line}"));
    }
    folder.write("values/hooks/shop", "one-secret-of-a-webhook\n");
    folder.write("outside", "secret-outside\n");
    folder.write(CONFIG, &format!("sources:\n- {{name: shop, repository: repo, ref: main, path: edge{source}}}\n"));
    folder
}

fn status(serve: &Serve) -> serde_json::Value {
    serve.get("/sources/shop").json()
}

/// Serves the source, whose mistake is applied, and undoes it by a rollback.
fn rolled_back(folder: &Folder, mistake: impl FnOnce()) -> Serve {
    let serve = folder.serve("");
    let applied = || status(&serve)["last_applied"]["revision"].as_u64();
    let first = applied();
    mistake();
    within(SOON, "the mistake", || (applied() > first).then_some(()));
    let body = serde_json::json!({"to": first, "source": "shop"}).to_string();
    assert_eq!(serve.call("POST", "/rollbacks", &body).status, 201);
    until_reason(&serve, "shop", "RolledBack");
    serve
}

#[test]
fn a_value_of_the_folder_is_applied_and_so_is_its_rotation() {
    let folder = repository("hooks/shop", ", values: values");
    let serve = folder.serve("");
    let first = status(&serve);
    assert_eq!(first["state"], "Synced", "{first}");
    assert_eq!(first["values"][0]["name"], "hooks/shop", "{first}");
    let changed_at = first["values"][0]["changed_at"].as_str().unwrap();
    assert!(changed_at.ends_with('Z') && !changed_at.contains('.'), "whole seconds: {first}");
    folder.write("values/hooks/shop", "another-secret-of-a-webhook\n");
    let revision = |status: &serde_json::Value| status["last_applied"]["revision"].as_u64();
    within(SOON, "the rotation", || (revision(&status(&serve)) > revision(&first)).then_some(()));
    // Whoever committed last has not rotated it.
    let record = serve.get("/history?limit=1").json()["history"][0].clone();
    assert_eq!(record["message"], "values changed: hooks/shop", "{record:#}");
    assert_eq!(record["commit_message"], "", "{record:#}");
    assert_eq!(record["commit_author_name"], "", "{record:#}");
    let shown = status(&serve).to_string();
    assert!(!shown.contains("secret-of-a-webhook") && !serve.said().contains("secret-of-a-webhook"), "{shown}");
}

#[test]
fn a_rollback_holds_the_values_that_it_undid_and_no_others() {
    let folder = repository("hooks/shop", ", values: values");
    let serve = rolled_back(&folder, || folder.write("values/hooks/shop", "wrong-secret-of-a-webhook\n"));
    folder.write("values/hooks/shop", "right-secret-of-a-webhook\n");
    in_state(&serve, "shop", "Synced");
    let record = serve.get("/history?limit=1").json()["history"][0].clone();
    assert_eq!(record["message"], "values changed: hooks/shop", "{record:#}");
}

#[test]
fn a_rotated_value_does_not_bring_back_a_commit_that_a_rollback_undid() {
    let folder = repository("hooks/shop", ", values: values, interval: 1s");
    let serve = rolled_back(&folder, || {
        folder.write("repo/edge/one.yaml", &edge("hooks/shop").replace("backend_id: bkd_1", "backend_id: bkd_bad"));
        git(&folder, "-C repo commit -q -a -m mistake");
    });
    let begun = status(&serve)["syncs_begun"].as_u64();
    folder.write("values/hooks/shop", "right-secret-of-a-webhook\n");
    within(SOON, "two more syncs", || (status(&serve)["syncs_ended"].as_u64() > begun.map(|it| it + 1)).then_some(()));
    until_reason(&serve, "shop", "RolledBack");
    let routes = serve.get("/routing").body;
    assert!(!routes.contains("bkd_bad"), "{routes}");
}

#[test]
fn what_is_not_in_the_folder_is_refused_and_the_help_names_the_key() {
    for (from_file, source, said) in [
        ("hooks/shop", "", "the source's `values` names"),
        ("../outside", "", "set the source's `values`"),
        ("/etc/hostname", ", values: values", "the source's `values` names"),
        ("../../outside", ", values: values", "the source's `values` names"),
        ("hooks/../hooks/none", ", values: values", "the source's `values` names"),
        ("escape", ", values: values", "the source's `values` names"),
        ("none", ", values: values", "neither in the commit nor in the folder"),
    ] {
        let folder = repository(from_file, source);
        symlink("../outside", folder.path("values/escape")).unwrap();
        let serve = folder.serve("");
        until_logged(&serve, "shop", "The manifests are not applied");
        let found = status(&serve);
        assert_eq!(found["state"], "Invalid", "{from_file}: {found}");
        assert!(found.to_string().contains(said), "{from_file}: {found}");
        assert!(!found.to_string().contains("secret-outside"), "{found}");
    }
}

#[test]
fn values_are_of_one_source_in_a_repository() {
    let folder = repository("hooks/shop", "");
    for (sources, place, said) in [
        ("[{name: a, path: repo, values: values}]", "/sources/0/values", "`values` requires `repository`"),
        ("[{name: a, repository: repo, values: nowhere}]", "/sources/0/values", "cannot use nowhere"),
        ("[{name: a, repository: repo, values: outside}]", "/sources/0/values", "outside is not a folder"),
        (
            "[{name: a, repository: repo, values: values}, {name: b, repository: repo, values: values/hooks}]",
            "/sources/0/values",
            "source `b` can read these values",
        ),
        (
            "[{name: a, repository: repo, values: values}, {name: b, path: .}]",
            "/sources/0/values",
            "source `b` can read these values",
        ),
    ] {
        folder.write(CONFIG, &format!("sources: {sources}\n"));
        let run = folder.run("validate repo/edge");
        let reported = run.err.contains(&format!("at {place}")) && run.err.contains(said);
        assert_eq!((run.code, reported), (1, true), "{sources}: {}", run.err);
    }
}
