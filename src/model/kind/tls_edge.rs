//! TLS edges. Another service owns them; edgewright manages their modules.

use super::prelude::*;
use crate::model::module::{self, slots};

slots! {
    /// The modules of a TLS edge, which another service owns.
    pub struct TlsEdge {}

    /// The response form of a [`TlsEdge`]'s modules.
    pub struct TlsEdgeModules {
        /// Access by source IP address.
        ip_restriction: module::ip_restriction::EndpointIpRestriction,
        /// Actions on traffic that matches expressions.
        policies: module::policies::Policies,
        /// The destination of the traffic.
        backend: module::backend::Backend,
    }
}

view! {
    /// The response form of [`TlsEdge`].
    pub struct TlsEdgeView(spec: &TlsEdge, at) {
        /// The edge's ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this edge.
        pub uri: String = at.uri(),
        /// The time when the first module was configured.
        pub created_at: String = at.created_at.to_string(),
        /// Always empty: the owner of the edge describes it.
        #[schemars(extend("x-extension" = true))]
        pub description: String = String::new(),
        /// Always empty.
        #[schemars(extend("x-extension" = true))]
        pub metadata: String = String::new(),
        /// Always empty: the owner of the edge knows its hostports.
        #[schemars(extend("x-extension" = true))]
        pub hostports: Vec<String> = Vec::new(),
        #[serde(flatten)]
        modules: TlsEdgeModules = spec.module_views(at.key, at.base_urls),
    }
}

impl Check for TlsEdge {}

impl Resource for TlsEdge {
    const INFO: KindInfo =
        KindInfo { offers: Offers::IMPLICIT, slots: TlsEdge::SLOTS, ..KindInfo::new::<TlsEdge>(Kind::TlsEdge) };

    type View = TlsEdgeView;
}
