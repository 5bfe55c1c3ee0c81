//! Diagnostics: errors and warnings with their places in files.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::code::Code;
use super::fault::{Fault, MOST_FAULTS, hide_tokens};
use super::invariant_finding::InvariantFinding;
use crate::model::names::names;
use crate::model::secrets::redact::{Fields, RedactedText};
use crate::syntax::text::{number_of, without_display_changes};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is applied.
    Error,
    /// Shown only.
    Warning,
}

names!(Severity: Error "error", Warning "warning");

/// A file that diagnostics refer to.
pub struct SourceFile {
    /// The path to show, without API tokens; `-` for standard input.
    pub name: String,
    /// The text. It may contain secrets, so only its redacted form is shown.
    pub text: Arc<String>,
    redacted: OnceLock<RedactedText>,
    line_starts: OnceLock<Vec<usize>>,
    /// The digest of the name and text, once it was needed.
    digest: OnceLock<blake3::Hash>,
}

/// Omits the text, which may contain secrets.
impl fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceFile({}, {} bytes)", self.name, self.text.len())
    }
}

impl SourceFile {
    /// Creates a file.
    pub fn new(name: String, text: String) -> Self {
        Self::shared(name, Arc::new(text))
    }

    /// Creates a file with a text that others use too.
    pub(crate) fn shared(name: String, text: Arc<String>) -> Self {
        let name = hide_tokens(name);
        Self { name, text, redacted: OnceLock::new(), line_starts: OnceLock::new(), digest: OnceLock::new() }
    }

    /// The digest of the name and text, computed on first use.
    pub(crate) fn digest(&self) -> blake3::Hash {
        let of_text = || {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&(self.name.len() as u64).to_le_bytes());
            hasher.update(self.name.as_bytes()).update(self.text.as_bytes());
            hasher.finalize()
        };
        *self.digest.get_or_init(of_text)
    }

    /// The offset of each line's first byte; an empty text has one empty line.
    pub fn line_starts(&self) -> &[usize] {
        self.line_starts.get_or_init(|| {
            let behind_breaks = self.text.match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(behind_breaks).collect()
        })
    }

    /// The offset of a line and column, both from 1; positions after the end of a line or file map to its end.
    fn offset(&self, line: usize, column: usize) -> usize {
        let Some(start) = self.line_starts().get(line.saturating_sub(1)).copied() else { return self.text.len() };
        let rest = self.text.get(start..).unwrap_or_default();
        let rest = rest.split('\n').next().unwrap_or_default();
        start + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
    }

    /// Returns the public parts of the text, at the same positions. `fields` are those of manifests.
    pub(crate) fn redacted(&self, fields: &Fields) -> &RedactedText {
        self.redacted.get_or_init(|| {
            let mut redacted = RedactedText::new(&self.text, fields);
            redacted.text = without_display_changes(&redacted.text);
            redacted
        })
    }
}

/// A byte range in a file.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The byte range in its text.
    pub span: Range<usize>,
}

impl Place {
    /// Creates a place from its start and its exclusive end, each as line and column.
    pub fn at(file: Arc<SourceFile>, start: (usize, usize), end: (usize, usize)) -> Self {
        let start = file.offset(start.0, start.1);
        let end = file.offset(end.0, end.1).max(start);
        Self { file, span: start..end }
    }

    /// The line and column of the start, from 1; columns count characters.
    pub fn line_column(&self) -> (usize, usize) {
        self.line_column_of(self.span.start)
    }

    /// The line and column after the last character. Trailing whitespace on later lines, as in YAML blocks, does not
    /// count.
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

/// The name of a diagnostic: a registered code, or a lint (D10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A registered code.
    Code(Code),
    /// A lint.
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

/// The cause of a diagnostic, where code needs more than its name to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The source is not fetched (D88).
    NotFetched,
    /// A commit that must not be read: it is not verified (D82), or the revision was moved back (D89).
    RefusedCommit,
    /// A file, a folder or a whole source that cannot be read.
    NotRead,
    /// A file that is empty or not UTF-8, or a source without files.
    NoContent,
    /// A module set that nothing declares. No store has these, unlike everything else with a name.
    UnknownModuleSet,
}

