//! The documents of a file (D26).

use std::iter;

use serde::de::DeserializeSeed;

use super::envelope::ENVELOPE;
use super::findings::FileFindings;
use super::limits::{self, TextFault};
use super::syntax;
use crate::manifest::prelude::*;
use crate::manifest::resolve::foreign_files::with_ignore_help;
use crate::manifest::resolve::origin::{ManifestFile, Origin};
use crate::model::Segment;
use crate::model::json::{deserialize, long_integer};
use crate::syntax::yaml::{Allowance, Node, Tape, TapeSeed, plain_documents};

/// The start of a line that Git writes at a merge conflict.
const CONFLICT: &str = "<<<<<<< ";

/// The help for text whose first character has another meaning in YAML.
const QUOTE_FIRST_CHARACTER: &str = "quote text that starts with this character";

/// A document of a file.
pub(crate) struct Document {
    content: Tape,
    /// The position in the file.
    pub origin: Origin,
    /// Whether the document has errors already, so that the content may be incomplete.
    pub faulty: bool,
}

impl Document {
    /// Returns the content.
    pub(crate) fn node(&self) -> Node<'_> {
        self.content.root()
    }
}

impl TextFault {
    fn diagnostic(self, file: &ManifestFile) -> Diagnostic {
        Diagnostic::error(self.code, self.message).at(file.place(self.span)).help(self.help)
    }
}

/// The documents of a text up to its first error, and why the rest is not read.
type ReadContents = (Vec<Tape>, Option<TextFault>);

/// Reads the documents of a file up to the first syntax error.
pub(crate) fn read(file: &Arc<ManifestFile>, findings: &mut FileFindings) -> Vec<Document> {
    let text = file.source.text.as_str();
    if let Some(damage) = find_damage(text) {
        findings.error(|| damage.diagnostic(file));
        return Vec::new();
    }
    let is_json = file.source.name.to_ascii_lowercase().ends_with(".json");
    let (contents, rest) = match is_json {
        true => read_json(text),
        false => read_plain_yaml(text).map_or_else(|| read_yaml(text), |contents| (contents, None)),
    };
    let numbered = contents.into_iter().enumerate();
    let documents = numbered.filter_map(|(number, content)| document(file, number, content, findings)).collect();
    if let Some(rest) = rest {
        findings.error(|| rest.diagnostic(file));
    }
    documents
}

/// A document with its faults reported. An empty one between two separators declares nothing.
fn document(
    file: &Arc<ManifestFile>,
    number: usize,
    mut content: Tape,
    findings: &mut FileFindings,
) -> Option<Document> {
    if content.root().is_null() {
        return None;
    }
    let origin = Origin::new(Arc::clone(file), number);
    let mut faults = as_missing_separator(content.take_faults());
    faults.extend(content.merge());
    let faulty = !faults.is_empty();
    for fault in faults {
        findings.error(|| origin.diagnostic(fault));
    }
    Some(Document { content, origin, faulty })
}

/// Reduces the faults of a repeated envelope to one: the separator between two manifests is missing.
fn as_missing_separator(faults: Vec<Fault>) -> Vec<Fault> {
    let repeats_envelope = |fault: &Fault| {
        let is_of_envelope = |step: &Segment| matches!(step, Segment::Key(key) if ENVELOPE.contains(&key.as_str()));
        fault.code == Code::DuplicateKey && matches!(fault.path.0.as_slice(), [step] if is_of_envelope(step))
    };
    if faults.iter().filter(|fault| repeats_envelope(fault)).count() < 2 {
        return faults;
    }
    let (repeated, others): (Vec<Fault>, Vec<Fault>) = faults.into_iter().partition(repeats_envelope);
    let first = repeated.into_iter().next().map(|fault| fault.help("separate two manifests with a `---` line"));
    first.into_iter().chain(others).collect()
}

fn read_json(text: &str) -> ReadContents {
    if let Some(found) = limits::json_overrun(text) {
        return (Vec::new(), Some(found));
    }
    match deserialize::from_str::<Tape>(text) {
        Ok(mut content) => {
            long_integer::mark(&mut content, text.as_bytes());
            (vec![content], None)
        }
        Err(error) => {
            let at = offset(text, error.line(), error.column());
            let reason = json_reason(&error);
            (Vec::new(), Some(syntax_fault(text, at, format!("invalid JSON: {reason}"), json_hint(text, at, &reason))))
        }
    }
}

/// Reads plain YAML (D76) within the limits. What nests deep is not plain, and only a long text can have too many values.
fn read_plain_yaml(text: &str) -> Option<Vec<Tape>> {
    let is_within_limits = text.len() <= limits::MOST_SEPARATORS || limits::yaml_overrun(text).is_none();
    if is_within_limits { plain_documents(text, limits::allowance(text)) } else { None }
}

