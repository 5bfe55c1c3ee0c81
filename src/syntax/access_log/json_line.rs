//! Lines with one JSON object: nginx with `log_format … escape=json`, by the names of its variables, and Envoy, by the names
//! that its documentation, Istio and Envoy Gateway give the fields.

use std::borrow::Cow;

use super::escapes::unescaped;
use super::field::{host_and_port, number, quoted, text, user_agent};
use super::line::{AccessLine, LineProblem};
use super::request_line::{method, method_and_target, target};

/// Objects inside of each other are skipped up to this depth.
const DEEPEST: usize = 64;

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Result<AccessLine<'_>, LineProblem> {
    let fields = JsonFields::new(line).ok_or(LineProblem::OtherFormat)?;
    if !fields.has_request {
        return Err(LineProblem::OtherFormat);
    }
    let request = fields.request.map(unescaped);
    let of_line = request.as_ref().and_then(method_and_target);
    let (of_line, asked_by_line) = of_line.map(|(method, asked)| (Some(method), Some(asked))).unwrap_or_default();
    let own = fields.method.and_then(|name| method(unescaped(name)));
    let asked = fields.target.map(unescaped).or(asked_by_line);
    let (Some(method), Some(asked)) = (own.or(of_line), asked) else { return Err(LineProblem::NoRequest) };
    let asked = target(&asked).ok_or(LineProblem::NoRequest)?;
    let (given, given_port) = fields.host.map(|host| host_and_port(unescaped(host))).unwrap_or_default();
    let given = Some(given).filter(|host| !host.is_empty());
    let of_scheme = match fields.scheme {
        Some(b"https") => Some(443),
        Some(b"http") => Some(80),
        _ => None,
    };
    let of_server = fields.port.and_then(|port| u16::try_from(number(port)).ok()).filter(|port| *port > 0);
    Ok(AccessLine {
        method,
        port: given_port.or(asked.port).or(of_server).or(of_scheme),
        host: given.or(asked.host).map(text),
        path: asked.path,
        client: fields.client(),
        user_agent: fields.user_agent.map(user_agent),
        bytes: fields.bytes.map(number).unwrap_or_default(),
    })
}

/// The fields of an object that matter, still with escapes.
#[derive(Default)]
struct JsonFields<'l> {
    request: Option<&'l [u8]>,
    /// Whether a field is for the request or a part of it.
    has_request: bool,
    method: Option<&'l [u8]>,
    target: Option<&'l [u8]>,
    host: Option<&'l [u8]>,
    scheme: Option<&'l [u8]>,
    port: Option<&'l [u8]>,
    client: Option<&'l [u8]>,
    /// The chain of the clients, of which the first is the one of the request.
    forwarded_for: Option<&'l [u8]>,
    user_agent: Option<&'l [u8]>,
    has_user_agent: bool,
    bytes: Option<&'l [u8]>,
}

impl<'l> JsonFields<'l> {
    fn new(line: &'l [u8]) -> Option<Self> {
        let mut fields = Self::default();
        let mut cursor = JsonCursor { rest: line };
        cursor.expect(b'{')?;
        if cursor.expect(b'}').is_none() {
            loop {
                let name = cursor.string()?;
                cursor.expect(b':')?;
                let value = cursor.value()?;
                fields.set(name, value);
                if cursor.expect(b',').is_none() {
                    cursor.expect(b'}')?;
                    break;
                }
            }
        }
        cursor.skip_blanks();
        if fields.has_user_agent && fields.user_agent.is_none() {
            fields.user_agent = Some(b"-");
        }
        cursor.rest.is_empty().then_some(fields)
    }

    /// Keeps a field. An empty value and `-` say that there is none.
    fn set(&mut self, name: &[u8], value: Option<&'l [u8]>) {
        let value = value.filter(|value| !value.is_empty() && *value != b"-");
        self.has_request |= matches!(name, b"request" | b"request_uri" | b"method" | b"request_method" | b":method");
        match name {
            b"request" => self.request = value,
            b"request_method" | b"method" | b":method" => self.method = value,
            // What the client has asked for, and not what a rewrite has made of it.
            b"request_uri"
            | b"x-envoy-original-path"
            | b"x_envoy_original_path"
            | b"x-envoy-origin-path"
            | b"x_envoy_origin_path"
            | b"original_path" => self.target = value.or(self.target),
            b"uri" | b"path" | b":path" => self.target = self.target.or(value),
            b"host" | b"http_host" | b"authority" | b":authority" => self.host = value.or(self.host),
            b"server_name" | b"vhost" => self.host = self.host.or(value.filter(|name| *name != b"_")),
            b"scheme" | b":scheme" => self.scheme = self.scheme.or(value),
            b"x_forwarded_proto" | b"x-forwarded-proto" | b"http_x_forwarded_proto" => {
                self.scheme = value.or(self.scheme);
            }
            b"server_port" => self.port = value,
            b"remote_addr" | b"client_ip" | b"client" | b"downstream_remote_address" => {
                self.client = self.client.or(value);
            }
            b"x_forwarded_for" | b"x-forwarded-for" | b"http_x_forwarded_for" => self.forwarded_for = value,
            b"http_user_agent" | b"user_agent" | b"user-agent" => {
                self.user_agent = value;
                self.has_user_agent = true;
            }
            b"body_bytes_sent" => self.bytes = value,
            b"bytes_sent" => self.bytes = self.bytes.or(value),
            _ => {}
        }
    }

    /// The address of the client. Envoy writes its port, too, which differs with each connection.
    fn client(&self) -> Cow<'l, [u8]> {
        if let Some(client) = self.client {
            return host_and_port(unescaped(client)).0;
        }
        let chain = self.forwarded_for.unwrap_or_default();
        Cow::Borrowed(chain.split(|byte| *byte == b',').next().unwrap_or_default().trim_ascii())
    }
}

/// The rest of a line.
struct JsonCursor<'l> {
    rest: &'l [u8],
}

impl<'l> JsonCursor<'l> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Skips a character and the blanks before it, if it is the next one.
    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        let (first, rest) = self.rest.split_first()?;
        (*first == byte).then(|| self.rest = rest)
    }

    /// The content of the next string, with its escapes.
    fn string(&mut self) -> Option<&'l [u8]> {
        self.expect(b'"')?;
        let (content, rest) = quoted(self.rest)?;
        self.rest = rest;
        Some(content)
    }

    /// The next value, if it is a string or a number; none inside for any other.
    fn value(&mut self) -> Option<Option<&'l [u8]>> {
        self.skip_blanks();
        match self.rest.first()? {
            b'"' => self.string().map(Some),
            b'{' | b'[' => self.skip_nested().map(|()| None),
            _ => {
                let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                let end = self.rest.iter().position(|byte| !is_plain(byte)).filter(|end| *end > 0)?;
                let word = self.rest.get(..end)?;
                self.rest = self.rest.get(end..)?;
                Some(Some(word).filter(|word| word.first().is_some_and(u8::is_ascii_digit)))
            }
        }
    }

    /// Skips an object or a list with everything in it.
    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.rest.first()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.rest = self.rest.get(1..)?;
            if depth == 0 {
                return Some(());
            }
            if depth > DEEPEST {
                return None;
            }
        }
    }
}
