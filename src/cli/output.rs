//! How a command tells what it has to tell: the format, and where it goes. Several commands share these options.

use std::{fs, io::Write, path::PathBuf};

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

    /// Tells what is known before anything is applied.
    pub fn announce(&self, report: &Report) {
        show::diagnostics(&report.diagnostics);
        if self.shows_text()
            && let Some(plan) = &report.plan
        {
            print(&crate::plan::render::text(plan));
        }
        if report.plan.is_none() {
            show::count(&report.diagnostics, report.files);
        }
    }

    /// Tells how it ended.
    pub fn conclude(&self, report: &Report) -> Result<(), Failure> {
        match &self.output {
            None if self.format == Format::Text => Ok(()),
            None => {
                print(&render(self.format, report));
                Ok(())
            }
            Some(file) => {
                let text = render(self.format, report);
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

/// Prints data. A closed pipe is the reader's way of saying that it has seen enough.
fn print(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
