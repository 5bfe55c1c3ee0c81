//! Diagnostics for a terminal: the position, the highlighted line and the help.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic};
use textwrap::{WordSeparator, WordSplitter};

use super::excerpt::{Excerpt, HIDDEN};
use super::stdout::width_of;
use super::table::between_words;
use crate::cli::prelude::*;
use crate::manifest::resolve::foreign_files::is_about_foreign_file;
use crate::model::diagnostics::diagnostic::counted;
use crate::model::{MOST_FAULTS, Place};
use crate::syntax::text::escaped_lines;

/// The most diagnostics printed to a terminal.
const MOST: usize = 500;
/// The most diagnostics of one file, so that one broken file does not hide the others.
const MOST_OF_FILE: usize = 20;
/// The most files of other programs that are shown: a wrong folder can have thousands.
const MOST_FOREIGN: usize = 5;
/// The most files whose omitted diagnostics are counted separately.
const MOST_FILES: usize = 20;
/// The widest text on a terminal, as in the help: longer lines are hard to read.
const WIDEST: usize = 100;
/// The narrowest text, so that a line has a few words.
const NARROWEST: usize = 40;
/// The words before the label of a place in another file.
const HERE: &str = "also here";

/// Prints diagnostics to stderr, in colour if the terminal supports it.
pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) {
    let mut stderr = anstream::stderr().lock();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_links(false).with_context_lines(1);
    let handler = if io::stderr().is_terminal() {
        // Commands, paths and addresses stay whole, so that they can be copied.
        let handler = handler.with_word_separator(WordSeparator::AsciiSpace).with_break_words(false);
        let handler = handler.with_word_splitter(WordSplitter::NoHyphenation);
        handler.with_width(text_width(width_of(io::stderr())))
    } else {
        // Log viewers wrap lines themselves.
        handler.with_wrap_lines(false)
    };
    let (shown, omitted, foreign) = select(diagnostics);
    let mut is_hidden = false;
    for diagnostic in shown {
        let text = rendered(&handler, diagnostic);
        if !text.is_empty() {
            let _ = writeln!(stderr, "{text}\n");
        }
        is_hidden |= text.contains(HIDDEN);
    }
    // In a log, the reader has the page of error codes.
    if let Some(hint) = explain_hint(diagnostics).filter(|_| io::stderr().is_terminal()) {
        let _ = writeln!(stderr, "{}\n", fitted(&hint));
    }
    if is_hidden {
        let hint = format!("`{HIDDEN}` replaces what could be a secret, such as the value of an unknown field.");
        let _ = writeln!(stderr, "{}\n", fitted(&hint));
    }
    for line in omitted_lines(&omitted) {
        let _ = writeln!(stderr, "{}", escaped(&line));
    }
    if !omitted.is_empty() {
        let _ = writeln!(
            stderr,
            "Use --format json to list up to {MOST_FAULTS} errors and {MOST_FAULTS} warnings per file.\n"
        );
    }
    if foreign > 0 {
        let errors = number_of(foreign, "more error");
        let _ = writeln!(
            stderr,
            "… and {errors} in files that may not be manifests. Check the path: is it the folder of your manifests? If it \
             is, list other files in its .edgewrightignore. Use --format json to list all errors.\n"
        );
    }
}

/// The width at which the text of a diagnostic wraps on a terminal, whose width can be unknown.
fn text_width(terminal: Option<usize>) -> usize {
    terminal.unwrap_or(80).clamp(NARROWEST, WIDEST)
}

/// A diagnostic, followed by the places in other files.
fn rendered(handler: &GraphicalReportHandler, diagnostic: &Diagnostic) -> String {
    let texts = reports(diagnostic).into_iter().filter_map(|report| {
        let mut text = String::new();
        handler.render_report(&mut text, report.as_ref()).ok()?;
        Some(text.trim_end().to_owned())
    });
    texts.collect::<Vec<String>>().join("\n\n")
}

/// How to read more about errors: of one code by its name.
fn explain_hint(diagnostics: &[Diagnostic]) -> Option<String> {
    let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let mut codes: Vec<String> = errors.map(|it| it.code.to_string()).collect();
    codes.sort_unstable();
    codes.dedup();
    match codes.as_slice() {
        [] => None,
        [one] => Some(format!("Run `edgewright explain {one}` for the cause and the fix.")),
        _ => Some("Run `edgewright explain CODE` for the cause and the fix of an error.".to_owned()),
    }
}

/// The number of diagnostics that are not shown, by file; those without a file have an empty name.
type Omitted<'a> = BTreeMap<&'a str, usize>;

