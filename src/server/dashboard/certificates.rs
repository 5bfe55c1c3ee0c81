//! The certificates and authorities, those that expire first, and what uses them.

use maud::{Markup, html};

use super::elements::{Tone, badge, nothing, pager, time};
use super::page::{DashboardPage, PageContent, PageRequest, ROWS};
use crate::model::{CertificateAuthority, Entry, TlsCertificate};
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::metrics::inventory::Expiry;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/certificates", render);

/// How many seconds before its end a certificate is marked.
const SOON: i64 = 30 * 24 * 3600;
/// The text in place of an empty table.
const NONE: &str = "There is no certificate here. The gateway presents certificates of the kind TlsCertificate, and asks \
                    clients for those of a CertificateAuthority.";
/// The most names and users in a row.
const MOST_NAMES: usize = 5;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let all = expiring(request);
    let from = request.skipped();
    let rows: Vec<Expiry> = all.iter().skip(from).take(ROWS).cloned().collect();
    let shown = from.saturating_add(rows.len());
    let next = (shown < all.len()).then(|| shown.to_string());
    let body = html! {
        @if rows.is_empty() { (nothing(NONE)) }
        @else { (table(request, &rows)) }
        (pager(request, "from", from == 0, next, "Next page"))
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

/// A table of certificates.
pub(super) fn table(request: &PageRequest, rows: &[Expiry]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Certificates" {
            table {
                thead { tr {
                    th scope="col" { "Certificate" } th scope="col" { "Expires" } th scope="col" { "For" } th scope="col" { "Used by" }
                } }
                tbody { @for row in rows { (certificate(request, row)) } }
            }
        }
    }
}

fn certificate(request: &PageRequest, row: &Expiry) -> Markup {
    let keys = [Kind::TlsCertificate, Kind::CertificateAuthority].map(|kind| Key::new(kind, Id::new(&row.id)));
    let entry = keys.iter().find_map(|key| request.snapshot.get(key));
    let names: Vec<String> = entry.map(|entry| names_of(entry)).unwrap_or_default();
    let certificate = entry.and_then(|entry| entry.spec_as::<TlsCertificate>());
    let description = certificate.map_or("", |certificate| certificate.description.as_str());
    let name = if row.name.is_empty() { description } else { row.name.as_str() };
    let at = Timestamp::from_second(row.second).map(|at| at.to_string()).unwrap_or_default();
    let users: Vec<&Key> =
        entry.map(|entry| request.snapshot.users(&entry.key).take(MOST_NAMES).collect()).unwrap_or_default();
    html! {
        tr {
            th scope="row" {
                @if name.is_empty() { code { (row.id) } } @else { span title=(row.id) { (escaped(name)) } }
                @if let Some(source) = entry.and_then(|entry| entry.source()) { " " small { "of " (source) } }
            }
            td {
                @if row.second < request.now.as_second() { (badge(Tone::Bad, "expired")) " " }
                @else if is_soon(row.second, request.now) { (badge(Tone::Warning, "soon")) " " }
                (time(&at, request.now))
            }
            td {
                @for name in names.iter().take(MOST_NAMES) { code { (name) } " " }
                @if names.len() > MOST_NAMES { "and " (names.len() - MOST_NAMES) " more" }
            }
            td {
                @if users.is_empty() { "–" }
                @for user in users {
                    @match request.to_resource(user) {
                        Some(link) => a href=(link) { (request.snapshot.name_of(user)) },
                        None => (request.snapshot.name_of(user)),
                    }
                    " "
                }
            }
        }
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
