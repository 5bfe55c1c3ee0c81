//! The routes of all edges: a table that is searched, and that shows what is open.

use maud::{Markup, html};

use super::access::{lock_list, locks};
use super::elements::{choice, nothing, pager};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::scan::{SearchWords, TableScan};
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute};
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/routes", render);

/// The choices of the filter by access.
const ACCESS: [(&str, &str); 3] = [("", "Any access"), ("open", "Open to everybody"), ("protected", "Protected")];

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let (search, source, access) = (request.value("search"), request.value("source"), request.value("access"));
    let words = SearchWords::new(&search);
    let after = request.value("after");
    // Routes have their order by key: those of an edge are together.
    let (edge, id) = after.split_once('/').unwrap_or_default();
    let from = Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new(id));
    let keep = |entry: &Entry| {
        (source.is_empty() || entry.is_owned_by(&source))
            && matches_words(request, entry, &words)
            && match access.as_str() {
                "open" => locks_of(request, entry).is_empty(),
                "protected" => !locks_of(request, entry).is_empty(),
                _ => true,
            }
    };
    let scan = TableScan::new(request.snapshot.entries_after(from), keep);
    let next = scan.last.as_ref().and_then(|last| Some(format!("{}/{}", last.key.parent.as_ref()?, last.key.id)));
    let is_filtered = !words.is_empty() || !source.is_empty() || !access.is_empty() || !after.is_empty();
    let body = html! {
        form.filters role="search" aria-label="Routes" method="get" {
            label { "Search " input type="search" name="search" value=(search) placeholder="host, match, name or description"; }
            label { "Source " input type="text" name="source" value=(source); }
            (choice("Access", "access", &ACCESS, &access))
            button { "Show" }
        }
        @if !scan.rows.is_empty() { (table(request, &scan.rows)) }
        @else if is_filtered { (nothing(if scan.is_cut { "Nothing found yet: the search can be continued." } else { "No route is selected here." })) }
        @else { (nothing("There is no route yet. Routes are declared with their edge.")) }
        (pager(request, "after", after.is_empty(), next, scan.next_text()))
    };
    Ok(PageContent { title: "Routes".to_owned(), section: "Routes", body })
}

/// Whether each word is in a text of the route, or in the name or a host of its edge.
fn matches_words(request: &PageRequest, entry: &Entry, words: &SearchWords) -> bool {
    if words.is_empty() {
        return true;
    }
    let spec = entry.spec_as::<HttpsEdgeRoute>();
    let texts = spec.map(|spec| [spec.r#match.as_str(), spec.description.as_str()]).unwrap_or_default();
    let names = [entry.name().unwrap_or_default(), entry.source().unwrap_or_default(), entry.key.id.as_str()];
    let edge = entry.key.parent_key().and_then(|edge| request.snapshot.get(&edge));
    let name = edge.and_then(|edge| edge.name()).unwrap_or_default();
    let hosts = edge.and_then(|edge| edge.spec_as::<HttpsEdge>()).map(|edge| edge.hostports.as_slice());
    let hosts = hosts.unwrap_or_default().iter().map(String::as_str);
    words.are_in(names.into_iter().chain(texts).chain([name]).chain(hosts))
}

/// The protections of a route.
fn locks_of(request: &PageRequest, route: &Entry) -> Vec<&'static str> {
    let edge = route.key.parent_key().and_then(|edge| request.snapshot.get(&edge));
    locks(edge.map(|edge| &**edge), route)
}

/// A table of routes.
pub(super) fn table(request: &PageRequest, rows: &[Arc<Entry>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Routes" {
            table {
                thead { tr {
                    th scope="col" { "Route" } th scope="col" { "Access" } th scope="col" { "Match" } th scope="col" { "Source" }
                } }
                tbody {
                    @for entry in rows {
                        @let route = entry.spec_as::<HttpsEdgeRoute>();
                        tr {
                            th scope="row" {
                                a href=(request.to_resource(&entry.key).unwrap_or_default()) {
                                    (request.snapshot.full_name(entry))
                                }
                            }
                            td { (lock_list(&locks_of(request, entry))) }
                            td {
                                @if let Some(route) = route {
                                    code { (route.r#match) } " "
                                    small { (route.match_type.map(|it| it.as_str()).unwrap_or_default()) }
                                }
                            }
                            td { (entry.source().unwrap_or("–")) }
                        }
                    }
                }
            }
        }
    }
}
