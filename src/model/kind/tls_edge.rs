//! TLS edge: owned elsewhere; here are its modules.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{
    Kind,
    fault::{Check, Faults},
    module::{self, slots},
    resource::{KindInfo, Offers, Resource, ViewContext},
    snapshot::Entry,
};

slots! {
    /// The modules of a TLS edge.
    pub struct TlsEdge {}

    /// The modules of a [`TlsEdge`] in their response form.
    pub struct TlsEdgeModules {
        /// Which source addresses may access the endpoint.
        ip_restriction: module::ip_restriction::EndpointIpRestriction,
        /// What is done with traffic that matches an expression.
        policies: module::policies::Policies,
        /// Where the traffic goes.
        backend: module::backend::Backend,
    }
}

/// The response form of [`TlsEdge`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct TlsEdgeView {
    /// Identifier of the edge.
    pub id: String,
    /// Address of this edge.
    pub uri: String,
    /// When its first module was configured.
    pub created_at: String,
    #[serde(flatten)]
    modules: TlsEdgeModules,
}

impl Check for TlsEdge {
    fn check(&self, _faults: &mut Faults) {}
}

impl Resource for TlsEdge {
    const INFO: KindInfo = KindInfo {
        prefix: "edgtls_",
        collection: "/edges/tls",
        list: "tls_edges",
        implicit: true,
        offers: Offers::IMPLICIT,
        slots: TlsEdge::SLOTS,
        ..KindInfo::of::<TlsEdge>(Kind::TlsEdge, "TlsEdge")
    };

    type View = TlsEdgeView;

    fn view(&self, at: &Entry, cx: &ViewContext<'_>) -> TlsEdgeView {
        TlsEdgeView {
            id: at.key.id.to_string(),
            uri: cx.site.uri(&at.key),
            created_at: at.created_at.to_string(),
            modules: self.module_views(&at.key, cx),
        }
    }
}
