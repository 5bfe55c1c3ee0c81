//! The measurements of the dashboard: what a first view takes, and the slowest page, each after a change.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use serde_json::json;

use crate::{
    http::Client,
    measures::Run,
    table::{Row, median, time},
};

/// The folder of the store, which changes.
const FOLDER: &str = "viewed";
/// What a browser loads for a first view after the overview.
const FILES: [&str; 3] = ["style.css", "script.js", "icon.svg"];
const MOST_FIRST: f64 = 0.3;
const MOST_BYTES: usize = 200_000;
const MOST_PAGE: f64 = 0.1;
/// The requests for each page: the 95th percentile leaves out the slowest one.
const REQUESTS: usize = 20;
/// The pages that need no ID. No resource has `nowhere`, so the search looks at all of them.
const PAGES: [&str; 16] = [
    "",
    "sources",
    "edges",
    "edges?sort=oldest",
    "edges?sort=name",
    "edges?search=e0-0",
    "edges?search=nowhere",
    "routes",
    "routes?access=protected",
    "routes?search=nowhere",
    "revisions",
    "revisions/1",
    "certificates",
    "trace?url=e0.e0.example.com/catalog",
    "keys",
    "server",
];

/// Signs in, and returns the cookie of the session.
fn sign_in(address: SocketAddr, token: &str) -> String {
    let form = format!("token={token}");
    let request = format!(
        "POST /ui/sign-in HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
    cookie.unwrap_or_else(|| panic!("no session: {answer}")).to_owned()
}

/// Gets a page or a file, and returns the size of the response body.
fn view(client: &mut Client, path: &str, cookie: &str) -> usize {
    let request =
        format!("GET /ui/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\nCookie: {cookie}\r\n\r\n");
    let (status, body) = client.send(request.as_bytes());
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    body.len()
}

/// A first view of the overview, and the slowest of all pages.
pub(crate) fn dashboard(run: &Run) -> Vec<Row> {
    run.estate.copy(FOLDER);
    let server = run.estate.serve(FOLDER, false);
    let cookie = sign_in(server.address, &run.estate.token);
    let mut bytes = 0_usize;
    let first = (0..run.options.rounds).map(|_| {
        let began = Instant::now();
        let mut client = run.estate.client(&server);
        bytes = [""].iter().chain(&FILES).map(|path| view(&mut client, path, &cookie)).sum();
        began.elapsed().as_secs_f64()
    });
    let first = median(first.collect());

    let path = run.estate.routes(&server).swap_remove(0);
    let route = path.replacen("/edges/https/", "edges/", 1);
    let edge = route.split("/routes/").next().unwrap_or_default().to_owned();
    let mut client = run.estate.client(&server);
    let mut changes = 0..;
    // Nothing that is kept of a revision helps with the next one.
    let mut change = |client: &mut Client| {
        let body = format!("{{\"description\":\"Change {}\"}}", changes.next().unwrap_or(0_u64));
        let (status, answer) = client.call("PATCH", &path, body.as_bytes());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    };
    let pages = PAGES.iter().map(|page| (*page).to_owned()).chain([edge, route]);
    let times = pages.map(|page| {
        let mut times: Vec<f64> = (0..REQUESTS)
            .map(|_| {
                change(&mut client);
                let began = Instant::now();
                view(&mut client, &page, &cookie);
                began.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        (times[REQUESTS * 95 / 100 - 1], page)
    });
    let times: Vec<(f64, String)> = times.collect();
    drop(client);
    server.stop();
    run.estate.remove(FOLDER);
    let (slowest, page) = times.iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
    vec![
        Row {
            title: "first view of the dashboard, with its files".into(),
            now: format!("{}, {:.0} kB", time(first), bytes as f64 / 1e3),
            ratio: String::new(),
            target: format!("≤ {}, ≤ {} kB", time(MOST_FIRST), MOST_BYTES / 1000),
            met: run.judge(first <= MOST_FIRST && bytes <= MOST_BYTES),
            figures: json!({"seconds": first, "bytes": bytes}),
        },
        Row {
            title: format!("p95 of the slowest page of the dashboard, `/ui/{page}`"),
            now: time(*slowest),
            ratio: String::new(),
            target: format!("≤ {}", time(MOST_PAGE)),
            met: run.judge(*slowest <= MOST_PAGE),
            figures: times.iter().map(|(seconds, page)| (page.clone(), json!(seconds))).collect(),
        },
    ]
}
