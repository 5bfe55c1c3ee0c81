//! Output. `Output` has the options of a report: its format and destination. Everything on stdout goes through this file;
//! `diagnostics.rs` and `progress.rs` write to stderr, and `generated.rs` has files that a repository keeps.

pub(crate) mod age;
pub(crate) mod destination;
pub(crate) mod diagnostics;
mod excerpt;
pub(crate) mod generated;
pub(crate) mod list;
pub(crate) mod progress;
pub(crate) mod table;

use std::{
    fs,
    io::{self, IsTerminal, Write},
};

use clap::{ArgMatches, Args};
use rustix::fs::FileType;
use serde::Serialize;

use crate::{
    cli::prelude::*,
    plan::{
        format::{Format, render},
        overview::{LARGE, overview},
        redacted_plan::Detail,
        render::{Colour, Content, stream},
    },
};

/// The format of a report, and where it goes.
#[derive(Debug, Clone, Args)]
pub(super) struct Output {
    /// Report format: text, json, markdown, github, sarif or junit.
    #[arg(help_heading = help::OUTPUT)]
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_FORMAT", default_value = "text", value_parser = format)]
    format: Format,
    /// Write the report to a file and keep the text on the terminal.
    #[arg(help_heading = help::OUTPUT, long, value_name = "FILE", env = "EDGEWRIGHT_OUTPUT")]
    output: Option<PathBuf>,
    /// Show every change, even in a plan with more than 200.
    #[arg(help_heading = help::OUTPUT, long, env = "EDGEWRIGHT_FULL")]
    full: bool,
}

fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl Output {
    /// The output options among the arguments of a command, if they are for a format that programs read.
    pub(super) fn for_programs(arguments: &ArgMatches) -> Option<Self> {
        let format = *arguments.try_get_one::<Format>("format").ok()??;
        let output = arguments.try_get_one::<PathBuf>("output").ok()?.cloned();
        (format != Format::Text).then_some(Self { format, output, full: false })
    }

    /// Whether the text report is printed: always, unless another format is written to stdout.
    fn shows_text(&self) -> bool {
        self.format == Format::Text || self.output.is_some()
    }

    /// Prints the diagnostics and the plan, whose text is made from `plan` if it is known. Fails if stdout does: a plan
    /// that could not be shown must not be applied.
    pub(super) fn announce(&self, report: &Report, plan: Option<&Plan>) -> Result<(), Failure> {
        diagnostics::diagnostics(&report.diagnostics);
        let Some(redacted) = &report.plan else {
            diagnostics::count(&report.diagnostics, report.files);
            return Ok(());
        };
        let content = plan.map_or(Content::Redacted(redacted), Content::Plan);
        match self.shows_text() {
            true if !self.full && redacted.changes.len() > LARGE => {
                unless_closed(write(overview(content, colour()).as_bytes()))
            }
            true => print_plan(content),
            false => Ok(()),
        }
    }

    /// The detail of each change in the report. The text of a plan is made from the plan itself.
    pub(super) fn detail(&self) -> Detail {
        match self.format {
            Format::Json => Detail::Bodies,
            Format::Text if self.output.is_none() => Detail::Effects,
            _ => Detail::Lines,
        }
    }

    /// Starts the report of a plan before the plan runs: creates its destination and writes the first character, which
    /// no outcome changes. A report that cannot be written must be noticed while nothing is applied (D31).
    pub(super) fn start(&self, report: &Report) -> Result<OpenReport, Failure> {
        let mut started = self.create()?;
        let first: String = self.document(report)?.chars().take(1).collect();
        self.write(&mut started, &first)?;
        started.written = first;
        Ok(started)
    }

    /// Writes the rest of a started report.
    pub(super) fn finish(&self, mut started: OpenReport, report: &Report) -> Result<(), Failure> {
        let text = self.document(report)?;
        let rest = text.strip_prefix(started.written.as_str()).unwrap_or(&text);
        self.write(&mut started, rest)
    }

    /// Writes the final report.
    pub(super) fn conclude(&self, report: &Report) -> Result<(), Failure> {
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
pub(super) struct OpenReport {
    /// The file; none for stdout.
    file: Option<fs::File>,
    written: String,
}

fn unwritable_report(path: &Path, error: &io::Error) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("cannot write the report to `{}`: {error}", path.display()))
        .help("check the path in --output, its permissions and the free disk space")
        .into()
}