fn read_yaml(text: &str) -> ReadContents {
    if let Some(found) = limits::yaml_overrun(text) {
        return (Vec::new(), Some(found));
    }
    let allowance = Allowance::new(limits::allowance(text));
    let (mut contents, mut rest) = (Vec::new(), None);
    for document in serde_yaml::Deserializer::from_str(text) {
        match TapeSeed(&allowance).deserialize(document) {
            Ok(content) => contents.push(content),
            // After a syntax error the reader would repeat it forever, so the rest of the file is not read.
            Err(error) => {
                let fault = unreadable_yaml(text, &error);
                rest = Some(match syntax::reason(&error) {
                    syntax::TOO_DEEP => fault,
                    _ => TextFault { help: with_ignore_help(&fault.help, text), ..fault },
                });
                break;
            }
        }
    }
    let aliases = if allowance.is_exceeded() { limits::alias_overrun(text) } else { None };
    (contents, aliases.or(rest))
}

/// The error of a YAML text that cannot be read, whatever it is for.
pub(crate) fn unreadable_yaml(text: &str, error: &serde_yaml::Error) -> TextFault {
    let at = error.location().map(|place| offset(text, place.line(), place.column())).unwrap_or_default();
    let span = limits::character(text, at);
    match syntax::reason(error) {
        syntax::TOO_DEEP => TextFault::levels(span),
        reason => {
            let help = yaml_hint(text, at, reason, syntax::opening(error));
            TextFault::syntax(span, format!("invalid YAML: {reason}"), help)
        }
    }
}

/// An error in the syntax at an offset.
fn syntax_fault(text: &str, at: usize, message: String, help: &str) -> TextFault {
    TextFault::syntax(limits::character(text, at), message, with_ignore_help(help, text))
}

/// Recognizes files that are not manifests, for which the reader would only report a syntax error.
fn find_damage(text: &str) -> Option<TextFault> {
    let starts_with = |sign: &str| text.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign));
    let start = |signs: &[&str]| signs.iter().find(|sign| starts_with(sign)).map(|sign| 0..sign.len());
    if let Some(span) = start(&["version https://git-lfs.github.com/"]) {
        let help = "fetch the file with `git lfs pull`";
        return Some(TextFault::syntax(span, "a Git LFS pointer, not the file itself", help));
    }
    if let Some(span) = start(&["<!DOCTYPE html", "<html"]) {
        let help = "fetch the file again; it may be an error or login page";
        return Some(TextFault::syntax(span, "an HTML page, not a manifest", help));
    }
    // One character is found much faster than a text, and hardly any file has this one.
    let starts_line = |at: &usize| at.checked_sub(1).is_none_or(|before| text.as_bytes().get(before) == Some(&b'\n'));
    let mut starts = text.match_indices('<').map(|(at, _)| at).filter(starts_line);
    if let Some(at) = starts.find(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(CONFLICT))) {
        let help = "keep one of the two sides between `<<<<<<<` and `>>>>>>>`, and remove the markers";
        return Some(TextFault::syntax(at..at + CONFLICT.len(), "unresolved merge conflict", help));
    }
    let at = text.find('\0')?;
    let message = "not a text file: it contains NUL bytes";
    Some(TextFault::syntax(at..at + 1, message, "save the file as UTF-8, or restore it if it is damaged"))
}

fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").and_then(|end| text.get(..end)).map(str::to_owned);
    end.unwrap_or(text)
}

/// How to fix the most likely cause of an error in JSON.
fn json_hint(text: &str, offset: usize, reason: &str) -> &'static str {
    let rest = text.get(offset..).unwrap_or_default();
    match reason {
        _ if rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#') => {
            "remove the comment, or write the manifest in YAML, in a `.yaml` file"
        }
        "expected value" if text.get(..offset).is_some_and(|before| before.trim().is_empty()) => {
            "rename the file to `.yaml` if it is YAML"
        }
        "trailing comma" => "remove the comma before the closing bracket",
        "key must be a string" => "put the key in double quotes",
        "expected value" | "expected ident" => {
            "put text in double quotes; only numbers, `true`, `false` and `null` have none"
        }
        "trailing characters" => {
            "put each manifest in its own `.json` file, or use YAML with a `---` line between them"
        }
        _ if reason.starts_with("EOF while parsing") => "close every bracket and quote, or restore the end of the file",
        _ if reason.starts_with("control character") => "write a line break in a string as `\\n`",
        _ => "check the commas, quotes and brackets of this line and the line above",
    }
}

