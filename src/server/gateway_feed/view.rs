//! The forms of the gateway configuration (D94). Certificates, authorities and secrets are in them, so the types have no
//! `Debug`.

use serde_json::value::RawValue;

use crate::model::{Secret, kind::https_edge_route::MatchType, module::tls_termination::TlsVersion};
use crate::server::prelude::*;

/// The configuration of a gateway at one revision: whole, or what has changed since an earlier revision.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayConfiguration {
    /// The revision.
    pub revision: u64,
    /// Whether `edges` has all HTTPS edges. Otherwise, `changed` and `removed` have what differs from the revision that
    /// the request names.
    pub full: bool,
    /// The SHA-256, in hexadecimal, of one line `ID VERSION` for each HTTPS edge of the revision, in the order of their
    /// IDs. After applying changes, a client computes it from its own edges to verify that it missed none.
    pub digest: String,
    /// The restrictions of all endpoints by source IP address, in the order of their IDs.
    #[schemars(with = "Vec<GatewayIpRestriction>")]
    pub ip_restrictions: Arc<RawValue>,
    /// All TLS edges, in the order of their IDs.
    #[schemars(with = "Vec<GatewayTlsEdge>")]
    pub tls_edges: Arc<RawValue>,
    /// All HTTPS edges in the order of their IDs if `full` is set, otherwise empty.
    #[schemars(with = "Vec<GatewayEdge>")]
    pub edges: Vec<Arc<RawValue>>,
    /// The HTTPS edges that are new or differ, by ID. Each replaces the edge with the same ID.
    #[schemars(with = "BTreeMap<String, GatewayEdge>")]
    pub changed: BTreeMap<String, Arc<RawValue>>,
    /// The IDs of the HTTPS edges that no longer exist.
    pub removed: Vec<String>,
}

/// A restriction of all endpoints by source IP address.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayIpRestriction {
    /// The ID.
    pub id: String,
    /// Whether the gateway refuses what the policies do not allow. Otherwise, it only warns.
    pub enforced: bool,
    /// The IDs of the IP policies. Another service has their rules.
    pub ip_policy_ids: Vec<String>,
}

/// A TLS edge, whose hostports another service has.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayTlsEdge {
    /// The ID.
    pub id: String,
    /// The name in the manifests; empty if no source owns the edge.
    pub name: String,
    /// The enabled modules in the order in which they take effect.
    pub modules: Vec<GatewayModule>,
}

/// An HTTPS edge with everything that it refers to.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayEdge {
    /// The ID. If two edges have the same hostport, the edge with the lower ID serves it.
    pub id: String,
    /// A digest of the edge: equal versions are equal edges.
    pub version: String,
    /// The name in the manifests; empty if no source owns the edge.
    pub name: String,
    /// Where TLS terminates: `edge`, `upstream`, or `none` if the edge serves plain HTTP on every port.
    pub terminate_at: GatewayTermination,
    /// The minimum TLS version; null unless TLS terminates at the edge.
    pub min_version: Option<TlsVersion>,
    /// The hostports that the edge serves.
    pub hostports: Vec<GatewayHostport>,
    /// Client certificate authentication; null if the edge requires no client certificate.
    pub mutual_tls: Option<GatewayMutualTls>,
    /// The routes in match order: the first one that matches a request handles it.
    pub routes: Vec<GatewayRoute>,
}

/// Where TLS terminates.
#[derive(Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GatewayTermination {
    /// At the edge.
    Edge,
    /// At the upstream: the edge passes TLS through.
    Upstream,
    /// Nowhere.
    None,
}

/// A host and port that an edge serves.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayHostport {
    /// The hostport as it was written.
    pub hostport: String,
    /// The host in lower case, such as `shop.example.com`, `*.example.com` or `2001:db8::1`.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the edge terminates TLS on this port. It does not on port 80.
    pub tls: bool,
    /// The certificates for the host, in order of preference: exact names before wildcards, then the one that became
    /// valid last. Clients use the first one that is valid now.
    pub certificates: Vec<GatewayCertificate>,
}

/// A certificate with its private key.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayCertificate {
    /// The ID.
    pub id: String,
    /// The start of validity of the leaf, as RFC 3339 in UTC.
    pub not_before: String,
    /// The end of validity of the leaf, as RFC 3339 in UTC.
    pub not_after: String,
    /// The chain of PEM certificates, leaf first.
    pub certificate_pem: String,
    /// The private key of the leaf as PEM.
    pub private_key_pem: Secret,
}

/// Client certificate authentication of an edge.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayMutualTls {
    /// The authorities, one of which must have issued the client's certificate. If the list is empty, reject all
    /// clients.
    pub certificate_authorities: Vec<GatewayAuthority>,
}

/// A certificate authority.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayAuthority {
    /// The ID.
    pub id: String,
    /// The authority's PEM.
    pub ca_pem: String,
}

/// A route, with the modules that apply to its requests.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayRoute {
    /// The ID.
    pub id: String,
    /// The name in the manifests; empty if no source owns the route.
    pub name: String,
    /// The host that the request must have, in lower case and possibly with a wildcard; empty for every host of the edge.
    pub host: String,
    /// The port that the request must have; null for every port of the edge.
    pub port: Option<u16>,
    /// How `path` is compared with the path of the request, byte by byte as it is in the URL, without the query.
    pub match_type: MatchType,
    /// The path.
    pub path: String,
    /// The enabled modules in the order in which they take effect. Without an enabled backend, nothing responds.
    pub modules: Vec<GatewayModule>,
}

/// An enabled module.
#[derive(Serialize, JsonSchema)]
pub(super) struct GatewayModule {
    /// The name of the module.
    pub module: String,
    /// The stages at which it takes effect: `connection`, `source`, `client`, `authentication`, `inbound`,
    /// `request_change`, `dispatch`, `upstream`, `response_change`, `encoding` and `outbound`, in this order.
    pub stages: Vec<String>,
    /// The module as GET returns it, with its secrets. `saml` also has `request_signing_private_key_pem`.
    pub config: Map<String, Value>,
}
