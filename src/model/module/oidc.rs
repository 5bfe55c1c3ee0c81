//! The `oidc` module: users log in with an OpenID provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    fault::{Check, Faults},
    key::Key,
    resource::ViewContext,
    secret::Secret,
    session,
};

/// Login with an OpenID provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oidc {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// When true, authentication is not enforced on HTTP OPTIONS requests (needed for CORS).
    pub options_passthrough: bool,
    /// Prefix of the session cookie; `edgewright.` by default.
    #[serde(deserialize_with = "session::cookie_prefix")]
    pub cookie_prefix: String,
    /// Seconds of inactivity after which the user must log in again.
    pub inactivity_timeout: u32,
    /// The most seconds of a session, after which the user must log in again.
    pub maximum_duration: u32,
    /// URL of the OpenID provider, the base for discovery.
    pub issuer: String,
    /// Client ID and audience.
    pub client_id: String,
    /// Client secret.
    pub client_secret: Secret,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
}

impl Default for Oidc {
    fn default() -> Self {
        Self {
            enabled: true,
            options_passthrough: false,
            cookie_prefix: session::COOKIE_PREFIX.into(),
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
    fn check(&self, _faults: &mut Faults) {}
}

impl Module for Oidc {
    const SLOT: &'static str = "oidc";
    type View = Self;

    fn view(&self, _host: &Key, _cx: &ViewContext<'_>) -> Self {
        self.clone()
    }
}
