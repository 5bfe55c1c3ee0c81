//! What the rows are made of: certificates, full answers, and every module in its write form and its response form.

use serde_json::{Value, json};

macro_rules! storefront {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/", $path))
    };
}

pub(crate) const SHOP_CHAIN: &str = storefront!("certs/shop.chain.pem");
pub(crate) const SHOP_KEY: &str = storefront!("certs/shop.key.pem");
pub(crate) const WILDCARD_CHAIN: &str = storefront!("certs/wildcard.chain.pem");
pub(crate) const WILDCARD_KEY: &str = storefront!("certs/wildcard.key.pem");
pub(crate) const STAFF_CA: &str = storefront!("certs/staff-devices.pem");
pub(crate) const PARTNER_CA: &str = storefront!("certs/partner-devices.pem");
pub(crate) const WEB_CA: &str = storefront!("certs/web-ca.pem");
pub(crate) const IDP_METADATA: &str = storefront!("saml/idp.xml");

/// Expired in 2021; Ed25519; no subject but a common name; an extended usage that nobody knows.
pub(crate) const EXPIRED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBaTCCARugAwIBAgIDAP8BMAUGAytlcDAaMRgwFgYDVQQDDA9vbGQuZXhhbXBs
ZS5jb20wHhcNMjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjAaMRgwFgYDVQQD
DA9vbGQuZXhhbXBsZS5jb20wKjAFBgMrZXADIQDqr9YADTJia86F04wDLLUZO81a
uiHjfYlAhHdhgzryc6OBgzCBgDAMBgNVHRMBAf8EAjAAMA4GA1UdDwEB/wQEAwIH
gDAeBgNVHSUEFzAVBggrBgEFBQcDAgYJKwYBBAGDsgMHMCEGA1UdEQQaMBiHECAB
DbgAAAAAAAAAAAAAAAeHBMAAAgcwHQYDVR0OBBYEFMCn8PYQMURYKVuokwP/rijj
F3F6MAUGAytlcANBANwqVK+lr3jaJYu7YDB76/aXIqHMG0OZK31LTip5HtDIjyBG
hi8rBh7/p+m1tbibyWISrxiMFUgcBaANuVG2YwE=
-----END CERTIFICATE-----
";
/// Its key.
pub(crate) const EXPIRED_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIPzv2QF+X9fNo7QgeU1ahRx9MVVRTd+iU5Qr7nZUXxAq
-----END PRIVATE KEY-----
";

/// An object with some of its keys replaced.
pub(crate) fn with(mut base: Value, changes: Value) -> Value {
    if let (Some(base), Value::Object(changes)) = (base.as_object_mut(), changes) {
        base.extend(changes);
    }
    base
}

/// A whole IP restriction; what the row is not about is as it is by default.
pub(crate) fn ip_restriction(changes: Value) -> Value {
    let base = json!({
        "id": "{ipx_}", "uri": "{base}/ip_restrictions/{ipx_}", "created_at": "{time}", "description": "",
        "metadata": "", "enforced": false, "type": "dashboard", "ip_policies": []
    });
    with(base, changes)
}

/// A whole HTTPS edge.
pub(crate) fn edge(changes: Value) -> Value {
    let base = json!({
        "id": "{edghts_}", "description": "", "metadata": "", "created_at": "{time}",
        "uri": "{base}/edges/https/{edghts_}", "hostports": [], "mutual_tls": null, "tls_termination": null,
        "routes": []
    });
    with(base, changes)
}

/// A whole route of the edge `{edge}`.
pub(crate) fn route(changes: Value) -> Value {
    let base = json!({
        "edge_id": "{edge}", "id": "{edghtsrt_}", "created_at": "{time}", "match_type": "path_prefix", "match": "/",
        "uri": "{base}/edges/https/{edge}/routes/{edghtsrt_}", "description": "", "metadata": "", "backend": null,
        "ip_restriction": null, "circuit_breaker": null, "compression": null, "request_headers": null,
        "response_headers": null, "webhook_verification": null, "oauth": null, "saml": null, "oidc": null,
        "websocket_tcp_converter": null, "user_agent_filter": null, "jwt_validation": null, "policies": null
    });
    with(base, changes)
}