/// An error or warning: the message, the place and the help.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The code or lint.
    pub code: Name,
    /// The severity.
    pub severity: Severity,
    /// The cause, if code decides by it.
    pub cause: Option<Cause>,
    /// Whether the diagnostic is about the surrounding manifests, which belong to others (D107).
    pub is_surrounding: bool,
    /// One sentence without a full stop.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// The place, if any.
    pub place: Option<Place>,
    /// Related places with their labels.
    pub related: Box<[(Place, String)]>,
    /// The invariant that the diagnostic is about.
    pub invariant: Option<Box<InvariantFinding>>,
    /// The number of further diagnostics of the same file and severity that are not included; the message states it.
    pub omitted: u32,
}

impl Diagnostic {
    /// Creates an error without a place.
    pub fn error(code: impl Into<Name>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            severity: Severity::Error,
            cause: None,
            is_surrounding: false,
            message: hide_tokens(message.into()),
            help: None,
            place: None,
            related: Box::default(),
            invariant: None,
            omitted: 0,
        }
    }

    /// Creates a warning without a place.
    pub fn warning(code: impl Into<Name>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Creates an error from a fault and its place.
    pub fn from_fault(fault: Fault, place: Place) -> Self {
        let Fault { code, message, help, invariant, .. } = fault;
        Self { help, place: Some(place), invariant, ..Self::error(code, message) }
    }

    /// Adds related places.
    pub(crate) fn relate(&mut self, places: impl IntoIterator<Item = (Place, String)>) {
        let known = std::mem::take(&mut self.related).into_vec();
        self.related = known.into_iter().chain(places).collect();
    }

    /// Whether the diagnostic is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Whether the diagnostic has one of some codes.
    pub(crate) fn is_one_of(&self, codes: &[Code]) -> bool {
        matches!(self.code, Name::Code(code) if codes.contains(&code))
    }

    /// Whether the diagnostic counts as a finding with a severity. The line that counts known findings is not a finding
    /// (D114).
    pub(crate) fn counts_as(&self, severity: Severity) -> bool {
        self.severity == severity && self.code != Name::Code(Code::KnownFindings)
    }

    /// Sets the cause.
    #[must_use]
    pub(crate) fn caused_by(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Sets the help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(hide_tokens(help.into()));
        self
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// States in the message how many further diagnostics of the file and severity are not included.
    pub(crate) fn omit(&mut self, count: usize) {
        let stated = self.omission();
        if let Some(message) = self.message.strip_suffix(stated.as_str()).map(str::to_owned) {
            self.message = message;
        }
        self.omitted = u32::try_from(count).unwrap_or(u32::MAX);
        let stated = self.omission();
        self.message.push_str(&stated);
    }

    fn omission(&self) -> String {
        match self.omitted {
            0 => String::new(),
            count => {
                let more = number_of(count as usize, &format!("more {}", self.severity.as_str()));
                format!(" (and {more} in this file)")
            }
        }
    }

    /// The code, the place and the message, for the history.
    pub(crate) fn on_one_line(&self) -> String {
        let place = self.position().map(|(file, line, column)| format!("{file}:{line}:{column}: "));
        hide_tokens(format!("{}: {}{}", self.code, place.unwrap_or_default(), self.message))
    }

    /// The file, line and column for one-line output.
    pub fn position(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let (line, column) = place.line_column();
        Some((&place.file.name, line, column))
    }
}

/// Sorts diagnostics by file and position, and removes duplicates caused by aliases.
pub(crate) fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_cached_key(|it| {
        let place = it.place.as_ref().map(|place| (place.file.name.clone(), place.span.start));
        (place, it.code, it.message.clone())
    });
    // Sorted by offset, because counting a column takes time in proportion to the line.
    let start = |it: &Diagnostic| it.place.as_ref().map(|place| (place.file.name.clone(), place.span.start));
    diagnostics
        .dedup_by(|a, b| a.place.is_some() && a.code == b.code && a.message == b.message && start(a) == start(b));
}

