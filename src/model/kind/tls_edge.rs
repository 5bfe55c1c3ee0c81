//! TLS edges. Another service owns them; edgewright manages their modules.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{
    Kind,
    diagnostics::fault::{Check, Faults},
    module::{self, slots},
    resource::{KindInfo, Offers, Resource, ViewContext},
};

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

/// The response form of [`TlsEdge`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct TlsEdgeView {
    /// The edge's ID.
    pub id: String,
    /// The URI of this edge.
    pub uri: String,
    /// The time when the first module was configured.
    pub created_at: String,
    /// Always empty: the owner of the edge describes it.
    #[schemars(extend("x-extension" = true))]
    pub description: String,
    /// Always empty.
    #[schemars(extend("x-extension" = true))]
    pub metadata: String,
    /// Always empty: the owner of the edge knows its hostports.
    #[schemars(extend("x-extension" = true))]
    pub hostports: Vec<String>,
    #[serde(flatten)]
    modules: TlsEdgeModules,
}

impl Check for TlsEdge {
    fn check(&self, _faults: &mut Faults) {}
}

impl Resource for TlsEdge {
    const INFO: KindInfo =
        KindInfo { offers: Offers::IMPLICIT, slots: TlsEdge::SLOTS, ..KindInfo::of::<TlsEdge>(Kind::TlsEdge) };

    type View = TlsEdgeView;

    fn view(&self, at: &ViewContext<'_>) -> TlsEdgeView {
        TlsEdgeView {
            id: at.key.id.to_string(),
            uri: at.uri(),
            created_at: at.created_at.to_string(),
            description: String::new(),
            metadata: String::new(),
            hostports: Vec::new(),
            modules: self.module_views(at.key, at.site),
        }
    }
}
