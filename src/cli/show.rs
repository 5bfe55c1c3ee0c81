//! Diagnostics for a terminal: the position, the highlighted line and the help.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::Arc,
};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};

use super::excerpt::Excerpt;
use crate::{
    model::diagnostic::{Diagnostic, Place, Severity},
    text::escaped,
};

/// The most diagnostics printed to a terminal.
const MOST: usize = 500;

/// Prints diagnostics to stderr, in colour if the terminal supports it.
pub(super) fn diagnostics(diagnostics: &[Diagnostic]) {
    let mut stderr = anstream::stderr().lock();
    let mut handler =
        GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_links(false).with_context_lines(1);
    if !std::io::stderr().is_terminal() {
        // Log viewers wrap lines themselves.
        handler = handler.with_width(200).with_wrap_lines(false);
    }
    for diagnostic in diagnostics.iter().take(MOST) {
        let mut text = String::new();
        if handler.render_report(&mut text, &DiagnosticReport::new(diagnostic)).is_ok() {
            let _ = writeln!(stderr, "{}", text.trim_end());
            let _ = writeln!(stderr);
        }
    }
    if diagnostics.len() > MOST {
        let _ = writeln!(stderr, "… and {} more; use --format json to list all\n", diagnostics.len() - MOST);
    }
}

/// Prints how a plan differs from the one that was reviewed.
pub(super) fn difference(diff: &str) {
    if diff.trim().is_empty() {
        return;
    }
    for line in diff.lines() {
        say(line);
    }
    say("");
}

/// Prints a line to stderr.
pub(super) fn say(line: &str) {
    let _ = try_say(line);
}

/// Prints a line that must be seen to stderr; an error is not ignored.
pub(super) fn try_say(line: &str) -> io::Result<()> {
    let mut stderr = anstream::stderr();
    writeln!(stderr, "{}", escaped(line))?;
    stderr.flush()
}

/// Prints how many files were read and what was found.
pub(super) fn count(diagnostics: &[Diagnostic], files: usize) {
    let of = |severity| diagnostics.iter().filter(|it| it.severity == severity).count();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut line = format!("{} read: {}", plural(files, "file"), plural(of(Severity::Error), "error"));
    let warnings = of(Severity::Warning);
    if warnings > 0 {
        line += &format!(", {}", plural(warnings, "warning"));
    }
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// A diagnostic in miette's form.
struct DiagnosticReport {
    message: String,
    code: String,
    help: Option<String>,
    /// `None` for a place related to another report.
    severity: Option<Severity>,
    source: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
    /// Places in other files, each with a report of its own.
    elsewhere: Vec<DiagnosticReport>,
}

impl DiagnosticReport {
    fn new(diagnostic: &Diagnostic) -> Self {
        let same_file = |place: &Place| diagnostic.place.as_ref().is_some_and(|it| Arc::ptr_eq(&it.file, &place.file));
        let (here, elsewhere): (Vec<_>, Vec<_>) = diagnostic.related.iter().partition(|(place, _)| same_file(place));
        let mut source = None;
        let mut labels = Vec::new();
        if let Some(place) = &diagnostic.place {
            let places: Vec<_> =
                std::iter::once(place).chain(here.iter().map(|(place, _)| place)).map(|it| it.span.clone()).collect();
            let excerpt = Excerpt::new(&place.file, &places);
            let mut spans = excerpt.spans();
            let label = (!here.is_empty()).then(|| "here".to_owned());
            labels.extend(spans.next().map(|span| LabeledSpan::new_primary_with_span(label, span)));
            let related = spans.zip(&here);
            labels.extend(
                related.map(|(span, (_, label))| LabeledSpan::new_with_span(Some(escaped(label).into_owned()), span)),
            );
            source = Some(excerpt);
        }
        let elsewhere = elsewhere.into_iter().map(|(place, label)| {
            let excerpt = Excerpt::new(&place.file, std::slice::from_ref(&place.span));
            DiagnosticReport {
                message: escaped(label).into_owned(),
                code: String::new(),
                help: None,
                severity: None,
                labels: excerpt.spans().map(|span| LabeledSpan::new_primary_with_span(None, span)).collect(),
                source: Some(excerpt),
                elsewhere: Vec::new(),
            }
        });
        Self {
            message: escaped(&diagnostic.message).into_owned(),
            code: diagnostic.code.to_string(),
            help: diagnostic.help.as_deref().map(|help| escaped(help).into_owned()),
            severity: Some(diagnostic.severity),
            source,
            labels,
            elsewhere: elsewhere.collect(),
        }
    }
}

impl fmt::Display for DiagnosticReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for DiagnosticReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DiagnosticReport {}

impl miette::Diagnostic for DiagnosticReport {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.code.is_empty()).then(|| Box::new(&self.code) as Box<dyn fmt::Display>)
    }
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Some(Severity::Error) => miette::Severity::Error,
            Some(Severity::Warning) => miette::Severity::Warning,
            None => miette::Severity::Advice,
        })
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty())
            .then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        let related = self.elsewhere.iter().map(|report| report as &dyn miette::Diagnostic);
        (!self.elsewhere.is_empty()).then(|| Box::new(related) as Box<dyn Iterator<Item = &'a dyn miette::Diagnostic>>)
    }
}
