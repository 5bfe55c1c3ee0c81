//! Sends tested requests to a gateway, and compares its answers with what can be seen of a verdict from outside.
//!
//! A backend can answer as a gateway does, with 404 or a redirect of its own. So only what contradicts a verdict is a
//! difference: 403 where a request must reach the backend, or 200 where it must not.

use std::net::ToSocketAddrs as _;

use ureq::Agent;
use ureq::http::{Request, Response};

use crate::cli::command_prelude::*;
use crate::http_client;
use crate::model::route_test::{ExpectedHeaders, TestedRequest};
use crate::model::traffic::{RequestVerdict, TracedRequest};
use crate::plan::test_report::LiveComparison;

/// The time for a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The methods that change nothing, and are sent.
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

pub(super) struct LiveGateway {
    agent: Agent,
    scheme: &'static str,
}

impl LiveGateway {
    /// Finds the gateway of a URL. Sends nothing yet.
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        let failure = |message: String| {
            let help = "use a URL such as `https://gateway.example.com` or `http://127.0.0.1:8080`";
            Failure::from(Diagnostic::error(Code::Parameter, message).help(help))
        };
        let uri = http_client::server_url(url).map_err(|reason| failure(format!("`--live` {reason}")))?;
        let (scheme, port) = match uri.scheme_str() {
            Some("https") => ("https", 443),
            Some("http") => ("http", 80),
            _ => return Err(failure("the scheme of `--live` must be https or http".to_owned())),
        };
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let found = (host.as_str(), uri.port_u16().unwrap_or(port)).to_socket_addrs();
        let addresses = found.map_err(|error| failure(format!("cannot find `{}`: {error}", printable(&host))))?;
        Ok(Self { agent: http_client::agent_at(addresses.collect(), TIMEOUT), scheme })
    }

    /// Sends a request, and compares the answer with the verdict on it.
    pub(super) fn compare(&self, tested: &TestedRequest, verdict: Option<RequestVerdict>) -> LiveComparison {
        let mut compared = LiveComparison { not_compared: unseen(tested), ..LiveComparison::default() };
        let Ok(request) = tested.traced() else { return compared };
        if !SAFE.contains(&request.method.as_str()) {
            compared.not_compared.push(format!("the answer: {} may change something", request.method));
            return compared;
        }
        if tested.client_certificate == Some(true) {
            compared.not_compared.push("the answer: no client certificate is sent".to_owned());
            return compared;
        }
        let answer = match self.send(tested, &request) {
            Ok(answer) => answer,
            Err(reason) => {
                // Without a certificate, the connection may end before there is an answer.
                match verdict {
                    Some(RequestVerdict::Denied | RequestVerdict::Blocked | RequestVerdict::Unserved) => {}
                    _ => compared.differences.push(format!("no answer from the gateway: {reason}")),
                }
                return compared;
            }
        };
        let status = answer.status().as_u16();
        compared.status = Some(status);
        let location = answer.headers().get("location").and_then(|value| value.to_str().ok());
        match verdict {
            _ if !tested.assumed_to_pass.is_empty() => {
                let assumed = tested.assumed_to_pass.join(", ");
                compared.not_compared.push(format!("the status: nothing lets the request pass {assumed}"));
            }
            None | Some(RequestVerdict::Depends) => compared.not_compared.push("the status".to_owned()),
            Some(verdict) if is_possible(verdict, status, location.is_some()) => {}
            Some(verdict) => {
                let to = location.map(|to| format!(" to `{}`", printable(to))).unwrap_or_default();
                let verdict = verdict.as_str();
                compared.differences.push(format!("the gateway answers {status}{to}, which is not `{verdict}`"));
            }
        }
        if verdict == Some(RequestVerdict::Forwarded) && tested.assumed_to_pass.is_empty() {
            compared.differences.extend(other_headers(tested, &answer));
        }
        compared
    }

    fn send(&self, tested: &TestedRequest, request: &TracedRequest) -> Result<Response<ureq::Body>, String> {
        let (open, close) = if request.host.contains(':') { ("[", "]") } else { ("", "") };
        let host = format!("{open}{}{close}", request.host);
        let without_fragment = tested.url.split('#').next().unwrap_or_default();
        let query = without_fragment.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
        let url = format!("{}://{host}:{}{}{query}", self.scheme, request.port, request.path);
        // As a browser does, with the port only if it is not that of a scheme.
        let host = if matches!(request.port, 80 | 443) { host } else { format!("{host}:{}", request.port) };
        let mut sent = Request::builder().method(request.method.as_str()).uri(url).header("Host", host);
        for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            sent = sent.header(name.as_str(), value.as_str());
        }
        if let Some(agent) = &request.user_agent {
            sent = sent.header("User-Agent", agent.as_str());
        }
        let sent = sent.body(()).map_err(|error| error.to_string())?;
        self.agent.run(sent).map_err(|error| http_client::reason_with_url(&error))
    }
}

