//! A tree that records what is read from it, to send the content or to detect changes.

use std::collections::HashMap;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::manifest_tree::{Tree, TreeFiles};
use super::request::{SentFile, SentValue, ValueKey};
use crate::manifest::loader::{Loaded, load};
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::DigestKey;

/// The files and values that were read, as digests with a secret key: manifests and values can have secrets that are
/// short enough to guess.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadDigests {
    /// The digest of the manifests' names and texts.
    manifests: String,
    /// Makes equal texts of different readings have different digests.
    salt: String,
    /// The digest of each value.
    values: Vec<(ValueKey, String)>,
}

fn value_digest(key: &DigestKey, salt: &str, value: &str) -> String {
    key.digest("value", &[salt.as_bytes(), value.as_bytes()]).to_hex().to_string()
}

fn manifests_digest(key: &DigestKey, salt: &str, digest: &blake3::Hash) -> String {
    key.digest("manifests", &[salt.as_bytes(), digest.as_bytes()]).to_hex().to_string()
}

/// A tree with a record of the last read.
#[derive(Debug)]
pub struct Recorder {
    tree: Arc<dyn Tree>,
    memory: Lock<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The digest of the manifests' names and texts.
    manifests: Option<blake3::Hash>,
    /// The values that manifests took.
    values: BTreeMap<ValueKey, Secret>,
    /// Whether a read failed.
    faulty: bool,
    /// Manifests that were read ahead, for the next read: standard input can be read only once.
    ahead: Option<TreeFiles>,
}

/// Reads manifests and returns them with the files to send.
pub(crate) fn collect(tree: &Arc<dyn Tree>) -> (Loaded, Vec<SentFile>) {
    let recorder = Recorder::new(Arc::clone(tree));
    let loaded = load(&recorder);
    let mut values: HashMap<String, Vec<SentValue>> = HashMap::new();
    for ((manifest, from_file, from_env), value) in std::mem::take(&mut recorder.memory.lock().values) {
        values.entry(manifest).or_default().push(SentValue { from_file, from_env, value });
    }
    let files = loaded.files.iter().map(|file| SentFile {
        name: file.source.name.clone(),
        text: Arc::clone(&file.source.text),
        is_surrounding: file.is_surrounding,
        values: values.remove(&file.source.name).unwrap_or_default(),
    });
    let files = files.collect();
    (loaded, files)
}

impl Recorder {
    /// Wraps a tree. Nothing is read yet.
    pub fn new(tree: Arc<dyn Tree>) -> Self {
        Self { tree, memory: Lock::default() }
    }

    /// Begins a sync: what an earlier one has read ahead and not used is out of date.
    pub(crate) fn begin_sync(&self) {
        self.memory.lock().ahead = None;
    }

    /// Whether the manifests and their values are the same as in the last read. False if that read had failures, which
    /// may be fixed by now. If files differ, the next read returns what was read now.
    pub fn unchanged(&self) -> bool {
        let (files, diagnostics) = self.tree.manifests();
        let mut memory = self.memory.lock();
        if memory.faulty || !diagnostics.is_empty() || memory.manifests != Some(digest(&files)) {
            memory.ahead = Some((files, diagnostics));
            return false;
        }
        let by_name = by_name(&files);
        memory.values.iter().all(|(taken, value)| {
            value_of(self.tree.as_ref(), &by_name, taken).is_some_and(|now| now == value.expose())
        })
    }

    /// A digest of the files and values that were read last; `None` if reading failed.
    pub(crate) fn content(&self, key: &DigestKey) -> Option<String> {
        let memory = self.memory.lock();
        let manifests = memory.manifests.filter(|_| !memory.faulty)?;
        let values = memory.values.iter().flat_map(|((manifest, from_file, from_env), value)| {
            [manifest.as_bytes(), from_file.as_bytes(), from_env.as_bytes(), value.expose().as_bytes()]
        });
        let parts: Vec<&[u8]> = std::iter::once(manifests.as_bytes().as_slice()).chain(values).collect();
        Some(key.digest("content", &parts).to_hex().to_string())
    }

    /// The last files and values that were read; `None` if reading failed.
    pub(crate) fn last_digests(&self, key: &DigestKey, salt: String) -> Option<ReadDigests> {
        let memory = self.memory.lock();
        if memory.faulty {
            return None;
        }
        let digest = |value: &Secret| value_digest(key, &salt, value.expose());
        let values = memory.values.iter().map(|(taken, value)| (taken.clone(), digest(value))).collect();
        Some(ReadDigests { manifests: manifests_digest(key, &salt, &memory.manifests?), values, salt })
    }

