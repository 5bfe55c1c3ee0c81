//! Errors of handlers, and their responses.

use super::error_body::{ErrorBody, ErrorDetails, ErrorItem};
use super::security_headers::add_security_headers;
use crate::model::secrets::redact::quotable_key;
use crate::model::{JsonError, MOST_FAULTS, Segment};
use crate::server::prelude::*;
use crate::server::telemetry::security::note::SecurityNote;
use crate::store::{CommitError, Declined, ids};
use crate::syntax::text::without_tokens;

/// The result of a handler.
pub(crate) type ApiResult = Result<Response, ApiError>;

/// The header of every response (D8).
pub(crate) const REQUEST_ID: &str = "request-id";
pub(super) const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// An error response: one or more faults, and additional headers.
#[derive(Debug)]
pub(crate) struct ApiError {
    faults: Vec<Fault>,
    /// On the heap, because errors are returned by value everywhere.
    headers: Box<HeaderMap>,
    /// The digests of the texts that the server lacks (D72).
    missing: Vec<String>,
    /// The current revision, for a client that asked for another one (D80).
    revision: Option<u64>,
    /// The note for the security log (D99).
    note: Option<Box<SecurityNote>>,
}

/// The seconds within which a server that follows takes the place of one that is gone.
pub(in crate::server) const TAKEOVER: u64 = 5;
/// The message of an error that is not the client's.
const INTERNAL: &str = "internal error while handling the request";
/// After how many seconds the database of a store may be back.
const STORE_RETRY: u64 = 5;
/// The message while the database of a store does not answer.
const STORE_UNAVAILABLE: &str = "the database of the store does not answer: changes and the history are unavailable \
                                 until it is back; other reads are answered";

impl ApiError {
    /// Creates the error of one fault.
    pub(crate) fn new(fault: Fault) -> Self {
        Self::from_faults([fault])
    }

    /// Creates the error of a fault without a field.
    pub(crate) fn with_code(code: Code, message: impl Into<String>) -> Self {
        Self::new(Fault::new(code, message))
    }

    /// Creates the error for a path that nothing has.
    pub(crate) fn no_endpoint() -> Self {
        Self::with_code(Code::NotFound, "not found: no endpoint at this path")
    }

    /// Creates the error for a method that a path does not have. The response needs an `Allow` header.
    pub(crate) fn method_not_allowed() -> Self {
        Self::with_code(Code::MethodNotAllowed, "method not allowed for this path")
    }

