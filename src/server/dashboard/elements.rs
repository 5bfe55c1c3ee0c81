//! Small parts of pages: times, badges, authors, values and pages of tables.

use std::fmt::Display;

use jiff::tz::TimeZone;
use maud::{Markup, html};

use super::page::PageRequest;
use crate::model::author::PERSON;
use crate::model::key::segment;
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::server::operations::history::document::{HistoryAuthor, HistoryItem};
use crate::server::prelude::*;
use crate::store::history::commits::short_commit;

/// The most characters of a value on one line.
const MOST_OF_VALUE: usize = 200;

const SOON: i64 = 5;
const MINUTE: i64 = 60;
/// An hour and a day, in seconds.
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 366 * DAY;

/// How a badge looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Warning,
    Bad,
    Neutral,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "badge good",
            Tone::Warning => "badge warning",
            Tone::Bad => "badge bad",
            Tone::Neutral => "badge",
        }
    }
}

/// A word that stands out. The colour alone tells nothing.
pub(super) fn badge(tone: Tone, text: impl Display) -> Markup {
    html! { span class=(tone.class()) { (maud::display(text)) } }
}

/// A badge with a drawn lock: not every machine has a font with one.
pub(super) fn locked(text: impl Display) -> Markup {
    html! {
        span.badge.good {
            svg.lock viewBox="0 0 10 12" aria-hidden="true" { path d="M0 5h1V4a4 4 0 0 1 8 0v1h1v7H0zM3 5h4V4a2 2 0 0 0-4 0z" {} }
            (maud::display(text))
        }
    }
}

/// A time as an age, with the exact time on hover. A text that is not a time is shown as it is.
pub(super) fn time(text: &str, now: Timestamp) -> Markup {
    match text.parse::<Timestamp>() {
        Ok(at) => html! { time datetime=(text) title=(text) { (age(at, now)) } },
        Err(_) => html! { (text) },
    }
}

/// A time as an age with the exact time beside it, for pages that people quote. A date is exact enough.
pub(super) fn exact_time(text: &str, now: Timestamp) -> Markup {
    let at = text.parse::<Timestamp>().ok().map(|at| at.as_second());
    let near = at.filter(|at| now.as_second().saturating_sub(*at).abs() < YEAR);
    let exact = near.and_then(|second| Timestamp::from_second(second).ok());
    html! { (time(text, now)) @if let Some(at) = exact { " " small { (at.to_string()) } } }
}

/// How long a state has lasted that began at a time.
pub(super) fn lasting(since: &str, now: Timestamp) -> Markup {
    let lasted = since.parse::<Timestamp>().ok().map(|at| (at, now.as_second().saturating_sub(at.as_second())));
    match lasted {
        Some((at, ..YEAR)) => {
            html! { time datetime=(since) title=(since) { "for " (span(at, now).unwrap_or_else(|| "a moment".to_owned())) } }
        }
        _ => html! { "since " (time(since, now)) },
    }
}

/// When something is due next.
pub(super) fn due(text: &str, now: Timestamp) -> Markup {
    match text.parse::<Timestamp>() {
        Ok(at) if at.as_second() < now.as_second().saturating_add(SOON) => {
            html! { time datetime=(text) title=(text) { "due now" } }
        }
        _ => time(text, now),
    }
}

/// A time as a date, with the exact time on hover.
pub(super) fn date(at: Timestamp) -> Markup {
    html! { time datetime=(at.to_string()) title=(at.to_string()) { (day(at)) } }
}

fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).date().to_string()
}

/// Describes a time relative to another one, in its largest unit. One that is more than a year away is a date.
fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(at.as_second());
    if seconds.abs() >= YEAR {
        return day(at);
    }
    match span(at, now) {
        None => "just now".to_owned(),
        Some(span) if seconds < 0 => format!("in {span}"),
        Some(span) => format!("{span} ago"),
    }
}

/// The time between two others, in its largest unit, to the nearest one; only whole days count, as in findings about
/// certificates. Returns none if they are about the same.
fn span(one: Timestamp, other: Timestamp) -> Option<String> {
    let seconds = one.as_second().saturating_sub(other.as_second()).abs();
    let nearest = |unit: i64| (seconds + unit / 2) / unit;
    let (count, unit) = match seconds {
        // The clocks of two machines differ.
        ..SOON => return None,
        SOON..MINUTE => (seconds, "second"),
        MINUTE.. if nearest(MINUTE) < HOUR / MINUTE => (nearest(MINUTE), "minute"),
        MINUTE.. if nearest(HOUR) < DAY / HOUR => (nearest(HOUR), "hour"),
        MINUTE.. => ((seconds / DAY).max(1), "day"),
    };
    Some(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }))
}

