//! `GET /watch`: every change once, in order, as far as the client may see it.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use edgewright::resources::{AnyResource, IpRestriction, Kind, MASK, Role, Traffic};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use serde_json::{Value, json};

use crate::support::{
    program::until,
    server::{MOST_WATCHERS, Server, usual_headers},
};

/// An event of a stream.
#[derive(Debug)]
struct Event {
    name: String,
    id: Option<u64>,
    data: Value,
}

impl Event {
    fn revision(&self) -> u64 {
        self.data["revision"].as_u64().unwrap()
    }
}

/// A client of a stream.
struct Client {
    status: u16,
    lines: BufReader<TcpStream>,
    /// The id with which it would resume.
    last: Option<u64>,
}

impl Client {
    fn open(server: &Server, token: &str, query: &str, headers: &[(&str, &str)]) -> Self {
        let mut connection = TcpStream::connect(server.address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // HTTP/1.0 has no chunks: the body is what follows the head.
        let mut request = format!("GET /watch{query} HTTP/1.0\r\nHost: x\r\n");
        for (name, value) in usual_headers(token) {
            request += &format!("{name}: {value}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        connection.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut client = Self { status: 0, lines: BufReader::new(connection), last: None };
        let head = client.line().unwrap();
        client.status = head.split(' ').nth(1).unwrap().parse().unwrap();
        while !client.line().unwrap().is_empty() {}
        client
    }

    /// The next line; none at the end of the stream.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The next event; none at the end of the stream.
    fn next(&mut self) -> Option<Event> {
        let mut event = Event { name: String::new(), id: None, data: Value::Null };
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("id", id)) => event.id = Some(id.parse().unwrap()),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                Some(("", _)) => {}
                _ => {
                    assert_eq!(line, "");
                    self.last = event.id.or(self.last);
                    if !event.name.is_empty() {
                        return Some(event);
                    }
                    // The start of the stream has an id and no event.
                    event.id = None;
                }
            }
        }
    }

    /// The events of the next revision, without the one that ends it.
    fn revision(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next().unwrap();
            if event.name == "revision" {
                assert_eq!(event.id, Some(event.revision()));
                return events;
            }
            assert_eq!(event.id, None, "a client that resumes in the middle of a revision gets all of it");
            events.push(event);
        }
    }

    /// The body of an error response.
    fn error(mut self) -> Value {
        let mut body = String::new();
        self.lines.read_to_string(&mut body).unwrap();
        serde_json::from_str(&body).unwrap()
    }
}

fn restriction(description: &str) -> Value {
    json!({"type": "api", "description": description})
}

fn current(server: &Server) -> u64 {
    server.store().snapshot().revision
}

#[test]
fn a_client_is_told_of_every_change_as_its_role_sees_it() {
    let server = Server::start();
    let mut admin = Client::open(&server, &server.admin, "", &[]);
    let mut viewer = Client::open(&server, &server.viewer, "", &[]);
    let edge = server.call("POST", "/edges/https", Some(json!({"hostports": ["shop.example.com:443"]})));
    let edge = edge.str("/id").to_owned();
    let body = json!({
        "match_type": "path_prefix",
        "match": "/",
        "webhook_verification": {"provider": "github", "secret": "hushhush"},
    });
    let routes = format!("/edges/https/{edge}/routes");
    let route = server.call_as(&server.editor, "POST", &routes, Some(body));
    assert_eq!(route.status, 201, "{}", route.text);
    let id = route.str("/id").to_owned();
    server.call("PATCH", &format!("{routes}/{id}"), Some(json!({"description": "other"})));
    server.call("DELETE", &format!("/edges/https/{edge}"), None);

    for (client, secret) in [(&mut admin, "hushhush"), (&mut viewer, MASK)] {
        let created = client.revision().pop().unwrap();
        assert_eq!((created.name.as_str(), &created.data["kind"]), ("created", &json!("HttpsEdge")));
        assert_eq!(created.data["resource"]["hostports"], json!(["shop.example.com:443"]));
        let events = client.revision();
        let [created] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(created.name, "created");
        assert_eq!(created.data["resource"]["webhook_verification"]["secret"], secret);
        assert_eq!((&created.data["id"], &created.data["parent"]), (&json!(id), &json!(edge)));
        assert_eq!(created.data["uri"], created.data["resource"]["uri"]);
        assert_eq!(created.data["actor"]["owner"], "usr_editor");
        assert_eq!((&created.data["source"], &created.data["name"]), (&Value::Null, &Value::Null));
        let updated = client.revision().pop().unwrap();
        assert_eq!((updated.name.as_str(), &updated.data["resource"]["description"]), ("updated", &json!("other")));
        let deleted = client.revision();
        let kinds: Vec<_> = deleted.iter().map(|it| (it.name.as_str(), it.data["kind"].as_str().unwrap())).collect();
        assert_eq!(kinds, [("deleted", "HttpsEdge"), ("deleted", "HttpsEdgeRoute")]);
        assert!(deleted.iter().all(|it| it.data.get("resource").is_none()));
    }
}

