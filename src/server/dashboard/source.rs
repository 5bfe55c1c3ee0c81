//! One source: its state, drift, last attempts and findings.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::actions::source_actions;
use super::drift;
use super::elements::{commit, counted, due, exact_time, facts, more, nothing, revision_link};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::revisions::{TimelinePage, search, timeline, unavailable};
use super::sources::{card, findings, last_records, unknown};
use crate::model::Author;
use crate::model::key::segment;
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::HistoryItem;
use crate::server::operations::sources::drift_view::DriftRepair;
use crate::server::operations::sources::view;
use crate::server::operations::sources::view::{SourceState, SourceView, SyncView};
use crate::store::HistoryFilter;

pub(super) static PAGE: DashboardPage =
    DashboardPage::new("/ui/sources/{p0}", render).taking(&["done"]).of_history().of_writer();

/// The attempts that are shown, and the records that are read for them.
const ATTEMPTS: usize = 10;
const MOST_RECORDS: u64 = 1000;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let name = request.parameter(0);
    let source = view(&request.app, &request.snapshot, name)?;
    let attempts = attempts(request, name)?;
    let lacks_history = attempts.is_none();
    let (attempts, applied) = attempts.unwrap_or_default();
    let records = last_records(request)?.unwrap_or_default();
    let others = || source.diagnostics.iter().filter(|item| !drift::is_taking(item));
    let body = html! {
        @if request.lacks_writer { (unknown()) }
        (source_actions::links(request, &source))
        h2 { "State" }
        (card(request, &source, records.get(name), true))
        (location(request, &source, applied.as_ref()))
        h2 { "Changed by hand" }
        (drift::of_source(request, &source))
        h2 { "Last attempts" }
        @if lacks_history { (unavailable()) }
        @else if attempts.is_empty() { (nothing("The history has no attempt of this source.")) }
        (timeline(request, &attempts, TimelinePage::Source))
        p { a href={ (request.root) "revisions?source=" (segment(name)) } { "All attempts of this source" } }
        h2 { "Findings" }
        @if request.lacks_writer { (unknown()) }
        @else if others().next().is_none() { (nothing("The last sync found nothing else.")) }
        (findings(others(), source.attempted_commit(), &request.forge(name)))
        (more(source.diagnostics_omitted, 0))
    };
    Ok(PageContent { title: format!("Source {name}"), section: "Sources", body })
}

/// The last attempts of a source, and the last one that made a revision.
type Attempts = (Vec<HistoryItem>, Option<HistoryItem>);

/// Finds the attempts of a source; none if the history is unavailable.
fn attempts(request: &PageRequest, source: &str) -> Result<Option<Attempts>, ApiError> {
    let filter = HistoryFilter { source: Some(source.to_owned()), ..HistoryFilter::default() };
    let (mut items, mut applied) = (Vec::new(), None);
    let end = search(request, &filter, u64::MAX, MOST_RECORDS, &mut |record| {
        let item = || HistoryItem::from_header(&record, "", &request.snapshot);
        if applied.is_none() && record.revision.is_some() && matches!(record.author, Author::Source { .. }) {
            applied = Some(item());
        }
        if items.len() < ATTEMPTS {
            items.push(item());
        }
        let is_enough = items.len() == ATTEMPTS && applied.is_some();
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(end.map(|_| (items, applied)))
}

/// Where the manifests are, and when they were read and applied. `applied` made the last revision of the source.
fn location(request: &PageRequest, source: &SourceView, applied: Option<&HistoryItem>) -> Markup {
    let forge = request.forge(&source.name);
    let sync = |sync: &Option<SyncView>| {
        html! { @if let Some(sync) = sync { (exact_time(&sync.at, request.now)) " " (commit(&sync.commit, &forge)) " " (sync.tag) } }
    };
    facts(&[
        (
            "Repository",
            html! { @if !source.repository.is_empty() { code { (source.repository) } " " (source.revision) (source.semver) } },
        ),
        ("Paths", html! { @for path in &source.paths { code { (path) } " " } }),
        (
            "Drift",
            html! { @match source.drift.as_str() {
                "enforce" if source.state == SourceState::Synced && source.counts.drifted == 0 => {
                    "none; would be put back at the next sync"
                },
                // The state tells of the rollback.
                "enforce" if source.drift_repair() == DriftRepair::ManifestsChanged => {},
                "enforce" => { "put back: " (drift::when(request, &source.drift_repair(), source)) },
                "warn" => "reported, and left as it is",
                "off" => "left as it is",
                _ => "",
            } },
        ),
        ("Last sync", sync(&source.last_attempt)),
        (
            "Last in sync",
            html! { @if source.is_followed() && source.state != SourceState::Synced { (sync(&source.last_applied)) } },
        ),
        (
            "Last applied",
            html! { @if let Some(HistoryItem { revision: Some(revision), created_at, author, .. }) = applied {
                (exact_time(created_at, request.now)) ", as " (revision_link(request, "revision", *revision)) " " (commit(&author.commit, &forge))
            } },
        ),
        ("Next sync", due(&source.next_sync_at, request.now)),
        ("Waiting to be applied", html! { (counted(&source.counts.pending())) }),
    ])
}
