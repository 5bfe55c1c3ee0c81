//! Metrics pages that clients have not taken yet: one that asks again and again, and takes nothing, must not fill the
//! memory.

use crate::server::prelude::*;
use bytes::Bytes;

/// The pages in memory above which clients share the last one.
const MOST_PAGES: usize = 8;
/// How old a shared page may be.
const MOST_AGE: Duration = Duration::from_secs(5);

/// The last page, and how many there are.
#[derive(Default)]
pub(crate) struct ScrapedPages(Lock<LastScrape>);

#[derive(Default)]
struct LastScrape {
    made: Option<Instant>,
    page: Bytes,
    /// As many references as there are pages in memory, and one.
    held: Arc<()>,
}

/// The text of a page, until all its clients have it.
struct HeldPage {
    text: String,
    _held: Arc<()>,
}

impl AsRef<[u8]> for HeldPage {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl ScrapedPages {
    /// Returns a new page, or the last one if many are on their way.
    pub(super) fn get(&self, make: impl FnOnce() -> String) -> Bytes {
        let held = {
            let last = self.0.lock();
            let is_recent = last.made.is_some_and(|made| made.elapsed() < MOST_AGE);
            if is_recent && Arc::strong_count(&last.held) > MOST_PAGES {
                return last.page.clone();
            }
            Arc::clone(&last.held)
        };
        let page = Bytes::from_owner(HeldPage { text: make(), _held: held });
        let mut last = self.0.lock();
        last.made = Some(Instant::now());
        last.page = page.clone();
        page
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn pages_that_nobody_takes_are_shared() {
        let (pages, made) = (ScrapedPages::default(), Cell::new(0));
        let get = || {
            pages.get(|| {
                made.set(made.get() + 1);
                made.get().to_string()
            })
        };
        for number in 1..=20 {
            assert_eq!(get(), number.to_string(), "a page that is taken is not kept");
        }
        let waiting: Vec<Bytes> = (0..1000).map(|_| get()).collect();
        assert!(made.get() <= 20 + MOST_PAGES, "{}", made.get());
        drop(waiting);
        let before = made.get();
        get();
        assert_eq!(made.get(), before + 1);
    }
}
