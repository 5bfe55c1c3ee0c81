//! Diagnostics for a terminal: the place, the marked line, the cure.

use std::{
    fmt,
    io::{IsTerminal, Write},
    sync::Arc,
};

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan,
    SpanContents,
};

use crate::{
    manifest::schema::fields,
    model::diagnostic::{Diagnostic, Place, Severity, SourceFile},
};

/// More than this nobody reads on a terminal.
const MOST: usize = 500;

/// Prints diagnostics to stderr, with colour where it is a terminal that takes it.
pub fn diagnostics(diagnostics: &[Diagnostic]) {
    let mut stderr = anstream::stderr().lock();
    let mut handler =
        GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_links(false).with_context_lines(1);
    if !std::io::stderr().is_terminal() {
        // Whoever reads a log wraps it as they like.
        handler = handler.with_width(200).with_wrap_lines(false);
    }
    for diagnostic in diagnostics.iter().take(MOST) {
        let mut text = String::new();
        if handler.render_report(&mut text, &Report::new(diagnostic)).is_ok() {
            let _ = writeln!(stderr, "{}", text.trim_end());
            let _ = writeln!(stderr);
        }
    }
    if diagnostics.len() > MOST {
        let _ = writeln!(stderr, "… and {} more; --format json has them all\n", diagnostics.len() - MOST);
    }
}

/// Prints a line to stderr.
pub fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Prints how many files were read and what was found.
pub fn count(diagnostics: &[Diagnostic], files: usize) {
    let of = |severity| diagnostics.iter().filter(|it| it.severity == severity).count();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut line = format!("{} read: {}", plural(files, "file"), plural(of(Severity::Error), "error"));
    let warnings = of(Severity::Warning);
    if warnings > 0 {
        line += &format!(", {}", plural(warnings, "warning"));
    }
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// A diagnostic as miette wants it.
struct Report {
    message: String,
    code: String,
    help: Option<String>,
    /// None is a place that belongs to another report.
    severity: Option<Severity>,
    source: Option<Source>,
    labels: Vec<LabeledSpan>,
    /// Places in other files, each with a report of its own.
    elsewhere: Vec<Report>,
}

impl Report {
    fn new(diagnostic: &Diagnostic) -> Self {
        let source = diagnostic.place.as_ref().map(|place| Source(Arc::clone(&place.file)));
        let here = |place: &Place| diagnostic.place.as_ref().is_some_and(|it| Arc::ptr_eq(&it.file, &place.file));
        let span = |place: &Place| SourceSpan::from((place.span.start, place.span.len()));
        let mut labels = Vec::new();
        if let Some(place) = &diagnostic.place {
            let label = diagnostic.related.iter().any(|(place, _)| here(place)).then(|| "here".to_owned());
            labels.push(LabeledSpan::new_primary_with_span(label, span(place)));
        }
        let same_file = diagnostic.related.iter().filter(|(place, _)| here(place));
        labels.extend(same_file.map(|(place, label)| LabeledSpan::new_with_span(Some(label.clone()), span(place))));
        let elsewhere = diagnostic.related.iter().filter(|(place, _)| !here(place)).map(|(place, label)| Report {
            message: label.clone(),
            code: String::new(),
            help: None,
            severity: None,
            source: Some(Source(Arc::clone(&place.file))),
            labels: vec![LabeledSpan::new_primary_with_span(None, span(place))],
            elsewhere: Vec::new(),
        });
        Self {
            message: diagnostic.message.clone(),
            code: diagnostic.code.to_string(),
            help: diagnostic.help.clone(),
            severity: Some(diagnostic.severity),
            source,
            labels,
            elsewhere: elsewhere.collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl miette::Diagnostic for Report {
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

/// A file whose columns count characters, as editors do; miette's own count bytes.
struct Source(Arc<SourceFile>);

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text = self.0.text.as_str();
        let contents = self.0.shown(fields()).read_span(span, before, after)?;
        let offset = contents.span().offset();
        let line_start = text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
        let column = text.get(line_start..offset).map_or(contents.column(), |before| before.chars().count());
        Ok(Box::new(MietteSpanContents::new_named(
            self.0.name.clone(),
            contents.data(),
            *contents.span(),
            contents.line(),
            column,
            contents.line_count(),
        )))
    }
}
