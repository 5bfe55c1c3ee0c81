//! Responses of a server, and whether a change was made if there is none.
//!
//! One rule for all requests that change something: a response of edgewright says what became of the change, unless the server
//! failed while it made it. A proxy does not know what the server has done, and a lost response says nothing.

use serde::de::DeserializeOwned;

use super::error_response::{ErrorResponse, foreign_response};
use crate::cli::prelude::*;
use crate::server::operations::ready::lines_about_server;

/// The end of the message for a change whose outcome nobody knows.
const UNKNOWN: &str = "the change may have been made";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEffect {
    None,
    Change,
}

/// A whole response.
pub(crate) struct ApiResponse {
    at: String,
    status: u16,
    body: Vec<u8>,
    effect: RequestEffect,
    /// The error in it, if it is one of edgewright.
    error: Option<ErrorResponse>,
}

impl ApiResponse {
    pub(super) fn new(at: &str, status: u16, body: Vec<u8>, effect: RequestEffect) -> Self {
        let error = if is_success(status) { None } else { ErrorResponse::parse(&body) };
        Self { at: at.to_owned(), status, body, effect, error }
    }

    /// Whether the server itself refused the request before starting on it. A proxy's 503 does not prove that.
    pub(super) fn was_refused_before_start(&self) -> bool {
        self.error.as_ref().is_some_and(ErrorResponse::was_refused_before_start)
    }

    /// Fails if the response does not tell whether a change was made.
    pub(super) fn with_known_outcome(self) -> Result<Self, SendError> {
        let proves_unchanged = self.error.as_ref().is_some_and(ErrorResponse::proves_unchanged);
        if self.effect == RequestEffect::None || self.status < 500 || proves_unchanged {
            return Ok(self);
        }
        let of_server = self.error.as_ref().map(ErrorResponse::of_server);
        Err(of_server.map_or_else(
            || SendError::no_response(&self.at, &format!("status {}", self.status)),
            |(code, message)| SendError::unknown(code, message),
        ))
    }

    /// The digests of the texts that the server lacks, if it answered that (D72).
    pub(super) fn missing_files(&self) -> Option<&[String]> {
        self.error.as_ref().and_then(ErrorResponse::missing_files)
    }

    /// Whether the server does not know a field of the request, because it is older.
    pub(super) fn rejects_field(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.error.as_ref().is_some_and(|error| error.rejects_field(is_it))
    }

    /// What `/readyz` says about the server and its store, and not about sources.
    pub(super) fn notes_on_server(&self) -> Vec<String> {
        let body = str::from_utf8(&self.body).unwrap_or_default();
        let said = self.error.as_ref().map_or(body, ErrorResponse::message);
        lines_about_server(said).into_iter().map(str::to_owned).collect()
    }

    /// The failure for a response that is no success.
    pub(super) fn failure(&self) -> Failure {
        match &self.error {
            Some(error) => error.failure(&self.at),
            None => foreign_response(&self.at, self.status),
        }
    }

    /// Parses what the server has returned.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, SendError> {
        if !is_success(self.status) {
            return Err(SendError::Refused(self.failure()));
        }
        let body: &[u8] = if self.status == 204 { b"null" } else { &self.body };
        serde_json::from_slice(body).map_err(|_| match self.effect {
            RequestEffect::None => SendError::Refused(foreign_response(&self.at, self.status)),
            RequestEffect::Change => SendError::no_response(&self.at, "it is not from this version of edgewright"),
        })
    }

    /// Parses the report in the response to a request that plans or applies. A refused plan has the exit code of its reason.
    pub(crate) fn report<T: DeserializeOwned>(&self) -> Result<T, SendError> {
        self.parse().map_err(|error| match (error, &self.error) {
            (SendError::Refused(failure), Some(refusal)) => {
                SendError::Refused(Failure { exit: refusal.exit(), ..failure })
            }
            (error, _) => error,
        })
    }
}

fn is_success(status: u16) -> bool {
    matches!(status, 200 | 201 | 204)
}

/// Why a request has no usable response.
pub(crate) enum SendError {
    /// The server rejected the request or was not reached: nothing has changed.
    Refused(Failure),
    /// The code and message for a change that may have been made or not.
    Unknown(Code, String),
}

impl SendError {
    /// The error of a change whose response never came, or says nothing about it.
    pub(super) fn no_response(at: &str, reason: &str) -> Self {
        Self::unknown(Code::Timeout, no_response(at, reason))
    }

    fn unknown(code: Code, message: String) -> Self {
        // The server may say so itself.
        let message = if message.contains(UNKNOWN) { message } else { format!("{message}; {UNKNOWN}") };
        SendError::Unknown(code, message)
    }

    /// The failure of the command. `see` tells how to find out whether the change was made.
    pub(crate) fn failure(self, see: &str) -> Failure {
        match self {
            SendError::Refused(failure) => failure,
            SendError::Unknown(code, message) => Diagnostic::error(code, message).help(see).into(),
        }
    }
}

/// The message for a response that never came, or says nothing about the request.
pub(super) fn no_response(at: &str, reason: &str) -> String {
    format!("no usable response from {at}: {reason}")
}