/// A link to a source.
pub(super) fn source_link(request: &PageRequest, name: &str) -> Markup {
    html! { a href=(request.to(format_args!("sources/{}", segment(name)))) { (name) } }
}

/// The source of a resource in a table, if it has one.
pub(super) fn source_cell(request: &PageRequest, source: Option<&str>) -> Markup {
    html! { @if let Some(source) = source { (source_link(request, source)) } @else { "–" } }
}

/// The name of a resource, with a link to its page if it has one.
pub(super) fn resource_link(request: &PageRequest, key: &Key, name: &str) -> Markup {
    match request.to_resource(key) {
        Some(link) => html! { a href=(link) { (name) } },
        None => html! { (name) },
    }
}

/// A link to a revision, after a word.
pub(super) fn revision_link(request: &PageRequest, word: &str, revision: u64) -> Markup {
    html! { a href=(request.to(format_args!("revisions/{revision}"))) { (word) " " (revision) } }
}

/// A name, or the ID of what has none.
pub(super) fn name_or<'t>(name: &'t str, id: &'t str) -> &'t str {
    if name.is_empty() { id } else { name }
}

/// The beginning of a commit ID, with the whole on hover, and a link to the forge of its source.
pub(super) fn commit(id: &str, forge: &ForgeLinks) -> Markup {
    let shown = html! { @if !id.is_empty() { code title=(id) { (short_commit(id)) } } };
    linked(forge.commit(id).as_deref(), shown)
}

/// An owner by the description of a key, or by the ID.
pub(super) fn owner(request: &PageRequest, id: &str) -> Markup {
    let description = rules::owner_description(&request.snapshot, id);
    html! { b title=(id) { (name_or(description, id)) } }
}

/// A place in a file at a commit, with a link to the forge of its source.
pub(super) fn file_place(
    file: &str,
    line: Option<u64>,
    column: Option<u64>,
    commit: &str,
    forge: &ForgeLinks,
) -> Markup {
    let shown = html! {
        code { (file) @if let Some(line) = line { ":" (line) } @if let Some(column) = column { ":" (column) } }
    };
    linked(forge.file(commit, file, line).as_deref(), shown)
}

fn linked(link: Option<&str>, shown: Markup) -> Markup {
    match link {
        Some(link) => html! { a href=(link) rel="noreferrer" { (shown) } },
        None => shown,
    }
}

/// The author of a change: a person or a key by its description, and what the change is from. A folder tells nobody.
/// `forge` is that of the source.
pub(super) fn author(author: &HistoryAuthor, forge: &ForgeLinks) -> Markup {
    acting(author, "applied", forge)
}

/// By whom an attempt was, or what its author did or tried. What is about the source does not name it again: this is empty if nothing
/// else is known.
pub(super) fn actor(item: &HistoryItem, is_of_source: bool, forge: &ForgeLinks) -> Markup {
    let mut author = item.author.clone();
    if is_of_source {
        author.source.clear();
    }
    let HistoryAuthor { key_id, source, commit_author_name, rollback_to, destroyed, .. } = &author;
    let is_named = author.by == "local" || [key_id, source, commit_author_name].iter().any(|name| !name.is_empty());
    let is_state = !is_of_source && matches!(item.outcome.as_str(), "suspended" | "resumed");
    let is_deed = rollback_to.is_some() || *destroyed || is_state;
    html! { @if is_named && !is_deed { "by " } (acting(&author, &item.outcome, forge)) }
}

fn acting(author: &HistoryAuthor, outcome: &str, forge: &ForgeLinks) -> Markup {
    let is_refused = matches!(outcome, "refused" | "failed");
    let HistoryAuthor { key_id, key_description, owner_id, source, commit_author_name, .. } = author;
    let key = name_or(key_description, key_id);
    let is_unknown = commit_author_name.is_empty() && key.is_empty() && author.by != "local";
    html! {
        @if !commit_author_name.is_empty() {
            b title=(author.commit_author_email) { (commit_author_name) }
        } @else if let Some(person) = key_id.strip_prefix(PERSON) {
            b title=(owner_id) { (person) }
        } @else if !key.is_empty() {
            b title={ (key_id) " of " (owner_id) } { (key) }
            @if key_description.is_empty() { " of " (owner_id) }
        } @else if author.by == "local" {
            b { "command line" }
        }
        @if let Some(to) = author.rollback_to {
            @if is_refused { " tried to roll back to revision " } @else { " rolled back to revision " }
            (to)
        }
        @if author.destroyed { @if is_refused { " tried to destroy" } @else { " destroyed" } }
        @if !source.is_empty() {
            @match outcome {
                "suspended" | "resumed" => { " " (outcome) " source " },
                _ if is_unknown => "source ",
                _ => " in source ",
            }
            (source)
        }
        @if !author.commit.is_empty() { " at " (commit(&author.commit, forge)) }
        @if !author.commit_message.is_empty() { ": " q { (author.commit_message) } }
    }
}

