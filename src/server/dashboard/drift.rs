//! What others have changed of the sources' resources, when the sources put it back, and the routes without a source that take
//! requests from theirs, which nobody puts back.

use maud::{Markup, html};

use super::diff;
use super::elements::{due, file_place, nothing, revision_link, short_value, source_link, time};
use super::layout::prose;
use super::page::PageRequest;
use super::sources::{finding, unknown};
use crate::lint::UNMANAGED_ROUTE;
use crate::model::DriftedResource;
use crate::model::drift::{DriftState, FieldDrift};
use crate::plan::format::json::Spot;
use crate::server::operations::sources::drift_view::DriftRepair;
use crate::server::operations::sources::view;
use crate::server::operations::sources::view::SourceView;
use crate::server::prelude::*;
use crate::store::history::masking;

/// The most resources on the overview.
const MOST_DRIFTED: usize = 10;

/// The drift of all followed sources, on the overview.
pub(super) fn of_all(request: &PageRequest, sources: &[SourceView]) -> Markup {
    let links = html! {
        @for view in sources.iter().filter(|view| view.has_loop() && view.counts.drifted > 0) { " " (source_link(request, &view.name)) }
    };
    listed(request, sources, MOST_DRIFTED, "Nobody has changed what a followed source owns", &html! { ":" (links) })
}

/// The drift of a source, on its page.
pub(super) fn of_source(request: &PageRequest, source: &SourceView) -> Markup {
    listed(request, std::slice::from_ref(source), usize::MAX, "Nothing was changed by hand", &html! {})
}

/// The drift of sources: at most so many resources, and where the others are. `none` is told if there is none.
fn listed(request: &PageRequest, sources: &[SourceView], most: usize, none: &str, others: &Markup) -> Markup {
    let followed = || sources.iter().filter(|view| view.has_loop());
    let count: usize = followed().map(|view| view.counts.drifted).sum();
    let since = followed().filter_map(|view| view.drift_since).max();
    let all = followed().flat_map(|view| view.drifted.iter().map(move |drifted| (view, drifted)));
    let shown: Vec<_> = all.take(most).collect();
    let found = followed().flat_map(|view| view.diagnostics.iter().map(move |item| (view, item)));
    let taking: Vec<_> = found.filter(|(_, item)| item.code == UNMANAGED_ROUTE).take(most).collect();
    html! {
        @if request.lacks_writer { (unknown()) }
        @else if followed().next().is_none() { (nothing("Not known: the server checks only followed sources.")) }
        @else if count == 0 && shown.is_empty() && taking.is_empty() { (nobody(none, since)) }
        @for (view, item) in &taking { (finding(item, view.attempted_commit(), &request.forge(&view.name))) }
        @for (view, drifted) in &shown { (resource(request, drifted, view)) }
        @if count > shown.len() { p { (more(count, shown.len())) (others) } }
    }
}

/// The drift of one resource of a source, as far as the status of the source lists it.
pub(super) fn of_resource(request: &PageRequest, source: &str, path: &str) -> Option<Markup> {
    let source = view(&request.app, &request.snapshot, source).ok()?;
    let drifted = source.drifted.iter().find(|drifted| drifted.path == path)?;
    Some(resource(request, drifted, &source))
}

/// The answer that nobody has changed anything, as far as that is known.
fn nobody(text: &str, since: Option<u64>) -> Markup {
    match since {
        None => nothing(&format!("{text}.")),
        Some(revision) => nothing(&format!("{text} since revision {revision}. Earlier changes are not known.")),
    }
}

fn more(count: usize, listed: usize) -> String {
    match listed {
        0 => format!("{} changed by others", number_of(count, "resource")),
        _ => format!("And {} more changed by others", count.saturating_sub(listed)),
    }
}

/// A resource that others have changed, and when it is put back.
fn resource(request: &PageRequest, drifted: &DriftedResource, source: &SourceView) -> Markup {
    html! {
        article.drift {
            h3 { (drifted.kind) " " (drifted.name) }
            @for field in &drifted.fields {
                p { @if field.field.is_empty() { "The whole resource" } @else { code { (field.field) } }
                    @if field.removed { " removed" } @else { " changed" }
                    @if !field.by.is_empty() { " by " span title=(field.by) { (prose(&field.by_name)) } " " (time(&field.at, request.now)) }
                    @if let Some(revision) = field.revision { ", " (revision_link(request, "revision", revision)) }
                }
                (values(field))
            }
            p { @match source.drift_repair() {
                repair @ (DriftRepair::NextSync(_) | DriftRepair::Resumed(_) | DriftRepair::Fixed(_)) => {
                    "Put back " (when(request, &repair, source)) "."
                },
                repair => (prose(&repair.sentences())),
            } }
        }
    }
}

/// The value of a field that the source has applied, and the one that others have given it: on one line, or as a diff.
fn values(field: &FieldDrift) -> Markup {
    let (mut declared, mut now) = (field.applied.clone(), field.live.clone());
    if declared == now {
        return html! {};
    }
    masking::hide_change(Some(&mut declared), Some(&mut now));
    let short = short_value(&declared).zip(short_value(&now));
    html! {
        @match &short {
            Some((declared, now)) => p { "Declared " (declared) " → now " (now) },
            None => {
                p { "Declared (−) and now (+):" }
                (diff::fields(Some(&declared), Some(&now)))
            }
        }
        @if field.state == DriftState::Conflict { p { "The manifests have changed it since, too." } }
    }
}

/// When a source puts back what others change.
pub(super) fn when(request: &PageRequest, repair: &DriftRepair<'_>, source: &SourceView) -> Markup {
    let forge = request.forge(&source.name);
    html! {
        @match repair {
            DriftRepair::NextSync(at) if !at.is_empty() => { "at the next sync, " (due(at, request.now)) },
            DriftRepair::Resumed(until) if !until.is_empty() => {
                "when the suspension ends, " (time(until, request.now)) " at " (until)
            },
            DriftRepair::Fixed(Some(Spot { file: Some(file), line, .. })) => {
                "once the source is valid again. Fix "
                (file_place(file, line.map(|line| line as u64), None, source.attempted_commit(), &forge))
            },
            other => (prose(&other.to_string())),
        }
    }
}
