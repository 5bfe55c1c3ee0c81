//! Pages of lists that are ready, for clients that poll (D71).

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{
    model::{key::Key, snapshot::Rendered},
    server::http::page::Page,
};

/// The most bytes of all pages.
const MOST_BYTES: usize = 8 << 20;
/// The largest page.
const LARGEST: usize = 2 << 20;
/// The most pages.
const MOST_PAGES: usize = 64;

/// What makes a page of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageKey {
    pub collection: Key,
    pub page: Page,
    /// Whether secrets are masked: a viewer never gets a page that was made for others.
    pub masked: bool,
}

/// The pages of the newest revision that was asked for. Within a process, a revision has one content.
#[derive(Default)]
pub(crate) struct KeptPages(Mutex<PagesOfRevision>);

#[derive(Default)]
struct PagesOfRevision {
    revision: u64,
    bytes: usize,
    pages: VecDeque<(PageKey, Rendered)>,
}

impl KeptPages {
    /// Returns a page that is ready.
    pub(super) fn get(&self, revision: u64, key: &PageKey) -> Option<Rendered> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pages = kept.pages.iter().filter(|_| kept.revision == revision);
        pages.find(|(known, _)| known == key).map(|(_, page)| page.clone())
    }

    /// Drops all pages, and keeps none of revisions before this one: secrets that they had are destroyed.
    pub(crate) fn forget_before(&self, revision: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let freed = std::mem::take(&mut kept.pages);
        (kept.revision, kept.bytes) = (kept.revision.max(revision), 0);
        drop(kept);
        drop(freed);
    }

    /// Keeps a page instead of those of older revisions, and of the oldest if there are too many.
    pub(super) fn put(&self, revision: u64, key: PageKey, page: Rendered) {
        if page.body.len() > LARGEST {
            return;
        }
        // Declared before the lock, and so dropped after it: that takes a while.
        let mut freed = Vec::new();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if revision > kept.revision {
            freed.extend(kept.pages.drain(..));
            (kept.revision, kept.bytes) = (revision, 0);
        }
        if revision < kept.revision || kept.pages.iter().any(|(known, _)| *known == key) {
            return;
        }
        kept.bytes += page.body.len();
        kept.pages.push_back((key, page));
        while kept.bytes > MOST_BYTES || kept.pages.len() > MOST_PAGES {
            let Some((key, page)) = kept.pages.pop_front() else { break };
            kept.bytes -= page.body.len();
            freed.push((key, page));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Kind, id::Id};

    fn key(limit: usize, masked: bool) -> PageKey {
        let collection = Key::new(Kind::HttpsEdge, Id::new(""));
        PageKey { collection, page: Page { limit: Some(limit), before_id: None, at: None }, masked }
    }

    fn page(bytes: usize) -> Rendered {
        Rendered { body: vec![0; bytes].into(), etag: Arc::from("\"e\"") }
    }

    #[test]
    fn a_page_is_kept_for_its_revision_and_form() {
        let kept = KeptPages::default();
        kept.put(2, key(1, false), page(10));
        assert!(kept.get(2, &key(1, false)).is_some());
        assert!(kept.get(2, &key(1, true)).is_none() && kept.get(2, &key(2, false)).is_none());
        // A slow reader of an older revision neither gets it nor replaces it.
        kept.put(1, key(2, false), page(10));
        assert!(kept.get(1, &key(1, false)).is_none() && kept.get(2, &key(2, false)).is_none());
        kept.put(3, key(2, false), page(10));
        assert!(kept.get(2, &key(1, false)).is_none() && kept.get(3, &key(1, false)).is_none());
        assert!(kept.get(3, &key(2, false)).is_some());
    }

    #[test]
    fn forgotten_pages_do_not_come_back() {
        let kept = KeptPages::default();
        kept.put(2, key(1, false), page(10));
        kept.forget_before(3);
        assert!(kept.get(2, &key(1, false)).is_none());
        // It was rendered meanwhile.
        kept.put(2, key(1, false), page(10));
        assert!(kept.get(2, &key(1, false)).is_none());
        kept.put(3, key(1, false), page(10));
        assert!(kept.get(3, &key(1, false)).is_some());
    }

    #[test]
    fn pages_are_bounded() {
        let kept = KeptPages::default();
        for limit in 0..6 {
            kept.put(1, key(limit, false), page(LARGEST));
        }
        kept.put(1, key(6, false), page(LARGEST + 1));
        let ready: Vec<usize> = (0..7).filter(|limit| kept.get(1, &key(*limit, false)).is_some()).collect();
        assert_eq!(ready, [2, 3, 4, 5]);
        for limit in 10..200 {
            kept.put(1, key(limit, false), page(1));
        }
        assert!(kept.get(1, &key(199 - MOST_PAGES, false)).is_none());
        assert!(kept.get(1, &key(200 - MOST_PAGES, false)).is_some());
    }
}
