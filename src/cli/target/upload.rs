//! The files of requests to a server: digests stand for the texts that it has (D72).
//!
//! A small source is sent whole. Otherwise the first request has digests only, and the next ones the texts that the server
//! lacks, each in one of the files that have it. No text is sent more than twice for a plan: a server that has restarted
//! needs it again, and one whose cache is too small would need it for ever. The last resort is one request with everything.

use std::collections::HashSet;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::{cli::prelude::*, manifest::tree::SentFile, server::operations::reconciliation::wire::RequestFile};

/// A source up to this size is sent as a whole: it arrives as fast as its digests, without a second request.
const SMALL_BYTES: usize = 16 << 10;
/// The most times that one text is sent for a plan: the server may have restarted after the first.
const MOST_SENDS: u8 = 2;
/// The most that a text adds to a request besides its content.
const TEXT_FIELD_BYTES: usize = 16;

pub(super) struct UploadFiles {
    files: Vec<SentFile>,
    /// The index of the first file of a comparison's older manifests.
    first_older: usize,
    digests: Vec<String>,
    /// Whether every request contains every text.
    whole: bool,
    /// The number of times that each missing text was sent, by digest.
    sent: HashMap<String, u8>,
    /// The size of these texts.
    sent_bytes: usize,
}

/// The texts in a request, by the index of their files.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Texts {
    All,
    Of(HashSet<usize>),
    DigestsOnly,
}

/// The next request of an exchange.
#[derive(Debug)]
pub(super) struct NextRequest {
    pub texts: Texts,
    /// The progress of an upload that takes several requests.
    pub progress: Option<String>,
}

impl UploadFiles {
    pub(super) fn new(files: Vec<SentFile>) -> Self {
        let digests = files.par_iter().map(|file| blake3::hash(file.text.as_bytes()).to_string()).collect();
        let size: usize = files.iter().map(|file| file.text.len()).sum();
        let first_older = files.len();
        Self { files, first_older, digests, whole: size <= SMALL_BYTES, sent: HashMap::new(), sent_bytes: 0 }
    }

    pub(super) fn with_older(mut files: Vec<SentFile>, older: Vec<SentFile>) -> Self {
        let first_older = files.len();
        files.extend(older);
        Self { first_older, ..Self::new(files) }
    }

    /// Sends all texts from now on: the server does not know digests.
    pub(super) fn send_whole(&mut self) {
        self.whole = true;
    }

    pub(super) fn first_texts(&mut self) -> Texts {
        self.sent.clear();
        self.sent_bytes = 0;
        if self.whole { Texts::All } else { Texts::DigestsOnly }
    }

    pub(super) fn listed(&self, texts: &Texts) -> Vec<RequestFile> {
        let has_text = |at: usize| match texts {
            Texts::All => true,
            Texts::Of(files) => files.contains(&at),
            Texts::DigestsOnly => false,
        };
        let files = self.files.iter().zip(&self.digests).enumerate().map(|(at, (file, digest))| {
            let text = has_text(at).then(|| Arc::clone(&file.text));
            let digest = if text.is_some() { String::new() } else { digest.clone() };
            let (name, values) = (file.name.clone(), file.values.clone());
            RequestFile { name, text, digest, values, surrounding: file.is_surrounding, older: at >= self.first_older }
        });
        files.collect()
    }

    /// The next request after a response with the digests that the server lacks. `room` is what the request limit leaves
    /// beside a request without texts.
    pub(super) fn next_texts(&mut self, missing: &[String], room: usize, url: &str) -> Result<NextRequest, Failure> {
        let missing: HashSet<&str> = missing.iter().map(String::as_str).collect();
        let mut seen = HashSet::new();
        let lacking: Vec<(usize, usize)> = self
            .files
            .iter()
            .zip(&self.digests)
            .enumerate()
            .filter(|(_, (_, digest))| missing.contains(digest.as_str()) && seen.insert(digest.as_str()))
            .map(|(at, (file, _))| (at, cost(&file.text)))
            .collect();
        let is_spent = |at: &usize| {
            let digest = self.digests.get(*at);
            digest.and_then(|digest| self.sent.get(digest)).is_some_and(|sent| *sent >= MOST_SENDS)
        };
        if lacking.is_empty() || lacking.iter().any(|(at, _)| is_spent(at)) {
            return self.last_resort(room, url);
        }
        let total: usize = lacking.iter().map(|(_, cost)| cost).sum();
        let (mut texts, mut size) = (HashSet::new(), 0);
        for (at, cost) in lacking {
            if size + cost <= room {
                size += cost;
                texts.insert(at);
            }
        }
        if texts.is_empty() {
            return Err(self.too_large(room));
        }
        for digest in texts.iter().filter_map(|at| self.digests.get(*at)) {
            *self.sent.entry(digest.clone()).or_default() += 1;
        }
        self.sent_bytes += size;
        let whole = self.sent_bytes + total.saturating_sub(size);
        let progress = (size < total)
            .then(|| format!("Sending files ({} of {} MiB)", (self.sent_bytes - size) >> 20, whole.div_ceil(1 << 20)));
        Ok(NextRequest { texts: Texts::Of(texts), progress })
    }

