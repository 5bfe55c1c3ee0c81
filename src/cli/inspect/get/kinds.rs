//! The names of kinds on the command line, in the singular and plural.

use crate::{cli::prelude::*, model::decode::list};

/// The singular names of the kinds with lists, the one for messages first.
const NAMES: [(Kind, &[&str]); 10] = [
    (Kind::ApiKey, &["api-key", "key"]),
    (Kind::IpRestriction, &["ip-restriction", "restriction"]),
    (Kind::CertificateAuthority, &["certificate-authority", "authority", "ca"]),
    (Kind::TlsCertificate, &["tls-certificate", "certificate", "cert"]),
    (Kind::HttpsEdge, &["https-edge", "edge"]),
    (Kind::HttpsEdgeRoute, &["https-edge-route", "route"]),
    (Kind::TlsEdge, &["tls-edge"]),
    (Kind::EventSubscription, &["event-subscription", "subscription"]),
    (Kind::EventSource, &["event-source", "source"]),
    (Kind::Invariant, &["invariant"]),
];

/// Finds a kind by any of its names, in the singular or plural.
pub(crate) fn parse_kind(text: &str) -> Result<Kind, Failure> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let wanted = plain(text);
    for (kind, names) in NAMES {
        if names.iter().any(|name| plain(name) == wanted || plain(&plural(name)) == wanted) {
            return Ok(kind);
        }
    }
    let all = plurals();
    let first: Vec<String> = NAMES.iter().map(|(kind, _)| plural(name_of(*kind))).collect();
    let otherwise = format!("use one of {}", list(&first.iter().map(String::as_str).collect::<Vec<_>>()));
    let help = suggest(text, all.iter().map(String::as_str), otherwise);
    let message = format!("unknown kind `{}`", printable(text));
    Err(Diagnostic::error(Code::UnknownKind, message).help(help).into())
}

/// The names of all kinds in the plural.
pub(crate) fn plurals() -> Vec<String> {
    NAMES.iter().flat_map(|(_, names)| names.iter().map(|name| plural(name))).collect()
}

pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    NAMES.into_iter().map(|(kind, _)| kind)
}

pub(super) fn name_of(kind: Kind) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == kind).and_then(|(_, names)| names.first()).copied().unwrap_or_default()
}

pub(crate) fn short_name_of(kind: Kind) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == kind).and_then(|(_, names)| names.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resource::endpoint_offers::Offer;

    #[test]
    fn a_kind_has_every_spelling() {
        for (kind, names) in [
            (Kind::HttpsEdge, "HttpsEdge|httpsedges|https-edges|https_edges|edge|edges|Edges"),
            (Kind::CertificateAuthority, "CertificateAuthority|certificate-authorities|cas|authorities"),
            (Kind::ApiKey, "ApiKeys|keys|api_keys"),
            (Kind::EventSource, "sources|event-source"),
        ] {
            for name in names.split('|') {
                assert_eq!(parse_kind(name).ok(), Some(kind), "{name}");
            }
        }
        for (name, near) in [("egdes", "did you mean `edges`?"), ("pods", "use one of `api-keys`,")] {
            let help = parse_kind(name).err().and_then(|failure| failure.diagnostics.into_iter().next()?.help);
            assert!(help.as_ref().is_some_and(|help| help.starts_with(near)), "{name}: {help:?}");
        }
    }

    #[test]
    fn every_kind_with_a_list_has_a_name() {
        let listed = Kind::all().filter(|info| info.offers.list != Offer::Absent);
        for info in listed {
            assert_eq!(parse_kind(info.name).ok(), Some(info.kind));
            assert_eq!(parse_kind(info.facts.list).ok(), Some(info.kind));
        }
    }
}
