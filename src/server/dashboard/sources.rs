//! The sources, and what stands in the way of each.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::drift;
use super::elements::{
    Tone, actor, badge, commit, file_place, lasting, nothing, owner, revision_link, source_link, time,
};
use super::layout::prose;
use super::page::{DashboardPage, PageContent, PageRequest};
use super::revisions::{search, unavailable};
use crate::model::Severity;
use crate::model::key::segment;
use crate::plan::format::json::Item;
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::HistoryItem;
use crate::server::operations::sources::view::{SourceState, SourceView, SuspensionView};
use crate::server::operations::sources::views;
use crate::server::prelude::*;
use crate::store::{CommitHeader, HistoryFilter};

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/sources", render).of_history().of_writer();

/// The text in place of an empty list.
const NONE: &str = "No source has applied anything yet. A source is a folder or a Git repository with manifests: follow one \
                    with `serve --manifests`, or list several as `sources` in the configuration file.";
/// How many records are read for the last ones of sources.
const MOST_RECORDS: u64 = 500;
/// The most findings of one kind that are shown at once.
const MOST_OF_GROUP: usize = 5;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let views = views(&request.app, &request.snapshot, None);
    let records = last_records(request)?;
    let lacks_history = records.is_none();
    let records = records.unwrap_or_default();
    let body = html! {
        @if request.lacks_writer { (unknown()) }
        @else if views.is_empty() { (nothing(NONE)) }
        @if lacks_history { (unavailable()) }
        @if !views.is_empty() { h2 { (number_of(views.len(), "source")) } }
        @for view in &views { (card(request, view, records.get(&view.name), false)) }
    };
    Ok(PageContent { title: "Sources".to_owned(), section: "Sources", body })
}

/// The text in place of facts that only the writer knows.
pub(super) fn unknown() -> Markup {
    html! { p { (badge(Tone::Warning, "unknown: the server that writes does not answer")) } }
}

/// The newest records about a source.
#[derive(Default)]
pub(super) struct LastRecords {
    attempt: Option<HistoryItem>,
    /// The newest one that made a revision.
    change: Option<HistoryItem>,
    /// The revision of the newest rollback.
    rollback: Option<u64>,
}

impl LastRecords {
    /// Takes in a record that is older than the others.
    fn note(&mut self, record: &CommitHeader, state: &Snapshot) {
        let item = || HistoryItem::from_header(record, "", state);
        self.attempt.get_or_insert_with(item);
        if record.revision.is_some() {
            self.change.get_or_insert_with(item);
        }
        if matches!(record.author, Author::Rollback { .. }) {
            self.rollback = self.rollback.or(record.revision);
        }
    }

    /// Shows the last change, and that an attempt since then was refused.
    pub(super) fn shown(&self, request: &PageRequest, source: &str) -> Markup {
        let forge = request.forge(source);
        let made = |item: &HistoryItem| {
            let who = actor(item, true, &forge);
            html! { " " (time(&item.created_at, request.now)) @if !who.0.is_empty() { ", " (who) } ". " }
        };
        let refused = self.attempt.as_ref().filter(|it| matches!(it.outcome.as_str(), "refused" | "failed"));
        html! {
            @if let Some(change) = &self.change { "Last change" (made(change)) }
            @if let Some(attempt) = refused { (badge(Tone::Bad, format_args!("last attempt {}", attempt.outcome))) (made(attempt)) }
        }
    }
}

