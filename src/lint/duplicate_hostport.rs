//! Lint: one hostport on two edges.

use crate::text::printable;
use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
};

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{fault::Path, kind::https_edge::HttpsEdge};

/// The lint.
pub static LINT: Lint = Lint {
    name: "duplicate-hostport",
    default: Level::Deny,
    says: "One hostport is served by two edges.",
    why: "Host and port choose the edge, so one of the two gets no traffic there. Which one is left to chance, and so are its routes, its logins and its mutual TLS.",
    example: r#"apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ["shop.example.com:443"]
---
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: campaign}
spec:
  hostports: ["Shop.Example.com:443"]
"#,
    cure: "Take the hostport off one of the edges. To bring the routes of several teams together on one host, give them one edge and let each team own an `HttpsEdgeRoute`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    let mut first = HashMap::new();
    for (key, edge) in world.all::<HttpsEdge>() {
        for (index, text) in edge.hostports.iter().enumerate() {
            let Some(address) = host_port(text) else { continue };
            let path = Path::root().join("hostports").join(index);
            match first.entry(address) {
                Entry::Vacant(place) => {
                    place.insert((key, path));
                }
                Entry::Occupied(place) => {
                    let (other, other_path) = place.get();
                    if *other != key {
                        let message = format!("`{}` is served by another edge as well", printable(text));
                        let related = (Subject::Resource((*other).clone()), other_path.clone(), "the other edge");
                        findings.report(key, path, message).related = Some(related);
                    }
                }
            }
        }
    }
    for (other, edge, source) in world.of_others::<HttpsEdge>() {
        for text in &edge.hostports {
            if let Some((key, path)) = host_port(text).and_then(|address| first.get(&address)) {
                let message = format!("`{}` is served by {other} of the source `{source}` as well", printable(text));
                findings.report(key, path.clone(), message);
            }
        }
    }
}

/// Host and port of a hostport, in a form in which equal means the same.
pub(super) fn host_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    Some((host_name(host), port.parse().ok()?))
}

/// A host in lower case and without a final dot; an address without brackets and in its usual form.
pub(super) fn host_name(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(ip) => ip.to_string(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
    }
}

/// The wildcard that a host name falls under: one label is free. Of a wildcard that is the wildcard itself.
pub(super) fn wildcard_over(host: &str) -> Option<String> {
    let (_, rest) = host.split_once('.').filter(|_| host.parse::<IpAddr>().is_err())?;
    Some(format!("*.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostports_are_the_same_in_any_spelling() {
        assert_eq!(host_port("Shop.Example.com.:443"), host_port("shop.example.com:443"));
        assert_eq!(host_port("[2001:DB8:0::1]:443"), host_port("[2001:db8::1]:443"));
        assert_ne!(host_port("shop.example.com:443"), host_port("shop.example.com:8443"));
        assert_eq!(host_port("shop.example.com"), None);
    }

    #[test]
    fn a_wildcard_stands_for_one_label() {
        assert_eq!(wildcard_over("a.example.com").as_deref(), Some("*.example.com"));
        assert_eq!(wildcard_over("a.b.example.com").as_deref(), Some("*.b.example.com"));
        assert_eq!(wildcard_over("*.example.com").as_deref(), Some("*.example.com"));
        assert_eq!(wildcard_over("localhost"), None);
        assert_eq!(wildcard_over("192.0.2.1"), None);
    }
}
