//! Requests as they go over the wire, each on a connection of its own.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use serde_json::Value;

use super::program::PATIENCE;

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers; their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl HttpAnswer {
    /// Takes an answer apart; none if it has no head.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Some(Self { status, headers, body: body.to_owned() })
    }

    /// The values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Whether a text is in the body or in the headers, which are lines like `name: value`; in lower or upper case.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("\r\n{headers}\r\n{}", self.body).to_lowercase().contains(&text.to_lowercase())
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error_code"].as_str().unwrap_or_default().to_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// One request on a connection of its own.
pub(crate) fn http(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(request(address, method, path, headers, body).as_bytes()).unwrap();
    answer(connection)
}

/// Connects from one of the addresses of this machine.
pub(crate) fn connect_from(source: Ipv4Addr, target: SocketAddrV4) -> io::Result<TcpStream> {
    // Processes that other tests start must not keep it open.
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    connect(&socket, &target)?;
    Ok(TcpStream::from(socket))
}

/// A request as it goes over the wire.
pub(crate) fn request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += "Content-Type: application/json\r\n";
    }
    text + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// What the other side answers.
pub(crate) fn answer(mut connection: TcpStream) -> HttpAnswer {
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = String::from_utf8(read_answer(&mut connection)).unwrap();
    HttpAnswer::parse(&text).unwrap_or_else(|| panic!("no answer: {text:?}"))
}

/// Reads one answer: to the length that it declares, or until the connection ends. A server that gives up a body keeps
/// the connection open for a while after its answer.
pub(crate) fn read_answer(connection: &mut TcpStream) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), [0; 1 << 14]);
    loop {
        match connection.read(&mut part) {
            Ok(0) | Err(_) => return bytes,
            Ok(length) => bytes.extend_from_slice(&part[..length]),
        }
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let length = head.and_then(|end| {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: Option<usize> =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            Some(end + 4 + length?)
        });
        if length.is_some_and(|length: usize| bytes.len() >= length) {
            return bytes;
        }
    }
}
