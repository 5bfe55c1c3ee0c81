//! Checks and schemas for fields that several kinds and modules share.

use std::{collections::BTreeMap, net::IpAddr};

use serde::Serialize;
use serde_json::Value;

use super::code::Code;
use super::fault::{Fault, Faults};
use crate::model::json;
use crate::model::secrets::redact::quotable_key;
use crate::model::secrets::serialization_mode::Secrets;
use crate::syntax::text::{has_token, printable};

/// The maximum length of a description, in bytes (Limits).
pub(crate) const DESCRIPTION_BYTES: usize = 255;
/// The maximum length of metadata, in bytes (Limits).
const METADATA_BYTES: usize = 4096;

/// Checks the length of `description` and `metadata`, in bytes of UTF-8 (D7).
pub(crate) fn texts(faults: &mut Faults, description: &str, metadata: &str) {
    for (field, text, most) in [("description", description, DESCRIPTION_BYTES), ("metadata", metadata, METADATA_BYTES)]
    {
        if text.len() > most {
            let message = format!("`{field}` must be at most {most} bytes of UTF-8 (found {})", text.len());
            faults.report(Fault::new(Code::TooLong, message).at(field));
        }
    }
}

/// Refuses API tokens in the texts and keys of a value, except in its secrets: everyone who can read the resource could
/// use them (D23). `name` is the field with the value.
pub(crate) fn tokens<T: Serialize + ?Sized>(faults: &mut Faults, name: &str, value: &T) {
    // JSON writes a token as it is, and hardly any value has one. What cannot be written is not stored either.
    let Ok(text) = json::bytes(value, Secrets::Masked) else { return };
    if str::from_utf8(&text).is_ok_and(has_token)
        && let Ok(value) = json::value(value, Secrets::Masked)
    {
        tokens_in(faults, name, &value);
    }
}

fn tokens_in(faults: &mut Faults, name: &str, value: &Value) {
    let refused = |what: &str| {
        let help = "remove it, and revoke the key with `edgewright keys revoke`: others may have seen it";
        Fault::new(Code::NotAllowed, format!("{what} contains an API token")).help(help)
    };
    match value {
        Value::String(text) if has_token(text) => {
            faults.report(refused(&format!("`{}`", printable(&quotable_key(name)))));
        }
        Value::Array(items) => faults.each(items, |faults, item| tokens_in(faults, name, item)),
        Value::Object(fields) => {
            for (key, value) in fields {
                faults.within(key.as_str(), |faults| {
                    if has_token(key) {
                        faults.report(refused("a key").of_key());
                    }
                    tokens_in(faults, key, value);
                });
            }
        }
        _ => {}
    }
}

/// Whether a text is a URL, an IP address, a network, or a host with dots and a port. No ID looks like one.
pub(crate) fn is_address(text: &str) -> bool {
    let is_ip = |text: &str| text.parse::<IpAddr>().is_ok();
    let is_network = text.split('/').next().is_some_and(is_ip);
    let is_hostport = || parse_hostport(text).is_ok_and(|(host, _)| host.contains(['.', '[']));
    text.contains("://") || is_network || is_hostport()
}

/// Checks a hostport: `host:port` with a DNS name or IP address and a port in 1–65535 (D17).
pub(crate) fn hostport(faults: &mut Faults, text: &str) {
    if let Err(reason) = parse_hostport(text) {
        let reason = match text {
            url if url.contains("://") => "it is a URL",
            list if list.contains(',') => "it contains a comma",
            _ => reason,
        };
        let fault = Fault::new(Code::InvalidFormat, format!("`{}` is not a hostport: {reason}", printable(text)));
        faults.report(match in_url(text).or_else(|| repaired(text)) {
            Some(hostport) => fault.help(format!("write `{}`", printable(&hostport))),
            None if text.contains(',') => fault.help("write each hostport as its own entry of the list"),
            None if text.contains('*') => fault.help("write `*.host:port`, such as `*.shop.com:443`"),
            None if parse_hostport(&format!("{text}:443")).is_ok() => {
                fault.help(format!("write `{0}:443` for HTTPS, or `{0}:PORT`", printable(text)))
            }
            None if !text.is_ascii() => fault.help("write the host in Punycode, as in `xn--bcher-kva.example:443`"),
            None => fault.help("write `host:port`, such as `shop.example.com:443`"),
        });
    }
}