/// A module in all its forms.
pub(crate) struct Sample {
    pub slot: &'static str,
    /// The write form with every field set.
    pub full: Value,
    /// The answer to it.
    pub full_answer: Value,
    /// The write form with nothing but what must be there.
    pub least: Value,
    /// The answer to it: every key, with its default.
    pub least_answer: Value,
    /// A write form that is refused with 400, the code and the field.
    pub wrong: (Value, &'static str, &'static str),
}

/// A module whose answers are what was written, with the defaults for what was not.
fn same(
    slot: &'static str,
    full: Value,
    least: Value,
    defaults: Value,
    wrong: (Value, &'static str, &'static str),
) -> Sample {
    let full_answer = with(defaults.clone(), full.clone());
    let least_answer = with(defaults, least.clone());
    Sample { slot, full, full_answer, least, least_answer, wrong }
}

fn backend() -> Sample {
    let reference = |id: &str| json!({"id": id, "uri": format!("{{base}}/backends/{id}")});
    let answer = |enabled: bool, id: &str| json!({"enabled": enabled, "backend": reference(id)});
    Sample {
        slot: "backend",
        full: json!({"enabled": false, "backend_id": "bkd_full"}),
        full_answer: answer(false, "bkd_full"),
        least: json!({"backend_id": "bkd_least"}),
        least_answer: answer(true, "bkd_least"),
        wrong: (json!({}), "REQUIRED", "/backend_id"),
    }
}

fn ip_restriction_module() -> Sample {
    let policy = |id: &str| json!({"id": id, "uri": format!("{{base}}/ip_policies/{id}")});
    Sample {
        slot: "ip_restriction",
        full: json!({"enabled": false, "ip_policy_ids": ["ipp_1", "ipp_2"]}),
        full_answer: json!({"enabled": false, "ip_policies": [policy("ipp_1"), policy("ipp_2")]}),
        least: json!({}),
        least_answer: json!({"enabled": true, "ip_policies": []}),
        wrong: (json!({"ip_policy_ids": ["ipp_1", "a b"]}), "INVALID_FORMAT", "/ip_policy_ids/1"),
    }
}

fn policies() -> Sample {
    let inbound = json!({
        "expressions": ["req.Method == 'GET'", "true"],
        "actions": [
            {"type": "log", "config": {"Metadata": {"text": "seen", "number": 1.5, "list": [true, "x"]}}},
            {"type": "deny", "config": null}
        ],
        "name": "log and deny"
    });
    let outbound = json!({"expressions": [], "actions": [{"type": "deny", "config": null}], "name": ""});
    let answer = json!({"enabled": false, "inbound": [inbound], "outbound": [outbound]});
    Sample {
        slot: "policies",
        full: json!({"enabled": false, "inbound": [inbound], "outbound": [{"actions": [{"type": "deny"}]}]}),
        full_answer: answer,
        least: json!({}),
        least_answer: json!({"enabled": true, "inbound": [], "outbound": []}),
        wrong: (json!({"inbound": [{"actions": [{}]}]}), "REQUIRED", "/inbound/0/actions/0/type"),
    }
}

fn headers(slot: &'static str) -> Sample {
    let full =
        json!({"enabled": false, "add": {"X-From": "edge", "x-empty": ""}, "remove": ["Server", "x-powered-by"]});
    let wrong = (json!({"remove": ["a b"]}), "INVALID_FORMAT", "/remove/0");
    same(slot, full, json!({}), json!({"enabled": true, "add": {}, "remove": []}), wrong)
}

/// An OAuth provider's object with every key; `teams` and `organizations` only for GitHub.
pub(crate) fn app(changes: Value) -> Value {
    let base = json!({"client_id": "", "client_secret": "", "scopes": [], "email_addresses": [], "email_domains": []});
    with(base, changes)
}