#[test]
fn a_rollback_is_a_revision_with_its_own_actor() {
    let server = Server::start();
    let id = server.call("POST", "/ip_restrictions", Some(restriction("first"))).str("/id").to_owned();
    let first = current(&server);
    server.call("PATCH", &format!("/ip_restrictions/{id}"), Some(json!({"description": "second"})));
    assert_eq!(server.call("POST", "/rollbacks", Some(json!({"to": first}))).status, 201);
    let mut client = Client::open(&server, &server.admin, &format!("?since={}", first + 1), &[]);
    let events = client.revision();
    let [updated] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((updated.name.as_str(), &updated.data["resource"]["description"]), ("updated", &json!("first")));
    let actor = &updated.data["actor"];
    assert_eq!((&actor["by"], &actor["to"], actor.get("rejected")), (&json!("rollback"), &json!(first), None));
}

#[test]
fn a_client_replays_and_resumes_from_a_revision() {
    let server = Server::start();
    let start = current(&server);
    for number in 0..5 {
        server.call("POST", "/ip_restrictions", Some(restriction(&number.to_string())));
    }
    let described = |client: &mut Client| {
        let events = client.revision();
        events[0].data["resource"]["description"].as_str().unwrap().to_owned()
    };
    let mut client = Client::open(&server, &server.admin, &format!("?since={start}"), &[]);
    let all: Vec<String> = (0..5).map(|_| described(&mut client)).collect();
    assert_eq!(all, ["0", "1", "2", "3", "4"]);
    assert_eq!(client.last, Some(start + 5));
    // A client that reconnects repeats its first query.
    let last = (start + 3).to_string();
    let mut client = Client::open(&server, &server.admin, &format!("?since={start}"), &[("Last-Event-ID", &last)]);
    assert_eq!([described(&mut client), described(&mut client)], ["3", "4"]);
    server.call("POST", "/ip_restrictions", Some(restriction("live")));
    assert_eq!(described(&mut client), "live");
    // A stream sets an id before its first event.
    let mut client = Client::open(&server, &server.admin, "?kind=HttpsEdge", &[]);
    server.call("POST", "/ip_restrictions", Some(restriction("filtered")));
    assert!(client.revision().is_empty(), "a revision ends even if nothing in it was selected");
    assert_eq!(client.last, Some(current(&server)));
    let error = Client::open(&server, &server.admin, "?since=99", &[]);
    assert_eq!(error.status, 410);
    let error = error.error();
    assert_eq!(error["error_code"], "ERR_EDGEWRIGHT_REVISION_GONE");
    assert_eq!(error["details"]["revision"], current(&server).to_string());
    for (query, says) in
        [("?since=x", "must be a revision"), ("?kind=HttpEdge", "did you mean `HttpsEdge`?"), ("?sinc=1", "`since`?")]
    {
        let client = Client::open(&server, &server.admin, query, &[]);
        assert_eq!(client.status, 400, "{query}");
        let error = client.error();
        assert!(error["msg"].as_str().unwrap().contains(says), "{error}");
    }
    assert_eq!(Client::open(&server, "ew_ak_x_y", "", &[]).status, 401);
}

#[test]
fn nothing_is_missed_or_doubled_while_writers_commit_and_clients_reconnect() {
    let server = Server::start();
    let start = current(&server);
    let (writers, each) = (4, 40);
    let total = writers * each;
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let server = &server;
            scope.spawn(move || {
                for number in 0..each {
                    server.call("POST", "/ip_restrictions", Some(restriction(&format!("{writer}-{number}"))));
                }
            });
        }
        // Each client leaves after another number of revisions, and comes back.
        for patience in [7, 13, 1000] {
            let server = &server;
            scope.spawn(move || {
                let (mut last, mut seen) = (start, BTreeMap::new());
                while seen.len() < total {
                    let resumed = last.to_string();
                    let mut client = Client::open(server, &server.viewer, "", &[("Last-Event-ID", &resumed)]);
                    for _ in 0..patience {
                        for event in client.revision() {
                            let id = event.data["id"].as_str().unwrap().to_owned();
                            assert_eq!(event.revision(), last + 1, "revisions come in order, without a gap");
                            assert_eq!(seen.insert(id, event.revision()), None, "{event:?}");
                        }
                        last += 1;
                        if seen.len() == total {
                            break;
                        }
                    }
                    assert_eq!(client.last, Some(last));
                }
            });
        }
    });
    assert_eq!(current(&server), start + total as u64);
}

#[test]
fn the_number_of_clients_is_limited() {
    let server = Server::start();
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let clients: Vec<Client> = (0..MOST_WATCHERS).map(|_| Client::open(&server, &gateway, "", &[])).collect();
    assert!(clients.iter().all(|client| client.status == 200));
    let refused = Client::open(&server, &server.admin, "", &[]);
    assert_eq!((refused.status, refused.error()["error_code"].as_str()), (503, Some("ERR_EDGEWRIGHT_UNAVAILABLE")));
    let metrics = server.call("GET", "/metrics", None).text;
    assert!(metrics.contains("edgewright_watchers "), "{metrics}");
    drop(clients);
    until("a free place", || (Client::open(&server, &server.viewer, "", &[]).status == 200).then_some(()));
}

