//! How a command tells what it has to tell: the format, and where it goes. Several commands share these options.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;

use super::{Failure, show};
use crate::{
    model::{code::Code, diagnostic::Diagnostic},
    plan::{
        format::{Format, render},
        report::Report,
    },
};

/// The format of a report, and where it goes.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Report format: text, json, markdown, github, sarif or junit.
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_FORMAT", default_value = "text", value_parser = format)]
    format: Format,
    /// Write the report to a file and keep the text on the terminal.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_OUTPUT")]
    output: Option<PathBuf>,
}

fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
        format!("the formats are {}", names.join(", "))
    })
}

impl Output {
    /// Whether the text goes to the terminal: always, but where another format takes its place on stdout.
    fn shows_text(&self) -> bool {
        self.format == Format::Text || self.output.is_some()
    }

    /// Tells what is known before anything is applied. A plan that nobody could see must not be applied.
    pub fn announce(&self, report: &Report) -> Result<(), Failure> {
        show::diagnostics(&report.diagnostics);
        if report.plan.is_none() {
            show::count(&report.diagnostics, report.files);
        }
        match &report.plan {
            Some(plan) if self.shows_text() => print_coloured(&crate::plan::render::text(plan)),
            _ => Ok(()),
        }
    }

    /// Tells how it ended.
    pub fn conclude(&self, report: &Report) -> Result<(), Failure> {
        match &self.output {
            None if self.format == Format::Text => Ok(()),
            None => print_coloured(&render(self.format, report)?),
            Some(file) => {
                let text = render(self.format, report)?;
                // A file is no terminal.
                let text = anstream::adapter::strip_str(&text).to_string();
                fs::write(file, text).map_err(|error| {
                    let message = format!("the report cannot be written to {}: {error}", file.display());
                    Diagnostic::error(Code::Unreadable, message).into()
                })
            }
        }
    }
}

/// Writes data to standard output. A closed pipe is not a failure: its reader has seen enough (D31).
pub fn print(data: impl AsRef<[u8]>) -> Result<(), Failure> {
    unless_closed(write(data.as_ref()))
}

/// The same for data that is worthless unless it arrives, such as a token.
pub fn hand_over(data: impl AsRef<[u8]>) -> Result<(), Failure> {
    write(data.as_ref()).map_err(|error| unwritable(&error))
}

/// The failure of something that has tried to write to standard output, unless it is a closed pipe.
pub fn unless_closed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(()),
    }
}

/// Writes what is left in the buffer of standard output, which would otherwise be lost without a word.
pub fn flush() -> io::Result<()> {
    io::stdout().flush()
}

fn write(data: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(data)?;
    stdout.flush()
}

/// Writes a text with colours, which are dropped where they have no place.
fn print_coloured(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    unless_closed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

fn unwritable(error: &io::Error) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("cannot write to standard output: {error}"))
        .help("check where standard output goes: a disk may be full")
        .into()
}
