//! The `webhook_verification` module: admits only requests with the webhook provider's signature.

use super::prelude::*;
use crate::model::diagnostics::suggest;
use crate::model::schema::{condition, filled_secret};
use crate::model::secrets::Secret;
use crate::syntax::text::printable;

/// The supported webhook providers (D16).
#[rustfmt::skip] // in rows
pub const PROVIDERS: &[&str] = &[
    "aftership", "airship", "alchemy", "autodesk", "bitbucket", "bolt", "box", "brex", "buildkite", "calendly",
    "castle", "chargify", "circleci", "clearbit", "clerk", "coinbase", "contentful", "docusign", "dropbox",
    "facebook_graph_api", "facebook_messenger", "frameio", "github", "gitlab", "go1", "graphcms", "heroku",
    "hostedhooks", "hubspot", "instagram", "intercom", "jira", "launch_darkly", "linear", "mailchimp", "mailgun",
    "microsoft_teams", "modern_treasury", "mongodb", "mux", "orb", "orbit", "pagerduty", "pinwheel", "plivo",
    "pusher", "sendgrid", "sentry", "shopify", "signal_sciences", "slack", "sns", "sonatype", "square", "stripe",
    "svix", "terraform", "tiktok", "trendmicro_conformity", "twilio", "twitter", "typeform", "vmware", "webex",
    "whatsapp", "worldline", "xero", "zendesk", "zoom",
];

/// The only provider that needs no secret, because it signs with a private key and publishes the public one.
pub(crate) const WITHOUT_SECRET: &str = "sns";

/// The only provider whose `secret` is a public key: it signs with ECDSA.
pub(crate) const WITH_PUBLIC_KEY: &str = "sendgrid";

module! {
    /// Verifies the signature of webhook requests.
    pub struct WebhookVerification {
        /// The webhook provider that sends the requests, ignoring case.
        #[schemars(extend("examples" = ["github"], "format" = "webhook-provider"), length(min = 1))]
        pub provider: String,
        /// The secret that verifies requests; required for every provider except `sns`.
        pub secret: Secret,
    }
}

impl Check for WebhookVerification {
    fn check(&self, faults: &mut Faults) {
        let provider = PROVIDERS.iter().find(|known| known.eq_ignore_ascii_case(&self.provider));
        match provider {
            None if self.provider.is_empty() => faults.report(Fault::required("provider")),
            None => {
                let message = format!("unsupported webhook provider `{}`", printable(&self.provider));
                let all = format!("use one of {}", PROVIDERS.join(", "));
                let help = suggest(&self.provider, PROVIDERS.iter().copied(), all);
                faults.report(Fault::new(Code::UnknownValue, message).at("provider").help(help));
            }
            Some(_) => {}
        }
        if provider.is_some_and(|known| *known != WITHOUT_SECRET) && self.secret.is_empty() {
            let message = format!("`secret` is required for the provider `{}`", self.provider);
            let fault = Fault::new(Code::Required, message).at("secret");
            faults.report(fault.help("copy it from the provider's webhook settings"));
        }
    }
}

impl Module for WebhookVerification {
    const SLOT: &'static str = "webhook_verification";
    const REQUIRED: &'static [&'static str] = &["provider"];
    type View = Self;

    fn restricts_access(&self) -> bool {
        true
    }

    /// A new secret admits the same provider.
    fn access_change(&self, former: &Self) -> AccessChange {
        AccessChange::of_value(&former.provider, &self.provider)
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        let note = format!("requires a signature by {}", self.provider);
        vec![Step::new(Stage::Authentication, StepEffect::Depends, note)]
    }

    fn example() -> Value {
        json!({"provider": "github", "secret": "example-webhook-secret"})
    }

    fn constraints() -> Vec<Constraint> {
        let filled = filled_secret();
        let rule = condition(
            json!({"required": ["provider"], "properties": {"provider": {"not": {"pattern": "^[sS][nN][sS]$"}}}}),
            json!({"required": ["secret"], "properties": {"secret": filled}}),
        );
        vec![Constraint::keywords("WebhookVerification", rule)]
    }
}
