//! What others have changed of the sources' resources, when the sources put it back, and the routes without a source that take
//! requests from theirs, which nobody puts back.

use maud::{Markup, html};

use super::diff;
use super::elements::{
    self, due, file_place, first_texts, nothing, resource_link, revision_link, short_value, source_link, time,
};
use super::layout::prose;
use super::page::PageRequest;
use super::sources::{findings, place, unknown};
use crate::lint::UNMANAGED_ROUTE;
use crate::model::DriftedResource;
use crate::model::drift::{DriftState, FieldDrift};
use crate::plan::format::json::{Item, Spot};
use crate::server::operations::sources::drift_view::DriftRepair;
use crate::server::operations::sources::view;
use crate::server::operations::sources::view::SourceView;
use crate::server::prelude::*;
use crate::store::history::masking;

/// The most resources on the overview, and the most fields of one.
const MOST_DRIFTED: usize = 10;
const MOST_FIELDS: usize = 3;

/// The resources of a source that others have changed, without those that a rollback changed which holds the manifests.
fn by_hand(view: &SourceView) -> impl Iterator<Item = &DriftedResource> {
    let is_held = view.is_held();
    view.drifted.iter().filter(move |it| !is_held || it.fields.iter().any(|field| !field.by_rollback))
}

/// The findings about routes without a source that take requests from a source's.
fn taking(view: &SourceView) -> impl Iterator<Item = &Item> {
    view.diagnostics.iter().filter(|item| is_taking(item))
}

/// Whether a finding is about a change by hand.
pub(super) fn is_taking(item: &Item) -> bool {
    item.code == UNMANAGED_ROUTE
}

/// How much of a source was changed by hand: its resources, and its routes that lose requests to routes without a source.
pub(super) fn count(view: &SourceView) -> usize {
    let listed = by_hand(view).count();
    // A rollback that changed all that are listed has also changed the others.
    let unlisted = match listed {
        0 if !view.drifted.is_empty() => 0,
        _ => view.counts.drifted.saturating_sub(view.drifted.len()),
    };
    listed + unlisted + taking(view).count()
}

/// The drift of all followed sources, on the overview: a line for each, and where the others are.
pub(super) fn of_all(request: &PageRequest, sources: &[SourceView]) -> Markup {
    let changed: Vec<&SourceView> = sources.iter().filter(|view| count(view) > 0).collect();
    let mut lines: Vec<Markup> = Vec::new();
    for view in &changed {
        let (commit, forge) = (view.attempted_commit(), request.forge(&view.name));
        let place = |item: &Item| place(item, commit, &forge);
        let link = source_link(request, &view.name);
        lines.extend(taking(view).map(|item| html! { (place(item)) " " (link) ": " (prose(&item.message)) }));
        lines.extend(by_hand(view).map(|drifted| in_short(request, drifted)));
    }
    let hidden = changed.iter().map(|view| count(view)).sum::<usize>().saturating_sub(lines.len().min(MOST_DRIFTED));
    html! {
        (unless_known(request, sources, "Nobody has changed what a followed source owns"))
        @if !lines.is_empty() { ul.brief { @for line in lines.iter().take(MOST_DRIFTED) { li { (line) } } } }
        @if hidden > 0 {
            p { "And " (hidden) " more:" @for view in &changed { " " (source_link(request, &view.name)) } }
        }
    }
}

/// The drift of a source, on its page.
pub(super) fn of_source(request: &PageRequest, source: &SourceView) -> Markup {
    let shown = by_hand(source).count() + taking(source).count();
    html! {
        (unless_known(request, std::slice::from_ref(source), "Nothing was changed by hand"))
        (findings(taking(source), source.attempted_commit(), &request.forge(&source.name)))
        @for drifted in by_hand(source) { (resource(request, drifted, source, &name(request, drifted))) }
        (elements::more(count(source), shown))
    }
}

/// What stands in place of the drift of sources: that nobody knows, or that there is none.
fn unless_known(request: &PageRequest, sources: &[SourceView], none: &str) -> Markup {
    let followed = || sources.iter().filter(|view| view.has_loop());
    let since = followed().filter_map(|view| view.drift_since).max();
    html! {
        @if request.lacks_writer { (unknown()) }
        @else if followed().next().is_none() { (nothing("Not known: the server checks only followed sources.")) }
        @else if followed().all(|view| count(view) == 0) { (nobody(none, since)) }
    }
}

/// The drift of one resource of a source, as far as the status of the source lists it.
pub(super) fn of_resource(request: &PageRequest, source: &str, path: &str) -> Option<Markup> {
    let source = view(&request.app, &request.snapshot, source).ok()?;
    let drifted = source.drifted.iter().find(|drifted| drifted.path == path)?;
    Some(resource(request, drifted, &source, &html! { (drifted.name) }))
}

/// The answer that nobody has changed anything, as far as that is known.
fn nobody(text: &str, since: Option<u64>) -> Markup {
    match since {
        None => nothing(&format!("{text}.")),
        Some(revision) => nothing(&format!("{text} since revision {revision}. Earlier changes are not known.")),
    }
}

/// The name of a resource, with a link to its page if it has one.
fn name(request: &PageRequest, drifted: &DriftedResource) -> Markup {
    let mut kinds = [Kind::HttpsEdge, Kind::HttpsEdgeRoute].into_iter();
    let key =
        kinds.find_map(|kind| Key::at_path(kind, &drifted.path)).filter(|key| request.snapshot.get(key).is_some());
    key.map_or_else(|| html! { (drifted.name) }, |key| resource_link(request, &key, &drifted.name))
}

/// A resource that others have changed, on one line.
fn in_short(request: &PageRequest, drifted: &DriftedResource) -> Markup {
    let fields: Vec<String> = drifted.fields.iter().map(|it| it.field.clone()).filter(|it| !it.is_empty()).collect();
    html! {
        (drifted.kind) " " (name(request, drifted)) ": "
        @if fields.is_empty() { "removed" } @else { (first_texts(&fields, MOST_FIELDS)) " changed" }
        @if let Some(last) = drifted.fields.iter().max_by_key(|it| it.revision) {
            @if !last.by.is_empty() { " by " span title=(last.by) { (prose(&last.by_name)) } " " (time(&last.at, request.now)) }
        }
    }
}

/// A resource that others have changed, and when it is put back.
fn resource(request: &PageRequest, drifted: &DriftedResource, source: &SourceView, name: &Markup) -> Markup {
    html! {
        article.drift {
            h3 { (drifted.kind) " " (name) }
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
                DriftRepair::ManifestsChanged => "Put back once the manifests are applied again.",
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
