//! The history of a server, page by page.

use std::ops::ControlFlow;

use serde::Deserialize;

use super::client::ApiClient;
use crate::{
    api::history::{
        document::{HistoryItem, PATH},
        parameters_of,
    },
    cli::Failure,
    store::select::HistoryFilter,
};

/// The largest page that a server returns.
const LARGEST_PAGE: usize = 1000;

/// A response of `/history`.
#[derive(Deserialize)]
struct HistoryPage {
    history: Vec<HistoryItem>,
    next_page_uri: Option<String>,
}

/// Visits the selected records before a position, newest first, until `visit` breaks. `page` is the number of records to
/// ask for at once.
pub(crate) fn each_record(
    client: &ApiClient,
    filter: &HistoryFilter,
    before: Option<u64>,
    page: usize,
    visit: &mut dyn FnMut(HistoryItem) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    let before = before.map(|position| format!("&before_id={position}")).unwrap_or_default();
    let limit = page.clamp(1, LARGEST_PAGE);
    let mut query = Some(format!("limit={limit}{before}{}", parameters_of(filter)));
    while let Some(parameters) = query {
        let found: HistoryPage = client.get(&format!("{PATH}?{parameters}"))?;
        for item in found.history {
            if visit(item)?.is_break() {
                return Ok(());
            }
        }
        // Only the query: the token goes to no other server, whatever a response says.
        let next = found.next_page_uri.as_deref().and_then(|uri| uri.split_once('?'));
        query = next.map(|(_, parameters)| parameters.to_owned());
    }
    Ok(())
}
