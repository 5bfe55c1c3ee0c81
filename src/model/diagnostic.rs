//! A fault with its place in a file, ready to be shown to a person.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use super::{code::Code, fault::Fault, redact::redact};

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is applied.
    Error,
    /// Shown; stops nothing.
    Warning,
}

/// A file that diagnostics point into.
#[derive(Debug)]
pub struct SourceFile {
    /// The path as the user would write it; `-` for standard input.
    pub name: String,
    /// The text. It may hold secrets: whoever shows a part of it takes [`SourceFile::shown`].
    pub text: String,
    shown: OnceLock<String>,
}

impl SourceFile {
    /// A file with a name and text.
    pub fn new(name: String, text: String) -> Self {
        Self { name, text, shown: OnceLock::new() }
    }

    /// The text for a person's eyes, with the same length and the same places.
    pub fn shown(&self) -> &str {
        self.shown.get_or_init(|| redact(&self.text))
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
    /// Line and column, from 1; columns count characters.
    pub fn line_column(&self) -> (usize, usize) {
        let before = self.file.text.get(..self.span.start.min(self.file.text.len())).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        (line, before.get(line_start..).unwrap_or_default().chars().count() + 1)
    }
}

/// What is wrong, where, and how to mend it.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The registered code.
    pub code: Code,
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
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), help: None, place: None, related: Vec::new() }
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

/// Sorts diagnostics the way people read files.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_cached_key(|it| {
        let place = it.place.as_ref().map(|place| (place.file.name.clone(), place.span.start));
        (place, it.code, it.message.clone())
    });
}
