//! Files and folders of this machine, and standard input.

use std::{
    collections::HashSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use walkdir::WalkDir;

use super::{
    MOST_FILES, MOST_MANIFEST_BYTES, MOST_TOTAL_BYTES, MOST_VALUE_BYTES, Tree, commit::commit_of, is_hidden,
    is_manifest, manifest_file, no_file, no_manifest, not_utf8, outside, parent_of, plain, too_large, too_many,
    unreadable, value_of,
};
use crate::{
    manifest::origin::ManifestFile,
    model::{diagnostic::Diagnostic, fault::Fault},
};

/// Files and folders.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// Files, folders, or `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Whether values may come from files outside of the folders (D28).
    pub allow_outside_files: bool,
}

impl Tree for Disk {
    fn manifests(&self) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let mut files = Vec::new();
        let mut seen = HashSet::new();
        let mut total = 0u64;
        for path in &self.paths {
            if path.as_os_str() == "-" {
                match read_whole(std::io::stdin()) {
                    Ok(bytes) => {
                        files.extend(manifest_file("-".into(), &bytes, ".".into(), ".".into(), &mut diagnostics));
                    }
                    Err(error) => diagnostics.push(unreadable("standard input", error)),
                }
                continue;
            }
            let root = if path.is_dir() { path.clone() } else { parent_of(path) };
            let found = find(path, &mut diagnostics);
            if found.is_empty() && path.exists() {
                diagnostics.push(no_manifest(path.display()));
            }
            for found in found {
                // Two paths may lead to one file; it is one source of documents all the same.
                let identity = fs::canonicalize(&found).unwrap_or_else(|_| found.clone());
                if !seen.insert(identity) {
                    continue;
                }
                if seen.len() > MOST_FILES || total > MOST_TOTAL_BYTES {
                    diagnostics.push(too_many(path.display()));
                    return (files, diagnostics);
                }
                match fs::File::open(&found).and_then(read_whole) {
                    Ok(bytes) => {
                        total += bytes.len() as u64;
                        let name = found.display().to_string();
                        let folder = parent_of(&found);
                        files.extend(manifest_file(name, &bytes, folder, root.clone(), &mut diagnostics));
                    }
                    Err(error) => diagnostics.push(unreadable(found.display(), error)),
                }
            }
        }
        (files, diagnostics)
    }

    fn commit(&self) -> Option<String> {
        // Nobody knows where standard input is from.
        let known = !self.paths.iter().any(|path| path.as_os_str() == "-");
        known.then(|| commit_of(&self.paths)).flatten()
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let path = manifest.folder.join(name);
        if !self.allow_outside_files {
            // First by the path's words, so that nothing outside is even touched; then by where links really lead.
            let inside = plain(&path).starts_with(plain(&manifest.root)) && !Path::new(name).is_absolute();
            let leads_inside = || match (path.canonicalize(), manifest.root.canonicalize()) {
                (Ok(path), Ok(root)) => path.starts_with(root),
                _ => true,
            };
            if !inside || !leads_inside() {
                return Err(outside(name));
            }
        }
        let read = fs::metadata(&path).map_err(|error| error.to_string()).and_then(|facts| {
            if !facts.is_file() || facts.len() > MOST_VALUE_BYTES {
                return Err("it is not a file of at most 4 MiB".into());
            }
            fs::read(&path).map_err(|error| error.to_string())
        });
        value_of(name, &path, read)
    }
}

/// The manifest files at or below a path.
pub fn find(path: &Path, diagnostics: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let walk = WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| entry.depth() == 0 || !is_hidden(&entry.file_name().to_string_lossy())) {
        match entry {
            Ok(entry) => {
                let named = entry.depth() == 0 || is_manifest(&entry.file_name().to_string_lossy());
                if named && entry.depth() > 0 && entry.file_name().to_str().is_none() {
                    diagnostics.push(not_utf8(entry.path().display()));
                    continue;
                }
                match entry.file_type().is_file() {
                    true if named => found.push(entry.into_path()),
                    false if named && (entry.depth() > 0 || !entry.file_type().is_dir()) => {
                        diagnostics.push(no_file(entry.path().display()));
                    }
                    _ => {}
                }
            }
            Err(error) => {
                let name = error.path().unwrap_or(path).display().to_string();
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                diagnostics.push(unreadable(name, reason));
            }
        }
    }
    found
}

/// All of a file, or an error: a part of it would read as if the rest had been removed.
fn read_whole(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_MANIFEST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_MANIFEST_BYTES {
        return Err(too_large());
    }
    Ok(bytes)
}