/// A value on one line; none if it does not fit there.
pub(super) fn short_value(value: &Value) -> Option<Markup> {
    let text = match value {
        Value::Null => return Some(html! { "unset" }),
        Value::String(text) if text.is_empty() => return Some(html! { "unset" }),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => return None,
        other => other.to_string(),
    };
    let fits = text.chars().count() <= MOST_OF_VALUE && !text.contains('\n');
    fits.then(|| html! { code { (text) } })
}

/// A value as formatted JSON that a keyboard can scroll.
pub(super) fn json(value: &Value) -> Markup {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    html! { pre tabindex="0" { (text) "\n" } }
}

/// Counts with their words, without those that are zero; empty if all are.
pub(super) fn counted(counts: &[(usize, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// A list of facts; those without a value are left out.
pub(super) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts.iter().filter(|(_, value)| !value.0.is_empty()) {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// A table that scrolls by itself. Its rows are cards on a narrow screen, where the cells say what they are (`data-label`). A row
/// has a cell for each column, and the first one names it.
pub(super) fn table(label: &str, columns: &[&str], rows: impl Iterator<Item = Vec<Markup>>) -> Markup {
    html! {
        div.scroll.cards tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { @for row in rows { tr {
                    @for (at, (column, cell)) in columns.iter().zip(&row).enumerate() {
                        @if at == 0 { th scope="row" { (cell) } } @else { td data-label=(column) { (cell) } }
                    }
                } } }
            }
        }
    }
}

/// The first of some items, and how many more there are.
pub(super) fn first_of<T>(items: &[T], most: usize, shown: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @for item in items.iter().take(most) { (shown(item)) " " }
        @if items.len() > most { "and " (items.len() - most) " more" }
    }
}

/// The first of some texts, likewise.
pub(super) fn first_texts(texts: &[String], most: usize) -> Markup {
    first_of(texts, most, |text| html! { code { (text) } })
}

/// How many more there are than a list shows; nothing if it shows all.
pub(super) fn more(all: usize, shown: usize) -> Markup {
    html! { @if all > shown { p { "and " (all - shown) " more" } } }
}

/// The text in place of an empty list.
pub(super) fn nothing(text: &str) -> Markup {
    html! { p.nothing { (text) } }
}

/// The form that selects what a table shows.
pub(super) fn filters(label: &str, fields: &Markup) -> Markup {
    html! { form.filters role="search" aria-label=(label) method="get" { (fields) button { "Show" } } }
}

/// A text in a form of filters, with what the page was asked for. The one that is searched for is the first field.
pub(super) fn field(request: &PageRequest, label: &str, name: &str, placeholder: &str) -> Markup {
    let kind = if name == "search" { "search" } else { "text" };
    html! {
        label { (label) " "
            input type=(kind) name=(name) value=(request.value(name)) placeholder=[(!placeholder.is_empty()).then_some(placeholder)];
        }
    }
}

/// One of several values of a query parameter, in a form of filters.
pub(super) fn choice(request: &PageRequest, label: &str, name: &str, choices: &[(&str, &str)]) -> Markup {
    let chosen = request.value(name);
    html! {
        label { (label) " "
            select name=(name) {
                @for (value, text) in choices { option value=(value) selected[value.eq_ignore_ascii_case(&chosen)] { (text) } }
            }
        }
    }
}

/// The links between the pages of a list, by the number of rows before them. This page shows some of all rows.
pub(super) fn numbered_pager(request: &PageRequest, shown: usize, all: usize, next_text: &str) -> Markup {
    let from = request.skipped();
    let end = from.saturating_add(shown);
    pager(request, "from", from == 0, (end < all).then(|| end.to_string()), next_text)
}

/// The links to the first page of a table, unless it is shown, and to the next one. `next` is the value of the query parameter
/// that says where a page begins.
pub(super) fn pager(
    request: &PageRequest,
    parameter: &str,
    is_first: bool,
    next: Option<String>,
    next_text: &str,
) -> Markup {
    let first = (!is_first).then(|| request.with(&[(parameter, "")]));
    let next = next.map(|next| request.with(&[(parameter, next.as_str())]));
    // The page of an edge has two of them.
    let label = if parameter == "before" { "Pages of the history" } else { "Pages" };
    html! {
        @if first.is_some() || next.is_some() {
            nav.pager aria-label=(label) {
                @if let Some(first) = first { a href=(first) { "First page" } }
                @if let Some(next) = next { a rel="next" href=(next) { (next_text) } }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_relative_and_exact_on_hover() {
        let now: Timestamp = "2026-07-03T12:00:00Z".parse().unwrap();
        for (at, expected) in [
            ("2026-07-03T11:59:58Z", "just now"),
            ("2026-07-03T11:59:01Z", "59 seconds ago"),
            ("2026-07-03T11:59:00Z", "1 minute ago"),
            ("2026-07-03T10:00:00Z", "2 hours ago"),
            ("2026-07-03T13:59:50Z", "in 2 hours"),
            ("2026-07-03T12:59:50Z", "in 1 hour"),
            ("2026-07-02T12:00:00Z", "1 day ago"),
            ("2026-07-13T12:00:00Z", "in 10 days"),
            ("2026-07-13T11:59:59Z", "in 9 days"),
            ("2026-07-04T11:50:00Z", "in 1 day"),
            ("2125-07-13T12:00:00Z", "2125-07-13"),
        ] {
            let shown = time(at, now).into_string();
            assert_eq!(shown, format!("<time datetime=\"{at}\" title=\"{at}\">{expected}</time>"));
        }
        assert_eq!(time("<b>", now).into_string(), "&lt;b&gt;");
        let exact = |at: &str| exact_time(at, now).into_string();
        assert!(exact("2026-07-03T11:00:00.123Z").ends_with(">1 hour ago</time> <small>2026-07-03T11:00:00Z</small>"));
        assert!(exact("2125-07-13T12:00:00Z").ends_with(">2125-07-13</time>"), "a date needs no other one");
        let told = |shown: Markup| shown.into_string().split_once('>').map(|(_, text)| text.to_owned());
        assert_eq!(told(lasting("2026-07-03T11:59:09Z", now)), Some("for 51 seconds</time>".to_owned()));
        assert_eq!(told(due("2026-07-03T12:00:02Z", now)), Some("due now</time>".to_owned()));
        assert_eq!(told(due("2026-07-03T12:00:23Z", now)), Some("in 23 seconds</time>".to_owned()));
    }

    #[test]
    fn a_value_of_many_parts_has_no_line() {
        let shown = |value: Value| short_value(&value).map(Markup::into_string);
        assert_eq!(shown(Value::Null), Some("unset".to_owned()));
        assert_eq!(shown(Value::from("a < b")), Some("<code>a &lt; b</code>".to_owned()));
        for value in [Value::from("a\nb"), Value::from("a".repeat(201)), Value::from(vec!["a"])] {
            assert_eq!(shown(value), None);
        }
    }

    #[test]
    fn an_attempt_that_was_refused_did_nothing() {
        let who = HistoryAuthor { by: "local".to_owned(), rollback_to: Some(3), ..HistoryAuthor::default() };
        let shown = |outcome: &str| acting(&who, outcome, &ForgeLinks::default()).into_string();
        assert_eq!(shown("applied"), "<b>command line</b> rolled back to revision 3");
        assert_eq!(shown("refused"), "<b>command line</b> tried to roll back to revision 3");
    }

    #[test]
    fn commits_of_others_are_escaped() {
        let hostile = "<img src=x onerror=alert(1)>";
        let who = HistoryAuthor {
            by: "source".to_owned(),
            source: hostile.to_owned(),
            commit: hostile.to_owned(),
            commit_author_name: hostile.to_owned(),
            commit_author_email: format!("\"{hostile}"),
            commit_message: hostile.to_owned(),
            ..HistoryAuthor::default()
        };
        let shown = author(&who, &ForgeLinks::default()).into_string();
        assert!(!shown.contains("<img") && shown.contains("&lt;img"), "{shown}");
        assert!(shown.contains("title=\"&quot;&lt;img"), "{shown}");
    }
}
