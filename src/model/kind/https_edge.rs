//! HTTPS edges: hostports, and how clients connect to them. Routes are a separate kind.

use std::sync::Arc;

use serde_json::Map;

use super::https_edge_route::{HttpsEdgeRoute, HttpsEdgeRouteView};
use super::prelude::*;
use crate::model::module::mutual_tls::MutualTls;
use crate::model::module::slots;
use crate::model::module::tls_termination::TlsTermination;
use crate::model::schema::{Constraint, condition};
use crate::model::traffic::host_port;

slots! {
    /// An HTTPS edge: a set of hostports that the gateway serves.
    pub struct HttpsEdge {
        /// A human-readable description, at most 255 bytes.
        #[schemars(length(max = 255))]
        pub description: String,
        /// Arbitrary user-defined data, at most 4096 bytes.
        #[schemars(length(max = 4096))]
        pub metadata: String,
        /// The hostports that the edge serves, as `host:port`.
        #[schemars(extend("items" = check::hostport_schema()))]
        pub hostports: Vec<String>,
        /// The other sources that may add routes to the edge, or serve hosts beside it. Only manifests set them (D103).
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schemars(skip)]
        pub delegates_to: Vec<Delegation>,
        /// The other sources whose certificates the edge presents. Only manifests set them (D112).
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schemars(skip)]
        pub certificates_from: Vec<String>,
        /// The modules that every route of the edge must have. Only manifests set them (D103).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(skip)]
        pub required_modules: Option<Arc<HttpsEdgeRoute>>,
    }

    /// The response form of an [`HttpsEdge`]'s modules.
    pub struct HttpsEdgeModules {
        /// Client certificate authentication.
        mutual_tls: MutualTls,
        /// Where TLS terminates, and the minimum TLS version.
        tls_termination: TlsTermination,
    }
}

impl HttpsEdge {
    /// The hostports: their places in the list, their texts, and the hosts in their normal form with the ports.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (usize, &str, (String, u16))> {
        self.hostports.iter().enumerate().filter_map(|(index, text)| Some((index, text.as_str(), host_port(text)?)))
    }
}

/// The consent of an edge's source to routes of another source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    /// The other source.
    pub source: String,
    /// The path prefix that its routes may match, such as `/docs/`. `/` delegates all paths, and, unless the edge has
    /// `required_modules`, hosts below its wildcards and other ports of its hosts.
    pub path_prefix: String,
}

view! {
    /// The response form of [`HttpsEdge`].
    pub struct HttpsEdgeView(spec: &HttpsEdge, at) {
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// The URI of this edge.
        pub uri: String = at.uri(),
        /// The hostports that the edge serves.
        pub hostports: Vec<String> = spec.hostports.clone(),
        #[serde(flatten)]
        modules: HttpsEdgeModules = spec.module_views(at.key, at.base_urls),
        /// The edge's routes.
        pub routes: Vec<HttpsEdgeRouteView> = at.child_views::<HttpsEdgeRoute>(),
    }
}

impl Check for HttpsEdge {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        faults.each_in("hostports", &self.hostports, |faults, hostport| check::hostport(faults, hostport));
    }
}

/// An edge that passes TLS through cannot hold modules that need decrypted traffic (D15).
fn pass_through() -> Vec<Constraint> {
    let unreadable = HttpsEdge::SLOTS.iter().filter(|slot| slot.needs_termination);
    let unset: Map<String, Value> = unreadable.map(|slot| (slot.name.to_owned(), json!({"type": "null"}))).collect();
    let passes_through = json!({
        "required": ["tls_termination"],
        "properties": {"tls_termination": {
            "type": "object",
            "required": ["terminate_at"],
            "properties": {"terminate_at": {"const": "upstream"}}
        }}
    });
    let rule = condition(passes_through, json!({"properties": unset}));
    vec![Constraint::keywords("HttpsEdge", rule)]
}

impl Resource for HttpsEdge {
    const INFO: KindInfo = KindInfo {
        offers: Offers::EDGE,
        slots: HttpsEdge::SLOTS,
        constraints: pass_through,
        hidden: &["delegates_to", "certificates_from", "required_modules"],
        ..KindInfo::new::<HttpsEdge>(Kind::HttpsEdge)
    };

    type View = HttpsEdgeView;

    fn example() -> Option<Value> {
        Some(json!({
            "description": "Public shop",
            "hostports": ["shop.example.com:443"],
            "tls_termination": {"min_version": "1.3"},
        }))
    }
}
