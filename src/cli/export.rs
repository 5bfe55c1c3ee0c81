//! `edgewright export`.

use std::{fs, io::Write, path::Path};

use super::{CommandResult, Exit, Failure, StoreArgs, output::print, snapshot_of};
use crate::{
    manifest::export::{Exported, export},
    model::{code::Code, diagnostic::Diagnostic},
    text::escaped,
};

/// Write the store's state as manifests that plan to no changes.
///
/// Exports the resources of one source by name. Resources that no source owns can only be matched by ID: they are
/// skipped unless you pass --adopt, which exports them with `metadata.id` so that the next reconcile adopts them. They are
/// named after their match, hostport or description; change the names before that as you like. API keys that no source owns
/// are always skipped, because their tokens cannot be exported. Secrets become `from_env`; the variables are listed on
/// stderr, without their values. The store has no labels, annotations or module sets: modules are written into their routes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder to write to, created if missing, or `-` for standard output.
    #[arg(value_name = "DIR", default_value = "-")]
    target: String,
    /// Source whose resources to export.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", default_value = "default")]
    source: String,
    /// Also export resources that no source owns, with their IDs.
    #[arg(long, env = "EDGEWRIGHT_ADOPT")]
    adopt: bool,
    /// Write into a folder that is not empty. Replaces files of the same name and keeps all others.
    #[arg(long, env = "EDGEWRIGHT_FORCE")]
    force: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        let exported = export(&snapshot_of(Some(&self.store.read_existing()?)), &self.source, self.adopt)?;
        if self.target == "-" {
            let texts: Vec<&str> = exported.files.iter().map(|(_, text)| text.as_str()).collect();
            print(texts.join("---\n"))?;
        } else {
            self.write(Path::new(&self.target), &exported)?;
        }
        print_notes(&exported);
        Ok(Exit::Done)
    }

    fn write(&self, folder: &Path, exported: &Exported) -> Result<(), Failure> {
        if !self.force && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            let fault = Diagnostic::error(Code::Conflict, format!("{} is not empty", folder.display()));
            return Err(fault.help("use another folder, or write to this one with --force").into());
        }
        let failed = |path: &Path, error: &std::io::Error| {
            Diagnostic::error(Code::Unreadable, format!("cannot write {}: {error}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        for (name, text) in &exported.files {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        }
        Ok(())
    }
}

/// Prints the variables that the manifests need and the skipped resources. Secret values are not printed.
fn print_notes(exported: &Exported) {
    let mut stderr = anstream::stderr().lock();
    if !exported.variables.is_empty() {
        let _ = writeln!(stderr, "Set these environment variables to the secrets before using the manifests:");
    }
    let width = exported.variables.iter().map(|variable| variable.name.len()).max().unwrap_or_default();
    for variable in &exported.variables {
        let twice = if variable.ends_with_line_break { " (append an extra line break)" } else { "" };
        let _ = writeln!(stderr, "  {:width$}  {}{twice}", variable.name, escaped(&variable.field));
    }
    for note in &exported.left_out {
        let _ = writeln!(stderr, "{}", escaped(note));
    }
}
