//! Where a request goes: its way through host, modules and route, and the routes that lost.

use maud::{Markup, html};

use super::access::lock_list;
use super::certificates::presented;
use super::elements::{self, Tone, badge, choice, field, nothing, pager, resource_link, source_link};
use super::layout::prose;
use super::page::{DashboardPage, PageContent, PageRequest, ROWS};
use super::route::rivals;
use crate::routing::behaviour::Fate;
use crate::routing::{Named, RouteDecision, StepEffect, Trace, TracedRequest, trace_part};
use crate::server::gateway_feed::presented::TlsHostport;
use crate::server::http::api_error::ApiError;
use crate::server::http::page::AT;
use crate::server::operations::trace::{METHODS, RequestToTrace};
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage =
    DashboardPage::new("/ui/trace", render).taking(&["method", "url", "client_ip", "user_agent", AT, "from"]);

/// The text before a URL is entered.
const NONE: &str = "Enter a URL. Nothing is sent: the answer is computed from the configuration.";
/// What can be entered.
const HELP: &str = "A URL has a host and, if it matters, a scheme, a port and a path: shop.example.com/cart is \
                    https://shop.example.com:443/cart. Queries do not matter. Leave the client IP and the user agent empty if \
                    they are unknown: the trace then says what depends on them.";

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let asked = RequestToTrace {
        url: request.value("url"),
        method: request.value("method"),
        client_ip: request.value("client_ip"),
        user_agent: request.value("user_agent"),
        headers: Vec::new(),
    };
    let parsed = (!asked.url.is_empty()).then(|| asked.clone().parse());
    let body = html! {
        (form(request, &asked))
        @match parsed {
            None => (nothing(NONE)),
            Some(Err(fault)) => p.error role="alert" { (prose(&fault.message)) @if let Some(help) = &fault.help { "; " (prose(help)) } },
            Some(Ok(traced)) => (answer(request, &traced)),
        }
    };
    Ok(PageContent { title: "Trace a request".to_owned(), section: "Trace", body })
}

fn form(request: &PageRequest, asked: &RequestToTrace) -> Markup {
    let has_more = ["client_ip", "user_agent", AT].iter().any(|name| !request.value(name).is_empty());
    html! {
        form.filters aria-label="Request" method="get" {
            (choice(request, "Method", "method", &METHODS.map(|method| (method, method))))
            label.wide { "URL " input type="search" name="url" value=(asked.url) placeholder="shop.example.com/cart" required spellcheck="false" aria-describedby="help"; }
            button { "Trace" }
            details open[has_more] {
                summary { "Client IP, user agent, revision" }
                div.filters {
                    (field(request, "Client IP", "client_ip", "any"))
                    (field(request, "User agent", "user_agent", "any"))
                    (field(request, "Revision or commit", AT, "current"))
                }
                p.help id="help" { (HELP) }
            }
        }
    }
}

fn answer(request: &PageRequest, traced: &TracedRequest) -> Markup {
    let from = request.skipped();
    let (trace, has_more) = trace_part(&request.snapshot, traced, from..from.saturating_add(ROWS));
    let Some(edge) = &trace.edge else {
        return html! { p.error role="alert" { "No edge serves " code { (hostport(traced)) } "." } };
    };
    let taken = trace.route();
    let fate = trace.fate(&request.snapshot);
    let restricting: Vec<&str> = fate.protections(traced.port).into_values().collect();
    html! {
        h2 id="way" { code { (traced.to_string()) } " at revision " (request.snapshot.revision) }
        ol.way aria-labelledby="way" {
            li { h3 { "Edge" }
                p { (named_link(request, &edge.edge))
                    " matched by " code { (edge.hostport) } }
                @if let Some(it) = TlsHostport::find(&request.snapshot, &edge.edge.key, &edge.hostport) { p { (presented(request, &it)) } }
                @if edge.passes_through { p { "passes TLS through, and cannot see the path" } }
                @else if let Some(oldest) = fate.oldest_tls(traced.port) { p { "TLS " (oldest.as_str()) " or newer" } }
                @else { p { "no TLS" } }
            }
            @match taken {
                Some(route) => li { h3 { "Route" }
                    p { (named_link(request, &route.route))
                        " matched by " code { (route.matched) } " " (route.match_type.map(|it| it.as_str()).unwrap_or_default()) }
                    (described(request, &fate))
                    (rivals(request, &route.route.key, &edge.edge.key))
                    p { (lock_list(&restricting)) }
                },
                None => li.off { h3 { "No route" } p { "No route handles the request: it is answered 404." } },
            }
            @for step in &trace.modules {
                li class=(if step.effect == StepEffect::Refused { "off" } else { "" }) {
                    h3 { (step.module) " " (effect(step.effect)) }
                    p { (prose(&with_names(&step.note, &request.snapshot))) }
                }
            }
        }
        (losers(request, &trace, from, has_more))
    }
}

