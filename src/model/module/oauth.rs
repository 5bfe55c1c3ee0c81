//! The `oauth` module: requires a login with an OAuth identity provider.

use super::prelude::*;
use super::session_fields;
use crate::model::schema::{condition, filled_secret};
use crate::model::secrets::Secret;
use crate::syntax::text::printable;

module! {
    /// Requires a login with an OAuth identity provider.
    pub struct Oauth {
        /// The identity provider; set exactly one.
        pub provider: Provider,
        ..login,
        /// Seconds between checks of the user's state at the identity provider.
        pub auth_check_interval: u32,
    }
}

/// The identity providers. Exactly one must be set; the others are null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// Login with GitHub.
    pub github: Option<GithubApp>,
    /// Login with Facebook.
    pub facebook: Option<OauthApp>,
    /// Login with Microsoft.
    pub microsoft: Option<OauthApp>,
    /// Login with Google.
    pub google: Option<OauthApp>,
    /// Login with LinkedIn.
    pub linkedin: Option<OauthApp>,
    /// Login with GitLab.
    pub gitlab: Option<OauthApp>,
    /// Login with Twitch.
    pub twitch: Option<OauthApp>,
    /// Login with Amazon.
    pub amazon: Option<OauthApp>,
}

/// An OAuth app, and the users who have access.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OauthApp {
    /// The app's client ID; defaults to the service's managed app.
    pub client_id: String,
    /// The app's client secret; required with `client_id`.
    pub client_secret: Secret,
    /// The scopes to request; only with your own app.
    pub scopes: Vec<String>,
    /// The email addresses of users who have access.
    pub email_addresses: Vec<String>,
    /// The email domains of users who have access.
    pub email_domains: Vec<String>,
}

/// A GitHub OAuth app, which can also check memberships.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GithubApp {
    /// The app's client ID; defaults to the service's managed app.
    pub client_id: String,
    /// The app's client secret; required with `client_id`.
    pub client_secret: Secret,
    /// The GitHub scopes to request; only with your own app.
    pub scopes: Vec<String>,
    /// The email addresses of users who have access.
    pub email_addresses: Vec<String>,
    /// The email domains of users who have access.
    pub email_domains: Vec<String>,
    /// The teams whose members have access, as `<org>/<team>` slugs.
    #[schemars(inner(regex(pattern = r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")))]
    pub teams: Vec<String>,
    /// The organizations whose members have access, as slugs.
    pub organizations: Vec<String>,
}

/// The fields that the apps of all providers share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommonApp<'a> {
    /// The provider's key.
    pub provider: &'static str,
    /// The app's client ID.
    pub client_id: &'a str,
    /// The app's client secret.
    pub client_secret: &'a Secret,
    /// The scopes to request.
    pub scopes: &'a [String],
    /// The email addresses of users who have access.
    pub email_addresses: &'a [String],
    /// The email domains of users who have access.
    pub email_domains: &'a [String],
}

impl Provider {
    /// Returns the app of each provider that is set.
    pub(crate) fn apps(&self) -> Vec<CommonApp<'_>> {
        let all = self;
        macro_rules! apps {
            ($($provider:ident)*) => {
                [$(all.$provider.as_ref().map(|app| CommonApp {
                    provider: stringify!($provider),
                    client_id: &app.client_id,
                    client_secret: &app.client_secret,
                    scopes: &app.scopes,
                    email_addresses: &app.email_addresses,
                    email_domains: &app.email_domains,
                }),)*]
            };
        }
        apps!(github facebook microsoft google linkedin gitlab twitch amazon).into_iter().flatten().collect()
    }

    /// Returns the teams and organizations whose members have access.
    fn memberships(&self) -> [&[String]; 2] {
        match &self.github {
            Some(app) => [app.teams.as_slice(), app.organizations.as_slice()],
            None => [&[], &[]],
        }
    }
}

impl Check for Oauth {
    fn check(&self, faults: &mut Faults) {
        session_fields::check_cookie_prefix(faults, &self.cookie_prefix);
        faults.within("provider", |faults| {
            let apps = self.provider.apps();
            let names: Vec<&str> = apps.iter().map(|app| app.provider).collect();
            if apps.is_empty() {
                let fault = Fault::new(Code::Required, "an identity provider is required").of_key();
                faults.report(fault.help("set exactly one, such as `github: {}`"));
            } else if apps.len() > 1 {
                let message = format!("only one identity provider can be set (found {})", names.join(", "));
                faults.report(Fault::new(Code::NotAllowed, message).of_key().help("keep one and remove the others"));
            }
            for app in apps {
                faults.within(app.provider, |faults| check_app(faults, app));
            }
            if let Some(app) = &self.provider.github {
                faults.within("github", |faults| check_teams(faults, &app.teams));
            }
        });
    }
}

