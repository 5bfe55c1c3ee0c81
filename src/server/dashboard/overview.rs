//! The overview: what somebody who was woken up wants to know, in one look.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::access_effect::compared_revision;
use super::certificates::{expiring, is_soon};
use super::elements::{DAY, HOUR, Tone, author, badge, commit, more, nothing, source_link, time};
use super::health::status_line::status_line;
use super::health::{invariants, server_health};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::revisions::{search, unavailable};
use super::sources::{card, last_attempts, unknown};
use super::{certificates, drift, keys, revisions};
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::HistoryItem;
use crate::server::operations::ready::readiness;
use crate::server::operations::sources::view::{SourceState, SourceView};
use crate::server::operations::sources::views;
use crate::server::prelude::*;
use crate::server::telemetry::metrics::inventory::Expiry;
use crate::store::{CommitHeader, HistoryFilter};

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/", render).of_history().of_writer();

/// The fewest attempts that are shown, the most of the last hour, and the most of those that opened access.
const FEWEST_ATTEMPTS: usize = 5;
const MOST_ATTEMPTS: usize = 10;
const MOST_OPENINGS: usize = 20;
/// How many records are read for them.
const MOST_RECORDS: u64 = 1000;
/// The sections in the left one of two columns: those of the manifests.
const LEFT: usize = 3;
/// The most sources and certificates that are shown.
const MOST_SOURCES: usize = 20;
const MOST_CERTIFICATES: usize = 5;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let sources = views(&request.app, &request.snapshot, None);
    let (soon, readiness) = (expiring_soon(request), readiness(&request.app));
    let sections = [
        ("sources", "Are the manifests live?", live_sources(request, &sources)?),
        ("drift", "Changed by hand", drift::of_all(request, &sources)),
        ("invariants", "Invariants", invariants::in_short(request)),
        ("changes", "What changed last?", last_changes(request)?),
        ("certificates", "Certificates that expire", certificate_list(request, &soon)),
        ("gateways", "Gateways", server_health::gateways(request)),
        ("keys", "Keys in use", keys::in_use(request)),
        ("server", "The server", server_health::summary(request, &readiness)),
    ];
    let (left, right) = sections.split_at(LEFT);
    let body = html! {
        (status_line(request, &sources, &soon, &readiness))
        div.columns {
            @for column in [left, right] {
                div { @for (id, title, body) in column { section aria-labelledby=(id) { h2 id=(id) { (title) } (body) } } }
            }
        }
    };
    Ok(PageContent { title: "Overview".to_owned(), section: "Overview", body })
}

fn live_sources(request: &PageRequest, sources: &[SourceView]) -> Result<Markup, ApiError> {
    // Nobody follows the others, so whether they are in sync is for those who apply them.
    let is_broken =
        |view: &&SourceView| !request.lacks_writer && view.is_followed() && view.state != SourceState::Synced;
    let (broken, synced): (Vec<&SourceView>, Vec<&SourceView>) = sources.iter().partition(is_broken);
    // The last changes say if the history is unavailable.
    let attempts = last_attempts(request)?.unwrap_or_default();
    Ok(html! {
        @if request.lacks_writer { (unknown()) }
        @else if sources.is_empty() { (nothing("No sources yet. Apply manifests, or follow a repository.")) }
        @else if !sources.iter().any(SourceView::is_followed) { (nothing("The server follows no source, so it does not know.")) }
        @else if broken.is_empty() { p { (badge(Tone::Good, "yes")) " All followed sources are in sync." } }
        @for view in broken.iter().take(MOST_SOURCES) { (card(request, view, attempts.get(&view.name))) }
        @if broken.len() > MOST_SOURCES {
            p { a href=(request.to("sources")) { (broken.len() - MOST_SOURCES) " more that are not in sync" } }
        }
        @if !synced.is_empty() {
            ul.brief {
                @for view in synced.iter().take(MOST_SOURCES) {
                    li {
                        (source_link(request, &view.name)) " "
                        @if request.lacks_writer {}
                        @else if view.is_followed() { (badge(Tone::Good, view.state)) }
                        @else { (badge(Tone::Neutral, "not followed")) }
                        @let forge = request.forge(&view.name);
                        @if let Some(applied) = &view.last_applied {
                            " " (commit(&applied.commit, &forge)) @if view.is_followed() { " synced " } @else { " applied " } (time(&applied.at, request.now))
                        }
                        @if let Some(attempt) = attempts.get(&view.name) { ", last change " (time(&attempt.created_at, request.now)) ", by " (author(&attempt.author, &forge)) }
                    }
                }
            }
            @if synced.len() > MOST_SOURCES { p { a href=(request.to("sources")) { "All sources" } } }
        }
    })
}