#[test]
fn viewers_with_many_streams_leave_some_to_others_and_to_gateways() {
    let server = Server::start();
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let mut held: Vec<Client> = Vec::new();
    for number in 0..4 {
        let token = server.key_of(&format!("usr_viewer_{number}"), Role::Viewer);
        let before = held.len();
        let refused = loop {
            let client = Client::open(&server, &token, "", &[]);
            if client.status != 200 {
                break client;
            }
            held.push(client);
        };
        assert!(held.len() > before, "viewer {number} has none");
        assert_eq!(refused.status, 429);
        let error = refused.error();
        assert_eq!(error["error_code"], "ERR_EDGEWRIGHT_RATE_LIMITED");
        assert!(error["msg"].as_str().unwrap().contains("the owner of the API key"), "{error}");
    }
    let another = Client::open(&server, &server.viewer, "", &[]);
    assert_eq!(another.status, 200);
    let gateways: Vec<Client> = (0..MOST_WATCHERS / 4).map(|_| Client::open(&server, &gateway, "", &[])).collect();
    assert!(gateways.iter().all(|client| client.status == 200));
}

#[test]
fn a_revoked_key_ends_its_stream() {
    let server = Server::start();
    let mut client = Client::open(&server, &server.editor, "", &[]);
    let mut other = Client::open(&server, &server.viewer, "", &[]);
    server.call("DELETE", &format!("/api_keys/{}", server.key_ids[1]), None);
    let last = client.next().unwrap();
    assert_eq!(
        (last.name.as_str(), last.data["error_code"].as_str()),
        ("error", Some("ERR_EDGEWRIGHT_UNAUTHENTICATED"))
    );
    assert!(client.next().is_none());
    assert_eq!(other.revision()[0].data["id"], server.key_ids[1], "others go on");
}

#[test]
fn streams_end_when_the_server_stops() {
    let server = Server::start();
    let mut client = Client::open(&server, &server.admin, "", &[]);
    server.call("POST", "/ip_restrictions", Some(restriction("last")));
    assert_eq!(client.revision().len(), 1);
    let began = Instant::now();
    drop(server);
    assert!(client.next().is_none());
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let server = Server::start();
    let mut client = Client::open(&server, &server.admin, "", &[]);
    set_socket_recv_buffer_size(client.lines.get_ref(), 64 << 10).unwrap();
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let idle = || Client::open(&server, &gateway, "?kind=TlsEdge", &[]);
    let _others: Vec<Client> = (1..MOST_WATCHERS).map(|_| idle()).collect();
    assert_eq!(idle().status, 503);
    let spec = IpRestriction { r#type: Some(Traffic::Api), metadata: "x".repeat(4000), ..IpRestriction::default() };
    let spec: Arc<dyn AnyResource> = Arc::new(spec);
    // More than what the sockets of both sides buffer.
    server.create(Kind::IpRestriction, (0..2000).map(|_| Arc::clone(&spec)));
    let began = Instant::now();
    assert_eq!(server.call("POST", "/ip_restrictions", Some(restriction("meanwhile"))).status, 201);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    until("the end of its place", || (idle().status == 200).then_some(()));
    let mut last = None;
    while let Some(event) = client.next() {
        last = Some(event);
    }
    let last = last.unwrap();
    assert_eq!((last.name.as_str(), last.data["error_code"].as_str()), ("error", Some("ERR_EDGEWRIGHT_SLOW_READER")));
}

#[test]
fn a_client_that_resumes_sees_no_secrets_of_earlier_states() {
    let server = Server::start();
    let scope = json!({"owner_id": "bot_shop", "scope": {"apply": ["shop"]}});
    let token = server.call("POST", "/api_keys", Some(scope)).str("/token").to_owned();
    let since = current(&server);
    for secret in ["shop-secret-1", "shop-secret-2"] {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  \
             hostports: ['shop.example.com:443']\n  routes:\n    - name: hook\n      match_type: path_prefix\n      \
             match: /\n      backend: {{backend_id: bkd_1}}\n      \
             webhook_verification: {{provider: github, secret: {secret}}}\n"
        );
        let files = json!([{"name": "shop.yaml", "text": text}]);
        let made = server.call("POST", "/reconciliations", Some(json!({"source": "shop", "files": files})));
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let mut client = Client::open(&server, &token, &format!("?since={since}"), &[]);
    for shown in [MASK, "shop-secret-2"] {
        let events = client.revision();
        let route = events.iter().find(|event| event.data["kind"] == "HttpsEdgeRoute").unwrap();
        assert_eq!(route.data["resource"]["webhook_verification"]["secret"], shown);
    }
}
