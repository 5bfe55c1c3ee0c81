//! The log of a server: one line a request, one block a sync, as text and as JSON (D87).

use std::fs;

use serde_json::Value;

use crate::support::{
    http::http,
    manifests::edge,
    program::{Folder, Run, Serve, until},
    sources::{status, until_shown},
};

/// Waits until the server has logged a request to a path, and returns what it has said.
fn until_logged(serve: &Serve, path: &str) -> String {
    until(path, || Some(serve.said()).filter(|said| said.contains(path)))
}

/// The lines of a log, each of which must be JSON with the members that all have.
fn events(run: &Run) -> Vec<Value> {
    let parsed = run.err.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_time(event["timestamp"].as_str().unwrap_or_default());
        assert!(event["level"].is_string() && event["message"].is_string(), "{line}");
        event
    });
    parsed.collect()
}

/// Whether a text is a time in UTC as RFC 3339 has it.
fn assert_time(text: &str) {
    let time: Result<jiff::Timestamp, _> = text.parse();
    assert!(time.is_ok() && text.contains('T') && text.ends_with('Z'), "{text}");
}

fn with_target<'e>(events: &'e [Value], target: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["target"] == target).collect()
}

/// Method, path template, status and level of a request.
type Logged = (String, String, u64, String);

/// The requests in the log.
fn requests(events: &[Value]) -> Vec<Logged> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let requests = with_target(events, "edgewright::access").into_iter();
    let seen = requests.map(|it| {
        assert!(it["duration_ms"].as_f64().is_some_and(|time| time >= 0.0), "{it}");
        (text(&it["method"]), text(&it["path"]), it["status"].as_u64().unwrap(), text(&it["level"]))
    });
    seen.collect()
}

#[test]
fn each_request_is_one_line_with_its_template_its_actor_and_its_id() {
    let folder = Folder::new();
    let serve = folder.serve("--log-format json");
    let key = serve.token[3..].rsplit_once('_').unwrap().0.to_owned();
    let made = serve.call("POST", "/edges/https", r#"{"hostports":["one.example.com:443"]}"#);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(serve.get(&format!("/edges/https/{id}")).status, 200);
    let unknown = http(&serve.address, "GET", "/edges/https/none?a=b", &[], "");
    assert_eq!(unknown.status, 401);
    let operation = unknown.json()["details"]["operation_id"].as_str().unwrap().to_owned();
    assert_eq!(serve.call("PATCH", "/edges/https", "").status, 405);
    for path in ["/healthz", "/readyz", "/metrics", "/nowhere"] {
        serve.get(path);
    }
    let run = serve.stop();
    let events = events(&run);
    let line = |method: &str, path: &str, status: u64| -> Logged {
        (method.to_owned(), path.to_owned(), status, "INFO".to_owned())
    };
    let expected = vec![
        line("POST", "/edges/https", 201),
        line("GET", "/edges/https/{p0}", 401),
        line("PATCH", "/edges/https", 405),
        line("GET", "unknown", 404),
        // `stop` asks for this.
        line("GET", "unknown", 404),
    ];
    assert_eq!(requests(&events), expected, "{}", run.err);
    let lines = with_target(&events, "edgewright::access");
    assert_eq!(lines[0]["actor"], Value::from(key));
    assert_eq!((&lines[1]["actor"], &lines[1]["request_id"]), (&"anonymous".into(), &operation.into()));
    assert_eq!(lines[0]["bytes"].as_u64(), Some(made.body.len() as u64));
    assert_eq!(run.out, "");
}

#[test]
fn what_identifies_a_source_or_a_revision_is_no_part_of_a_logged_path() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    // Successful reads have a line only at this level.
    let levels = [("EDGEWRIGHT_LOG", "info,edgewright::access=debug")];
    let serve = folder.serve_with("--manifests m --source shop --log-format json", &levels);
    let endpoints = [
        ("GET", "/history?limit=1", "/history"),
        ("GET", "/history/2", "/history/{p0}"),
        ("GET", "/history/blame?resource=/nothing", "/history/blame"),
        ("POST", "/rollbacks", "/rollbacks"),
        ("GET", "/sources", "/sources"),
        ("GET", "/sources/shop", "/sources/{p0}"),
        ("POST", "/sources/nothing/suspend", "/sources/{p0}/suspend"),
        ("POST", "/sources/shop/resume", "/sources/{p0}/resume"),
        ("POST", "/sources/nothing/destroy", "/sources/{p0}/destroy"),
    ];
    for (method, path, _) in endpoints {
        serve.call(method, path, "");
    }
    let run = serve.stop();
    let events = events(&run);
    let logged: Vec<(String, String)> = requests(&events)
        .into_iter()
        .map(|(method, path, ..)| (method, path))
        .filter(|(_, path)| path != "/readyz")
        .collect();
    let mut expected: Vec<(String, String)> =
        endpoints.iter().map(|(method, _, template)| ((*method).to_owned(), (*template).to_owned())).collect();
    // `stop` asks for this.
    expected.push(("GET".to_owned(), "unknown".to_owned()));
    assert_eq!(logged, expected, "{}", run.err);
    let anonymous = with_target(&events, "edgewright::access").iter().filter(|it| it["actor"] == "anonymous").count();
    assert_eq!(anonymous, 1, "only `stop` asks for what needs no key\n{}", run.err);
}

