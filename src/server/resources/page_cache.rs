//! Pages of lists that are ready, for clients that poll (D71).
//!
//! Only pages of the newest revision are kept, and those without a filter. A revision has one content within a process, so
//! that a page with the same key needs no other check.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::{WeightedCache, weighted};
use crate::model::{Key, Rendered};
use crate::server::http::page::Page;

/// The most bytes of all pages.
const MOST_BYTES: u64 = 8 << 20;
/// The largest page.
const LARGEST: usize = 2 << 20;

/// The key of a page. Within a process, a revision has one content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pub revision: u64,
    pub collection: Key,
    pub page: Page,
    /// Whether secrets are masked: a viewer never gets a page that was made for others.
    pub masked: bool,
}

/// The pages of the newest revision that was asked for.
pub(crate) struct PageCache {
    pages: WeightedCache<PageKey, Rendered>,
    newest: AtomicU64,
}

impl Default for PageCache {
    fn default() -> Self {
        Self { pages: weighted(MOST_BYTES, |_, page| page.body.len()), newest: AtomicU64::new(0) }
    }
}

impl PageCache {
    /// Returns a page that is ready.
    pub(super) fn get(&self, key: &PageKey) -> Option<Rendered> {
        self.pages.get(key)
    }

    /// Drops all pages, and keeps none of revisions before this one: secrets that they had are destroyed.
    pub(crate) fn forget_before(&self, revision: u64) {
        self.newest.fetch_max(revision, Ordering::SeqCst);
        self.pages.clear();
    }

    /// Keeps a page, instead of those of older revisions.
    pub(super) fn put(&self, key: PageKey, page: Rendered) {
        let newest = self.newest.load(Ordering::SeqCst);
        if page.body.len() > LARGEST || key.revision < newest {
            return;
        }
        if key.revision > newest {
            self.forget_before(key.revision);
        }
        self.pages.insert(key.clone(), page);
        // The others may have been dropped meanwhile.
        if self.newest.load(Ordering::SeqCst) > key.revision {
            self.pages.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Kind, id::Id};

    fn key(revision: u64, limit: usize, masked: bool) -> PageKey {
        let collection = Key::new(Kind::HttpsEdge, Id::new(""));
        PageKey { revision, collection, page: Page { limit: Some(limit), before_id: None, at: None }, masked }
    }

    fn page(bytes: usize) -> Rendered {
        Rendered { body: vec![0; bytes].into(), etag: Arc::from("\"e\"") }
    }

    #[test]
    fn a_page_is_kept_for_its_revision_and_form() {
        let kept = PageCache::default();
        kept.put(key(2, 1, false), page(10));
        assert!(kept.get(&key(2, 1, false)).is_some());
        assert!(kept.get(&key(2, 1, true)).is_none() && kept.get(&key(2, 2, false)).is_none());
        // A slow reader of an older revision neither gets it nor replaces it.
        kept.put(key(1, 2, false), page(10));
        assert!(kept.get(&key(1, 1, false)).is_none() && kept.get(&key(1, 2, false)).is_none());
        kept.put(key(3, 2, false), page(10));
        assert!(kept.get(&key(2, 1, false)).is_none() && kept.get(&key(3, 1, false)).is_none());
        assert!(kept.get(&key(3, 2, false)).is_some());
    }

    #[test]
    fn forgotten_pages_do_not_come_back() {
        let kept = PageCache::default();
        kept.put(key(2, 1, false), page(10));
        kept.forget_before(3);
        assert!(kept.get(&key(2, 1, false)).is_none());
        // The page was rendered meanwhile.
        kept.put(key(2, 1, false), page(10));
        assert!(kept.get(&key(2, 1, false)).is_none());
        kept.put(key(3, 1, false), page(10));
        assert!(kept.get(&key(3, 1, false)).is_some());
    }

    #[test]
    fn pages_are_bounded() {
        let kept = PageCache::default();
        for limit in 0..6 {
            kept.put(key(1, limit, false), page(LARGEST));
        }
        kept.put(key(1, 6, false), page(LARGEST + 1));
        assert!(kept.pages.weight() <= MOST_BYTES && kept.get(&key(1, 6, false)).is_none());
        assert!(kept.get(&key(1, 5, false)).is_some(), "a new one displaces an earlier one");
    }
}
