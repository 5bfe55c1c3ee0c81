//! Several followed sources: what the configuration file lists, and what the server says about each of them.

use std::{fs, time::Duration};

use edgewright::{Store, resources::Author, storage::Query};

use serde_json::json;

use crate::support::{
    git::{git, head},
    manifests::edge,
    program::{CONFIG, Folder, copy, until, within},
    sources::{in_state, repository, shown, soon_shown, status, two_sources, until_logged},
    users::client,
};

/// Far below the 30 seconds after which a source is synced without an event.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn each_source_of_the_configuration_file_is_followed_by_itself() {
    let folder = two_sources();
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a", "b"], "both are applied before the first request");
    // An error in one source does not stop the other.
    folder.write("shop/one.yaml", &edge("one", "c").replace("hostports", "hostprots"));
    until_logged(&serve, "shop", "The manifests are not applied");
    folder.write("docs/two.yaml", &edge("two", "d"));
    soon_shown(&serve, &["a", "d"]);
    let ready = serve.get("/readyz");
    assert_eq!(ready.body, "ready\nwarning: source `shop`: OutOfSync (Invalid): 1 error in the manifests\n");
    let metrics = serve.get("/metrics").body;
    for line in ["edgewright_drift{source=\"shop\"} 1", "edgewright_drift{source=\"docs\"} 0"] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    until_logged(&serve, "shop", "status=OutOfSync reason=Invalid");
    for source in ["shop", "docs"] {
        until_logged(&serve, source, "Applied as revision");
        for gauge in ["loop_up", "last_attempt_timestamp_seconds", "last_success_timestamp_seconds"] {
            let series = format!("edgewright_reconcile_{gauge}{{source=\"{source}\"}} ");
            let value = metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok());
            assert!(value.is_some_and(|value| value > 0.0), "{series}{value:?}");
        }
    }
    folder.write("shop/one.yaml", &edge("one", "e"));
    soon_shown(&serve, &["d", "e"]);
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_server_is_ready_when_each_source_has_something_applied() {
    let folder = two_sources();
    folder.write("docs/two.yaml", "kind: Nothing\n");
    let serve = folder.serve("");
    let ready = serve.get("/readyz");
    assert_eq!((ready.status, ready.code().as_str()), (503, "ERR_EDGEWRIGHT_UNAVAILABLE"));
    assert!(
        ready.body.contains("source `docs`: OutOfSync (Invalid)") && !ready.body.contains("shop"),
        "{}",
        ready.body
    );
    folder.write("docs/two.yaml", &edge("two", "b"));
    until("readiness", || (serve.get("/readyz").body == "ready\n").then_some(()));
}

#[test]
fn a_mistake_in_the_list_of_sources_is_reported_at_its_field() {
    let folder = two_sources();
    for (sources, place, said) in [
        ("[{path: shop}]", "/sources/0/name", "`name` is required"),
        ("[{name: a}]", "/sources/0/path", "`path` is required"),
        ("[{name: a, path: shop, ref: main}]", "/sources/0/ref", "`ref` requires `repository`"),
        ("[{name: a, repository: g, path: ../x}]", "/sources/0/path", "must be relative"),
        ("[{name: a, path: shop, interval: soon}]", "/sources/0/interval", "expected a duration"),
        ("[{name: a, path: shop, interval: 0}]", "/sources/0/interval", "between 1 second and 24 hours"),
        ("[{name: a, path: shop, max_deletes: few}]", "/sources/0/max_deletes", "expected a number"),
        ("[{name: a, path: shop, prun: true}]", "/sources/0/prun", "did you mean `prune`?"),
        ("[{name: a, path: shop, lints: {nope: warn}}]", "/sources/0/lints/nope", "unknown lint"),
        ("[{name: a, path: shop}, {name: a, path: docs}]", "/sources/1/name", "duplicate source name `a`"),
        ("[{name: (surrounding), path: shop}]", "/sources/0/name", "cannot be `(surrounding)`"),
    ] {
        folder.write(CONFIG, &format!("sources: {sources}\n"));
        let run = folder.run("validate shop");
        let reported = run.err.contains(&format!("at {place}")) && run.err.contains(said);
        assert_eq!((run.code, reported), (1, true), "{sources}: {}", run.err);
    }
}

