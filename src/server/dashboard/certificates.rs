//! The certificates and authorities, those that expire first, and what uses them.

use maud::{Markup, html};

use super::elements::{
    self, DAY, Tone, badge, date, first_of, first_texts, more, nothing, numbered_pager, resource_link, time,
};
use super::page::{DashboardPage, PageContent, PageRequest, ROWS};
use crate::model::{CertificateAuthority, Entry, HttpsEdge, TlsCertificate};
use crate::server::gateway_feed::presented::{TlsHostport, TlsHostports};
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::metrics::inventory::{Expiry, expiry};

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/certificates", render).taking(&["from"]);

/// How many seconds before its end a certificate is marked.
const SOON: i64 = 30 * DAY;
/// How many seconds before and after its end the days are told, too.
const NEAR: i64 = 366 * DAY;
/// The text in place of an empty table.
const NONE: &str = "There is no certificate here. The gateway presents certificates of the kind TlsCertificate, and asks \
                    clients for those of a CertificateAuthority.";
/// The most names and users in a row, and the most hostports in a list.
const MOST_NAMES: usize = 5;
const MOST_HOSTPORTS: usize = 100;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let all = expiring(request);
    let rows: Vec<Expiry> = all.iter().skip(request.skipped()).take(ROWS).cloned().collect();
    let body = html! {
        @if rows.is_empty() { (nothing(NONE)) }
        @else { (table(request, &rows)) }
        (numbered_pager(request, rows.len(), all.len(), "Next page"))
        (without_certificate(request))
    };
    Ok(PageContent { title: "Certificates".to_owned(), section: "Certificates", body })
}

/// The certificates that expire first.
pub(super) fn expiring(request: &PageRequest) -> Vec<Expiry> {
    request.app.telemetry.inventories.count(&request.snapshot).expiries.clone()
}

/// Whether a certificate has expired or does so soon.
pub(super) fn is_soon(second: i64, now: Timestamp) -> bool {
    second < now.as_second().saturating_add(SOON)
}

/// The end of the validity of a certificate: the date, the days until then, and a warning in time.
fn end(second: i64, now: Timestamp) -> Markup {
    let Ok(at) = Timestamp::from_second(second) else { return html! {} };
    html! {
        (date(at))
        @if second.saturating_sub(now.as_second()).abs() < NEAR { " " small { (time(&at.to_string(), now)) } }
        @if second < now.as_second() { " " (badge(Tone::Bad, "expired")) }
        @else if is_soon(second, now) { " " (badge(Tone::Warning, "expires soon")) }
    }
}

/// The certificate that gateways present at a hostport, and its end.
pub(super) fn presented(request: &PageRequest, hostport: &TlsHostport) -> Markup {
    let Some((id, is_valid)) = hostport.presented(request.now) else {
        return html! { (badge(Tone::Warning, "no certificate")) " covers the host: the gateway needs one of its own" };
    };
    let entry = request.snapshot.get(&Key::new(Kind::TlsCertificate, Id::new(id)));
    let name = entry.and_then(|entry| entry.name()).unwrap_or(id);
    html! {
        "presents the certificate " a href=(request.to("certificates")) title=(id) { (name) }
        @if !is_valid { " " (badge(Tone::Bad, "not valid now")) }
        @if let Some(it) = entry.and_then(|entry| expiry(entry)) { ", valid until " (end(it.second, request.now)) }
    }
}

/// The hostports that terminate TLS and have no certificate; nothing if there are none.
fn without_certificate(request: &PageRequest) -> Markup {
    let hostports = request.app.dashboard.hostports.at(&request.snapshot);
    let (shown, count) =
        (hostports.without_certificate().take(MOST_HOSTPORTS), hostports.without_certificate().count());
    html! {
        @if count > 0 {
            h2 id="without" { "Host:ports without a certificate" }
            p { (without_certificate_text(count)) ". Clients that connect there over TLS are refused, unless the gateway has other certificates." }
            ul.brief { @for hostport in shown { li { (resource_link(request, &hostport.edge, &hostport.hostport)) } } }
            (more(count, MOST_HOSTPORTS))
        }
    }
}

/// How many hostports terminate TLS and have no certificate.
pub(super) fn count_without_certificate(request: &PageRequest) -> usize {
    request.app.dashboard.hostports.at(&request.snapshot).without_certificate().count()
}

/// How many hostports have no certificate, with a link to them; nothing if all have one.
pub(super) fn without_certificate_link(request: &PageRequest) -> Markup {
    let count = count_without_certificate(request);
    html! {
        @if count > 0 { p { (badge(Tone::Warning, "no certificate")) " " a href=(request.to("certificates#without")) { (without_certificate_text(count)) } } }
    }
}

