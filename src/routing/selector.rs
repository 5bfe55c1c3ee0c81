//! A route's `match`, taken apart, and how it ranks for a request.

use super::host_rank::{HostRank, rank_host};
use super::route_decision::RouteDecision;
use crate::model::diagnostics::check::parse_hostport;
use crate::model::traffic::host_name;
use crate::model::{HttpsEdge, HttpsEdgeRoute, MatchType, rules};

/// A route's precedence, by field: how specific the host is, exact before prefix, the longer path.
pub(crate) type Rank = (HostRank, bool, usize);

/// A route's `match` in a normal form.
#[derive(Debug, Clone)]
pub(crate) struct Selector<'a> {
    /// The host; empty for every host of the edge.
    pub(crate) host: String,
    /// The port; `None` for every port.
    pub(crate) port: Option<u16>,
    /// Whether the path must be equal. A host alone matches all of its paths, whatever the `match_type`.
    pub(crate) is_exact: bool,
    /// The path; `/` for a host alone.
    pub(crate) path: &'a str,
    /// The length of the path in the manifest; 0 for a host alone, which ranks below the prefix `/`.
    length: usize,
}

impl<'a> Selector<'a> {
    /// Reads a route's match; `None` if it is empty, has no type or has ASCII control characters, because the route then
    /// matches nothing.
    pub(crate) fn from_route(route: &'a HttpsEdgeRoute) -> Option<Self> {
        Self::new(route.match_type?, &route.r#match)
    }

    pub(crate) fn new(match_type: MatchType, text: &'a str) -> Option<Self> {
        // No client can send ASCII control characters, so that the probes with them are outside of every match.
        if text.is_empty() || text.contains(|c: char| c.is_ascii_control()) {
            return None;
        }
        let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        // Most matches are paths alone.
        let (host, port) = if host.is_empty() { (String::new(), None) } else { host_and_port(host) };
        Some(Self {
            host,
            port,
            is_exact: match_type == MatchType::ExactPath && !path.is_empty(),
            path: if path.is_empty() { "/" } else { path },
            length: path.len(),
        })
    }

    /// Returns the rank for every request that the selector matches: it does not depend on the request.
    pub(super) fn precedence(&self) -> Rank {
        let host = match self.host.strip_prefix('*') {
            Some(suffix) => HostRank::Wildcard(suffix.len()),
            None if self.host.is_empty() => HostRank::Any,
            None => HostRank::Literal,
        };
        (host, self.is_exact, self.length)
    }

    /// Whether the selector matches every path of its host.
    pub(crate) fn takes_every_path(&self) -> bool {
        !self.is_exact && self.path == "/"
    }

    /// Returns a path that the selector matches, and of all other selectors only those that are as general or more.
    pub(crate) fn probe(&self) -> String {
        if self.is_exact { self.path.to_owned() } else { format!("{}\0", self.path) }
    }

    /// The path under which a prefix is found; empty for a host alone.
    pub(super) fn prefix(&self) -> &'a str {
        if self.length == 0 { "" } else { self.path }
    }

    /// Ranks the selector for the host and port of a request; `None` if they do not match.
    pub(crate) fn rank_address(&self, host: &str, port: u16) -> Option<HostRank> {
        if self.host.is_empty() {
            return Some(HostRank::Any);
        }
        if self.port.is_some_and(|own| own != port) { None } else { rank_host(host, &self.host) }
    }

    /// Ranks the selector for a request; an edge that passes TLS through cannot see the path.
    pub(super) fn rank(&self, host: &str, port: u16, path: &str, passes_through: bool) -> Result<Rank, RouteDecision> {
        let host_rank = self.rank_address(host, port).ok_or(RouteDecision::OtherHost)?;
        let fits = match (self.takes_every_path(), self.is_exact) {
            (true, _) => true,
            _ if passes_through => return Err(RouteDecision::PathUnread),
            (_, true) => path == self.path,
            (_, false) => path.starts_with(self.path),
        };
        if fits { Ok((host_rank, self.is_exact, self.length)) } else { Err(RouteDecision::PathDiffers) }
    }
}

