//! Fields of lines: texts, numbers, and hosts with ports, without a copy where there is no escape.

use std::borrow::Cow;

use super::escapes::unescaped;

/// Converts bytes to text. What is not UTF-8 is replaced, because no match of a route can contain it.
pub(super) fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The user agent of a request, which is empty if the line has none.
pub(super) fn user_agent(agent: &[u8]) -> Cow<'_, str> {
    if agent == b"-" { Cow::Borrowed("") } else { text(unescaped(agent)) }
}

/// The text up to the next quote without a backslash, and what follows the quote.
pub(super) fn quoted(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = line.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some((line.get(..end)?, line.get(end + 1..)?))
}

/// A part of bytes.
pub(super) fn part<'l>(bytes: &Cow<'l, [u8]>, from: usize, to: usize) -> Cow<'l, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(from..to).unwrap_or_default()),
        Cow::Owned(bytes) => Cow::Owned(bytes.get(from..to).unwrap_or_default().to_vec()),
    }
}

/// Separates the port from a host, if it has one.
pub(super) fn host_and_port(host: Cow<'_, [u8]>) -> (Cow<'_, [u8]>, Option<u16>) {
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
pub(super) fn number(field: &[u8]) -> u64 {
    field
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |sum: u64, byte| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
}
