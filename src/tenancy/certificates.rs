//! Certificates of hosts: an edge presents those of its own source and of the sources that it names, so that nobody else
//! can answer for its hosts, as far as these share them (D94, D112).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use crate::model::traffic::{PLAIN_HTTP, host_name};
use crate::model::{Claim, Code, Desired, Entry, Fault, HttpsEdge, Key, Kind, Snapshot, TlsCertificate, rules};
use crate::syntax::text::printable;

/// Whether an edge presents a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presentation {
    /// The certificate is of the edge's source, or of one that the edge names and that shares it.
    Chosen,
    /// No source owns it, so it counts for hosts without a chosen one.
    Fallback,
    /// The certificate is of a source that the edge does not name, or that does not share it.
    Never,
}

/// Returns whether an edge presents a certificate, by who owns both. Each comes with its claim.
pub(crate) fn presentation(
    (edge_spec, edge): (&HttpsEdge, Option<&Claim>),
    (certificate_spec, certificate): (&TlsCertificate, Option<&Claim>),
) -> Presentation {
    match (edge, certificate) {
        (None, None) => Presentation::Chosen,
        (Some(_), None) => Presentation::Fallback,
        (Some(edge), Some(certificate)) if edge.source == certificate.source => Presentation::Chosen,
        (Some(edge), Some(certificate))
            if edge_spec.certificates_from.contains(&certificate.source)
                && certificate_spec.is_shared_with(&edge.source) =>
        {
            Presentation::Chosen
        }
        (_, Some(_)) => Presentation::Never,
    }
}

/// Whether a certificate is valid for a host in its normal form.
fn covers(certificate: &TlsCertificate, host: &str) -> bool {
    let wildcard = wildcard_of(host);
    names(certificate).any(|name| name == host || Some(&name) == wildcard.as_ref())
}

/// The wildcard that a certificate for a host can have instead.
pub(crate) fn wildcard_of(host: &str) -> Option<String> {
    host.split_once('.').map(|(_, rest)| format!("*.{rest}"))
}

/// The names that a certificate is valid for, in their normal form. As for browsers, only subject alternative names count.
pub(crate) fn names(certificate: &TlsCertificate) -> impl Iterator<Item = String> {
    let facts = certificate.certificate_pem.read().facts().ok();
    let names = facts.map(|facts| &facts.subject_alternative_names);
    names.into_iter().flat_map(|names| names.dns_names.iter().chain(&names.ips)).map(|name| host_name(name))
}

/// The hosts of an edge that it presents certificates for, with their places in the list.
fn tls_hosts(edge: &HttpsEdge) -> impl Iterator<Item = (usize, String)> {
    let all = edge.addresses().filter(|_| !rules::passes_through(edge));
    all.filter_map(|(index, _, (host, port))| (port != PLAIN_HTTP).then_some((index, host)))
}

/// Returns a warning for each edge with hosts whose only certificate is of a source that the edge does not name, or that does
/// not share it.
pub(super) fn unpresented(desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot, source: &str) -> Vec<(Key, Fault)> {
    let certificates = snapshot.newest_first(Kind::TlsCertificate, None, u64::MAX);
    // Certificates that the source declares are its own.
    let stored = certificates.filter(|entry| !entry.is_owned_by(source) && !desired.contains_key(&entry.key));
    let stored: Vec<(&TlsCertificate, Option<&Claim>)> =
        stored.filter_map(|entry| Some((entry.spec_as::<TlsCertificate>()?, entry.claim.as_deref()))).collect();
    let mut found = Vec::new();
    if stored.iter().all(|(_, claim)| claim.is_none()) {
        return found;
    }
    let own: Vec<&TlsCertificate> = desired.values().filter_map(|wanted| wanted.spec_as::<TlsCertificate>()).collect();
    for wanted in desired.values() {
        let Some(edge) = wanted.spec_as::<HttpsEdge>() else { continue };
        for (index, host) in tls_hosts(edge) {
            let covering = || stored.iter().copied().filter(|(certificate, _)| covers(certificate, &host));
            let is_presented = |it| presentation((edge, Some(&wanted.claim)), it) != Presentation::Never;
            let has_one = own.iter().any(|it| covers(it, &host)) || covering().any(is_presented);
            if has_one {
                continue;
            }
            if let Some((_, Some(claim))) = covering().next() {
                let (host, other) = (printable(&host), printable(&claim.source));
                let message =
                    format!("no certificate of this source covers `{host}`, but one of source `{other}` does");
                let fault = Fault::new(Code::NotDelegated, message).at(("hostports", index));
                let help = match edge.certificates_from.contains(&claim.source) {
                    true => format!(
                        "declare a certificate, or ask the owner of source `{other}` to add `{}` to `shared_with` of it",
                        printable(source)
                    ),
                    false => format!(
                        "declare a certificate, or add `certificates_from: [{other}]` to use that of source `{other}`"
                    ),
                };
                found.push((wanted.key.clone(), fault.help(help)));
            }
        }
    }
    found
}

