//! The pages of a list of a server: each one names the next.

use std::collections::HashSet;

use super::client::ApiClient;
use crate::{
    cli::Failure,
    model::{code::Code, diagnostic::Diagnostic},
};

/// The parameter that says where a page begins.
const CURSOR: &str = "before_id=";

/// The pages of a list that were requested.
pub(crate) struct Pages {
    /// The address of the list, for errors.
    at: String,
    /// Where each page began.
    seen: HashSet<String>,
}

impl Pages {
    /// The pages of the list at a path. `first` is the query of the first one.
    pub(crate) fn of(client: &ApiClient, path: &str, first: &str) -> Self {
        Self { at: client.address(path), seen: HashSet::from([cursor(first).to_owned()]) }
    }

    /// The query of the next page, if there is one. Only the query: the token goes to no other server, whatever a response
    /// says. A page that begins where an earlier one did is an error: the list would never end.
    pub(crate) fn next(&mut self, next_page_uri: Option<&str>) -> Result<Option<String>, Failure> {
        let Some((_, query)) = next_page_uri.and_then(|uri| uri.split_once('?')) else { return Ok(None) };
        if self.seen.insert(cursor(query).to_owned()) {
            return Ok(Some(query.to_owned()));
        }
        let message =
            format!("the pages of {} do not advance: a page names itself or an earlier one as the next", self.at);
        let help = "upgrade the server, and check any proxy in front of it";
        Err(Diagnostic::error(Code::Unreadable, message).help(help).into())
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
            let mut pages = Pages { at: String::new(), seen: HashSet::from([cursor("limit=1").to_owned()]) };
            let found: Vec<_> =
                queries.iter().map(|query| pages.next(Some(uri(query).as_str())).ok().flatten()).collect();
            let advances = found.iter().zip(&queries).all(|(found, query)| found.as_deref() == Some(*query));
            assert_eq!(advances, !is_endless, "{queries:?}");
            assert!(
                pages.next(None).is_ok_and(|last| last.is_none()) && pages.next(Some("x")).is_ok_and(|x| x.is_none())
            );
        }
    }
}
