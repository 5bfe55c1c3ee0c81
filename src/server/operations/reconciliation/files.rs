//! The texts of sent files, kept in memory: a later request refers to them by digest (D72).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use blake3::Hash;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::wire::RequestFile;
use crate::{
    manifest::tree::SharedFile,
    model::{
        diagnostics::{
            code::Code,
            fault::{Fault, Path},
        },
        id::Id,
    },
    server::http::response::ApiError,
};

/// The default size limit of the cache in MiB.
pub(crate) const DEFAULT_MIB: u64 = 256;
/// The memory for an entry besides its text.
const OVERHEAD: u64 = 256;

/// Whether a text is a 256-bit hash in lower-case hexadecimal.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the digest of each file, with its faults.
pub(super) fn digests(files: &[RequestFile], faults: &mut Vec<Fault>) -> Vec<Hash> {
    let digests: Vec<Result<Hash, Fault>> = files.par_iter().map(digest).collect();
    let mut found = Vec::with_capacity(digests.len());
    for (at, digest) in digests.into_iter().enumerate() {
        match digest {
            Ok(digest) => found.push(digest),
            Err(fault) => {
                let path = fault.path.under(&Path::root().join("files").join(at));
                faults.push(fault.at(path));
            }
        }
    }
    found
}

fn digest(file: &RequestFile) -> Result<Hash, Fault> {
    let wrong = |message: &str| Fault::new(Code::InvalidFormat, message).at(Path::root().join("digest"));
    let declared = match file.digest.as_str() {
        "" => None,
        text if is_hash(text) => Hash::from_hex(text).ok(),
        _ => return Err(wrong("a digest must be 64 lower-case hexadecimal digits")),
    };
    match (&file.text, declared) {
        (Some(text), declared) => {
            // The digest of a client would let it replace the text of another file.
            let digest = blake3::hash(text.as_bytes());
            match declared {
                Some(declared) if declared != digest => Err(wrong("`digest` is not the digest of `text`")),
                _ => Ok(digest),
            }
        }
        (None, Some(declared)) => Ok(declared),
        (None, None) => {
            let fault = Fault::new(Code::Required, "`text` or `digest` is required");
            Err(fault.at(Path::root().join("text")))
        }
    }
}

/// The texts of all owners, up to a size.
pub(crate) struct FileCache {
    most_bytes: u64,
    kept: Mutex<KeptFiles>,
}

#[derive(Default)]
struct KeptFiles {
    /// An owner finds only what it has sent itself: a digest is no permission to read a text.
    owners: HashMap<Id, HashMap<Hash, KeptFile>>,
    /// The owner and digest of each file, by its last use.
    by_use: BTreeMap<u64, (Id, Hash)>,
    uses: u64,
    bytes: u64,
}

/// A text, shared with the runs that use it.
struct KeptFile {
    text: Arc<String>,
    last_use: u64,
}

impl FileCache {
    /// An empty cache.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, kept: Mutex::default() }
    }

    /// The number of texts, and the memory for them.
    pub(crate) fn size(&self) -> (usize, u64) {
        let kept = self.kept();
        (kept.by_use.len(), kept.bytes)
    }

    /// Keeps the texts of a request, and returns its files with all texts, or an error with the digests of those that
    /// its owner has not sent. `digests` are those of the files, in their order.
    pub(super) fn resolve(
        &self,
        owner: &Id,
        files: Vec<RequestFile>,
        digests: &[Hash],
    ) -> Result<Vec<SharedFile>, ApiError> {
        let mut texts: HashMap<Hash, Arc<String>> = HashMap::new();
        for (file, digest) in files.iter().zip(digests) {
            if let Some(text) = &file.text {
                texts.insert(*digest, Arc::clone(text));
            }
        }
        let (mut hits, mut missing) = (0u64, Vec::new());
        let mut lacking: HashSet<Hash> = HashSet::new();
        let mut kept = self.kept();
        // The lookups come first: new texts must not displace those that the request refers to.
        for digest in digests {
            if texts.contains_key(digest) || lacking.contains(digest) {
                continue;
            }
            match kept.find(owner, digest) {
                Some(text) => {
                    hits += 1;
                    texts.insert(*digest, text);
                }
                None => {
                    lacking.insert(*digest);
                    missing.push(digest.to_string());
                }
            }
        }
        for (file, digest) in files.iter().zip(digests) {
            if let Some(text) = &file.text {
                kept.keep(owner, digest, text, self.most_bytes);
            }
        }
        drop(kept);
        metrics::counter!("edgewright_file_cache_hits_total").increment(hits);
        metrics::counter!("edgewright_file_cache_misses_total").increment(missing.len() as u64);
        if !missing.is_empty() {
            return Err(ApiError::missing_files(missing));
        }
        let whole = files.into_iter().zip(digests).map(|(file, digest)| match texts.get(digest) {
            Some(text) => {
                let (name, text, values, is_context) = (file.name, Arc::clone(text), file.values, file.context);
                Ok(SharedFile { name, text, values, is_context })
            }
            None => Err(ApiError::missing_files(vec![digest.to_string()])),
        });
        whole.collect()
    }

    fn kept(&self) -> MutexGuard<'_, KeptFiles> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptFiles {
    fn find(&mut self, owner: &Id, digest: &Hash) -> Option<Arc<String>> {
        let file = self.owners.get_mut(owner)?.get_mut(digest)?;
        self.by_use.remove(&file.last_use);
        self.uses += 1;
        file.last_use = self.uses;
        self.by_use.insert(self.uses, (owner.clone(), *digest));
        Some(Arc::clone(&file.text))
    }

    /// Keeps a text, in place of those that were unused for the longest time.
    fn keep(&mut self, owner: &Id, digest: &Hash, text: &Arc<String>, most_bytes: u64) {
        let size = cost(text);
        if size > most_bytes || self.find(owner, digest).is_some() {
            return;
        }
        while self.bytes + size > most_bytes {
            let Some((_, (owner, digest))) = self.by_use.pop_first() else { break };
            self.forget(&owner, &digest);
        }
        self.uses += 1;
        self.by_use.insert(self.uses, (owner.clone(), *digest));
        let file = KeptFile { text: Arc::clone(text), last_use: self.uses };
        self.owners.entry(owner.clone()).or_default().insert(*digest, file);
        self.bytes += size;
    }

    fn forget(&mut self, owner: &Id, digest: &Hash) {
        let Some(files) = self.owners.get_mut(owner) else { return };
        if let Some(file) = files.remove(digest) {
            self.bytes = self.bytes.saturating_sub(cost(&file.text));
        }
        if files.is_empty() {
            self.owners.remove(owner);
        }
    }
}

