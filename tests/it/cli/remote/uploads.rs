//! A client sends digests first and then what the server lacks: a plan costs about as much as what has changed (D72).

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::{Remote, said, through};
use crate::support::{
    http::http,
    manifests::bare_edge,
    program::{Folder, Run, Serve, finish},
};

const FILES: usize = 60;
const FILE_BYTES: usize = 2000;

/// A manifest of some size.
fn manifest(at: usize) -> String {
    let text = bare_edge(&format!("edge-{at:02}"), "");
    let filler = FILE_BYTES - text.len();
    format!("{text}# {}\n", "x".repeat(filler))
}

/// Many manifests in the folder `m`.
fn estate() -> Folder {
    let folder = Folder::new();
    for at in 0..FILES {
        folder.write(&format!("m/{at:02}.yaml"), &manifest(at));
    }
    folder
}

fn change(folder: &Folder, at: usize, description: &str) {
    let text = manifest(at).replace("spec: {", &format!("spec: {{description: {description}, "));
    folder.write(&format!("m/{at:02}.yaml"), &text);
}

/// A figure of a server.
fn metric(serve: &Serve, name: &str) -> usize {
    serve.metric(name).unwrap_or_else(|| panic!("there is no {name}")) as usize
}

fn received(serve: &Serve) -> usize {
    metric(serve, "edgewright_reconciliation_request_bytes_total")
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_string()
}

/// What a proxy answers itself, by the number of the request, from 0.
type Answers = dyn Fn(usize, &Value) -> Option<(u16, Value)> + Send;

/// Stands before a server: it keeps every request, and answers some itself.
struct Proxy {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Proxy {
    fn before(serve: &Serve, answers: Box<Answers>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (address, bearer) = (serve.address.clone(), format!("Bearer {}", serve.token));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let mut reader = BufReader::new(connection.try_clone().unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let body = String::from_utf8(body).unwrap();
                let request: Value = serde_json::from_str(&body).unwrap();
                let number = kept.lock().unwrap().len();
                let (status, text) = match answers(number, &request) {
                    Some((status, answer)) => (status, answer.to_string()),
                    None => {
                        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
                        let answer = http(&address, "POST", "/reconciliations", &headers, &body);
                        (answer.status, answer.body)
                    }
                };
                kept.lock().unwrap().push(request);
                let head = format!("HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nConnection: close");
                let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
                connection.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, requests }
    }

    fn run(&self, remote: &Remote, line: &str) -> Run {
        finish(through(&remote.here, &self.url, &remote.serve.token, line), "")
    }

