//! The edges: a table that is searched, filtered, sorted and paged on the server.

use maud::{Markup, html};

use super::elements::{self, choice, field, filters, first_texts, resource_link, source_cell, time};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::scan::{SearchWords, TableScan};
use crate::model::{Entry, HttpsEdge};
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage =
    DashboardPage::new("/ui/edges", render).taking(&["search", "source", "sort", "after"]);

/// The most routes of an edge that a row counts.
const MOST_COUNTED: usize = 1000;
/// The most hostports in a row.
const MOST_HOSTPORTS: usize = 3;
/// The text in place of an empty table.
const NONE: &str = "There is no edge yet. An edge is what the gateway serves at a host and port: declare one with the kind \
                    HttpsEdge, and apply it.";
/// The orders of the table.
const ORDERS: [(&str, &str); 3] = [("newest", "Newest first"), ("oldest", "Oldest first"), ("name", "By name")];

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let (words, source) = (SearchWords::new(&request.value("search")), request.value("source"));
    let keep = |entry: &Entry| is_selected(entry, &words, &source);
    let snapshot = &*request.snapshot;
    let (scan, next) = match request.value("sort").as_str() {
        "name" => {
            let newest = snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX);
            TableScan::sorted(newest, sorted_name, &request.value("after"), keep)
        }
        "oldest" => {
            let from = request.number("after").unwrap_or_default();
            let scan = TableScan::new(snapshot.oldest_first(Kind::HttpsEdge, from), keep);
            let next = scan.last.as_ref().map(|last| (last.order + 1).to_string());
            (scan, next)
        }
        _ => {
            let before = request.number("after").unwrap_or(u64::MAX);
            let scan = TableScan::new(snapshot.newest_first(Kind::HttpsEdge, None, before), keep);
            let next = scan.last.as_ref().map(|last| last.order.to_string());
            (scan, next)
        }
    };
    let body = html! {
        (filters("Edges", &html! {
            (field(request, "Search", "search", "name, host or ID"))
            (field(request, "Source", "source", ""))
            (choice(request, "Order", "sort", &ORDERS))
        }))
        (scan.shown(request, &words, ("edge", NONE), next, |rows| table(request, rows)))
    };
    Ok(PageContent { title: "Edges".to_owned(), section: "Edges", body })
}

fn is_selected(entry: &Entry, words: &SearchWords, source: &str) -> bool {
    if !source.is_empty() && !entry.is_owned_by(source) {
        return false;
    }
    if words.is_empty() {
        return true;
    }
    let spec = entry.spec_as::<HttpsEdge>();
    let hostports = spec.into_iter().flat_map(|spec| spec.hostports.iter().map(String::as_str));
    let description = spec.map_or("", |spec| spec.description.as_str());
    let names =
        [entry.name().unwrap_or_default(), entry.source().unwrap_or_default(), entry.key.id.as_str(), description];
    words.are_in(names.into_iter().chain(hostports))
}

/// The name by which an edge is sorted. The ID makes the names of different sources differ.
fn sorted_name(entry: &Entry) -> String {
    format!("{}/{}", entry.name().unwrap_or_default(), entry.key.id)
}

fn table(request: &PageRequest, rows: &[Arc<Entry>]) -> Markup {
    let row = |entry: &Arc<Entry>| {
        let hostports = entry.spec_as::<HttpsEdge>().map(|edge| edge.hostports.as_slice()).unwrap_or_default();
        let count = request.snapshot.children_after(&entry.key, None).take(MOST_COUNTED + 1).count();
        vec![
            resource_link(request, &entry.key, entry.name().unwrap_or(entry.key.id.as_str())),
            first_texts(hostports, MOST_HOSTPORTS),
            html! { @if count > MOST_COUNTED { "over " (MOST_COUNTED) } @else { (count) } },
            source_cell(request, entry.source()),
            time(&entry.created_at.to_string(), request.now),
        ]
    };
    elements::table("Edges", &["Edge", "Hostports", "Routes", "Source", "Created"], rows.iter().map(row))
}
