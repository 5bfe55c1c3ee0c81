//! `edgewright history` through a server shows what it shows of the store (D77), suspensions included (D84).

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

use crate::support::{
    manifests::edge,
    program::{Folder, Run, finish},
};

/// A command through a server.
fn client(folder: &Folder, url: &str, token: &str, line: &str) -> Run {
    let mut command = folder.command(line);
    command.env("EDGEWRIGHT_SERVER", url).env("EDGEWRIGHT_TOKEN", token);
    finish(command, "")
}

#[test]
fn a_server_shows_what_its_store_shows() {
    let folder = Folder::new();
    assert_eq!(folder.serve("").stop().code, 0, "the first start makes a key");
    for description in ["first", "second"] {
        folder.write("m/one.yaml", &edge("one", description));
        folder.ok("reconcile --source shop m");
    }
    folder.write("m/one.yaml", "kind: [");
    assert_eq!(folder.run("reconcile --source shop m").code, 3);
    folder.ok("suspend shop --reason emergency");
    assert!(folder.ok("resume shop").err.contains("Resumed source shop."));
    assert!(folder.ok("resume shop").err.contains("Source shop was not suspended."));
    let told: Vec<Value> = {
        let lines = folder.ok("history --format json").out;
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let path = told[3]["resources"][0]["path"].as_str().unwrap().to_owned();
    let of_resource = format!("history --resource {path}");
    let lines = [
        "history",
        "history --changes --limit 4",
        "history --limit 2",
        "history --before 4",
        "history --source shop",
        "history --actor local",
        "history --from 3",
        "history --to 2",
        "history --commit abcdef0",
        of_resource.as_str(),
        "history show 3",
    ];
    let serve = folder.serve("");
    let url = format!("http://{}", serve.address);
    let through = |line: &str| client(&folder, &url, &serve.token, line);
    let served: Vec<Run> = lines.iter().map(|line| through(line)).collect();
    let records = through("history --format json");
    let verify = through("history verify");
    assert!(verify.code == 1 && verify.err.contains("does not work through a server"), "{}", verify.all());
    let unknown = through("history show 99");
    assert!(unknown.code == 1 && unknown.err.contains("`edgewright history`"), "{}", unknown.all());
    assert_eq!(serve.stop().code, 0);
    for (line, served) in lines.iter().zip(served) {
        let local = folder.ok(line).out;
        assert_eq!(served.out, local, "{line}: {}", served.err);
        assert_eq!(local.is_empty(), line.contains("--commit"), "{line}");
    }
    let served: Vec<Value> = records.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(served.len(), told.len());
    for (served, mut told) in served.into_iter().zip(told.clone()) {
        // The digest of the changes is of no use without the store.
        told.as_object_mut().unwrap().remove("changes");
        assert_eq!(served, told);
    }

    let of = |record: &Value| (record["outcome"].clone(), record["source"].clone(), record["message"].clone());
    assert_eq!(of(&told[0]), (json!("resumed"), json!("shop"), Value::Null));
    assert_eq!(of(&told[1]), (json!("suspended"), json!("shop"), json!("emergency")));
    let text = folder.ok("history --limit 2").out;
    assert!(text.contains("  suspended source `shop`  command line\n    emergency\n"), "{text}");
    assert!(folder.ok("history verify").out.starts_with(&format!("{} records verified", told.len())));
}

/// A server with two pages of history. The second one is said to be on another server.
fn server_with_pages() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let (mut first, mut line) = (String::new(), String::new());
            let _ = reader.read_line(&mut first);
            while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            let is_second = first.contains("before_id=9&actor=local");
            let item = |id: u64| {
                json!({
                    "id": id.to_string(), "uri": "", "revision": null, "created_at": "2026-01-01T00:00:00Z",
                    "milliseconds": 1, "outcome": "refused", "message": format!("message {id}"), "by": "local",
                    "key_id": "", "owner_id": "", "source": "", "commit": "", "commit_author_name": "",
                    "commit_author_email": "", "commit_message": "", "rollback_to": null, "operations": 0, "changed": 0
                })
            };
            let next = "http://elsewhere.test/history?limit=1000&before_id=9&actor=local";
            let body = match is_second {
                true => json!({"history": [item(8), item(7)], "uri": "", "next_page_uri": null}),
                false => json!({"history": [item(10), item(9)], "uri": "", "next_page_uri": next}),
            };
            let body = body.to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = connection.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
    });
    url
}

#[test]
fn pages_are_followed_up_to_the_limit() {
    let folder = Folder::new();
    let url = server_with_pages();
    for (limit, wanted) in [(1, vec![10]), (2, vec![10, 9]), (3, vec![10, 9, 8]), (100, vec![10, 9, 8, 7])] {
        let run = client(&folder, &url, "token", &format!("history --actor local --limit {limit} --format json"));
        let positions = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["position"].clone());
        let positions: Vec<Value> = positions.collect();
        let wanted: Vec<Value> = wanted.into_iter().map(Value::from).collect();
        assert_eq!(positions, wanted, "{}", run.all());
    }
}
