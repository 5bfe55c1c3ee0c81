//! The resource kinds: one file per kind. This file has the names and addresses of all kinds, and uses nothing else of
//! the model; the table of their types is in `table.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) mod api_key;
pub(crate) mod certificate_authority;
pub(crate) mod event_source;
pub(crate) mod event_subscription;
pub(crate) mod https_edge;
pub(crate) mod https_edge_route;
pub(crate) mod ip_restriction;
pub(crate) mod owner;
mod table;
pub(crate) mod tls_certificate;
pub(crate) mod tls_edge;

/// The kinds in dependency order: creation goes forward through it, deletion backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // each is explained in its own file
pub enum Kind {
    Owner,
    ApiKey,
    IpRestriction,
    CertificateAuthority,
    TlsCertificate,
    HttpsEdge,
    HttpsEdgeRoute,
    TlsEdge,
    EventSubscription,
    EventSource,
}

/// The names and addresses of a kind.
#[derive(Debug, Clone, Copy)]
pub struct KindFacts {
    /// The manifest name, such as `HttpsEdge`.
    pub name: &'static str,
    /// The prefix of its ids.
    pub prefix: &'static str,
    /// The path of the collection; a parent's id is a `{parameter}`.
    pub collection: &'static str,
    /// The path parameter of an item.
    pub id_parameter: &'static str,
    /// The name of the array in a list response.
    pub list: &'static str,
    /// The parent kind.
    pub parent: Option<Kind>,
    /// The kind of the children in its View.
    pub children: Option<Kind>,
    /// Whether it exists only while it has a module (D34).
    pub implicit: bool,
    /// Whether it acts on the traffic of every source (D112).
    pub global: bool,
}

impl KindFacts {
    /// The facts of a kind without parent and children. An empty prefix means that clients choose the ids.
    const fn new(name: &'static str, prefix: &'static str, collection: &'static str, list: &'static str) -> Self {
        Self {
            name,
            prefix,
            collection,
            id_parameter: "id",
            list,
            parent: None,
            children: None,
            implicit: false,
            global: false,
        }
    }
}

impl Kind {
    /// Returns the kind's names and addresses.
    pub const fn facts(self) -> KindFacts {
        match self {
            Kind::Owner => KindFacts::new("Owner", "usr_", "/owners", "owners"),
            Kind::ApiKey => KindFacts::new("ApiKey", "ak_", "/api_keys", "keys"),
            Kind::IpRestriction => KindFacts {
                global: true,
                ..KindFacts::new("IpRestriction", "ipx_", "/ip_restrictions", "ip_restrictions")
            },
            Kind::CertificateAuthority => {
                KindFacts::new("CertificateAuthority", "ca_", "/certificate_authorities", "certificate_authorities")
            }
            Kind::TlsCertificate => KindFacts::new("TlsCertificate", "cert_", "/tls_certificates", "tls_certificates"),
            Kind::HttpsEdge => KindFacts {
                children: Some(Kind::HttpsEdgeRoute),
                ..KindFacts::new("HttpsEdge", "edghts_", "/edges/https", "https_edges")
            },
            Kind::HttpsEdgeRoute => KindFacts {
                parent: Some(Kind::HttpsEdge),
                ..KindFacts::new("HttpsEdgeRoute", "edghtsrt_", "/edges/https/{edge_id}/routes", "routes")
            },
            Kind::TlsEdge => {
                KindFacts { implicit: true, ..KindFacts::new("TlsEdge", "edgtls_", "/edges/tls", "tls_edges") }
            }
            Kind::EventSubscription => KindFacts {
                children: Some(Kind::EventSource),
                implicit: true,
                ..KindFacts::new("EventSubscription", "esb_", "/event_subscriptions", "event_subscriptions")
            },
            Kind::EventSource => KindFacts {
                id_parameter: "type",
                parent: Some(Kind::EventSubscription),
                ..KindFacts::new("EventSource", "", "/event_subscriptions/{subscription_id}/sources", "sources")
            },
        }
    }

    /// Whether its list has pages. The API specification has none for event sources (D12).
    pub(crate) const fn is_paged(self) -> bool {
        !matches!(self, Kind::EventSource)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}
