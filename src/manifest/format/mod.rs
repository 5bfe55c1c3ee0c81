//! Formats manifests and keeps comments. Pure: text in, text out.
//!
//! # The problem
//!
//! A serializer loses comments, blank lines, quotes and anchors. A formatter must change white space and the order of the
//! top-level keys, and nothing else.
//!
//! # The idea
//!
//! YAML is not serialized but moved line by line: `lines` finds the level of each line, and the lines get new indentation.
//! It knows just enough YAML for that, so its result is checked: both texts must parse to equal documents, and have the same
//! lines apart from white space. If the result fails that, less is changed: only the order, or only the indentation.
//!
//! For example, `spec: {a: 1}   # why` below `kind: TlsEdge` moves behind `metadata`, with its comment.
//!
//! # What it never does
//!
//! It never returns a text that might mean something else: then the file stays as it is, with the reason.

mod lines;
mod scan;

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::load::{limits, syntax};
use crate::syntax::yaml::{Allowance, Node, NodeShape, Tape, TapeSeed};
use lines::{LineKind, ManifestLine, split};

/// The order of a manifest's keys; other keys follow.
const ORDER: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// Why a file stays as it is.
const NOT_EQUIVALENT: &str = "the formatted file might not be equivalent";

/// Formats a file; `name` distinguishes JSON from YAML. The error explains why the file cannot be formatted.
pub(crate) fn format(name: &str, text: &str) -> Result<String, String> {
    let whole = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    if whole.trim().is_empty() {
        return Ok(text.to_owned());
    }
    // A lone carriage return is a line break, too. At the end of a line it would look like half of one.
    let plain = whole.replace('\r', "\n");
    if name.ends_with(".json") {
        return json(&plain);
    }
    if plain != whole && !are_same(&documents(&whole)?, &documents(&plain)?) {
        return Err(NOT_EQUIVALENT.into());
    }
    yaml(&plain)
}

fn rank(key: &str) -> usize {
    ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len())
}

fn json(text: &str) -> Result<String, String> {
    let reason = |error: serde_json::Error| format!("invalid JSON: {error}");
    let before: Tape = serde_json::from_str(text).map_err(reason)?;
    let value = match serde_json::from_str::<Value>(text).map_err(reason)? {
        Value::Object(entries) => {
            let mut entries: Vec<(String, Value)> = entries.into_iter().collect();
            entries.sort_by_key(|(key, _)| rank(key));
            Value::Object(entries.into_iter().collect())
        }
        other => other,
    };
    let formatted = format!("{value:#}\n");
    let after: Tape = serde_json::from_str(&formatted).map_err(reason)?;
    if is_same(&before, &after) { Ok(formatted) } else { Err("duplicate key".into()) }
}

fn yaml(text: &str) -> Result<String, String> {
    let before = documents(text)?;
    if before.iter().any(|document| has_tag(document.root())) {
        return Err("YAML tags are not supported".into());
    }
    let letters_before = letters(text);
    // Sort keys and indent lines; if the result is not equivalent, try only one of the two.
    for (sorted, indented) in [(true, true), (false, true), (true, false), (false, false)] {
        let Some(lines) = split(text, indented) else { continue };
        let formatted = join(if sorted { sort(lines) } else { lines });
        let is_equivalent = documents(&formatted).is_ok_and(|after| are_same(&before, &after));
        if is_equivalent && letters(&formatted) == letters_before {
            return Ok(formatted);
        }
    }
    Err(NOT_EQUIVALENT.into())
}

/// The documents of a file.
fn documents(text: &str) -> Result<Vec<Tape>, String> {
    if let Some(found) = limits::yaml_overrun(text) {
        return Err(found.message);
    }
    let allowance = Allowance::new(limits::allowance(text));
    let documents = serde_yaml::Deserializer::from_str(text);
    let read = documents.map(|document| TapeSeed(&allowance).deserialize(document));
    read.collect::<Result<_, _>>().map_err(|error| format!("invalid YAML: {}", syntax::reason_and_place(&error)))
}

