//! Lines of the common and combined formats, also after the host:
//! `[HOST[:PORT] ]CLIENT IDENT USER [TIME] "REQUEST" STATUS BYTES[ "REFERRER" "USER-AGENT"…]`.

use std::borrow::Cow;
use std::net::IpAddr;

use super::AccessLogFormat;
use super::escapes::unescaped;
use super::field::{host_and_port, number, quoted, text, user_agent};
use super::line::{AccessLine, LineProblem};
use super::request_line::{method_and_target, target};

/// The format of a line by its first words: whether there is one before the client.
pub(super) fn recognize(line: &[u8]) -> Option<AccessLogFormat> {
    let (first, rest) = word(line)?;
    let (second, rest) = word(rest)?;
    let (third, _) = word(rest)?;
    let is_address = |word: &[u8]| std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok());
    // The second word after the client is nearly always a `-`: nobody has that service any more.
    match (second == b"-", third == b"-") {
        (true, _) => Some(AccessLogFormat::Combined),
        (false, true) if is_address(first) && !is_address(second) => Some(AccessLogFormat::Combined),
        (false, true) => Some(AccessLogFormat::VhostCombined),
        (false, false) if is_address(first) => Some(AccessLogFormat::Combined),
        (false, false) => is_address(second).then_some(AccessLogFormat::VhostCombined),
    }
}

/// Reads a line.
pub(super) fn read(line: &[u8], has_host: bool) -> Result<AccessLine<'_>, LineProblem> {
    let fields = TextFields::new(line, has_host).ok_or(LineProblem::OtherFormat)?;
    let request = unescaped(fields.request);
    let (method, asked) = method_and_target(&request).ok_or(LineProblem::NoRequest)?;
    let asked = target(&asked).ok_or(LineProblem::NoRequest)?;
    let (given, given_port) = fields.host.map(|host| host_and_port(Cow::Borrowed(host))).unwrap_or_default();
    let given = Some(given).filter(|host| !host.is_empty() && **host != *b"-");
    let (host, port) = if given.is_some() { (given, given_port.or(asked.port)) } else { (asked.host, asked.port) };
    Ok(AccessLine {
        method,
        host: host.map(text),
        port,
        path: asked.path,
        client: Cow::Borrowed(fields.client),
        user_agent: fields.user_agent.map(user_agent),
        bytes: number(fields.bytes),
    })
}

/// The fields of a line, still with escapes.
struct TextFields<'l> {
    host: Option<&'l [u8]>,
    client: &'l [u8],
    request: &'l [u8],
    bytes: &'l [u8],
    user_agent: Option<&'l [u8]>,
}

impl<'l> TextFields<'l> {
    fn new(line: &'l [u8], has_host: bool) -> Option<Self> {
        let (host, rest) = if has_host { word(line).map(|(host, rest)| (Some(host), rest))? } else { (None, line) };
        let (client, rest) = word(rest)?;
        // A user can contain blanks and brackets, but no quote without a backslash.
        let rest = rest.get(after(rest, b"] \"")?..)?;
        let (request, rest) = quoted(rest)?;
        let (status, rest) = word(rest.strip_prefix(b" ")?)?;
        let is_status = status.len() == 3 && status.iter().all(u8::is_ascii_digit);
        if !is_status {
            return None;
        }
        let (bytes, rest) = word(rest).unwrap_or((rest, b""));
        let is_number = bytes == b"-" || (!bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit));
        if !is_number {
            return None;
        }
        let user_agent = rest.strip_prefix(b"\"").and_then(|rest| {
            let (_, rest) = quoted(rest)?;
            let (agent, _) = quoted(rest.strip_prefix(b" \"")?)?;
            Some(agent)
        });
        Some(Self { host, client, request, bytes, user_agent })
    }
}

/// The first word, and what follows the blank behind it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|byte| *byte == b' ').filter(|end| *end > 0)?;
    Some((line.get(..end)?, line.get(end + 1..)?))
}

/// The place after the first occurrence of a text that ends with a quote.
fn after(line: &[u8], text: &[u8]) -> Option<usize> {
    let mut quotes = line.iter().enumerate().filter(|(_, byte)| **byte == b'"').map(|(at, _)| at + 1);
    quotes.find(|end| line.get(..*end).is_some_and(|start| start.ends_with(text)))
}
