//! What a change did to a resource, line by line.

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use super::access_effect::{AccessEffect, changed_name};
use super::elements::{Tone, badge, resource_link};
use super::page::PageRequest;
use crate::plan::redacted_plan::yaml;
use crate::server::operations::history::document::HistoryResource;
use crate::server::prelude::*;
use crate::store::{ChangeEvent, ResourceChange};

/// The time for the comparison of two texts. What is left is shown as replaced.
const LONGEST: Duration = Duration::from_millis(20);
/// The most lines of a diff that are shown.
const MOST_LINES: usize = 400;
/// The unchanged lines around a change.
const CONTEXT: usize = 3;

/// The difference between the fields of a resource before and after a change, as YAML without unset values, as plans have it.
/// Secrets are hidden already.
pub(super) fn fields(before: Option<&Value>, after: Option<&Value>) -> Markup {
    // Nothing has no lines, also if it was all unset.
    let text = |side: Option<&Value>| match yaml(side.cloned()).unwrap_or_default() {
        unset if matches!(unset.trim_end(), "{}" | "[]" | "null") => String::new(),
        set => set,
    };
    let (before, after) = (text(before), text(after));
    let diff = TextDiff::configure().timeout(LONGEST).diff_lines(before.as_str(), after.as_str());
    let mut lines: Vec<(&str, &str, String)> = Vec::new();
    for (number, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            lines.push(("gap", "…", "\n".to_owned()));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (class, sign) = match change.tag() {
                ChangeTag::Delete => ("removed", "- "),
                ChangeTag::Insert => ("added", "+ "),
                ChangeTag::Equal => ("same", "  "),
            };
            let line = change.value().trim_end_matches('\n');
            lines.push((class, sign, format!("{line}\n")));
        }
        if lines.len() > MOST_LINES {
            break;
        }
    }
    shown(lines.len(), lines.iter().map(|(class, sign, line)| html! { span class=(*class) { (*sign) (line) } }))
}

/// The lines of a plan, which begin with their signs. Secrets are hidden already.
pub(super) fn signed(lines: &[String]) -> Markup {
    let class = |line: &str| match line.chars().next() {
        Some('+') => "added",
        Some('-') => "removed",
        Some('…') => "gap",
        _ => "same",
    };
    shown(lines.len(), lines.iter().map(|line| html! { span class=(class(line)) { (line) "\n" } }))
}

fn shown(count: usize, lines: impl Iterator<Item = Markup>) -> Markup {
    html! {
        pre.diff tabindex="0" { @for line in lines.take(MOST_LINES) { (line) } }
        @if count > MOST_LINES { p { "Only the first " (MOST_LINES) " lines are shown." } }
    }
}

/// A resource that a revision has changed, and what that did to access.
pub(super) fn resource(request: &PageRequest, change: ResourceChange) -> Markup {
    let (tone, event) = match change.event() {
        Some(ChangeEvent::Created) => (Tone::Good, "created"),
        Some(ChangeEvent::Deleted) => (Tone::Bad, "deleted"),
        _ => (Tone::Neutral, "changed"),
    };
    let name = changed_name(&change, &request.snapshot);
    let present = Key::at_path(change.kind, &change.path).filter(|key| request.snapshot.get(key).is_some());
    let effect = AccessEffect::from_change(&change).shown();
    let changed = HistoryResource::new(change);
    html! {
        article.change {
            h3 {
                (badge(tone, event)) " " (changed.kind) " "
                @match &present {
                    Some(key) => (resource_link(request, key, &name)),
                    None => (name),
                }
            }
            p { code { (changed.path) }
                @if !changed.source.is_empty() { " of source " (changed.source) }
                @if !changed.declared_at.is_empty() { ", declared at " code { (changed.declared_at) } }
            }
            @if !changed.reverted_drift.is_empty() {
                p { "Reverted changes of others: " @for field in &changed.reverted_drift { code { (field) } " " } }
            }
            (effect)
            (fields(changed.before.as_ref(), changed.after.as_ref()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_marked_and_escaped() {
        let (before, after) = (json!({"a": "<b>", "c": 1, "d": null}), json!({"a": "<i>", "c": 1, "d": null}));
        let shown = fields(Some(&before), Some(&after)).into_string();
        assert!(shown.contains("<span class=\"removed\">- a: &lt;b&gt;\n</span>"), "{shown}");
        assert!(shown.contains("<span class=\"added\">+ a: &lt;i&gt;\n</span>"), "{shown}");
        assert!(shown.contains("<span class=\"same\">  c: 1\n</span>") && !shown.contains("null"), "{shown}");
    }

    #[test]
    fn what_is_removed_leaves_no_empty_line() {
        let (with, without) = (json!({"compression": {"enabled": true}}), json!({"compression": null}));
        for (before, after) in [(&with, &without), (&without, &with)] {
            let shown = fields(Some(before), Some(after)).into_string();
            assert!(shown.contains("compression:") && !shown.contains("{}"), "{shown}");
        }
        let emptied = fields(Some(&json!(["a"])), Some(&Value::Null)).into_string();
        assert!(emptied.contains("- - a") && !emptied.contains("null"), "{emptied}");
    }

    #[test]
    fn a_long_diff_is_cut() {
        let many: Vec<u32> = (0..10_000).collect();
        let shown = fields(None, Some(&json!(many))).into_string();
        assert!(shown.len() < 50_000 && shown.contains("Only the first"), "{}", shown.len());
    }
}
