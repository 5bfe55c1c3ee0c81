//! The resource kinds: one file per kind, with its Spec, its View and its rules.
//!
//! A line of `kinds!` in this file says what a kind is called and where it is, and `table.rs` adds the type that says what it
//! consists of:
//!
//! ```text
//! HttpsEdgeRoute("edghtsrt_", "/edges/https/{edge_id}/routes", "routes") { parent: Some(Kind::HttpsEdge) }
//! ```
//!
//! Endpoints, manifests, plans, records and schemas follow from these tables. This file never uses another one of the model,
//! so that keys, and all that has keys, can depend on it.

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) mod api_key;
pub(crate) mod certificate_authority;
pub(crate) mod event_source;
pub(crate) mod event_subscription;
pub(crate) mod https_edge;
pub(crate) mod https_edge_route;
pub(crate) mod invariant;
pub(crate) mod ip_restriction;
pub(crate) mod owner;
mod prelude;
mod table;
pub(crate) mod tls_certificate;
pub(crate) mod tls_edge;

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
    /// Whether a resource exists only while it has a module (D34).
    pub implicit: bool,
    /// Whether a resource acts on the traffic of every source (D112).
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

    /// Returns the path of the collection in a parent, whose id is percent-encoded.
    pub(crate) fn collection_in(&self, parent: &str) -> String {
        let segments = self.collection.split('/').map(|it| if it.starts_with('{') { parent } else { it });
        segments.collect::<Vec<_>>().join("/")
    }
}

/// Declares the kinds: the name of each, the prefix of its ids, its collection and list, and what else is not usual.
macro_rules! kinds {
    ($($kind:ident($prefix:literal, $collection:literal, $list:literal) {$($field:ident: $value:expr),*})*) => {
        /// The kinds in dependency order: creation goes forward through it, deletion backward.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[allow(missing_docs)] // each is explained in its own file
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// Every kind, in the enum's order.
            pub(crate) const EVERY: &'static [Kind] = &[$(Kind::$kind),*];

            /// Returns the kind's names and addresses.
            pub const fn facts(self) -> KindFacts {
                match self {
                    $(Kind::$kind => KindFacts {
                        $($field: $value,)*
                        ..KindFacts::new(stringify!($kind), $prefix, $collection, $list)
                    },)*
                }
            }
        }
    };
}

kinds! {
    Owner("usr_", "/owners", "owners") {}
    ApiKey("ak_", "/api_keys", "keys") {}
    IpRestriction("ipx_", "/ip_restrictions", "ip_restrictions") { global: true }
    CertificateAuthority("ca_", "/certificate_authorities", "certificate_authorities") {}
    TlsCertificate("cert_", "/tls_certificates", "tls_certificates") {}
    HttpsEdge("edghts_", "/edges/https", "https_edges") { children: Some(Kind::HttpsEdgeRoute) }
    HttpsEdgeRoute("edghtsrt_", "/edges/https/{edge_id}/routes", "routes") { parent: Some(Kind::HttpsEdge) }
    TlsEdge("edgtls_", "/edges/tls", "tls_edges") { implicit: true }
    EventSubscription("esb_", "/event_subscriptions", "event_subscriptions") {
        children: Some(Kind::EventSource),
        implicit: true
    }
    EventSource("", "/event_subscriptions/{subscription_id}/sources", "sources") {
        id_parameter: "type",
        parent: Some(Kind::EventSubscription)
    }
    Invariant("inv_", "/invariants", "invariants") { global: true }
}

impl Kind {
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