/// The hostport that a text would be without white space, a path and a final dot of the host, and with an IPv6 address in
/// brackets.
fn repaired(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let in_brackets = || {
        let (host, port) = compact.rsplit_once(':')?;
        host.parse::<std::net::Ipv6Addr>().is_ok().then(|| format!("[{host}]:{port}"))
    };
    let repaired = match compact.contains('/') {
        true => in_url(&format!("https://{compact}"))?,
        false => in_brackets().unwrap_or_else(|| compact.replace(".:", ":")),
    };
    (repaired != text && parse_hostport(&repaired).is_ok()).then_some(repaired)
}

/// The hostport of a URL.
fn in_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" | "tls" => Some(443),
        "http" | "ws" => Some(80),
        _ => None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A user and a password do not belong to the host.
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let hostport = match parse_hostport(authority) {
        Ok(_) => authority.to_owned(),
        Err(_) => format!("{authority}:{}", port?),
    };
    parse_hostport(&hostport).is_ok().then_some(hostport)
}

/// Returns the schema of a hostport. It accepts the same texts as [`parse_hostport`], except for rare forms of IPv6
/// addresses.
pub(crate) fn hostport_schema() -> serde_json::Value {
    const LABEL: &str = "[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?";
    const LAST: &str = "[0-9]{0,20}[A-Za-z_]([A-Za-z0-9_-]{0,40}[A-Za-z0-9_])?";
    const BYTE: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    const IPV6: &str =
        r"\[(([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|([0-9A-Fa-f]{1,4}(:[0-9A-Fa-f]{1,4}){0,3})?::[0-9A-Fa-f]{0,4})\]";
    const PORT: &str = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
    let pattern = format!(r"^(([*]\.)?({LABEL}\.)*{LAST}|{BYTE}(\.{BYTE}){{3}}|{IPV6}):{PORT}$");
    serde_json::json!({"type": "string", "maxLength": 253, "pattern": pattern})
}

/// Parses a hostport; the error is a clause that explains what is wrong.
pub(crate) fn parse_hostport(text: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or("the port is missing")?;
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let port = port.parse::<u16>().ok().filter(|port| digits && *port > 0);
    let port = port.ok_or("the port must be a number from 1 to 65535")?;
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return match inner.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => Ok((host, port)),
            _ => Err("the brackets must contain an IPv6 address"),
        };
    }
    if host.parse::<std::net::Ipv4Addr>().is_ok() || is_dns_name(host.strip_prefix("*.").unwrap_or(host)) {
        return Ok((host, port));
    }
    if host.contains(':') && host.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')) {
        return Err("an IPv6 address must be in brackets");
    }
    if host.contains('*') {
        return Err("a wildcard must be the whole first label, as in `*.shop.com`");
    }
    Err("the host must be a DNS name or an IP address")
}

fn is_dns_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last_is_number = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    name.len() <= 253 && !last_is_number && name.split('.').all(label)
}

/// The most header names that are compared in pairs.
const FEW_HEADERS: usize = 16;

/// Checks the headers that a module adds and removes (D17).
pub(crate) fn headers(faults: &mut Faults, add: &BTreeMap<String, String>, remove: &[String]) {
    faults.within("add", |faults| {
        let has_others = may_have_other_spellings(add.keys().map(String::as_str));
        let mut spellings = BTreeMap::new();
        for (name, value) in add {
            faults.within(name.as_str(), |faults| {
                if !is_token(name) {
                    faults.report(bad_header_name(name).of_key());
                }
                if has_others {
                    faults.extend(other_spelling(&mut spellings, name).map(Fault::of_key));
                }
                if value.contains(['\r', '\n', '\0']) {
                    let fault = Fault::new(Code::InvalidFormat, "a header value cannot contain CR, LF or NUL");
                    faults.report(fault.help("remove the line breaks; they could inject another header"));
                }
            });
        }
    });
    let has_others = may_have_other_spellings(remove.iter().map(String::as_str));
    let mut spellings = BTreeMap::new();
    faults.each_in("remove", remove, |faults, name| {
        if !is_token(name) {
            faults.report(bad_header_name(name));
        }
        if has_others {
            faults.extend(other_spelling(&mut spellings, name));
        }
    });
}

