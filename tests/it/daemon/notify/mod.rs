//! Notifications of `serve`: signed requests, messages of chats and lines of files, at least once, whatever happens to either
//! side.

mod receiver;

use std::time::{Duration, Instant};

use receiver::{Delivered, Receiver, SECRET, SILENT};
use serde_json::{Value, json};

use crate::{
    security::tls::authority_until,
    support::{
        git::git,
        manifests::{bare_edge, edge},
        program::{CONFIG_VARIABLE, Folder, Serve, finish, until},
    },
};

/// Serves with a configuration file.
fn serve(folder: &Folder, config: &str) -> Serve {
    folder.write("secret", &format!("whsec_{SECRET}\n"));
    folder.write("named.yaml", config);
    let variables = [("EDGEWRIGHT_CONFIG", "named.yaml"), ("NO_PROXY", "127.0.0.1")];
    let serve = folder.serve_with("--base-url http://edge.test", &variables);
    assert!(!serve.said().contains("hush"), "{}", serve.said());
    serve
}

fn webhook(receiver: &Receiver, more: &str) -> String {
    let url = &receiver.url;
    format!(
        "notifications: {{webhooks: [{{name: hook, url: '{url}', allow_http: true, secret_file: secret{more}}}]}}\n"
    )
}

fn create(serve: &Serve, collection: &str, body: &Value) -> String {
    let answer = serve.call("POST", collection, &body.to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn restriction(serve: &Serve) -> String {
    create(serve, "/ip_restrictions", &json!({"type": "api"}))
}

#[test]
fn a_webhook_and_a_file_are_told_of_every_revision() {
    let folder = Folder::new();
    let receiver = Receiver::start(204);
    let config = webhook(&receiver, ", kinds: [IpRestriction], events: [created, deleted]");
    let serve = serve(&folder, &config.replace("]}\n", "], files: [{name: audit, path: changes.jsonl}]}\n"));
    let id = restriction(&serve);
    let path = format!("/ip_restrictions/{id}");
    assert_eq!(serve.call("PATCH", &path, r#"{"description":"other"}"#).status, 200);
    create(&serve, "/edges/https", &json!({}));
    assert_eq!(serve.call("DELETE", &path, "").status, 204);

    let delivered = receiver.wait_for(204, 2);
    let mut events = Vec::new();
    for request in &delivered {
        request.verify();
        let body = request.json();
        assert_eq!((body["id"].as_str(), body["type"].as_str()), (Some(request.id()), Some("revision.applied")));
        assert_eq!(body["data"]["actor"]["by"], "api");
        let change = &body["data"]["changes"][0];
        assert!(change["uri"].as_str().unwrap().ends_with(&path), "{change}");
        assert!(body["text"].as_str().unwrap().starts_with("Revision "), "{body}");
        events.push(change["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(events, ["created", "deleted"]);
    assert_ne!(delivered[0].id(), delivered[1].id());

    let lines = until("the lines", || {
        let text = std::fs::read_to_string(folder.path("changes.jsonl")).unwrap_or_default();
        let lines: Vec<Value> = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        (lines.len() >= 5).then_some(lines)
    });
    let revisions: Vec<u64> = lines.iter().map(|line| line["data"]["revision"].as_u64().unwrap()).collect();
    assert_eq!(revisions, [1, 2, 3, 4, 5], "the first admin is a change too");
    assert_eq!(folder.mode("changes.jsonl"), 0o600);
    until("the metrics", || {
        let page = serve.get("/metrics").body;
        let has = |line: &str| page.lines().any(|it| it == line);
        let sent = has("edgewright_notifications_sent_total{target=\"hook\"} 2")
            && has("edgewright_notifications_failed_total{target=\"hook\"} 0");
        (sent && has("edgewright_notification_lag_revisions{target=\"hook\"} 0")).then_some(())
    });
}

#[test]
fn a_notification_survives_kill_9_between_commit_and_delivery() {
    let folder = Folder::new();
    let receiver = Receiver::start(500);
    let config = webhook(&receiver, ", kinds: [IpRestriction]");
    let served = serve(&folder, &config);
    let first = restriction(&served);
    let attempt = receiver.wait_for(500, 1).remove(0);
    let second = restriction(&served);
    // A value that is dropped is killed.
    drop(served);
    receiver.answer(200);
    let _served = serve(&folder, &config);
    let told = receiver.wait_for(200, 2);
    assert_eq!(told[0].id(), attempt.id(), "a retry has the same id");
    assert_eq!(told[0].body, attempt.body);
    let ids: Vec<_> = told.iter().map(|it| it.json()["data"]["changes"][0]["id"].clone()).collect();
    assert_eq!(ids, [json!(first), json!(second)]);
    told.iter().for_each(Delivered::verify);
}

#[test]
fn a_change_by_a_command_is_told_at_the_next_start_and_no_change_twice() {
    let folder = Folder::new();
    let receiver = Receiver::start(200);
    let config = webhook(&receiver, ", kinds: [HttpsEdge], sources: [default]");
    let stop = |served: Serve| assert_eq!(served.stop().code, 0);
    stop(serve(&folder, &config));
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.ok("reconcile m");
    let served = serve(&folder, &config);
    let told = receiver.wait_for(200, 1);
    let change = &told[0].json()["data"]["changes"][0];
    assert_eq!((&change["source"], &change["name"]), (&json!("default"), &json!("one")));
    stop(served);
    folder.write("m/one.yaml", &edge("one", "second"));
    folder.ok("reconcile m");
    let _served = serve(&folder, &config);
    let told = receiver.wait_for(200, 2);
    let events: Vec<_> = told.iter().map(|it| it.json()["data"]["changes"][0]["event"].clone()).collect();
    assert_eq!(events, [json!("created"), json!("updated")]);
    let updated = told[1].json();
    assert_eq!(updated["data"]["changes"][0]["fields"], json!(["description"]));
    let said = "Revision 3 by source `default`: updated HttpsEdge one (description)";
    assert_eq!(updated["text"], said);
}

#[test]
fn receivers_that_are_slow_or_fail_do_not_delay_commits_or_others() {
    let folder = Folder::new();
    let (silent, failing, good) = (Receiver::start(SILENT), Receiver::start(302), Receiver::start(200));
    let targets = [("silent", &silent), ("failing", &failing), ("good", &good)].map(|(name, receiver)| {
        format!("  - {{name: {name}, url: '{}', allow_http: true, secret_file: secret}}\n", receiver.url)
    });
    let served = serve(&folder, &format!("notifications:\n  webhooks:\n{}", targets.concat()));
    until("the first requests", || (!silent.delivered().is_empty() && !failing.delivered().is_empty()).then_some(()));
    let began = Instant::now();
    for _ in 0..20 {
        restriction(&served);
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(good.wait_for(200, 21).len(), 21);
    // A redirect is a failure, and not followed.
    let retried = failing.wait_for(302, 2);
    assert_eq!(retried[0].id(), retried[1].id());
    let page = served.get("/metrics").body;
    assert!(page.contains("edgewright_notification_lag_revisions{target=\"silent\"} 21"), "{page}");
    served.wait_for("the webhook responded with status 302");
    let began = Instant::now();
    let run = served.stop();
    assert!(run.code == 0 && began.elapsed() < Duration::from_secs(15), "{:?} {}", began.elapsed(), run.all());
    assert!(!run.all().contains("hush"), "{}", run.all());
}

/// Commits the manifest of an edge.
fn push(folder: &Folder, manifest: &str) {
    folder.write("repo/one.yaml", manifest);
    git(folder, "-C repo add .");
    git(folder, "-C repo commit -q -m next");
}

#[test]
fn a_refused_commit_is_told_once_to_each_chat_with_its_place_and_author() {
    let folder = Folder::new();
    let [hook, slack, teams] = [200, 200, 202].map(Receiver::start);
    git(&folder, "init -q -b main repo");
    push(&folder, &edge("one", "first"));
    folder.write("slack.url", &format!("{}\n", slack.url));
    let config = format!(
        "sources: [{{name: shop, repository: repo, interval: 1s}}]\nnotifications:\n  webhooks:\n\
         \x20 - {{name: hook, url: '{}', allow_http: true, secret_file: secret, events: [source.invalid, source.recovered]}}\n\
         \x20 - {{name: slack, url_file: slack.url, allow_http: true, format: slack, events: [source.invalid]}}\n\
         \x20 - {{name: teams, url: '{}', allow_http: true, format: teams, sources: [shop], events: [source.invalid]}}\n",
        hook.url, teams.url
    );
    let served = serve(&folder, &config);
    push(&folder, &edge("one", "second").replace("hostports", "hostprots"));
    let told = hook.wait_for(200, 1).remove(0);
    told.verify();
    let body = told.json();
    let data = &body["data"];
    assert_eq!(
        (&body["type"], &data["source"], &data["state"]),
        (&json!("source.invalid"), &json!("shop"), &json!("Invalid"))
    );
    assert_eq!(data["commit_author"], json!({"name": "t", "email": "t@example.com"}));
    let error = &data["errors"][0];
    assert_eq!((&error["file"], &error["line"]), (&json!("one.yaml"), &json!(4)), "{data}");
    assert!(error["column"].as_u64().is_some() && error["message"].as_str().unwrap().contains("hostprots"), "{data}");
    let text = body["text"].as_str().unwrap();
    let commit = data["commit"].as_str().unwrap();
    let starts = format!(
        "Source `shop` is invalid: commit {} by t is not applied: one.yaml:4:{}: ",
        &commit[..8],
        error["column"]
    );
    assert!(text.starts_with(&starts) && text.contains(error["code"].as_str().unwrap()), "{text}");

    let message = slack.wait_for(200, 1).remove(0);
    assert!(!message.headers.contains_key("webhook-signature"), "{:?}", message.headers);
    assert_eq!(message.json()["text"], text);
    let card = teams.wait_for(202, 1).remove(0).json();
    assert_eq!(card["type"], "message");
    assert_eq!(card["attachments"][0]["contentType"], "application/vnd.microsoft.card.adaptive");
    assert_eq!(card["attachments"][0]["content"]["body"][0]["inlines"][0]["text"], text);

    // Neither further syncs nor a restart tell it again.
    std::thread::sleep(Duration::from_millis(1500));
    let run = served.stop();
    assert!(!run.all().contains("hush"), "{}", run.all());
    let served = serve(&folder, &config);
    served.wait_for("The manifests are not applied");
    push(&folder, &edge("one", "third"));
    let told: Vec<Value> = hook.wait_for(200, 2).iter().map(Delivered::json).collect();
    assert_eq!((&told[1]["type"], &told[1]["data"]["previous_state"]), (&json!("source.recovered"), &json!("Invalid")));
    assert_eq!([told.len(), slack.delivered().len(), teams.delivered().len()], [2, 1, 1]);
    // Another commit that is refused is another message, also if its error is the same.
    for (description, count) in [("fourth", 3), ("fifth", 4)] {
        push(&folder, &edge("one", description).replace("hostports", "hostprots"));
        hook.wait_for(200, count);
    }
}

/// The lines of the file `events.jsonl`, once there are so many.
fn events(folder: &Folder, count: usize) -> Vec<Value> {
    until("the events", || {
        let text = std::fs::read_to_string(folder.path("events.jsonl")).unwrap_or_default();
        let lines: Vec<Value> = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        (lines.len() >= count).then_some(lines)
    })
}

#[test]
fn drift_suspension_and_recovery_are_told() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = serve(
        &folder,
        "sources: [{name: shop, path: m, interval: 1s, drift: warn}]\nnotifications:\n  files:\n\
         \x20 - name: events\n    path: events.jsonl\n\
         \x20   events: [source.drifted, source.suspended, source.recovered, source.failed, source.invalid]\n",
    );
    let edges = serve.get("/edges/https").json();
    let path = format!("/edges/https/{}", edges["https_edges"][0]["id"].as_str().unwrap());
    assert_eq!(serve.call("PATCH", &path, r#"{"description":"by hand"}"#).status, 200);
    let drifted = events(&folder, 1).remove(0);
    let resource = &drifted["data"]["drifted"][0];
    assert_eq!((&drifted["type"], &resource["name"]), (&json!("source.drifted"), &json!("one")), "{drifted}");
    assert!(drifted["text"].as_str().unwrap().contains("HttpsEdge one by \"first admin\" (ak_"), "{drifted}");
    assert_eq!(serve.call("POST", "/sources/shop/suspend", r#"{"reason":"a fix"}"#).status, 200);
    let suspended = events(&folder, 2).remove(1);
    assert_eq!(
        (&suspended["type"], &suspended["data"]["suspension"]["reason"]),
        (&json!("source.suspended"), &json!("a fix"))
    );
    assert_eq!(suspended["data"]["suspension"]["by_description"], "first admin", "{suspended}");
    assert!(suspended["text"].as_str().unwrap().contains("is suspended by \"first admin\" (usr_"), "{suspended}");
    assert_eq!(serve.call("PATCH", &path, r#"{"description":"first"}"#).status, 200);
    until("the sync", || (serve.get("/sources/shop").json()["conditions"][0]["reason"] == "InSync").then_some(()));
    assert_eq!(serve.call("POST", "/sources/shop/resume", "{}").status, 200);
    let recovered = events(&folder, 3).remove(2);
    assert_eq!(recovered["data"]["previous_state"], "Suspended", "{recovered}");
    let types: Vec<_> = events(&folder, 3).iter().map(|it| it["type"].clone()).collect();
    assert_eq!(types, ["source.drifted", "source.suspended", "source.recovered"]);
}

#[test]
fn a_file_of_notifications_exists_from_the_start() {
    let folder = Folder::new();
    let _serve = serve(&folder, "notifications: {files: [{name: a, path: a.jsonl, events: [source.failed]}]}\n");
    assert_eq!((folder.read("a.jsonl").as_str(), folder.mode("a.jsonl")), ("", 0o600));
}

#[test]
fn a_refused_plan_is_told_as_refused() {
    let folder = Folder::new();
    let numbered = |at: usize| bare_edge(&format!("e{at}"), "");
    let many: Vec<String> = (0..8).map(numbered).collect();
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.write("m/many.yaml", &many.join("---\n"));
    let config = "sources: [{name: shop, path: m, interval: 1s}]\nnotifications:\n  files:\n\
                  \x20 - {name: events, path: events.jsonl, events: [source.failed, source.recovered]}\n";
    let _serve = serve(&folder, config);
    folder.write("m/many.yaml", "# nothing any more\n");
    let refused = events(&folder, 1).remove(0);
    assert_eq!((&refused["type"], &refused["data"]["state"]), (&json!("source.failed"), &json!("Refused")));
    let text = refused["text"].as_str().unwrap();
    assert!(text.starts_with("Source `shop` is refused: its manifests are not applied: "), "{text}");
    folder.write("m/many.yaml", &many.join("---\n"));
    let recovered = events(&folder, 2).remove(1);
    assert_eq!(recovered["text"], "Source `shop` has recovered: its manifests are applied (it was refused)");
}

#[test]
fn a_certificate_that_expires_soon_is_told_once() {
    let folder = Folder::new();
    let config = "notifications: {files: [{name: events, path: events.jsonl, events: [certificate.expiring]}]}\n";
    let served = serve(&folder, config);
    let in_days = |days: i64| {
        let then = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * days);
        then.to_zoned(jiff::tz::TimeZone::UTC).date()
    };
    create(&served, "/certificate_authorities", &json!({"ca_pem": authority_until(in_days(40))}));
    let id = create(&served, "/certificate_authorities", &json!({"ca_pem": authority_until(in_days(6))}));
    let told = events(&folder, 1).remove(0);
    let data = &told["data"];
    assert_eq!(
        (&data["kind"], &data["id"], &data["days_left"]),
        (&json!("CertificateAuthority"), &json!(id), &json!(5))
    );
    assert_eq!(told["type"], "certificate.expiring");
    restriction(&served);
    std::thread::sleep(Duration::from_millis(1200));
    served.stop();
    let _served = serve(&folder, config);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(events(&folder, 1).len(), 1);
}

#[test]
fn a_target_that_cannot_work_is_an_error_at_the_start() {
    let folder = Folder::new();
    folder.write("short", "whsec_c2hvcnQ=\n");
    let webhook = |fields: &str| format!("notifications: {{webhooks: [{{name: a, {fields}}}]}}\n");
    for (config, says) in [
        (webhook("url: 'http://a.example', secret_file: short"), "allow_http"),
        (webhook("url: 'https://a.example', secret_file: short"), "24 to 64 bytes in base64"),
        (webhook("url: 'https://a.example', secret_file: none"), "cannot read `none`"),
        (webhook("url: 'https://a.example', secret_file: short, event: [created]"), "did you mean `events`?"),
        (
            webhook("url: 'https://a.example', secret_file: short, events: [source.invald]"),
            "did you mean `source.invalid`?",
        ),
        (webhook("url: 'https://a.example', format: slak"), "did you mean `slack`?"),
        (webhook("url_file: none, format: teams"), "cannot read `none`"),
        (webhook("url_file: short, format: teams"), "`short`: `url` "),
        ("notifications: {files: [{name: a, path: .}]}\n".to_owned(), "is not a regular file"),
        ("notifications: {files: [{name: a, path: none/x}]}\n".to_owned(), "cannot write to `none/x`: No such file"),
        ("notifications: {files: [{name: a, path: x}, {name: a, path: y}]}\n".to_owned(), "duplicate name `a`"),
    ] {
        folder.write("named.yaml", &config);
        let mut command = folder.command("serve --listen 127.0.0.1:0");
        let output = command.env("EDGEWRIGHT_CONFIG", "named.yaml").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(says), "{config}: {said}");
    }
    // The mistakes of all targets are reported at once.
    let two = "notifications:\n  webhooks:\n  - {name: a, url: 'http://a.example', kinds: [TlsEdges]}\n  - {name: B}\n";
    folder.write("named.yaml", two);
    let mut command = folder.command("serve --listen 127.0.0.1:0");
    command.env("EDGEWRIGHT_CONFIG", "named.yaml");
    let run = finish(command, "");
    for place in ["0/url", "0/secret_file", "0/kinds/0", "1/name", "1/url", "1/secret_file"] {
        assert!(run.err.contains(&format!("/notifications/webhooks/{place} (line ")), "{place}: {}", run.all());
    }
    // A pull request can add a file to the working folder.
    folder.write("edgewright.config.yaml", "notifications: {files: [{name: a, path: x}]}\n");
    let mut command = folder.command("serve --listen 127.0.0.1:0");
    command.env_remove(CONFIG_VARIABLE);
    let run = finish(command, "");
    assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED")), (1, true), "{}", run.all());
}
