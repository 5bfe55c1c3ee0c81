//! Certificates of hosts: an edge presents those of its own source and of the sources that it names, so that nobody else
//! can answer for its hosts (D94, D112).

use std::collections::BTreeMap;

use crate::{
    model::{
        Kind,
        code::Code,
        desired::Desired,
        fault::{Fault, Path},
        key::Key,
        kind::{https_edge::HttpsEdge, tls_certificate::TlsCertificate},
        operation::Claim,
        rules,
        snapshot::Snapshot,
        traffic::{host_name, host_port},
    },
    text::printable,
};

/// The port of plain HTTP, where no edge terminates TLS.
const PLAIN_HTTP: u16 = 80;

/// Whether an edge presents a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presentation {
    /// It is of the edge's source, or of one that the edge names.
    Chosen,
    /// No source owns it, so it counts for hosts without a chosen one.
    Fallback,
    /// It is of a source that the edge does not name.
    Never,
}

/// Returns whether an edge presents a certificate, by who owns both.
pub(crate) fn presentation(edge_spec: &HttpsEdge, edge: Option<&Claim>, certificate: Option<&Claim>) -> Presentation {
    match (edge, certificate) {
        (None, None) => Presentation::Chosen,
        (Some(_), None) => Presentation::Fallback,
        (Some(edge), Some(certificate)) if edge.source == certificate.source => Presentation::Chosen,
        (Some(_), Some(certificate)) if edge_spec.certificates_from.contains(&certificate.source) => {
            Presentation::Chosen
        }
        (_, Some(_)) => Presentation::Never,
    }
}

/// Whether a certificate is valid for a host in its normal form.
fn covers(certificate: &TlsCertificate, host: &str) -> bool {
    let Ok(facts) = certificate.certificate_pem.read().facts() else { return false };
    let wildcard = host.split_once('.').map(|(_, rest)| format!("*.{rest}"));
    let names = &facts.subject_alternative_names;
    let mut names = names.dns_names.iter().chain(&names.ips).map(|name| host_name(name));
    names.any(|name| name == host || Some(&name) == wildcard.as_ref())
}

/// The hosts of an edge that it presents certificates for, with their places in the list.
fn tls_hosts(edge: &HttpsEdge) -> impl Iterator<Item = (usize, String)> {
    let all = edge.hostports.iter().enumerate().filter(|_| !rules::passes_through(edge));
    all.filter_map(|(index, text)| {
        let (host, port) = host_port(text)?;
        (port != PLAIN_HTTP).then_some((index, host))
    })
}

/// Returns a warning for each edge with hosts whose only certificate is of a source that the edge does not name.
pub(super) fn unpresented(desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot, source: &str) -> Vec<(Key, Fault)> {
    let certificates = snapshot.newest_first(Kind::TlsCertificate, None, u64::MAX);
    // Those that the source declares are its own.
    let stored = certificates.filter(|entry| !entry.is_owned_by(source) && !desired.contains_key(&entry.key));
    let stored: Vec<(&TlsCertificate, Option<&Claim>)> =
        stored.filter_map(|entry| Some((entry.spec_as::<TlsCertificate>()?, entry.claim.as_deref()))).collect();
    let mut found = Vec::new();
    if stored.iter().all(|(_, claim)| claim.is_none()) {
        return found;
    }
    let own: Vec<&TlsCertificate> =
        desired.values().filter_map(|wanted| wanted.spec.as_any().downcast_ref::<TlsCertificate>()).collect();
    for wanted in desired.values() {
        let Some(edge) = wanted.spec.as_any().downcast_ref::<HttpsEdge>() else { continue };
        for (index, host) in tls_hosts(edge) {
            let covering = || stored.iter().filter(|(certificate, _)| covers(certificate, &host));
            let is_never =
                |claim: Option<&Claim>| presentation(edge, Some(&wanted.claim), claim) == Presentation::Never;
            let has_one = own.iter().any(|it| covers(it, &host)) || covering().any(|(_, claim)| !is_never(*claim));
            if has_one {
                continue;
            }
            if let Some((_, Some(claim))) = covering().next() {
                let (host, other) = (printable(&host), printable(&claim.source));
                let message =
                    format!("no certificate of this source covers `{host}`, but one of source `{other}` does");
                let fault = Fault::new(Code::NotDelegated, message).at(Path::root().join("hostports").join(index));
                let help = format!(
                    "declare a certificate; to let source `{other}` answer for it, add `certificates_from: [{other}]`"
                );
                found.push((wanted.key.clone(), fault.help(help)));
            }
        }
    }
    found
}
