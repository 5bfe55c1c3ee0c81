//! Example bodies for the OpenAPI document. A test sends each one to the API.

use serde_json::{Value, json};

use crate::model::{Kind, module::Slot, resource::KindInfo};

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

/// An example body that configures a module.
pub fn of_module(slot: &Slot) -> Value {
    let headers = json!({"add": {"X-Edge": "shop"}, "remove": ["Server"]});
    match slot.name {
        "backend" => json!({"backend_id": "bkd_2f9XkQcheckout000000000001"}),
        "ip_restriction" => json!({"ip_policy_ids": ["ipp_2f9XkQofficeBerlin00000001"]}),
        "circuit_breaker" => json!({
            "tripped_duration": 30,
            "rolling_window": 60,
            "num_buckets": 12,
            "volume_threshold": 200,
            "error_threshold_percentage": 0.25,
        }),
        "request_headers" | "response_headers" => headers,
        "webhook_verification" => json!({"provider": "github", "secret": "example-webhook-secret"}),
        "oauth" => json!({
            "provider": {"github": {
                "client_id": "Iv1.example",
                "client_secret": "example-client-secret",
                "scopes": ["read:org"],
                "teams": ["example-shop/platform"],
            }},
            "inactivity_timeout": 1800,
            "maximum_duration": 28800,
            "auth_check_interval": 300,
        }),
        "saml" => json!({
            "idp_metadata": "<EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://idp.example.com\"/>",
            "authorized_groups": ["finance"],
        }),
        "oidc" => json!({
            "issuer": "https://login.example.com",
            "client_id": "edge",
            "client_secret": "example-client-secret",
            "scopes": ["openid", "email"],
        }),
        "user_agent_filter" => json!({"allow": ["^shop-app/"], "deny": ["(?i)bot"]}),
        "jwt_validation" => json!({
            "issuer": {"allow_list": [{"value": "https://login.example.com"}]},
            "audience": {"allow_list": [{"value": "shop"}]},
            "http": {"tokens": [{"type": "jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "}]},
            "jws": {
                "allowed_algorithms": ["RS256"],
                "keys": {"sources": {"additional_jkus": ["https://login.example.com/jwks.json"]}},
            },
        }),
        "policies" => json!({
            "inbound": [{
                "name": "log-admin",
                "expressions": ["req.URL.contains('/admin')"],
                "actions": [{"type": "log", "config": {"Metadata": {"area": "admin"}}}, {"type": "deny"}],
            }],
            "outbound": [],
        }),
        "mutual_tls" => json!({"certificate_authority_ids": []}),
        "tls_termination" => json!({"terminate_at": "edge", "min_version": "1.3"}),
        _ => json!({"enabled": true}),
    }
}