    /// The request without digests, for a server that does not keep the texts.
    fn last_resort(&mut self, room: usize, url: &str) -> Result<NextRequest, Failure> {
        let size: usize = self.files.iter().map(|file| cost(&file.text)).sum();
        if size <= room {
            self.whole = true;
            return Ok(NextRequest { texts: Texts::All, progress: None });
        }
        let message = format!("the server at {url} drops manifests from its file cache before all of them are sent");
        let help = format!("raise --file-cache-mib of the server to more than {}, or split the source", size >> 20);
        Err(Diagnostic::error(Code::MissingFiles, message).help(help).into())
    }

    fn too_large(&self, room: usize) -> Failure {
        let largest = self.files.iter().max_by_key(|file| file.text.len());
        let name = largest.map(|file| file.name.as_str()).unwrap_or_default();
        let message = format!("`{name}` is too large to send: the limit is {} MiB", room >> 20);
        let help = "split the file, or run reconcile on the store's machine";
        Diagnostic::error(Code::BodyTooLarge, message).help(help).into()
    }
}

/// The most bytes that a text adds to a request.
fn cost(text: &str) -> usize {
    // `TEXT_FIELD_BYTES` counts the quotes.
    serde_json::to_string(text).map_or(0, |written| written.len() - 2) + TEXT_FIELD_BYTES
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn outgoing(texts: &[&str]) -> UploadFiles {
        let file = |(at, text): (usize, &&str)| SentFile::new(format!("{at}.yaml"), *text);
        UploadFiles { whole: false, ..UploadFiles::new(texts.iter().enumerate().map(file).collect()) }
    }

    fn texts_of(texts: &[usize]) -> Texts {
        Texts::Of(texts.iter().copied().collect())
    }

    #[test]
    fn a_small_source_is_sent_at_once() {
        assert_eq!(UploadFiles::new(Vec::new()).first_texts(), Texts::All);
        let text = Arc::new("x".repeat(SMALL_BYTES + 1));
        let large = SentFile { name: "a.yaml".into(), text, values: Vec::new(), is_surrounding: false };
        let mut large = UploadFiles::new(vec![large]);
        assert_eq!(large.first_texts(), Texts::DigestsOnly);
        assert!(large.listed(&Texts::DigestsOnly).iter().all(|file| file.text.is_none() && file.digest.len() == 64));
        assert!(large.listed(&Texts::All).iter().all(|file| file.text.is_some() && file.digest.is_empty()));
        large.send_whole();
        assert_eq!(large.first_texts(), Texts::All);
    }

    #[test]
    fn the_older_files_of_a_comparison_are_marked() {
        let mut files = outgoing(&["a", "b"]).files;
        let older = files.split_off(1);
        let is_older = |files: UploadFiles| files.listed(&Texts::All).iter().map(|file| file.older).collect::<Vec<_>>();
        assert_eq!(is_older(UploadFiles::with_older(files.clone(), older)), [false, true]);
        assert_eq!(is_older(UploadFiles::new(files)), [false]);
    }

    #[test]
    fn what_is_missing_is_sent_once_and_in_parts_that_fit() {
        let mut files = outgoing(&["aaaa", "bbbb", "aaaa", "cccc"]);
        let missing = files.digests.clone();
        let room = 2 * cost("aaaa");
        let next = files.next_texts(&missing, room, "").unwrap_or_else(|_| unreachable!());
        assert_eq!((next.texts, next.progress.as_deref()), (texts_of(&[0, 1]), Some("Sending files (0 of 1 MiB)")));
        let next = files.next_texts(&missing[3..], room, "").unwrap_or_else(|_| unreachable!());
        assert_eq!((next.texts, next.progress), (texts_of(&[3]), None));
    }

    #[test]
    fn a_server_that_keeps_nothing_gets_everything_or_an_error() {
        let room = |texts: usize| texts * cost("aaaa");
        for (room, end) in [(room(2), Some(Texts::All)), (room(1), None)] {
            let mut files = outgoing(&["aaaa", "bbbb"]);
            let missing = files.digests[..1].to_vec();
            for _ in 0..MOST_SENDS {
                let next = files.next_texts(&missing, room, "").unwrap_or_else(|_| unreachable!());
                assert_eq!(next.texts, texts_of(&[0]));
            }
            assert_eq!(files.next_texts(&missing, room, "").ok().map(|next| next.texts), end);
        }
        let mut files = outgoing(&["aaaa"]);
        let missing = files.digests.clone();
        assert!(files.next_texts(&missing, room(1) - 1, "").is_err(), "a text larger than a request");
    }
}
