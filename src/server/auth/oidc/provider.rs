//! A provider over HTTP: its metadata and keys, which are kept for a while, and requests for tokens (OpenID Connect
//! Discovery; RFC 6749).
//!
//! Nothing is asked for before somebody signs in, so a provider that is away does not delay a start. What was read keeps its use
//! while the provider is away. A token with a wrong signature makes the keys be read again, because the provider may have a new one,
//! also under the name of another; but only from time to time: anybody can make up a token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::http::Response;
use ureq::{Agent, Body};

use super::config::{OidcConfig, is_confidential, is_local_http};
use super::failure::OidcFailure;
use super::id_token::IdToken;
use super::jwk::{ProviderKey, keys_of};
use crate::http_client;
use crate::model::Secret;
use crate::server::prelude::*;

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(3);
/// The timeout of a whole request.
const RESPONSE: Duration = Duration::from_secs(10);
/// The longest response.
const MOST_BYTES: u64 = 1 << 20;
/// How long metadata and keys are used before they are read again.
const FRESH: Duration = Duration::from_secs(3600);
/// How long keys are used that cannot be read again: a key that the provider withdraws must end.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long not to ask a provider again that did not answer: each attempt holds a place.
const PAUSE: Duration = Duration::from_secs(2);
/// How often wrong signatures make the keys be read again.
const REREAD: Duration = Duration::from_secs(10);
/// How long the files and the command of the configuration are not read again: each request would wait for them.
const SETTLED: Duration = Duration::from_secs(5);
/// Where a provider publishes its metadata.
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// The metadata that a provider publishes.
#[derive(Debug, Deserialize)]
pub(super) struct ProviderMetadata {
    issuer: String,
    pub authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    pub device_authorization_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether the provider names itself when a browser comes back (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// A provider, and what is known of it.
pub(super) struct OidcProvider {
    config: OidcConfig,
    /// Held during a request: others wait for its result.
    known: Lock<KnownProvider>,
    /// Held while it is read.
    client: Lock<Option<(Instant, ProviderClient)>>,
}

/// The client for requests to the provider.
#[derive(Clone)]
struct ProviderClient {
    agent: Agent,
    /// The secret of this server there, if it has one, or why it cannot be read. Not every request needs it.
    secret: Result<Option<Secret>, String>,
}

#[derive(Default)]
struct KnownProvider {
    metadata: Option<(Instant, Arc<ProviderMetadata>)>,
    keys: Option<(Instant, Arc<[ProviderKey]>)>,
    /// When a wrong signature last made the keys be read.
    reread: Option<Instant>,
    /// When the provider last did not answer, and why.
    away: Option<(Instant, String)>,
}

/// The answer to a request for a token.
pub(super) enum TokenResponse {
    /// An ID token, not verified yet.
    Token(String),
    /// The code of an error.
    Error(String),
}

impl OidcProvider {
    pub(super) fn new(config: OidcConfig) -> Self {
        Self { config, known: Lock::default(), client: Lock::default() }
    }

    /// The metadata of the provider.
    pub(super) fn metadata(&self) -> Result<Arc<ProviderMetadata>, OidcFailure> {
        self.metadata_of(&mut self.known.lock()).map_err(OidcFailure::Away)
    }

    fn metadata_of(&self, known: &mut KnownProvider) -> Result<Arc<ProviderMetadata>, String> {
        if let Some((since, metadata)) = &known.metadata
            && since.elapsed() < FRESH
        {
            return Ok(Arc::clone(metadata));
        }
        match known.attempt(|| self.read_metadata()) {
            Ok(metadata) => {
                let metadata = Arc::new(metadata);
                known.metadata = Some((Instant::now(), Arc::clone(&metadata)));
                Ok(metadata)
            }
            Err(reason) => known.metadata.as_ref().map(|(_, metadata)| Arc::clone(metadata)).ok_or(reason),
        }
    }

    fn read_metadata(&self) -> Result<ProviderMetadata, String> {
        let issuer = &self.config.issuer;
        let url = format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/'));
        let metadata: ProviderMetadata = serde_json::from_value(self.get(&url)?)
            .map_err(|error| format!("{url} is not the metadata of a provider: {error}"))?;
        if metadata.issuer != *issuer {
            return Err(format!("{url} is about the issuer `{}`", printable(&metadata.issuer)));
        }
        let allows_local = is_local_http(issuer);
        let all = [&metadata.authorization_endpoint, &metadata.token_endpoint, &metadata.jwks_uri];
        let is_insecure = |endpoint: &&String| !is_confidential(endpoint, allows_local);
        let insecure = all.into_iter().chain(&metadata.device_authorization_endpoint).find(is_insecure).cloned();
        match insecure {
            Some(endpoint) => Err(format!("the endpoint `{}` of the provider is not HTTPS", printable(&endpoint))),
            None => Ok(metadata),
        }
    }

    /// Checks that a key of the provider has signed a token.
    pub(super) fn check_signature(&self, token: &IdToken<'_>) -> Result<(), OidcFailure> {
        const WRONG: OidcFailure = OidcFailure::Refused("the signature of the ID token is wrong");
        let mut known = self.known.lock();
        let keys = self.keys_of(&mut known).map_err(OidcFailure::Away)?;
        if token.is_signed_by(&keys) {
            return Ok(());
        }
        if known.reread.is_some_and(|at| at.elapsed() < REREAD) {
            return Err(WRONG);
        }
        known.reread = Some(Instant::now());
        let keys = self.read_keys(&mut known).map_err(OidcFailure::Away)?;
        if token.is_signed_by(&keys) { Ok(()) } else { Err(WRONG) }
    }

    fn keys_of(&self, known: &mut KnownProvider) -> Result<Arc<[ProviderKey]>, String> {
        if let Some((since, keys)) = &known.keys
            && since.elapsed() < FRESH
        {
            return Ok(Arc::clone(keys));
        }
        self.read_keys(known).or_else(|reason| match &known.keys {
            Some((since, keys)) if since.elapsed() < LONGEST => Ok(Arc::clone(keys)),
            _ => Err(reason),
        })
    }

    fn read_keys(&self, known: &mut KnownProvider) -> Result<Arc<[ProviderKey]>, String> {
        let metadata = self.metadata_of(known)?;
        let url = &metadata.jwks_uri;
        let keys = known.attempt(|| {
            let set = self.get(url)?;
            keys_of(&set).ok_or_else(|| format!("{url} is not a JWK set"))
        })?;
        let keys: Arc<[ProviderKey]> = keys.into();
        known.keys = Some((Instant::now(), Arc::clone(&keys)));
        Ok(keys)
    }

    /// Asks for a token.
    pub(super) fn token(&self, form: &[(&str, &str)]) -> Result<TokenResponse, OidcFailure> {
        let metadata = self.metadata()?;
        let (status, answer) = self.post(&metadata, &metadata.token_endpoint, form).map_err(OidcFailure::Away)?;
        let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
        match (status, text("id_token"), text("error")) {
            (200, Some(token), _) => Ok(TokenResponse::Token(token)),
            (_, _, Some(error)) if status != 200 => Ok(TokenResponse::Error(error)),
            _ => Err(OidcFailure::Away(format!("the token endpoint has answered {status} without an ID token"))),
        }
    }

    /// Sends a form with the ID of this server, and its secret if it has one: both in the header, or both in the form.
    pub(super) fn post(
        &self,
        metadata: &ProviderMetadata,
        url: &str,
        form: &[(&str, &str)],
    ) -> Result<(u16, Value), String> {
        let (client_id, ProviderClient { agent, secret }) = (self.config.client_id.as_str(), self.client()?);
        let secret = secret?;
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(form);
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        // Without a list, a provider takes the header.
        let takes_header = methods.is_none_or(|all| all.iter().any(|method| method == "client_secret_basic"));
        let mut request = agent.post(url).header("Accept", "application/json");
        match &secret {
            Some(secret) if takes_header => {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let both = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret.expose())));
                request = request.header("Authorization", format!("Basic {both}"));
            }
            Some(secret) => {
                pairs.append_pair("client_id", client_id).append_pair("client_secret", secret.expose());
            }
            None => {
                pairs.append_pair("client_id", client_id);
            }
        }
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        read(url, request.send(pairs.finish()))
    }

    fn get(&self, url: &str) -> Result<Value, String> {
        match read(url, self.client()?.agent.get(url).header("Accept", "application/json").call())? {
            (200, value) => Ok(value),
            (status, _) => Err(format!("{url} has answered with status {status}")),
        }
    }

    /// The client. It has what the files have now, or had some seconds ago.
    fn client(&self) -> Result<ProviderClient, String> {
        let mut read = self.client.lock();
        if let Some((at, client)) = read.as_ref()
            && at.elapsed() < SETTLED
        {
            return Ok(client.clone());
        }
        let agent = http_client::agent_trusting(self.config.authorities()?, CONNECT, RESPONSE);
        let client = ProviderClient { agent, secret: self.config.secret() };
        *read = Some((Instant::now(), client.clone()));
        Ok(client)
    }
}

impl KnownProvider {
    /// Asks the provider, unless it did not answer just now.
    fn attempt<T>(&mut self, ask: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        if let Some((at, reason)) = &self.away
            && at.elapsed() < PAUSE
        {
            return Err(reason.clone());
        }
        let answer = ask();
        self.away = answer.as_ref().err().map(|reason| (Instant::now(), reason.clone()));
        answer
    }
}

/// Reads the status and the JSON body of a response.
fn read(url: &str, response: Result<Response<Body>, ureq::Error>) -> Result<(u16, Value), String> {
    let failed = |error: ureq::Error| format!("{url}: {}", http_client::reason_with_url(&error));
    let mut response = response.map_err(failed)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(failed)?;
    let value = serde_json::from_slice(&body);
    Ok((status, value.map_err(|_| format!("{url} has answered with status {status} and no JSON"))?))
}
