//! Patterns of hosts: a host, or `*.example.com` for all below, in scopes and as hosts of edges (D101, D112).

use std::net::IpAddr;

use super::diagnostics::check::parse_hostport;
use super::diagnostics::{Code, Fault};
use super::traffic::host_name;
use crate::syntax::text::printable;

/// Checks a pattern: a DNS name, also with `*.` before it, or an IP address.
pub(crate) fn check_host_pattern(text: &str) -> Result<(), Fault> {
    if text.parse::<IpAddr>().is_ok() || parse_hostport(&format!("{text}:443")).is_ok() {
        return Ok(());
    }
    let fault = Fault::new(Code::InvalidFormat, format!("`{}` is not a host", printable(text)));
    Err(fault.help("write a host such as `docs.example.com`, or `*.docs.example.com` for all of its subdomains"))
}

/// Whether a pattern has all hosts of another one. Both are in normal form. A wildcard has itself, narrower ones and the hosts
/// below, but not the host after its `*.`.
pub(crate) fn covers(wide: &str, narrow: &str) -> bool {
    match wide.strip_prefix('*') {
        Some(suffix) => narrow.len() > suffix.len() && narrow.ends_with(suffix),
        None => wide == narrow,
    }
}

/// Whether a pattern has all hosts of another one, however they are written.
pub(crate) fn covers_hosts(wide: &str, narrow: &str) -> bool {
    covers(&host_name(wide), &host_name(narrow))
}

/// The wildcards of whole labels that cover a pattern and more, the longest first. A lookup of each finds what covers a pattern
/// among many without comparing it with all.
pub(crate) fn wider(pattern: &str) -> impl Iterator<Item = String> {
    let text = pattern.strip_prefix('*').unwrap_or(pattern);
    let dots = text.match_indices('.').map(|(dot, _)| dot).filter(|dot| *dot > 0);
    dots.filter_map(move |dot| Some(format!("*{}", text.get(dot..)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_all_below() {
        for (pattern, host, expected) in [
            ("docs.example.com", "docs.example.com", true),
            ("Docs.Example.com.", "docs.example.com", true),
            ("docs.example.com", "a.docs.example.com", false),
            ("docs.example.com", "*.docs.example.com", false),
            ("*.docs.example.com", "docs.example.com", false),
            ("*.Docs.example.com", "a.b.docs.example.com", true),
            ("*.docs.example.com", "*.docs.example.com", true),
            ("*.docs.example.com", "*.example.com", false),
            ("*.docs.example.com", "evildocs.example.com", false),
            ("*.docs.example.com", ".docs.example.com", false),
            ("[2001:DB8::1]", "2001:db8::1", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
        ] {
            assert_eq!(covers_hosts(pattern, host), expected, "{pattern} {host}");
        }
    }

    #[test]
    fn wider_wildcards_have_fewer_labels() {
        for (pattern, expected) in [
            ("a.b.example.com", "*.b.example.com *.example.com *.com"),
            ("*.b.example.com", "*.example.com *.com"),
            ("*eu.example.com", "*.example.com *.com"),
            ("localhost", ""),
        ] {
            let found: Vec<String> = wider(pattern).collect();
            assert_eq!(found.join(" "), expected, "{pattern}");
            assert!(found.iter().all(|wide| covers(wide, pattern)), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_is_a_host_without_a_port() {
        for good in ["docs.example.com", "*.docs.example.com", "192.0.2.1", "2001:db8::1", "[2001:db8::1]"] {
            assert!(check_host_pattern(good).is_ok(), "{good}");
        }
        for bad in
            ["", "*", "docs-*", "*docs.example.com", "a.*.com", "docs.example.com:443", "https://docs.example.com"]
        {
            assert!(check_host_pattern(bad).is_err(), "{bad}");
        }
    }
}