#[test]
fn the_options_of_a_single_source_exclude_the_list() {
    let folder = two_sources();
    for options in ["--manifests shop", "--source shop", "--prune=false", "--isolate", "--max-deletes 3"] {
        let run = folder.run(&format!("serve --listen 127.0.0.1:0 {options}"));
        let option = options.split([' ', '=']).next().unwrap();
        let said = format!("`{option}` cannot be combined with `sources`");
        assert_eq!((run.code, run.err.contains(&said)), (1, true), "{options}: {}", run.err);
    }
    assert!(!folder.path("store").exists());
}

fn commit(folder: &Folder, message: &str) -> String {
    git(folder, &format!("-C repo commit -q -a --allow-empty -m {message}"));
    head(folder, "repo")
}

#[test]
fn a_branch_is_followed_whatever_is_in_the_work_tree() {
    let folder = repository();
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a"]);
    // Only what is committed counts.
    folder.write("repo/edge/one.yaml", &edge("one", "b"));
    git(&folder, "-C repo checkout -q -b other");
    commit(&folder, "elsewhere");
    git(&folder, "-C repo checkout -q main");
    folder.write("repo/edge/one.yaml", &edge("one", "c"));
    let second = commit(&folder, "second");
    soon_shown(&serve, &["c"]);
    folder.write("repo/edge/one.yaml", &edge("one", "d").replace("hostports", "hostprots"));
    commit(&folder, "broken");
    serve.wait_for("edge/one.yaml:4:");
    assert_eq!(shown(&serve), ["c"]);
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());

    let aside = Folder::new();
    copy(&folder.path("store"), &aside.path("store"));
    let store = Store::open(aside.path("store")).unwrap();
    let last = store.history(&Query::Reconciliations, u64::MAX, 1).unwrap().remove(0);
    match last.header.author {
        Author::Source { source, commit, commit_author, .. } => {
            let email = commit_author.map(|who| who.email);
            assert_eq!((source.as_str(), commit, email.as_deref()), ("shop", Some(second), Some("t@example.com")));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(last.resources[0].declared_at.as_deref(), Some("edge/one.yaml:4"));
}

#[test]
fn a_bare_repository_a_tag_and_the_top_folder_are_followed() {
    let folder = repository();
    git(&folder, "-C repo tag v1");
    git(&folder, "clone -q --bare repo bare.git");
    folder.write(CONFIG, "sources:\n- {name: shop, repository: bare.git, ref: v1}\n");
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a"]);
    drop(serve);
    folder.write(CONFIG, "sources:\n- {name: shop, repository: nowhere, ref: v1}\n");
    let serve = folder.serve("");
    let found = in_state(&serve, "shop", "Failed");
    let message = found["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.contains("nowhere is not a readable Git repository"), "{message}");
}

#[test]
fn the_status_of_a_source_names_the_commit_and_the_errors_with_their_places() {
    let folder = repository();
    let serve = folder.serve("");
    let first = head(&folder, "repo");
    let found = in_state(&serve, "shop", "Synced");
    assert_eq!((&found["last_applied"]["commit"], &found["last_applied"]["revision"]), (&json!(first), &json!(2)));
    assert_eq!(
        (&found["repository"], &found["ref"], &found["paths"]),
        (&json!("repo"), &json!("main"), &json!(["edge"]))
    );
    assert_eq!(
        (&found["counts"]["owned"], &found["counts"]["declared"], &found["interval_seconds"]),
        (&json!(1), &json!(1), &json!(30))
    );
    assert_eq!(client(&folder, &serve, "status").code, 0);

    // A commit that changes no manifest is applied, too.
    let second = commit(&folder, "nothing");
    until("the commit", || (status(&serve, "shop")["last_applied"]["commit"] == json!(second)).then_some(()));

    folder.write("repo/edge/one.yaml", &edge("one", "b").replace("hostports", "hostprots"));
    let third = commit(&folder, "broken");
    let found = in_state(&serve, "shop", "Invalid");
    assert_eq!((&found["last_attempt"]["commit"], &found["last_applied"]["commit"]), (&json!(third), &json!(second)));
    let diagnostic = &found["diagnostics"][0];
    assert_eq!((&diagnostic["file"], &diagnostic["line"]), (&json!("edge/one.yaml"), &json!(4)));
    assert_eq!(
        (&found["conditions"][0]["status"], &found["conditions"][0]["reason"]),
        (&json!("OutOfSync"), &json!("Invalid"))
    );
    assert!(!found["next_sync_at"].as_str().unwrap().is_empty());
    assert_eq!(found["since"], found["conditions"][0]["last_transition_time"]);

    let run = client(&folder, &serve, "status");
    assert_eq!((run.code, run.out.contains("\nshop    Invalid  ")), (2, true), "{}", run.all());
    let (applied, attempted) = (format!("  {}  ", &second[..8]), format!("  {}  ", &third[..8]));
    assert!(run.out.contains(&applied) && run.out.contains(&attempted), "{}", run.out);
    assert!(run.out.contains("error ERR_EDGEWRIGHT_UNKNOWN_FIELD: edge/one.yaml:4:"), "{}", run.out);
    let run = client(&folder, &serve, "status --format json");
    let list: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &list["sources"][0]["state"]), (2, &json!("Invalid")));
}

