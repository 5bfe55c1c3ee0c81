//! `duplicate-hostport`: the same hostport on two edges.

use std::net::IpAddr;

use foldhash::HashMap;

use super::prelude::*;
use crate::model::claim::source_in_words;

pub(crate) static LINT: Lint = Lint {
    name: "duplicate-hostport",
    default: Level::Deny,
    summary: "Two edges serve the same hostport.",
    why: "Host and port select the edge, so one of the two edges gets no traffic for the hostport. It is undefined \
          which one, and so which routes, logins and mutual TLS apply.",
    cure: "Remove the hostport from one of the edges. To combine routes of several teams on one host, share one edge: \
           `delegates_to` lists the sources that can add routes to it.",
    check: LintCheck::Host(check),
};

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let mut first: HashMap<(String, u16), (&Key, usize)> = HashMap::default();
    let path = |index: usize| Path::from(("hostports", index));
    for (key, edge) in view.in_order::<HttpsEdge>() {
        for (index, text, address) in edge.addresses() {
            let (other, other_index) = *first.entry(address).or_insert((key, index));
            if other != key {
                let message = format!("another edge already serves `{}`", printable(text));
                findings.report(key, path(index), message).relate(other, path(other_index), "the other edge");
            }
        }
    }
    for (other, edge, source) in view.of_others::<HttpsEdge>() {
        for (_, text, address) in edge.addresses() {
            if let Some((key, index)) = first.get(&address).copied() {
                let message = format!("{other} of {} already serves `{}`", source_in_words(source), printable(text));
                findings.report(key, path(index), message);
            }
        }
    }
}

/// Returns the wildcard that covers a host name, which replaces the first label. A wildcard covers itself.
pub(super) fn wildcard_over(host: &str) -> Option<String> {
    let (_, rest) = host.split_once('.').filter(|_| host.parse::<IpAddr>().is_err())?;
    Some(format!("*.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_one_label() {
        assert_eq!(wildcard_over("a.example.com").as_deref(), Some("*.example.com"));
        assert_eq!(wildcard_over("a.b.example.com").as_deref(), Some("*.b.example.com"));
        assert_eq!(wildcard_over("*.example.com").as_deref(), Some("*.example.com"));
        assert_eq!(wildcard_over("localhost"), None);
        assert_eq!(wildcard_over("192.0.2.1"), None);
    }
}
