//! The pages of a list of a server: each one names the next.

use std::collections::HashSet;

use super::client::ApiClient;
use crate::{
    cli::Failure,
    model::diagnostics::{code::Code, diagnostic::Diagnostic},
};

/// The parameter that says where a page begins.
const CURSOR: &str = "before_id=";

/// The pages of a list that were requested.
pub(crate) struct Pages {
    /// The address of the list, for errors.
    at: String,
    advance: Advance,
}

/// What shows that pages advance. A list whose pages do not would never end.
enum Advance {
    /// Resources: no page begins where an earlier one did, and none but the last is empty.
    Resources { begun: HashSet<String> },
    /// Records: each page begins at a lower position. One of a filter that selects few records can be empty.
    Records { before: u64 },
}

impl Pages {
    /// The pages of the list of resources at a path. `first` is the query of the first one.
    pub(crate) fn of_resources(client: &ApiClient, path: &str, first: &str) -> Self {
        let begun = HashSet::from([cursor(first).to_owned()]);
        Self { at: client.address(path), advance: Advance::Resources { begun } }
    }

    /// The pages of the list of history records at a path.
    pub(crate) fn of_records(client: &ApiClient, path: &str) -> Self {
        Self { at: client.address(path), advance: Advance::Records { before: u64::MAX } }
    }

    /// The query of the page after one with so many items, if there is one. Only the query: the token goes to no other
    /// server, whatever a response says. It is an error if the pages do not advance.
    pub(crate) fn next(&mut self, items: usize, next_page_uri: Option<&str>) -> Result<Option<String>, Failure> {
        let Some((_, query)) = next_page_uri.and_then(|uri| uri.split_once('?')) else { return Ok(None) };
        if self.advance.is_made(items, cursor(query)) {
            return Ok(Some(query.to_owned()));
        }
        let message = format!(
            "the pages of {} do not advance: an empty page names a next one, or a page an earlier one as the next",
            self.at
        );
        let help = "upgrade the server, and check any proxy in front of it";
        Err(Diagnostic::error(Code::Unreadable, message).help(help).into())
    }
}

impl Advance {
    /// Whether a page that begins at a cursor advances, after one with so many items.
    fn is_made(&mut self, items: usize, cursor: &str) -> bool {
        match self {
            Self::Resources { begun } => items > 0 && begun.insert(cursor.to_owned()),
            Self::Records { before } => match cursor.parse::<u64>() {
                Ok(next) if next < *before => {
                    *before = next;
                    true
                }
                _ => false,
            },
        }
    }
}

/// Where a page begins: the value of the cursor, or the whole query without one.
fn cursor(query: &str) -> &str {
    query.split('&').find_map(|parameter| parameter.strip_prefix(CURSOR)).unwrap_or(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_when_its_pages_do_not_advance() {
        let uri = |query: &str| format!("http://elsewhere.example.com/edges/https?{query}");
        for (queries, is_endless) in [
            (vec![], false),
            (vec!["limit=1&before_id=b", "limit=1&before_id=a"], false),
            (vec!["limit=1"], true),
            (vec!["limit=1&before_id=b", "limit=1&before_id=b"], true),
            // The cursor is the same, whatever else is new.
            (vec!["limit=1&before_id=b", "limit=2&before_id=b"], true),
            (vec!["limit=1&before_id=b", "limit=1&before_id=a", "limit=1&before_id=b"], true),
        ] {
            let begun = HashSet::from([cursor("limit=1").to_owned()]);
            let mut pages = Pages { at: String::new(), advance: Advance::Resources { begun } };
            let found: Vec<_> =
                queries.iter().map(|query| pages.next(1, Some(uri(query).as_str())).ok().flatten()).collect();
            let advances = found.iter().zip(&queries).all(|(found, query)| found.as_deref() == Some(*query));
            assert_eq!(advances, !is_endless, "{queries:?}");
            assert!(
                pages.next(1, None).is_ok_and(|last| last.is_none())
                    && pages.next(0, Some("x")).is_ok_and(|x| x.is_none())
            );
        }
    }

    #[test]
    fn an_empty_page_is_the_last_one_except_of_records() {
        let mut resources = Advance::Resources { begun: HashSet::new() };
        assert!(resources.is_made(1, "a") && !resources.is_made(0, "b"));
        let mut records = Advance::Records { before: u64::MAX };
        assert!(records.is_made(0, "9") && records.is_made(1, "7"));
        for cursor in ["7", "8", "-1", "a", ""] {
            assert!(!records.is_made(1, cursor), "{cursor}");
        }
        assert!(records.is_made(0, "6"));
    }
}