/// How to fix the most likely cause of an error in YAML.
fn yaml_hint(text: &str, offset: usize, reason: &str, opening: Option<(&str, usize)>) -> String {
    let before = text.get(..offset).unwrap_or_default();
    let rest = text.get(offset..).unwrap_or_default();
    let after = rest.split('\n').next().unwrap_or_default();
    let mut lines = before.rsplit('\n');
    let (line, above) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let whole = text.get(offset - line.len()..offset + after.len()).unwrap_or_default();
    if rest.starts_with('\t') || (line.contains('\t') && line.trim().is_empty()) {
        return "indent with spaces; YAML does not allow tabs".into();
    }
    if let Some(c) = false_space(whole).or_else(|| false_space(above)) {
        return format!("replace the character U+{:04X}, which looks like a space, with a space", u32::from(c));
    }
    let lacks_colon = reason == "could not find expected ':'";
    if whole.contains("{{") || (lacks_colon && above.contains("{{")) {
        return "render the template first, or quote the text if it is meant to start with `{`".into();
    }
    let help = match (reason, opening) {
        ("found unexpected end of stream" | "found unexpected document indicator", Some((mark, number))) => {
            return format!("close the {mark} of line {number}");
        }
        ("did not find expected ',' or ']'" | "did not find expected ',' or '}'", Some((mark, number))) => {
            return format!("close the {mark} of line {number}, or separate its entries with commas");
        }
        ("unknown anchor", _) => {
            "define the anchor with `&` in an earlier line of the same document, or quote text that starts with `*`"
        }
        ("did not find expected alphabetic or numeric character", _) if line.ends_with(['*', '&']) => {
            QUOTE_FIRST_CHARACTER
        }
        ("mapping values are not allowed in this context", _) if line.contains(": ") => {
            "quote text that contains a colon and a space"
        }
        ("did not find expected key", _) if line.trim_end().ends_with(['"', '\'']) => {
            "put the whole text in quotes; in single quotes, write an apostrophe as `''`"
        }
        ("found unknown escape character", _) => "write `\\\\` for a backslash in double quotes, or use single quotes",
        ("did not find expected '-' indicator", _) => {
            "start an entry of the list with `- `, or indent the line further if it belongs to the entry above"
        }
        ("could not find expected ':'" | "mapping values are not allowed in this context", _) => {
            "check this line and the line above: a key needs a colon and a space, and text of several lines an indentation"
        }
        _ if rest.starts_with(['@', '`', '%', '&', '*', '!']) => QUOTE_FIRST_CHARACTER,
        _ => "check the indentation, commas, quotes and brackets of this line and the line above",
    };
    help.to_owned()
}

/// A character that looks like a space at the beginning of a line, or behind a colon or a dash.
fn false_space(line: &str) -> Option<char> {
    let places = iter::once(line.trim_start_matches(' ')).chain(line.split([':', '-']).skip(1));
    places.filter_map(|text| text.chars().next()).find(|c| c.is_whitespace() && !c.is_ascii())
}

/// The byte offset of a line and column, both counted from 1; columns count characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(line.saturating_sub(1)).map(str::len).sum();
    let rest = lines.next().unwrap_or_default();
    let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.trim_end().len(), |(at, _)| at);
    (start + within).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_help((_, fault): ReadContents, text: &str, expected: &str) {
        let help = fault.map(|fault| fault.help).unwrap_or_default();
        assert!(help.starts_with(expected), "{text}: {help}");
    }

    #[test]
    fn the_help_of_an_error_in_yaml_is_the_cure_of_its_cause() {
        for (text, expected) in [
            ("a:\n\tb: 1\n", "indent with spaces"),
            ("hosts:\n  - *.example.com\n", "quote text that starts with this character"),
            ("a: @b\n", "quote text that starts with this character"),
            ("a: *b\n", "define the anchor with `&`"),
            ("a: the shop: best\n", "quote text that contains a colon and a space"),
            ("a: \"the\" shop\nb: 1\n", "put the whole text in quotes"),
            ("a: 'Bob's shop'\nb: 1\n", "put the whole text in quotes"),
            ("a: \"\\d\"\n", "write `\\\\` for a backslash"),
            ("a: 1\nb: \"c\nd: e\n", "close the quote of line 2"),
            ("a: 1\nb: {c: d\ne: f\n", "close the `{` of line 2"),
            ("a: 1\nb: [c, d\ne: f\n", "close the `[` of line 2"),
            ("a:\n  b:/c\n  d: e\n", "check this line and the line above: a key needs a colon"),
            ("a:\n  {{- if b }}\n  c: d\n", "render the template first"),
            ("a: {{ b }}\n", "render the template first"),
            ("a:\u{a0}b\nc: d\n", "replace the character U+00A0"),
            ("a:\n  - b: 1\n  c: 2\n", "start an entry of the list with `- `"),
        ] {
            assert_help(read_yaml(text), text, expected);
        }
    }

    #[test]
    fn the_help_of_an_error_in_json_is_the_cure_of_its_cause() {
        for (text, expected) in [
            ("a: b\n", "rename the file to `.yaml`"),
            ("{'a': 1}", "put the key in double quotes"),
            ("{\"a\": 'b'}", "put text in double quotes"),
            ("{\"a\": True}", "put text in double quotes"),
            ("{\"a\": 1,}", "remove the comma"),
            ("{\n// b\n\"a\": 1}", "remove the comment"),
            ("{\"a\": 1}\n{\"a\": 2}", "put each manifest in its own `.json` file"),
            ("{\"a\": [1", "close every bracket"),
            ("{\"a\": \"b\nc\"}", "write a line break in a string as `\\n`"),
            ("{\"a\": 1 \"b\": 2}", "check the commas"),
        ] {
            assert_help(read_json(text), text, expected);
        }
    }
}
