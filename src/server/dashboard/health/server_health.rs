//! The server itself: whether it is ready, what holds, which gateways have read what, and what the server does.

use maud::{Markup, html};

use super::invariants;
use crate::server::dashboard::elements::{self, Tone, badge, facts, more, name_or, nothing, time};
use crate::server::dashboard::layout::prose;
use crate::server::dashboard::page::{DashboardPage, PageContent, PageRequest};
use crate::server::http::api_error::ApiError;
use crate::server::limits::slots::Slots;
use crate::server::operations::ready::readiness;
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
        p { a href=(request.to("sources")) { "The states of the sources" } }
        h2 id="invariants" { "Invariants" }
        (invariants::all(request))
        h2 { "Gateways" }
        (gateways(request))
        h2 { "Notifications" }
        @match &telemetry.outbox {
            None => (nothing("Nobody is notified of changes.")),
            Some(outbox) => ul.brief {
                @for (target, lag) in outbox.lags() {
                    li { b { (target) } " "
                        @if lag == 0 { (badge(Tone::Good, "up to date")) }
                        @else { (badge(Tone::Warning, behind(lag, "revision"))) } }
                }
            },
        }
        h2 { "Work" }
        (work(request))
        h2 { "Resources" }
        ul.brief { @for (kind, count) in inventory.kinds.iter().filter(|it| *it.1 > 0) { li { (kind.to_string()) ": " (*count) } } }
    };
    Ok(PageContent { title: "Server".to_owned(), section: "Server", body })
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
        ("Local copy", html! { @let lag = store.copy_lag(); @if lag > 0 { (behind(lag, "record")) } }),
        ("Version", html! { (env!("CARGO_PKG_VERSION")) }),
    ]);
    html! { (ready(readiness)) (facts) }
}

/// How far somebody is behind.
fn behind(count: u64, what: &str) -> String {
    format!("{} behind", number_of(usize::try_from(count).unwrap_or(usize::MAX), what))
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
                    @let description = request.snapshot.key_description(&read.key);
                    b title=(read.key.as_str()) { (name_or(description, read.key.as_str())) } " (" (read.address.to_string()) "): "
                    @if read.revision < current {
                        (badge(Tone::Warning, behind(current - read.revision, "revision"))) " (" (read.revision) " of " (current) ")"
                    } @else { (badge(Tone::Good, "current")) }
                    ", last read " (time(&read.at.to_string(), request.now))
                }
            }
        }
        (more(reads.len(), MOST_GATEWAYS))
    }
}
