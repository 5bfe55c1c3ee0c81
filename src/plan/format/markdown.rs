//! Markdown for a comment on a pull request: the verdict, the diagnostics, and each change with its lines.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use super::diagnostics::{everything, position};
use super::text::{notes, sign};
use super::verdict::{store_note, summary, verdict};
use crate::model::{Diagnostic, Drift};
use crate::plan::behaviour;
use crate::plan::effect::Effect;
use crate::plan::redacted_plan::{Call, RedactedChange};
use crate::plan::report::Report;
use crate::syntax::text::escaped;

/// The characters of a source name that the marker keeps. Two hyphens would end the HTML comment.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// What would end an address in a link, or be markup.
const NOT_IN_ADDRESS: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'(').add(b')').add(b'<').add(b'>').add(b'[').add(b'\\').add(b']').add(b'`');
/// The limit of a comment; GitHub accepts 65,536 characters.
pub(crate) const MOST_CHARACTERS: usize = 65_000;
/// The characters reserved for the line that counts the omitted items.
const NOTE: usize = 100;

/// Renders the report as a comment. A long report is cut between two diagnostics or changes.
pub(crate) fn render(report: &Report) -> String {
    let mut page = MarkdownPage::default();
    let title = format!("edgewright {}: {} — {}", report.command, verdict(report), summary(report));
    page.push(&format!("{}\n## {}\n", marker(report.source.as_deref()), inline(&title)));
    if let Some(note) = store_note(report) {
        page.push(&format!("\n{}\n", inline(&note)));
    }
    if let Some(address) = &report.page {
        let address = utf8_percent_encode(address, NOT_IN_ADDRESS);
        page.push(&format!("\n[This plan in the dashboard]({address})\n"));
    }
    let found: Vec<&Diagnostic> = everything(report).collect();
    let changes = report.plan.as_ref().map(|plan| plan.changes.as_slice()).unwrap_or_default();
    if !found.is_empty() {
        page.push("\n");
        // Many warnings must not crowd out the plan.
        let is_all = changes.is_empty() && report.refused.is_none();
        let most = if is_all { MOST_CHARACTERS } else { MOST_CHARACTERS / 2 };
        page.list(most, "diagnostics", found.len(), found.into_iter().map(item));
    }
    if let Some((plan, diff)) = report.behaviour() {
        let summary = behaviour::summary(diff, plan.is_empty(), &plan.uncompared());
        page.push(&format!("\n{}\n", inline(&summary)));
        let lines = behaviour::lines(diff);
        let item = |(opens, line): &(bool, String)| {
            let mark = if *opens { "⚠️ " } else { "" };
            format!("- {mark}{}\n", inline(line))
        };
        page.push("\n");
        page.list(MOST_CHARACTERS / 2, "changes of behaviour", lines.len(), lines.iter().map(item));
    }
    // Deletions come first: a reviewer must see them even if the comment is cut.
    let goes = |change: &&RedactedChange| matches!(change.effect, Effect::Delete | Effect::Replace | Effect::Replaced);
    let in_order = changes.iter().filter(goes).chain(changes.iter().filter(|change| !goes(change)));
    page.list(MOST_CHARACTERS, "changes", changes.len(), in_order.map(details));
    page.text
}

/// Marks the comment, so that a bot can find and replace it. Sources other than the default one have markers of their own.
fn marker(source: Option<&str>) -> String {
    match source {
        None => "<!-- edgewright -->".to_owned(),
        Some(source) => {
            let name = utf8_percent_encode(source, PLAIN).to_string().replace("--", "%2D%2D");
            format!("<!-- edgewright:{name} -->")
        }
    }
}

/// A text and its length in characters.
#[derive(Default)]
struct MarkdownPage {
    text: String,
    characters: usize,
}

impl MarkdownPage {
    fn push(&mut self, part: &str) {
        self.text.push_str(part);
        self.characters += part.chars().count();
    }

