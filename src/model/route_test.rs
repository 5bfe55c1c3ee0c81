//! Route tests: requests beside the manifests, with what must become of each (D118).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnostics::{Check, Code, Fault, Faults, suggest};
use super::kind::https_edge::HttpsEdge;
use super::kind::https_edge_route::HttpsEdgeRoute;
use super::traffic::{RequestVerdict, TracedRequest};
use crate::syntax::text::printable;

/// Requests with what must become of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouteTest {
    /// The requests.
    pub requests: Vec<TestedRequest>,
    /// Whether a failure is only a warning, so that the source is applied.
    pub informing_only: bool,
}

/// A request to test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["url", "expect"]))]
pub struct TestedRequest {
    /// A name for messages; empty for the method and the URL.
    pub name: String,
    /// The method; empty for `GET`.
    pub method: String,
    /// The URL; the scheme defaults to `https`.
    #[schemars(length(min = 1))]
    pub url: String,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The IP address of the client; empty if it is unknown.
    pub client_ip: String,
    /// The User-Agent; null if it is unknown.
    pub user_agent: Option<String>,
    /// Whether the client presents a certificate that the edge trusts; null if it is unknown.
    pub client_certificate: Option<bool>,
    /// The modules that let the request pass, although what they decide by is not in the manifests: a session, a policy, the
    /// address of an office.
    pub assumed_to_pass: Vec<String>,
    /// The expected handling of the request.
    pub expect: TestExpectation,
}

/// The expected handling of a request. An unset field accepts any value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TestExpectation {
    /// The edge that takes the request: its name, `SOURCE/NAME` or its ID.
    pub edge: Option<String>,
    /// The route that takes the request: its name, `SOURCE/NAME` or its ID.
    pub route: Option<String>,
    /// The ID of the backend.
    pub backend: Option<String>,
    /// The fate of the request.
    pub verdict: Option<RequestVerdict>,
    /// All modules that the request meets, in order, as a trace names them.
    pub modules: Option<Vec<String>>,
    /// Modules that the request meets among others.
    pub modules_include: Vec<String>,
    /// Changes of the request's headers.
    pub request_headers: ExpectedHeaders,
    /// Changes of the response's headers.
    pub response_headers: ExpectedHeaders,
}

/// Headers that must be added and removed, among others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExpectedHeaders {
    /// The names of headers that are added.
    pub added: Vec<String>,
    /// The names of headers that are removed.
    pub removed: Vec<String>,
}

impl TestedRequest {
    /// The request, for a trace.
    pub(crate) fn traced(&self) -> Result<TracedRequest, Fault> {
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(TracedRequest {
            headers,
            user_agent: self.user_agent.clone(),
            client_certificate: self.client_certificate,
            ..TracedRequest::parse(&self.method, &self.url, &self.client_ip)?
        })
    }

    /// The name, or the method and the URL.
    pub(crate) fn label(&self) -> String {
        let method = if self.method.is_empty() { "GET".to_owned() } else { self.method.to_ascii_uppercase() };
        if self.name.is_empty() { format!("{method} {}", self.url) } else { self.name.clone() }
    }
}

impl Check for RouteTest {
    fn check(&self, faults: &mut Faults) {
        if self.requests.is_empty() {
            faults.report(Fault::required("requests").help("list requests, each with `url` and `expect`"));
        }
        faults.each_in("requests", &self.requests, |faults, request| request.check(faults));
    }
}

impl Check for TestedRequest {
    fn check(&self, faults: &mut Faults) {
        if self.url.is_empty() {
            faults.report(Fault::required("url").help("write a URL such as `https://shop.example.com/cart`"));
        } else {
            faults.extend(self.traced().err());
        }
        check_modules(faults, "assumed_to_pass", &self.assumed_to_pass);
        faults.within("expect", |faults| self.expect.check(faults));
    }
}

impl Check for TestExpectation {
    fn check(&self, faults: &mut Faults) {
        if *self == Self::default() {
            let fault = Fault::new(Code::Required, "the request has no expectation, so that it tests nothing");
            faults.report(fault.help("set a field of `expect`, such as `verdict: forwarded`"));
        }
        check_modules(faults, "modules", self.modules.as_deref().unwrap_or_default());
        check_modules(faults, "modules_include", &self.modules_include);
    }
}

/// Whether a name that a test has means a module as a trace names it: `policies` means those of both directions.
pub(crate) fn means_module(name: &str, traced: &str) -> bool {
    name == traced || traced.split(' ').next() == Some(name)
}

fn check_modules(faults: &mut Faults, field: &str, names: &[String]) {
    faults.each_in(field, names, |faults, name| {
        let known = || HttpsEdge::SLOTS.iter().chain(HttpsEdgeRoute::SLOTS).map(|slot| slot.name);
        let first = name.split(' ').next().unwrap_or_default();
        if !known().any(|known| known == first) {
            let fault = Fault::new(Code::UnknownValue, format!("unknown module `{}`", printable(name)));
            faults.report(fault.help(suggest(name, known(), "write a module as `edgewright trace` names it")));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(request: TestedRequest) -> Vec<(String, Code)> {
        let test = RouteTest { requests: vec![request], ..RouteTest::default() };
        test.faults().into_iter().map(|fault| (fault.path.to_string(), fault.code)).collect()
    }

    fn expecting(expect: TestExpectation) -> TestedRequest {
        TestedRequest { url: "shop.example.com/cart".into(), expect, ..TestedRequest::default() }
    }

    #[test]
    fn a_request_names_what_exists_and_expects_something() {
        let forwarded = TestExpectation { verdict: Some(RequestVerdict::Forwarded), ..TestExpectation::default() };
        assert!(faults(expecting(forwarded.clone())).is_empty());
        let at = |path: &str, code| vec![(format!("/requests/0{path}"), code)];
        assert_eq!(faults(expecting(TestExpectation::default())), at("/expect", Code::Required));
        let modules = Some(vec!["policies inbound".to_owned(), "backnd".to_owned()]);
        let misspelt = TestExpectation { modules, ..TestExpectation::default() };
        assert_eq!(faults(expecting(misspelt)), at("/expect/modules/1", Code::UnknownValue));
        let request = |url: &str, method: &str, client_ip: &str| TestedRequest {
            url: url.into(),
            method: method.into(),
            client_ip: client_ip.into(),
            ..expecting(forwarded.clone())
        };
        assert_eq!(faults(request("", "", "")), at("/url", Code::Required));
        assert_eq!(faults(request("ftp://a.example", "", "")), at("/url", Code::InvalidFormat));
        assert_eq!(faults(request("a.example", "G T", "")), at("/method", Code::InvalidFormat));
        assert_eq!(faults(request("a.example", "", "office")), at("/client_ip", Code::InvalidFormat));
        let nothing = RouteTest::default().faults();
        assert_eq!(nothing.first().map(|fault| fault.path.to_string()).as_deref(), Some("/requests"));
    }

    #[test]
    fn a_module_is_meant_by_its_name_and_by_the_name_in_a_trace() {
        assert!(means_module("policies", "policies inbound") && means_module("policies inbound", "policies inbound"));
        assert!(!means_module("policies outbound", "policies inbound") && !means_module("pol", "policies inbound"));
    }
}
