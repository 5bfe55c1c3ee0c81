//! The lists of a server, page by page: each page names the next.

use std::{collections::HashSet, ops::ControlFlow};

use serde::de::DeserializeOwned;

use super::client::ApiClient;
use super::error_response::foreign_response;
use crate::cli::prelude::*;

/// The parameter that says where a page begins.
const CURSOR: &str = "before_id=";

/// The order that proves that pages advance. A list whose pages do not would never end.
pub(super) enum PageOrder {
    /// Resources: no page begins where an earlier one did, and none but the last is empty.
    Resources { begun: HashSet<String> },
    /// Records: each page begins at a lower position. One of a filter that selects few records can be empty.
    Records { before: u64 },
}

impl ApiClient {
    /// Gets all resources of the list at a path, which is the field `list` of each page.
    pub(crate) fn list<T: DeserializeOwned>(&self, path: &str, list: &str, query: &str) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        let order = PageOrder::Resources { begun: HashSet::from([cursor(query).to_owned()]) };
        self.each_item(path, list, query, order, &mut |item| {
            all.push(item);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    pub(super) fn each_item<T: DeserializeOwned>(
        &self,
        path: &str,
        list: &str,
        query: &str,
        mut order: PageOrder,
        visit: &mut dyn FnMut(T) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let mut query = Some(query.to_owned());
        while let Some(parameters) = query {
            let mut page: Value = self.get(&format!("{path}?{parameters}"))?;
            let items = page.get_mut(list).map(Value::take).unwrap_or_default();
            let items: Vec<T> =
                serde_json::from_value(items).map_err(|_| foreign_response(&self.address(path), 200))?;
            let count = items.len();
            for item in items {
                if visit(item)?.is_break() {
                    return Ok(());
                }
            }
            let next = page.get("next_page_uri").and_then(Value::as_str);
            query = order.next(count, next).map_err(|()| self.endless(path))?;
        }
        Ok(())
    }

    /// The failure for a list whose pages do not advance.
    fn endless(&self, path: &str) -> Failure {
        let message = format!(
            "the pages of {} do not advance: an empty page links to a next one, or a page links back to an earlier one",
            self.address(path)
        );
        let help = "upgrade the server, and check any proxy in front of it";
        Diagnostic::error(Code::Unreadable, message).help(help).into()
    }
}

impl PageOrder {
    /// The query of the page after one with so many items, if there is one. Only the query: the token goes to no other
    /// server, whatever a response says. It is an error if the pages do not advance.
    fn next(&mut self, items: usize, next_page_uri: Option<&str>) -> Result<Option<String>, ()> {
        let Some((_, query)) = next_page_uri.and_then(|uri| uri.split_once('?')) else { return Ok(None) };
        let cursor = cursor(query);
        let advances = match self {
            Self::Resources { begun } => items > 0 && begun.insert(cursor.to_owned()),
            Self::Records { before } => cursor.parse().is_ok_and(|next: u64| {
                let is_lower = next < *before;
                *before = next.min(*before);
                is_lower
            }),
        };
        if advances { Ok(Some(query.to_owned())) } else { Err(()) }
    }
}

/// The beginning of a page: the value of the cursor, or the whole query without one.
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
            let mut pages = PageOrder::Resources { begun: HashSet::from([cursor("limit=1").to_owned()]) };
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
        let next = |order: &mut PageOrder, items: usize, cursor: &str| {
            order.next(items, Some(&format!("/list?before_id={cursor}"))).is_ok()
        };
        let mut resources = PageOrder::Resources { begun: HashSet::new() };
        assert!(next(&mut resources, 1, "a") && !next(&mut resources, 0, "b"));
        let mut records = PageOrder::Records { before: u64::MAX };
        assert!(next(&mut records, 0, "9") && next(&mut records, 1, "7"));
        for cursor in ["7", "8", "-1", "a", ""] {
            assert!(!next(&mut records, 1, cursor), "{cursor}");
        }
        assert!(next(&mut records, 0, "6"));
    }
}