#[test]
fn a_refused_plan_is_pending() {
    let folder = two_sources();
    let routes = "metadata: {name: N}\nspec: {hostports: [\"N.example.com:443\"]}\n";
    let many: Vec<String> = (0..8)
        .map(|at| format!("apiVersion: edgewright/v1\nkind: HttpsEdge\n{}", routes.replace('N', &format!("e{at}"))))
        .collect();
    folder.write("shop/many.yaml", &many.join("---\n"));
    let serve = folder.serve("");
    folder.write("shop/many.yaml", "# nothing any more\n");
    let found = in_state(&serve, "shop", "Refused");
    assert_eq!((&found["counts"]["pending_delete"], &found["counts"]["owned"]), (&json!(8), &json!(9)));
    assert_eq!(found["diagnostics"][0]["code"], "ERR_EDGEWRIGHT_TOO_MANY_DELETIONS");
    let help = found["diagnostics"][0]["help"].as_str().unwrap();
    assert!(help.contains("`max_deletes: 8` for a source that a server follows"), "{help}");
    assert_eq!(status(&serve, "docs")["state"], "Synced");
}

#[test]
fn a_removed_edge_that_another_source_uses_is_kept_in_sync_until_it_is_let_go() {
    let folder = two_sources();
    let delegates = "spec: {delegates_to: [{source: docs, path_prefix: /docs/}], ";
    folder.write("shop/shared.yaml", &edge("shared", "s").replace("spec: {", delegates));
    let serve = folder.serve("");
    soon_shown(&serve, &["a", "b", "s"]);
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: help}\n\
                 spec: {edge: shared, match_type: path_prefix, match: /docs/}\n";
    folder.write("docs/route.yaml", route);
    within(SOON, "the route", || (status(&serve, "docs")["counts"]["owned"] == 2).then_some(()));

    fs::remove_file(folder.path("shop/shared.yaml")).unwrap();
    let of_kept = |found: &serde_json::Value| found["diagnostics"][0]["code"] == "ERR_EDGEWRIGHT_IN_USE";
    let found = within(SOON, "the warning", || Some(status(&serve, "shop")).filter(of_kept));
    let (diagnostic, counts) = (&found["diagnostics"][0], &found["counts"]);
    assert_eq!((&found["state"], &diagnostic["severity"]), (&json!("Synced"), &json!("warning")), "{found:#}");
    assert_eq!((&counts["owned"], &counts["pending_delete"], &counts["drifted"]), (&json!(2), &json!(0), &json!(0)));
    let message = diagnostic["message"].as_str().unwrap();
    assert!(message.contains("HttpsEdge shared") && message.contains("at docs/route.yaml:"), "{message}");
    // A change of one file, which is planned without the others, keeps the edge and its warning.
    folder.write("shop/one.yaml", &edge("one", "c"));
    soon_shown(&serve, &["b", "c", "s"]);
    let is_later = |later: &serde_json::Value| later["last_applied"]["revision"] != found["last_applied"]["revision"];
    let later = until("the next revision", || Some(status(&serve, "shop")).filter(is_later));
    assert!(of_kept(&later), "{later:#}");

    fs::remove_file(folder.path("docs/route.yaml")).unwrap();
    soon_shown(&serve, &["b", "c"]);
    until("the end of the warning", || Some(status(&serve, "shop")).filter(|found| !of_kept(found)));
}

