//! The report of a command: its format, its destination, and the text on the terminal.

use std::io::{self, Write};

use clap::{ArgMatches, Args};

use super::stdout::{paint, print_coloured, unless_closed, write};
use super::{destination, diagnostics};
use crate::cli::input::choice::Choice;
use crate::cli::prelude::*;
use crate::plan::format::overview::overview;
use crate::plan::format::text::{behaviour_text, pieces};
use crate::plan::format::{Format, render};
use crate::plan::redacted_plan::{Detail, LARGE, RedactedPlan};

/// The format of a report, and where it goes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Output {
    /// Report format: text, json, markdown, github, sarif or junit.
    #[arg(help_heading = help::OUTPUT)]
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_FORMAT", default_value = "text")]
    #[arg(value_parser = format(), hide_possible_values = true)]
    format: Format,
    /// Write the report to a file and keep the text on the terminal.
    #[arg(help_heading = help::OUTPUT, long, value_name = "FILE", env = "EDGEWRIGHT_OUTPUT")]
    output: Option<PathBuf>,
    /// Show every change, even in a plan with more than 200.
    #[arg(help_heading = help::OUTPUT, long, env = "EDGEWRIGHT_FULL")]
    full: bool,
}

fn format() -> Choice<Format> {
    let parse = |name: &str| {
        Format::from_name(name).ok_or_else(|| format!("expected one of {}", Format::ALL.map(Format::as_str).join(", ")))
    };
    Choice::new(parse, || Format::ALL.map(|format| format.as_str().to_owned()).to_vec())
}

impl Output {
    /// The output options among the arguments of a command, if they are for a format that programs read.
    pub(crate) fn for_programs(arguments: &ArgMatches) -> Option<Self> {
        let format = *arguments.try_get_one::<Format>("format").ok()??;
        let output = arguments.try_get_one::<PathBuf>("output").ok()?.cloned();
        (format != Format::Text).then_some(Self { format, output, full: false })
    }

    /// Fails if the folder of the report does not exist.
    pub(crate) fn check_folder(&self) -> Result<(), Diagnostic> {
        let cannot = |path: &PathBuf| format!("cannot write the report to `{}`", path.display());
        self.output.as_ref().map_or(Ok(()), |path| destination::check_folder(path, &cannot(path)))
    }

    /// Whether the text report is printed: always, unless another format is written to stdout.
    pub(crate) fn shows_text(&self) -> bool {
        self.format == Format::Text || self.output.is_some()
    }

    /// Prints the diagnostics and the plan, or the effect on requests of one that invariants refuse. Fails if stdout does: a plan
    /// that could not be shown must not be applied.
    pub(crate) fn announce(&self, report: &Report) -> Result<(), Failure> {
        diagnostics::diagnostics(&report.diagnostics);
        let Some(plan) = &report.plan else {
            if let Some(refused) = report.refused.as_ref().filter(|_| self.shows_text()) {
                unless_closed(write(behaviour_text(refused, paint()).as_bytes()))?;
            }
            diagnostics::count(&report.diagnostics, report.files);
            return Ok(());
        };
        self.show(plan)
    }

    /// Prints a plan, if the text report is printed.
    pub(crate) fn show(&self, plan: &RedactedPlan) -> Result<(), Failure> {
        match self.shows_text() {
            true if !self.full && plan.changes.len() > LARGE => {
                unless_closed(write(overview(plan, paint()).as_bytes()))
            }
            // It can have millions of lines, of which a stripping stream would write each by itself.
            true => unless_closed(pieces(plan, paint()).try_for_each(|piece| write(piece.as_bytes()))),
            false => Ok(()),
        }
    }

    /// The detail of each change in the report.
    pub(crate) fn detail(&self) -> Detail {
        match self.format {
            Format::Json => Detail::Bodies,
            Format::Text if self.output.is_none() && !self.full => Detail::Terminal,
            _ => Detail::Lines,
        }
    }

    /// Starts the report of a plan before the plan runs: creates its destination and writes the first character, which
    /// no outcome changes. A report that cannot be written must be noticed while nothing is applied (D31).
    pub(crate) fn start(&self, report: &Report) -> Result<OpenReport, Failure> {
        let mut started = self.create()?;
        // The text is the plan alone, and the one that was applied may have more than one without secrets.
        let may_differ = self.format == Format::Text && report.hides_secrets();
        let first: String = self.document(report)?.chars().take(usize::from(!may_differ)).collect();
        self.write(&mut started, &first)?;
        started.written = first;
        Ok(started)
    }

    /// Writes the rest of a started report.
    pub(crate) fn finish(&self, mut started: OpenReport, report: &Report) -> Result<(), Failure> {
        let text = self.document(report)?;
        let rest = text.strip_prefix(started.written.as_str()).unwrap_or(&text);
        self.write(&mut started, rest)
    }

    /// Writes the final report.
    pub(crate) fn conclude(&self, report: &Report) -> Result<(), Failure> {
        let started = self.create()?;
        self.finish(started, report)
    }

    /// The report as written to the file or stdout; empty if the text on the terminal is the whole report.
    fn document(&self, report: &Report) -> Result<String, Failure> {
        Ok(match &self.output {
            None if self.format == Format::Text => String::new(),
            None => render(self.format, report)?,
            // Colour codes do not belong in a file.
            Some(_) => anstream::adapter::strip_str(&render(self.format, report)?).to_string(),
        })
    }

    fn create(&self) -> Result<OpenReport, Failure> {
        let create = |path: &PathBuf| destination::create(path).map_err(|error| unwritable_report(path, &error));
        Ok(OpenReport { file: self.output.as_ref().map(create).transpose()?, written: String::new() })
    }

    fn write(&self, started: &mut OpenReport, text: &str) -> Result<(), Failure> {
        match (&mut started.file, &self.output) {
            (Some(file), Some(path)) => {
                file.write_all(text.as_bytes()).map_err(|error| unwritable_report(path, &error))
            }
            _ if text.is_empty() => Ok(()),
            _ => print_coloured(text),
        }
    }
}

/// A report whose destination has accepted what is written so far.
pub(crate) struct OpenReport {
    /// The file; none for stdout.
    file: Option<fs::File>,
    written: String,
}

fn unwritable_report(path: &Path, error: &io::Error) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("cannot write the report to `{}`: {error}", path.display()))
        .help("check the path in --output, its permissions and the free disk space")
        .into()
}
