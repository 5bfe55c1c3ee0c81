//! What hostile connections do, and how they come from many addresses.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream},
    sync::Arc,
};

use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring::default_provider, pki_types::ServerName};

use crate::{security::connections::frame, support::http::connect_from};

/// The start of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most addresses of this machine that connections come from, besides its own.
const ADDRESSES: u64 = 200;

/// What a hostile connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// Nothing.
    Silent,
    /// A head, byte by byte.
    SlowHead,
    /// One request, and then nothing.
    Idle,
    /// The body of a request, byte by byte.
    SlowBody,
    /// Many requests over HTTP/2, whose responses are never read.
    Http2Unread,
    /// Requests over HTTP/2 that are reset at once.
    Http2Reset,
    /// Bytes that are no request.
    Garbage,
    /// A request, after which the client has closed its side.
    HalfClosed,
    /// Many large responses that are never read.
    Unread,
    /// A request with a wrong token.
    FailedLogin,
    /// Half of the first message of TLS.
    HalfHello,
    /// The first message of TLS, and nothing after it.
    Hello,
}

/// Those against a server without TLS, and with it.
pub(super) const PLAIN: [Attack; 10] = [
    Attack::Silent,
    Attack::SlowHead,
    Attack::Idle,
    Attack::SlowBody,
    Attack::Http2Unread,
    Attack::Http2Reset,
    Attack::Garbage,
    Attack::HalfClosed,
    Attack::Unread,
    Attack::FailedLogin,
];
pub(super) const TLS: [Attack; 5] =
    [Attack::Silent, Attack::HalfHello, Attack::Hello, Attack::Garbage, Attack::FailedLogin];

impl Attack {
    /// What is sent at first.
    fn opening(self) -> Vec<u8> {
        let request =
            |line: &str, more: &str| format!("{line} HTTP/1.1\r\nHost: x\r\nService-Version: 2\r\n{more}\r\n");
        match self {
            Attack::Silent => Vec::new(),
            Attack::SlowHead => b"GET / HTTP/1.1\r\nX-Slow: ".to_vec(),
            Attack::Idle => request("GET /healthz", "").into(),
            Attack::SlowBody => request(
                "POST /edges/https",
                "Authorization: Bearer ew_ak_none_none\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n",
            )
            .into(),
            Attack::Http2Unread => {
                // SETTINGS_INITIAL_WINDOW_SIZE is 0.
                let mut bytes = [PREFACE, &frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
                (0..60).for_each(|number| bytes.extend(http2_request(number, "/openapi.json")));
                bytes
            }
            Attack::Http2Reset => {
                let mut bytes = [PREFACE, &frame(4, 0, 0, &[])].concat();
                for number in 0..100 {
                    bytes.extend(http2_request(number, "/edges/https"));
                    // RST_STREAM with CANCEL.
                    bytes.extend(frame(3, 0, 2 * number + 1, &[0, 0, 0, 8]));
                }
                bytes
            }
            Attack::Garbage => (0..4096_u32).map(|number| (number.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect(),
            Attack::HalfClosed => request("GET /openapi.json", "").into(),
            Attack::Unread => request("GET /openapi.json", "").repeat(50).into(),
            Attack::FailedLogin => request("GET /edges/https", "Authorization: Bearer ew_ak_none_none\r\n").into(),
            Attack::HalfHello => {
                let mut hello = client_hello();
                hello.truncate(hello.len() / 2);
                hello
            }
            Attack::Hello => client_hello(),
        }
    }

    /// Opens the connection with a number. Nothing that happens to it later matters to its client.
    pub(super) fn open(self, number: u64, target: SocketAddrV4) -> io::Result<TcpStream> {
        let mut stream = connect_from(source_of(number), target)?;
        // A client that waits would be less hostile.
        stream.set_nonblocking(true)?;
        let _ = stream.write_all(&self.opening());
        if self == Attack::HalfClosed {
            let _ = stream.shutdown(Shutdown::Write);
        }
        Ok(stream)
    }

    /// Sends one more byte, if that is what keeps the connection.
    pub(super) fn drip(self, stream: &mut TcpStream) {
        if matches!(self, Attack::SlowHead | Attack::SlowBody) {
            let _ = stream.write_all(b" ");
        }
    }
}

/// Every second connection comes from the address of the honest clients, the others from many addresses.
fn source_of(number: u64) -> Ipv4Addr {
    match number % 2 {
        0 => Ipv4Addr::LOCALHOST,
        _ => Ipv4Addr::new(127, 0, 0, u8::try_from(2 + number / 2 % ADDRESSES).unwrap()),
    }
}

/// The head of a request over HTTP/2, without a token: `:method` GET, `:scheme` http, and literals for the others.
fn http2_request(number: u32, path: &str) -> Vec<u8> {
    let mut head = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    head.extend(path.as_bytes());
    head.extend([0x01, 1, b'x']);
    frame(1, 5, 2 * number + 1, &head)
}

fn client_hello() -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}
