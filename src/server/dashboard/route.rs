//! One route: its modules, where each comes from, and what changed the route.

use maud::{Markup, html};

use super::access::{lock_list, locks};
use super::elements::{
    Tone, author, badge, commit, facts, file_place, json, locked, nothing, resource_link, revision_link, source_link,
    time,
};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::{drift, edge, revisions};
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute};
use crate::routing::passes_tls_through;
use crate::routing::rivals::Rivals;
use crate::server::http::api_error::ApiError;
use crate::server::operations::history::document::{FieldBlame, ResourceBlame};
use crate::server::operations::origin::ResourceOrigin;
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage =
    DashboardPage::new("/ui/edges/{p0}/routes/{p1}", render).taking(&["before"]).of_history().of_writer();

/// The most other routes that take requests from a route, or from which it does.
const MOST_RIVALS: usize = 10;

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let key = Key::child(Kind::HttpsEdgeRoute, Id::new(request.parameter(0)), Id::new(request.parameter(1)));
    let missing = || ApiError::not_found(&key.to_string());
    let entry = request.snapshot.get(&key).ok_or_else(missing)?;
    let route = entry.spec_as::<HttpsEdgeRoute>().ok_or_else(missing)?;
    let parent = key.parent_key().and_then(|edge| request.snapshot.get(&edge)).ok_or_else(missing)?;
    let edge_spec = parent.spec_as::<HttpsEdge>().ok_or_else(missing)?;
    let provenance = request.read_history(|store| ResourceOrigin::provenance(store, entry))?;
    let origin = ResourceOrigin::new(&request.store().snapshot(), entry, "", provenance);
    let blame = request.read_history(|store| store.blame(&key))?.flatten();
    let fields = blame.map(|blame| ResourceBlame::new(&key, blame, &request.snapshot).fields).unwrap_or_default();
    let forge = request.forge(&origin.source);
    let by_hand = drift::of_resource(request, &origin.source, &key.path());
    let protected = locks(Some(parent), entry);
    let body = html! {
        p { (lock_list(&protected)) }
        @if request.lacks_writer { p { "Whether it was changed by hand is not known: the server that writes does not answer." } }
        @if let Some(by_hand) = &by_hand { h2 { "Changed by hand" } (by_hand) }
        (rivals(request, &key, &parent.key))
        (facts(&[
            ("Match", html! { code { (route.r#match) } " " (route.match_type.map(|it| it.as_str()).unwrap_or_default()) }),
            ("Edge", resource_link(request, &parent.key, &request.snapshot.full_name(parent))),
            ("Description", html! { (route.description) }),
            ("Source", html! { @if origin.source.is_empty() { "none: it was made over the API" } @else { (source_link(request, &origin.source)) } }),
            ("Declared at", html! { @if !origin.file.is_empty() {
                (file_place(&origin.file, origin.line, None, &origin.commit, &forge)) " " (commit(&origin.commit, &forge))
            } }),
            ("Last change", html! { @if let Some(revision) = origin.changed_revision {
                (revision_link(request, "revision", revision)) ", "
                (time(&origin.changed_at, request.now)) ", by " (author(&origin.changed_by, &request.forge(&origin.changed_by.source)))
            } }),
            ("ID", html! { code { (key.id.as_str()) } }),
        ]))
        h2 id="way" { "Request path" }
        ol.way aria-labelledby="way" {
            li { h3 { "Edge" } @for hostport in &edge_spec.hostports { p { code { (hostport) } } } }
            (edge::modules(edge_spec))
            @if passes_tls_through(edge_spec) { li { h3 { "TLS is passed through" } } }
            li { h3 { "Route" } p { code { (route.r#match) } } }
            (edge::modules(route))
        }
        h2 { "Modules" }
        (modules(request, entry, &fields)?)
        h2 { "History" }
        (revisions::changes_of(request, &[key.path()], "route")?)
    };
    Ok(PageContent { title: format!("Route {}", request.snapshot.full_name(entry)), section: "Routes", body })
}

/// The routes that take requests from a declared one, or from which one without a source takes requests.
pub(super) fn rivals(request: &PageRequest, route: &Key, edge: &Key) -> Markup {
    let all = Rivals::of_stored(&request.snapshot, [edge]);
    let link = |key: &Key| resource_link(request, key, &request.snapshot.full_name_at(key, ""));
    html! {
        @for rivals in all.iter().filter(|it| it.taking.0 == route || it.losing.0 == route).take(MOST_RIVALS) {
            p { (badge(Tone::Bad, if rivals.taking.0 == route { "takes requests" } else { "loses requests" })) " "
                (link(rivals.taking.0)) ", which no source owns, " (rivals.verb()) " " (link(rivals.losing.0)) "." }
        }
    }
}

/// The configuration of each module, and who set its newest field.
fn modules(request: &PageRequest, entry: &Entry, fields: &[FieldBlame]) -> Result<Markup, ApiError> {
    let mut shown = Vec::new();
    for (slot, module) in entry.spec().modules() {
        shown.push((slot.name, module.enabled(), module.restricts_access(), module.to_json(Secrets::Masked)?));
    }
    Ok(html! {
        @if shown.is_empty() { (nothing("The route has no modules, not even a backend: requests are refused.")) }
        @for (name, is_enabled, restricts, value) in &shown {
            article.module {
                h3 { (*name) " "
                    @if !is_enabled { (badge(Tone::Neutral, "disabled")) }
                    @else if *restricts { (locked("restricts access")) }
                }
                @if let Some(set) = newest(fields, name) {
                    p { "Last set " (time(&set.created_at, request.now)) " in "
                        @if let Some(revision) = set.revision { (revision_link(request, "revision", revision)) ", by " }
                        @if set.reverts_drift { "the end of somebody's change: " }
                        (author(&set.author, &request.forge(&set.author.source)))
                    }
                }
                (json(value))
            }
        }
    })
}

/// The change that set the newest field of a module.
fn newest<'f>(fields: &'f [FieldBlame], slot: &str) -> Option<&'f FieldBlame> {
    let is_of = |field: &&FieldBlame| {
        let rest = field.field.strip_prefix('/').and_then(|rest| rest.strip_prefix(slot));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    fields.iter().filter(is_of).filter(|field| field.revision.is_some()).max_by_key(|field| field.revision)
}
