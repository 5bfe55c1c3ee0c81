//! The modules that log users in: oauth with its rules (D16), oidc, and what a viewer sees of their secrets (D23).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{self, app, github, provider},
};

#[test]
fn login_modules() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [provider_rows(), app_rows(), session_rows(), secret_rows()].concat()
}

fn put(slot: &str) -> String {
    format!("PUT {ROUTE}/{slot}")
}

/// The oauth module with one provider, everything else by default.
fn answer(name: &str, app: Value) -> Value {
    json!({
        "enabled": true, "provider": provider(name, app), "options_passthrough": false, "cookie_prefix": "edgewright.",
        "inactivity_timeout": 0, "maximum_duration": 0, "auth_check_interval": 0
    })
}

fn provider_rows() -> Vec<Row> {
    let oauth = put("oauth");
    let mut rows = vec![
        row("GitHub has teams and organizations")
            .route()
            .send(&oauth, json!({"provider": {"github": {"teams": ["a/b"], "organizations": ["c"]}}}))
            .answers(200, answer("github", github(json!({"teams": ["a/b"], "organizations": ["c"]})))),
        row("a team is the slugs of its organization and of itself (D16)")
            .route()
            .send(
                &oauth,
                json!({"enabled": false, "provider": {"github": {"teams": ["a/b", "platform", "a/b/c", "", "@a/b",
                "https://github.com/orgs/a/teams/b"]}}}),
            )
            .fails(400, "INVALID_FORMAT", "/provider/github/teams/1")
            .also("INVALID_FORMAT", "/provider/github/teams/2")
            .also("INVALID_FORMAT", "/provider/github/teams/3")
            .also("INVALID_FORMAT", "/provider/github/teams/4")
            .also("INVALID_FORMAT", "/provider/github/teams/5")
            .says("`platform` is not a GitHub team in the form `org/team`")
            .send(&format!("PATCH {ROUTE}"), json!({"oauth": {"provider": {"github": {"teams": ["platform"]}}}}))
            .fails(400, "INVALID_FORMAT", "/oauth/provider/github/teams/0"),
        row("nobody else has them")
            .route()
            .send(&oauth, json!({"provider": {"gitlab": {"teams": ["a/b"]}}}))
            .fails(400, "UNKNOWN_FIELD", "/provider/gitlab/teams")
            .send(&oauth, json!({"provider": {"google": {"organizations": []}}}))
            .fails(400, "UNKNOWN_FIELD", "/provider/google/organizations"),
        row("a provider is needed (D16)")
            .route()
            .send(&oauth, json!({"provider": {}}))
            .fails(400, "REQUIRED", "/provider")
            .send(&oauth, json!({"provider": {"github": null}}))
            .fails(400, "REQUIRED", "/provider")
            .send(&oauth, json!({"provider": null}))
            .fails(400, "REQUIRED", "/provider"),
        row("two providers are too many, and both are named")
            .route()
            .send(&oauth, json!({"provider": {"github": {}, "amazon": {}}}))
            .fails(400, "NOT_ALLOWED", "/provider")
            .says("github")
            .says("amazon"),
        row("the unset providers may be sent as null, as they are answered")
            .route()
            .send(&oauth, json!({"provider": provider("twitch", json!({}))}))
            .answers(200, answer("twitch", app(json!({})))),
        row("a provider is one of eight, in lower case")
            .route()
            .send(&oauth, json!({"provider": {"GitHub": {}}}))
            .fails(400, "UNKNOWN_FIELD", "/provider/GitHub")
            .says("did you mean `github`?"),
        row("a provider is an object")
            .route()
            .send(&oauth, json!({"provider": {"github": true}}))
            .fails(400, "WRONG_TYPE", "/provider/github")
            .send(&oauth, json!({"provider": "github"}))
            .fails(400, "WRONG_TYPE", "/provider"),
    ];
    let others = ["facebook", "microsoft", "google", "linkedin", "gitlab", "twitch", "amazon"];
    rows.extend(others.map(|name| {
        let own = json!({"client_id": "i", "client_secret": "s", "scopes": ["x"], "email_addresses": ["a@b"],
            "email_domains": ["b"]});
        row(format!("login with {name}: eight keys, seven null"))
            .route()
            .send(&oauth, json!({"provider": {name: own}}))
            .answers(200, answer(name, own.clone()))
            .call(&format!("GET {ROUTE}"))
            .succeeds(200)
            .shows("/oauth", answer(name, own))
    }));
    rows
}

