//! Why nobody was signed in.
//!
//! Anybody can begin to sign in, so the log has each reason once in an interval, however often they do while the provider is
//! away.

use std::sync::LazyLock;

use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::security::event::SecurityEvent;
use crate::server::telemetry::security::note::SecurityNote;

/// When to try again, in seconds.
const RETRY: u64 = 10;
/// How long a reason has no further line.
const INTERVAL: Duration = Duration::from_secs(60);
/// The most reasons that have lines in an interval.
const MOST: usize = 10;

/// The reasons that the log has.
static LOGGED: LazyLock<Lock<LoggedReasons>> = LazyLock::new(Lock::default);

/// The reasons of an interval that the log has, and how many failures had no lines.
#[derive(Debug, Default)]
struct LoggedReasons {
    ends: Option<Instant>,
    known: BTreeSet<String>,
    further: u64,
}

impl LoggedReasons {
    /// Counts a failure. If it has a line, returns how many others of the interval before had none.
    fn add(&mut self, reason: &str, now: Instant) -> Option<u64> {
        let mut further = 0;
        if self.ends.is_none_or(|ends| ends <= now) {
            further = std::mem::take(self).further;
            self.ends = Some(now + INTERVAL);
        }
        if self.known.len() < MOST && self.known.insert(reason.to_owned()) {
            return Some(further);
        }
        self.further += 1;
        None
    }
}

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
                let logged = LOGGED.lock().add(&reason, Instant::now());
                if let Some(further) = logged {
                    let reason = escaped(&reason);
                    tracing::warn!(further, "the OpenID Connect provider is not usable: {reason}");
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_line_in_an_interval() {
        let (mut logged, now) = (LoggedReasons::default(), Instant::now());
        assert_eq!([logged.add("a", now), logged.add("a", now), logged.add("b", now)], [Some(0), None, Some(0)]);
        let lines = (0..1000).filter(|number| logged.add(&number.to_string(), now).is_some()).count();
        assert_eq!(lines, MOST - 2);
        assert_eq!(logged.add("a", now + INTERVAL), Some(1000 - lines as u64 + 1));
        assert_eq!(logged.add("a", now + INTERVAL), None);
    }
}
