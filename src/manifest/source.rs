//! Finds and reads the files of a source.

use std::{
    collections::HashSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use walkdir::WalkDir;

use super::origin::ManifestFile;
use crate::model::{code::Code, diagnostic::Diagnostic};

/// Larger files are not manifests; the limit keeps a stray database dump or device from filling the memory.
const MOST_BYTES: u64 = 64 << 20;

/// Reads every manifest below the given paths, in the order of their paths.
pub fn read(paths: &[PathBuf]) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        if path.as_os_str() == "-" {
            match read_bytes(std::io::stdin()) {
                Ok(bytes) => files.extend(text_of("-".into(), bytes, ".".into(), ".".into(), &mut diagnostics)),
                Err(error) => diagnostics.push(unreadable("standard input", &error)),
            }
            continue;
        }
        let root = if path.is_dir() { path.clone() } else { parent_of(path) };
        let found = find(path, &mut diagnostics);
        if found.is_empty() && path.exists() {
            diagnostics.push(
                Diagnostic::error(Code::EmptySource, format!("no manifest was found in {}", path.display()))
                    .help("manifests are files that end in .yaml, .yml or .json"),
            );
        }
        for found in found {
            // Two paths may lead to one file; it is one source of documents all the same.
            let identity = fs::canonicalize(&found).unwrap_or_else(|_| found.clone());
            if !seen.insert(identity) {
                continue;
            }
            match fs::File::open(&found).and_then(read_bytes) {
                Ok(bytes) => {
                    let name = found.display().to_string();
                    files.extend(text_of(name, bytes, parent_of(&found), root.clone(), &mut diagnostics));
                }
                Err(error) => diagnostics.push(unreadable(&found.display().to_string(), &error)),
            }
        }
    }
    (files, diagnostics)
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The manifest files at or below a path. Hidden folders (`.git`, a mounted volume's `..data`) are not looked into.
pub fn find(path: &Path, diagnostics: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let walk = WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter();
    let hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    for entry in walk.filter_entry(|entry| entry.depth() == 0 || !hidden(entry.file_name())) {
        match entry {
            Ok(entry) if entry.depth() == 0 && entry.file_type().is_file() => found.push(entry.into_path()),
            Ok(entry) => {
                let extension = entry.path().extension().and_then(|extension| extension.to_str());
                if entry.file_type().is_file() && matches!(extension, Some("yaml" | "yml" | "json")) {
                    found.push(entry.into_path());
                }
            }
            Err(error) => {
                let name = error.path().unwrap_or(path).display().to_string();
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                diagnostics.push(
                    Diagnostic::error(Code::Unreadable, format!("{name} cannot be read: {reason}"))
                        .help("check the path and its permissions"),
                );
            }
        }
    }
    found
}

/// All of a source, or an error: a part of it would read as if the rest had been removed.
fn read_bytes(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(std::io::Error::other("it is larger than 64 MiB"));
    }
    Ok(bytes)
}

fn unreadable(name: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("{name} cannot be read: {error}"))
}

/// The file as text. What is not UTF-8, or nothing at all, is reported at its place.
fn text_of(
    name: String,
    bytes: Vec<u8>,
    folder: PathBuf,
    root: PathBuf,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<ManifestFile>> {
    let bad_byte = std::str::from_utf8(&bytes).err().map(|error| error.valid_up_to());
    let text = String::from_utf8_lossy(&bytes);
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let text = text.trim_start_matches('\u{feff}').to_owned();
    let empty = text.trim().is_empty();
    let file = Arc::new(ManifestFile::new(name, text, folder, root));
    if let Some(offset) = bad_byte {
        let offset = offset.saturating_sub(bom);
        diagnostics.push(
            Diagnostic::error(Code::NotUtf8, "the file is not UTF-8 from here on")
                .at(file.place(offset..offset + '\u{fffd}'.len_utf8()))
                .help("save it as UTF-8"),
        );
        return None;
    }
    if empty {
        diagnostics.push(
            Diagnostic::error(Code::EmptyFile, "the file is empty; it may be half-written")
                .at(file.place(0..0))
                .help("restore its content, delete the file, or leave a comment in it"),
        );
        return None;
    }
    Some(file)
}
