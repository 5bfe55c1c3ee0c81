//! A fault with its place in a file, ready to be shown to a person.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    code::Code,
    fault::Fault,
    redact::{Fields, Redacted},
};
use crate::text::tamed;

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is applied.
    Error,
    /// Shown; stops nothing.
    Warning,
}

/// A file that diagnostics point into.
pub struct SourceFile {
    /// The path as the user would write it; `-` for standard input.
    pub name: String,
    /// The text. It may hold secrets: whoever shows a part of it takes [`SourceFile::shown`].
    pub text: String,
    shown: OnceLock<Redacted>,
    line_starts: OnceLock<Vec<usize>>,
}

/// Without the text, which may hold secrets.
impl fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceFile({}, {} bytes)", self.name, self.text.len())
    }
}

impl SourceFile {
    /// A file with a name and text.
    pub fn new(name: String, text: String) -> Self {
        Self { name, text, shown: OnceLock::new(), line_starts: OnceLock::new() }
    }

    /// The offset of each line's first byte; a text without lines has an empty one.
    pub fn line_starts(&self) -> &[usize] {
        self.line_starts.get_or_init(|| {
            let behind_breaks = self.text.match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(behind_breaks).collect()
        })
    }

    /// The offset of a line and column, both from 1; what lies behind the end of a line or file is its end.
    fn offset(&self, line: usize, column: usize) -> usize {
        let Some(start) = self.line_starts().get(line.saturating_sub(1)).copied() else { return self.text.len() };
        let rest = self.text.get(start..).unwrap_or_default();
        let rest = rest.split('\n').next().unwrap_or_default();
        start + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
    }

    /// The text for a person's eyes, with the same length and the same places. `fields` are those of manifests.
    pub fn shown(&self, fields: &Fields) -> &str {
        &self.redacted(fields).text
    }

    /// A message about the file without the secrets of the file that it quotes.
    pub fn message(&self, message: &str, fields: &Fields) -> String {
        self.redacted(fields).message(message)
    }

    fn redacted(&self, fields: &Fields) -> &Redacted {
        self.shown.get_or_init(|| {
            let mut redacted = Redacted::new(&self.text, fields);
            redacted.text = tamed(&redacted.text);
            redacted
        })
    }
}

/// A range of bytes in a file.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub file: Arc<SourceFile>,
    /// Bytes of its text.
    pub span: Range<usize>,
}

impl Place {
    /// From a line and column, to the line and column behind the last character.
    pub fn at(file: Arc<SourceFile>, start: (usize, usize), end: (usize, usize)) -> Self {
        let start = file.offset(start.0, start.1);
        let end = file.offset(end.0, end.1).max(start);
        Self { file, span: start..end }
    }

    /// Line and column, from 1; columns count characters.
    pub fn line_column(&self) -> (usize, usize) {
        self.line_column_of(self.span.start)
    }

    /// Line and column behind the last character. A span that goes on to a later line by nothing but white space, as
    /// those of YAML blocks do, ends where its text does.
    pub fn end_line_column(&self) -> (usize, usize) {
        let start = self.span.start;
        let inside = self.file.text.get(self.span.clone()).unwrap_or_default();
        let trimmed = inside.trim_end();
        let breaks = inside.get(trimmed.len()..).is_some_and(|rest| rest.contains('\n'));
        self.line_column_of(start + if breaks { trimmed.len() } else { inside.len() })
    }

    fn line_column_of(&self, offset: usize) -> (usize, usize) {
        let text = &self.file.text;
        let offset = text.floor_char_boundary(offset);
        let starts = self.file.line_starts();
        let line = starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|line| starts.get(line)).copied().unwrap_or_default();
        (line, text.get(start..offset).unwrap_or_default().chars().count() + 1)
    }
}

/// The name of what a diagnostic reports: a registered code, or a lint (D10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A fault.
    Code(Code),
    /// A lint's finding.
    Lint(&'static str),
}

impl From<Code> for Name {
    fn from(code: Code) -> Self {
        Name::Code(code)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Code(code) => code.fmt(f),
            Name::Lint(name) => f.write_str(name),
        }
    }
}

/// What is wrong, where, and how to mend it.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The registered code, or the lint.
    pub code: Name,
    /// How serious it is.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub message: String,
    /// The cure.
    pub help: Option<String>,
    /// The place at fault, where there is one.
    pub place: Option<Place>,
    /// Another place that has to do with it, and what.
    pub related: Vec<(Place, String)>,
}

impl Diagnostic {
    /// An error that is not about a place in a file.
    pub fn error(code: impl Into<Name>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            severity: Severity::Error,
            message: message.into(),
            help: None,
            place: None,
            related: Vec::new(),
        }
    }

    /// A fault at a place.
    pub fn from_fault(fault: Fault, place: Place) -> Self {
        Self { help: fault.help, place: Some(place), ..Self::error(fault.code, fault.message) }
    }

    /// The same diagnostic with its cure.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same diagnostic at a place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// File, line and column for sorting and for one-line output.
    pub fn position(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let (line, column) = place.line_column();
        Some((&place.file.name, line, column))
    }
}

/// Sorts diagnostics the way people read files. What an alias repeats is told once.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_cached_key(|it| {
        let place = it.place.as_ref().map(|place| (place.file.name.clone(), place.span.start));
        (place, it.code, it.message.clone())
    });
    // By offset: a column takes as long to count as its line is long.
    let start = |it: &Diagnostic| it.place.as_ref().map(|place| (place.file.name.clone(), place.span.start));
    diagnostics
        .dedup_by(|a, b| a.place.is_some() && a.code == b.code && a.message == b.message && start(a) == start(b));
}