fn app_rows() -> Vec<Row> {
    let oauth = put("oauth");
    let with = |app: Value| json!({"provider": {"github": app}});
    vec![
        row("client_secret must accompany client_id (rule 1)")
            .route()
            .send(&oauth, with(json!({"client_id": "i"})))
            .fails(400, "REQUIRED", "/provider/github/client_secret")
            .send(&oauth, with(json!({"client_id": "i", "client_secret": null})))
            .fails(400, "REQUIRED", "/provider/github/client_secret")
            .send(&oauth, with(json!({"client_id": "i", "client_secret": ""})))
            .fails(400, "REQUIRED", "/provider/github/client_secret"),
        row("rule 1 in a route's body")
            .edge()
            .send(
                "POST /edges/https/{edge}/routes",
                json!({"match_type": "exact_path", "match": "/", "oauth": with(json!({"client_id": "i"}))}),
            )
            .fails(400, "REQUIRED", "/oauth/provider/github/client_secret")
            .route()
            .send(&format!("PATCH {ROUTE}"), json!({"oauth": with(json!({"client_id": "i"}))}))
            .fails(400, "REQUIRED", "/oauth/provider/github/client_secret"),
        row("scopes may not be set with the managed app (rule 2)")
            .route()
            .send(&oauth, with(json!({"scopes": ["x"]})))
            .fails(400, "NOT_ALLOWED", "/provider/github/scopes")
            .send(&oauth, with(json!({"client_id": "", "client_secret": "", "scopes": ["x"]})))
            .fails(400, "NOT_ALLOWED", "/provider/github/scopes")
            .send(&oauth, with(json!({"client_secret": "s", "scopes": ["x"]})))
            .fails(400, "NOT_ALLOWED", "/provider/github/scopes"),
        row("empty client_id, client_secret and scopes are unset (D6)")
            .route()
            .send(&oauth, with(json!({"client_id": "", "client_secret": "", "scopes": [], "email_domains": ["b"]})))
            .answers(200, answer("github", github(json!({"email_domains": ["b"]})))),
        row("both make an app of your own, with scopes or without")
            .route()
            .send(&oauth, with(json!({"client_id": "i", "client_secret": "s"})))
            .answers(200, answer("github", github(json!({"client_id": "i", "client_secret": "s"}))))
            .send(&oauth, with(json!({"client_id": "i", "client_secret": "s", "scopes": ["x"]})))
            .answers(200, answer("github", github(json!({"client_id": "i", "client_secret": "s", "scopes": ["x"]})))),
        row("a secret is text, and is not quoted when it is refused")
            .route()
            .send(&oauth, with(json!({"client_id": "i", "client_secret": {"from_env": "HOME"}})))
            .fails(400, "WRONG_TYPE", "/provider/github/client_secret")
            .send(&oauth, with(json!({"client_id": "hush-id", "client_secret": ["hush-list"]})))
            .fails(400, "WRONG_TYPE", "/provider/github/client_secret")
            .hides("hush"),
    ]
}

/// The fields that oauth, saml and oidc share.
fn session_rows() -> Vec<Row> {
    let modules = [
        ("oauth", json!({"provider": {"google": {}}})),
        ("saml", json!({"idp_metadata": samples::IDP_METADATA})),
        ("oidc", json!({})),
    ];
    let rows = modules.into_iter().flat_map(|(slot, least)| {
        let put = put(slot);
        let body = |changes: Value| samples::with(least.clone(), changes);
        let mut rows = vec![
            row(format!("{slot}: an empty or null cookie prefix is the default"))
                .route()
                .send(&put, body(json!({"cookie_prefix": ""})))
                .succeeds(200)
                .shows("/cookie_prefix", json!("edgewright."))
                .send(&put, body(json!({"cookie_prefix": null})))
                .succeeds(200)
                .shows("/cookie_prefix", json!("edgewright."))
                .send(&put, body(json!({"cookie_prefix": "shop."})))
                .succeeds(200)
                .shows("/cookie_prefix", json!("shop.")),
            row(format!("{slot}: a cookie prefix cannot end the cookie's name"))
                .route()
                .send(&put, body(json!({"cookie_prefix": "a; Domain=example.com"})))
                .fails(400, "INVALID_FORMAT", "/cookie_prefix")
                .send(&put, body(json!({"cookie_prefix": "a\r\nSet-Cookie: b=c"})))
                .fails(400, "INVALID_FORMAT", "/cookie_prefix")
                .send(&put, body(json!({"cookie_prefix": "a=b"})))
                .fails(400, "INVALID_FORMAT", "/cookie_prefix")
                .send(&put, body(json!({"cookie_prefix": "__Host-shop~"})))
                .succeeds(200)
                .shows("/cookie_prefix", json!("__Host-shop~")),
            row(format!("{slot}: options_passthrough is true or false"))
                .route()
                .send(&put, body(json!({"options_passthrough": true})))
                .succeeds(200)
                .shows("/options_passthrough", json!(true))
                .send(&put, body(json!({"options_passthrough": "true"})))
                .fails(400, "WRONG_TYPE", "/options_passthrough"),
        ];
        let seconds = if slot == "oauth" {
            &["inactivity_timeout", "maximum_duration", "auth_check_interval"][..]
        } else {
            &["inactivity_timeout", "maximum_duration"][..]
        };
        rows.extend(seconds.iter().map(|field| {
            let pointer = format!("/{field}");
            row(format!("{slot}: {field} is a uint32"))
                .route()
                .send(&put, body(json!({*field: 4_294_967_295_u32})))
                .succeeds(200)
                .shows(&pointer, json!(4_294_967_295_u32))
                .send(&put, body(json!({*field: 4_294_967_296_u64})))
                .fails(400, "OUT_OF_RANGE", &pointer)
                .send(&put, body(json!({*field: -1})))
                .fails(400, "OUT_OF_RANGE", &pointer)
                .send(&put, body(json!({*field: 1.5})))
                .fails(400, "WRONG_TYPE", &pointer)
                .send(&put, body(json!({*field: "60"})))
                .fails(400, "WRONG_TYPE", &pointer)
        }));
        rows
    });
    rows.collect()
}