/// Whether header names may have others in another spelling. Few names are compared in pairs, without a map.
fn may_have_other_spellings<'a>(names: impl Iterator<Item = &'a str> + Clone) -> bool {
    let is_other = |one: &str, other: &str| one != other && one.eq_ignore_ascii_case(other);
    let has_other = |(at, name): (usize, &str)| names.clone().take(at).any(|other| is_other(name, other));
    names.clone().nth(FEW_HEADERS).is_some() || names.clone().enumerate().any(has_other)
}

/// Returns a fault if a header name occurred before in another spelling. `spellings` has the first one of each name.
fn other_spelling<'a>(spellings: &mut BTreeMap<String, &'a str>, name: &'a str) -> Option<Fault> {
    let first = *spellings.entry(name.to_ascii_lowercase()).or_insert(name);
    let fault = || {
        let message = format!("`{}` and `{}` are the same header", printable(name), printable(first));
        Fault::new(Code::DuplicateKey, message).help("keep one of them; header names are case-insensitive")
    };
    (first != name).then(fault)
}

/// Returns the schema of a header name.
pub(crate) fn header_name_schema() -> serde_json::Value {
    serde_json::json!({"type": "string", "pattern": r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"})
}

/// Returns the schema of a header value.
pub(crate) fn header_value_schema() -> serde_json::Value {
    serde_json::json!({"type": "string", "pattern": r"^[^\r\n\x00]*$"})
}

fn bad_header_name(name: &str) -> Fault {
    Fault::new(Code::InvalidFormat, format!("`{}` is not a valid header name", printable(name)))
        .help("use only letters, digits and !#$%&'*+-.^_`|~ (RFC 9110)")
}

/// Whether a text is a token (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_one_spelling() {
        let at = |add: &[&str], remove: &[&str]| {
            let mut faults = Faults::new();
            let add = add.iter().map(|name| ((*name).to_owned(), String::new())).collect();
            let remove: Vec<String> = remove.iter().map(|name| (*name).to_owned()).collect();
            headers(&mut faults, &add, &remove);
            let faults = faults.into_vec().into_iter();
            faults.map(|fault| (fault.code, fault.path.to_string())).collect::<Vec<_>>()
        };
        let twice = |path: &str| (Code::DuplicateKey, path.to_owned());
        assert_eq!(at(&["Via", "VIA", "via", "x"], &[]), [twice("/add/Via"), twice("/add/via")]);
        assert_eq!(at(&[], &["x", "Via", "via", "Via", "X"]), [twice("/remove/2"), twice("/remove/4")]);
        assert!(at(&["Via"], &["via", "Server", "Server"]).is_empty());
    }

    #[test]
    fn hostports_are_host_and_port() {
        for good in [
            "a:1",
            "shop.example.com:443",
            "*.example.com:65535",
            "192.0.2.1:80",
            "[2001:db8::1]:443",
            "xn--caf-dma.example:443",
        ] {
            assert!(parse_hostport(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ":",
            ":443",
            "a",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "a b:1",
            "-a:1",
            "a..b:1",
            "*:1",
            "a.*:1",
            "1.2.3:1",
            "2001:db8::1:443",
            "[1.2.3.4]:1",
            "http://a:1",
            "a:1/x",
        ] {
            assert!(parse_hostport(bad).is_err(), "{bad}");
        }
        for wildcard in ["shop.*.com:443", "shop*.com:443", "*:443"] {
            let mut faults = Faults::new();
            hostport(&mut faults, wildcard);
            let told =
                faults.into_vec().pop().map(|fault| format!("{} {}", fault.message, fault.help.unwrap_or_default()));
            assert!(told.as_ref().is_some_and(|told| told.contains("`*.shop.com:443`")), "{told:?}");
        }
        for (text, cure) in [
            ("shop.example.com:443/cart", "write `shop.example.com:443`"),
            ("shop.example.com/cart", "write `shop.example.com:443`"),
            ("shop.example.com: 443", "write `shop.example.com:443`"),
            ("shop.example.com.:443", "write `shop.example.com:443`"),
            ("::1:443", "write `[::1]:443`"),
            ("a.example:443,b.example:443", "write each hostport as its own entry of the list"),
            ("bücher.example:443", "write the host in Punycode, as in `xn--bcher-kva.example:443`"),
            ("shop.example.com:https", "write `host:port`, such as `shop.example.com:443`"),
        ] {
            let mut faults = Faults::new();
            hostport(&mut faults, text);
            assert_eq!(faults.into_vec().pop().and_then(|fault| fault.help).as_deref(), Some(cure), "{text}");
        }
    }
}