#[test]
fn a_resource_of_two_sources_is_reported_at_both() {
    let folder = two_sources();
    let serve = folder.serve("");
    let id = serve.get("/edges/https").json()["https_edges"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|edge| (edge["description"] == "a").then(|| edge["id"].as_str().unwrap().to_owned()));
    let adopted = edge("uno", "b").replace("name: uno", &format!("name: uno, id: {}", id.unwrap()));
    folder.write("docs/three.yaml", &adopted);
    let found = in_state(&serve, "docs", "Invalid");
    assert_eq!(found["diagnostics"][0]["code"], "ERR_EDGEWRIGHT_OWNER_CONFLICT");
    let owner = status(&serve, "shop");
    let warning = &owner["diagnostics"][0];
    assert_eq!((&owner["state"], &warning["severity"]), (&json!("Synced"), &json!("warning")), "{owner:#}");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.starts_with("source `docs` declares HttpsEdge ") && message.contains("docs/three.yaml:"),
        "{message}"
    );
}

#[test]
fn only_those_who_may_read_see_the_sources_and_an_unknown_one_is_not_found() {
    let folder = two_sources();
    let serve = folder.serve("");
    let list = serve.get("/sources").json();
    let names: Vec<&str> = list["sources"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["shop", "docs"]);
    assert_eq!(serve.call_as("none", "GET", "/sources", "").status, 401);
    for (path, status) in [("/sources/nothing", 404), ("/sources?limit=1", 400), ("/sources/shop?x=1", 400)] {
        assert_eq!(serve.get(path).status, status, "{path}");
    }
    assert_eq!(serve.call("DELETE", "/sources/shop", "").status, 405);
}

#[test]
fn an_error_that_stays_is_one_attempt() {
    let folder = two_sources();
    folder.write(CONFIG, "sources:\n- {name: shop, path: shop, interval: 1s}\n");
    for name in 0..20 {
        folder.write(&format!("shop/{name}.yaml"), &edge(&format!("e{name}"), "x"));
    }
    let serve = folder.serve("");
    folder.write("shop/one.yaml", &edge("one", "c").replace("hostports", "hostprots"));
    in_state(&serve, "shop", "Invalid");
    for _ in 0..3 {
        let synced_at = status(&serve, "shop")["last_attempt"]["at"].clone();
        until("the next sync", || (status(&serve, "shop")["last_attempt"]["at"] != synced_at).then_some(()));
    }
    let history = serve.get("/history").json();
    let refused = history["history"].as_array().unwrap().iter().filter(|it| it["outcome"] == "refused").count();
    assert_eq!(refused, 1, "{history:#}");
    assert_eq!(serve.said().matches("1 error in 21 files").count(), 1, "{}", serve.said());
}

#[test]
fn a_commit_that_cannot_be_read_whole_deletes_nothing() {
    let folder = repository();
    folder.write("repo/edge/sub/two.yaml", &edge("two", "b"));
    git(&folder, "-C repo add .");
    commit(&folder, "second");
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a", "b"]);
    git(&folder, "-C repo rm -q -r edge/sub");
    git(&folder, &format!("-C repo update-index --add --cacheinfo 160000,{},edge/sub", head(&folder, "repo")));
    git(&folder, "-C repo commit -q -m submodule");
    serve.wait_for("edge/sub: is a submodule");
    assert_eq!(shown(&serve), ["a", "b"]);

    git(&folder, "-C repo rm -q --cached edge/sub");
    folder.write(&format!("repo/edge/{}three.yaml", "d/".repeat(101)), &edge("three", "c"));
    git(&folder, "-C repo add .");
    git(&folder, "-C repo commit -q -m deep");
    serve.wait_for("more than 100 folders deep");
    assert_eq!(shown(&serve), ["a", "b"]);
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_source_that_the_server_follows_is_refused_before_the_plan_is_shown() {
    let folder = two_sources();
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    folder.write("mine/one.yaml", &edge("one", "mine"));
    let run = client(&folder, &serve, "reconcile --source shop mine");
    assert_eq!((run.code, run.out.as_str()), (1, ""), "{}", run.all());
    assert!(run.err.contains("reconciles source `shop` from its own manifests"), "{}", run.err);
    assert!(run.err.contains("` on the server; use `plan` here, or another --source"), "{}", run.err);
    let plan = client(&folder, &serve, "plan --source shop mine");
    assert_eq!((plan.code, plan.calls().len()), (0, 1), "{}", plan.all());
}
