//! `edgewright fmt`.

use std::collections::HashSet;
use std::io::{self, Read, Write};

use crate::cli::command_prelude::*;
use crate::files::write_whole;
use crate::manifest::format::format;
use crate::manifest::tree::find;

/// Format manifests without changing their content or comments.
///
/// Uses LF line endings, removes trailing whitespace and repeated blank lines, indents YAML and JSON by two spaces, writes
/// one space before a value, and orders the top-level keys: apiVersion, kind, metadata, spec. If a formatted file cannot
/// be proven to have the same content, it is reported and left unchanged. Prints the names of the changed files.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Report without writing: print the files that would change, and exit with code 1 if there are any.
    #[arg(long, env = "EDGEWRIGHT_CHECK")]
    check: bool,
    /// Manifest files and folders, or `-` to format standard input to standard output.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
}

#[derive(Default)]
struct FormatResult {
    /// Standard input, formatted.
    formatted: String,
    changed: Vec<String>,
    faults: Vec<Diagnostic>,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let mut done = FormatResult::default();
        let mut seen = HashSet::new();
        for path in &self.paths {
            if path.as_os_str() == "-" {
                self.standard_input(&mut done);
                continue;
            }
            for file in find(path, &mut done.faults) {
                // Format a file once even if two paths lead to it, and write to a link's target rather than replace the
                // link.
                let file = match fs::canonicalize(&file) {
                    Ok(real) if !seen.insert(real.clone()) => continue,
                    Ok(real) => (file, real),
                    Err(_) => (file.clone(), file),
                };
                self.file(&file.0, &file.1, &mut done);
            }
        }
        diagnostics::diagnostics(&done.faults);
        let names: String = done.changed.iter().map(|name| format!("{}\n", escaped(name))).collect();
        print(done.formatted + &names)?;
        Ok(match (done.faults.is_empty(), self.check && !done.changed.is_empty()) {
            (false, _) => Exit::Invalid,
            (true, true) => Exit::Error,
            (true, false) => Exit::Done,
        })
    }

    fn standard_input(&self, done: &mut FormatResult) {
        let mut text = String::new();
        if let Err(error) = io::stdin().read_to_string(&mut text) {
            return done.faults.push(unreadable("standard input", &error));
        }
        match format("-", &text) {
            Ok(formatted) if self.check && formatted != text => done.changed.push("-".into()),
            Ok(_) if self.check => {}
            Ok(formatted) => done.formatted += &formatted,
            Err(reason) => done.faults.push(unformatted("standard input", &reason)),
        }
    }

    fn file(&self, shown: &Path, real: &Path, done: &mut FormatResult) {
        let name = shown.display().to_string();
        let text = match fs::read_to_string(real) {
            Ok(text) => text,
            Err(error) => return done.faults.push(unreadable(&name, &error)),
        };
        match format(&name, &text) {
            Ok(formatted) if formatted == text => {}
            Ok(formatted) => match if self.check { Ok(()) } else { replace(real, &formatted) } {
                Ok(()) => done.changed.push(name),
                Err(error) => {
                    let fault = Diagnostic::error(Code::Unreadable, format!("cannot write {name}: {error}"));
                    done.faults.push(fault.help("check the folder and its permissions; the file is unchanged"));
                }
            },
            Err(reason) => done.faults.push(unformatted(&name, &reason)),
        }
    }
}

fn unreadable(name: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("cannot read {name}: {error}"))
}

fn unformatted(name: &str, reason: &str) -> Diagnostic {
    Diagnostic::error(Code::Syntax, format!("cannot format {name}: {reason}"))
        .help("run `edgewright validate` to locate syntax errors")
}

/// Replaces a file's text atomically and keeps its permissions.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let permissions = fs::metadata(path)?.permissions();
    // A hidden name keeps watchers of the folder from reading it as a manifest.
    let aside = path.with_file_name(format!(".edgewright-fmt.{}.tmp", std::process::id()));
    write_whole(path, &aside, |writer| {
        writer.write_all(text.as_bytes())?;
        writer.get_ref().set_permissions(permissions)
    })
}