/// Checks validation rules 1 and 2 of the specification; empty values count as unset (D6).
fn check_app(faults: &mut Faults, app: CommonApp<'_>) {
    let CommonApp { client_id, client_secret, scopes, .. } = app;
    if !client_id.is_empty() && client_secret.is_empty() {
        let fault = Fault::new(Code::Required, "`client_secret` is required when `client_id` is set");
        let help = "set `client_secret` to the app's secret, or remove `client_id` to use the managed app";
        faults.report(fault.at("client_secret").help(help));
    } else if !scopes.is_empty() && (client_id.is_empty() || client_secret.is_empty()) {
        let fault = Fault::new(Code::NotAllowed, "`scopes` cannot be set for the managed OAuth app").of_key();
        let help = "set `client_id` and `client_secret` of your own app, or remove `scopes`";
        faults.report(fault.at("scopes").help(help));
    }
}

/// Checks the format of teams. A team slug is unique only within its organization.
fn check_teams(faults: &mut Faults, teams: &[String]) {
    let is_team =
        |text: &str| text.split_once('/').is_some_and(|(org, team)| is_github_slug(org) && is_github_slug(team));
    faults.each_in("teams", teams, |faults, team| {
        if !is_team(team) {
            let message = format!("`{}` is not a GitHub team in the form `org/team`", printable(team));
            let help = "use the slugs of the organization and the team, such as `example-shop/platform`";
            faults.report(Fault::new(Code::InvalidFormat, message).help(help));
        }
    });
}

/// Whether a text can be the slug of a GitHub organization or team.
pub(crate) fn is_github_slug(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

impl Module for Oauth {
    const SLOT: &'static str = "oauth";
    const REQUIRED: &'static [&'static str] = &["provider"];
    const IS_LOGIN: bool = true;
    type View = Self;

    fn access_lists(&self) -> Vec<(String, usize)> {
        let mut lists = Vec::new();
        for app in self.provider.apps() {
            for (field, length) in
                [("email_addresses", app.email_addresses.len()), ("email_domains", app.email_domains.len())]
            {
                lists.push((format!("provider.{}.{field}", app.provider), length));
            }
        }
        if let Some(app) = &self.provider.github {
            lists.push(("provider.github.teams".into(), app.teams.len()));
            lists.push(("provider.github.organizations".into(), app.organizations.len()));
        }
        lists
    }

    fn lets_preflights_pass(&self) -> bool {
        self.options_passthrough
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        match (former.provider.apps().as_slice(), self.provider.apps().as_slice()) {
            ([was], [is]) => {
                let [had, has] = [&former.provider, &self.provider].map(Provider::memberships);
                let [had, has] = [(was, had), (is, has)].map(|(app, [teams, organizations])| {
                    [app.email_addresses, app.email_domains, teams, organizations]
                });
                AccessChange::of_value(&(was.provider, was.client_id), &(is.provider, is.client_id))
                    .and(AccessChange::of_open_lists(&had, &has))
            }
            _ => AccessChange::of_value(former, self),
        }
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        let provider = self.provider.apps().first().map_or("a provider", |app| app.provider);
        vec![Step::login(request, self.options_passthrough, provider)]
    }

    fn example() -> Value {
        json!({
            "provider": {"github": {
                "client_id": "Iv1.example",
                "client_secret": "example-client-secret",
                "scopes": ["read:org"],
                "teams": ["example-shop/platform"],
            }},
            "inactivity_timeout": 1800,
            "maximum_duration": 28800,
            "auth_check_interval": 300,
        })
    }

    fn constraints() -> Vec<Constraint> {
        let filled = json!({"type": "string", "minLength": 1});
        let given = filled_secret();
        let some = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
        let own_app = json!({
            "required": ["client_id", "client_secret"],
            "properties": {"client_id": filled, "client_secret": given}
        });
        let app = json!({"allOf": [
            condition(
                json!({"required": ["client_id"], "properties": {"client_id": filled}}),
                json!({"required": ["client_secret"], "properties": {"client_secret": given}}),
            ),
            condition(json!({"required": ["scopes"], "properties": {"scopes": some}}), own_app),
        ]});
        let providers = ["github", "facebook", "microsoft", "google", "linkedin", "gitlab", "twitch", "amazon"];
        let set = json!({"type": "object", "additionalProperties": true});
        let one = providers.map(|provider| json!({"required": [provider], "properties": {provider: set}}));
        vec![
            Constraint::keywords("OauthApp", app.clone()),
            Constraint::keywords("GithubApp", app),
            // Beside `properties`, generators would take `oneOf` for eight types.
            Constraint::keywords("Provider", json!({"allOf": [{"oneOf": one}]})),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_is_two_slugs() {
        let places = |teams: &[&str]| {
            let mut faults = Faults::new();
            check_teams(&mut faults, &teams.iter().map(|team| (*team).to_owned()).collect::<Vec<_>>());
            faults.into_vec().into_iter().map(|fault| fault.path.to_string()).collect::<Vec<_>>()
        };
        assert!(places(&["example-shop/release-managers", "a_b/c.d"]).is_empty());
        for bad in ["", "/", "platform", "a/", "/a", "a/b/c", "@a/b", "a / b", "https://github.com/orgs/a/teams/b"] {
            assert_eq!(places(&["a/b", bad]), ["/teams/1"], "{bad}");
        }
        for bad in ["", "Example Shop", "@example-shop", "example-shop/", "https://github.com/example-shop"] {
            assert!(!is_github_slug(bad), "{bad}");
        }
    }
}
