//! HTTP/1.1 in its simplest form: messages as bytes, and a client with one connection.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The longest wait for a response: an apply of a large corpus is one request.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Builds a request.
pub(crate) fn message(method: &str, path: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let mut message = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nService-Version: 2\r\n"
    );
    if !body.is_empty() {
        message += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    message += "\r\n";
    let mut message = message.into_bytes();
    message.extend_from_slice(body);
    message
}

/// The head of a response.
pub(crate) struct Head {
    /// The status code.
    pub status: u16,
    /// Where the body begins.
    pub body: usize,
    /// The length of the body.
    pub length: usize,
}

impl Head {
    /// Reads a head, or returns none if it is incomplete.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let text = std::str::from_utf8(&bytes[..end]).expect("a head in ASCII");
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.get(9..12)).and_then(|code| code.parse::<u16>().ok());
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let status: u16 = status.unwrap_or_else(|| panic!("no status in {text}"));
        let bodiless = status == 204 || status == 304;
        let length = length.unwrap_or_else(|| if bodiless { 0 } else { panic!("no length in {text}") });
        Some(Self { status, body: end + 4, length })
    }
}

/// A client with one connection.
pub(crate) struct Client {
    stream: TcpStream,
    token: String,
}

impl Client {
    /// Connects to a server.
    pub(crate) fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, token: token.to_owned() }
    }

    /// Sends a request and returns the status and body of the response.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let request = message(method, path, &self.token, body);
        self.send(&request)
    }

    /// Sends a request as it is.
    pub(crate) fn send(&mut self, request: &[u8]) -> (u16, Vec<u8>) {
        self.stream.write_all(request).unwrap();
        let mut received = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        let head = loop {
            let read = self.stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the server closed the connection after {:.200}", String::from_utf8_lossy(request));
            received.extend_from_slice(&buffer[..read]);
            if let Some(head) = Head::read(&received) {
                break head;
            }
        };
        let mut body = received.split_off(head.body);
        let got = body.len();
        body.resize(head.length, 0);
        self.stream.read_exact(&mut body[got..]).unwrap();
        (head.status, body)
    }

    /// Sends a GET that must succeed.
    pub(crate) fn get(&mut self, path: &str) -> Vec<u8> {
        let (status, body) = self.call("GET", path, b"");
        assert_eq!(status, 200, "GET {path}: {}", String::from_utf8_lossy(&body));
        body
    }
}
