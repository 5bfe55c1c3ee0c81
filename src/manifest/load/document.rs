//! The documents of a file (D26).

use serde::de::DeserializeSeed;

use super::findings::FileFindings;
use super::limits::{self, TextFault};
use super::syntax;
use crate::manifest::prelude::*;
use crate::manifest::resolve::foreign_files::with_ignore_help;
use crate::manifest::resolve::origin::{ManifestFile, Origin};
use crate::model::json::{deserialize, long_integer};
use crate::syntax::yaml::{Allowance, Node, Tape, TapeSeed, plain_documents};

/// The start of a line that Git writes at a merge conflict.
const CONFLICT: &str = "<<<<<<< ";

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
    let mut faults = content.take_faults();
    faults.extend(content.merge());
    let faulty = !faults.is_empty();
    for fault in faults {
        findings.error(|| origin.diagnostic(fault));
    }
    Some(Document { content, origin, faulty })
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
            (Vec::new(), Some(syntax_fault(text, at, json_message(&error))))
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
                let at = error.location().map(|place| offset(text, place.line(), place.column())).unwrap_or_default();
                rest = Some(match syntax::reason(&error) {
                    syntax::TOO_DEEP => TextFault::levels(limits::character(text, at)),
                    reason => syntax_fault(text, at, format!("invalid YAML: {reason}")),
                });
                break;
            }
        }
    }
    let aliases = if allowance.is_exceeded() { limits::alias_overrun(text) } else { None };
    (contents, aliases.or(rest))
}

/// An error in the syntax at an offset, with its most likely cause.
fn syntax_fault(text: &str, at: usize, message: String) -> TextFault {
    TextFault::syntax(limits::character(text, at), message, with_ignore_help(hint(text, at), text))
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
    Some(TextFault::syntax(at..at + 1, message, "restore the file; it is damaged"))
}

fn json_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").and_then(|end| text.get(..end)).map(str::to_owned);
    format!("invalid JSON: {}", end.unwrap_or(text))
}

/// The most likely cause of a syntax error.
fn hint(text: &str, offset: usize) -> &'static str {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let rest = text.get(offset..).unwrap_or_default();
    if rest.starts_with('\t') || (line.contains('\t') && line.trim().is_empty()) {
        return "indent with spaces; YAML does not allow tabs";
    }
    let after = rest.split('\n').next().unwrap_or_default();
    if line.contains("{{") || after.contains("{{") {
        return "render the template first, or quote the text if it is meant to start with `{`";
    }
    if rest.starts_with(['@', '`', '%', '&', '*', '!']) {
        return "quote text that starts with this character";
    }
    "check the indentation, commas, quotes and brackets of this line and the line above"
}

/// The byte offset of a line and column, both counted from 1; columns count characters.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut lines = text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(line.saturating_sub(1)).map(str::len).sum();
    let rest = lines.next().unwrap_or_default();
    let within = rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.trim_end().len(), |(at, _)| at);
    (start + within).min(text.len())
}