/// Writes data to standard output, as the end of a command. A closed pipe is not an error: its reader is done (D31).
pub(super) fn print(data: impl AsRef<[u8]>) -> CommandResult {
    unless_closed(write(data.as_ref())).map(|()| Exit::Done)
}

/// A value as JSON on one line.
pub(super) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&json::bytes(value, Secrets::Masked)?).into_owned() + "\n")
}

/// Writes data that must arrive, such as a token: a closed pipe is an error too.
pub(super) fn print_all(data: impl AsRef<[u8]>) -> Result<(), Failure> {
    check_not_discarded()?;
    write(data.as_ref()).map_err(|error| unwritable(&error))
}

/// Fails if nobody would ever see what is written to standard output. One that was closed is the null device by now.
pub(super) fn check_not_discarded() -> Result<(), Failure> {
    match is_discarded() {
        true => Err(unwritable(&io::Error::other("it is closed or discarded"))),
        false => Ok(()),
    }
}

/// Converts a write error on standard output into a failure, unless it is a closed pipe.
pub(super) fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(()),
    }
}

/// Flushes standard output; at exit, a write error would go unnoticed.
pub(super) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// Whether standard output is a file that other users can read.
pub(super) fn is_readable_by_others() -> bool {
    let is_open = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile && mode & 0o044 != 0;
    rustix::fs::fstat(io::stdout()).is_ok_and(|facts| is_open(facts.st_mode))
}

/// Whether standard output is the null device.
fn is_discarded() -> bool {
    let null = rustix::fs::stat("/dev/null").map(|null| null.st_rdev);
    let stdout = rustix::fs::fstat(io::stdout()).map(|stdout| stdout.st_rdev);
    matches!((null, stdout), (Ok(null), Ok(stdout)) if null == stdout)
}

fn write(data: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(data)?;
    stdout.flush()
}

/// Writes a plan as text. It can have millions of lines, of which a stripping stream would write each by itself.
fn print_plan(content: Content<'_>) -> Result<(), Failure> {
    let mut closed = false;
    stream(content, colour(), &mut |piece| {
        // If the reader is done, a change that cannot be shown must still be found.
        let written = if closed { Ok(()) } else { write(piece.as_bytes()) };
        closed |= written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        unless_closed(written)
    })
}

/// Writes text with colours, which are stripped if stdout is not a terminal.
pub(super) fn print_coloured(text: &str) -> Result<(), Failure> {
    append(text).map(drop)
}

/// Writes the next text of an output without an end. Returns whether its reader is still there.
pub(super) fn append(text: &str) -> Result<bool, Failure> {
    match write(for_stdout(text.to_owned()).as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritable(&error)),
        Ok(()) => Ok(true),
    }
}

/// Writes text in place of what a terminal shows. Returns whether the terminal is still there.
pub(super) fn redraw(text: &str) -> Result<bool, Failure> {
    const CLEAR: &[u8] = b"\x1b[H\x1b[2J";
    match write(CLEAR) {
        Err(error) => Err(unwritable(&error)),
        Ok(()) => append(text),
    }
}

/// Whether standard output is a terminal.
pub(super) fn is_on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal that standard output is; none for a pipe or a file.
fn terminal_width() -> Option<usize> {
    let size = is_on_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The text without colours if stdout is not a terminal.
fn for_stdout(text: String) -> String {
    if has_colours() { text } else { anstream::adapter::strip_str(&text).to_string() }
}

/// The colours of a plan on stdout.
fn colour() -> Colour {
    if has_colours() { Colour::Yes } else { Colour::No }
}

/// Whether stdout shows colours.
fn has_colours() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

fn unwritable(error: &io::Error) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("cannot write to standard output: {error}"))
        .help("check the destination of standard output, such as its free disk space")
        .into()
}
