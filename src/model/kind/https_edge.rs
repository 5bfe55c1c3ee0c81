//! HTTPS edge: hostports, and how clients connect to them. Its routes are a kind of their own.

use schemars::JsonSchema;
use serde::Serialize;

use super::https_edge_route::{HttpsEdgeRoute, HttpsEdgeRouteView};
use crate::model::{
    Kind, check,
    fault::{Check, Faults},
    module::{mutual_tls::MutualTls, slots, tls_termination::TlsTermination},
    resource::{KindInfo, Offers, Resource, ViewContext},
    snapshot::Entry,
};

slots! {
    /// A set of hostports that the gateway serves.
    pub struct HttpsEdge {
        /// Human-readable description, at most 255 bytes.
        #[schemars(length(max = 255))]
        pub description: String,
        /// Arbitrary data of yours, at most 4096 bytes.
        #[schemars(length(max = 4096))]
        pub metadata: String,
        /// Hostports served by the edge, as `host:port`.
        #[schemars(extend("items" = check::hostport_schema()))]
        pub hostports: Vec<String>,
    }

    /// The modules of an [`HttpsEdge`] in their response form.
    pub struct HttpsEdgeModules {
        /// Clients prove who they are with a certificate.
        mutual_tls: MutualTls,
        /// Where TLS ends, and the oldest version that is spoken.
        tls_termination: TlsTermination,
    }
}

/// The response form of [`HttpsEdge`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct HttpsEdgeView {
    /// Unique identifier.
    pub id: String,
    /// Human-readable description.
    pub description: String,
    /// Arbitrary data of yours.
    pub metadata: String,
    /// When it was created.
    pub created_at: String,
    /// Address of this edge.
    pub uri: String,
    /// Hostports served by the edge.
    pub hostports: Vec<String>,
    #[serde(flatten)]
    modules: HttpsEdgeModules,
    /// Routes of the edge.
    pub routes: Vec<HttpsEdgeRouteView>,
}

impl Check for HttpsEdge {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        faults.within("hostports", |faults| {
            faults.each(&self.hostports, |faults, hostport| check::hostport(faults, hostport))
        });
    }
}

impl Resource for HttpsEdge {
    const INFO: KindInfo = KindInfo {
        prefix: "edghts_",
        collection: "/edges/https",
        list: "https_edges",
        children: Some(Kind::HttpsEdgeRoute),
        offers: Offers::EDGE,
        slots: HttpsEdge::SLOTS,
        ..KindInfo::of::<HttpsEdge>(Kind::HttpsEdge, "HttpsEdge")
    };

    type View = HttpsEdgeView;

    fn view(&self, at: &Entry, cx: &ViewContext<'_>) -> HttpsEdgeView {
        let routes = cx
            .snapshot
            .children(&at.key, Kind::HttpsEdgeRoute)
            .filter_map(|route| Some(route.spec_as::<HttpsEdgeRoute>()?.view(route, cx)));
        HttpsEdgeView {
            id: at.key.id.to_string(),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            created_at: at.created_at.to_string(),
            uri: cx.site.uri(&at.key),
            hostports: self.hostports.clone(),
            modules: self.module_views(&at.key, cx),
            routes: routes.collect(),
        }
    }
}
