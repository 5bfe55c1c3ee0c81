//! The sources, and what stands in the way of each.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::elements::{Tone, author, badge, commit, file_place, lasting, nothing, owner, source_link, time};
use super::layout::prose;
use super::page::{DashboardPage, PageContent, PageRequest};
use super::revisions::{search, unavailable};
use crate::model::Severity;
use crate::plan::format::json::Item;
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::HistoryItem;
use crate::server::operations::sources::view::{SourceState, SourceView, SuspensionView};
use crate::server::operations::sources::views;
use crate::server::prelude::*;
use crate::store::HistoryFilter;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/sources", render).of_history().of_writer();

/// The text in place of an empty list.
const NONE: &str = "No source has applied anything yet. A source is a folder or a Git repository with manifests: follow one \
                    with `serve --manifests`, or list several as `sources` in the configuration file.";
/// How many records are read for the last attempts of sources.
const MOST_RECORDS: u64 = 500;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let views = views(&request.app, &request.snapshot, None);
    let attempts = last_attempts(request)?;
    let lacks_history = attempts.is_none();
    let attempts = attempts.unwrap_or_default();
    let body = html! {
        @if request.lacks_writer { (unknown()) }
        @else if views.is_empty() { (nothing(NONE)) }
        @if lacks_history { (unavailable()) }
        @if !views.is_empty() { h2 { (number_of(views.len(), "source")) } }
        @for view in &views { (card(request, view, attempts.get(&view.name))) }
    };
    Ok(PageContent { title: "Sources".to_owned(), section: "Sources", body })
}

/// The text in place of facts that only the writer knows.
pub(super) fn unknown() -> Markup {
    html! { p { (badge(Tone::Warning, "unknown: the server that writes does not answer")) } }
}

/// The newest attempt of each source among the newest records; none if the history is unavailable.
pub(super) fn last_attempts(request: &PageRequest) -> Result<Option<HashMap<String, HistoryItem>>, ApiError> {
    let mut found: HashMap<String, HistoryItem> = HashMap::new();
    let end = search(request, &HistoryFilter::default(), u64::MAX, MOST_RECORDS, &mut |record| {
        if let Author::Source { source, .. } = &record.author
            && !found.contains_key(source)
        {
            found.insert(source.clone(), HistoryItem::from_header(&record, "", &request.snapshot));
        }
        ControlFlow::Continue(())
    })?;
    Ok(end.map(|_| found))
}

/// How a state looks.
pub(super) fn tone(state: SourceState) -> Tone {
    match state {
        SourceState::Synced => Tone::Good,
        SourceState::Invalid | SourceState::Refused | SourceState::Failed => Tone::Bad,
        SourceState::OutOfSync | SourceState::Suspended | SourceState::Drifted => Tone::Warning,
        SourceState::Unknown => Tone::Neutral,
    }
}

/// A source in a few lines: its state, since when, the commit, and the line that stands in the way.
pub(super) fn card(request: &PageRequest, view: &SourceView, attempt: Option<&HistoryItem>) -> Markup {
    let forge = request.forge(&view.name);
    let is_good = view.state == SourceState::Synced || request.lacks_writer;
    let (tone, label) = match (request.lacks_writer, view.is_followed()) {
        (true, _) => (Tone::Neutral, "Unknown".to_owned()),
        (false, true) => (tone(view.state), view.state.to_string()),
        (false, false) => (tone(view.state), "Not followed".to_owned()),
    };
    let errors = view.diagnostics.iter().filter(|item| item.severity == Severity::Error);
    html! {
        article.source {
            h3 {
                (source_link(request, &view.name)) " "
                (badge(tone, label))
                @if !view.since.is_empty() && !request.lacks_writer { " " small { (lasting(&view.since, request.now)) } }
            }
            @if let Some(suspension) = &view.suspension {
                p { "Suspended " (suspended_by(request, suspension)) }
            }
            @for condition in &view.conditions { @if !is_good { p { (prose(&condition.message)) } } }
            @if let Some(attempt) = attempt {
                p { @if is_good { "Last change " } @else { "Last attempt " }
                    (time(&attempt.created_at, request.now)) ", by " (author(&attempt.author, &forge)) }
            }
            @if let Some(applied) = &view.last_applied {
                @if !is_good {
                    p { @if view.is_followed() { "Last in sync " } @else { "Last applied " }
                        (time(&applied.at, request.now)) @if !applied.commit.is_empty() { " at " (commit(&applied.commit, &forge)) } }
                }
            }
            @for item in errors.take(1) { (finding(item, view.attempted_commit(), &forge)) }
            p { (number_of(view.counts.owned, "resource"))
                @if view.counts.errors > 0 { ", " (number_of(view.counts.errors, "error")) }
                @if view.counts.warnings > 0 { ", " (number_of(view.counts.warnings, "warning")) }
                @if view.counts.drifted > 0 { ", " (view.counts.drifted) " changed by hand" }
            }
        }
    }
}

/// Who has suspended a source, when, why, and until when.
fn suspended_by(request: &PageRequest, suspension: &SuspensionView) -> Markup {
    html! {
        "by " (owner(request, &suspension.by)) " " (time(&suspension.since, request.now)) ": " q { (suspension.reason) }
        @if suspension.until.is_empty() { ", until it is resumed" } @else { ", ends " (time(&suspension.until, request.now)) " at " (suspension.until) }
    }
}

/// A finding with its place in the manifests, which are at a commit; empty if that is not known.
pub(super) fn finding(item: &Item, commit: &str, forge: &ForgeLinks) -> Markup {
    let number = |number: Option<usize>| number.map(|number| number as u64);
    let tone = if item.severity == Severity::Error { Tone::Bad } else { Tone::Warning };
    html! {
        div.finding {
            p { (badge(tone, &item.code)) " "
                @if let Some(file) = &item.spot.file {
                    (file_place(file, number(item.spot.line), number(item.spot.column), commit, forge))
                }
            }
            p { (prose(&item.message)) }
            @if let Some(help) = &item.help { p.help { (prose(help)) } }
        }
    }
}