    /// Adds parts while there is room, then the number of omitted parts.
    fn list(&mut self, most: usize, what: &str, count: usize, parts: impl Iterator<Item = String>) {
        for (at, part) in parts.enumerate() {
            if self.characters + part.chars().count() + NOTE > most {
                self.push(&format!("\n… and {} more {what}: see the job's log\n", count - at));
                return;
            }
            self.push(&part);
        }
    }
}

fn item(it: &Diagnostic) -> String {
    let place = it.place.as_ref().map(|place| format!(" {}", code(&position(place)))).unwrap_or_default();
    let mut line =
        format!("- **{}**{place} {}: {}", it.severity.as_str(), code(&it.code.to_string()), inline(&it.message));
    for (place, label) in &it.related {
        line += &format!("<br>{}: {}", code(&position(place)), inline(label));
    }
    if let Some(help) = &it.help {
        let help: Vec<String> = help.split('\n').map(inline).collect();
        line += &format!("<br>help: {}", help.join("<br>"));
    }
    line + "\n"
}

fn details(change: &RedactedChange) -> String {
    let mut title = format!("{} {} {}{}", sign(change.effect), change.kind, change.name, notes(change));
    for (at, Call { method, path, .. }) in change.calls.iter().enumerate() {
        title += &format!("{}{method} {path}", if at == 0 { " — " } else { ", " });
    }
    let mut out = format!("\n<details><summary>{}</summary>\n\n{}\n\n", inline(&title), code(&change.id));
    let drift: String = change
        .drift
        .iter()
        .flat_map(Drift::changed)
        .map(|field| format!("- {}\n", inline(&field.to_string())))
        .collect();
    if !drift.is_empty() {
        out += &format!("{drift}\n");
    }
    for Call { method, path, lines, .. } in &change.calls {
        if change.calls.len() > 1 {
            out += &format!("{}\n\n", code(&format!("{method} {path}")));
        }
        if !lines.is_empty() {
            out += &fenced(lines);
        }
    }
    out + "</details>\n"
}

/// A code block, with fences longer than any inside it.
fn fenced(lines: &[String]) -> String {
    let text: String = lines.iter().map(|line| escaped(line) + "\n").collect();
    let longest = text.split(|c: char| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}diff\n{text}{fence}\n\n")
}

/// Renders a sentence, with text between backquotes as code.
fn inline(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks makes an even number of parts.
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let set = |(at, part): (usize, &&str)| if at % 2 == 1 { code(part) } else { escape(part) };
    parts.iter().enumerate().map(set).collect()
}

fn code(text: &str) -> String {
    if text.is_empty() { escape("``") } else { format!("<code>{}</code>", escape(text)) }
}

/// Escapes text for Markdown and HTML, on one line, without `@name` mentions and `#number` links.
fn escape(text: &str) -> String {
    let text = escaped(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_word = false;
    while let Some(c) = chars.next() {
        let inside = in_word && chars.peek().is_some_and(|next| next.is_alphanumeric());
        in_word = c.is_alphanumeric();
        match c {
            // Inside a word, Markdown ignores it.
            '_' if inside => out.push(c),
            '@' | '#' => out.push_str(&format!("{c}<!-- -->")),
            '&' | '<' | '>' | '\\' | '`' | '*' | '_' | '[' | ']' | '{' | '}' | '|' | '~' | '!' | '$' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_a_marker_that_no_other_source_has_and_no_name_ends() {
        assert_eq!(marker(None), "<!-- edgewright -->");
        assert_eq!(marker(Some("team-a")), "<!-- edgewright:team-a -->");
        for source in ["a --> <b>", "-->", "a--b", "\u{202e}", "a%2Db"] {
            let marker = marker(Some(source));
            let inside = marker.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            assert!(inside.is_some_and(|it| it.is_ascii() && !it.contains("--") && !it.contains('>')), "{marker}");
        }
        assert_ne!(marker(Some("a--b")), marker(Some("a%2D%2Db")));
    }
}
