//! The modules that a request passes through, in traffic order (D42).

use regex::RegexBuilder;

use super::Request;
use crate::model::{
    json,
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
    module::{
        jwt_validation::{JwtValidation, TokenMethod},
        oauth::Provider,
        policies::EndpointPolicy,
        user_agent_filter::UserAgentFilter,
    },
};

/// A module's effect on a request, as far as a trace can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The request passes.
    Passes,
    /// The effect depends on something that a trace does not know.
    Depends,
    /// The request is rejected.
    Refused,
}

/// A module that a request passes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The module; for policies, with the direction.
    pub module: &'static str,
    /// The effect.
    pub effect: Effect,
    /// A short explanation.
    pub note: String,
}

/// The modules so far, up to the first that rejects the request.
struct Way(Vec<Passage>);

impl Way {
    fn add(&mut self, module: &'static str, effect: Effect, note: impl Into<String>) {
        if self.0.last().is_none_or(|last| last.effect != Effect::Refused) {
            self.0.push(Passage { module, effect, note: note.into() });
        }
    }
}

/// Returns the enabled modules of an edge and route, in traffic order.
pub fn passages(request: &Request, edge: &HttpsEdge, route: &HttpsEdgeRoute) -> Vec<Passage> {
    let mut way = Way(Vec::new());
    if let Some(it) = edge.mutual_tls.as_ref().filter(|it| it.enabled) {
        let note = format!("requires a client certificate issued by {}", or_none(&it.certificate_authority_ids));
        way.add("mutual_tls", Effect::Depends, note);
    }
    if let Some(it) = route.ip_restriction.as_ref().filter(|it| it.enabled) {
        let from = request.client_ip.map(|ip| format!("{ip}: ")).unwrap_or_default();
        way.add("ip_restriction", Effect::Depends, format!("{from}policies decide: {}", or_none(&it.ip_policy_ids)));
    }
    if let Some(it) = route.user_agent_filter.as_ref().filter(|it| it.enabled) {
        let (effect, note) = user_agent(request, it);
        way.add("user_agent_filter", effect, note);
    }
    if let Some(it) = route.webhook_verification.as_ref().filter(|it| it.enabled) {
        way.add("webhook_verification", Effect::Depends, format!("requires a signature by {}", it.provider));
    }
    let mut login = |module: &'static str, passthrough: bool, with: String| {
        if passthrough && request.method == "OPTIONS" {
            way.add(module, Effect::Passes, "OPTIONS requires no login (options_passthrough)");
        } else {
            way.add(module, Effect::Depends, format!("requires a session or a login with {with}"));
        }
    };
    if let Some(it) = route.oauth.as_ref().filter(|it| it.enabled) {
        login("oauth", it.options_passthrough, provider(&it.provider));
    }
    if let Some(it) = route.saml.as_ref().filter(|it| it.enabled) {
        login("saml", it.options_passthrough, "the SAML identity provider".into());
    }
    if let Some(it) = route.oidc.as_ref().filter(|it| it.enabled) {
        login("oidc", it.options_passthrough, it.issuer.clone());
    }
    if let Some(it) = route.jwt_validation.as_ref().filter(|it| it.enabled) {
        let (effect, note) = token(request, it);
        way.add("jwt_validation", effect, note);
    }
    let policies = route.policies.as_ref().filter(|it| it.enabled);
    if let Some(it) = policies.filter(|it| !it.inbound.is_empty()) {
        way.add("policies inbound", Effect::Depends, policy_names(&it.inbound));
    }
    if let Some(it) = route.request_headers.as_ref().filter(|it| it.enabled) {
        way.add("request_headers", Effect::Passes, headers(it.add.keys(), &it.remove));
    }
    if let Some(it) = route.circuit_breaker.as_ref().filter(|it| it.enabled) {
        let share = it.error_threshold_percentage;
        way.add("circuit_breaker", Effect::Depends, format!("opens when a fraction of {share} of requests fails"));
    }
    if route.websocket_tcp_converter.as_ref().is_some_and(|it| it.enabled) {
        way.add("websocket_tcp_converter", Effect::Passes, "converts a WebSocket to a TCP stream");
    }
    match route.backend.as_ref().filter(|it| it.enabled) {
        Some(it) => way.add("backend", Effect::Passes, it.backend_id.clone()),
        None => way.add("backend", Effect::Refused, "no backend is enabled"),
    }
    if let Some(it) = route.response_headers.as_ref().filter(|it| it.enabled) {
        way.add("response_headers", Effect::Passes, headers(it.add.keys(), &it.remove));
    }
    if route.compression.as_ref().is_some_and(|it| it.enabled) {
        way.add("compression", Effect::Passes, "for clients that accept it");
    }
    if let Some(it) = policies.filter(|it| !it.outbound.is_empty()) {
        way.add("policies outbound", Effect::Depends, policy_names(&it.outbound));
    }
    way.0
}