#[test]
fn probes_are_logged_only_at_debug_and_successful_requests_can_be_left_out() {
    let folder = Folder::new();
    let serve = folder.serve_with("", &[("EDGEWRIGHT_LOG", "info,edgewright::access=debug")]);
    serve.get("/readyz");
    let said = until_logged(&serve, "path=\"/readyz\"");
    let line = said.lines().find(|line| line.contains("/readyz")).unwrap();
    assert!(line.contains(" DEBUG edgewright::access: request method=\"GET\" path=\"/readyz\" status=200 "), "{line}");
    assert_time(line.split(' ').next().unwrap());
    serve.stop();
    let serve = folder.serve_with("", &[("EDGEWRIGHT_LOG", "info,edgewright::access=warn")]);
    assert_eq!(serve.get("/edges/https").status, 200);
    let run = serve.stop();
    assert!(!run.err.contains("edgewright::access") && run.err.contains("Serving http"), "{}", run.err);
}

#[test]
fn a_sync_is_one_block_with_what_changed_and_why() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    for number in 0..25 {
        let name = format!("e{number:02}");
        folder.write(&format!("m/{name}.yaml"), &edge(&name, "more"));
    }
    let serve = folder.serve("--manifests m --log-format json --source shop");
    for number in 0..25 {
        fs::remove_file(folder.path(&format!("m/e{number:02}.yaml"))).unwrap();
    }
    // More deletions than the limit allows.
    serve.wait_for("ERR_EDGEWRIGHT_TOO_MANY_DELETIONS");
    folder.write("m/one.yaml", &edge("one", "second").replace("hostports", "hostprots"));
    serve.wait_for("ERR_EDGEWRIGHT_UNKNOWN_FIELD");
    let run = serve.stop();
    let events = events(&run);

    let syncs = with_target(&events, "edgewright::sync");
    let applied = syncs.iter().find(|it| it["created"].is_u64()).unwrap();
    let counts = ["created", "changed", "deleted", "unchanged"].map(|name| applied[name].as_u64());
    assert_eq!(counts, [Some(26), Some(0), Some(0), Some(0)], "{applied}");
    assert_eq!((&applied["source"], applied["revision"].as_u64()), (&"shop".into(), Some(2)));
    let changes: Vec<&&Value> = syncs.iter().filter(|it| it["effect"].is_string()).collect();
    assert_eq!(changes.len(), 20, "{}", run.err);
    assert!(changes[0]["message"].as_str().unwrap().starts_with("+ HttpsEdge "), "{}", changes[0]);
    assert!(syncs.iter().any(|it| it["message"] == "… and 6 more"), "{}", run.err);

    let found = with_target(&events, "edgewright::diagnostic");
    let unknown = found.iter().find(|it| it["code"] == "ERR_EDGEWRIGHT_UNKNOWN_FIELD").unwrap();
    assert_eq!((&unknown["file"], unknown["line"].as_u64()), (&"m/one.yaml".into(), Some(4)), "{unknown}");
    assert_eq!((&unknown["source"], &unknown["help"]), (&"shop".into(), &"did you mean `hostports`?".into()));
}