    /// Creates the error for something that does not exist.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::with_code(Code::NotFound, format!("{what} does not exist"))
    }

    /// Creates the error of a fault of the server itself, whose cause is in the log.
    pub(crate) fn internal() -> Self {
        Self::with_code(Code::Internal, INTERNAL)
    }

    /// Fails if there are faults.
    pub(crate) fn check(faults: impl IntoIterator<Item = Fault>) -> Result<(), Self> {
        let mut faults = faults.into_iter().peekable();
        if faults.peek().is_none() { Ok(()) } else { Err(Self::from_faults(faults)) }
    }

    /// Creates the error of several faults; the first determines the status.
    pub(crate) fn from_faults(faults: impl IntoIterator<Item = Fault>) -> Self {
        // Limits the response to a hostile body with very many faults.
        let faults = faults.into_iter().take(MOST_FAULTS).collect();
        Self { faults, headers: Box::default(), missing: Vec::new(), revision: None, note: None }
    }

    /// Creates the error of a request that refers to texts by these digests.
    pub(crate) fn missing_files(missing: Vec<String>) -> Self {
        let files = number_of(missing.len(), "file");
        let message = format!("the server does not have the text of {files}; nothing was planned or changed");
        let fault = Fault::new(Code::MissingFiles, message).help("repeat the request with the texts of `missing`");
        Self { missing, ..Self::new(fault) }
    }

    /// Creates the error of a client that cannot continue after a revision.
    pub(crate) fn revision_gone(known: u64, current: u64) -> Self {
        let message = match known > current {
            true => format!("the store has no revision {known}; it is at revision {current}"),
            false => {
                format!("the changes after revision {known} are no longer kept; the store is at revision {current}")
            }
        };
        let fault = Fault::new(Code::RevisionGone, message).help("read the resources again, and watch without `since`");
        Self { revision: Some(current), ..Self::new(fault) }
    }

    /// The body of a response, on one line.
    pub(crate) fn to_json_line(&self) -> String {
        self.body(ids::fresh("op_").as_str())
    }

    /// The whole response as it goes over HTTP/1, for a request that reaches no handler. The connection is closed after it.
    pub(crate) fn to_http1(&self) -> Vec<u8> {
        let (status, operation) = (self.status(), ids::fresh("op_"));
        let body = self.body(operation.as_str());
        let mut headers = HeaderMap::clone(&self.headers);
        add_security_headers(&mut headers, false);
        let mut text = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        for (name, value) in &headers {
            text += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
        let length = body.len();
        text += &format!("content-length: {length}\r\n{REQUEST_ID}: {operation}\r\nconnection: close\r\n\r\n{body}");
        text.into_bytes()
    }

    /// The first fault's message, for the log and the history.
    pub(crate) fn message(&self) -> String {
        self.faults.first().map(message).unwrap_or_default()
    }

    /// The first fault's code.
    pub(crate) fn code(&self) -> Code {
        self.faults.first().map_or(Code::Internal, |fault| fault.code)
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: header::HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.headers.insert(name, value.into());
        self
    }

    /// Asks the client to try again after some seconds.
    #[must_use]
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, seconds)
    }

    /// Adds a note for the security log.
    #[must_use]
    pub(crate) fn noted(mut self, note: SecurityNote) -> Self {
        self.note = Some(Box::new(note));
        self
    }

    /// Makes the paths of a module's faults relative to the module's body.
    #[must_use]
    pub(crate) fn inside(mut self, slot: &str) -> Self {
        for fault in &mut self.faults {
            if let Some(path) = fault.path.strip(slot) {
                fault.path = path;
            }
        }
        self
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Refused(refusal) => Self::from_faults(refusal.faults),
            CommitError::Stale { .. } => Self::with_code(Code::Conflict, "the store changed during the request"),
            CommitError::Failed(error) => error.into(),
        }
    }
}

impl From<Declined<ApiError>> for ApiError {
    fn from(error: Declined<ApiError>) -> Self {
        match error {
            Declined::Declined(error) => error,
            Declined::Commit(error) => error.into(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        // Nothing failed, and the message says who writes.
        if error.code == Code::NotTheWriter {
            let help = error.help.unwrap_or(error.code.info().cure.into());
            return Self::new(Fault::new(error.code, error.message).help(help)).retry_after(TAKEOVER);
        }
        // A server that hung and was replaced, until it follows the other one. Nothing was changed, and its log says once why.
        if error.code == Code::StoreLocked {
            let fault = Fault::new(Code::NotTheWriter, "another server has taken the place of this one");
            return Self::new(fault.help("send the request again: this server follows that one soon"))
                .retry_after(TAKEOVER);
        }
        // The reason contains local paths, so it goes to the log and not to the client.
        tracing::error!(code = %error.code, reason = %error, "the store failed");
        if error.code == Code::StoreUnavailable {
            let message = error.cause.map_or(Cow::Borrowed(STORE_UNAVAILABLE), |cause| {
                Cow::Owned(format!(
                    "the database of the store {cause}: try again later; reads without the history are answered"
                ))
            });
            return Self::with_code(error.code, message).retry_after(STORE_RETRY);
        }
        Self::with_code(error.code, "the store failed")
    }
}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        tracing::error!(reason = %error, "cannot serialize a response");
        Self::internal()
    }
}

/// The longest JSON pointer in a response: keys of a body can have any length.
const MOST_POINTER_BYTES: usize = 1024;