/// The diagnostics to show, in their order, and the number of the others: by file, and in files of other programs. Errors are
/// chosen before warnings.
fn select(diagnostics: &[Diagnostic]) -> (Vec<&Diagnostic>, Omitted<'_>, usize) {
    let mut of_file: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shown = Vec::new();
    let mut omitted = Omitted::new();
    let mut foreign = 0;
    for severity in [Severity::Error, Severity::Warning] {
        for (index, it) in diagnostics.iter().enumerate().filter(|(_, it)| it.severity == severity) {
            let name = it.place.as_ref().map(|place| place.file.name.as_str()).unwrap_or_default();
            if is_about_foreign_file(it) {
                foreign += 1;
                if foreign > MOST_FOREIGN {
                    continue;
                }
            }
            let count = of_file.entry(name).or_default();
            if shown.len() < MOST && (it.place.is_none() || *count < MOST_OF_FILE) {
                *count += 1;
                shown.push((index, it));
            } else {
                *omitted.entry(name).or_default() += 1 + it.omitted as usize;
            }
        }
    }
    shown.sort_by_key(|(index, _)| *index);
    (shown.into_iter().map(|(_, it)| it).collect(), omitted, foreign.saturating_sub(MOST_FOREIGN))
}

/// The lines that count what is not shown.
fn omitted_lines(omitted: &Omitted<'_>) -> Vec<String> {
    let line = |(name, count): (&&str, &usize)| match *name {
        "" => format!("… and {count} more"),
        name => format!("… and {count} more in {name}"),
    };
    let mut lines: Vec<String> = omitted.iter().take(MOST_FILES).map(line).collect();
    let files = omitted.len().saturating_sub(MOST_FILES);
    if files > 0 {
        let count: usize = omitted.values().skip(MOST_FILES).sum();
        lines.push(format!("… and {count} more in {}", number_of(files, "other file")));
    }
    lines
}

/// Prints how a plan differs from the one that was reviewed.
pub(crate) fn difference(diff: &str) {
    if diff.trim().is_empty() {
        return;
    }
    for line in diff.lines().chain([""]) {
        let _ = say_all(&escaped(line));
    }
}

/// Prints a sentence to stderr, without the API tokens in it. Wraps it on a terminal.
pub(crate) fn say(line: &str) {
    let _ = say_all(&fitted(&escaped(line)));
}

/// A sentence as stderr shows it: wrapped on a terminal.
fn fitted(line: &str) -> Cow<'_, str> {
    width_of(io::stderr()).map_or(Cow::Borrowed(line), |width| Cow::Owned(wrapped(line, width)))
}

/// A sentence on a terminal, whose width can be any.
fn wrapped(line: &str, width: usize) -> String {
    textwrap::fill(line, between_words(text_width(Some(width))))
}

/// Prints a line that must be seen to stderr as it is, such as one with a new API token; an error is not ignored.
pub(crate) fn say_all(line: &str) -> io::Result<()> {
    let mut stderr = anstream::stderr();
    writeln!(stderr, "{line}")?;
    stderr.flush()
}

