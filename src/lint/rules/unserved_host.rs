//! `unserved-host`: a match with a host that its edge does not serve.
//!
//! Everything before the first slash of a match is a host, so a path without its leading slash ends up here, too.

use std::cell::LazyCell;

use foldhash::{HashMap, HashSet};

use super::prelude::*;
use super::unreachable_path::{self, is_regex};
use crate::model::diagnostics::check::parse_hostport;
use crate::routing::selector::host_and_port;

pub(crate) static LINT: Lint = Lint {
    name: "unserved-host",
    default: Level::Warn,
    summary: "No hostport of the edge covers the host in a route's match.",
    why: "Everything before the first slash of a match is a host, so `checkout` means the host `checkout`, not the \
          path `/checkout`. A request reaches a route only if its edge serves that host.",
    cure: "Start a path with `/`. If the match is for a host, add the host to the edge's `hostports`, or move the route \
           to the edge that serves it.",
    check: LintCheck::Host(check),
};

/// The hosts of edges.
#[derive(Default)]
pub(super) struct ServedHosts {
    names: HashSet<String>,
    /// The suffixes of names from each dot on: a wildcard in a match covers the names with its suffix.
    suffixes: HashSet<String>,
    ports: HashSet<u16>,
}

impl ServedHosts {
    /// The hosts of some edges.
    pub(super) fn of<'e>(edges: impl IntoIterator<Item = &'e HttpsEdge>) -> Self {
        let mut hosts = Self::default();
        for (_, _, (name, port)) in edges.into_iter().flat_map(|edge| edge.addresses()) {
            hosts.suffixes.extend(suffixes(&name).map(str::to_owned));
            hosts.names.insert(name);
            hosts.ports.insert(port);
        }
        hosts
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a request for the host of a match, in its normal form, can arrive here.
    pub(super) fn cover(&self, host: &str) -> bool {
        let by_wildcard = || suffixes(host).any(|suffix| self.names.contains(&format!("*{suffix}")));
        let by_name = || match host.strip_prefix('*') {
            // A wildcard for a part of a label: which labels it covers is uncertain.
            Some(suffix) => suffixes(suffix).next().is_none_or(|labels| self.suffixes.contains(labels)),
            None => self.names.contains(host),
        };
        !has_stray_wildcard(host) && (by_name() || by_wildcard())
    }
}

/// Whether the host of a match has an asterisk that is no wildcard, but literal text: no host has one.
fn has_stray_wildcard(host: &str) -> bool {
    host.strip_prefix('*').unwrap_or(host).contains('*')
}

fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('.').filter_map(move |(at, _)| name.get(at..))
}

/// Returns the host of a match as it is written, in its normal form, and with its port.
pub(in crate::lint) fn matched_host(text: &str) -> Option<(&str, String, Option<u16>)> {
    let host = text.split('/').next().filter(|host| !host.is_empty())?;
    let (name, port) = host_and_port(host);
    Some((host, name, port))
}

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let others = LazyCell::new(|| {
        let edges = view.of_others::<HttpsEdge>().map(|(key, edge, _)| (&key.id, edge));
        edges.collect::<HashMap<&Id, &HttpsEdge>>()
    });
    let first = LazyCell::new(|| first_hostports(view));
    let mut edges: HashMap<&Id, ServedHosts> = HashMap::default();
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let text = route.r#match.as_str();
        let Some((host, name, port)) = matched_host(text) else { continue };
        let Some(parent) = &key.parent else { continue };
        let served = edges.entry(parent).or_insert_with(|| {
            let edge = view.edge_of(key).or_else(|| others.get(parent).copied());
            ServedHosts::of(edge)
        });
        // In a match, a wildcard can be a part of its first label.
        let label = host.strip_prefix('*').filter(|rest| !rest.starts_with('.'));
        let whole = label.map_or_else(|| host.to_owned(), |rest| format!("x{rest}"));
        let is_host = parse_hostport(&if port.is_some() { whole } else { format!("{whole}:443") }).is_ok();
        // The hostports of an edge without any, or of an unknown one, may follow.
        let is_known = !served.is_empty();
        let is_served = served.cover(&name) && port.is_none_or(|port| served.ports.contains(&port));
        if is_served || (is_host && !is_known) {
            continue;
        }
        let shown = printable(host);
        let elsewhere = first.get(&name).filter(|_| is_host);
        let (mut help, mut yields_to) = (None, None);
        let message = if let Some((scheme, _)) = text.split_once("://") {
            help = Some(match scheme {
                "https" => "Drop `https://`.",
                "http" => "Drop `http://`.",
                _ => "Drop everything up to `://`.",
            });
            "a match cannot have a scheme".to_owned()
        } else if is_regex(text) {
            help = Some("Write the literal path. To match everything below it, use `path_prefix` and end it with `/`.");
            "a match cannot be a regular expression".to_owned()
        } else if has_stray_wildcard(&name) && name.contains('.') {
            format!("`{shown}` is not a host: a wildcard must be its first character, as in `*.shop.com`")
        } else if !is_host || (elsewhere.is_none() && !name.contains(['.', '*'])) {
            // `api/*` is a path written in the syntax of another product, and its slash is not the only mistake.
            yields_to = Some(unreachable_path::LINT.name);
            let meant = Some(text).filter(|text| is_plain_path(text) && !name.contains('.'));
            let hint = meant.map(|path| format!("; did you mean `/{}`?", printable(path))).unwrap_or_default();
            format!("`{shown}` is read as a host, because the match does not start with `/`{hint}")
        } else if elsewhere.is_some() && !served.names.contains(&name) {
            format!("this edge does not serve `{shown}`, but another edge does")
        } else {
            format!("no hostport of this edge covers `{shown}`")
        };
        let finding = findings.report(key, ["match"], message);
        (finding.help, finding.yields_to) = (help, yields_to);
        if let Some((other, index)) = elsewhere {
            finding.relate(other, ("hostports", *index), "the host");
        }
    }
}

/// Whether a match is a path without its first slash, in which nothing else has to be changed.
fn is_plain_path(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~./".contains(&byte))
}

/// Returns the first hostport with each host, in the order of the manifests: its edge and its index there.
fn first_hostports<'v>(view: &'v HostView<'_>) -> HashMap<String, (&'v Key, usize)> {
    let mut first = HashMap::default();
    for (key, edge) in view.in_order::<HttpsEdge>() {
        for (index, _, (name, _)) in edge.addresses() {
            first.entry(name).or_insert((key, index));
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_covers_its_names_and_wildcards() {
        let hostports =
            ["Shop.example.com:443", "*.eu.example.com:443", "[2001:db8::1]:443"].map(String::from).to_vec();
        let hosts = ServedHosts::of([&HttpsEdge { hostports, ..HttpsEdge::default() }]);
        for host in ["shop.example.com", "a.eu.example.com", "a.b.eu.example.com", "*.eu.example.com", "*.example.com"]
        {
            assert!(hosts.cover(&host_name(host)), "{host}");
        }
        for host in ["*", "*com", "*.b.eu.example.com", "*b.eu.example.com", "*op.example.com", "[2001:db8::1]"] {
            assert!(hosts.cover(&host_name(host)), "{host}");
        }
        for host in ["checkout", "example.com", "eu.example.com", "a.shop.example.com", "*.example.org", "shop"] {
            assert!(!hosts.cover(&host_name(host)), "{host}");
        }
        for host in ["*a.example.org", "**", "**.eu.example.com", "*.*.example.com", "a.*.eu.example.com"] {
            assert!(!hosts.cover(&host_name(host)), "{host}");
        }
    }
}