/// The entries of a document's mapping, sorted by key.
fn in_order(document: &Tape) -> Option<Vec<(&str, Node<'_>)>> {
    let mut entries: Vec<_> = document.root().entries()?.collect();
    entries.sort_by_key(|(key, _)| rank(key));
    Some(entries)
}

/// Whether two files have equal documents.
fn are_same(before: &[Tape], after: &[Tape]) -> bool {
    before.len() == after.len() && before.iter().zip(after).all(|(before, after)| is_same(before, after))
}

/// Whether two documents are equal if their top-level keys are sorted.
fn is_same(one: &Tape, other: &Tape) -> bool {
    match (in_order(one), in_order(other)) {
        (None, None) => one.root() == other.root(),
        (one, other) => one == other,
    }
}

fn has_tag(node: Node<'_>) -> bool {
    match node.shape() {
        NodeShape::Tagged => true,
        NodeShape::Seq(mut items) => items.any(has_tag),
        NodeShape::Map(mut entries) => entries.any(|(_, value)| has_tag(value)),
        _ => false,
    }
}

/// The sorted lines without whitespace: while they are equal, no comment is lost.
fn letters(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.chars().filter(|c| !c.is_whitespace()).collect::<String>());
    let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines
}

/// Sorts the top-level keys of every document.
fn sort(lines: Vec<ManifestLine>) -> Vec<ManifestLine> {
    let mut sorted = Vec::with_capacity(lines.len());
    let mut document = Vec::new();
    for line in lines {
        if line.kind == LineKind::Marker {
            sorted.append(&mut sort_document(std::mem::take(&mut document)));
            sorted.push(line);
        } else {
            document.push(line);
        }
    }
    sorted.append(&mut sort_document(document));
    sorted
}

/// Sorts a document's keys. Leading and trailing comments keep their position; any other comment moves with the key
/// below it.
fn sort_document(mut lines: Vec<ManifestLine>) -> Vec<ManifestLine> {
    let ranks: Vec<usize> = lines.iter().filter_map(ManifestLine::key).map(rank).collect();
    if ranks.is_sorted() {
        return lines;
    }
    let is_outside = |line: &ManifestLine| line.kind == LineKind::Blank || line.is_comment_at(0);
    let content = lines.iter().rposition(|line| !is_outside(line)).map_or(0, |last| last + 1);
    let tail = lines.split_off(content);
    let mut blocks: Vec<(usize, Vec<ManifestLine>)> = Vec::new();
    let mut head = Vec::new();
    for line in lines {
        if let Some(key) = line.key().map(rank) {
            // The comments directly above were counted as part of the preceding value.
            let above = blocks.last_mut().map(|(_, before)| {
                let own = before.iter().rposition(|line| !line.is_comment_at(0)).map_or(0, |last| last + 1);
                before.split_off(own)
            });
            blocks.push((key, above.unwrap_or_default()));
        }
        match blocks.last_mut() {
            Some((_, block)) => block.push(line),
            None => head.push(line),
        }
    }
    blocks.sort_by_key(|(rank, _)| *rank);
    head.into_iter().chain(blocks.into_iter().flat_map(|(_, block)| block)).chain(tail).collect()
}