/// The expectations of a test that cannot be seen from outside.
fn unseen(tested: &TestedRequest) -> Vec<String> {
    let expect = &tested.expect;
    let set = [
        ("edge", expect.edge.is_some()),
        ("route", expect.route.is_some()),
        ("backend", expect.backend.is_some()),
        ("modules", expect.modules.is_some() || !expect.modules_include.is_empty()),
        ("request headers", expect.request_headers != ExpectedHeaders::default()),
        ("client IP", !tested.client_ip.is_empty()),
    ];
    set.into_iter().filter(|(_, is_set)| *is_set).map(|(what, _)| what.to_owned()).collect()
}

/// Whether a gateway can answer a request with this verdict with a status.
fn is_possible(verdict: RequestVerdict, status: u16, has_location: bool) -> bool {
    let is_redirect = (300..400).contains(&status) && has_location;
    match verdict {
        RequestVerdict::Forwarded => !matches!(status, 401 | 403 | 502..=504),
        RequestVerdict::Login => is_redirect || status == 401,
        // Some gateways have codes of their own for certificates.
        RequestVerdict::Denied => matches!(status, 400 | 401 | 403 | 495 | 496),
        RequestVerdict::Blocked => (400..500).contains(&status),
        RequestVerdict::Redirected => is_redirect,
        RequestVerdict::Unserved => matches!(status, 404 | 421 | 502 | 503),
        RequestVerdict::Depends => true,
    }
}

/// The headers of a response that are not as expected.
fn other_headers(tested: &TestedRequest, answer: &Response<ureq::Body>) -> Vec<String> {
    let expected = &tested.expect.response_headers;
    let has = |name: &&String| answer.headers().contains_key(name.as_str());
    let missing = expected.added.iter().filter(|name| !has(name));
    let missing = missing.map(|name| format!("the response has no header `{}`", printable(name)));
    let kept = expected.removed.iter().filter(has);
    let kept = kept.map(|name| format!("the response still has the header `{}`", printable(name)));
    missing.chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_contradicts_a_verdict_is_a_difference() {
        for (verdict, possible, impossible) in [
            (RequestVerdict::Forwarded, vec![200, 204, 302, 404, 500], vec![401, 403, 502]),
            (RequestVerdict::Login, vec![302, 401], vec![200, 403, 404]),
            (RequestVerdict::Denied, vec![401, 403], vec![200, 302, 404]),
            (RequestVerdict::Blocked, vec![403, 429], vec![200, 302, 500]),
            (RequestVerdict::Redirected, vec![301, 308], vec![200, 404]),
            (RequestVerdict::Unserved, vec![404, 421], vec![200, 403]),
        ] {
            assert!(possible.iter().all(|status| is_possible(verdict, *status, true)), "{verdict:?}");
            assert!(!impossible.iter().any(|status| is_possible(verdict, *status, true)), "{verdict:?}");
        }
        assert!(!is_possible(RequestVerdict::Login, 302, false), "a redirect leads somewhere");
    }

    #[test]
    fn a_gateway_has_a_url_with_a_scheme() {
        for url in ["gateway.example.com", "ftp://127.0.0.1", "https://"] {
            assert!(LiveGateway::new(url).is_err(), "{url}");
        }
        assert!(LiveGateway::new("http://127.0.0.1:8080").is_ok_and(|gateway| gateway.scheme == "http"));
    }
}
