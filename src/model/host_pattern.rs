//! The hosts that a scope lists: a host, or `*.example.com` for all below (D101, D112).

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

/// Whether a pattern selects a host in its normal form. A wildcard selects itself and narrower wildcards, too.
pub(crate) fn selects_host(pattern: &str, host: &str) -> bool {
    let pattern = host_name(pattern);
    match pattern.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix),
        None => pattern == host,
    }
}

/// Whether a pattern selects every host that another one selects.
pub(crate) fn covers_hosts(wide: &str, narrow: &str) -> bool {
    selects_host(wide, &host_name(narrow))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_selects_all_below() {
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
            ("[2001:DB8::1]", "2001:db8::1", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
        ] {
            assert_eq!(selects_host(pattern, host), expected, "{pattern} {host}");
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
