//! The documents of a file and the envelope of every manifest (D26).

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeSeed};

use super::{
    findings::FileFindings,
    limits::{self, Overrun},
    syntax,
};
use crate::{
    manifest::resolve::{
        foreign_files::with_ignore_help,
        origin::{ManifestFile, Origin},
    },
    model::{
        diagnostics::{Code, Diagnostic},
        json::{deserialize, long_integer},
        node::{Allowance, Node, Tape, TapeSeed, plain_documents},
    },
};

/// The version of the manifest format.
pub(crate) const API_VERSION: &str = "edgewright/v1";

/// The fields of a manifest besides `spec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Envelope {
    /// The version of the manifest format: `edgewright/v1`.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// The kind of resource.
    pub kind: String,
    /// The resource's name, labels and lifecycle options.
    pub metadata: Metadata,
}

/// The name, labels and lifecycle options of a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metadata {
    /// Lower-case letters, digits, '-' and '.'; unique per kind.
    pub name: String,
    /// Custom labels.
    pub labels: BTreeMap<String, String>,
    /// Free text, except `edgewright/lint.NAME: allow|warn|deny`.
    #[schemars(extend("patternProperties" = {"^edgewright/lint\\.": {"enum": ["allow", "warn", "deny"]}}))]
    pub annotations: BTreeMap<String, String>,
    /// Adopts the existing resource with this identifier.
    pub id: Option<String>,
    /// The former name: the resource is kept across the rename.
    pub renamed_from: Option<String>,
    /// Refuses any plan that would delete or replace the resource.
    pub prevent_destroy: bool,
    /// The source to take the resource over from, with its consent in `transfer_to`.
    pub transfer_from: Option<String>,
    /// The source that may take the resource over.
    pub transfer_to: Option<String>,
}

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

/// Why the rest of a file is not read.
enum UnreadRest {
    /// A limit that it exceeds.
    Overrun(Overrun),
    /// A syntax error, and its offset.
    Syntax(String, usize),
}

impl UnreadRest {
    fn diagnostic(self, file: &ManifestFile) -> Diagnostic {
        match self {
            UnreadRest::Overrun(Overrun { code, message, span, help }) => {
                Diagnostic::error(code, message).at(file.place(span)).help(help)
            }
            UnreadRest::Syntax(message, at) => {
                let text = file.source.text.as_str();
                let place = file.place(limits::character(text, at));
                Diagnostic::error(Code::Syntax, message).at(place).help(with_ignore_help(hint(text, at), text))
            }
        }
    }
}

/// The documents of a text up to its first error, and why the rest is not read.
type ReadContents = (Vec<Tape>, Option<UnreadRest>);

/// Reads the documents of a file up to the first syntax error.
pub(crate) fn read(file: &Arc<ManifestFile>, findings: &mut FileFindings) -> Vec<Document> {
    let text = file.source.text.as_str();
    if let Some((span, message, help)) = find_damage(text) {
        findings.error(|| Diagnostic::error(Code::Syntax, message).at(file.place(span)).help(help));
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
        return (Vec::new(), Some(UnreadRest::Overrun(found)));
    }
    match deserialize::from_str::<Tape>(text) {
        Ok(mut content) => {
            long_integer::mark(&mut content, text.as_bytes());
            (vec![content], None)
        }
        Err(error) => {
            let at = offset(text, error.line(), error.column());
            (Vec::new(), Some(UnreadRest::Syntax(json_message(&error), at)))
        }
    }
}

/// Reads plain YAML (D76) within the limits. What nests deep is not plain, and only a long text can have too many values.
fn read_plain_yaml(text: &str) -> Option<Vec<Tape>> {
    let is_within_limits = limits::is_short(text) || limits::yaml_overrun(text).is_none();
    if is_within_limits { plain_documents(text, limits::allowance(text)) } else { None }
}

fn read_yaml(text: &str) -> ReadContents {
    if let Some(found) = limits::yaml_overrun(text) {
        return (Vec::new(), Some(UnreadRest::Overrun(found)));
    }
    let allowance = Allowance::new(limits::allowance(text));
    let (mut contents, mut rest) = (Vec::new(), None);
    for document in serde_yaml::Deserializer::from_str(text) {
        match TapeSeed(&allowance).deserialize(document) {
            Ok(content) => contents.push(content),
            // After a syntax error the reader would repeat it forever, so the rest of the file is not read.
            Err(error) => {
                let at = error.location().map(|place| offset(text, place.line(), place.column())).unwrap_or_default();
                rest = Some(match syntax::is_too_deep(&error) {
                    true => UnreadRest::Overrun(limits::depth_overrun(limits::character(text, at))),
                    false => UnreadRest::Syntax(format!("invalid YAML: {}", syntax::reason(&error)), at),
                });
                break;
            }
        }
    }
    let aliases = if allowance.is_exceeded() { limits::alias_overrun(text) } else { None };
    (contents, aliases.map(UnreadRest::Overrun).or(rest))
}

/// Recognizes files that are not manifests, for which the reader would only report a syntax error.
fn find_damage(text: &str) -> Option<(Range<usize>, &'static str, &'static str)> {
    let start = |signs: &[&str], message, help| {
        let sign = signs.iter().find(|sign| text.get(..sign.len()).is_some_and(|it| it.eq_ignore_ascii_case(sign)))?;
        Some((0..sign.len(), message, help))
    };
    // One character is found much faster than a text, and hardly any file has this one.
    let marked = |sign: &str, message, help| {
        let starts_line =
            |at: &usize| at.checked_sub(1).is_none_or(|before| text.as_bytes().get(before) == Some(&b'\n'));
        let mut starts = text.match_indices('<').map(|(at, _)| at).filter(starts_line);
        let at = starts.find(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(sign)))?;
        Some((at..at + sign.len(), message, help))
    };
    start(
        &["version https://git-lfs.github.com/"],
        "a Git LFS pointer, not the file itself",
        "fetch the file with `git lfs pull`",
    )
    .or_else(|| {
        let help = "fetch the file again; it may be an error or login page";
        start(&["<!DOCTYPE html", "<html"], "an HTML page, not a manifest", help)
    })
    .or_else(|| {
        let help = "keep one of the two sides between `<<<<<<<` and `>>>>>>>`, and remove the markers";
        marked("<<<<<<< ", "unresolved merge conflict", help)
    })
    .or_else(|| {
        let at = text.find('\0')?;
        Some((at..at + 1, "not a text file: it contains NUL bytes", "restore the file; it is damaged"))
    })
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
