//! A forge with just enough of an API for the scripts: JSON by path, and comments that can be added and changed.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

/// A comment on a request.
#[derive(Debug, Clone)]
pub(super) struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
}

#[derive(Default)]
struct State {
    comments: Vec<Comment>,
    /// Bodies by path with the query.
    pages: Vec<(String, Vec<u8>)>,
    /// Method, path and the header with the token of each request.
    requests: Vec<(String, String, String)>,
}

/// A running forge. Its thread ends with the process.
pub(super) struct Forge {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// Whom the forge takes the scripts for.
pub(super) const BOT: &str = "github-actions[bot]";

impl Forge {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || answer(&connection, &state));
            }
        });
        Self { address, state }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds what a GET of a path with its query returns.
    pub(super) fn add(&self, path: &str, body: &[u8]) {
        self.state.lock().unwrap().pages.push((path.to_owned(), body.to_vec()));
    }

    pub(super) fn add_comment(&self, author: &str, body: &str) {
        let mut state = self.state.lock().unwrap();
        let id = state.comments.len() as u64 + 1;
        state.comments.push(Comment { id, author: author.to_owned(), body: body.to_owned() });
    }

    pub(super) fn comments(&self) -> Vec<Comment> {
        self.state.lock().unwrap().comments.clone()
    }

    pub(super) fn requests(&self) -> Vec<(String, String, String)> {
        self.state.lock().unwrap().requests.clone()
    }
}

/// Reads a request, and writes the response.
fn answer(connection: &TcpStream, state: &Mutex<State>) -> Option<()> {
    connection.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let (mut reader, mut writer) = (BufReader::new(connection), connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut token) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" | "private-token" => token = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, body) = respond(&mut state.lock().unwrap(), &method, &path, token, &body);
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    writer.write_all(head.as_bytes()).ok()?;
    writer.write_all(&body).ok()
}

fn respond(state: &mut State, method: &str, path: &str, token: String, body: &[u8]) -> (&'static str, Vec<u8>) {
    state.requests.push((method.to_owned(), path.to_owned(), token));
    let sent = || {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        body["body"].as_str().unwrap_or_default().to_owned()
    };
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let is_list = plain.ends_with("/comments") || plain.ends_with("/notes");
    match method {
        "GET" if is_list => {
            let page: usize = query.split('&').find_map(|it| it.strip_prefix("page=")?.parse().ok()).unwrap_or(1);
            let shown = state.comments.chunks(100).nth(page - 1).unwrap_or_default().iter().map(|comment| {
                let Comment { id, author, body } = comment;
                json!({"id": id, "body": body, "user": {"login": author}, "author": {"username": author}})
            });
            ("200 OK", Value::Array(shown.collect()).to_string().into_bytes())
        }
        "GET" => match state.pages.iter().find(|(known, _)| known == path) {
            Some((_, body)) => ("200 OK", body.clone()),
            None => ("404 Not Found", Vec::new()),
        },
        "POST" if is_list => {
            let id = state.comments.len() as u64 + 1;
            state.comments.push(Comment { id, author: BOT.to_owned(), body: sent() });
            ("201 Created", b"{}".to_vec())
        }
        "PATCH" | "PUT" => {
            let id = plain.rsplit('/').next().and_then(|id| id.parse().ok()).unwrap_or(0_u64);
            let text = sent();
            match state.comments.iter_mut().find(|comment| comment.id == id) {
                Some(comment) => {
                    comment.body = text;
                    ("200 OK", b"{}".to_vec())
                }
                None => ("404 Not Found", Vec::new()),
            }
        }
        _ => ("405 Method Not Allowed", Vec::new()),
    }
}
