//! Manifests in a request, with the values that they take from files and the environment.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    contents::text_file,
    context::context_error,
    limits::{MOST_FILES, MOST_TOTAL_BYTES, too_many},
    manifest_tree::{GitCommitDetails, Tree, TreeFiles},
};
use crate::{
    manifest::resolve::origin::ManifestFile,
    model::{
        author::CommitAuthor,
        diagnostics::{Code, Diagnostic, Fault},
        secrets::{
            redact::{quotable_path, quotable_variable},
            secret::Secret,
        },
    },
    syntax::text::{printable, printable_path, without_tokens},
};

/// A manifest file in a request.
#[derive(Clone, PartialEq)]
pub struct SentFile {
    /// The path, used only in messages.
    pub name: String,
    /// The text: YAML, or JSON if the name ends in `.json`.
    pub text: String,
    /// The values that its documents take from files and the environment.
    pub values: Vec<SentValue>,
}

/// Omits the text, which may contain secrets.
impl fmt::Debug for SentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentFile({}, {} bytes, {} values)", self.name, self.text.len(), self.values.len())
    }
}

/// A [`SentFile`] with a text that others use too.
#[derive(Clone)]
pub(crate) struct SharedFile {
    /// The path, used only in messages.
    pub name: String,
    /// The text: YAML, or JSON if the name ends in `.json`.
    pub text: Arc<String>,
    /// The values that its documents take from files and the environment.
    pub values: Vec<SentValue>,
    /// Whether the source only uses what the file declares.
    pub is_context: bool,
}

/// Omits the text, which may contain secrets.
impl fmt::Debug for SharedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedFile({}, {} bytes, {} values)", self.name, self.text.len(), self.values.len())
    }
}

impl SharedFile {
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

/// The index of each value of a file, by `from_file` and `from_env`.
type ValueIndexes = HashMap<(String, String), usize>;

/// Manifests in a request. Nothing is read from the server's disk or environment.
#[derive(Debug, Clone)]
pub struct Sent {
    files: Vec<SharedFile>,
    commit: Option<String>,
    details: GitCommitDetails,
    /// Whether a request without manifests counts as empty, rather than as an error.
    may_be_empty: bool,
    /// The index of each file by the name that it is read with, and of its values.
    by_name: HashMap<String, (usize, ValueIndexes)>,
}

impl Sent {
    /// Indexes sent files.
    pub fn new(files: Vec<SentFile>, commit: Option<String>) -> Self {
        let shared = |SentFile { name, text, values }: SentFile| SharedFile {
            name,
            text: Arc::new(text),
            values,
            is_context: false,
        };
        Self::shared(files.into_iter().map(shared).collect(), commit)
    }

    /// Indexes files whose texts others use too.
    pub(crate) fn shared(files: Vec<SharedFile>, commit: Option<String>) -> Self {
        let by_name = files.iter().enumerate().map(|(at, file)| {
            let mut values = HashMap::new();
            for (at, value) in file.values.iter().enumerate() {
                values.entry((value.from_file.clone(), value.from_env.clone())).or_insert(at);
            }
            (without_tokens(&file.name).into_owned(), (at, values))
        });
        let by_name = by_name.collect();
        let commit = commit.map(|commit| without_tokens(&commit).into_owned());
        Self { files, commit, details: GitCommitDetails::default(), may_be_empty: false, by_name }
    }

    /// Treats a request without manifests as empty, rather than as an error.
    #[must_use]
    pub(crate) fn or_empty(self) -> Self {
        Self { may_be_empty: true, ..self }
    }

    /// Sets the author of the commit.
    #[must_use]
    pub fn with_commit_author(mut self, commit_author: Option<CommitAuthor>) -> Self {
        self.details.author = commit_author;
        self
    }

    /// Sets the first line of the commit's message.
    #[must_use]
    pub fn with_commit_message(mut self, commit_message: Option<String>) -> Self {
        self.details.message = commit_message;
        self
    }

    fn value(&self, manifest: &ManifestFile, file: &str, variable: &str) -> Option<String> {
        let (at, values) = self.by_name.get(&manifest.source.name)?;
        let value = values.get(&(file.to_owned(), variable.to_owned()))?;
        let value = self.files.get(*at)?.values.get(*value)?;
        Some(value.value.expose().to_owned()).filter(|text| !text.trim().is_empty())
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
            let (nowhere, mut found) = (Path::new(""), Vec::new());
            let file = text_file(sent.name.clone(), sent.content(), nowhere, nowhere, &mut found);
            if sent.is_context {
                files.extend(file.map(|file| Arc::new(file.as_context())));
                diagnostics.extend(found.into_iter().filter_map(context_error));
            } else {
                files.extend(file);
                diagnostics.append(&mut found);
            }
        }
        // Surrounding manifests alone declare nothing, and everything that the source owns would be deleted.
        if !self.may_be_empty && self.files.iter().all(|sent| sent.is_context) {
            diagnostics.push(Diagnostic::error(Code::EmptySource, "the request has no manifests"));
        }
        (files, diagnostics)
    }

    fn commit(&self) -> Option<String> {
        self.commit.clone()
    }

    fn has_context(&self) -> bool {
        self.files.iter().any(|sent| sent.is_context)
    }

    fn commit_details(&self) -> GitCommitDetails {
        self.details.clone()
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.value(manifest, name, "").ok_or_else(|| {
            Fault::new(
                Code::FileUnreadable,
                format!("the request does not contain the content of `{}`", printable_path(quotable_path(name))),
            )
            .help("send it in the file's `values`, with `from_file` as in the manifest")
        })
    }

    fn variable(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.value(manifest, "", name).ok_or_else(|| {
            Fault::new(
                Code::EnvUnset,
                format!(
                    "the request does not contain the value of the environment variable `{}`",
                    printable(quotable_variable(name))
                ),
            )
            .help("send it in the file's `values`, with `from_env` as in the manifest")
        })
    }

    /// The client writes the token, so any path is accepted.
    fn token_file(&self, _manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        Ok(file)
    }
}