    /// How many texts each request had.
    fn texts(&self) -> Vec<usize> {
        let of = |request: &Value| {
            let files = request["files"].as_array().unwrap();
            files.iter().filter(|file| file.get("text").is_some()).count()
        };
        self.requests.lock().unwrap().iter().map(of).collect()
    }
}

/// The digests of a request that has some.
fn digests(request: &Value) -> Option<Vec<Value>> {
    let files = request["files"].as_array().unwrap();
    let digests: Vec<Value> = files.iter().filter_map(|file| file.get("digest").cloned()).collect();
    (!digests.is_empty()).then_some(digests)
}

fn missing(digests: Vec<Value>) -> (u16, Value) {
    let error = json!({
        "error_code": "ERR_EDGEWRIGHT_MISSING_FILES", "status_code": 409, "msg": "files are missing", "details": {},
        "missing": digests
    });
    (409, error)
}

#[test]
fn a_changed_file_among_many_is_about_all_that_is_sent() {
    let remote = Remote::new(estate());
    remote.same("reconcile m");
    let first = received(&remote.serve);
    assert!(first > FILES * FILE_BYTES, "{first}");
    assert_eq!(metric(&remote.serve, "edgewright_file_cache_files"), FILES);
    assert!(metric(&remote.serve, "edgewright_file_cache_bytes") > FILES * FILE_BYTES);

    let hits = metric(&remote.serve, "edgewright_file_cache_hits_total");
    assert_eq!(remote.same("plan m").out, format!("No changes: {FILES} unchanged.\n"));
    let unchanged = received(&remote.serve) - first;
    // The list of the files.
    assert!(unchanged < FILES * 120, "{unchanged}");
    assert_eq!(metric(&remote.serve, "edgewright_file_cache_hits_total") - hits, FILES);

    change(&remote.here, 7, "changed");
    let before = received(&remote.serve);
    assert_eq!(remote.same("plan m").calls().len(), 1);
    let changed = received(&remote.serve) - before;
    assert!(changed < 2 * unchanged + FILE_BYTES + 200, "{changed}");
    // The run that applies it sends no text at all.
    let before = received(&remote.serve);
    remote.same("reconcile m");
    assert!(received(&remote.serve) - before < 3 * unchanged);
    assert_eq!(remote.applied().len(), 2);
}

#[test]
fn what_was_reviewed_is_what_runs_whatever_form_its_files_have() {
    let remote = Remote::new(estate());
    remote.ok("plan --out first.json m");
    remote.ok("reconcile --plan first.json m");
    change(&remote.here, 3, "first");
    remote.ok("plan --out plan.json m");
    change(&remote.here, 3, "second");
    remote.refuses("reconcile --plan plan.json m", 5, &["ERR_EDGEWRIGHT_STALE", "the manifests"]);
    change(&remote.here, 3, "first");
    remote.ok("reconcile --plan plan.json m");
    // Faults have the same places.
    remote.here.edit(
        "m/04.yaml",
        "hostports: [",
        "mutual_tls: {certificate_authority_ids: [ca_000000000000000000000000000]}, hostports: [",
    );
    remote.refuses("reconcile m", 3, &["ERR_EDGEWRIGHT_UNKNOWN_REFERENCE", "m/04.yaml:4:"]);
}

#[test]
fn a_restart_between_two_requests_costs_another_request() {
    let remote = Remote::new(estate());
    remote.ok("plan m");
    change(&remote.here, 7, "changed");
    // As if it had restarted before the second request.
    let answers = |number: usize, request: &Value| match number {
        1 => Some(missing(digests(request)?)),
        _ => None,
    };
    let proxy = Proxy::before(&remote.serve, Box::new(answers));
    let run = proxy.run(&remote, "plan m");
    // The changed file never arrived.
    assert_eq!((run.code, proxy.texts()), (0, vec![0, 1, FILES - 1, 1]), "{}", run.all());

    // A real one.
    remote.ok("reconcile m");
    let Remote { serve, here, there } = remote;
    assert_eq!(serve.stop().code, 0);
    let serve = there.serve("");
    let remote = Remote { serve, here, there };
    let proxy = Proxy::before(&remote.serve, Box::new(|_: usize, _: &Value| None));
    let run = proxy.run(&remote, "plan m");
    assert_eq!(run.out, format!("No changes: {FILES} unchanged.\n"), "{}", run.all());
    assert_eq!(proxy.texts(), [0, FILES]);
}

#[test]
fn a_server_that_does_not_know_digests_gets_everything() {
    let remote = Remote::new(estate());
    let answers = |_: usize, request: &Value| {
        digests(request)?;
        let unknown = "ERR_EDGEWRIGHT_UNKNOWN_FIELD";
        let details = json!({"operation_id": "op_1", "field": "/files/0/digest"});
        let msg = "unknown field `digest`";
        Some((400, json!({"error_code": unknown, "status_code": 400, "msg": msg, "details": details})))
    };
    let proxy = Proxy::before(&remote.serve, Box::new(answers));
    let run = proxy.run(&remote, "reconcile m");
    assert_eq!((run.code, said(&run).as_str()), (0, "Applied as revision 2.\n"), "{}", run.all());
    // It is asked once.
    assert_eq!(proxy.texts(), [0, FILES, FILES]);
}

#[test]
fn a_server_that_keeps_nothing_gets_everything() {
    let remote = Remote::new(estate());
    // Whatever is sent, it lacks others.
    let answers = |_: usize, request: &Value| {
        let lost = digests(request)?.into_iter().take(FILES / 2);
        Some(missing(lost.collect()))
    };
    let proxy = Proxy::before(&remote.serve, Box::new(answers));
    let run = proxy.run(&remote, "plan m");
    assert_eq!((run.code, proxy.texts().last()), (0, Some(&FILES)), "{}", run.all());
    assert!(proxy.texts().len() < 8, "{:?}", proxy.texts());

    let remote = Remote::start(estate(), Folder::new(), "--file-cache-mib 0");
    remote.same("reconcile m");
    assert_eq!(remote.same("plan m").out, format!("No changes: {FILES} unchanged.\n"));
    assert_eq!(metric(&remote.serve, "edgewright_file_cache_bytes"), 0);
}

#[test]
fn a_source_can_be_larger_than_a_request() {
    let remote = Remote::new(Folder::new());
    remote.here.write("m/edge.yaml", &bare_edge("a", ""));
    for at in 0..33 {
        // JSON escapes each quote.
        remote.here.write(&format!("m/{at}.yaml"), &format!("# {at} {}\n", "\"".repeat(1 << 20)));
    }
    let proxy = Proxy::before(&remote.serve, Box::new(|_: usize, _: &Value| None));
    let run = proxy.run(&remote, "plan m");
    assert_eq!((run.code, run.calls()), (0, vec!["POST /edges/https".to_owned()]), "{}", run.all());
    assert_eq!(proxy.texts(), [0, 32, 2]);
}

#[test]
fn a_digest_is_no_permission() {
    let there = Folder::new();
    let editor = there.ok("keys create --role editor --owner usr_editor").out;
    let second = there.ok("keys create --owner usr_editor").out;
    let viewer = there.ok("keys create --role viewer").out;
    let remote = Remote::start(Folder::new(), there, "");
    let text = bare_edge("a", "");
    let post = |token: &str, file: Value, dry_run: bool| {
        let body = json!({"files": [file], "source": "a", "dry_run": dry_run}).to_string();
        remote.serve.call_as(token.trim(), "POST", "/reconciliations", &body)
    };
    let (sent, referred) =
        (json!({"name": "a.yaml", "text": text}), json!({"name": "a.yaml", "digest": digest(&text)}));
    assert_eq!(post(&editor, sent, true).status, 200);
    for dry_run in [true, false] {
        let answer = post(&remote.serve.token, referred.clone(), dry_run);
        assert_eq!((answer.status, answer.code().as_str()), (409, "ERR_EDGEWRIGHT_MISSING_FILES"), "{}", answer.body);
        assert_eq!(answer.json()["missing"], json!([digest(&text)]));
        let answer = post(&viewer, referred.clone(), dry_run);
        let (status, code) = if dry_run { (409, "MISSING_FILES") } else { (403, "FORBIDDEN") };
        assert_eq!((answer.status, answer.code()), (status, format!("ERR_EDGEWRIGHT_{code}")));
    }
    assert!(remote.applied().is_empty(), "nothing has happened");
    // The other key of the same owner.
    assert_eq!(post(&second, referred.clone(), false).status, 201);
    // A text under the digest of another is refused, and displaces nothing.
    let poison = json!({"name": "a.yaml", "text": bare_edge("evil", ""), "digest": digest(&text)});
    assert_eq!(post(&editor, poison, true).code(), "ERR_EDGEWRIGHT_INVALID_FORMAT");
    let answer = post(&editor, referred, true).json();
    assert_eq!(answer["summary"]["unchanged"], 1, "{answer}");
}
