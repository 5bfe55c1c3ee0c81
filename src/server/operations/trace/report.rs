//! The bodies of `/trace`: a request to trace, and its way through the gateway. Dry runs of manifests have them too.

use crate::model::diagnostics::Check;
use crate::routing::{EdgeChoice, HostRank, Named, RouteDecision, Trace, TracedRequest, on_other_ports};
use crate::server::gateway_feed::presented::TlsHostport;
use crate::server::prelude::*;

/// The most edges on other ports that a report names.
const MOST_OTHERS: usize = 3;

/// A client's request to trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestToTrace {
    /// The URL; the scheme defaults to `https`.
    pub url: String,
    /// The method. Empty is `GET`.
    #[serde(default)]
    pub method: String,
    /// The IP address of the client, or empty if it is unknown.
    #[serde(default)]
    pub client_ip: String,
    /// The User-Agent, or empty if it is unknown.
    #[serde(default)]
    pub user_agent: String,
    /// The headers.
    #[serde(default)]
    pub headers: Vec<HeaderToTrace>,
}

impl Check for RequestToTrace {}

/// A header of a request to trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderToTrace {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// How the gateway routes a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TraceReport {
    /// The request, such as `GET shop.example.com:443/cart`.
    pub request: String,
    /// The edge that takes the request; null if no edge serves its host and port.
    pub edge: Option<EdgeInTrace>,
    /// If no edge serves the host and port, edges that serve the host on other ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_other_ports: Vec<EdgeInTrace>,
    /// The TLS at the host and port; null if the edge terminates none there.
    #[serde(default)]
    pub tls: Option<TlsInTrace>,
    /// The routes of the edge, starting with the one that takes the request.
    pub routes: Vec<RouteInTrace>,
    /// The modules that the request passes, in processing order, up to the first that refuses it.
    pub modules: Vec<ModuleInTrace>,
}

/// An edge that takes a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EdgeInTrace {
    /// The ID.
    pub id: String,
    /// The name in the manifests, or null if no source owns the edge.
    pub name: Option<String>,
    /// The hostport of the edge that matches.
    pub hostport: String,
    /// Whether the hostport is a wildcard.
    pub wildcard: bool,
    /// Whether the edge passes TLS through, and so cannot see the path.
    pub passes_through: bool,
}

/// The TLS at a host and port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TlsInTrace {
    /// The ID of the certificate that gateways present, or null if no certificate covers the hostport of the edge: then the gateway
    /// needs one of its own.
    pub certificate_id: Option<String>,
    /// The name of the certificate in the manifests, or null if no source owns it.
    pub certificate_name: Option<String>,
    /// Whether the certificate is valid now.
    pub valid: bool,
}

/// A route that could take a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RouteInTrace {
    /// The ID.
    pub id: String,
    /// The name in the manifests, or null if no source owns the route.
    pub name: Option<String>,
    /// The match type, or empty.
    pub match_type: String,
    /// The match.
    pub r#match: String,
    /// Whether the route takes the request.
    pub taken: bool,
    /// Whether the route takes the request or why not, in words.
    pub verdict: String,
}

/// A module that a request passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ModuleInTrace {
    /// The module.
    pub module: String,
    /// `passes`, `depends` or `refused`.
    pub effect: String,
    /// An explanation.
    pub note: String,
}

impl RequestToTrace {
    /// Parses the request.
    pub(crate) fn parse(self) -> Result<TracedRequest, Fault> {
        let request = TracedRequest::parse(&self.method, &self.url, &self.client_ip)?;
        let user_agent = Some(self.user_agent).filter(|text| !text.is_empty());
        let headers = self.headers.into_iter().map(|header| (header.name, header.value)).collect();
        Ok(TracedRequest { user_agent, headers, ..request })
    }
}

impl TlsInTrace {
    /// The TLS at the hostport of an edge; none if the edge terminates none there.
    pub(in crate::server) fn new(choice: &EdgeChoice, state: &Snapshot) -> Option<Self> {
        let hostport = TlsHostport::find(state, &choice.edge.key, &choice.hostport)?;
        let Some((id, valid)) = hostport.presented(clock::now()) else {
            return Some(Self { certificate_id: None, certificate_name: None, valid: false });
        };
        let entry = state.get(&Key::new(Kind::TlsCertificate, Id::new(id)));
        let certificate_name = entry.and_then(|entry| entry.name()).map(str::to_owned);
        Some(Self { certificate_id: Some(id.to_owned()), certificate_name, valid })
    }
}

impl TraceReport {
    /// Describes a trace through a state.
    pub(crate) fn new(request: &TracedRequest, trace: &Trace, state: &Snapshot) -> Self {
        let id_and_name = |named: &Named| (named.key.id.to_string(), named.name.clone());
        let edge_in_trace = |choice: &EdgeChoice| {
            let (id, name) = id_and_name(&choice.edge);
            let wildcard = match choice.rank {
                HostRank::Literal => false,
                HostRank::Wildcard(_) | HostRank::Any => true,
            };
            let (hostport, passes_through) = (choice.hostport.clone(), choice.passes_through);
            EdgeInTrace { id, name, hostport, wildcard, passes_through }
        };
        let edge = trace.edge.as_ref().map(edge_in_trace);
        let others = if edge.is_none() { on_other_ports(state, request, MOST_OTHERS) } else { Vec::new() };
        let on_other_ports = others.iter().map(edge_in_trace).collect();
        let routes = trace.routes.iter().map(|considered| {
            let (id, name) = id_and_name(&considered.route);
            RouteInTrace {
                id,
                name,
                match_type: considered.match_type.map(|it| it.as_str().to_owned()).unwrap_or_default(),
                r#match: considered.matched.clone(),
                taken: considered.verdict == RouteDecision::Taken,
                verdict: considered.verdict.to_string(),
            }
        });
        let modules = trace.modules.iter().map(|step| ModuleInTrace {
            module: step.module.to_owned(),
            effect: step.effect.as_str().to_owned(),
            note: step.note.clone(),
        });
        let tls = trace.edge.as_ref().and_then(|choice| TlsInTrace::new(choice, state));
        let (routes, modules) = (routes.collect(), modules.collect());
        Self { request: request.to_string(), edge, on_other_ports, tls, routes, modules }
    }

    /// The route that takes the request.
    pub(crate) fn route(&self) -> Option<&RouteInTrace> {
        self.routes.iter().find(|route| route.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_checked_as_on_the_command_line() {
        let request = |method: &str, url: &str, client_ip: &str| {
            let (method, url, client_ip) = (method.to_owned(), url.to_owned(), client_ip.to_owned());
            RequestToTrace { method, url, client_ip, ..RequestToTrace::default() }.parse()
        };
        let shown = |method: &str, url: &str| request(method, url, "").map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(shown("", "shop.example.com/cart"), "GET shop.example.com:443/cart");
        assert_eq!(shown("post", "http://[::1]:8080"), "POST [::1]:8080/");
        for (method, url, ip, field) in [
            ("G T", "a.example", "", "/method"),
            ("", "ftp://a.example", "", "/url"),
            ("", "", "", "/url"),
            ("", "a.example", "localhost", "/client_ip"),
        ] {
            let found = request(method, url, ip).err().map(|fault| fault.path.to_string());
            assert_eq!(found.as_deref(), Some(field));
        }
    }
}