/// GitHub's object with every key.
pub(crate) fn github(changes: Value) -> Value {
    with(app(json!({"teams": [], "organizations": []})), changes)
}

/// All eight providers, of which one is set.
pub(crate) fn provider(name: &str, app: Value) -> Value {
    let names = ["github", "facebook", "microsoft", "google", "linkedin", "gitlab", "twitch", "amazon"];
    let entries = names.into_iter().map(|it| (it.to_owned(), if it == name { app.clone() } else { Value::Null }));
    Value::Object(entries.collect())
}

fn oauth() -> Sample {
    let hub = json!({
        "client_id": "id", "client_secret": "hush-oauth", "scopes": ["read:org"], "email_addresses": ["a@example.com"],
        "email_domains": ["example.com"], "teams": ["shop/edge"], "organizations": ["shop"]
    });
    let full = json!({
        "enabled": false, "provider": {"github": hub}, "options_passthrough": true, "cookie_prefix": "shop.",
        "inactivity_timeout": 60, "maximum_duration": 3600, "auth_check_interval": 300
    });
    let defaults = json!({
        "enabled": true, "provider": null, "options_passthrough": false, "cookie_prefix": "edgewright.",
        "inactivity_timeout": 0, "maximum_duration": 0, "auth_check_interval": 0
    });
    let full_answer = with(full.clone(), json!({"provider": provider("github", hub)}));
    let least_answer = with(defaults, json!({"provider": provider("google", app(json!({})))}));
    let least = json!({"provider": {"google": {}}});
    Sample { slot: "oauth", full, full_answer, least, least_answer, wrong: (json!({}), "REQUIRED", "/provider") }
}

fn saml() -> Sample {
    let full = json!({
        "enabled": false, "options_passthrough": true, "cookie_prefix": "shop.", "inactivity_timeout": 60,
        "maximum_duration": 3600, "idp_metadata": IDP_METADATA, "force_authn": true, "allow_idp_initiated": false,
        "authorized_groups": ["staff"], "nameid_format": "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
    });
    let defaults = json!({
        "enabled": true, "options_passthrough": false, "cookie_prefix": "edgewright.", "inactivity_timeout": 0,
        "maximum_duration": 0, "force_authn": false, "allow_idp_initiated": true, "authorized_groups": [],
        "nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
        "entity_id": "{base}/saml/{route}", "assertion_consumer_service_url": "{base}/saml/{route}/acs",
        "single_logout_url": "{base}/saml/{route}/slo", "request_signing_certificate_pem": "{pem}",
        "metadata_url": "{base}/saml/{route}", "idp_metadata_url": ""
    });
    same("saml", full, json!({"idp_metadata": IDP_METADATA}), defaults, (json!({}), "REQUIRED", "/idp_metadata"))
}

fn oidc() -> Sample {
    let full = json!({
        "enabled": false, "options_passthrough": true, "cookie_prefix": "shop.", "inactivity_timeout": 60,
        "maximum_duration": 3600, "issuer": "https://idp.example.com", "client_id": "id",
        "client_secret": "hush-oidc", "scopes": ["openid", "email"]
    });
    let defaults = json!({
        "enabled": true, "options_passthrough": false, "cookie_prefix": "edgewright.", "inactivity_timeout": 0,
        "maximum_duration": 0, "issuer": "", "client_id": "", "client_secret": "", "scopes": []
    });
    same("oidc", full, json!({}), defaults, (json!({"scopes": "openid"}), "WRONG_TYPE", "/scopes"))
}

