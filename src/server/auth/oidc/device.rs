//! Signing in on a command line: somebody enters a code at the provider, in a browser anywhere (RFC 8628).
//!
//! The server asks the provider, so that a client needs nothing of its own there, and the secret stays here. The device code
//! that a client gets is sealed: this server asks for no code that it has not got itself, and for none too often.
//!
//! Anybody can begin, and talk somebody else into entering the code. So it is off unless the configuration turns it on.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::connector::OpenIdConnect;
use super::failure::OidcFailure;
use super::person::SignedInPerson;
use super::provider::TokenResponse;
use crate::server::auth::session::SessionSealer;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

/// The purpose of a sealed device code.
const PURPOSE: &str = "edgewright 2026 device codes";
/// The seconds between two questions if the provider names none.
const INTERVAL: u64 = 5;
/// The seconds by which a client that asks too often waits longer.
const SLOWER: u64 = 5;
/// The longest time that a device code is asked for.
const LONGEST: u64 = 3600;

/// How somebody signs in on a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceInstructions {
    /// The code with which the client asks for the token.
    pub device_code: String,
    /// The code to enter.
    pub user_code: String,
    /// Where to enter it.
    pub verification_uri: String,
    /// The URI with the code in it, or empty.
    pub verification_uri_complete: String,
    /// After how many seconds the code ends.
    pub expires_in: u64,
    /// How many seconds to wait between two questions.
    pub interval: u64,
}

/// The response of a provider.
#[derive(Deserialize)]
struct DeviceAuthorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

/// A device code of this server.
#[derive(Serialize, Deserialize)]
struct SealedDeviceCode {
    code: String,
    interval: u64,
    until: i64,
}

/// The progress of a device code.
pub(in crate::server) enum DeviceProgress {
    /// Somebody has signed in.
    SignedIn(SignedInPerson),
    /// Nobody has yet: ask again after some seconds.
    Pending(u64),
}

impl OpenIdConnect {
    /// Begins to sign in with a device code.
    pub(in crate::server) fn begin_device(&self, sealer: &SessionSealer) -> Result<DeviceInstructions, ApiError> {
        self.check_device()?;
        let metadata = self.provider.metadata()?;
        let Some(endpoint) = &metadata.device_authorization_endpoint else {
            let fault = Fault::new(Code::NotFound, "the identity provider has no sign-in for command lines");
            return Err(ApiError::new(fault.help("log in with the token of an API key")));
        };
        let scope = self.config.scope_text();
        let answer = self.provider.post(&metadata, endpoint, &[("scope", scope.as_str())]);
        let (status, answer) = answer.map_err(OidcFailure::Away)?;
        let answer: DeviceAuthorization = serde_json::from_value(answer)
            .map_err(|_| OidcFailure::Away(format!("{endpoint} has answered {status} without a device code")))?;
        let expires_in = answer.expires_in.min(LONGEST);
        let interval = answer.interval.unwrap_or(INTERVAL).clamp(1, LONGEST);
        let until = clock::now().as_second() + expires_in as i64;
        let sealed = sealer.seal_for(PURPOSE, &SealedDeviceCode { code: answer.device_code, interval, until });
        Ok(DeviceInstructions {
            device_code: URL_SAFE_NO_PAD.encode(sealed.ok_or_else(ApiError::internal)?),
            user_code: answer.user_code,
            verification_uri: answer.verification_uri,
            verification_uri_complete: answer.verification_uri_complete.unwrap_or_default(),
            expires_in,
            interval,
        })
    }

    /// Asks what has become of a device code.
    pub(in crate::server) fn poll_device(
        &self,
        sealer: &SessionSealer,
        sealed: &str,
    ) -> Result<DeviceProgress, ApiError> {
        self.check_device()?;
        let device: Option<SealedDeviceCode> =
            URL_SAFE_NO_PAD.decode(sealed).ok().and_then(|sealed| sealer.open_for(PURPOSE, &sealed));
        let device = device.ok_or(OidcFailure::Refused("the device code is not of this server"))?;
        if clock::now().as_second() > device.until {
            return Err(OidcFailure::Refused("the device code has expired").into());
        }
        if self.was_just_asked(&device) {
            return Ok(DeviceProgress::Pending(device.interval));
        }
        let form =
            [("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", device.code.as_str())];
        match self.provider.token(&form)? {
            // The flow has no nonce: the token comes from the provider itself, for a code of this server.
            TokenResponse::Token(token) => Ok(DeviceProgress::SignedIn(self.person(&token, None)?)),
            TokenResponse::Error(error) => match error.as_str() {
                "authorization_pending" => Ok(DeviceProgress::Pending(device.interval)),
                "slow_down" => Ok(DeviceProgress::Pending(device.interval + SLOWER)),
                "access_denied" => Err(OidcFailure::Refused("the provider says that access was denied").into()),
                "expired_token" | "invalid_grant" => Err(OidcFailure::Refused("the device code has expired").into()),
                other => Err(OidcFailure::Away(format!("the token endpoint has answered {other}")).into()),
            },
        }
    }

    /// Whether a device code was asked for less than its interval ago. Otherwise, it is asked for now.
    fn was_just_asked(&self, device: &SealedDeviceCode) -> bool {
        let digest = blake3::hash(device.code.as_bytes());
        let is_early = self.asked.get(&digest).is_some_and(|at| at.elapsed() < Duration::from_secs(device.interval));
        if !is_early {
            self.asked.insert(digest, Instant::now());
        }
        is_early
    }

    /// Fails unless the configuration turns this on.
    fn check_device(&self) -> Result<(), ApiError> {
        if self.config.device {
            return Ok(());
        }
        let fault = Fault::new(Code::NotFound, "signing in from the command line is disabled on this server");
        let help = "log in with the token of an API key, or ask an admin for `device: true` in the section \
                    `openid_connect` of the configuration file";
        Err(ApiError::new(fault.help(help)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::auth::oidc::config::OidcConfig;

    #[test]
    fn a_code_is_asked_for_once_in_its_interval() {
        let provider = OpenIdConnect::new(OidcConfig::default(), "https://edge.example.com");
        let device = |code: &str, interval: u64| SealedDeviceCode { code: code.to_owned(), interval, until: 0 };
        assert!(!provider.was_just_asked(&device("a", 3600)) && provider.was_just_asked(&device("a", 3600)));
        assert!(!provider.was_just_asked(&device("b", 3600)), "each code has its own interval");
        assert!(!provider.was_just_asked(&device("a", 0)));
    }
}
