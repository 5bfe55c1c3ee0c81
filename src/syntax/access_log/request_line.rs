//! The first line of a request, such as `GET /cart?id=7 HTTP/1.1`, and what it asks for.

use std::borrow::Cow;

use super::field::{host_and_port, part, text};

/// The target of a request: the path alone, or with the host before it, as a proxy gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestTarget<'l> {
    pub host: Option<Cow<'l, [u8]>>,
    pub port: Option<u16>,
    pub path: Cow<'l, str>,
}

/// Separates the method and the target of a request. The target has no escapes.
pub(super) fn method_and_target<'l>(line: &Cow<'l, [u8]>) -> Option<(Cow<'l, str>, Cow<'l, [u8]>)> {
    let end_of_method = line.iter().position(|byte| *byte == b' ')?;
    // A target with blanks is an error of the client that some servers accept.
    let last = line.iter().rposition(|byte| *byte == b' ')?;
    let has_version = last > end_of_method && line.get(last + 1..).is_some_and(|rest| rest.starts_with(b"HTTP/"));
    let end = if has_version { last } else { line.len() };
    Some((method(part(line, 0, end_of_method))?, part(line, end_of_method + 1, end)))
}

/// The method, if it is one.
pub(super) fn method(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    let is_method = !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-');
    is_method.then(|| text(bytes))
}

/// Takes a target apart; none if it is not one of a request that can be routed by its path.
pub(super) fn target<'l>(target: &Cow<'l, [u8]>) -> Option<RequestTarget<'l>> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    if target.first() == Some(&b'/') {
        return Some(RequestTarget { host: None, port: None, path: text(part(target, 0, end)) });
    }
    let (length, port) = [("http://", 80), ("https://", 443)].into_iter().find_map(|(scheme, port)| {
        let start = target.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme.as_bytes()).then_some((scheme.len(), port))
    })?;
    let authority = target.get(length..end)?;
    let slash = authority.iter().position(|byte| *byte == b'/').map_or(end, |at| length + at);
    let (host, own_port) = host_and_port(part(target, length, slash));
    let path = if slash == end { Cow::Borrowed("/") } else { text(part(target, slash, end)) };
    Some(RequestTarget { host: Some(host), port: own_port.or(Some(port)), path })
}