/// Whether an edge presents a certificate of its source for a host that no certificate that the source declares covers.
pub(crate) fn depends_on(edge: &Entry, certificate: &Entry, desired: &BTreeMap<Key, Desired>) -> bool {
    let Some(spec) = edge.spec_as::<HttpsEdge>() else { return false };
    let of_kind = || Desired::of_kind(desired, Kind::TlsCertificate);
    let declared = || of_kind().filter_map(|wanted| wanted.spec_as::<TlsCertificate>());
    tls_hosts(spec).any(|(_, host)| presents(edge, certificate, &host) && !declared().any(|it| covers(it, &host)))
}

/// An edge that has no certificate for a host any more, because of a change of another source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostCertificate {
    /// The certificate that the edge presented.
    pub certificate: Key,
    /// The name or ID of the edge.
    edge: String,
    /// The source of the edge, if it has one.
    source: Option<String>,
    host: String,
}

impl Display for LostCertificate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "this leaves HttpsEdge {}", printable(&self.edge))?;
        if let Some(source) = &self.source {
            write!(f, " of source `{}`", printable(source))?;
        }
        write!(f, " without a certificate for `{}`", printable(&self.host))
    }
}

/// Returns the hosts of edges whose last certificate goes with a change of certificates, from the states before and after it.
/// What a source does to its own edges is its own affair.
pub(crate) fn lost_certificates<'k>(
    changed: impl Iterator<Item = &'k Key>,
    before: &Snapshot,
    after: &Snapshot,
) -> Vec<LostCertificate> {
    let changed = changed.filter(|key| key.kind == Kind::TlsCertificate).filter_map(|key| before.get(key));
    let given_up: Vec<&Entry> = changed.filter(|entry| is_given_up(entry, after)).map(AsRef::as_ref).collect();
    let affected: BTreeSet<String> =
        given_up.iter().filter_map(|entry| entry.spec_as::<TlsCertificate>()).flat_map(names).collect();
    if affected.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for edge in after.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        let (Some(then), Some(spec)) = (before.get(&edge.key), edge.spec_as::<HttpsEdge>()) else { continue };
        let is_of_other = |it: &Entry| it.source() != edge.source();
        let hosts: BTreeSet<String> = tls_hosts(spec).map(|(_, host)| host).collect();
        for host in hosts {
            let is_affected = affected.contains(&host) || wildcard_of(&host).is_some_and(|it| affected.contains(&it));
            let is_lost = |it: &Entry| {
                let is_foreign = is_of_other(it) || after.get(&it.key).is_some_and(|now| is_of_other(now));
                is_foreign && presents(then, it, &host)
            };
            let has_one = || {
                let mut certificates = after.newest_first(Kind::TlsCertificate, None, u64::MAX);
                certificates.any(|certificate| presents(edge, certificate, &host))
            };
            if is_affected
                && let Some(certificate) = given_up.iter().find(|it| is_lost(it))
                && !has_one()
            {
                let (edge, source) = (after.full_name(edge), edge.source().map(str::to_owned));
                found.push(LostCertificate { certificate: certificate.key.clone(), edge, source, host });
            }
        }
    }
    found
}

/// Whether a certificate has another source afterwards, is shared with others, or is not valid for all of its names any more.
fn is_given_up(before: &Entry, after: &Snapshot) -> bool {
    let valid_for = |entry: &Entry| -> BTreeSet<String> {
        entry.spec_as::<TlsCertificate>().map(names).into_iter().flatten().collect()
    };
    let shared_with = |entry: &Entry| entry.spec_as::<TlsCertificate>().and_then(|it| it.shared_with.clone());
    let Some(now) = after.get(&before.key) else { return true };
    now.source() != before.source()
        || shared_with(now) != shared_with(before)
        || !valid_for(now).is_superset(&valid_for(before))
}

/// Whether an edge can present a certificate for a host.
fn presents(edge: &Entry, certificate: &Entry, host: &str) -> bool {
    let (Some(spec), Some(pem)) = (edge.spec_as::<HttpsEdge>(), certificate.spec_as::<TlsCertificate>()) else {
        return false;
    };
    let presented = presentation((spec, edge.claim.as_deref()), (pem, certificate.claim.as_deref()));
    presented != Presentation::Never && covers(pem, host)
}