/// Joins lines, with at most one consecutive empty line and none at the start or end.
fn join(lines: Vec<ManifestLine>) -> String {
    let mut text = String::new();
    let mut empty = false;
    for line in lines {
        if line.kind == LineKind::Blank {
            empty = !text.is_empty();
            continue;
        }
        if std::mem::take(&mut empty) {
            text.push('\n');
        }
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml_of(text: &str) -> String {
        let formatted = format("a.yaml", text).unwrap_or_else(|reason| reason);
        assert_eq!(format("a.yaml", &formatted).as_ref(), Ok(&formatted), "not the same again: {text:?}");
        formatted
    }

    #[test]
    fn lines_are_indented_by_two_and_keep_their_comments() {
        let text = "# top\nspec:\n    # of a\n    a: # behind\n    -   x: 1\n        y: {b: 1,\n            c: 2}\n    - z\n    # of d\n    d: 'it''s\n      two'\n";
        let wanted = "# top\nspec:\n  # of a\n  a: # behind\n    - x: 1\n      y: {b: 1,\n          c: 2}\n    - z\n  # of d\n  d: 'it''s\n    two'\n";
        assert_eq!(yaml_of(text), wanted);
    }

    #[test]
    fn keys_come_in_their_order_with_the_comments_above_them() {
        let text =
            "# top\nspec: {}\n# of the name\nmetadata: {name: a}\nkind: K\n\napiVersion: v\n# the end\n---\n{}\n";
        let wanted =
            "# top\napiVersion: v\nkind: K\n\n# of the name\nmetadata: {name: a}\nspec: {}\n# the end\n---\n{}\n";
        assert_eq!(yaml_of(text), wanted);
    }

    #[test]
    fn a_block_text_stays_as_it_is() {
        let text = "\u{feff}a:\r\n    b: |\r\n          x \r\n\r\n\r\n            y\r\n\r\n\r\n    c: >+\r\n      z\r\n\r\n\r\n";
        assert_eq!(yaml_of(text), "a:\n  b: |\n    x \n\n\n      y\n\n  c: >+\n    z\n\n\n");
    }

    #[test]
    fn empty_lines_and_trailing_blanks_go() {
        assert_eq!(yaml_of("\n\na: 1  \n\n\n\nb: text\n  goes\n\n\n  on\n\n"), "a: 1\n\nb: text\n  goes\n\n\n  on\n");
    }

    #[test]
    fn a_value_comes_after_one_space() {
        for (text, wanted) in [
            ("kind:   K\n", "kind: K\n"),
            ("kind:\tK\n", "kind: K\n"),
            ("a:    {}\n", "a: {}\n"),
            ("a: {name:   s,\tb:  [1,  2], c:1 }\n", "a: {name: s, b: [1, 2], c:1 }\n"),
            ("a: {A: \"x,y\",B: y,}\nb: [  a,b ]\n", "a: {A: \"x,y\", B: y,}\nb: [ a, b ]\n"),
            ("a: {  b: [],c: {},   # of b\n  d: e,f: g}\n", "a: { b: [], c: {},   # of b\n  d: e, f: g}\n"),
            ("a:   # kept\n  b:  |  # of b\n    c:   d\n", "a:   # kept\n  b: |  # of b\n    c:   d\n"),
            ("a: {b: 1,   # of b\n  c:  two  words}\n", "a: {b: 1,   # of b\n  c: two  words}\n"),
            (
                "- k:  \"s:  t\"\n  l:   &x {y:  1,\n    z:   'a:  b'}\n",
                "- k: \"s:  t\"\n  l: &x {y: 1,\n    z: 'a:  b'}\n",
            ),
        ] {
            assert_eq!(yaml_of(text), wanted);
        }
    }

    #[test]
    fn a_lone_carriage_return_is_a_line_break() {
        assert_eq!(yaml_of("a: 1\r"), "a: 1\n");
        assert_eq!(yaml_of("a: 1 # c\rb: [x,\r  y]\r\n\r"), "a: 1 # c\nb: [x,\n  y]\n");
        assert_eq!(yaml_of("a: |\r  x\r  y\rb: 'one\r  two'\r\r\r\n"), "a: |\n  x\n  y\nb: 'one\n  two'\n");
    }

    #[test]
    fn an_alias_never_comes_before_its_anchor() {
        let text = "spec: &a {x: 1}\nkind: *a\n";
        assert_eq!(yaml_of(text), text);
    }

    #[test]
    fn what_cannot_be_read_or_compared_stays() {
        for bad in ["a: [", "a: !x 1\n", "a:\n\t- b\n"] {
            assert!(format("a.yaml", bad).is_err(), "{bad}");
        }
        assert!(format("a.json", "{\"a\": 1, \"a\": 2}").is_err());
        assert_eq!(
            format("a.json", "{\"kind\":1,\"apiVersion\":[]}"),
            Ok("{\n  \"apiVersion\": [],\n  \"kind\": 1\n}\n".into())
        );
    }
}
