//! Suspended sources: they are synced and not applied, until they are resumed or the time is over.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{
    manifests::edge,
    program::{CONFIG, Folder, finish, until},
    sources::{in_state, shown, soon_shown, status, two_sources, until_logged},
    users::{client, client_command, url},
};

#[test]
fn a_source_that_a_pipeline_applies_is_not_suspended() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", "x"));
    let serve = folder.serve("");
    assert_eq!(client(&folder, &serve, "reconcile --source docs m").code, 0);
    for line in ["suspend docs --reason x", "resume docs"] {
        let run = client(&folder, &serve, line);
        for said in ["`docs` is not followed: its pipeline applies it", "revoke its key (`edgewright keys list`)"] {
            assert!(run.code == 1 && run.err.contains(said), "{line}: {}", run.all());
        }
    }
}

#[test]
fn an_offline_store_says_of_a_suspension_what_a_server_says() {
    let folder = two_sources();
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    assert_eq!(serve.stop().code, 0);
    folder.ok("reconcile --source ci shop --store other");
    let unfollowed = "No server has followed source";
    let run = folder.ok("suspend shop --reason emergency --for 2h");
    let says = run.err.contains("shop: suspended by command line since ");
    assert!(says && !run.err.contains(unfollowed), "{}", run.err);
    let run = folder.ok("suspend shop --reason again");
    assert!(run.err.contains(" until it is resumed: again\nThis replaces an earlier suspension: "), "{}", run.err);
    for (line, said) in [
        ("suspend ci --reason x --store other", "disable the pipeline or revoke its key (`edgewright keys list`)"),
        ("suspend cii --reason x --store other", "it owns no resource: check the name"),
    ] {
        let run = folder.ok(line);
        let warns = [unfollowed, said, ": suspended by command line since "].iter().all(|it| run.err.contains(it));
        assert!(warns, "{line}: {}", run.err);
    }
}

#[test]
fn a_suspended_source_is_synced_and_not_applied() {
    let folder = two_sources();
    let serve = folder.serve("");
    let run = client(&folder, &serve, "suspend shop --reason emergency --for 1h");
    assert_eq!((run.code, run.err.contains(": emergency")), (0, true), "{}", run.all());
    assert!(!run.err.contains("replaces"), "{}", run.err);
    let run = client(&folder, &serve, "suspend shop --reason emergency --for 2h");
    let said = "\nThis replaces an earlier suspension: suspended by \"first admin\" (usr_";
    assert!(run.code == 0 && run.err.contains(said) && run.err.ends_with(": emergency\n"), "{}", run.all());
    folder.write("shop/one.yaml", &edge("one", "new"));
    folder.write("docs/two.yaml", &edge("two", "other"));
    soon_shown(&serve, &["a", "other"]);
    let found = until("the plan", || {
        Some(status(&serve, "shop")).filter(|found| found["counts"]["pending_change"] == json!(1))
    });
    assert_eq!((&found["state"], &found["suspension"]["reason"]), (&json!("Suspended"), &json!("emergency")));
    assert_eq!(found["since"], found["suspension"]["since"]);
    assert!(found["suspension"]["by"].as_str().unwrap().starts_with("usr_"), "{found:#}");
    assert!(found["suspension"]["until"].as_str() > found["suspension"]["since"].as_str(), "{found:#}");
    for said in ["the source is suspended: ", "Not applied, because the source is suspended: 0 to create, 1 to change"]
    {
        until_logged(&serve, "shop", said);
    }
    assert!(serve.get("/metrics").body.contains("edgewright_source_suspended{source=\"shop\"} 1"));
    let run = client(&folder, &serve, "status");
    assert!(run.code == 2 && run.out.contains("shop: suspended by \"first admin\" (usr_"), "{}", run.all());
    // A fix over the API stands, and what is invalid is still reported.
    folder.write("shop/one.yaml", "kind: Nothing\n");
    until("the error", || status(&serve, "shop")["counts"]["errors"].as_u64().filter(|errors| *errors > 0));
    folder.write("shop/one.yaml", &edge("one", "new"));
    assert_eq!(serve.stop().code, 0);

    // It survives a restart.
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a", "other"]);
    assert_eq!(status(&serve, "shop")["state"], "Suspended");
    assert_eq!(client(&folder, &serve, "resume shop").code, 0);
    soon_shown(&serve, &["new", "other"]);
    in_state(&serve, "shop", "Synced");
}

