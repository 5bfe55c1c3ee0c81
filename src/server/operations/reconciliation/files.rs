//! The texts of sent files, kept in memory: a later request refers to them by digest (D72).
//!
//! The cost of a plan should follow the change and not the size of the source. A text is found only by whoever has sent it,
//! and its digest is always computed here: a digest neither permits reading a text nor replaces one. The cache is only a
//! shortcut. A run uses the texts of its own request whether or not they are kept, and a request that lacks one changes
//! nothing.

use std::collections::HashSet;

use blake3::Hash;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::wire::RequestFile;
use crate::cache::{WeightedCache, weighted};
use crate::manifest::tree::SentFile;
use crate::model::Path;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

/// The default size limit of the cache in MiB.
pub(crate) const DEFAULT_MIB: u64 = 256;

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
            Err(fault) => faults.push(fault.under(&Path::from(("files", at)))),
        }
    }
    found
}

fn digest(file: &RequestFile) -> Result<Hash, Fault> {
    let wrong = |message: &str| Fault::new(Code::InvalidFormat, message).at("digest");
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
        (None, None) => Err(Fault::new(Code::Required, "`text` or `digest` is required").at("text")),
    }
}

/// The texts of all owners, up to a size. An owner finds only what it has sent itself: a digest is no permission to read a
/// text. Texts are shared with the runs that use them.
pub(crate) struct FileCache(WeightedCache<(Id, Hash), Arc<String>>);

impl FileCache {
    /// An empty cache.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self(weighted(most_bytes, |_, text| text.capacity()))
    }

    /// The number of texts, and the memory for them.
    pub(crate) fn size(&self) -> (usize, u64) {
        (self.0.len(), self.0.weight())
    }

    /// Keeps the texts of a request, and returns its files with all texts, or an error with the digests of those that
    /// its owner has not sent. `digests` are those of the files, in their order.
    pub(super) fn resolve(
        &self,
        owner: &Id,
        files: Vec<RequestFile>,
        digests: &[Hash],
    ) -> Result<Vec<SentFile>, ApiError> {
        let mut texts: HashMap<Hash, Arc<String>> = HashMap::new();
        for (file, digest) in files.iter().zip(digests) {
            if let Some(text) = &file.text {
                texts.insert(*digest, Arc::clone(text));
            }
        }
        let (mut hits, mut missing) = (0u64, Vec::new());
        let mut lacking: HashSet<Hash> = HashSet::new();
        // The lookups come first: new texts must not displace those that the request refers to.
        for digest in digests {
            if texts.contains_key(digest) || lacking.contains(digest) {
                continue;
            }
            match self.0.get(&(owner.clone(), *digest)) {
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
            let key = (owner.clone(), *digest);
            if let Some(text) = &file.text
                && !self.0.contains_key(&key)
            {
                self.0.insert(key, Arc::clone(text));
            }
        }
        metrics::counter!("edgewright_file_cache_hits_total").increment(hits);
        metrics::counter!("edgewright_file_cache_misses_total").increment(missing.len() as u64);
        if !missing.is_empty() {
            return Err(ApiError::missing_files(missing));
        }
        let whole = files.into_iter().zip(digests).map(|(file, digest)| {
            let text = texts.get(digest).cloned().ok_or_else(|| ApiError::missing_files(vec![digest.to_string()]))?;
            Ok(SentFile { name: file.name, text, values: file.values, is_surrounding: file.surrounding })
        });
        whole.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cache::OVERHEAD;

    fn sent(text: &str) -> RequestFile {
        let text = Some(Arc::new(text.to_owned()));
        RequestFile {
            name: "a.yaml".into(),
            text,
            digest: String::new(),
            values: Vec::new(),
            surrounding: false,
            older: false,
        }
    }

    fn referred(text: &str) -> RequestFile {
        let digest = blake3::hash(text.as_bytes()).to_string();
        RequestFile { name: "a.yaml".into(), text: None, digest, values: Vec::new(), surrounding: false, older: false }
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
    fn the_texts_that_requests_refer_to_stay() {
        let most = 3 * (OVERHEAD as u64 + 1);
        let cache = FileCache::new(most);
        let whole = ["a", "b", "c"].map(sent);
        assert!(resolved(&cache, "usr_1", &whole).is_some());
        assert_eq!(cache.size(), (3, most));
        // What a request refers to stays, whatever else it sends.
        let mixed = [referred("a"), sent("d"), sent("e")];
        assert_eq!(resolved(&cache, "usr_1", &mixed).unwrap(), ["a", "d", "e"]);
        let all = [referred("a"), referred("d"), referred("e")];
        assert!(resolved(&cache, "usr_1", &all).is_some(), "what nobody has referred to has made room");
        assert_eq!(cache.size(), (3, most));
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