/// Sorts diagnostics, and keeps the first hundred errors and warnings of each file; the last one of each severity
/// states how many more there are (D48). A report of all could be larger than the manifests.
pub(crate) fn cap(diagnostics: &mut Vec<Diagnostic>) {
    sort(diagnostics);
    let group = |it: &Diagnostic| Some((it.place.as_ref()?.file.name.clone(), it.severity));
    let mut counts: BTreeMap<(String, Severity), (usize, usize)> = BTreeMap::new();
    for it in diagnostics.iter() {
        if let Some(group) = group(it) {
            let (listed, total) = counts.entry(group).or_default();
            *listed += 1;
            *total += 1 + it.omitted as usize;
        }
    }
    counts.retain(|_, (listed, total)| *total > *listed || *listed > MOST_FAULTS);
    if counts.is_empty() {
        return;
    }
    let mut seen: BTreeMap<(String, Severity), usize> = BTreeMap::new();
    diagnostics.retain_mut(|it| {
        let Some(group) = group(it) else { return true };
        let Some((listed, total)) = counts.get(&group).copied() else { return true };
        let kept = listed.min(MOST_FAULTS);
        let seen = seen.entry(group).or_default();
        *seen += 1;
        it.omit(if *seen == kept { total - kept } else { 0 });
        *seen <= kept
    });
}

/// Returns the number of errors or warnings with its noun: `at least` that many if a full list does not state how many
/// diagnostics of its file it lacks.
pub(crate) fn counted(diagnostics: &[Diagnostic], severity: Severity) -> String {
    let mut total = 0;
    let mut of_file: HashMap<&str, (usize, usize)> = HashMap::new();
    for it in diagnostics.iter().filter(|it| it.counts_as(severity)) {
        total += 1 + it.omitted as usize;
        if let Some(place) = &it.place {
            let (listed, omitted) = of_file.entry(place.file.name.as_str()).or_default();
            *listed += 1;
            *omitted += it.omitted as usize;
        }
    }
    // A report from a server does not contain the number itself.
    let is_open = of_file.values().any(|(listed, omitted)| *listed >= MOST_FAULTS && *omitted == 0);
    let number = number_of(total, severity.as_str());
    if is_open { format!("at least {number}") } else { number }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn errors(name: &str, count: usize) -> Vec<Diagnostic> {
        let file = Arc::new(SourceFile::new(name.to_owned(), "x".repeat(count)));
        let place = |at: usize| Place { file: Arc::clone(&file), span: at..at + 1 };
        (0..count).map(|at| Diagnostic::error(Code::Syntax, format!("error {at}")).at(place(at))).collect()
    }

    #[test]
    fn a_file_has_a_hundred_errors_wherever_they_come_from() {
        let mut found = errors("a.yaml", 100);
        found.last_mut().unwrap().omit(2_900);
        cap(&mut found);
        assert_eq!(found.last().unwrap().message, "error 99 (and 2900 more errors in this file)");
        found.extend(errors("a.yaml", 150).split_off(100));
        found.extend(errors("b.yaml", 101));
        found.push(Diagnostic::error(Code::Unreadable, "no file"));
        cap(&mut found);
        cap(&mut found);
        let stated: Vec<&str> = found.iter().filter(|it| it.omitted > 0).map(|it| it.message.as_str()).collect();
        assert_eq!(
            stated,
            ["error 99 (and 2950 more errors in this file)", "error 99 (and 1 more error in this file)"]
        );
        assert_eq!(found.len(), 201);
        assert_eq!(counted(&found, Severity::Error), "3152 errors");
        found.iter_mut().for_each(|it| it.omitted = 0);
        assert_eq!(counted(&found, Severity::Error), "at least 201 errors");
        assert_eq!(counted(&errors("a.yaml", 1), Severity::Error), "1 error");
        assert_eq!(counted(&[], Severity::Warning), "0 warnings");
    }
}
