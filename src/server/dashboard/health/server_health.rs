//! The server itself: whether it is ready, what it does, what it follows, and which gateways have read what.

use maud::{Markup, html};

use super::invariants;
use crate::server::dashboard::elements::{self, Tone, badge, due, facts, more, name_or, nothing, source_link, time};
use crate::server::dashboard::layout::prose;
use crate::server::dashboard::page::{DashboardPage, PageContent, PageRequest};
use crate::server::dashboard::sources::tone;
use crate::server::http::api_error::ApiError;
use crate::server::limits::slots::Slots;
use crate::server::operations::ready::readiness;
use crate::server::operations::sources::followed_views;
use crate::server::prelude::*;
use crate::server::state::AppState;

/// Warnings of a server that is ready, or why it is not.
pub(super) type Readiness = Result<Vec<String>, String>;

pub(in crate::server::dashboard) static PAGE: DashboardPage = DashboardPage::new("/ui/server", render);

/// The most gateways that are shown.
const MOST_GATEWAYS: usize = 50;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let telemetry = &request.app.telemetry;
    let inventory = telemetry.inventories.count(&request.snapshot);
    let body = html! {
        (summary(request, &readiness(&request.app)))
        h2 { "Followed sources" }
        (followed(request))
        h2 { "Notifications" }
        @match &telemetry.outbox {
            None => (nothing("Nobody is notified of changes.")),
            Some(outbox) => ul.brief {
                @for (target, lag) in outbox.lags() {
                    li { b { (target) } " "
                        @if lag == 0 { (badge(Tone::Good, "up to date")) }
                        @else { (badge(Tone::Warning, format_args!("{} behind", number_of(usize::try_from(lag).unwrap_or(usize::MAX), "revision")))) } }
                }
            },
        }
        h2 { "Work" }
        (work(request))
        h2 { "Resources" }
        ul.brief { @for (kind, count) in &inventory.kinds { li { (kind.to_string()) ": " (*count) } } }
        h2 { "Gateways" }
        (gateways(request))
        h2 id="invariants" { "Invariants" }
        (invariants::all(request))
    };
    Ok(PageContent { title: "Server".to_owned(), section: "Server", body })
}

/// The sources that this server follows: the state that all pages show, the last sync and the next one.
fn followed(request: &PageRequest) -> Markup {
    let followed = followed_views(&request.app, &request.snapshot);
    html! {
        @if followed.is_empty() { (nothing("This server follows no source.")) }
        ul.brief {
            @for view in &followed {
                @let handle = request.app.sources.registry.find(&view.name);
                li { (source_link(request, &view.name)) " " (badge(tone(view.state), view.state)) ", synced "
                    @if let Some(attempt) = &view.last_attempt { (time(&attempt.at, request.now)) } @else { "not yet" }
                    @if !view.next_sync_at.is_empty() { ", next " (due(&view.next_sync_at, request.now)) }
                    @if let Some(fetches) = handle.as_ref().and_then(|handle| handle.settings.fetches.as_ref()) {
                        @match fetches.failure() {
                            Some(failure) => { " " (badge(Tone::Bad, "cannot fetch")) " " (prose(&failure.message)) },
                            None => ", fetched from its repository",
                        }
                    }
                }
            }
        }
    }
}

/// The requests in progress, and the places of those that cost much.
fn work(request: &PageRequest) -> Markup {
    let AppState { access, admissions, .. } = &request.app;
    let refused = |slots: &Slots| slots.refusals().iter().map(|(_, count)| count).sum::<u64>();
    let busy = admissions.all().into_iter().filter(|slots| slots.waiting() > 0 || refused(slots) > 0);
    let busy: Vec<&Slots> = busy.collect();
    let row = |slots: &&Slots| {
        let [running, waiting] = [slots.running(), slots.waiting()].map(|count| html! { (count) });
        vec![html! { (slots.name()) }, running, waiting, html! { (refused(slots)) }]
    };
    html! {
        p { "Requests in progress: " (access.guards.in_flight.count()) }
        @if busy.is_empty() { (nothing("No request waits for its turn, and none was refused for lack of a place.")) }
        @else { (elements::table("Work", &["Class", "Running", "Waiting", "Refused"], busy.iter().map(row))) }
    }
}

/// Whether the server is ready, and what it warns of.
fn ready(readiness: &Readiness) -> Markup {
    html! {
        @match readiness {
            Ok(warnings) => {
                p { (badge(Tone::Good, "ready")) }
                @for warning in warnings { p { (badge(Tone::Warning, "warning")) " " (prose(warning.trim_start_matches("warning: "))) } }
            },
            Err(reason) => p { (badge(Tone::Bad, "not ready")) " " (prose(reason)) },
        }
    }
}

/// The state of the server in a few lines. The readiness comes first: finding it tries what does not work at present, and so
/// tells how the store is.
pub(in crate::server::dashboard) fn summary(request: &PageRequest, readiness: &Readiness) -> Markup {
    let store = request.store();
    let is_away = store.stands_in_since().is_some() || store.health().is_ok() && store.outage().is_some();
    let statistics = store.statistics();
    let writer = store.followed_writer();
    let facts = facts(&[
        (
            "Store",
            html! { @match store.health() {
                _ if is_away => (badge(Tone::Bad, "reads only: no connection to the database")),
                Ok(()) => (badge(Tone::Good, "writable")),
                Err(_) if writer.is_some() => (badge(Tone::Neutral, "another server writes")),
                Err(_) => (badge(Tone::Bad, "not writable")),
            } },
        ),
        ("Revision", html! { (request.snapshot.revision) }),
        ("Resources", html! { (request.snapshot.len()) }),
        (
            "On disk",
            html! { @if statistics.bytes < 1 << 20 { "under 1" } @else { (statistics.bytes / (1 << 20)) } " MiB" },
        ),
        ("History", html! { "records " (statistics.oldest) " to " (store.position()) }),
        (
            "Follows",
            html! { @if let Some(writer) = &writer {
                (writer.name)
                @match &writer.url { Some(url) => { ", which gets the changes at " (url) }, None => ", without sending it changes", }
                ", heard of " (writer.seen.elapsed().as_secs()) " s ago"
            } },
        ),
        (
            "Local copy",
            html! { @let lag = store.copy_lag(); @if lag > 0 { (number_of(usize::try_from(lag).unwrap_or(usize::MAX), "record")) " behind" } },
        ),
        ("Version", html! { (env!("CARGO_PKG_VERSION")) }),
    ]);
    html! { (ready(readiness)) (facts) }
}

/// The gateways that have read from this server, those that are behind first.
pub(in crate::server::dashboard) fn gateways(request: &PageRequest) -> Markup {
    let reads = request.app.telemetry.gateways.all();
    let current = request.snapshot.revision;
    html! {
        @if reads.is_empty() { (nothing("No gateway has read its configuration since this server started.")) }
        ul.brief {
            @for read in reads.iter().take(MOST_GATEWAYS) {
                li {
                    @if read.revision < current { (badge(Tone::Warning, format_args!("{} behind", current - read.revision))) }
                    @else { (badge(Tone::Good, "current")) }
                    " " b { (read.address.to_string()) } " with "
                    @let description = request.snapshot.key_description(&read.key);
                    span title=(read.key.as_str()) { (name_or(description, read.key.as_str())) }
                    ": revision " (read.revision) ", " (time(&read.at.to_string(), request.now))
                }
            }
        }
        (more(reads.len(), MOST_GATEWAYS))
    }
}
