//! Signing in: the browser goes to the provider and comes back with a code, which is exchanged for an ID token (OpenID Connect
//! Core, 3.1; PKCE, RFC 7636).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quick_cache::sync::Cache;
use ring::digest::{SHA256, digest};

use super::claims::PersonClaims;
use super::config::{OidcConfig, is_local_http};
use super::failure::OidcFailure;
use super::id_token::{ExpectedClaims, IdToken};
use super::person::SignedInPerson;
use super::provider::{OidcProvider, TokenResponse};
use super::refused_people::name_digest;
use super::roles::{grants, rights};
use crate::server::auth::caller::Caller;
use crate::server::http::api_error::ApiError;
use crate::server::http::query;
use crate::server::prelude::*;
use crate::store::ids::random_secret;

/// The path to which a browser comes back.
pub(in crate::server) const CALLBACK: &str = "/ui/login/oidc/callback";
/// How many seconds somebody may take at the provider.
const LONGEST: i64 = 600;
/// The most device codes whose last question is known.
const MOST_ASKED: usize = 1024;

/// The provider of a server, and what its claims mean here.
pub(crate) struct OpenIdConnect {
    pub(super) config: OidcConfig,
    pub(super) provider: OidcProvider,
    /// When each device code was asked for last, by its digest.
    pub(super) asked: Cache<blake3::Hash, Instant>,
    base_url: String,
}

/// A sign-in that waits for the provider, which the browser keeps sealed.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::server) struct PendingLogin {
    state: String,
    nonce: String,
    /// The text whose digest the provider has.
    verifier: String,
    /// The page to go to afterwards, below the dashboard.
    pub next: String,
    /// The Unix time at which it ends.
    until: i64,
    /// Whether the browser sends cookies only over TLS.
    pub is_secure: bool,
}

impl OpenIdConnect {
    /// Prepares signing in. Asks the provider nothing yet.
    pub(crate) fn new(config: OidcConfig, base_url: &str) -> Self {
        let (provider, asked) = (OidcProvider::new(config.clone()), Cache::new(MOST_ASKED));
        Self { provider, asked, config, base_url: base_url.to_owned() }
    }

    /// The host of the provider.
    pub(in crate::server) fn host(&self) -> &str {
        self.config.host()
    }

    /// The public URL of the server, to which browsers come back.
    pub(in crate::server) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Begins to sign in: returns what the browser keeps, and where it goes.
    pub(in crate::server) fn begin(&self, next: String) -> Result<(PendingLogin, String), ApiError> {
        let is_secure = self.is_secure()?;
        let metadata = self.provider.metadata()?;
        let until = clock::now().as_second() + LONGEST;
        let pending = PendingLogin { state: random(), nonce: random(), verifier: random(), next, until, is_secure };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, pending.verifier.as_bytes()));
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("scope", &self.config.scope_text())
            .append_pair("state", &pending.state)
            .append_pair("nonce", &pending.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .finish();
        let endpoint = &metadata.authorization_endpoint;
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        Ok((pending, format!("{endpoint}{separator}{query}")))
    }

    /// Ends what [`Self::begin`] began, with the query that the provider has sent the browser back with.
    pub(in crate::server) fn finish(
        &self,
        pending: &PendingLogin,
        query: Option<&str>,
    ) -> Result<SignedInPerson, ApiError> {
        self.person_of_code(pending, query).map_err(ApiError::from)
    }

    fn person_of_code(&self, pending: &PendingLogin, query: Option<&str>) -> Result<SignedInPerson, OidcFailure> {
        let value = |name: &str| query::value(query, name);
        if value("state").as_ref() != Some(&pending.state) {
            return Err("the answer is for another sign-in (wrong state)".into());
        }
        if clock::now().as_second() > pending.until {
            return Err("it took more than ten minutes".into());
        }
        match value("iss") {
            Some(issuer) if issuer != self.config.issuer => return Err("the answer is from another issuer".into()),
            None if self.provider.metadata()?.authorization_response_iss_parameter_supported => {
                return Err("the answer does not say which issuer it is from".into());
            }
            _ => {}
        }
        match value("error") {
            Some(error) if error == "access_denied" => return Err("the provider says that access was denied".into()),
            Some(error) => {
                // Whoever has begun to sign in can write any text here.
                tracing::debug!("a browser came back from the provider with the error `{}`", printable(&error));
                return Err("the provider has refused the sign-in".into());
            }
            None => {}
        }
        let code = value("code").filter(|code| !code.is_empty()).ok_or("the answer has no code")?;
        let redirect_uri = self.redirect_uri();
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", redirect_uri.as_str()),
            ("code_verifier", pending.verifier.as_str()),
        ];
        match self.provider.token(&form)? {
            TokenResponse::Token(token) => self.person(&token, Some(&pending.nonce)),
            TokenResponse::Error(error) if error == "invalid_grant" => {
                Err("the provider does not accept the code".into())
            }
            TokenResponse::Error(error) => Err(OidcFailure::Away(format!("the token endpoint has answered {error}"))),
        }
    }

    /// The person of an ID token.
    pub(super) fn person(&self, token: &str, nonce: Option<&str>) -> Result<SignedInPerson, OidcFailure> {
        let OidcConfig { issuer, client_id, roles, name_claim, .. } = &self.config;
        let token = IdToken::parse(token)?;
        self.provider.check_signature(&token)?;
        let claims = token.into_claims(&ExpectedClaims { issuer, client_id, nonce, now: clock::now() })?;
        let claims = PersonClaims(&claims);
        let (name, grants) = (claims.name(name_claim), grants(roles, issuer, &claims));
        let is_verified = name.is_some_and(|name| claims.verifies(name));
        let refusable = claims.refusable_names(name_claim).map(name_digest).collect();
        Ok(SignedInPerson::new(issuer, claims.subject(), name, grants).with_names(is_verified, refusable))
    }

    /// A person as a caller, with the rights of today; none if there are none, or if the person is refused.
    pub(in crate::server) fn caller(&self, person: &SignedInPerson) -> Option<Caller> {
        if self.config.refused.has(person) {
            return None;
        }
        let rights = rights(&self.config.roles, &self.config.issuer, &person.grants)?;
        Some(person.caller(rights))
    }

    fn redirect_uri(&self) -> String {
        format!("{}{CALLBACK}", self.base_url)
    }

    /// Whether browsers come back over TLS. Only on this machine they need not.
    fn is_secure(&self) -> Result<bool, ApiError> {
        if self.base_url.starts_with("https://") || is_local_http(&self.base_url) {
            return Ok(self.base_url.starts_with("https://"));
        }
        let message =
            format!("signing in needs HTTPS, and the public URL of this server is {}", escaped(&self.base_url));
        let fault = Fault::new(Code::InsecureTransport, message);
        Err(ApiError::new(fault.help("set --base-url to the HTTPS URL of the server, and open the page there")))
    }
}

/// A text that nobody can guess: 256 random bits.
fn random() -> String {
    URL_SAFE_NO_PAD.encode(random_secret())
}
