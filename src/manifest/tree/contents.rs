//! The contents of files: bytes to manifests and values.

use std::path::Path;

use super::limits::MOST_VALUE_BYTES;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::Cause;
use crate::model::secrets::redact::quotable_path;

/// The text of a value file.
pub(super) fn value_of(name: &str, path: &Path, read: Result<Vec<u8>, String>) -> Result<String, Fault> {
    let shown = printable(quotable_path(name));
    let path = if shown == name { path.display().to_string() } else { shown.to_owned() };
    let unreadable = |reason: &str| {
        Fault::new(Code::FileUnreadable, format!("`{shown}` cannot be read: {reason}"))
            .help(format!("check the path, which is relative to the manifest: {path}"))
    };
    let bytes = read.map_err(|reason| unreadable(&reason))?;
    if bytes.len() as u64 > MOST_VALUE_BYTES {
        return Err(unreadable("larger than 4 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        unreadable("not UTF-8")
            .help("save it as UTF-8 text; convert a certificate in DER with `openssl x509 -inform der -in FILE`")
    })?;
    if text.trim().is_empty() {
        return Err(unreadable("empty file"));
    }
    if text.contains('\0') {
        return Err(unreadable("not a text file: it contains NUL bytes"));
    }
    Ok(text)
}

/// A manifest file, or why there is none.
pub(super) type ReadManifest = Result<Arc<ManifestFile>, Diagnostic>;

/// Converts bytes to a manifest file; refuses bytes that are not UTF-8, and empty files.
pub(super) fn manifest_file(name: String, bytes: Vec<u8>, folder: &Path, root: &Path) -> ReadManifest {
    let (mut text, bad_byte) = match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let bad_byte = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(bad_byte))
        }
    };
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    text.drain(..bom);
    if let Some(offset) = bad_byte {
        let file = ManifestFile::new(name, text, folder.to_owned(), root.to_owned());
        let offset = offset.saturating_sub(bom);
        let place = file.place(offset..offset + '\u{fffd}'.len_utf8());
        let fault = Diagnostic::error(Code::NotUtf8, "invalid UTF-8").caused_by(Cause::NoContent);
        return Err(fault.at(place).help("save the file as UTF-8"));
    }
    text_file(name, Arc::new(text), folder, root)
}

/// Converts a text without a byte order mark to a manifest file; refuses empty files.
pub(super) fn text_file(name: String, text: Arc<String>, folder: &Path, root: &Path) -> ReadManifest {
    let file = Arc::new(ManifestFile::new(name, text, folder.to_owned(), root.to_owned()));
    if has_no_content(&file.source.text) {
        let help = "restore its content, delete the file, or add a comment to keep it";
        let empty = Diagnostic::error(Code::EmptyFile, "empty file, possibly half-written").caused_by(Cause::NoContent);
        return Err(empty.at(file.place(0..0)).help(help));
    }
    Ok(file)
}

/// Whether a text is what is left of a truncated file: white space, markers of documents, directives and nulls. Comments that
/// somebody left in place of the documents are content, and a null beside them is not.
fn has_no_content(text: &str) -> bool {
    let (mut has_comment, mut has_null) = (false, false);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('%')) {
        has_comment |= line.contains('#');
        for word in line.split('#').next().unwrap_or_default().split_whitespace() {
            match word {
                "---" | "..." => {}
                "null" | "Null" | "NULL" | "~" => has_null = true,
                _ => return false,
            }
        }
    }
    has_null || !has_comment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_stand_for_a_file_without_documents() {
        for text in
            ["", " \n\t\n", "---\n", "---\r\n...\r\n", "%YAML 1.2\n---\n", "null\n", "~", "--- ~\n", "# a\nnull\n"]
        {
            assert!(has_no_content(text), "{text:?}");
        }
        for text in ["# a", "---\n# a\n", "--- # a\n...\n", "kind: null\n", "---\n---\nkind: ApiKey\n", "{}", "nullify"]
        {
            assert!(!has_no_content(text), "{text:?}");
        }
    }
}