#[test]
fn the_end_of_a_suspension_while_no_server_runs_is_logged() {
    let folder = two_sources();
    let serve = folder.serve("");
    assert_eq!(client(&folder, &serve, "suspend shop --reason emergency --for 1h").code, 0);
    let until = status(&serve, "shop")["suspension"]["until"].as_str().unwrap().to_owned();
    assert_eq!(serve.stop().code, 0);
    folder.edit("store/suspensions", &until, "2026-01-01T00:00:00Z");
    let serve = folder.serve("");
    until_logged(&serve, "shop", "the suspension ended at 2026-01-01T00:00:00Z");
    in_state(&serve, "shop", "Synced");
}

#[test]
fn the_time_of_a_suspension_is_counted_by_the_clock_of_the_server() {
    let folder = two_sources();
    let serve = folder.serve("");
    let lasted = |found: &Value| {
        let time = |field: &str| found["suspension"][field].as_str().unwrap().parse::<Timestamp>().unwrap();
        time("until").duration_since(time("since")).as_secs()
    };
    for ahead in [-3 * 3600, 3 * 3600] {
        let mut command = client_command(&folder, &url(&serve), &serve.token, "suspend shop --reason fix --for 2h");
        command.env("FAILPOINTS", format!("clock=return({ahead})"));
        let run = finish(command, "");
        assert_eq!(run.code, 0, "{}", run.all());
        let found = status(&serve, "shop");
        assert_eq!(lasted(&found), 2 * 3600, "a client {ahead} s ahead: {found:#}");
    }
    for (until, shown) in [("9999-12-31T23:59:59Z", ""), ("2999-01-01T00:00:00Z", "2999-01-01T00:00:00Z")] {
        let body = json!({"reason": "fix", "until": until}).to_string();
        let answer = serve.call("POST", "/sources/shop/suspend", &body);
        assert_eq!((answer.status, &answer.json()["suspension"]["until"]), (200, &json!(shown)), "{}", answer.body);
    }
    let answer = serve.call("POST", "/sources/shop/suspend", r#"{"reason": "fix", "for_seconds": 90}"#);
    assert_eq!((answer.status, lasted(&answer.json())), (200, 90), "{}", answer.body);
}

#[test]
fn a_suspension_ends_by_itself() {
    let folder = two_sources();
    folder.write(CONFIG, "sources:\n- {name: shop, path: shop, suspend: false}\n");
    folder.ok("reconcile --source shop shop");
    folder.ok("suspend shop --reason sooner");
    let run = folder.ok("suspend shop --reason later --for 5s");
    assert!(run.err.contains("This replaces an earlier suspension: suspended by command line since "), "{}", run.err);
    folder.write("shop/one.yaml", &edge("one", "new"));
    let serve = folder.serve("");
    assert_eq!(shown(&serve), ["a"]);
    assert_eq!(serve.get("/readyz").status, 200);
    until("the end", || (shown(&serve) == ["new"]).then_some(()));
    serve.wait_for("the source is no longer suspended");
}

#[test]
fn a_source_is_in_its_state_since_the_end_of_a_suspension() {
    let folder = two_sources();
    let serve = folder.serve("");
    let before = in_state(&serve, "shop", "Synced")["since"].as_str().unwrap().to_owned();
    // Times are in seconds.
    until("the next second", || {
        (Timestamp::now().as_second() > before.parse::<Timestamp>().unwrap().as_second()).then_some(())
    });
    assert_eq!(serve.call("POST", "/sources/shop/suspend", r#"{"reason": "fix"}"#).status, 200);
    let suspended = in_state(&serve, "shop", "Suspended")["since"].clone();
    assert_eq!(serve.call("POST", "/sources/shop/resume", "").status, 200);
    let resumed = in_state(&serve, "shop", "Synced")["since"].clone();
    assert!(before.as_str() < suspended.as_str().unwrap(), "{before} {suspended}");
    assert!(suspended.as_str() <= resumed.as_str(), "{suspended} {resumed}");
    assert_eq!(serve.stop().code, 0);
    let serve = folder.serve("");
    assert_eq!(in_state(&serve, "shop", "Synced")["since"], resumed);
}

#[test]
fn the_configuration_file_suspends_a_source_until_it_is_changed() {
    let folder = two_sources();
    folder.write(CONFIG, "sources:\n- {name: shop, path: shop, suspend: true}\n");
    let serve = folder.serve("");
    assert!(shown(&serve).is_empty());
    assert_eq!((status(&serve, "shop")["state"].as_str(), serve.get("/readyz").status), (Some("Suspended"), 200));
    let answer = serve.call("POST", "/sources/shop/resume", "");
    assert_eq!((answer.status, answer.code().as_str()), (409, "ERR_EDGEWRIGHT_CONFLICT"), "{}", answer.body);
}

#[test]
fn a_suspension_that_is_replaced_before_the_next_sync_is_logged_too() {
    let folder = two_sources();
    let serve = folder.serve("");
    for reason in ["first", "second"] {
        let body = format!(r#"{{"reason": "{reason}"}}"#);
        assert_eq!(serve.call("POST", "/sources/shop/suspend", &body).status, 200);
    }
    for reason in ["first", "second"] {
        until_logged(&serve, "shop", &format!("reason=\"{reason}\""));
    }
}

#[test]
fn a_suspension_is_checked() {
    let folder = two_sources();
    let serve = folder.serve("");
    for (path, body, status, field) in [
        ("/sources/shop/suspend", "", 400, ""),
        ("/sources/shop/suspend", "{}", 400, "/reason"),
        ("/sources/shop/suspend", r#"{"reason": " "}"#, 400, "/reason"),
        ("/sources/shop/suspend", r#"{"reason": "x", "until": "soon"}"#, 400, "/until"),
        ("/sources/shop/suspend", r#"{"reason": "x", "until": "2020-01-01T00:00:00Z"}"#, 400, "/until"),
        ("/sources/shop/suspend", r#"{"reason": "x", "for_seconds": 0}"#, 400, "/for_seconds"),
        ("/sources/shop/suspend", r#"{"reason": "x", "for_seconds": -5}"#, 400, "/for_seconds"),
        (
            "/sources/shop/suspend",
            r#"{"reason": "x", "until": "2999-01-01T00:00:00Z", "for_seconds": 60}"#,
            400,
            "/for_seconds",
        ),
        ("/sources/nothing/suspend", r#"{"reason": "x"}"#, 404, ""),
        ("/sources/nothing/resume", "", 404, ""),
    ] {
        let answer = serve.call("POST", path, body);
        let found = answer.json()["details"]["field"].as_str().unwrap_or_default().to_owned();
        assert_eq!((answer.status, found.as_str()), (status, field), "{path} {body}: {}", answer.body);
    }
    let document = serve.get("/openapi.json").json();
    let suspension = &document["components"]["schemas"]["SourceSuspend"]["properties"];
    assert_eq!(suspension["for_seconds"]["minimum"], 1, "the schema refuses what the server refuses");
    let viewer = serve.call("POST", "/api_keys", r#"{"owner_id": "bot_viewer"}"#).json();
    let token = viewer["token"].as_str().unwrap().to_owned();
    assert_eq!(serve.call_as(&token, "POST", "/sources/docs/resume", "").status, 200, "an editor may");
    assert_eq!(serve.stop().code, 0);
    let set = folder.ok("owners set-role bot_viewer viewer");
    assert!(set.err.contains("Set the role of bot_viewer to viewer."), "{}", set.all());
    let serve = folder.serve("");
    assert_eq!(serve.call_as(&token, "GET", "/sources", "").status, 200);
    assert_eq!(serve.call_as(&token, "POST", "/sources/docs/suspend", r#"{"reason": "x"}"#).status, 403);
}