/// The newest records about each source among those of the history; none if that is unavailable.
pub(super) fn last_records(request: &PageRequest) -> Result<Option<HashMap<String, LastRecords>>, ApiError> {
    let mut found: HashMap<String, LastRecords> = HashMap::new();
    let end = search(request, &HistoryFilter::default(), u64::MAX, MOST_RECORDS, &mut |record| {
        let concerned: BTreeSet<&String> = match &record.author {
            Author::Source { source, .. } => BTreeSet::from([source]),
            Author::Rollback { source, rejected, .. } => rejected.iter().map(|it| &it.source).chain(source).collect(),
            Author::Api { .. } | Author::Local => BTreeSet::new(),
        };
        for source in concerned {
            found.entry(source.clone()).or_default().note(&record, &request.snapshot);
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

/// The state of a source in a word or two.
pub(super) fn state_badge(request: &PageRequest, view: &SourceView) -> Markup {
    let state = || match view.state {
        SourceState::OutOfSync => "Out of sync".to_owned(),
        other => other.to_string(),
    };
    match (request.lacks_writer, view.is_followed()) {
        (true, _) => badge(Tone::Neutral, "Unknown"),
        (false, false) => badge(Tone::Neutral, "Not followed"),
        (false, true) if view.is_held() => badge(tone(view.state), "Held by a rollback"),
        (false, true) => badge(tone(view.state), state()),
    }
}

/// A source in a few lines: its state, since when, the commit, and the line that stands in the way. Its own page has its name and its
/// last syncs already, and says how to follow it.
pub(super) fn card(request: &PageRequest, view: &SourceView, last: Option<&LastRecords>, is_own_page: bool) -> Markup {
    let forge = request.forge(&view.name);
    let is_good = view.state == SourceState::Synced || request.lacks_writer;
    let is_explained = !is_good && !view.is_held() && (is_own_page || view.is_followed());
    let errors = view.diagnostics.iter().filter(|item| item.severity == Severity::Error);
    let by_hand = drift::count(view);
    html! {
        article.source {
            h3 {
                @if !is_own_page { (source_link(request, &view.name)) " " }
                (state_badge(request, view))
                @if !view.since.is_empty() && !request.lacks_writer { " " small { (lasting(&view.since, request.now)) } }
            }
            @if let Some(suspension) = &view.suspension {
                p { "Suspended " (suspended_by(request, suspension)) }
            }
            @if view.is_held() && !request.lacks_writer { (held(request, view, last)) }
            @for condition in &view.conditions { @if is_explained { p { (prose(&condition.message)) } } }
            @if let Some(last) = last { p { (last.shown(request, &view.name)) } }
            @if let Some(applied) = &view.last_applied {
                @if !is_good && !is_own_page {
                    p { @if view.is_followed() { "Last in sync " } @else { "Last applied " }
                        (time(&applied.at, request.now)) @if !applied.commit.is_empty() { " at " (commit(&applied.commit, &forge)) } }
                }
            }
            @for item in errors.take(1) { (finding(item, view.attempted_commit(), &forge)) }
            p { (number_of(view.counts.owned, "resource"))
                @if view.counts.errors > 0 { ", " (number_of(view.counts.errors, "error")) }
                @if view.counts.warnings > 0 { ", " (number_of(view.counts.warnings, "warning")) }
                @if by_hand > 0 { ", " (by_hand) " changed by hand" }
            }
        }
    }
}

/// Which rollback holds the manifests of a source, and how to apply them.
fn held(request: &PageRequest, view: &SourceView, last: Option<&LastRecords>) -> Markup {
    let rollback = last.and_then(|last| last.rollback);
    html! {
        p { "A rollback"
            @if let Some(revision) = rollback { ", " (revision_link(request, "revision", revision)) "," }
            " undid what the manifests declare. They are applied again when they change, or when you "
            @if let Some(revision) = rollback {
                a href={ (request.root) "rollback?to=" (revision.saturating_sub(1)) "&source=" (segment(&view.name)) } { "undo the rollback" }
            } @else { "undo the rollback" }
            "."
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
    html! {
        div.finding {
            p { (code_badge(item)) " " (place(item, commit, forge)) }
            p { (prose(&item.message)) }
            @if let Some(help) = &item.help { p.help { (prose(help)) } }
        }
    }
}

/// Findings, with the code and the help that several have in common once.
pub(super) fn findings<'i>(items: impl Iterator<Item = &'i Item>, commit: &str, forge: &ForgeLinks) -> Markup {
    let mut groups: Vec<Vec<&Item>> = Vec::new();
    for item in items {
        let is_alike = |first: &&Item| (&first.code, &first.help) == (&item.code, &item.help);
        match groups.iter_mut().find(|group| group.first().is_some_and(is_alike)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    let line = |item: &Item| html! { li { (place(item, commit, forge)) " " (prose(&item.message)) } };
    html! {
        @for group in &groups {
            @match group.as_slice() {
                [] => {},
                [only] => (finding(only, commit, forge)),
                [first, ..] => {
                    @let (shown, others) = group.split_at(group.len().min(MOST_OF_GROUP));
                    div.finding {
                        p { (code_badge(first)) " " (number_of(group.len(), "finding")) }
                        @if let Some(help) = &first.help { p.help { (prose(help)) } }
                        ul.brief { @for item in shown { (line(item)) } }
                        @if !others.is_empty() {
                            details { summary { (others.len()) " more" } ul.brief { @for item in others { (line(item)) } } }
                        }
                    }
                },
            }
        }
    }
}

fn code_badge(item: &Item) -> Markup {
    badge(if item.severity == Severity::Error { Tone::Bad } else { Tone::Warning }, &item.code)
}

/// The place of a finding in its file; nothing if it has none.
pub(super) fn place(item: &Item, commit: &str, forge: &ForgeLinks) -> Markup {
    let number = |number: Option<usize>| number.map(|number| number as u64);
    html! {
        @if let Some(file) = &item.spot.file {
            (file_place(file, number(item.spot.line), number(item.spot.column), commit, forge))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::format::json::Spot;

    #[test]
    fn findings_that_are_alike_have_their_help_once() {
        let item = |message: String, help: &str| Item {
            code: "unused-module-set".to_owned(),
            severity: Severity::Warning,
            message,
            help: Some(help.to_owned()),
            spot: Spot::default(),
            related: Vec::new(),
            invariant: None,
        };
        let alike = (0..8).map(|number| item(format!("no route uses set {number}"), "remove it"));
        let items: Vec<Item> = alike.chain([item("no route uses `x`".to_owned(), "use it")]).collect();
        let shown = findings(items.iter(), "", &ForgeLinks::default()).into_string();
        assert_eq!((shown.matches("remove it").count(), shown.matches("no route uses").count()), (1, 9), "{shown}");
        let (before, after) = shown.split_once("<summary>3 more</summary>").unwrap_or_default();
        assert!(before.contains("8 findings") && before.contains("set 4") && after.contains("set 5"), "{shown}");
        assert!(after.contains("use it") && !after.contains("1 finding"), "{shown}");
    }
}