/// Prints how many files were read and what was found.
pub(crate) fn count(diagnostics: &[Diagnostic], files: usize) {
    let mut line = format!("{} read: {}", number_of(files, "file"), counted(diagnostics, Severity::Error));
    if diagnostics.iter().any(|it| it.counts_as(Severity::Warning)) {
        line += &format!(", {}", counted(diagnostics, Severity::Warning));
    }
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// A diagnostic in miette's form, with an excerpt. Places in other files have reports of their own.
fn reports(diagnostic: &Diagnostic) -> Vec<miette::Report> {
    let same_file = |place: &Place| diagnostic.place.as_ref().is_some_and(|it| Arc::ptr_eq(&it.file, &place.file));
    let (here, elsewhere): (Vec<_>, Vec<_>) = diagnostic.related.iter().partition(|(place, _)| same_file(place));
    let severity = match diagnostic.severity {
        Severity::Error => miette::Severity::Error,
        Severity::Warning => miette::Severity::Warning,
    };
    let facts = MietteDiagnostic::new(escaped(&diagnostic.message)).with_severity(severity);
    let mut facts = facts.with_code(diagnostic.code.to_string());
    facts.help = diagnostic.help.as_deref().map(escaped_lines);
    let own = match &diagnostic.place {
        None => miette::Report::new(facts),
        Some(place) => {
            let places = std::iter::once(place).chain(here.iter().map(|(place, _)| place));
            let excerpt = Excerpt::new(&place.file, &places.map(|it| it.span.clone()).collect::<Vec<_>>());
            let own = (!here.is_empty()).then(|| "here".to_owned());
            let related = here.iter().map(|(_, label)| Some(escaped(label).into_owned()));
            let labels = std::iter::once(own).chain(related).zip(excerpt.spans()).enumerate();
            let labels = labels.map(|(number, (label, span))| match number {
                0 => LabeledSpan::new_primary_with_span(label, span),
                _ => LabeledSpan::new_with_span(label, span),
            });
            miette::Report::new(facts.with_labels(labels)).with_source_code(excerpt)
        }
    };
    let elsewhere = elsewhere.into_iter().map(|(place, label)| {
        let excerpt = Excerpt::new(&place.file, std::slice::from_ref(&place.span));
        let labels = excerpt.spans().map(|span| LabeledSpan::new_primary_with_span(None, span));
        let label = if label == HERE { HERE.to_owned() } else { format!("{HERE}: {}", escaped(label)) };
        let facts = MietteDiagnostic::new(label).with_severity(miette::Severity::Advice).with_labels(labels);
        miette::Report::new(facts).with_source_code(excerpt)
    });
    std::iter::once(own).chain(elsewhere).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::model::{Code, diagnostics::diagnostic::SourceFile};

    #[test]
    fn a_sentence_wraps_between_words_and_keeps_paths_whole() {
        let path = "/var/lib".repeat(13);
        let line = format!("Created the master key {path}, which encrypts the secrets in the store. Keep it apart.");
        let text = wrapped(&line, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 2 && lines.iter().all(|it| it.len() <= 80 || it.starts_with(&path)), "{text}");
        assert_eq!(lines.join(" "), line);
        assert_eq!(wrapped("No problems found.", 20), "No problems found.");
    }

    #[test]
    fn errors_say_once_how_to_read_more() {
        let error = |code: Code| Diagnostic::error(code, "x");
        let warning = Diagnostic { severity: Severity::Warning, ..error(Code::Syntax) };
        assert_eq!(explain_hint(std::slice::from_ref(&warning)), None);
        let one = explain_hint(&[error(Code::Stale), warning, error(Code::Stale)]).unwrap();
        assert!(one.contains("`edgewright explain ERR_EDGEWRIGHT_STALE`"), "{one}");
        assert!(explain_hint(&[error(Code::Stale), error(Code::Syntax)]).unwrap().contains("explain CODE"));
    }

    #[test]
    fn a_place_in_another_file_is_also_here() {
        let place = |name: &str| {
            let file = SourceFile::new(name.to_owned(), "match: /\n".to_owned());
            Place { file: Arc::new(file), span: 7..8 }
        };
        let mut found = Diagnostic::error(Code::Syntax, "twice").at(place("a.yaml")).help("remove one");
        found.relate([(place("b.yaml"), "the other route".to_owned()), (place("c.yaml"), HERE.to_owned())]);
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
        let text = rendered(&handler, &found);
        let order = [
            "a.yaml:1:8",
            "help: remove one\n\n  ☞ also here: the other route\n",
            "b.yaml:1:8",
            "☞ also here\n",
            "c.yaml",
        ];
        let places: Vec<Option<usize>> = order.iter().map(|part| text.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
        assert!(!text.contains("Advice"), "{text}");
    }

    #[test]
    fn text_wraps_at_the_width_of_the_terminal_within_bounds() {
        assert_eq!([None, Some(10), Some(90), Some(250)].map(text_width), [80, NARROWEST, 90, WIDEST]);
    }

    #[test]
    fn one_file_does_not_hide_another_and_warnings_hide_no_error() {
        let of = |name: &str, severity: Severity, count: usize| -> Vec<Diagnostic> {
            let file = Arc::new(SourceFile::new(name.to_owned(), "x".to_owned()));
            let one = |_| Diagnostic {
                severity,
                ..Diagnostic::error(Code::Syntax, name).at(Place { file: Arc::clone(&file), span: 0..1 })
            };
            (0..count).map(one).collect()
        };
        let mut all = of("a.yaml", Severity::Warning, 1_000);
        all.extend(of("a.yaml", Severity::Error, 3));
        all.extend(of("b.yaml", Severity::Error, 21));
        all.push(Diagnostic::error(Code::Unreadable, "elsewhere"));
        let (shown, omitted, foreign) = select(&all);
        assert_eq!(foreign, 0);
        let count = |name: &str, severity| {
            shown.iter().filter(|it| (it.message.as_str(), it.severity) == (name, severity)).count()
        };
        assert_eq!((count("a.yaml", Severity::Warning), count("a.yaml", Severity::Error)), (17, 3));
        assert_eq!((count("b.yaml", Severity::Error), count("elsewhere", Severity::Error)), (20, 1));
        assert_eq!(omitted_lines(&omitted), ["… and 983 more in a.yaml", "… and 1 more in b.yaml"]);

        let files: Vec<Diagnostic> =
            (0..100).flat_map(|at| of(&format!("{at:03}.yaml"), Severity::Error, 20)).collect();
        let (shown, omitted, _) = select(&files);
        assert_eq!((shown.len(), omitted.values().sum::<usize>()), (MOST, 1_500));
        assert_eq!(omitted_lines(&omitted).last().unwrap(), "… and 1100 more in 55 other files");
    }
}