/// The field of a fault as a JSON pointer, or the nearest field around it whose pointer is short enough and names no
/// key that a message would not quote: such a key may contain a secret.
fn pointer(fault: &Fault) -> String {
    let mut path = fault.path.clone();
    let unknown = matches!(fault.code, Code::UnknownField | Code::DuplicateKey);
    let unquotable = |step: &Segment| match step {
        // The key of a map of the client's, such as a header, may have a blank.
        Segment::Key(key) => (unknown || key.contains([':', '='])) && quotable_key(key) != *key,
        Segment::Index(_) => false,
    };
    if let Some(at) = path.0.iter().position(unquotable) {
        path.0.truncate(at);
    }
    loop {
        let pointer = path.to_string();
        if pointer.len() <= MOST_POINTER_BYTES || path.0.pop().is_none() {
            return without_tokens(&pointer).into_owned();
        }
    }
}

/// The message of a fault with its help.
fn message(fault: &Fault) -> String {
    match &fault.help {
        Some(help) => format!("{}; {help}", fault.message),
        None => fault.message.clone(),
    }
}

impl ApiError {
    /// The status of the first fault.
    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code().info().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The body of a response. It is only texts and numbers, which can always be written, so that an error never has an empty
    /// body.
    fn body(&self, operation: &str) -> String {
        let internal = Fault::new(Code::Internal, INTERNAL);
        let first = self.faults.first().unwrap_or(&internal);
        let mut details = ErrorDetails {
            operation_id: operation.to_owned(),
            field: pointer(first),
            revision: self.revision.map(|revision| revision.to_string()).unwrap_or_default(),
            ..ErrorDetails::default()
        };
        if let Some(finding) = &first.invariant {
            details.invariant.clone_from(&finding.name);
            details.invariant_source = finding.source.clone().unwrap_or_default();
            details.request = format!("{} {}", finding.method, finding.url);
            details.way.clone_from(&finding.way);
        }
        let item = |it: &Fault| ErrorItem { error_code: it.code.to_string(), field: pointer(it), msg: message(it) };
        let body = ErrorBody {
            error_code: first.code.to_string(),
            status_code: self.status().as_u16(),
            msg: message(first),
            details,
            errors: if self.faults.len() > 1 { self.faults.iter().map(item).collect() } else { Vec::new() },
            missing: self.missing.clone(),
        };
        serde_json::to_string(&body).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let operation = ids::fresh("op_");
        let body = self.body(operation.as_str());
        let mut response = (self.status(), *self.headers, JSON, Body::from(body)).into_response();
        if let Ok(id) = HeaderValue::from_str(operation.as_str()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if let Some(note) = self.note {
            response.extensions_mut().insert(*note);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::diagnostics::invariant_finding::InvariantFinding;

    #[test]
    fn an_error_about_an_invariant_has_details_for_programs() {
        let text = |text: &str| text.to_owned();
        let finding = InvariantFinding {
            name: text("login"),
            source: None,
            description: text("Log in"),
            certain: true,
            method: text("GET"),
            url: text("https://a.example.com/"),
            reason: text("reaches the backend `a`"),
            way: text("edge `a`"),
        };
        let fault = Fault { invariant: Some(Box::new(finding)), ..Fault::new(Code::InvariantBroken, "it breaks it") };
        let body = ApiError::new(fault).body("op_1");
        let request = "GET https://a.example.com/";
        let details = json!({"operation_id": "op_1", "invariant": "login", "request": request, "way": "edge `a`"});
        assert!(body.contains(&format!("\"details\":{details}")), "{body}");
    }

    #[test]
    fn who_has_lost_the_store_says_that_another_server_writes_and_not_where() {
        let reason = "the store postgres://db.internal/edge was taken over by another process";
        let error = ApiError::from(StoreError::new(Code::StoreLocked, reason));
        assert_eq!(error.code(), Code::NotTheWriter);
        assert!(error.headers.contains_key(header::RETRY_AFTER) && !error.message().contains("db.internal"));
    }
}
