//! A page of a table from a long sequence of resources. A search ends after a fixed time and can be continued, so that no page
//! takes long, however many resources there are and however few are found.

use maud::{Markup, html};

use super::elements::{nothing, pager};
use super::page::{PageRequest, ROWS};
use crate::model::Entry;
use crate::server::prelude::*;

/// The time of one search.
const LONGEST: Duration = Duration::from_millis(60);
/// The time of one sorted search. It looks at all resources for each page, and cannot be continued.
const LONGEST_SORTED: Duration = Duration::from_millis(500);
/// The most resources that are sorted: the first ones of the sequence.
const MOST_SORTED: usize = 50_000;
/// How many resources are looked at between two looks at the clock.
const STEPS: usize = 64;
/// The most words of a search, and the most characters that are searched for: each costs time at every resource.
const MOST_WORDS: usize = 8;
const MOST_CHARACTERS: usize = 200;

/// The rows of a page.
pub(super) struct TableScan {
    pub rows: Vec<Arc<Entry>>,
    /// The last resource that was looked at, if there may be more rows after it.
    pub last: Option<Arc<Entry>>,
    /// Whether the time was over before the page was full.
    pub is_cut: bool,
    /// How many resources were sorted, if there are more of them.
    most_sorted: Option<usize>,
}

impl TableScan {
    /// Looks at resources until the page is full, or the time is over.
    pub(super) fn new<'s>(entries: impl Iterator<Item = &'s Arc<Entry>>, keep: impl Fn(&Entry) -> bool) -> Self {
        let (began, mut rows, mut last) = (Instant::now(), Vec::new(), None::<&Arc<Entry>>);
        for (number, entry) in entries.enumerate() {
            let is_cut = number % STEPS == STEPS - 1 && began.elapsed() > LONGEST;
            if rows.len() >= ROWS || is_cut {
                return Self { rows, last: last.cloned(), is_cut, most_sorted: None };
            }
            if keep(entry) {
                rows.push(Arc::clone(entry));
            }
            last = Some(entry);
        }
        Self { rows, last: None, is_cut: false, most_sorted: None }
    }

    /// A page of resources in the order of a text that each of them has alone, after one of these texts. Only the texts of a page
    /// are kept. Returns the text of the last row, too, if there are more.
    pub(super) fn sorted<'s>(
        entries: impl Iterator<Item = &'s Arc<Entry>>,
        mut text: impl FnMut(&Entry) -> String,
        after: &str,
        keep: impl Fn(&Entry) -> bool,
    ) -> (Self, Option<String>) {
        let (began, mut most_sorted) = (Instant::now(), None);
        let mut first: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
        for (number, entry) in entries.enumerate() {
            let is_over = number % STEPS == STEPS - 1 && began.elapsed() > LONGEST_SORTED;
            if number >= MOST_SORTED || is_over {
                most_sorted = Some(number);
                break;
            }
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
        (Self { rows, last: None, is_cut: false, most_sorted }, next)
    }

    /// The words of the link to the next page.
    pub(super) fn next_text(&self) -> &'static str {
        if self.is_cut { "Continue the search" } else { "Next page" }
    }

    /// The table of the rows, what limits it, and the links to other pages. `none` is told if there is no such resource at all.
    pub(super) fn shown(
        &self,
        request: &PageRequest,
        words: &SearchWords,
        (what, none): (&str, &str),
        next: Option<String>,
        table: impl FnOnce(&[Arc<Entry>]) -> Markup,
    ) -> Markup {
        html! {
            @if !self.rows.is_empty() { (table(&self.rows)) }
            @else if request.is_selecting() { (nothing(&self.nothing_text(what))) }
            @else { (nothing(none)) }
            (self.limits(words))
            (pager(request, "after", request.value("after").is_empty(), next, self.next_text()))
        }
    }

    /// The text in place of an empty table of such resources. Nothing is certain before all of them were looked at.
    fn nothing_text(&self, what: &str) -> String {
        match (self.is_cut, self.most_sorted) {
            (true, _) => "Nothing found yet: the search can be continued.".to_owned(),
            (false, Some(_)) => "Nothing found among those that were sorted.".to_owned(),
            (false, None) => format!("No matching {what}."),
        }
    }

    /// What was left out of a search; nothing if it is complete.
    fn limits(&self, words: &SearchWords) -> Markup {
        html! {
            @if words.is_limited {
                p { "Only the first " (MOST_WORDS) " words and " (MOST_CHARACTERS) " characters are searched for." }
            }
            @if let Some(most) = self.most_sorted {
                p { "Only " (most) " resources were sorted. Another order shows all of them." }
            }
        }
    }
}

/// The words of a search, which must all be found.
pub(super) struct SearchWords {
    words: Vec<String>,
    /// Whether there were more of them.
    is_limited: bool,
}

impl SearchWords {
    /// Splits the text of a search into its first different words.
    pub(super) fn new(text: &str) -> Self {
        let short: String = text.chars().take(MOST_CHARACTERS).collect();
        let mut words = Vec::new();
        for word in short.split_whitespace().map(str::to_lowercase) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let is_limited = short.len() < text.len() || words.len() > MOST_WORDS;
        words.truncate(MOST_WORDS);
        Self { words, is_limited }
    }

    /// Whether each word is in one of these texts.
    pub(super) fn are_in<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_lowercase).collect();
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }

    /// Whether nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
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

    #[test]
    fn a_search_has_few_words() {
        let words = SearchWords::new(&"e E ".repeat(40));
        assert_eq!((words.words.as_slice(), words.is_limited), (["e".to_owned()].as_slice(), false));
        let words = SearchWords::new("1 2 3 4 5 6 7 8 1 9");
        assert_eq!((words.words.len(), words.is_limited), (8, true));
        assert!(words.are_in(["12345678"]));
        let words = SearchWords::new(&"ü".repeat(201));
        assert_eq!((words.words.as_slice(), words.is_limited), (["ü".repeat(200)].as_slice(), true));
        assert!(!SearchWords::new(&"ü".repeat(200)).is_limited);
    }

    #[test]
    fn what_is_sorted_in_part_says_so() {
        let words = SearchWords::new("shop");
        let scan = |most_sorted| TableScan { rows: Vec::new(), last: None, is_cut: false, most_sorted };
        assert_eq!(scan(None).limits(&words).into_string(), "");
        assert_eq!(scan(None).nothing_text("route"), "No matching route.");
        assert_eq!(scan(Some(64)).nothing_text("route"), "Nothing found among those that were sorted.");
        let shown = scan(Some(64)).limits(&SearchWords::new(&"a".repeat(300))).into_string();
        assert!(shown.contains("Only 64 resources were sorted") && shown.contains("200 characters"), "{shown}");
    }
}
