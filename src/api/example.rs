//! Example bodies of whole resources for the OpenAPI document; a module's is in its own file. A test sends each to the
//! API.

use serde_json::{Value, json};

use crate::model::{Kind, resource::KindInfo};

/// An example body that creates a resource.
pub fn of_kind(kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::ApiKey => json!({"description": "CI of the shop team", "metadata": "{\"team\":\"shop\"}"}),
        Kind::IpRestriction => json!({
            "description": "Offices only",
            "enforced": true,
            "type": "dashboard",
            "ip_policy_ids": ["ipp_2f9XkQofficeBerlin00000001"],
        }),
        Kind::CertificateAuthority => json!({
            "description": "Partners",
            "ca_pem": include_str!("../../examples/storefront/certs/partner-devices.pem"),
        }),
        Kind::HttpsEdge => json!({
            "description": "Public shop",
            "hostports": ["shop.example.com:443"],
            "tls_termination": {"min_version": "1.3"},
        }),
        Kind::HttpsEdgeRoute => json!({
            "match_type": "path_prefix",
            "match": "/checkout",
            "description": "Basket and payment",
            "backend": {"backend_id": "bkd_2f9XkQcheckout000000000001"},
            "compression": {},
        }),
        Kind::EventSource => json!({"type": "ip_policy_created.v0"}),
        // No private key belongs in a public document, not even a demo key.
        Kind::TlsCertificate => return None,
        Kind::Owner | Kind::TlsEdge | Kind::EventSubscription => return None,
    })
}

/// An example body that changes a resource.
pub fn of_patch(info: &KindInfo) -> Value {
    match info.kind {
        Kind::EventSource => json!({}),
        _ => json!({"description": "Another description"}),
    }
}
