//! Requests that cost much: one owner keeps no other from them, and plans keep nobody from applying (D52).

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use edgewright::resources::Role;
use serde_json::{Value, json};

use crate::support::{
    http::read_answer,
    program::{rounds, until},
    server::{Answer, Server, usual_headers},
};

/// A reconciliation of so many edges. Each number is another plan.
fn reconciliation(source: &str, edges: usize, number: usize, dry_run: bool) -> Value {
    let text: String = (0..edges)
        .map(|edge| {
            format!("---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: e{edge}}}\nspec: {{description: number {number}}}\n")
        })
        .collect();
    json!({"dry_run": dry_run, "source": source, "files": [{"name": "edges.yaml", "text": text}]})
}

#[track_caller]
fn assert_turned_away(answer: &Answer) {
    let told = (answer.status, answer.str("/error_code"), answer.header("Retry-After"));
    assert_eq!(told, (429, "ERR_EDGEWRIGHT_RATE_LIMITED", Some("5")), "{}", answer.text);
    assert!(answer.text.contains("the owner of the API key has reached its limit"), "{}", answer.text);
}

/// Ends a flood, also if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn planners_that_send_dry_runs_without_end_keep_nobody_from_applying() {
    let server = Server::start();
    let planners = ["bot_plan_a", "bot_plan_b"].map(|owner| server.key_of(owner, Role::Planner));
    let (is_over, number) = (AtomicBool::new(false), AtomicUsize::new(0));
    // The answers by token and status.
    let planned: Mutex<BTreeMap<(String, u16), usize>> = Mutex::default();
    let flood = |token: &str| {
        while !is_over.load(Ordering::Relaxed) {
            let body = reconciliation("plans", rounds(100, 400), number.fetch_add(1, Ordering::Relaxed), true);
            let answer = server.call_as(token, "POST", "/reconciliations", Some(body));
            if answer.status != 200 {
                assert_turned_away(&answer);
            }
            *planned.lock().unwrap().entry((token.to_owned(), answer.status)).or_default() += 1;
        }
    };
    let count = |token: &str, status: u16| {
        planned.lock().unwrap().get(&(token.to_owned(), status)).copied().unwrap_or_default()
    };
    std::thread::scope(|scope| {
        let (_end, flood) = (End(&is_over), &flood);
        for token in &planners {
            // Together more than all that could run or wait.
            for _ in 0..8 {
                scope.spawn(move || flood(token));
            }
        }
        until("the flood", || planners.iter().all(|token| count(token, 429) > 20).then_some(()));
        let apply = |number| {
            let body = reconciliation("applies", 1, number, false);
            server.call_as(&server.editor, "POST", "/reconciliations", Some(body)).status
        };
        let applied: Vec<u16> = (0..3).map(apply).collect();
        let other = server.call_as(&server.viewer, "POST", "/reconciliations", Some(reconciliation("a", 1, 0, true)));
        assert_eq!((applied, other.status), (vec![201; 3], 200), "{}", other.text);
        until("plans of both", || planners.iter().all(|token| count(token, 200) > 1).then_some(()));
    });
}

