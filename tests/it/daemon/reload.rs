//! A configuration file that changes while the server runs (D91).

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use crate::support::{
    git::git,
    manifests::edge,
    program::{CONFIG, Folder, Serve, until},
    sources::{in_state, replace, shown, soon_shown, status, two_sources, until_logged},
    users::client,
};

const SHOP: &str = "- {name: shop, path: shop}\n";
const DOCS: &str = "- {name: docs, path: docs, interval: 5m}\n";
const NOT_APPLIED: &str = "The configuration file is not applied";

/// The names of the followed sources, in the order of the API.
fn names(serve: &Serve) -> Vec<String> {
    let list = serve.get("/sources").json();
    let followed =
        list["sources"].as_array().unwrap().iter().filter(|it| it["conditions"][0]["reason"] != "NotFollowed");
    followed.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn until_followed(serve: &Serve, expected: &[&str]) {
    until(&expected.join(", "), || (names(serve) == expected).then_some(()));
}

/// A value of the metrics page.
fn until_successful(serve: &Serve, value: f64) {
    until("the metric", || (serve.metric("edgewright_config_last_reload_successful") == Some(value)).then_some(()));
}

#[test]
fn a_source_that_is_added_is_followed_and_one_that_is_removed_keeps_its_resources() {
    let folder = two_sources();
    folder.write("wiki/three.yaml", &edge("three", "c"));
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a", "b"]);
    replace(&folder, &format!("sources:\n- {{name: wiki, path: wiki}}\n{SHOP}{DOCS}"));
    until_followed(&serve, &["wiki", "shop", "docs"]);
    soon_shown(&serve, &["a", "b", "c"]);
    until_logged(&serve, "wiki", "Following the source.");
    serve.wait_for("The configuration file is applied: 1 added, 0 changed and 0 removed sources.");

    replace(&folder, &format!("sources:\n{SHOP}- {{name: wiki, path: wiki}}\n"));
    until_followed(&serve, &["shop", "wiki"]);
    until_logged(&serve, "docs", "No longer following the source. Its resources stay in the store");
    assert!(serve.said().contains("resources=1"), "{}", serve.said());
    folder.write("docs/two.yaml", &edge("two", "unseen"));
    folder.write("shop/one.yaml", &edge("one", "seen"));
    soon_shown(&serve, &["b", "c", "seen"]);
    assert_eq!(serve.get("/readyz").body, "ready\n");
    assert_eq!(serve.metric("edgewright_drift{source=\"docs\"}"), None, "its series have ended");
    let owned = serve.metric("edgewright_source_resources{source=\"docs\",kind=\"HttpsEdge\"}");
    assert_eq!(owned, Some(1.0), "it still owns its edge");
    let repairs = serve.metric("edgewright_drift_repairs_total{source=\"docs\"}");
    assert_eq!((repairs, serve.metric("edgewright_drift_repairs_total{source=\"shop\"}")), (None, Some(0.0)));
    let left = status(&serve, "docs");
    assert_eq!((&left["state"], &left["counts"]["owned"]), (&json!("Unknown"), &json!(1)), "{left:#}");
    let condition = &left["conditions"][0];
    assert_eq!((&condition["reason"], &condition["status"]), (&json!("NotFollowed"), &json!("Unknown")));
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("owns 1 resource. To follow it, add it to `sources`"), "{message}");
    let listed = serve.get("/sources").json();
    assert_eq!(listed["sources"].as_array().unwrap().last(), Some(&left));
    let run = client(&folder, &serve, "status");
    assert!(run.code == 0 && run.out.contains("\ndocs    NotFollowed  "), "{}", run.all());
    assert_eq!(serve.call("POST", "/sources/docs/suspend", r#"{"reason": "x"}"#).status, 404);

    // It is the same source when it comes back.
    replace(&folder, &format!("sources:\n{SHOP}{DOCS}"));
    soon_shown(&serve, &["c", "seen", "unseen"]);
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_source_that_is_changed_has_its_new_settings_and_keeps_its_status() {
    let folder = two_sources();
    folder.write("other/one.yaml", &edge("one", "moved"));
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    replace(&folder, &format!("sources:\n- {{name: shop, path: shop, interval: 2m, suspend: true}}\n{DOCS}"));
    let found =
        until("the interval", || Some(status(&serve, "shop")).filter(|found| found["interval_seconds"] == json!(120)));
    assert_eq!((&found["state"], &found["suspension"]["by"]), (&json!("Suspended"), &json!("configuration file")));
    assert!(found["last_applied"].is_object(), "{found:#}");
    until_logged(&serve, "shop", "Following the source with its new settings.");
    folder.write("shop/one.yaml", &edge("one", "new"));
    until("the plan", || (status(&serve, "shop")["counts"]["pending_change"] == json!(1)).then_some(()));
    assert_eq!(shown(&serve), ["a", "b"]);

    replace(&folder, &format!("sources:\n{SHOP}{DOCS}"));
    soon_shown(&serve, &["b", "new"]);
    replace(&folder, &format!("sources:\n- {{name: shop, path: other}}\n{DOCS}"));
    soon_shown(&serve, &["b", "moved"]);
    assert_eq!(in_state(&serve, "shop", "Synced")["paths"], json!(["other"]));
    folder.write("other/one.yaml", &edge("one", "again"));
    soon_shown(&serve, &["again", "b"]);
    assert!(!serve.said().contains("Following the source with its new settings. source=\"docs\""));
}

#[test]
fn levels_of_lints_take_effect_in_all_sources() {
    let folder = two_sources();
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    replace(&folder, &format!("lints: {{plain-http-hostport: warn, team-format: deny}}\nsources:\n{SHOP}{DOCS}"));
    for source in ["shop", "docs"] {
        until_logged(&serve, source, "Following the source with its new settings.");
    }
    let labelled = edge("one", "a").replace("{name: one}", "{name: one, labels: {team: x}}");
    folder.write("shop/one.yaml", &labelled);
    replace(&folder, &format!("lints: {{unknown-label: deny}}\nallowed_labels: [owner]\nsources:\n{SHOP}{DOCS}"));
    let found = in_state(&serve, "shop", "Invalid");
    assert_eq!(found["diagnostics"][0]["code"], "unknown-label", "{found:#}");
    replace(&folder, &format!("sources:\n{SHOP}{DOCS}"));
    in_state(&serve, "shop", "Synced");
}

#[test]
fn a_broken_file_changes_nothing_and_is_reported_with_its_line_once() {
    let folder = two_sources();
    let serve = folder.serve("");
    assert_eq!(serve.metric("edgewright_config_last_reload_successful"), Some(1.0));
    let since = "edgewright_config_last_reload_success_timestamp_seconds";
    assert!(serve.metric(since).is_some_and(|time| time > 1_700_000_000.0));
    let reports = || serve.said().matches(NOT_APPLIED).count();
    for (at, (text, said)) in [
        (
            format!("sources:\n{SHOP}- {{name: docs, path: docs, prun: true}}\n"),
            "/sources/1/prun (line 3): unknown field",
        ),
        (format!("sources:\n{SHOP}- {{name: docs\n"), "at line 4 column 1"),
        (format!("options: {{file-cache-mib: few}}\nsources:\n{SHOP}"), "invalid value 'few'"),
        (format!("options: {{manifests: shop}}\nsources:\n{SHOP}"), "cannot be combined with `sources`"),
        (String::new(), "the file is missing or empty"),
    ]
    .into_iter()
    .enumerate()
    {
        replace(&folder, &text);
        until(said, || (reports() > at && serve.said().contains(said)).then_some(()));
        assert_eq!((reports(), names(&serve)), (at + 1, vec!["shop".to_owned(), "docs".to_owned()]), "{text}");
        until_successful(&serve, 0.0);
    }
    // The sources go on.
    folder.write("docs/two.yaml", &edge("two", "d"));
    soon_shown(&serve, &["a", "d"]);
    let ready = serve.get("/readyz").body;
    assert_eq!(ready, "ready\nwarning: the configuration file is not applied; see the server log\n");

    fs::remove_file(folder.path(CONFIG)).unwrap();
    replace(&folder, &format!("sources:\n{SHOP}{DOCS}"));
    until_successful(&serve, 1.0);
    serve.wait_for("The configuration file is valid. No source has changed.");
    assert_eq!(names(&serve), ["shop", "docs"]);
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn a_repository_or_folder_that_does_not_exist_yet_holds_up_nothing_else() {
    let folder = two_sources();
    let later =
        "- {name: deep, path: nowhere/at/all, interval: 5m}\n- {name: git, repository: later/repo, interval: 5m}\n";
    replace(&folder, &format!("sources:\n{SHOP}{later}"));
    let serve = folder.serve("");
    for source in ["deep", "git"] {
        in_state(&serve, source, "Failed");
    }
    assert_eq!(shown(&serve), ["a"]);
    replace(&folder, &format!("sources:\n{SHOP}{DOCS}{later}"));
    soon_shown(&serve, &["a", "b"]);
    // They are read when they come.
    folder.write("nowhere/at/all/three.yaml", &edge("three", "c"));
    soon_shown(&serve, &["a", "b", "c"]);
    folder.write("prepared/four.yaml", &edge("four", "d"));
    for line in ["init -q -b main", "add .", "commit -q -m first"] {
        git(&folder, &format!("-C prepared {line}"));
    }
    fs::create_dir(folder.path("later")).unwrap();
    fs::rename(folder.path("prepared"), folder.path("later/repo")).unwrap();
    soon_shown(&serve, &["a", "b", "c", "d"]);
    until("readiness", || (serve.get("/readyz").body == "ready\n").then_some(()));
}

#[test]
fn a_file_that_disappears_is_an_error_and_a_hangup_reports_it_again() {
    let folder = two_sources();
    let serve = folder.serve("");
    fs::remove_file(folder.path(CONFIG)).unwrap();
    serve.wait_for("No such file or directory");
    until_successful(&serve, 0.0);
    serve.signal("HUP");
    until("the second report", || (serve.said().matches(NOT_APPLIED).count() == 2).then_some(()));
    assert_eq!(names(&serve), ["shop", "docs"]);
    folder.write(CONFIG, &format!("sources:\n{SHOP}"));
    until_followed(&serve, &["shop"]);
    serve.signal("HUP");
    serve.wait_for("The configuration file is valid. No source has changed.");
    assert_eq!(serve.said().matches("SIGHUP: reading the configuration file and the manifests").count(), 2);
}

#[test]
fn a_swapped_volume_is_read_and_a_file_that_comes_later_is_no_named_one() {
    let folder = two_sources();
    fs::remove_file(folder.path(CONFIG)).unwrap();
    for (version, sources) in [("..1", SHOP), ("..2", DOCS)] {
        folder.write(&format!("etc/{version}/config.yaml"), &format!("sources:\n{sources}"));
    }
    symlink("..1", folder.path("etc/..data")).unwrap();
    symlink("..data/config.yaml", folder.path("etc/config.yaml")).unwrap();
    let serve = folder.serve_with("", &[("EDGEWRIGHT_CONFIG", "etc/config.yaml")]);
    assert_eq!((names(&serve), shown(&serve)), (vec!["shop".to_owned()], vec!["a".to_owned()]));
    symlink("..2", folder.path("etc/..next")).unwrap();
    fs::rename(folder.path("etc/..next"), folder.path("etc/..data")).unwrap();
    fs::remove_dir_all(folder.path("etc/..1")).unwrap();
    until_followed(&serve, &["docs"]);
    soon_shown(&serve, &["a", "b"]);
    drop(serve);

    let folder = two_sources();
    let text = folder.read(CONFIG);
    fs::remove_file(folder.path(CONFIG)).unwrap();
    let serve = folder.serve("");
    assert!(names(&serve).is_empty());
    // Anybody who can write to the working folder could add it.
    folder.write(CONFIG, &text);
    serve.wait_for("`sources` cannot be set in a configuration file found in the working folder");
    assert!(names(&serve).is_empty());
}

#[test]
fn keys_that_need_a_restart_are_named_once() {
    let folder = two_sources();
    let serve = folder.serve("");
    let said = |keys: &str| format!("These keys of the configuration file take effect after a restart: {keys}");
    // The address is a flag of this server, and `output` is an option of other commands.
    let options = "options: {file-cache-mib: 8, version-header: Other, listen: 127.0.0.1:1, output: x.json}\n";
    replace(&folder, &format!("{options}sources:\n{SHOP}{DOCS}"));
    serve.wait_for(&said("/options/file-cache-mib, /options/version-header keys="));
    replace(&folder, &format!("{options}sources:\n{SHOP}"));
    until_followed(&serve, &["shop"]);
    replace(&folder, &format!("{}sources:\n{SHOP}", options.replace("mib: 8", "mib: 9")));
    serve.wait_for(&said("/options/file-cache-mib keys="));
    replace(&folder, &format!("sources:\n{SHOP}{DOCS}"));
    until_followed(&serve, &["shop", "docs"]);
    assert_eq!(serve.said().matches(&said("")).count(), 2, "{}", serve.said());
    assert_eq!(serve.get("/sources").status, 200, "the version header is the same");
}

#[test]
fn a_source_that_is_added_with_errors_does_not_make_a_server_unready() {
    let folder = two_sources();
    folder.write("wiki/three.yaml", "kind: Nothing\n");
    let serve = folder.serve("");
    replace(&folder, &format!("sources:\n{SHOP}{DOCS}- {{name: wiki, path: wiki}}\n"));
    in_state_if_followed(&serve, "wiki", "Invalid");
    serve.wait_for("Sources that cannot be read or applied: wiki.");
    let ready = serve.get("/readyz");
    let warns = ready.body.starts_with("ready\nwarning: source `wiki`: OutOfSync (Invalid)");
    assert_eq!((ready.status, warns), (200, true), "{}", ready.body);
    drop(serve);
    // For the next process it is a source as any other.
    let serve = folder.serve("");
    assert_eq!(serve.get("/readyz").status, 503);
}

/// Waits for the state of a source that may not be followed yet.
fn in_state_if_followed(serve: &Serve, name: &str, state: &str) {
    until(state, || (serve.get(&format!("/sources/{name}")).json()["state"] == state).then_some(()));
}

#[test]
fn the_levels_of_lints_change_for_the_one_source_of_the_options() {
    let folder = Folder::new();
    let labelled = edge("one", "a").replace("{name: one}", "{name: one, labels: {team: x}}");
    folder.write("m/one.yaml", &labelled);
    folder.write(CONFIG, "{}\n");
    let serve = folder.serve("--manifests m --log-format json");
    in_state(&serve, "default", "Synced");
    folder.write(CONFIG, "lints: {unknown-label: deny}\nallowed_labels: [owner]\n");
    in_state(&serve, "default", "Invalid");
    // A list of sources needs a start without the option.
    replace(&folder, "sources:\n- {name: shop, path: m}\n");
    serve.wait_for("`--manifests` cannot be combined with `sources`");
    assert_eq!(names(&serve), ["default"]);
    let run = serve.stop();
    for line in run.err.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
}