/// The attempts of the last hour, and what has opened access since yesterday.
fn last_changes(request: &PageRequest) -> Result<Markup, ApiError> {
    let since = |seconds: i64| request.now.as_second().saturating_sub(seconds);
    let (an_hour_ago, yesterday) = (since(HOUR), since(DAY));
    let mut headers: Vec<CommitHeader> = Vec::new();
    let end = search(request, &HistoryFilter::default(), u64::MAX, MOST_RECORDS, &mut |record| {
        if headers.len() >= FEWEST_ATTEMPTS && record.at.as_second() < yesterday {
            return ControlFlow::Break(());
        }
        headers.push(record);
        ControlFlow::Continue(())
    })?;
    if end.is_none() {
        return Ok(unavailable());
    }
    let is_recent = |(place, header): &(usize, &CommitHeader)| {
        *place < FEWEST_ATTEMPTS || *place < MOST_ATTEMPTS && header.at.as_second() >= an_hour_ago
    };
    let recent = headers.iter().enumerate().take_while(is_recent).count();
    let (recent, earlier) = headers.split_at(recent);
    let hidden = earlier.iter().filter(|header| header.at.as_second() >= an_hour_ago).count();
    let (mut openings, mut unknown): (Vec<&CommitHeader>, usize) = (Vec::new(), 0);
    for header in earlier.iter().filter(|header| header.revision.is_some() && header.changed > 0) {
        match compared_revision(header.revision, header.changed).and_then(|revision| request.effect(revision)) {
            Some(effect) if effect.opens() => openings.push(header),
            Some(_) => {}
            None => unknown += 1,
        }
    }
    let entry =
        |header: &CommitHeader| revisions::entry(request, &HistoryItem::from_header(header, "", &request.snapshot));
    Ok(html! {
        @if recent.is_empty() { (nothing("Nothing has been applied yet.")) }
        ol.timeline { @for header in recent { (entry(header)) } }
        @if hidden > 0 { p { "and " (hidden) " more in the last hour" } }
        @if !openings.is_empty() {
            h3 { "Opened access in the last 24 hours" }
            ol.timeline { @for header in openings.iter().take(MOST_OPENINGS) { (entry(header)) } }
            (more(openings.len(), MOST_OPENINGS))
        }
        @if unknown > 0 {
            p.nothing { "What " (number_of(unknown, "earlier revision")) " of the last 24 hours did to access is not known yet." }
        }
        @if headers.len() >= MOST_RECORDS as usize {
            p.nothing { "Only the last " (MOST_RECORDS) " attempts are looked at." }
        }
        p { a href=(request.to("revisions")) { "All revisions" } }
    })
}

fn expiring_soon(request: &PageRequest) -> Vec<Expiry> {
    expiring(request).into_iter().filter(|it| is_soon(it.second, request.now)).collect()
}

fn certificate_list(request: &PageRequest, soon: &[Expiry]) -> Markup {
    html! {
        @if soon.is_empty() { (nothing("None in the next 30 days.")) }
        @else { (certificates::table(request, soon.get(..MOST_CERTIFICATES).unwrap_or(soon))) }
        (more(soon.len(), MOST_CERTIFICATES))
        (certificates::bare_count(request))
        p { a href=(request.to("certificates")) { "All certificates" } }
    }
}