fn cost(text: &Arc<String>) -> u64 {
    text.capacity() as u64 + OVERHEAD
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sent(text: &str) -> RequestFile {
        let text = Some(Arc::new(text.to_owned()));
        RequestFile {
            name: "a.yaml".into(),
            text,
            digest: String::new(),
            values: Vec::new(),
            context: false,
            older: false,
        }
    }

    fn referred(text: &str) -> RequestFile {
        let digest = blake3::hash(text.as_bytes()).to_string();
        RequestFile { name: "a.yaml".into(), text: None, digest, values: Vec::new(), context: false, older: false }
    }

    /// The texts that a request stands for; none if some are missing.
    fn resolved(cache: &FileCache, owner: &str, files: &[RequestFile]) -> Option<Vec<String>> {
        let mut faults = Vec::new();
        let digests = digests(files, &mut faults);
        assert!(faults.is_empty());
        let files = cache.resolve(&Id::new(owner), files.to_vec(), &digests).ok()?;
        Some(files.iter().map(|file| file.text.to_string()).collect())
    }

    #[test]
    fn the_texts_unused_for_the_longest_time_go_first() {
        let cache = FileCache::new(3 * (OVERHEAD + 1));
        let whole = ["a", "b", "c"].map(sent);
        assert!(resolved(&cache, "usr_1", &whole).is_some());
        assert_eq!(cache.size(), (3, 3 * (OVERHEAD + 1)));
        // What a request refers to stays, whatever else it sends.
        let mixed = [referred("a"), sent("d"), sent("e")];
        assert_eq!(resolved(&cache, "usr_1", &mixed).unwrap(), ["a", "d", "e"]);
        for (text, is_kept) in [("a", true), ("b", false), ("c", false), ("d", true), ("e", true)] {
            assert_eq!(resolved(&cache, "usr_1", &[referred(text)]).is_some(), is_kept, "{text}");
        }
        assert_eq!(cache.size(), (3, 3 * (OVERHEAD + 1)));
        // A text that is larger than the whole cache displaces nothing, and still takes part in its own request.
        let large = "x".repeat(4096);
        assert_eq!(resolved(&cache, "usr_1", &[sent(&large)]).unwrap(), [large]);
        assert_eq!(cache.size().0, 3);
        assert!(resolved(&FileCache::new(0), "usr_1", &whole).is_some());
    }

    #[test]
    fn nobody_finds_what_another_has_sent() {
        let cache = FileCache::new(1 << 20);
        assert!(resolved(&cache, "usr_1", &[sent("secret")]).is_some());
        assert!(resolved(&cache, "usr_2", &[referred("secret")]).is_none());
        assert!(resolved(&cache, "usr_1", &[referred("secret")]).is_some());
        assert_eq!(cache.size().0, 1);
    }

    #[test]
    fn a_request_that_is_not_complete_leaves_its_texts_for_the_next_one() {
        let cache = FileCache::new(1 << 20);
        assert!(resolved(&cache, "usr_1", &[sent("a"), referred("b"), referred("c")]).is_none());
        assert!(resolved(&cache, "usr_1", &[referred("a"), sent("b"), referred("c")]).is_none());
        let last = [referred("a"), referred("b"), sent("c"), referred("c")];
        assert_eq!(resolved(&cache, "usr_1", &last).unwrap(), ["a", "b", "c", "c"]);
    }
}
