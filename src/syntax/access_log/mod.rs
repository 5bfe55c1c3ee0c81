//! Lines of the access logs of web servers and proxies: the common and the combined format, both with the host in front,
//! and JSON of nginx and Envoy.
//!
//! # The problem
//!
//! A log has millions of lines, and clients write parts of each: paths, agents and user names can contain anything.
//!
//! # The idea
//!
//! A line is read as bytes, in one pass, and its fields are parts of it: only those with escapes are copied. A format is
//! recognized by its first readable line.
//!
//! For example, `192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET /cart?id=7 HTTP/1.1" 200 512` is a GET of `/cart` with 512
//! bytes.
//!
//! # What it never does
//!
//! It keeps no query of a URL, and decides nothing about the request.

mod escapes;
mod json_line;
mod request_line;
#[cfg(test)]
mod tests;
mod text_line;

use std::borrow::Cow;
use std::fmt;

/// The longest line that is read, in bytes.
pub(crate) const LONGEST_LINE: usize = 64 << 10;

/// The format of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLogFormat {
    /// The common format, and the combined one, which also has the referrer and the User-Agent.
    Combined,
    /// The same after the host, and its port if the server writes one.
    VhostCombined,
    /// One JSON object per line, with the names of nginx or Envoy.
    Json,
}

impl AccessLogFormat {
    /// All formats.
    pub(crate) const ALL: [Self; 3] = [Self::Combined, Self::VhostCombined, Self::Json];

    /// The name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AccessLogFormat::Combined => "combined",
            AccessLogFormat::VhostCombined => "vhost-combined",
            AccessLogFormat::Json => "json",
        }
    }

    /// The format with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "common" => Some(AccessLogFormat::Combined),
            _ => Self::ALL.into_iter().find(|format| format.as_str() == name),
        }
    }

    /// The format of a line that is readable in it.
    pub(crate) fn recognize(line: &[u8]) -> Option<Self> {
        let format = if line.first() == Some(&b'{') { AccessLogFormat::Json } else { text_line::recognize(line)? };
        match format.read(line) {
            Err(LineProblem::OtherFormat) => None,
            _ => Some(format),
        }
    }

    /// Reads a line without its line break.
    pub(crate) fn read(self, line: &[u8]) -> Result<AccessLine<'_>, LineProblem> {
        if line.len() > LONGEST_LINE {
            return Err(LineProblem::TooLong);
        }
        match self {
            AccessLogFormat::Combined => text_line::read(line, false),
            AccessLogFormat::VhostCombined => text_line::read(line, true),
            AccessLogFormat::Json => json_line::read(line),
        }
    }
}

/// A request that was logged. The texts are those of the line, without escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessLine<'l> {
    pub method: Cow<'l, str>,
    /// The host without a port; none if the line has none.
    pub host: Option<Cow<'l, str>>,
    /// The port of the host, of the server, or of the scheme, if the line has one.
    pub port: Option<u16>,
    /// The path as in the request, without the query.
    pub path: Cow<'l, str>,
    /// The address of the client, or whatever else the line has for it; may be empty.
    pub client: Cow<'l, [u8]>,
    /// The User-Agent; empty if the request had none, and none if the line does not tell.
    pub user_agent: Option<Cow<'l, str>>,
    /// The bytes of the response.
    pub bytes: u64,
}

/// Why a line is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineProblem {
    /// It is in another format, or was cut off.
    OtherFormat,
    /// It is longer than any line that is read.
    TooLong,
    /// A connection without a readable request, such as one of a port scanner. The server has answered it by itself.
    NoRequest,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineProblem::OtherFormat => f.write_str("not in the format of the file"),
            LineProblem::TooLong => write!(f, "longer than {} KiB", LONGEST_LINE >> 10),
            LineProblem::NoRequest => f.write_str("without a request"),
        }
    }
}

/// Converts bytes to text. What is not UTF-8 is replaced, because no match of a route can contain it.
fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// A part of bytes.
fn part<'l>(bytes: &Cow<'l, [u8]>, from: usize, to: usize) -> Cow<'l, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(from..to).unwrap_or_default()),
        Cow::Owned(bytes) => Cow::Owned(bytes.get(from..to).unwrap_or_default().to_vec()),
    }
}

/// Separates the port from a host, if it has one.
fn host_and_port(host: Cow<'_, [u8]>) -> (Cow<'_, [u8]>, Option<u16>) {
    let colon = host.iter().rposition(|byte| *byte == b':');
    // The colons of an IPv6 address are no end of a host, unless it is in brackets.
    let separates = |at: &usize| {
        let before = host.get(..*at).unwrap_or_default();
        before.ends_with(b"]") || !before.contains(&b':')
    };
    let Some(at) = colon.filter(separates) else { return (host, None) };
    let port = std::str::from_utf8(host.get(at + 1..).unwrap_or_default()).ok().and_then(|port| port.parse().ok());
    (part(&host, 0, at), port)
}

/// The number in a field; 0 for `-`.
fn number(field: &[u8]) -> u64 {
    field
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |sum: u64, byte| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
}