fn without_certificate_text(count: usize) -> String {
    let verbs = if count == 1 { "terminates TLS and has" } else { "terminate TLS and have" };
    format!("{} {verbs} no certificate", number_of(count, "host:port"))
}

/// A table of certificates.
pub(super) fn table(request: &PageRequest, rows: &[Expiry]) -> Markup {
    let hostports = request.app.dashboard.hostports.at(&request.snapshot);
    let rows = rows.iter().map(|row| certificate(request, row, &hostports));
    elements::table("Certificates", &["Certificate", "Expires", "For", "Used by"], rows)
}

fn certificate(request: &PageRequest, row: &Expiry, hostports: &TlsHostports) -> Vec<Markup> {
    let keys = [Kind::TlsCertificate, Kind::CertificateAuthority].map(|kind| Key::new(kind, Id::new(&row.id)));
    let entry = keys.iter().find_map(|key| request.snapshot.get(key));
    let names: Vec<String> = entry.map(|entry| names_of(entry)).unwrap_or_default();
    let certificate = entry.and_then(|entry| entry.spec_as::<TlsCertificate>());
    let description = certificate.map_or("", |certificate| certificate.description.as_str());
    let name = if row.name.is_empty() { description } else { row.name.as_str() };
    vec![
        html! {
            @if name.is_empty() { code { (row.id) } } @else { span title=(row.id) { (name) } }
            @if let Some(source) = entry.and_then(|entry| entry.source()) { " " small { "of " (source) } }
        },
        end(row.second, request.now),
        first_texts(&names, MOST_NAMES),
        html! {
            @match entry {
                Some(entry) if certificate.is_some() => (presented_at(request, entry, hostports)),
                Some(entry) => (users(request, &entry.key)),
                None => {},
            }
        },
    ]
}

/// The hostports that present a certificate, or why none does.
fn presented_at(request: &PageRequest, certificate: &Entry, hostports: &TlsHostports) -> Markup {
    let id = certificate.key.id.as_str();
    let (presenting, others) = hostports.of_certificate(id, request.now);
    let link = |it: &&TlsHostport| resource_link(request, &it.edge, &it.hostport);
    let others_presenting = presenting.get(MOST_NAMES..).unwrap_or_default();
    html! {
        @for it in presenting.iter().take(MOST_NAMES) { (link(it)) " " }
        @if !others_presenting.is_empty() {
            details { summary { "and " (others_presenting.len()) " more" } (first_of(others_presenting, MOST_HOSTPORTS, link)) }
        }
        @if presenting.is_empty() {
            @if others > 0 { "none now: " (number_of(others, "host:port")) " could, and prefer another one" }
            @else {
                "no host:port"
                @if let Some(first) = hostports.withholding(id) { (withheld(request, certificate, first)) }
            }
        }
    }
}

/// Why a hostport without a certificate does not present this one: the sources do not agree on it.
fn withheld(request: &PageRequest, certificate: &Entry, hostport: &TlsHostport) -> Markup {
    let edge = request.snapshot.get(&hostport.edge);
    let source = certificate.source().unwrap_or_default();
    let names = |edge: &HttpsEdge| edge.certificates_from.iter().any(|it| it == source);
    let is_named = edge.and_then(|edge| edge.spec_as::<HttpsEdge>()).is_some_and(names);
    html! {
        ". " (resource_link(request, &hostport.edge, &hostport.hostport)) " has none, but its edge is of "
        @match edge.and_then(|edge| edge.source()) {
            None => "no source: only edges of sources present this one",
            Some(other) if is_named => { "source " (other) ": add that to " code { "shared_with" } " of the certificate" },
            Some(other) => { "source " (other) ": add " code { "certificates_from: [" (source) "]" } " to the edge" },
        }
    }
}

/// The resources that reference an authority.
fn users(request: &PageRequest, authority: &Key) -> Markup {
    let users: Vec<&Key> = request.snapshot.users(authority).collect();
    html! {
        @if users.is_empty() { "nothing" }
        (first_of(&users, MOST_NAMES, |user| resource_link(request, user, &request.snapshot.full_name_at(user, ""))))
    }
}

/// The names that a certificate is for, or the name of an authority.
fn names_of(entry: &Entry) -> Vec<String> {
    if let Some(certificate) = entry.spec_as::<TlsCertificate>() {
        let facts = certificate.certificate_pem.read().facts().ok();
        let names = facts.map(|facts| &facts.subject_alternative_names);
        return names.map(|names| names.dns_names.iter().chain(&names.ips).cloned().collect()).unwrap_or_default();
    }
    let authority = entry.spec_as::<CertificateAuthority>();
    authority.map(|authority| vec![authority.description.clone()]).unwrap_or_default()
}
