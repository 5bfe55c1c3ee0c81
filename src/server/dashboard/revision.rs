//! One revision: who made it, from which commit, and what it changed, as a diff.

use maud::{Markup, html};

use super::access::effect_of;
use super::diff;
use super::elements::{Tone, author, badge, commit, exact_time, facts, nothing, numbered_pager};
use super::layout::prose;
use super::page::{DashboardPage, PageContent, PageRequest};
use crate::model::key::segment;
use crate::server::auth::permission::Intent;
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::{HistoryAuthor, HistoryItem};
use crate::server::prelude::*;
use crate::server::resources::at_revision;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/revisions/{p0}", render).taking(&["from"]).of_history();

/// The resources on a page.
const RESOURCES: usize = 25;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let current = request.snapshot.revision;
    let unknown = || {
        let message =
            format!("revision {} does not exist; the store is at revision {current}", printable(request.parameter(0)));
        ApiError::with_code(Code::RevisionNotFound, message)
    };
    let revision =
        at_revision::number(request.parameter(0)).filter(|it| *it > 0 && *it <= current).ok_or_else(unknown)?;
    let gone = || {
        let message = format!("revision {revision} is no longer in the history");
        ApiError::with_code(Code::RevisionGone, message)
    };
    let commit_header = request.store().header(revision)?.ok_or_else(gone)?;
    let item = HistoryItem::from_header(&commit_header, "", &request.snapshot);
    let source = item.author.source.as_str();
    let forge = request.forge(source);
    let changes = request.store().some_changes(&commit_header, request.skipped(), RESOURCES)?.ok_or_else(gone)?;
    let (effect, access) = effect_of(request, item.revision, item.changed);
    let changed = effect.map_or_else(|| number_of(item.changed, "resource"), |effect| effect.counts.clone());
    // What has no resource, such as the end of what a rollback holds back, is a call alone.
    let details = if item.changed == 0 { request.store().details(revision)? } else { None };
    let calls = details.map(|details| details.calls()).transpose()?.unwrap_or_default();
    let shown = changes.len();
    let (before, after) = (revision.saturating_sub(1), revision.saturating_add(1));
    let body = html! {
        (facts(&[
            ("Made", html! { (exact_time(&item.created_at, request.now)) ", in " (item.milliseconds) " ms" }),
            ("By", html! { (author(&item.author, &forge)) (key_of(&item.author)) }),
            ("Commit", commit(&item.author.commit, &forge)),
            ("Note", prose(&item.message)),
            ("Changed", html! { (changed) ", in " (number_of(item.operations, "call")) }),
            ("State", state(request, revision, source)),
            ("Undo", html! { @if before > 0 {
                (rollback(request, before, source, &format!("See what going back to revision {before} would change")))
            } }),
            ("Access", access),
        ]))
        nav.pager aria-label="Revisions" {
            @if before > 0 { a rel="prev" href=(request.to(format_args!("revisions/{before}"))) { "Revision " (before) } }
            @if after <= current { a rel="next" href=(request.to(format_args!("revisions/{after}"))) { "Revision " (after) } }
        }
        h2 { "Changes" }
        @if item.changed == 0 { (nothing("It changed no resource.")) }
        @for call in calls.iter().take(RESOURCES) { p { (call) } }
        @for change in changes { (diff::resource(request, change)) }
        (numbered_pager(request, shown, item.changed, "More resources"))
    };
    Ok(PageContent { title: format!("Revision {revision}"), section: "Revisions", body })
}

/// The key of an author and its owner: whoever made the key has chosen its description. Nothing if the author names them
/// already, or has none.
fn key_of(author: &HistoryAuthor) -> Markup {
    let HistoryAuthor { key_id, key_description, owner_id, commit_author_name, .. } = author;
    let is_named_otherwise = !key_description.is_empty() || !commit_author_name.is_empty();
    html! { @if !key_id.is_empty() && is_named_otherwise { " " small { "key " code { (key_id) } " of " code { (owner_id) } } } }
}

/// Whether a revision is the current one, or where to go from it.
fn state(request: &PageRequest, revision: u64, source: &str) -> Markup {
    let rollback = rollback(request, revision, source, "see what a rollback to it would change");
    html! {
        @if revision == request.snapshot.revision { (badge(Tone::Good, "current")) } @else {
            a href={ (request.root) "trace?at=" (revision) } { "Trace a request at this revision" }
            @if !rollback.0.is_empty() { " or " (rollback) }
        }
    }
}

/// A link to the plan of a rollback: of the source of the revision if the caller may not plan one of everything, and nothing if
/// it may plan neither.
fn rollback(request: &PageRequest, to: u64, source: &str, text: &str) -> Markup {
    html! {
        @if request.may(&Intent::PlanRollback(None)) { a href=(request.to(format_args!("rollback?to={to}"))) { (text) } }
        @else if !source.is_empty() && request.may(&Intent::PlanRollback(Some(source))) {
            a href=(request.to(format_args!("rollback?to={to}&source={}", segment(source)))) { (text) " in source " (source) }
        }
    }
}
