//! The overview: what somebody who was woken up wants to know, in one look.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::access_effect::{AccessEffect, compared_revision};
use super::certificates::{expiring, is_soon};
use super::elements::{DAY, HOUR, Tone, badge, commit, more, nothing, revision_link, source_link, time};
use super::health::status_line::{lacks_proof, status_line};
use super::health::{invariants, server_health};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::revisions::{TimelinePage, search, unavailable};
use super::sources::{card, last_records, state_badge, unknown};
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
/// The most sources and certificates that are shown.
const MOST_SOURCES: usize = 20;
const MOST_CERTIFICATES: usize = 5;

/// A section: its ID, its title and its content.
type Section = (&'static str, &'static str, Markup);

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let sources = views(&request.app, &request.snapshot, None);
    let (soon, readiness) = (expiring_soon(request), readiness(&request.app));
    let records = last_day(request)?;
    // One section says that the history is unavailable.
    let changes = records.as_deref().map_or_else(unavailable, |records| last_changes(request, records));
    let openings = records.as_deref().map(|records| Openings::new(request, records));
    let opened = openings.as_ref().map_or(0, |openings| openings.opened.len());
    let access = openings.map_or_else(|| nothing("Not known without the history."), |it| it.shown(request));
    let (mut news, mut others) = (vec![("opened", "Opened access in the last 24 hours", access)], Vec::new());
    let proofs = if lacks_proof(request) { &mut news } else { &mut others };
    proofs.push(("invariants", "Invariants", invariants::in_short(request)));
    news.push(("changes", "What changed last?", changes));
    others.push(("keys", "Keys in use", keys::in_use(request)));
    others.push(("server", "The server", server_health::summary(request, &readiness)));
    let body = html! {
        (status_line(request, &sources, opened, &soon, &readiness))
        (columns([&[("sources", "Are the manifests live?", live_sources(request, &sources)?)], &news]))
        (columns([
            &[
                ("drift", "Changed by hand", drift::of_all(request, &sources)),
                ("certificates", "Certificates that expire", certificate_list(request, &soon)),
                ("gateways", "Gateways", server_health::gateways(request)),
            ],
            &others,
        ]))
    };
    Ok(PageContent { title: "Overview".to_owned(), section: "Overview", body })
}

/// Two columns of sections. A narrow screen has them one after the other.
fn columns(columns: [&[Section]; 2]) -> Markup {
    html! {
        div.columns {
            @for column in columns {
                div { @for (id, title, body) in column { section aria-labelledby=(id) { h2 id=(id) { (title) } (body) } } }
            }
        }
    }
}

fn live_sources(request: &PageRequest, sources: &[SourceView]) -> Result<Markup, ApiError> {
    // Nobody follows the others, so whether they are in sync is for those who apply them.
    let is_broken =
        |view: &&SourceView| !request.lacks_writer && view.is_followed() && view.state != SourceState::Synced;
    let (broken, synced): (Vec<&SourceView>, Vec<&SourceView>) = sources.iter().partition(is_broken);
    // The last changes say if the history is unavailable.
    let records = last_records(request)?.unwrap_or_default();
    Ok(html! {
        @if request.lacks_writer { (unknown()) }
        @else if sources.is_empty() { (nothing("No sources yet. Apply manifests, or follow a repository.")) }
        @else if !sources.iter().any(SourceView::is_followed) { (nothing("The server follows no source, so it does not know.")) }
        @else if broken.is_empty() { p { (badge(Tone::Good, "yes")) " All followed sources are in sync." } }
        @for view in broken.iter().take(MOST_SOURCES) { (card(request, view, records.get(&view.name), false)) }
        @if broken.len() > MOST_SOURCES {
            p { a href=(request.to("sources")) { (broken.len() - MOST_SOURCES) " more that are not in sync" } }
        }
        @if !synced.is_empty() {
            ul.brief {
                @for view in synced.iter().take(MOST_SOURCES) {
                    li {
                        (source_link(request, &view.name)) " "
                        @if !request.lacks_writer { (state_badge(request, view)) " " }
                        @if let Some(applied) = &view.last_applied {
                            (commit(&applied.commit, &request.forge(&view.name)))
                            @if view.is_followed() { " synced " } @else { " applied " } (time(&applied.at, request.now)) ". "
                        }
                        @if let Some(last) = records.get(&view.name) { (last.shown(request, &view.name)) }
                    }
                }
            }
            @if synced.len() > MOST_SOURCES { p { a href=(request.to("sources")) { "All sources" } } }
        }
    })
}

fn since(request: &PageRequest, seconds: i64) -> i64 {
    request.now.as_second().saturating_sub(seconds)
}