/// A viewer reads everything but secrets, whichever way it comes to them (D23).
fn secret_rows() -> Vec<Row> {
    let modules = json!({
        "match_type": "path_prefix", "match": "/",
        "oauth": {"provider": {"google": {"client_id": "i", "client_secret": "hush-oauth"}}},
        "oidc": {"client_id": "i", "client_secret": "hush-oidc"},
        "webhook_verification": {"provider": "github", "secret": "hush-webhook"}
    });
    let mut masked = row("a viewer sees the mask in the place of every secret").edge().given(
        "route",
        "POST /edges/https/{edge}/routes",
        modules,
    );
    let ways = [
        (ROUTE, ""),
        ("/edges/https/{edge}", "/routes/0"),
        ("/edges/https", "/https_edges/0/routes/0"),
        ("/edges/https/{edge}/routes", "/routes/0"),
    ];
    for (path, at) in ways {
        // First those who may see them: what was kept for one must not be shown to the other.
        for (who, value) in [("editor", None), ("viewer", Some("********")), ("admin", None)] {
            masked = masked
                .call(&format!("GET {path}"))
                .by(who)
                .succeeds(200)
                .shows(&format!("{at}/oauth/provider/google/client_secret"), json!(value.unwrap_or("hush-oauth")))
                .shows(&format!("{at}/oidc/client_secret"), json!(value.unwrap_or("hush-oidc")))
                .shows(&format!("{at}/webhook_verification/secret"), json!(value.unwrap_or("hush-webhook")));
            if value.is_some() {
                masked = masked.hides("hush");
            }
        }
    }
    for slot in ["oauth", "oidc", "webhook_verification"] {
        masked = masked
            .call(&format!("GET {ROUTE}/{slot}"))
            .by("viewer")
            .succeeds(200)
            .says("********")
            .hides("hush")
            .call(&format!("GET {ROUTE}/{slot}"))
            .by("editor")
            .succeeds(200)
            .says("hush-");
    }
    let unset = row("a secret that is not set is empty for a viewer too")
        .route()
        .send(&put("oidc"), json!({}))
        .succeeds(200)
        .call(&format!("GET {ROUTE}/oidc"))
        .by("viewer")
        .succeeds(200)
        .shows("/client_secret", json!(""));
    let mut written = row("a mask is not written in the place of a secret (D63)").route();
    let certificate = json!({"certificate_pem": samples::SHOP_CHAIN, "private_key_pem": "********"});
    for (slot, field, module) in [
        (
            "oauth",
            "/provider/google/client_secret",
            json!({"provider": {"google": {"client_id": "i", "client_secret": "********"}}}),
        ),
        ("oidc", "/client_secret", json!({"client_id": "i", "client_secret": "********"})),
        ("webhook_verification", "/secret", json!({"provider": "github", "secret": "********"})),
    ] {
        written = written
            .send(&put(slot), module.clone())
            .fails(400, "INVALID_FORMAT", field)
            .says("is the mask of a secret")
            .send(&format!("PATCH {ROUTE}"), json!({slot: module}))
            .fails(400, "INVALID_FORMAT", &format!("/{slot}{field}"))
            .call(&format!("GET {ROUTE}/{slot}"))
            .fails(404, "NOT_FOUND", "");
    }
    written = written.send("POST /tls_certificates", certificate).fails(400, "INVALID_FORMAT", "/private_key_pem");
    vec![masked, unset, written]
}