fn or_none(items: &[String]) -> String {
    if items.is_empty() { "none".into() } else { items.join(", ") }
}

/// The size limit of a compiled pattern in bytes, which bounds the time to compile it.
const COMPILED_BYTES: usize = 1024 * 1024;

/// `deny` rejects unless `allow` matches; with `allow` alone, all other requests are rejected.
fn user_agent(request: &Request, filter: &UserAgentFilter) -> (Effect, String) {
    let Some(agent) = request.user_agent.as_deref().or_else(|| request.header("user-agent")) else {
        return (Effect::Depends, "depends on the User-Agent; set it with --user-agent".into());
    };
    let mut unreadable = None;
    let mut first = |patterns: &[String]| {
        let hit = patterns.iter().find(|pattern| match RegexBuilder::new(pattern).size_limit(COMPILED_BYTES).build() {
            Ok(regex) => regex.is_match(agent),
            Err(_) => {
                unreadable.get_or_insert_with(|| pattern.to_string());
                false
            }
        });
        hit.cloned()
    };
    let (allowed, denied) = (first(&filter.allow), first(&filter.deny));
    match (allowed, denied, unreadable) {
        (Some(pattern), ..) => (Effect::Passes, format!("allowed by {pattern}")),
        (None, _, Some(pattern)) => (Effect::Depends, format!("unknown: {pattern} cannot be compiled")),
        (None, Some(pattern), None) => (Effect::Refused, format!("denied by {pattern}")),
        (None, None, None) if filter.deny.is_empty() && !filter.allow.is_empty() => {
            (Effect::Refused, "no pattern allows it".into())
        }
        (None, None, None) => (Effect::Passes, "no pattern denies it".into()),
    }
}

/// Checks whether a header contains a token. A trace knows no bodies, and does not validate tokens.
fn token(request: &Request, validation: &JwtValidation) -> (Effect, String) {
    let tokens = &validation.http.tokens;
    let in_headers = || tokens.iter().filter(|token| token.method == Some(TokenMethod::Header));
    let held = in_headers().find(|token| {
        let value = request.header(&token.name).and_then(|value| value.strip_prefix(token.prefix.as_str()));
        value.is_some_and(|value| !value.trim().is_empty())
    });
    if let Some(token) = held {
        return (Effect::Depends, format!("the token in the header {} must be valid", token.name));
    }
    let names = |method: TokenMethod| {
        let names = tokens.iter().filter(|token| token.method == Some(method)).map(|token| token.name.clone());
        names.collect::<Vec<_>>().join(", ")
    };
    let (headers, fields) = (names(TokenMethod::Header), names(TokenMethod::Body));
    match (headers.is_empty(), fields.is_empty()) {
        (true, true) => (Effect::Depends, "requires a valid token".into()),
        (false, true) => (Effect::Refused, format!("no token in the header {headers}")),
        (true, false) => (Effect::Depends, format!("requires a valid token in the body field {fields}")),
        (false, false) => {
            (Effect::Depends, format!("no token in the header {headers}; requires one in the body field {fields}"))
        }
    }
}

fn provider(provider: &Provider) -> String {
    let known = json::object(provider).ok();
    let set = known.as_ref().and_then(|all| all.iter().find(|(_, app)| !app.is_null()));
    set.map_or_else(|| "a provider".to_owned(), |(name, _)| name.clone())
}

fn policy_names(policies: &[EndpointPolicy]) -> String {
    let name = |policy: &EndpointPolicy| match policy.name.as_str() {
        "" => "(unnamed)".to_owned(),
        name => name.to_owned(),
    };
    policies.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn headers<'a>(add: impl Iterator<Item = &'a String>, remove: &[String]) -> String {
    let changes: Vec<String> =
        add.map(|name| format!("+{name}")).chain(remove.iter().map(|name| format!("-{name}"))).collect();
    or_none(&changes)
}