/// Returns the host of a match in its normal form, and its port if it has one.
pub(crate) fn host_and_port(host: &str) -> (String, Option<u16>) {
    let with_port = host.rsplit_once(':').and_then(|(name, port)| with_port(name, port));
    with_port.unwrap_or_else(|| (host_name(host), None))
}

/// The host in its normal form, and the port behind it; `None` if they are no hostport. A full name can end with a dot.
fn with_port(name: &str, port: &str) -> Option<(String, Option<u16>)> {
    let whole = name.strip_suffix('.').unwrap_or(name);
    // A port does not change how a host is read, and matches have wildcards that no hostport has: `*-eu.example.com`.
    let checked = if name.contains('*') && !name.contains(':') { "wildcard" } else { whole };
    let (_, port) = parse_hostport(&format!("{checked}:{port}")).ok()?;
    Some((host_name(name), Some(port)))
}

/// Whether an edge passes TLS through, and so cannot see paths.
pub(crate) fn passes_tls_through(edge: &HttpsEdge) -> bool {
    rules::passes_through(edge) && edge.tls_termination.as_ref().is_some_and(|tls| tls.enabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_that_no_request_can_have_matches_nothing() {
        for text in ["/admin\0", "\0.example.com/", "/a\nb", "/a\u{7f}", ""] {
            assert!(Selector::new(MatchType::ExactPath, text).is_none(), "{text:?}");
        }
        // Clients can send U+0085. Without a stored route with it, its requests would go to the next route.
        for text in ["example.com/caf\u{e9} <a>", "/a\u{85}b"] {
            assert!(Selector::new(MatchType::ExactPath, text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn a_host_has_one_form() {
        for (text, host) in [
            ("Shop.Example.com./a", "shop.example.com"),
            ("shop.example.com../a", "shop.example.com."),
            ("*.Example.com./a", "*.example.com"),
            ("[2001:DB8:0::1]/a", "2001:db8::1"),
            ("[2001:DB8:0::1]./a", "2001:db8::1"),
            ("[2001:DB8:0::1]:443/a", "2001:db8::1"),
            ("[shop.example.com]/a", "[shop.example.com]"),
            ("Shop.Example.com.:443/a", "shop.example.com"),
            ("*.Example.com.:443/a", "*.example.com"),
            ("[2001:DB8:0::1].:443/a", "2001:db8::1"),
            ("shop.example.com..:443/a", "shop.example.com..:443"),
            ("[2001:DB8:0::1]", "2001:db8::1"),
        ] {
            let selector = Selector::new(MatchType::PathPrefix, text);
            assert_eq!(selector.map(|it| it.host).as_deref(), Some(host), "{text}");
        }
        let rank = |text: &str| Selector::new(MatchType::PathPrefix, text)?.rank_address("shop.example.com", 443);
        assert_eq!([rank("*p.example.com/a"), rank("*p.example.com:443/a")], [Some(HostRank::Wildcard(13)); 2]);
        assert_eq!([rank("*:443/a"), rank("*p.example.com:8443/a")], [Some(HostRank::Wildcard(0)), None]);
        assert_eq!(rank("Shop.example.com./a"), Some(HostRank::Literal));
        assert_eq!(rank("Shop.example.com.:443/a"), Some(HostRank::Literal));
        assert_eq!(rank("Shop.example.com.:8443/a"), None);
        assert_eq!([rank("shop.example.com../a"), rank("[shop.example.com]/a")], [None, None]);
    }

    #[test]
    fn a_port_does_not_change_how_a_wildcard_is_read() {
        for host in
            ["*", "*.example.com", "*a.Example.com", "*a.example.com.", "**.x", "a.*.com", "a*.com", "*.1", "*..x"]
        {
            let (without, with) = (format!("{host}/a"), format!("{host}:8443/a"));
            let read = |text: &str| Selector::new(MatchType::PathPrefix, text).map(|it| (it.host, it.port));
            let expected = read(&without).map(|(host, _)| (host, Some(8443)));
            assert_eq!(read(&with), expected, "{with}");
        }
    }
}
