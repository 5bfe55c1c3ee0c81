//! The changed lines of a resource in YAML, with a few around them and the keys that they are below.

use similar::{ChangeTag, DiffOp, DiffTag, TextDiff};

/// The number of unchanged lines shown around a changed line.
const CONTEXT: usize = 2;
/// Stands for omitted lines.
const OMITTED: &str = "…";

/// Compares two texts. Each line starts with `+ `, `- ` or two spaces; `…` stands for omitted lines.
pub(super) fn changed_lines(old: &str, new: &str) -> Vec<String> {
    if old.is_empty() {
        return new.lines().map(|line| format!("+ {line}")).collect();
    }
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push(OMITTED.to_owned());
        }
        lines.extend(keys_above(old, new, group));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
            };
            lines.push(format!("{sign} {}", change.value().trim_end_matches('\n')));
        }
    }
    lines
}

/// The lines before a group that say what its first changed line is part of. All later ones are part of that, too, or of what
/// the group shows.
fn keys_above(old: &str, new: &str, group: &[DiffOp]) -> Vec<String> {
    let (Some(first), Some(changed)) = (group.first(), group.iter().find(|op| op.tag() != DiffTag::Equal)) else {
        return Vec::new();
    };
    let (text, start, at) = match changed.tag() {
        DiffTag::Insert => (new, first.new_range().start, changed.new_range().start),
        _ => (old, first.old_range().start, changed.old_range().start),
    };
    let text: Vec<&str> = text.lines().collect();
    let mut shown = Vec::new();
    let mut below = text.get(at).map_or(0, |line| depth(line));
    let mut next = start;
    for (index, line) in text.iter().enumerate().take(at).rev() {
        if below == 0 {
            break;
        }
        // A text of several lines can have empty ones.
        if line.is_empty() || depth(line) >= below {
            continue;
        }
        below = depth(line);
        if index < start {
            if index + 1 < next {
                shown.push(OMITTED.to_owned());
            }
            shown.push(format!("  {line}"));
            next = index;
        }
    }
    shown.reverse();
    shown
}

/// How deep a line is in the document. An item of a list has the same indentation as the key of the list, and is deeper.
fn depth(line: &str) -> usize {
    let content = line.trim_start_matches(' ');
    2 * (line.len() - content.len()) + usize::from(content.starts_with("- "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_has_the_keys_that_it_is_below() {
        let list = |ids: &[&str]| {
            let ids: String = ids.iter().map(|id| format!("- {id}\n")).collect();
            format!("description: d\nonly_from:\n{ids}min_tls_version: '1.2'\n")
        };
        let (old, new) = (list(&["a", "b", "c", "d", "e"]), list(&["a", "b", "c", "d", "e", "f"]));
        let last = ["  only_from:", "…", "  - d", "  - e", "+ - f", "  min_tls_version: '1.2'"];
        assert_eq!(changed_lines(&old, &new), last);
        let shorter = list(&["a", "b", "d", "e"]);
        assert_eq!(changed_lines(&old, &shorter), ["  only_from:", "  - a", "  - b", "- - c", "  - d", "  - e"]);
        // The keys that are shown anyway are not repeated.
        let (old, new) = (list(&["a", "b"]), list(&["b"]));
        let first = ["  description: d", "  only_from:", "- - a", "  - b", "  min_tls_version: '1.2'"];
        assert_eq!(changed_lines(&old, &new), first);
        assert_eq!(changed_lines("", "a: 1\nb: 2\n"), ["+ a: 1", "+ b: 2"]);
    }

    #[test]
    fn each_key_above_is_shown_and_nothing_beside_it() {
        let text = |day: &str| {
            format!(
                "exemptions:\n- hosts:\n  - a.example\n  - b.example\n  owner: o\n  reason: r\n  expires: {day}\n\
                 scope:\n  hosts:\n  - c.example\n"
            )
        };
        let lines = changed_lines(&text("2027-01-01"), &text("2028-01-01"));
        let expected = [
            "  exemptions:",
            "  - hosts:",
            "…",
            "    owner: o",
            "    reason: r",
            "-   expires: 2027-01-01",
            "+   expires: 2028-01-01",
            "  scope:",
            "    hosts:",
        ];
        assert_eq!(lines, expected);
    }
}