/// Sends the head of a reconciliation, and waits until the server asks for the body or refuses it.
fn upload(server: &Server, token: &str, length: usize) -> Result<TcpStream, String> {
    let mut connection = TcpStream::connect(server.address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut head = format!(
        "POST /reconciliations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n"
    );
    for (name, value) in usual_headers(token) {
        head += &format!("{name}: {value}\r\n");
    }
    connection.write_all((head + "\r\n").as_bytes()).unwrap();
    let mut first = [0; 12];
    connection.peek(&mut first).unwrap();
    if !first.starts_with(b"HTTP/1.1 100") {
        return Err(String::from_utf8(read_answer(&mut connection)).unwrap());
    }
    connection.read_exact(&mut [0; 25]).unwrap();
    Ok(connection)
}

#[test]
fn bodies_on_their_way_keep_no_plan_from_running() {
    let server = Server::start();
    let small: Vec<TcpStream> = (0..12).map(|_| upload(&server, &server.viewer, 100).unwrap()).collect();
    let large = upload(&server, &server.viewer, 3 << 20).unwrap();
    // The memory for large bodies is shared.
    let refused = upload(&server, &server.viewer, 3 << 20).unwrap_err().to_lowercase();
    assert!(refused.starts_with("http/1.1 429") && refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
    assert!(refused.contains("manifest uploads"), "{refused}");
    for token in [&server.viewer, &server.editor] {
        let answer = server.call_as(token, "POST", "/reconciliations", Some(reconciliation("a", 1, 0, true)));
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    drop(upload(&server, &server.editor, 3 << 20).unwrap());
    drop((small, large));
    // A client that is gone holds nothing.
    until("the end of the upload", || upload(&server, &server.viewer, 3 << 20).ok());
}

#[test]
fn a_body_that_will_be_refused_is_not_asked_for() {
    let server = Server::start();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        // One runs, and one waits.
        for number in 0..2 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let body = reconciliation("plans", 400, number, true);
                    server.call_as(&server.viewer, "POST", "/reconciliations", Some(body));
                }
            });
        }
        let refused = until("a refusal", || upload(&server, &server.viewer, 100).err()).to_lowercase();
        assert!(refused.starts_with("http/1.1 429") && refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
        assert!(refused.contains("limit of reconciliations (1 running, 1 waiting)"), "{refused}");
    });
}

#[test]
fn large_dry_runs_of_editors_leave_room_for_a_large_apply() {
    let server = Server::start();
    let large = 3 << 20;
    let body = reconciliation("applies", 1, 0, false).to_string();
    let body = body + &" ".repeat(large);
    // Eight bodies, as many as all places, begin, and do not end.
    let began: Vec<TcpStream> = (0..8)
        .map(|number| {
            let token = server.key_of(&format!("bot_{number}"), Role::Editor);
            let mut connection = upload(&server, &token, large).unwrap();
            let name = "n".repeat(2000);
            connection.write_all(format!(r#"{{"dry_run": true, "files": [{{"name": "{name}"#).as_bytes()).unwrap();
            connection
        })
        .collect();
    let gauge = "edgewright_admitted_requests{class=\"uploads\",state=\"running\"} 6\n";
    let refusals = "edgewright_admission_refusals_total{class=\"uploads\",reason=\"full\"} 2\n";
    until("the bodies", || {
        let page = server.call("GET", "/metrics", None).text;
        (page.contains(gauge) && page.contains(refusals)).then_some(())
    });
    let mut headers = usual_headers(&server.editor);
    headers.push(("Content-Type".into(), "application/json".into()));
    let applied = server.send("POST", "/reconciliations", &headers, Some(body.into_bytes()));
    assert_eq!(applied.status, 201, "{}", applied.text);
    // Whoever is refused gets the answer, although it goes on sending.
    let statuses: Vec<String> = began
        .into_iter()
        .filter_map(|mut connection| {
            connection.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let _ = connection.write_all(&vec![b'n'; 1 << 20]);
            let answer = String::from_utf8(read_answer(&mut connection)).unwrap();
            answer.split(' ').nth(1).map(str::to_owned)
        })
        .collect();
    assert_eq!(statuses, ["503", "503"]);
}

#[test]
fn what_is_admitted_and_refused_is_in_the_metrics() {
    let server = Server::start();
    let _held = upload(&server, &server.viewer, 3 << 20).unwrap();
    upload(&server, &server.viewer, 3 << 20).unwrap_err();
    let page = until("the metrics", || {
        let page = server.call("GET", "/metrics", None).text;
        page.contains("edgewright_admission_refusals_total{class=\"uploads\",reason=\"owner\"} 1\n").then_some(page)
    });
    assert!(page.contains("edgewright_admitted_requests{class=\"uploads\",state=\"running\"} 1\n"), "{page}");
    assert!(page.contains("edgewright_admission_refusals_total{class=\"backups\",reason=\"full\"} 0\n"), "{page}");
}
