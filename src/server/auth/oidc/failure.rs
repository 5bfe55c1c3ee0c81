//! Why nobody was signed in.

use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::security::event::SecurityEvent;
use crate::server::telemetry::security::note::SecurityNote;

/// When to try again, in seconds.
const RETRY: u64 = 10;

/// Why nobody was signed in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OidcFailure {
    /// The provider did not answer, or not with what it must.
    Away(String),
    /// The claims about the person cannot be trusted.
    Refused(&'static str),
}

impl From<&'static str> for OidcFailure {
    fn from(reason: &'static str) -> Self {
        Self::Refused(reason)
    }
}

impl From<OidcFailure> for ApiError {
    fn from(failure: OidcFailure) -> Self {
        match failure {
            OidcFailure::Away(reason) => {
                // Nobody is signed in yet who could be told more.
                tracing::warn!("the OpenID Connect provider is not usable: {}", escaped(&reason));
                let fault = Fault::new(Code::Unavailable, "the identity provider does not answer as it should");
                let help = "sign in with an API token, or try again later; the log of the server has the reason";
                Self::new(fault.help(help)).retry_after(RETRY)
            }
            OidcFailure::Refused(reason) => {
                let note = SecurityNote::new(SecurityEvent::AuthenticationFailed, reason, None);
                let fault = Fault::new(Code::Unauthenticated, format!("nobody was signed in: {reason}"));
                Self::new(fault.help("sign in again, from the beginning")).noted(note)
            }
        }
    }
}
