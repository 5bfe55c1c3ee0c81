//! How specifically a pattern of hosts matches one of them.

use std::net::IpAddr;

/// How specific a host match is; later variants win over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostRank {
    /// Any host.
    Any,
    /// A wildcard with a suffix of this many bytes.
    Wildcard(usize),
    /// The exact host.
    Literal,
}

/// Ranks how specifically a pattern without brackets and a trailing dot matches a host, ignoring case and the spelling
/// of an IPv6 address; `None` if it does not match.
pub(crate) fn rank_host(host: &str, pattern: &str) -> Option<HostRank> {
    let Some(suffix) = pattern.strip_prefix('*') else {
        return (pattern.eq_ignore_ascii_case(host) || same_address(host, pattern)).then_some(HostRank::Literal);
    };
    let at = host.len().checked_sub(suffix.len()).filter(|at| *at > 0)?;
    host.get(at..)?.eq_ignore_ascii_case(suffix).then_some(HostRank::Wildcard(suffix.len()))
}

fn same_address(one: &str, other: &str) -> bool {
    let address = |text: &str| text.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    other.contains(':') && address(one).is_some_and(|one| address(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_host_is_closer_than_a_wildcard_and_a_long_wildcard_than_a_short_one() {
        let literal = rank_host("a.b.example.com", "A.B.example.com");
        let (long, short) =
            (rank_host("a.b.example.com", "*.b.example.com"), rank_host("a.b.example.com", "*.example.com"));
        assert!(literal > long && long > short && short > Some(HostRank::Any));
        assert_eq!(rank_host("example.com", "*.example.com"), None);
        assert_eq!(rank_host("myexample.com", "*.example.com"), None);
        assert_eq!(rank_host("2001:db8::1", "2001:DB8:0::1"), Some(HostRank::Literal));
        assert_eq!(rank_host("192.0.2.1", "::ffff:192.0.2.1"), Some(HostRank::Literal));
    }

    #[test]
    fn what_is_not_in_normal_form_is_another_host() {
        for pattern in ["example.com.", "*.com.", "[example.com]"] {
            assert_eq!(rank_host("example.com", pattern), None, "{pattern}");
        }
    }
}
