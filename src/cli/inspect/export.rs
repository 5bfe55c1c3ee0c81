//! `edgewright export`.

use std::fs::OpenOptions;
use std::io::{self, Write};

use super::get::ResourceReader;
use crate::cli::command_prelude::*;
use crate::cli::target::owns_nothing;
use crate::manifest::export::export;
use crate::reconcile::DEFAULT_SOURCE;
use crate::server::operations::export::{ADOPT, ExportedManifests, PATH, SOURCE};

/// The start of the names of files that are not yet in place. Hidden files are not manifests.
const ASIDE: &str = ".edgewright-export.";

/// Write the store's state as manifests whose plan has no changes.
///
/// Exports the resources of one source by name. Resources that no source owns can only be matched by ID: they are
/// skipped unless you pass --adopt, which exports them with `metadata.id` so that the next reconcile adopts them. Their
/// names come from their match, hostport or description; rename them first if you like. API keys that no source owns
/// are always skipped, because their tokens cannot be exported, and so is what no manifest can declare: an event
/// subscription whose ID has no `_`. Secrets become `from_env`; the variables are listed on stderr, without their values.
/// The store has no labels, annotations or module sets: modules are written into their routes.
///
/// With --server, a running server exports its current state. It sends no secrets.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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
    pub place: StoreOrServer,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let source = self.place.server.source().unwrap_or(&self.source);
        let resources = ResourceReader::open(&self.place, None)?;
        let exported = match &resources {
            ResourceReader::Server(client, _) => from_server(client, source, self.adopt)?,
            ResourceReader::Store(_, snapshot) => {
                ExportedManifests::new(export(snapshot, source, self.adopt, clock::now())?, snapshot.revision)
            }
        };
        // Without --source, somebody may want to see what is left out.
        if exported.files.is_empty() && source != DEFAULT_SOURCE {
            return Err(owns_nothing(source, &resources.sources()).into());
        }
        if self.target == "-" {
            let texts: Vec<&str> = exported.files.iter().map(|file| file.text.as_str()).collect();
            print(texts.join("---\n"))?;
        } else {
            self.write(Path::new(&self.target), &exported)?;
        }
        print_notes(&exported);
        Ok(Exit::Done)
    }

    fn write(&self, folder: &Path, exported: &ExportedManifests) -> Result<(), Failure> {
        // An export that was killed leaves files aside.
        let is_aside = |entry: io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with(ASIDE))
        };
        if !self.force && fs::read_dir(folder).is_ok_and(|mut entries| !entries.all(is_aside)) {
            let fault = Diagnostic::error(Code::Conflict, format!("{} is not empty", folder.display()));
            return Err(fault.help("use another folder, or write to this one with --force").into());
        }
        let failed = |path: &Path, error: &std::io::Error| {
            Diagnostic::error(Code::Unreadable, format!("cannot write {}: {error}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let places: Vec<(PathBuf, PathBuf)> = exported
            .files
            .iter()
            .enumerate()
            .map(|(number, file)| (folder.join(format!("{ASIDE}{number}")), folder.join(&file.name)))
            .collect();
        let written = || {
            // A full disk stops it before the first file is in place.
            for (file, (aside, path)) in exported.files.iter().zip(&places) {
                write_aside(aside, &file.text).map_err(|error| failed(path, &error))?;
            }
            places.iter().try_for_each(|(aside, path)| fs::rename(aside, path).map_err(|error| failed(path, &error)))
        };
        written().inspect_err(|_| {
            for (aside, path) in &places {
                drop(fs::remove_file(aside));
                // Without --force, the folder was empty. The next attempt has to find it like that.
                if !self.force {
                    drop(fs::remove_file(path));
                }
            }
        })?;
        Ok(())
    }
}

/// Writes a new file, in place of one that an earlier export left.
fn write_aside(path: &Path, text: &str) -> io::Result<()> {
    drop(fs::remove_file(path));
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    // Some file systems report a full disk only now.
    file.sync_all()
}

/// Has a server export a source. Its file names are not trusted: none leads out of the folder.
fn from_server(client: &ApiClient, source: &str, adopt: bool) -> Result<ExportedManifests, Failure> {
    let exported: ExportedManifests = client.get(&format!("{PATH}?{SOURCE}={}&{ADOPT}={adopt}", segment(source)))?;
    match exported.files.iter().find(|file| !is_plain(&file.name)) {
        None => Ok(exported),
        Some(file) => {
            let message = format!("the server sent a file with the name `{}`", printable(&file.name));
            Err(Diagnostic::error(Code::InvalidFormat, message)
                .help("use the same edgewright version as the server")
                .into())
        }
    }
}

/// Whether a name is that of a manifest file in the folder itself.
fn is_plain(name: &str) -> bool {
    name.ends_with(".yaml")
        && !name.starts_with('.')
        && !name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
}

/// Prints the variables that the manifests need and the skipped resources. Secret values are not printed.
fn print_notes(exported: &ExportedManifests) {
    let mut stderr = anstream::stderr().lock();
    if !exported.variables.is_empty() {
        let _ = writeln!(stderr, "Set these environment variables to the secrets before using the manifests:");
    }
    let width = exported.variables.iter().map(|variable| variable.name.len()).max().unwrap_or_default();
    for variable in &exported.variables {
        let dropped = if variable.ends_with_line_break { " (the plan drops the line break at its end)" } else { "" };
        let _ = writeln!(stderr, "  {:width$}  {}{dropped}", variable.name, escaped(&variable.field));
    }
    for note in &exported.left_out {
        let _ = writeln!(stderr, "{}", escaped(note));
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn a_file_of_a_server_stays_in_the_folder() {
        for name in ["edge-shop.yaml", "api-keys.yaml"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["../a.yaml", "/etc/a.yaml", "a/b.yaml", ".yaml", ".a.yaml", "a.sh", "", "a\nb.yaml", "a\\b.yaml"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
