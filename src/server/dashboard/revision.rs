//! One revision: who made it, from which commit, and what it changed, as a diff.

use maud::{Markup, html};

use super::access_effect::{AccessEffect, compared_revision};
use super::diff;
use super::elements::{Tone, author, badge, commit, facts, nothing, pager, time};
use super::page::{DashboardPage, PageContent, PageRequest};
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::{HistoryItem, HistoryResource};
use crate::server::prelude::*;
use crate::server::resources::at_revision;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/revisions/{p0}", render).taking(&["from"]).of_history();

/// The resources on a page.
const RESOURCES: usize = 25;

/// What a revision opened, if it was compared.
fn opens(compared: Option<Option<&AccessEffect>>) -> Markup {
    html! { @match compared {
        Some(Some(effect)) if effect.is_partial => "requests not compared",
        Some(Some(effect)) if effect.taken_over.is_empty() => "",
        Some(Some(effect)) => { (badge(Tone::Bad, "opens access")) " " (effect.taken_over.join("; ")) },
        Some(None) => "not compared",
        None => "",
    } }
}

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
    let forge = request.forge(&item.author.source);
    let from = request.skipped();
    let changes = request.store().some_changes(&commit_header, from, RESOURCES)?.ok_or_else(gone)?;
    let compared =
        compared_revision(commit_header.revision, commit_header.changed).map(|revision| request.effect(revision));
    let changed = match &compared {
        Some(Some(effect)) => effect.counts.clone(),
        _ => number_of(item.changed, "resource"),
    };
    // What has no resource, such as the end of what a rollback holds back, is a call alone.
    let details = if item.changed == 0 { request.store().details(revision)? } else { None };
    let calls = details.map(|details| details.calls()).transpose()?.unwrap_or_default();
    let shown = from.saturating_add(changes.len());
    let next = (shown < item.changed).then(|| shown.to_string());
    let (before, after) = (revision.saturating_sub(1), revision.saturating_add(1));
    let body = html! {
        (facts(&[
            ("Made", html! { (time(&item.created_at, request.now)) ", in " (item.milliseconds) " ms" }),
            ("By", author(&item.author, &forge)),
            ("Commit", commit(&item.author.commit, &forge)),
            ("Note", html! { (item.message) }),
            ("Changed", html! { (changed) ", in " (number_of(item.operations, "call")) }),
            ("State", state(request, revision)),
            ("Undo", html! { @if before > 0 {
                a href={ (request.root) "rollback?to=" (before) } { "See what going back to revision " (before) " would change" }
            } }),
            ("Opens", opens(compared.as_ref().map(Option::as_deref))),
        ]))
        nav.pager aria-label="Revisions" {
            @if before > 0 { a rel="prev" href=(request.to(format_args!("revisions/{before}"))) { "Revision " (before) } }
            @if after <= current { a rel="next" href=(request.to(format_args!("revisions/{after}"))) { "Revision " (after) } }
        }
        h2 { "Changes" }
        @if item.changed == 0 { (nothing("It changed no resource.")) }
        @for call in calls.iter().take(RESOURCES) { p { (call) } }
        @for change in changes {
            @let effect = AccessEffect::from_change(&change).shown();
            @let link = Key::at_path(change.kind, &change.path).filter(|key| request.snapshot.get(key).is_some()).and_then(|key| request.to_resource(&key));
            (diff::resource(&HistoryResource::new(change), link.as_deref(), &effect))
        }
        (pager(request, "from", from == 0, next, "More resources"))
    };
    Ok(PageContent { title: format!("Revision {revision}"), section: "Revisions", body })
}

/// Whether a revision is the current one, or where to go from it.
fn state(request: &PageRequest, revision: u64) -> Markup {
    html! {
        @if revision == request.snapshot.revision { (badge(Tone::Good, "current")) } @else {
            a href={ (request.root) "trace?at=" (revision) } { "Trace a request at this revision" } " or "
            a href={ (request.root) "rollback?to=" (revision) } { "see what a rollback to it would change" }
        }
    }
}
