//! The table of all kinds with their types.

use std::iter::once;

use super::{
    Kind, api_key::ApiKey, certificate_authority::CertificateAuthority, event_source::EventSource,
    event_subscription::EventSubscription, https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute,
    invariant::Invariant, ip_restriction::IpRestriction, owner::Owner, tls_certificate::TlsCertificate,
    tls_edge::TlsEdge,
};
use crate::model::resource::Resource;
use crate::model::resource::kind_info::KindInfo;
use crate::model::schema::Constraint;

/// Every kind, in the enum's order.
static KINDS: [KindInfo; 11] = [
    Owner::INFO,
    ApiKey::INFO,
    IpRestriction::INFO,
    CertificateAuthority::INFO,
    TlsCertificate::INFO,
    HttpsEdge::INFO,
    HttpsEdgeRoute::INFO,
    TlsEdge::INFO,
    EventSubscription::INFO,
    EventSource::INFO,
    Invariant::INFO,
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

    /// Returns the constraints of every kind and module on the generated schemas.
    pub fn constraints() -> impl Iterator<Item = Constraint> {
        Kind::all().flat_map(|info| {
            let of_slots = info.slots.iter().flat_map(|slot| (slot.constraints)());
            once(Constraint::required(info.name, info.required)).chain((info.constraints)()).chain(of_slots)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::head::PREFIXES;

    #[test]
    fn ids_of_all_kinds_are_compared_by_their_heads() {
        let mut prefixes: Vec<&str> = Kind::all().map(|info| info.prefix).filter(|it| !it.is_empty()).collect();
        prefixes.sort_unstable();
        assert_eq!(prefixes, PREFIXES);
    }

    #[test]
    fn the_table_follows_the_enum() {
        for (index, info) in Kind::all().enumerate() {
            assert_eq!(info.kind as usize, index, "{}", info.name);
            assert_eq!(format!("{:?}", info.kind), info.name);
        }
    }
}
