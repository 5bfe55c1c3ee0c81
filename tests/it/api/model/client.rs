//! A client of the API, and what it says when an answer is not the one that the model expects.

use std::{fmt, time::Duration};

use serde_json::Value;

use super::specification::Faults;

/// A request. Its condition is a header, such as `If-Match`, with its value.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: Option<Value>,
    pub condition: Option<(&'static str, String)>,
}

impl Request {
    pub(super) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, condition: None }
    }

    pub(super) fn with(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Sets `If-Match`, if there is a value.
    pub(super) fn if_match(self, etag: Option<String>) -> Self {
        Self { condition: etag.map(|etag| ("If-Match", etag)), ..self }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        if let Some((name, value)) = &self.condition {
            write!(f, " ({name}: {value})")?;
        }
        self.body.as_ref().map_or(Ok(()), |body| write!(f, " {body}"))
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub status: u16,
    pub etag: Option<String>,
    pub location: Option<String>,
    /// The body; null if there is none.
    pub json: Value,
}

impl Reply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The codes and fields of a refusal (D9).
    pub(super) fn faults(&self) -> Vec<(String, String)> {
        let told = |error: &Value, field: &Value| {
            let code = error["error_code"].as_str().unwrap_or_default();
            let code = code.strip_prefix("ERR_EDGEWRIGHT_").unwrap_or(code);
            (code.to_owned(), field.as_str().unwrap_or_default().to_owned())
        };
        match self.json["errors"].as_array() {
            Some(errors) => errors.iter().map(|error| told(error, &error["field"])).collect(),
            None => vec![told(&self.json, &self.json["details"]["field"])],
        }
    }
}

/// What the model expects of an answer.
#[derive(Debug, Clone)]
pub(super) enum Expected {
    Success(u16),
    Refusal(u16, Faults),
}

impl Expected {
    /// A refusal for which no field is at fault.
    pub(super) fn refusal(status: u16, code: &'static str) -> Self {
        Self::Refusal(status, Faults::from([(code, String::new())]))
    }

    pub(super) fn fits(&self, reply: &Reply) -> bool {
        match self {
            Self::Success(status) => reply.status == *status,
            Self::Refusal(status, faults) => {
                let mut found = reply.faults();
                found.sort();
                found.dedup();
                let faults: Vec<_> = faults.iter().map(|(code, field)| ((*code).to_owned(), field.clone())).collect();
                reply.status == *status && found == faults
            }
        }
    }
}

/// An answer that is not the one that the model expects.
#[derive(Debug)]
pub(super) struct Difference {
    pub request: String,
    pub expected: String,
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  expected: {}\n  found:    {}", self.request, self.expected, self.found)
    }
}

/// Fails if two values differ.
pub(super) fn same(request: &Request, expected: &Value, found: &Value) -> Result<(), Difference> {
    if expected == found {
        return Ok(());
    }
    Err(Difference { request: request.to_string(), expected: expected.to_string(), found: found.to_string() })
}

/// One client with one key. Clones are clients with the same key.
#[derive(Clone)]
pub(super) struct Client {
    agent: ureq::Agent,
    address: String,
    token: String,
}

impl Client {
    pub(super) fn new(address: &str, token: &str) -> Self {
        // A connection that is kept may be one of a server that was killed.
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).max_idle_connections(0);
        let agent = config.timeout_global(Some(Duration::from_secs(30))).build().into();
        Self { agent, address: address.to_owned(), token: token.to_owned() }
    }

    pub(super) fn send(&self, request: &Request) -> Reply {
        let uri = format!("http://{}{}", self.address, request.path);
        let mut call = ureq::http::Request::builder().method(request.method).uri(uri);
        call = call.header("Authorization", format!("Bearer {}", self.token)).header("Service-Version", "2");
        if let Some((name, value)) = &request.condition {
            call = call.header(*name, value);
        }
        let response = match &request.body {
            Some(body) => {
                let call = call.header("Content-Type", "application/json");
                self.agent.run(call.body(body.to_string().into_bytes()).unwrap())
            }
            // Without a body these methods would be sent in chunks; none at all is a length of 0.
            None if ["POST", "PUT", "PATCH"].contains(&request.method) => {
                self.agent.run(call.body(Vec::<u8>::new()).unwrap())
            }
            None => self.agent.run(call.body(()).unwrap()),
        };
        let (parts, mut body) = response.unwrap_or_else(|error| panic!("{request}: {error}")).into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
        Reply {
            status: parts.status.as_u16(),
            etag: header("etag"),
            location: header("location"),
            json: serde_json::from_slice(&body.read_to_vec().unwrap()).unwrap_or_default(),
        }
    }
}