/// The host and port of a request, as edges have them.
fn hostport(traced: &TracedRequest) -> String {
    let TracedRequest { host, port, .. } = traced;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The description and the source of the route that takes a request: some have no name.
fn described(request: &PageRequest, fate: &Fate<'_>) -> Markup {
    let description = fate.route_spec().map_or("", |route| route.description.as_str());
    html! {
        @if !description.is_empty() { p { (description) } }
        p { @match fate.route.and_then(|route| route.source()) {
            Some(source) => { "of source " (source_link(request, source)) },
            None => "of no source: it was made over the API",
        } }
    }
}

/// The name or ID of an edge or a route, with a link to its page.
fn named_link(request: &PageRequest, named: &Named) -> Markup {
    resource_link(request, &named.key, named.name.as_deref().unwrap_or(named.key.id.as_str()))
}

/// A note with the names of certificate authorities in place of their IDs.
fn with_names(note: &str, state: &Snapshot) -> String {
    let named = |part: &str| {
        let id = part.trim_end_matches([' ', ',']);
        let entry = state.get(&Key::new(Kind::CertificateAuthority, Id::new(id)));
        entry.and_then(|entry| entry.name()).map_or_else(|| part.to_owned(), |name| part.replacen(id, name, 1))
    };
    note.split_inclusive(' ').map(named).collect()
}

fn effect(effect: StepEffect) -> Markup {
    match effect {
        StepEffect::Passes => badge(Tone::Good, "passes"),
        StepEffect::Depends => badge(Tone::Neutral, "depends"),
        StepEffect::Refused => badge(Tone::Bad, "refused"),
    }
}

/// The routes that do not take the request, and why.
fn losers(request: &PageRequest, trace: &Trace, from: usize, has_more: bool) -> Markup {
    let rows: Vec<_> = trace.routes.iter().filter(|it| it.verdict != RouteDecision::Taken).collect();
    let next = has_more.then(|| from.saturating_add(ROWS).to_string());
    let others = rows.iter().map(|it| {
        let match_type = it.match_type.map(|it| it.as_str()).unwrap_or_default();
        let matched = html! { code { (it.matched) } " " small { (match_type) } };
        vec![named_link(request, &it.route), matched, html! { (it.verdict.to_string()) }]
    });
    html! {
        @if !rows.is_empty() {
            h2 { "Why not the others?" }
            (elements::table("Other routes", &["Route", "Match", "Why not"], others))
        }
        (pager(request, "from", from == 0, next, "More routes"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Claim, Operation};
    use crate::routing::tests::spec_of;

    #[test]
    fn a_note_names_certificate_authorities() {
        let key = Key::new(Kind::CertificateAuthority, Id::new("ca_1"));
        let pem = include_str!("../../../examples/storefront/certs/partner-devices.pem");
        let (spec, claim) = (spec_of(key.kind, &json!({"ca_pem": pem})), Claim::new("shop", "staff-devices"));
        let create = Operation::Create { key, spec, claim: Some(Arc::new(claim)), token: None };
        let state = Snapshot::default().apply(&[create], Timestamp::UNIX_EPOCH).unwrap().0;
        let note = with_names("requires a client certificate issued by ca_1, ca_2", &state);
        assert_eq!(note, "requires a client certificate issued by staff-devices, ca_2");
    }
}
