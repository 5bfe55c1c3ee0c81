//! A receiver of webhooks, which answers as a test says and remembers what it got.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::support::program::until;

pub(super) const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The status of a receiver that never answers.
pub(super) const SILENT: u16 = 0;

/// A request that a receiver got.
#[derive(Debug, Clone)]
pub(super) struct Delivered {
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
    /// What the receiver answered.
    pub(super) status: u16,
}

impl Delivered {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Checks the signature as a receiver does.
    pub(super) fn verify(&self) {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &STANDARD.decode(SECRET).unwrap());
        let signed = format!("{}.{}.{}", self.id(), self.headers["webhook-timestamp"], self.body);
        let signature = self.headers["webhook-signature"].strip_prefix("v1,").unwrap();
        ring::hmac::verify(&key, signed.as_bytes(), &STANDARD.decode(signature).unwrap()).unwrap();
    }
}

/// A receiver of webhooks.
pub(super) struct Receiver {
    pub(super) url: String,
    status: Arc<AtomicU16>,
    delivered: Arc<Mutex<Vec<Delivered>>>,
}

impl Receiver {
    /// Answers with a status.
    pub(super) fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?token=hush", listener.local_addr().unwrap());
        let (status, delivered) = (Arc::new(AtomicU16::new(status)), Arc::new(Mutex::new(Vec::new())));
        let (answers, received) = (Arc::clone(&status), Arc::clone(&delivered));
        // Both end with the tests.
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (answers, received) = (Arc::clone(&answers), Arc::clone(&received));
                std::thread::spawn(move || receive(connection, &answers, &received));
            }
        });
        Self { url, status, delivered }
    }

    pub(super) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub(super) fn delivered(&self) -> Vec<Delivered> {
        self.delivered.lock().unwrap().clone()
    }

    /// The requests with a status, once there are so many.
    pub(super) fn wait_for(&self, status: u16, count: usize) -> Vec<Delivered> {
        until("notifications", || {
            let found: Vec<_> = self.delivered().into_iter().filter(|it| it.status == status).collect();
            (found.len() >= count).then_some(found)
        })
    }
}

fn receive(connection: TcpStream, answers: &AtomicU16, received: &Mutex<Vec<Delivered>>) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let (mut headers, mut line) = (BTreeMap::new(), String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        line.clear();
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let status = answers.load(Ordering::SeqCst);
    received.lock().unwrap().push(Delivered { headers, body: String::from_utf8(body).ok()?, status });
    if status == SILENT {
        std::thread::sleep(Duration::from_secs(60));
        return None;
    }
    let location = if status == 302 { "Location: /elsewhere\r\n" } else { "" };
    let answer = format!("HTTP/1.1 {status} Status\r\n{location}Content-Length: 0\r\nConnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).ok()
}
