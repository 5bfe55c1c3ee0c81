//! Manifests in a request, with the values that they take from files and the environment.

use std::collections::HashMap;
use std::path::Path;

use schemars::JsonSchema;

use super::contents::text_file;
use super::limits::{MOST_FILES, MOST_TOTAL_BYTES, too_many};
use super::manifest_tree::{GitCommitDetails, Tree, TreeFiles};
use super::surrounding::surrounding_error;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::Cause;
use crate::model::secrets::redact::{quotable_path, quotable_variable};
use crate::syntax::text::without_tokens;

/// A manifest file in a request.
#[derive(Clone, PartialEq)]
pub struct SentFile {
    /// The path, used only in messages.
    pub name: String,
    /// The text: YAML, or JSON if the name ends in `.json`. Others can use it, too.
    pub text: Arc<String>,
    /// The values that its documents take from files and the environment.
    pub values: Vec<SentValue>,
    /// Whether the source only uses what the file declares.
    pub is_surrounding: bool,
}

/// Omits the text, which may contain secrets.
impl fmt::Debug for SentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentFile({}, {} bytes, {} values)", self.name, self.text.len(), self.values.len())
    }
}

impl SentFile {
    /// A file that takes no values.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: Arc::new(text.into()), values: Vec::new(), is_surrounding: false }
    }

    /// The text without a byte order mark.
    fn content(&self) -> Arc<String> {
        match self.text.trim_start_matches('\u{feff}') {
            content if content.len() == self.text.len() => Arc::clone(&self.text),
            content => Arc::new(content.to_owned()),
        }
    }
}

/// The value of `{from_file: PATH}` or `{from_env: NAME}` in a sent manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SentValue {
    /// The path as written in the manifest; empty for a variable.
    #[serde(default)]
    pub from_file: String,
    /// The variable's name; empty for a file.
    #[serde(default)]
    pub from_env: String,
    /// The text.
    pub value: Secret,
}

/// A value that a manifest takes: the name of the manifest, `from_file` and `from_env`.
pub(super) type ValueKey = (String, String, String);

/// Manifests in a request. Nothing is read from the server's disk or environment.
#[derive(Debug, Clone)]
pub struct Sent {
    files: Vec<SentFile>,
    commit: Option<String>,
    details: GitCommitDetails,
    /// Whether a request without manifests counts as empty, rather than as an error.
    may_be_empty: bool,
    /// The positions of each value: of its file, and in that.
    values: HashMap<ValueKey, (usize, usize)>,
}

impl Sent {
    /// Indexes sent files.
    pub fn new(files: Vec<SentFile>, commit: Option<String>) -> Self {
        // The last of several files with one name.
        let by_name: HashMap<String, usize> =
            files.iter().enumerate().map(|(at, file)| (without_tokens(&file.name).into_owned(), at)).collect();
        let mut values = HashMap::new();
        for (name, at) in by_name {
            for (place, value) in files.get(at).into_iter().flat_map(|file| &file.values).enumerate() {
                let key = (name.clone(), value.from_file.clone(), value.from_env.clone());
                values.entry(key).or_insert((at, place));
            }
        }
        let commit = commit.map(|commit| without_tokens(&commit).into_owned());
        Self { files, commit, details: GitCommitDetails::default(), may_be_empty: false, values }
    }

    /// Treats a request without manifests as empty, rather than as an error.
    #[must_use]
    pub(crate) fn or_empty(self) -> Self {
        Self { may_be_empty: true, ..self }
    }

    /// Sets the details of the commit.
    #[must_use]
    pub fn with_commit_details(self, details: GitCommitDetails) -> Self {
        Self { details, ..self }
    }

    fn value(&self, manifest: &ManifestFile, file: &str, variable: &str) -> Option<String> {
        let key = (manifest.source.name.clone(), file.to_owned(), variable.to_owned());
        let (at, place) = self.values.get(&key)?;
        let value = &self.files.get(*at)?.values.get(*place)?.value;
        Some(value.expose().to_owned()).filter(|text| !text.trim().is_empty())
    }
}

impl Tree for Sent {
    fn manifests(&self) -> TreeFiles {
        let mut diagnostics = Vec::new();
        let mut files: Vec<Arc<ManifestFile>> = Vec::new();
        // One text can stand for many files, so the size of a request does not limit them.
        let total: u64 = self.files.iter().map(|sent| sent.text.len() as u64).sum();
        if self.files.len() > MOST_FILES || total > MOST_TOTAL_BYTES {
            diagnostics.push(too_many("the request"));
            return (files, diagnostics);
        }
        for sent in &self.files {
            match text_file(sent.name.clone(), sent.content(), Path::new(""), Path::new("")) {
                Ok(file) if sent.is_surrounding => files.push(Arc::new(file.as_surrounding())),
                Ok(file) => files.push(file),
                Err(fault) if sent.is_surrounding => diagnostics.extend(surrounding_error(fault)),
                Err(fault) => diagnostics.push(fault),
            }
        }
        // Surrounding manifests alone declare nothing, and everything that the source owns would be deleted.
        if !self.may_be_empty && self.files.iter().all(|sent| sent.is_surrounding) {
            let fault = Diagnostic::error(Code::EmptySource, "the request has no manifests");
            diagnostics.push(fault.caused_by(Cause::NoContent));
        }
        (files, diagnostics)
    }

    fn commit(&self) -> Option<String> {
        self.commit.clone()
    }

    fn has_surrounding(&self) -> bool {
        self.files.iter().any(|sent| sent.is_surrounding)
    }

    fn commit_details(&self) -> GitCommitDetails {
        self.details.clone()
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.value(manifest, name, "").ok_or_else(|| {
            let file = printable_path(quotable_path(name));
            let message = format!("the request does not contain the content of `{file}`");
            Fault::new(Code::FileUnreadable, message)
                .help("send it in the file's `values`, with `from_file` as in the manifest")
        })
    }

    fn variable(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.value(manifest, "", name).ok_or_else(|| {
            let variable = printable(quotable_variable(name));
            let message = format!("the request does not contain the value of the environment variable `{variable}`");
            Fault::new(Code::EnvUnset, message)
                .help("send it in the file's `values`, with `from_env` as in the manifest")
        })
    }

    /// The client writes the token, so any path is accepted.
    fn token_file(&self, _manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        Ok(file)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_name_are_those_of_its_last_file() {
        let file = |values: &[(&str, &str)]| {
            let value = |(name, text): &(&str, &str)| SentValue {
                from_file: (*name).to_owned(),
                from_env: String::new(),
                value: Secret::new(*text),
            };
            SentFile { values: values.iter().map(value).collect(), ..SentFile::new("edge.yaml", "# none\n") }
        };
        let sent = Sent::new(vec![file(&[("a", "1"), ("b", "1")]), file(&[("a", "2"), ("a", "3")])], None);
        let (manifests, _) = sent.manifests();
        assert_eq!(sent.file(&manifests[0], "a").unwrap(), "2");
        assert!(sent.file(&manifests[0], "b").is_err());
    }
}
