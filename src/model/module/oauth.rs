//! The `oauth` module: users log in with an account of an identity provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    code::Code,
    fault::{Check, Fault, Faults},
    key::Key,
    resource::ViewContext,
    secret::Secret,
    session,
};

/// Login with an identity provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Oauth {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// The identity provider; exactly one is set.
    pub provider: Provider,
    /// When true, authentication is not enforced on HTTP OPTIONS requests (needed for CORS).
    pub options_passthrough: bool,
    /// Prefix of the session cookie; `edgewright.` by default.
    #[serde(deserialize_with = "session::cookie_prefix")]
    pub cookie_prefix: String,
    /// Seconds of inactivity after which the user must log in again.
    pub inactivity_timeout: u32,
    /// The most seconds of a session, after which the user must log in again.
    pub maximum_duration: u32,
    /// Seconds after which the user's state is read again from the identity provider and checked.
    pub auth_check_interval: u32,
}

impl Default for Oauth {
    fn default() -> Self {
        Self {
            enabled: true,
            provider: Provider::default(),
            options_passthrough: false,
            cookie_prefix: session::COOKIE_PREFIX.into(),
            inactivity_timeout: 0,
            maximum_duration: 0,
            auth_check_interval: 0,
        }
    }
}

/// The identity providers. Exactly one holds a configuration, the others are null (D16).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// Login with GitHub.
    pub github: Option<GithubApp>,
    /// Login with Facebook.
    pub facebook: Option<App>,
    /// Login with Microsoft.
    pub microsoft: Option<App>,
    /// Login with Google.
    pub google: Option<App>,
    /// Login with LinkedIn.
    pub linkedin: Option<App>,
    /// Login with GitLab.
    pub gitlab: Option<App>,
    /// Login with Twitch.
    pub twitch: Option<App>,
    /// Login with Amazon.
    pub amazon: Option<App>,
}

/// An OAuth app and the users who may come in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct App {
    /// The app's client ID; without it, the service's own managed app is used.
    pub client_id: String,
    /// The app's client secret; goes with `client_id`.
    pub client_secret: Secret,
    /// Scopes of the provider; only with an app of your own.
    pub scopes: Vec<String>,
    /// Emails of users who are allowed access.
    pub email_addresses: Vec<String>,
    /// Email domains of users who are allowed access.
    pub email_domains: Vec<String>,
}

/// An OAuth app of GitHub, where membership can be asked for as well.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GithubApp {
    /// The app's client ID; without it, the service's own managed app is used.
    pub client_id: String,
    /// The app's client secret; goes with `client_id`.
    pub client_secret: Secret,
    /// Scopes of GitHub; only with an app of your own.
    pub scopes: Vec<String>,
    /// Emails of users who are allowed access.
    pub email_addresses: Vec<String>,
    /// Email domains of users who are allowed access.
    pub email_domains: Vec<String>,
    /// Teams whose members are allowed access, as `<org>/<team>` slugs.
    pub teams: Vec<String>,
    /// Organizations whose members are allowed access, as slugs.
    pub organizations: Vec<String>,
}

/// What the apps of all providers have in common.
#[derive(Debug, Clone, Copy)]
pub struct CommonApp<'a> {
    /// The provider's key.
    pub provider: &'static str,
    /// The app's client ID.
    pub client_id: &'a str,
    /// The app's client secret.
    pub client_secret: &'a Secret,
    /// Scopes of the provider.
    pub scopes: &'a [String],
    /// Emails of users who are allowed access.
    pub email_addresses: &'a [String],
    /// Email domains of users who are allowed access.
    pub email_domains: &'a [String],
}

impl Provider {
    /// The app of each provider that is set.
    pub fn apps(&self) -> Vec<CommonApp<'_>> {
        let github = self.github.iter().map(|app| CommonApp {
            provider: "github",
            client_id: &app.client_id,
            client_secret: &app.client_secret,
            scopes: &app.scopes,
            email_addresses: &app.email_addresses,
            email_domains: &app.email_domains,
        });
        let others = [
            ("facebook", &self.facebook),
            ("microsoft", &self.microsoft),
            ("google", &self.google),
            ("linkedin", &self.linkedin),
            ("gitlab", &self.gitlab),
            ("twitch", &self.twitch),
            ("amazon", &self.amazon),
        ];
        let others = others.into_iter().filter_map(|(provider, app)| {
            let app = app.as_ref()?;
            Some(CommonApp {
                provider,
                client_id: &app.client_id,
                client_secret: &app.client_secret,
                scopes: &app.scopes,
                email_addresses: &app.email_addresses,
                email_domains: &app.email_domains,
            })
        });
        github.chain(others).collect()
    }
}

impl Check for Oauth {
    fn check(&self, faults: &mut Faults) {
        faults.within("provider", |faults| {
            let apps = self.provider.apps();
            match apps.as_slice() {
                [_] => {}
                [] => faults.report(
                    Fault::new(Code::Required, "an identity provider is needed")
                        .of_key()
                        .help("set exactly one, such as `github: {}`"),
                ),
                several => {
                    let names: Vec<_> = several.iter().map(|app| app.provider).collect();
                    let message =
                        format!("exactly one identity provider can be set, and here are {}", names.join(", "));
                    faults.report(Fault::new(Code::NotAllowed, message).of_key());
                }
            }
            for app in apps {
                faults.within(app.provider, |faults| check_app(faults, app));
            }
        });
    }
}

/// Validation rules 1 and 2 of the specification; empty values count as unset (D6).
fn check_app(faults: &mut Faults, app: CommonApp<'_>) {
    let CommonApp { client_id, client_secret, scopes, .. } = app;
    if !client_id.is_empty() && client_secret.is_empty() {
        faults.within("client_secret", |faults| {
            faults.report(Fault::new(Code::Required, "`client_secret` must accompany `client_id`"))
        });
    } else if !scopes.is_empty() && (client_id.is_empty() || client_secret.is_empty()) {
        faults.within("scopes", |faults| {
            faults.report(
                Fault::new(Code::NotAllowed, "`scopes` may not be set when the managed OAuth app is used")
                    .of_key()
                    .help("set client_id and client_secret of an app of your own"),
            );
        });
    }
}

impl Module for Oauth {
    const SLOT: &'static str = "oauth";
    type View = Self;

    fn view(&self, _host: &Key, _cx: &ViewContext<'_>) -> Self {
        self.clone()
    }
}