fn jwt_validation() -> Sample {
    let full = json!({
        "enabled": false,
        "issuer": {"allow_list": [{"value": "https://idp.example.com"}]},
        "audience": {"allow_list": [{"value": "shop"}, {"value": "search"}]},
        "http": {"tokens": [
            {"type": "at+jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "},
            {"type": "jwt", "method": "body", "name": "token", "prefix": ""},
            {"type": "it+jwt", "method": "header", "name": "X-Id", "prefix": ""}
        ]},
        "jws": {
            "allowed_algorithms": ["RS256"],
            "keys": {"sources": {"additional_jkus": ["https://idp.example.com/jwks"]}}
        }
    });
    let defaults = json!({
        "enabled": true, "issuer": {"allow_list": []}, "audience": {"allow_list": []}, "http": {"tokens": []},
        "jws": {"allowed_algorithms": [], "keys": {"sources": {"additional_jkus": []}}}
    });
    let wrong = (json!({"http": {"tokens": [{"type": "jwt"}]}}), "REQUIRED", "/http/tokens/0/method");
    same("jwt_validation", full, json!({}), defaults, wrong)
}

/// The fourteen modules of a route.
pub(crate) fn route_modules() -> Vec<Sample> {
    let switch = |slot| {
        let wrong = (json!({"enabled": "yes"}), "WRONG_TYPE", "/enabled");
        same(slot, json!({"enabled": false}), json!({}), json!({"enabled": true}), wrong)
    };
    let circuit_breaker = same(
        "circuit_breaker",
        json!({"enabled": false, "tripped_duration": 1, "rolling_window": 2, "num_buckets": 3, "volume_threshold": 4,
            "error_threshold_percentage": 0.25}),
        json!({}),
        json!({"enabled": true, "tripped_duration": 0, "rolling_window": 0, "num_buckets": 0, "volume_threshold": 0,
            "error_threshold_percentage": 0}),
        (json!({"num_buckets": 129}), "OUT_OF_RANGE", "/num_buckets"),
    );
    let webhook_verification = same(
        "webhook_verification",
        json!({"enabled": false, "provider": "Stripe", "secret": "hush-webhook"}),
        json!({"provider": "sns"}),
        json!({"enabled": true, "secret": ""}),
        (json!({"provider": "stripe"}), "REQUIRED", "/secret"),
    );
    let user_agent_filter = same(
        "user_agent_filter",
        json!({"enabled": false, "allow": ["(?i)curl/.*"], "deny": ["bot"]}),
        json!({}),
        json!({"enabled": true, "allow": [], "deny": []}),
        (json!({"deny": ["bot", 7]}), "WRONG_TYPE", "/deny/1"),
    );
    vec![
        backend(),
        ip_restriction_module(),
        circuit_breaker,
        switch("compression"),
        headers("request_headers"),
        headers("response_headers"),
        webhook_verification,
        oauth(),
        saml(),
        oidc(),
        switch("websocket_tcp_converter"),
        user_agent_filter,
        jwt_validation(),
        policies(),
    ]
}

/// The two modules of an HTTPS edge; the row has the authority `{ca}`.
pub(crate) fn edge_modules() -> Vec<Sample> {
    let authority = json!({"id": "{ca}", "uri": "{base}/certificate_authorities/{ca}"});
    let mutual_tls = Sample {
        slot: "mutual_tls",
        full: json!({"enabled": false, "certificate_authority_ids": ["{ca}"]}),
        full_answer: json!({"enabled": false, "certificate_authorities": [authority]}),
        least: json!({}),
        least_answer: json!({"enabled": true, "certificate_authorities": []}),
        wrong: (
            json!({"certificate_authority_ids": ["{ca}", "ca_unknown"]}),
            "UNKNOWN_REFERENCE",
            "/certificate_authority_ids/1",
        ),
    };
    let tls_termination = same(
        "tls_termination",
        json!({"enabled": false, "terminate_at": "edge", "min_version": "1.3"}),
        json!({}),
        json!({"enabled": true, "terminate_at": "edge", "min_version": "1.2"}),
        (json!({"terminate_at": "upstream", "min_version": "1.3"}), "NOT_ALLOWED", "/min_version"),
    );
    vec![mutual_tls, tls_termination]
}

/// The three modules of a TLS edge.
pub(crate) fn tls_edge_modules() -> Vec<Sample> {
    vec![ip_restriction_module(), policies(), backend()]
}
