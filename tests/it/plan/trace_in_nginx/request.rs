//! Random requests, which come close to the matches of an estate.

use edgewright::TracedRequest;
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

use super::estate::{Estate, REQUEST_HEADERS, one_of, path, some};

/// The value of each header that a client sends.
pub(super) const SENT: &str = "of the client";

const AGENTS: &str = "curl/8, BOT, my bot x, robot, aaa, abc, good bot, $, a\"b, xx, a b, <bot>, böt";
/// What follows the path: more of it, a query, or a fragment, which no client should send.
const ENDINGS: &str = ", , , /, //, x, /a, /., ?, ?q=/a, ?a?b#f, #/a";

/// A request of a client.
#[derive(Debug)]
pub(super) struct Request {
    pub method: &'static str,
    /// The port that it is sent to.
    pub port: u16,
    pub host: String,
    /// The host as the client sends it: with any port or none.
    pub authority: String,
    /// Whether the host is in the target, as in a request to a proxy, and `Host` has another one.
    pub is_absolute: bool,
    /// The path and the query.
    pub path: String,
    /// The last number of the client's address.
    pub client: u8,
    pub agent: &'static str,
    /// The names of other headers.
    pub headers: Vec<&'static str>,
    pub accepts_gzip: bool,
}

impl Estate {
    /// A request that may be for one of its routes.
    pub(super) fn request(&self, random: &mut StdRng) -> Request {
        let (host, port) = *self.hostports.choose(random).unwrap();
        let mut host = host.replace('*', one_of(random, "a, b, z, y.z"));
        match random.random_range(0..10) {
            0 => host = one_of(random, "nowhere.example, test, z.test, z.b.a.test, a.test").to_owned(),
            1 => host = host.to_uppercase(),
            2 if !host.ends_with(']') => host.push('.'),
            _ => {}
        }
        let matched = self.paths.choose(random).filter(|path| !path.is_empty() && random.random_bool(0.7));
        let mut path = matched.cloned().unwrap_or_else(|| path(random));
        match random.random_range(0..6) {
            0 => path = path.to_uppercase(),
            1 => path = path.replace('a', "%61"),
            2 => path = path.trim_end_matches(|letter: char| letter != '/').to_owned(),
            _ => {}
        }
        Request {
            method: one_of(random, "GET, POST, OPTIONS"),
            port,
            authority: format!(
                "{host}{}",
                [String::new(), ":1".to_owned(), format!(":{port}")].choose(random).unwrap()
            ),
            // nginx takes no such target with an underscore in the host.
            is_absolute: !host.contains('_') && random.random_bool(0.15),
            host,
            path: path + one_of(random, ENDINGS),
            client: random.random_range(1..4),
            agent: if random.random_bool(0.1) { "" } else { one_of(random, AGENTS) },
            headers: some(random, REQUEST_HEADERS, 0..4),
            accepts_gzip: random.random_bool(0.3),
        }
    }
}

impl Request {
    /// The request for a trace.
    pub(super) fn traced(&self) -> TracedRequest {
        let url = format!("http://{}:{}{}", self.host, self.port, self.path);
        let request = TracedRequest::new(self.method, &url).unwrap_or_else(|error| panic!("{url}: {error}"));
        TracedRequest { user_agent: Some(self.agent.to_owned()), ..request }
    }

    /// The request as it goes over the wire.
    pub(super) fn text(&self) -> String {
        let (target, host) = if self.is_absolute {
            // Such a target can do without the path `/`.
            let path = self.path.strip_prefix('/').filter(|rest| rest.starts_with('?')).unwrap_or(&self.path);
            (format!("http://{}{path}", self.authority), "elsewhere.example")
        } else {
            (self.path.clone(), self.authority.as_str())
        };
        let mut text = format!("{} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n", self.method);
        for name in &self.headers {
            text += &format!("{name}: {SENT}\r\n");
        }
        if self.accepts_gzip {
            text += "Accept-Encoding: gzip\r\n";
        }
        text + &format!("User-Agent: {}\r\nContent-Length: 0\r\n\r\n", self.agent)
    }
}
