//! The line of states at the top of the overview: each one leads to the section that tells more.

use maud::{Markup, html};

use super::invariants;
use super::server_health::Readiness;
use crate::server::dashboard::certificates::count_without_certificate;
use crate::server::dashboard::drift;
use crate::server::dashboard::elements::{Tone, badge};
use crate::server::dashboard::page::PageRequest;
use crate::server::dashboard::sources::tone;
use crate::server::operations::sources::view::{SourceState, SourceView};
use crate::server::prelude::*;
use crate::server::telemetry::metrics::inventory::Expiry;

/// A state: the section, how it looks, and a few words.
type StatusPart = (&'static str, Tone, String);

/// The states of the sources, access, certificates, gateways, invariants and the server. So many changes `opened` access lately, and
/// `soon` are the certificates that have expired or do so soon.
pub(in crate::server::dashboard) fn status_line(
    request: &PageRequest,
    sources: &[SourceView],
    opened: usize,
    soon: &[Expiry],
    readiness: &Readiness,
) -> Markup {
    let mut parts = if request.lacks_writer {
        vec![("#sources", Tone::Warning, "sources unknown".to_owned())]
    } else {
        of_sources(sources)
    };
    if opened > 0 {
        parts.push(("#opened", Tone::Bad, format!("{} opened access", number_of(opened, "change"))));
    }
    parts.extend(of_invariants(request));
    parts.extend(of_certificates(request, soon));
    let behind = request.app.telemetry.gateways.all();
    let behind = behind.iter().filter(|read| read.revision < request.snapshot.revision).count();
    if behind > 0 {
        parts.push(("#gateways", Tone::Warning, format!("{} behind", number_of(behind, "gateway"))));
    }
    parts.push(of_server(readiness));
    html! {
        ul.status aria-label="State" { @for (to, tone, text) in &parts { li { a href=(to) { (badge(*tone, text)) } } } }
    }
}

fn of_sources(sources: &[SourceView]) -> Vec<StatusPart> {
    let followed: Vec<&SourceView> = sources.iter().filter(|view| view.is_followed()).collect();
    let count = |state: SourceState| followed.iter().filter(|view| view.state == state).count();
    let (live, all) = (count(SourceState::Synced), followed.len());
    let sources_tone = if live == all {
        Tone::Good
    } else if followed.iter().any(|view| tone(view.state) == Tone::Bad) {
        Tone::Bad
    } else {
        Tone::Warning
    };
    let first = match all {
        0 => (Tone::Neutral, "no followed source".to_owned()),
        _ => (sources_tone, format!("{live} of {} live", number_of(all, "source"))),
    };
    let held = followed.iter().filter(|view| view.is_held()).count();
    let by_hand: usize = sources.iter().map(drift::count).sum();
    let told = [
        ("#sources", count(SourceState::Suspended), "suspended"),
        ("#sources", held, "held by a rollback"),
        ("#drift", by_hand, "changed by hand"),
    ];
    let told = told.into_iter().filter(|(_, count, _)| *count > 0);
    let told = told.map(|(to, count, words)| (to, Tone::Warning, format!("{count} {words}")));
    std::iter::once(("#sources", first.0, first.1)).chain(told).collect()
}

/// Whether an invariant is refuted or not proven.
pub(in crate::server::dashboard) fn lacks_proof(request: &PageRequest) -> bool {
    let is_news = |(count, tone, _): (usize, Tone, &str)| count > 0 && matches!(tone, Tone::Bad | Tone::Warning);
    invariants::counts(request).into_iter().any(is_news)
}

/// The answers about invariants. One that is about no request is no news.
fn of_invariants(request: &PageRequest) -> Vec<StatusPart> {
    let counts = invariants::counts(request).into_iter();
    let told = counts.filter(|(count, tone, _)| *count > 0 && *tone != Tone::Neutral);
    told.map(|(count, tone, words)| ("#invariants", tone, format!("{} {words}", number_of(count, "invariant"))))
        .collect()
}

fn of_certificates(request: &PageRequest, soon: &[Expiry]) -> Vec<StatusPart> {
    let expired = soon.iter().filter(|it| it.second < request.now.as_second()).count();
    let (expiring, without) = (soon.len() - expired, count_without_certificate(request));
    let told = [
        (expired, Tone::Bad, "certificate", "expired"),
        (expiring, Tone::Warning, "certificate", "to expire soon"),
        (without, Tone::Warning, "host:port", "without a certificate"),
    ];
    let told = told.into_iter().filter(|(count, ..)| *count > 0);
    told.map(|(count, tone, what, words)| ("#certificates", tone, format!("{} {words}", number_of(count, what))))
        .collect()
}

fn of_server(readiness: &Readiness) -> StatusPart {
    let (tone, text) = match readiness {
        Ok(warnings) if warnings.is_empty() => (Tone::Good, "server ready".to_owned()),
        Ok(warnings) => (Tone::Warning, format!("server ready, {}", number_of(warnings.len(), "warning"))),
        Err(_) => (Tone::Bad, "server not ready".to_owned()),
    };
    ("#server", tone, text)
}
