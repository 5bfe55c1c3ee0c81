//! A page of a table from a long sequence of resources. A search ends after a fixed time and can be continued, so that no page
//! takes long, however many resources there are and however few are found.

use super::page::ROWS;
use crate::model::Entry;
use crate::server::prelude::*;

/// The time of one search.
const LONGEST: Duration = Duration::from_millis(60);
/// The most resources that are sorted: the first ones of the sequence.
const MOST_SORTED: usize = 50_000;
/// How many resources are looked at between two looks at the clock.
const STEPS: usize = 64;

/// The rows of a page.
pub(super) struct TableScan {
    pub rows: Vec<Arc<Entry>>,
    /// The last resource that was looked at, if there may be more rows after it.
    pub last: Option<Arc<Entry>>,
    /// Whether the time was over before the page was full.
    pub is_cut: bool,
}

impl TableScan {
    /// Looks at resources until the page is full, or the time is over.
    pub(super) fn new<'s>(entries: impl Iterator<Item = &'s Arc<Entry>>, keep: impl Fn(&Entry) -> bool) -> Self {
        let (began, mut rows, mut last) = (Instant::now(), Vec::new(), None::<&Arc<Entry>>);
        for (number, entry) in entries.enumerate() {
            let is_cut = number % STEPS == STEPS - 1 && began.elapsed() > LONGEST;
            if rows.len() >= ROWS || is_cut {
                return Self { rows, last: last.cloned(), is_cut };
            }
            if keep(entry) {
                rows.push(Arc::clone(entry));
            }
            last = Some(entry);
        }
        Self { rows, last: None, is_cut: false }
    }

    /// A page of resources in the order of a text that each of them has alone, after one of these texts. Only the texts of a page
    /// are kept. Returns the text of the last row, too, if there are more.
    pub(super) fn sorted<'s>(
        entries: impl Iterator<Item = &'s Arc<Entry>>,
        mut text: impl FnMut(&Entry) -> String,
        after: &str,
        keep: impl Fn(&Entry) -> bool,
    ) -> (Self, Option<String>) {
        let mut first: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
        for entry in entries.take(MOST_SORTED) {
            let text = text(entry);
            let is_early = first.len() <= ROWS || first.last_key_value().is_some_and(|(last, _)| text < *last);
            if text.as_str() > after && is_early && keep(entry) {
                first.insert(text, Arc::clone(entry));
                if first.len() > ROWS + 1 {
                    first.pop_last();
                }
            }
        }
        let next = if first.len() > ROWS { first.keys().nth(ROWS - 1).cloned() } else { None };
        let rows = first.into_values().take(ROWS).collect();
        (Self { rows, last: None, is_cut: false }, next)
    }

    /// The words of the link to the next page.
    pub(super) fn next_text(&self) -> &'static str {
        if self.is_cut { "Continue the search" } else { "Next page" }
    }
}

/// The words of a search, which must all be found.
pub(super) struct SearchWords(Vec<String>);

impl SearchWords {
    /// Splits the text of a search.
    pub(super) fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    /// Whether each word is in one of these texts.
    pub(super) fn are_in<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_lowercase).collect();
        self.0.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }

    /// Whether nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_found_in_any_text() {
        let found = |search: &str| SearchWords::new(search).are_in(["Shop.example.com:443", "The cart"]);
        assert!(found("") && found("shop CART") && found(" 443 "));
        assert!(!found("shop admin"));
    }
}