#[test]
fn a_sync_that_a_client_sends_names_its_key_and_commit() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let send = |text: String| {
        let files = serde_json::json!([{"name": "one.yaml", "text": text}]);
        let body = serde_json::json!({
            "files": files, "source": "shop", "commit": "4f2a91c", "commit_author_name": "Ada",
            "commit_author_email": "ada@example.com",
        });
        serve.call("POST", "/reconciliations", &body.to_string()).status
    };
    assert_eq!(send(edge("one", "first")), 201);
    assert_eq!(send(edge("one", "first")), 200);
    assert_eq!(send(edge("one", "first").replace("hostports", "hostprots")), 400);
    let key = serve.token[3..].rsplit_once('_').unwrap().0.to_owned();
    let run = serve.stop();
    let why = format!("source=\"shop\" commit=\"4f2a91c\" author=\"Ada <ada@example.com>\" key=\"{key}\"");
    for said in
        ["Applied as revision 2: ", "In sync with the manifests: 1 unchanged.", "Nothing is applied: one.yaml:4:"]
    {
        let line = run.err.lines().find(|line| line.contains(said)).unwrap_or_else(|| panic!("no {said}\n{}", run.err));
        assert!(line.contains(&why), "{line}");
    }
    assert!(run.err.contains("+ HttpsEdge one source=\"shop\" revision=2 effect=Create"), "{}", run.err);
}

#[test]
fn as_text_every_line_of_the_log_has_a_time_and_errors_show_the_manifest() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    folder.write("m/one.yaml", &edge("one", "second").replace("hostports", "hostprots"));
    serve.wait_for("the last good state stays in service");
    folder.write("m/one.yaml", &edge("one", "third"));
    until_shown(&serve, "third");
    let run = serve.stop();
    let events = run.err.lines().filter(|line| line.contains(" edgewright::"));
    let mut count = 0;
    for line in events {
        assert_time(line.split(' ').next().unwrap());
        count += 1;
    }
    assert!(count > 6, "{}", run.err);
    for part in ["m/one.yaml:4:", "1 error in 1 file. The manifests are not applied", "~ HttpsEdge one "] {
        assert!(run.err.contains(part), "{part}\n{}", run.err);
    }
}

#[test]
fn a_server_that_cannot_start_says_so_as_json_too() {
    let folder = Folder::new();
    let run = folder.run("serve --listen nowhere --log-format json");
    assert_eq!(run.code, 1, "{}", run.all());
    let events = events(&run);
    assert_eq!((events.len(), &events[0]["code"]), (1, &"ERR_EDGEWRIGHT_CANNOT_LISTEN".into()), "{}", run.err);
}

#[test]
fn one_cause_is_one_line_or_block() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.write("edgewright.config.yaml", "sources: [{name: shop, path: m, interval: 1s, drift: warn}]\n");
    let serve = folder.serve("");
    folder.write("m/one.yaml", &edge("one", "first").replace("hostports", "hostprots"));
    until_logged(&serve, "the last good state stays in service");
    folder.write("m/one.yaml", &edge("one", "first"));
    until_logged(&serve, "In sync with the manifests");
    let list = serve.get("/edges/https").json();
    let path = format!("/edges/https/{}", list["https_edges"][0]["id"].as_str().unwrap());
    assert_eq!(serve.call("PATCH", &path, r#"{"description": "by hand"}"#).status, 200);
    until_logged(&serve, "left as is");
    assert_eq!(serve.call("POST", "/sources/shop/suspend", r#"{"reason": "a fix"}"#).status, 200);
    until_logged(&serve, "Not applied, because the source is suspended");
    assert_eq!(serve.call("POST", "/sources/shop/resume", "").status, 200);
    until_logged(&serve, "no longer suspended");
    // What is applied beside drift is told with the drift, and not again by the next syncs.
    folder.write("m/one.yaml", &edge("one", "first").replace("spec: {", "spec: {metadata: more, "));
    until("the change", || serve.get(&path).body.contains("more").then_some(()));
    for _ in 0..3 {
        let synced_at = status(&serve, "shop")["last_attempt"]["at"].clone();
        until("the next sync", || (status(&serve, "shop")["last_attempt"]["at"] != synced_at).then_some(()));
    }
    let run = serve.stop();
    let logged = |text: &str| run.err.lines().filter(|line| line.contains(text)).count();
    for (text, count) in [
        ("status=OutOfSync reason=Invalid", 1),
        ("In sync with the manifests", 1),
        ("status=OutOfSync reason=Drifted", 3),
        ("Drifted: HttpsEdge one", 3),
        ("status=OutOfSync reason=Suspended", 1),
        ("no longer suspended", 1),
        ("resuming", 0),
        ("edgewright::reconcile::health", 0),
    ] {
        assert!(logged(text) <= count && (count == 0 || logged(text) > 0), "{text}\n{}", run.err);
    }
}
