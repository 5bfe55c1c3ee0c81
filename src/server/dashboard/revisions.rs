//! The timeline of revisions, with the attempts that were refused, and the changes of some resources.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::access::effect_of;
use super::diff;
use super::elements::{Tone, actor, author, badge, choice, field, filters, more, nothing, pager, revision_link, time};
use super::layout::prose;
use super::page::{DashboardPage, PageContent, PageRequest, ROWS};
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::HistoryItem;
use crate::server::prelude::*;
use crate::store::history::select::{HistorySearch, SearchEnd};
use crate::store::{CommitHeader, HistoryFilter, Outcome};
use crate::syntax::text::beginning;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/revisions", render)
    .taking(&["source", "actor", "resource", "outcome", "before"])
    .of_history();

/// How many records are found at once, and how many are read for one page.
const RECORDS: usize = 100;
const MOST_RECORDS: u64 = 5000;
/// The commits on a page of the changes of resources, and the most resources of one that are shown.
const COMMITS: usize = 10;
const MOST_OF_COMMIT: usize = 10;
/// The most characters of a message on the overview.
const MOST_OF_MESSAGE: usize = 120;
/// The choices of the filter by outcome.
const OUTCOMES: [(&str, &str); 3] = [("", "All attempts"), ("applied", "Applied"), ("refused", "Refused and failed")];

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let given = |name: &str| Some(request.value(name)).filter(|value| !value.is_empty());
    let (resource, actor, source) = (given("resource"), given("actor"), given("source"));
    let filter = HistoryFilter { resource, actor, source, ..HistoryFilter::default() };
    let outcome = request.value("outcome");
    let before = request.number("before").unwrap_or(u64::MAX);
    let mut items: Vec<HistoryItem> = Vec::new();
    let end = search(request, &filter, before, MOST_RECORDS, &mut |record| {
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
        None | Some(SearchEnd::Complete) => None,
        Some(SearchEnd::Stopped) => items.last().map(|last| last.id.clone()),
        Some(SearchEnd::Exhausted(position)) => Some(position.to_string()),
    };
    let body = html! {
        (filters("Revisions", &html! {
            (field(request, "Source", "source", ""))
            (field(request, "Key, owner or email", "actor", ""))
            (field(request, "Resource", "resource", "/edges/https/edghts_…"))
            (choice(request, "Outcome", "outcome", &OUTCOMES))
        }))
        @if end.is_none() { (unavailable()) }
        @else if !items.is_empty() { (timeline(request, &items, TimelinePage::Revisions)) }
        @else if request.is_selecting() { (nothing("No matching attempt.")) }
        @else { (nothing("Nothing has been applied yet.")) }
        (pager(request, "before", before == u64::MAX, next, "Older"))
    };
    Ok(PageContent { title: "Revisions".to_owned(), section: "Revisions", body })
}

/// The notice in place of what comes from a history that is unavailable.
pub(super) fn unavailable() -> Markup {
    html! { p { (badge(Tone::Warning, "warning")) " The history is unavailable: no connection to the database." } }
}

/// Visits the records that a filter selects before a position, newest first, until the client goes. At most so many are read. Returns
/// none if the history is unavailable.
pub(super) fn search(
    request: &PageRequest,
    filter: &HistoryFilter,
    before: u64,
    most: u64,
    visit: &mut dyn FnMut(CommitHeader) -> ControlFlow<()>,
) -> Result<Option<SearchEnd>, StoreError> {
    let search = HistorySearch { filter, before, batch: RECORDS, most };
    request.read_history(|store| store.search(&search, &|| request.is_cancelled(), visit))
}

/// The changes of some resources, newest first. `what` names these where there are none.
pub(super) fn changes_of(request: &PageRequest, paths: &[String], what: &str) -> Result<Markup, ApiError> {
    let before = request.number("before").unwrap_or(u64::MAX);
    let commits = request.read_history(|store| store.changes_of(paths, before, COMMITS))?;
    let Some(commits) = commits else { return Ok(unavailable()) };
    let next = commits.last().filter(|_| commits.len() == COMMITS).map(|(header, _)| header.position.to_string());
    Ok(html! {
        @if commits.is_empty() { (nothing(&format!("The history has no change to this {what}: the {what} is older than the history."))) }
        @for (header, changes) in commits {
            @let item = HistoryItem::from_header(&header, "", &request.snapshot);
            @let all = changes.len();
            section.entry {
                p { @if let Some(revision) = item.revision { (revision_link(request, "Revision", revision)) ", " }
                    (time(&item.created_at, request.now)) ", by " (author(&item.author, &request.forge(&item.author.source)))
                }
                @for change in changes.into_iter().take(MOST_OF_COMMIT) { (diff::resource(request, change)) }
                (more(all, MOST_OF_COMMIT))
            }
        }
        (pager(request, "before", before == u64::MAX, next, "Older changes"))
    })
}

/// The page that a timeline is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimelinePage {
    /// Only the beginning of a message is shown, with a link to the whole.
    Overview,
    /// The source has the name of the page.
    Source,
    Revisions,
}

/// A list of attempts, newest first.
pub(super) fn timeline(request: &PageRequest, items: &[HistoryItem], on: TimelinePage) -> Markup {
    html! {
        ol.timeline {
            @for item in items { (entry(request, item, on)) }
        }
    }
}

/// An attempt in a timeline, with what it did to access.
pub(super) fn entry(request: &PageRequest, item: &HistoryItem, on: TimelinePage) -> Markup {
    let (effect, access) = effect_of(request, item.revision, item.changed);
    let changed = effect.as_ref().map(|effect| effect.changed.as_str()).unwrap_or_default();
    let (class, tone) = match item.outcome.as_str() {
        "refused" | "failed" => ("attempt refused", Tone::Bad),
        "applied" => ("attempt", Tone::Good),
        _ => ("attempt", Tone::Neutral),
    };
    let outcome = badge(tone, &item.outcome);
    let who = actor(item, on == TimelinePage::Source, &request.forge(&item.author.source));
    let message = item.message.lines().collect::<Vec<_>>().join("; ");
    let most = if on == TimelinePage::Overview { MOST_OF_MESSAGE } else { usize::MAX };
    html! {
        li class=(class) {
            p {
                @match (item.revision, item.id.parse::<u64>()) {
                    (Some(revision), _) => (revision_link(request, "Revision", revision)),
                    (None, Ok(position)) if on == TimelinePage::Overview => {
                        a href={ (request.root) "revisions?before=" (position.saturating_add(1)) } { (outcome) }
                    },
                    _ => (outcome),
                }
                " · " (time(&item.created_at, request.now))
                @if !changed.is_empty() { " · " (changed) }
                @else if item.changed > 0 { " · " (number_of(item.changed, "resource")) " changed" }
                @else if item.revision.is_some() { " · no resource changed" }
                " " (access)
            }
            @if !who.0.is_empty() { p { (who) } }
            @if !message.is_empty() { p.message { (prose(&beginning(&message, most))) } }
        }
    }
}