/// The records of the last day, or the last ones, newest first; none if the history is unavailable.
fn last_day(request: &PageRequest) -> Result<Option<Vec<CommitHeader>>, ApiError> {
    let (mut headers, yesterday): (Vec<CommitHeader>, i64) = (Vec::new(), since(request, DAY));
    let end = search(request, &HistoryFilter::default(), u64::MAX, MOST_RECORDS, &mut |record| {
        if headers.len() >= FEWEST_ATTEMPTS && record.at.as_second() < yesterday {
            return ControlFlow::Break(());
        }
        headers.push(record);
        ControlFlow::Continue(())
    })?;
    Ok(end.map(|_| headers))
}

fn entry(request: &PageRequest, header: &CommitHeader) -> Markup {
    let item = HistoryItem::from_header(header, "", &request.snapshot);
    revisions::entry(request, &item, TimelinePage::Overview)
}

/// What the revisions of the last day did to access.
#[derive(Default)]
struct Openings<'h> {
    opened: Vec<&'h CommitHeader>,
    /// Changes that only made routes that nothing restricts.
    open_routes: Vec<(u64, Arc<AccessEffect>)>,
    /// How many were not compared, or only in part.
    uncompared: usize,
    /// Whether earlier ones were not read.
    is_cut: bool,
}

impl<'h> Openings<'h> {
    fn new(request: &PageRequest, records: &'h [CommitHeader]) -> Self {
        let mut found = Self { is_cut: records.len() >= MOST_RECORDS as usize, ..Self::default() };
        let yesterday = since(request, DAY);
        for header in records.iter().filter(|header| header.at.as_second() >= yesterday && header.changed > 0) {
            let Some(revision) = header.revision else { continue };
            match compared_revision(Some(revision), header.changed).and_then(|revision| request.effect(revision)) {
                Some(effect) if effect.opens() => found.opened.push(header),
                Some(effect) => {
                    found.uncompared += usize::from(effect.is_partial);
                    if effect.is_new_and_open {
                        found.open_routes.push((revision, effect));
                    }
                }
                None => found.uncompared += 1,
            }
        }
        found
    }

    fn shown(&self, request: &PageRequest) -> Markup {
        let Self { opened, open_routes, uncompared, is_cut } = self;
        html! {
            @if opened.is_empty() { (nothing("No change is known to have opened access.")) }
            @else { ol.timeline { @for header in opened.iter().take(MOST_OPENINGS) { (entry(request, header)) } } }
            (more(opened.len(), MOST_OPENINGS))
            @if !open_routes.is_empty() {
                ul.brief {
                    @for (revision, effect) in open_routes.iter().take(MOST_ATTEMPTS) {
                        li { (badge(Tone::Warning, "new open route")) " " (effect.open_routes) ", " (revision_link(request, "revision", *revision)) }
                    }
                }
                (more(open_routes.len(), MOST_ATTEMPTS))
            }
            @if *uncompared > 0 { p { (badge(Tone::Neutral, "requests not compared")) " in " (number_of(*uncompared, "revision")) } }
            @if *is_cut { p.nothing { "Only the last " (MOST_RECORDS) " attempts are looked at." } }
        }
    }
}

/// The attempts of the last hour.
fn last_changes(request: &PageRequest, records: &[CommitHeader]) -> Markup {
    let an_hour_ago = since(request, HOUR);
    let is_shown = |(place, header): &(usize, &CommitHeader)| {
        *place < FEWEST_ATTEMPTS || *place < MOST_ATTEMPTS && header.at.as_second() >= an_hour_ago
    };
    let shown = records.iter().enumerate().take_while(is_shown).count();
    let hidden = records.iter().skip(shown).filter(|header| header.at.as_second() >= an_hour_ago).count();
    html! {
        @if shown == 0 { (nothing("Nothing has been applied yet.")) }
        ol.timeline { @for header in records.iter().take(shown) { (entry(request, header)) } }
        @if hidden > 0 { p { "and " (hidden) " more in the last hour" } }
        p { a href=(request.to("revisions")) { "All revisions" } }
    }
}

fn expiring_soon(request: &PageRequest) -> Vec<Expiry> {
    expiring(request).into_iter().filter(|it| is_soon(it.second, request.now)).collect()
}

fn certificate_list(request: &PageRequest, soon: &[Expiry]) -> Markup {
    html! {
        @if soon.is_empty() { (nothing("None in the next 30 days.")) }
        @else { (certificates::table(request, soon.get(..MOST_CERTIFICATES).unwrap_or(soon))) }
        (more(soon.len(), MOST_CERTIFICATES))
        (certificates::without_certificate_link(request))
        p { a href=(request.to("certificates")) { "All certificates" } }
    }
}
