//! The `oidc` module: requires a login with an OpenID Connect provider.

use super::prelude::*;
use super::session_fields;
use crate::model::secrets::{Secret, Secrets};

module! {
    /// Requires a login with an OpenID Connect provider.
    pub struct Oidc {
        ..login,
        /// The OpenID provider's URL, the base for discovery.
        pub issuer: String,
        /// The client ID, which is also the audience.
        pub client_id: String,
        /// The client secret.
        pub client_secret: Secret,
        /// The scopes to request.
        pub scopes: Vec<String>,
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

    fn lets_preflights_pass(&self) -> bool {
        self.options_passthrough
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        AccessChange::of_value(&former.issuer, &self.issuer)
            .and(AccessChange::of_value(&former.client_id, &self.client_id))
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
