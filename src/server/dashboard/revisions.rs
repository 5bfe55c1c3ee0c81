//! The timeline of revisions, with the attempts that were refused.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::access_effect::compared_revision;
use super::elements::{Tone, actor, badge, choice, nothing, pager, time};
use super::page::{DashboardPage, PageContent, PageRequest, ROWS};
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::HistoryItem;
use crate::server::prelude::*;
use crate::store::history::select::{HistorySearch, SearchEnd};
use crate::store::{CommitHeader, HistoryFilter, Outcome};

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/revisions", render)
    .taking(&["source", "actor", "resource", "outcome", "before"])
    .of_history();

/// How many records are found at once, and how many are read for one page.
const RECORDS: usize = 50;
const MOST_RECORDS: u64 = 5000;
/// The choices of the filter by outcome.
const OUTCOMES: [(&str, &str); 3] = [("", "All attempts"), ("applied", "Applied"), ("refused", "Refused and failed")];

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let given = |name: &str| Some(request.value(name)).filter(|value| !value.is_empty());
    let (source, actor, resource) = (given("source"), given("actor"), given("resource"));
    let outcome = request.value("outcome");
    let is_filtered = source.is_some() || actor.is_some() || resource.is_some() || !outcome.is_empty();
    let filter = HistoryFilter {
        resource: resource.clone(),
        actor: actor.clone(),
        source: source.clone(),
        ..HistoryFilter::default()
    };
    let before = request.number("before").unwrap_or(u64::MAX);
    let mut items: Vec<HistoryItem> = Vec::new();
    let search = HistorySearch { filter: &filter, before, batch: RECORDS, most: MOST_RECORDS };
    let end = request.store().search(&search, &|| request.is_cancelled(), &mut |record: CommitHeader| {
        let is_refused = matches!(record.outcome, Outcome::Refused | Outcome::Failed);
        let is_shown = match outcome.as_str() {
            "applied" => record.outcome == Outcome::Applied,
            "refused" => is_refused,
            _ => true,
        };
        if is_shown && items.len() >= ROWS {
            return ControlFlow::Break(());
        }
        if is_shown {
            items.push(HistoryItem::from_header(&record, "", &request.snapshot));
        }
        ControlFlow::Continue(())
    })?;
    let next = match end {
        SearchEnd::Complete => None,
        SearchEnd::Stopped => items.last().map(|last| last.id.clone()),
        SearchEnd::Exhausted(position) => Some(position.to_string()),
    };
    let is_first = before == u64::MAX;
    let body = html! {
        form.filters role="search" aria-label="Revisions" method="get" {
            label { "Source " input type="text" name="source" value=(source.unwrap_or_default()); }
            label { "Key, owner or email " input type="text" name="actor" value=(actor.unwrap_or_default()); }
            label { "Resource " input type="text" name="resource" value=(resource.unwrap_or_default()) placeholder="/edges/https/edghts_…"; }
            (choice("Outcome", "outcome", &OUTCOMES, &outcome))
            button { "Show" }
        }
        @if !items.is_empty() { (timeline(request, &items)) }
        @else if is_filtered || !is_first { (nothing("No matching attempt.")) }
        @else { (nothing("Nothing has been applied yet.")) }
        (pager(request, "before", is_first, next, "Older"))
    };
    Ok(PageContent { title: "Revisions".to_owned(), section: "Revisions", body })
}

/// A list of attempts, newest first.
pub(super) fn timeline(request: &PageRequest, items: &[HistoryItem]) -> Markup {
    html! {
        ol.timeline {
            @for item in items { (entry(request, item)) }
        }
    }
}

/// An attempt in a timeline, with what it did to access.
pub(super) fn entry(request: &PageRequest, item: &HistoryItem) -> Markup {
    let effect = compared_revision(item.revision, item.changed).and_then(|revision| request.effect(revision));
    let changed = effect.as_ref().map(|effect| effect.changed.as_str()).unwrap_or_default();
    let (class, tone) = match item.outcome.as_str() {
        "refused" | "failed" => ("attempt refused", Tone::Bad),
        "applied" => ("attempt", Tone::Good),
        _ => ("attempt", Tone::Neutral),
    };
    html! {
        li class=(class) {
            p {
                @match item.revision {
                    Some(revision) => a href=(request.to(format_args!("revisions/{revision}"))) { "Revision " (revision) },
                    None => (badge(tone, &item.outcome)),
                }
                " · " (time(&item.created_at, request.now))
                @if !changed.is_empty() { " · " (changed) }
                @else if item.changed > 0 { " · " (number_of(item.changed, "resource")) " changed" }
                @else if item.revision.is_some() { " · no resource changed" }
                " "
                @if let Some(effect) = &effect { (effect.shown()) }
                @else if item.revision.is_some() && item.changed > 0 { (badge(Tone::Neutral, "access not compared")) }
            }
            p { (actor(item, &request.forge(&item.author.source))) }
            @if !item.message.is_empty() { p.message { (item.message) } }
        }
    }
}