    /// Reads the manifests and values of an earlier reading. Returns the files if nothing has changed. Otherwise, the next
    /// read returns the same manifests.
    pub(crate) fn reread_if_unchanged(&self, key: &DigestKey, earlier: &ReadDigests) -> Option<Vec<Arc<ManifestFile>>> {
        let (files, diagnostics) = self.manifests();
        let same = |digest: blake3::Hash| manifests_digest(key, &earlier.salt, &digest) == earlier.manifests;
        let is_same = diagnostics.is_empty()
            && self.memory.lock().manifests.is_some_and(same)
            && self.takes(&files, key, earlier);
        if !is_same {
            self.memory.lock().ahead = Some((files, diagnostics));
            return None;
        }
        Some(files)
    }

    /// Whether manifests take the values of an earlier reading.
    fn takes(&self, files: &[Arc<ManifestFile>], key: &DigestKey, earlier: &ReadDigests) -> bool {
        let by_name = by_name(files);
        earlier.values.iter().all(|(taken, digest)| {
            let value = value_of(self, &by_name, taken);
            value.is_some_and(|value| value_digest(key, &earlier.salt, &value) == *digest)
        })
    }

    fn note(
        &self,
        manifest: &ManifestFile,
        from_file: &str,
        from_env: &str,
        taken: Result<String, Fault>,
    ) -> Result<String, Fault> {
        let mut memory = self.memory.lock();
        match &taken {
            Ok(text) => {
                let key = (manifest.source.name.clone(), from_file.to_owned(), from_env.to_owned());
                memory.values.entry(key).or_insert_with(|| Secret::new(text.as_str()));
            }
            // It stays refused until the configuration changes, and is assumed.
            Err(refused) if refused.code == Code::Forbidden && manifest.is_surrounding => {}
            Err(_) => memory.faulty = true,
        }
        taken
    }
}

/// Files by their names.
fn by_name(files: &[Arc<ManifestFile>]) -> HashMap<&str, &ManifestFile> {
    files.iter().map(|file| (file.source.name.as_str(), file.as_ref())).collect()
}

/// A value that a manifest takes from a file or a variable.
fn value_of(
    tree: &dyn Tree,
    by_name: &HashMap<&str, &ManifestFile>,
    (manifest, from_file, from_env): &ValueKey,
) -> Option<String> {
    let manifest = by_name.get(manifest.as_str())?;
    if from_file.is_empty() { tree.variable(manifest, from_env).ok() } else { tree.file(manifest, from_file).ok() }
}

/// The digest of all manifests' names and texts.
fn digest(files: &[Arc<ManifestFile>]) -> blake3::Hash {
    let digests: Vec<blake3::Hash> = files.par_iter().map(|file| file.source.digest()).collect();
    let mut hasher = blake3::Hasher::new();
    for digest in &digests {
        hasher.update(digest.as_bytes());
    }
    hasher.finalize()
}

impl Tree for Recorder {
    fn manifests(&self) -> TreeFiles {
        let ahead = self.memory.lock().ahead.take();
        let (files, diagnostics) = ahead.unwrap_or_else(|| self.tree.manifests());
        let (manifests, faulty) = (Some(digest(&files)), !diagnostics.is_empty());
        *self.memory.lock() = Memory { manifests, faulty, ..Memory::default() };
        (files, diagnostics)
    }

    fn inner(&self) -> Option<&dyn Tree> {
        Some(self.tree.as_ref())
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.note(manifest, name, "", self.tree.file(manifest, name))
    }

    fn variable(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.note(manifest, "", name, self.tree.variable(manifest, name))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::manifest::tree::Disk;

    #[test]
    fn a_manifest_or_a_value_that_changes_is_seen_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let (manifest, value) = (folder.path().join("a.yaml"), folder.path().join("ca.pem"));
        let text = "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {name: a}\n\
                    spec: {ca_pem: {from_file: ca.pem}}\n";
        fs::write(&manifest, text).unwrap();
        fs::write(&value, "one").unwrap();
        let tree = Disk::new([folder.path()]);
        let recorder = Recorder::new(Arc::new(tree));
        assert!(!recorder.unchanged(), "it was not read yet");
        let read = || {
            load(&recorder);
        };
        read();
        assert!(recorder.unchanged());
        fs::write(folder.path().join("README.md"), "no manifest").unwrap();
        assert!(recorder.unchanged());
        fs::write(&value, "two").unwrap();
        assert!(!recorder.unchanged(), "a value");
        read();
        assert!(recorder.unchanged());
        fs::write(folder.path().join("b.yaml"), "# another one\n").unwrap();
        assert!(!recorder.unchanged(), "a new file");
        fs::remove_file(&value).unwrap();
        read();
        assert!(!recorder.unchanged(), "what is missing may come");
    }
}
