//! The resource kinds: one file per kind, and the table of all kinds.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::resource::{KindInfo, Resource};

pub mod api_key;
pub mod certificate_authority;
pub mod event_source;
pub mod event_subscription;
pub mod https_edge;
pub mod https_edge_route;
pub mod ip_restriction;
pub mod owner;
pub mod tls_certificate;
pub mod tls_edge;

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

/// Every kind, in the enum's order.
static KINDS: [KindInfo; 10] = [
    owner::Owner::INFO,
    api_key::ApiKey::INFO,
    ip_restriction::IpRestriction::INFO,
    certificate_authority::CertificateAuthority::INFO,
    tls_certificate::TlsCertificate::INFO,
    https_edge::HttpsEdge::INFO,
    https_edge_route::HttpsEdgeRoute::INFO,
    tls_edge::TlsEdge::INFO,
    event_subscription::EventSubscription::INFO,
    event_source::EventSource::INFO,
];

impl Kind {
    /// Returns the kind's metadata.
    pub fn info(self) -> &'static KindInfo {
        // A test keeps the table in the enum's order.
        let [first, ..] = &KINDS;
        KINDS.get(self as usize).unwrap_or(first)
    }

    /// Returns every kind in dependency order.
    pub fn all() -> impl DoubleEndedIterator<Item = &'static KindInfo> {
        KINDS.iter()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_enum() {
        for (index, info) in Kind::all().enumerate() {
            assert_eq!(info.kind as usize, index, "{}", info.name);
            assert_eq!(format!("{:?}", info.kind), info.name);
        }
    }
}
