//! What the manifests of sources take from the server's machine: a folder with the values that the commits do not have, and
//! environment variables (D28).

use super::{ConfiguredSource, entry::SourceEntry};
use crate::cli::config::location::config_path;
use crate::cli::prelude::*;
use crate::manifest::tree::is_own_variable;

impl SourceEntry {
    /// The folder with values. A relative path starts at the folder of the configuration file.
    pub(super) fn values(&self) -> Result<Option<PathBuf>, Fault> {
        let Some(folder) = &self.values else { return Ok(None) };
        let fault = |code: Code, message: String| Fault::new(code, message).at(FieldPath::root().join("values"));
        if self.repository.is_none() {
            let help = "remove `values`: the manifests in a folder take values from files in it";
            return Err(fault(Code::NotAllowed, "`values` requires `repository`".to_owned()).help(help));
        }
        let whole = std::path::absolute(config_path().with_file_name("").join(folder));
        match whole.and_then(|whole| Ok((whole.metadata()?.is_dir(), whole))) {
            Ok((true, whole)) => Ok(Some(whole)),
            Ok((false, _)) => Err(fault(Code::Unreadable, format!("{} is not a folder", folder.display()))),
            Err(error) => Err(fault(Code::Unreadable, format!("cannot use {}: {error}", folder.display()))
                .help("name a folder that exists, relative to the configuration file")),
        }
    }

    /// The variables that the manifests can read. `credentials` are those that sources use to fetch.
    pub(super) fn variables(&self, credentials: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault> {
        let is_name = |name: &str| {
            !name.starts_with(|first: char| first.is_ascii_digit())
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        for (at, name) in self.variables.iter().enumerate() {
            let place = FieldPath::root().join("variables").join(at);
            if !is_name(name) {
                let message = "`variables` must list names of environment variables: letters, digits and `_`";
                return Err(Fault::new(Code::InvalidFormat, message).at(place));
            }
            if is_own_variable(name) || credentials.contains(name) {
                let message = format!("no manifest can read `{name}`, which edgewright itself uses");
                return Err(Fault::new(Code::NotAllowed, message).at(place).help("use a variable with another name"));
            }
        }
        Ok(self.variables.iter().cloned().collect())
    }
}

/// Checks that no source can read the values of another one.
pub(super) fn check_apart(sources: &[ConfiguredSource]) -> Result<(), Fault> {
    for (at, source) in sources.iter().enumerate() {
        let Some(values) = &source.values else { continue };
        let others = sources.iter().enumerate().filter(|(other, _)| *other != at);
        let mut readers = others.filter(|(_, other)| other.folders().any(|folder| overlap(values, &folder)));
        if let Some((_, other)) = readers.next() {
            let message = format!("source `{}` can read these values", printable(&other.name));
            let place = FieldPath::root().join("sources").join(at).join("values");
            return Err(Fault::new(Code::NotAllowed, message).at(place).help("use a folder that only one source has"));
        }
    }
    Ok(())
}

impl ConfiguredSource {
    /// The folders on the disk that the source reads values from.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let on_disk = self.location.paths.iter().chain(&self.surrounding).filter(|_| self.repository.is_none());
        // The values of a manifest that is given by its own path are beside it.
        let root = |path: &PathBuf| if path.is_file() { path.with_file_name("") } else { path.clone() };
        on_disk.map(root).chain(self.values.clone())
    }
}

/// Whether one folder is in the other.
fn overlap(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        whole.canonicalize().unwrap_or(whole)
    };
    let (one, other) = (real(one), real(other));
    one.starts_with(&other) || other.starts_with(&one)
}
