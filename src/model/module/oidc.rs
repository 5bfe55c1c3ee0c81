//! The `oidc` module: requires a login with an OpenID Connect provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::model::{
    base_urls::Site,
    diagnostics::fault::{Check, Faults},
    key::Key,
    secrets::secret::{Secret, Secrets},
    session_fields,
    traffic::{Step, TracedRequest},
};

/// Requires a login with an OpenID Connect provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oidc {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// Whether HTTP OPTIONS requests pass without authentication, as CORS requires.
    pub options_passthrough: bool,
    /// The prefix of session cookie names; defaults to `edgewright.`.
    #[serde(deserialize_with = "session_fields::cookie_prefix")]
    #[schemars(extend("pattern" = session_fields::COOKIE_PREFIX_PATTERN))]
    pub cookie_prefix: String,
    /// Seconds of inactivity after which users must log in again.
    pub inactivity_timeout: u32,
    /// Maximum length of a session in seconds, after which users must log in again.
    pub maximum_duration: u32,
    /// The OpenID provider's URL, the base for discovery.
    pub issuer: String,
    /// The client ID, which is also the audience.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
    /// The scopes to request.
    pub scopes: Vec<String>,
}

impl Default for Oidc {
    fn default() -> Self {
        Self {
            enabled: true,
            options_passthrough: false,
            cookie_prefix: session_fields::COOKIE_PREFIX.into(),
            inactivity_timeout: 0,
            maximum_duration: 0,
            issuer: String::new(),
            client_id: String::new(),
            client_secret: Secret::default(),
            scopes: Vec::new(),
        }
    }
}

impl Check for Oidc {
    fn check(&self, faults: &mut Faults) {
        session_fields::check_cookie_prefix(faults, &self.cookie_prefix);
    }
}

impl Module for Oidc {
    const SLOT: &'static str = "oidc";
    const IS_LOGIN: bool = true;
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn restricts_access(&self) -> bool {
        true
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        vec![Step::login(request, self.options_passthrough, &Secrets::Planned.reviewed(&self.issuer))]
    }

    fn example() -> Value {
        json!({
            "issuer": "https://login.example.com",
            "client_id": "edge",
            "client_secret": "example-client-secret",
            "scopes": ["openid", "email"],
        })
    }
}
