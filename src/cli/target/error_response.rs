//! Error responses of a server, as failures of commands.

use crate::cli::prelude::*;
use crate::plan::exposure::ACCESS_OPENED;
use crate::plan::weakened_invariant::INVARIANT_WEAKENED;
use crate::server::http::error_body::ErrorBody;

/// A server's error response (D9).
#[derive(Deserialize)]
pub(super) struct ErrorResponse(ErrorBody);

impl ErrorResponse {
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    pub(super) fn message(&self) -> &str {
        &self.0.msg
    }

    /// The code, unless only a newer version knows it.
    fn code(&self) -> Option<Code> {
        Code::from_name(&self.0.error_code)
    }

    /// The code, the message and the field of each fault.
    fn faults(&self) -> Vec<(&str, &str, &str)> {
        match self.0.errors.as_slice() {
            [] => vec![(&*self.0.error_code, &*self.0.msg, &*self.0.details.field)],
            several => several.iter().map(|it| (&*it.error_code, &*it.msg, &*it.field)).collect(),
        }
    }

    /// Whether the server refused the request before starting on it.
    pub(super) fn was_refused_before_start(&self) -> bool {
        matches!(self.code(), Some(Code::Unavailable | Code::RateLimited | Code::NotTheWriter | Code::NotCaughtUp))
    }

    /// Whether nothing was changed although the server could not do what was asked.
    pub(super) fn proves_unchanged(&self) -> bool {
        self.was_refused_before_start() || self.code() == Some(Code::StoreUnavailable)
    }

    /// The digests of the texts that the server lacks, if it answered that (D72).
    pub(super) fn missing_files(&self) -> Option<&[String]> {
        (self.code() == Some(Code::MissingFiles)).then_some(self.0.missing.as_slice())
    }

    /// Whether the server does not know a field of the request, because it is older.
    pub(super) fn rejects_field(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let unknown = Some(Code::UnknownField);
        self.faults().into_iter().any(|(code, _, field)| Code::from_name(code) == unknown && is_it(field))
    }

    /// The code and message of a server that failed while it handled the request.
    pub(super) fn of_server(&self) -> (Code, String) {
        (self.code().unwrap_or(Code::Internal), format!("the server failed: {}", self.0.msg))
    }

    /// The exit code of a command whose plan is refused like this.
    pub(super) fn exit(&self) -> Exit {
        let mut exits = self.faults().into_iter().filter_map(|(code, msg, field)| {
            let is_in_manifest = field.starts_with("/files/") && field.ends_with("/text");
            Some(Exit::of_refusal(reason(Code::from_name(code)?, msg), is_in_manifest))
        });
        exits.find(|exit| *exit != Exit::Error).unwrap_or(Exit::Error)
    }

    /// The failure for the response, from a URL.
    pub(super) fn failure(&self, at: &str) -> Failure {
        let one = |code: &str, msg: &str| {
            let known = Code::from_name(code);
            let ask = || msg.rsplit_once("; ").filter(|(_, advice)| advice.contains("ask an admin"));
            let (msg, more) = msg.split_once('\n').or_else(ask).unwrap_or((msg, ""));
            let help = match known {
                // The server's advice has lines of its own, such as the way of a request, or names the admins.
                _ if !more.is_empty() => more,
                Some(Code::Unauthenticated) if msg.contains("a valid API key is required") => {
                    "the token in EDGEWRIGHT_TOKEN or of the context is not known: use that of an API key that is not revoked, which begins with `ew_`, or run `edgewright login`"
                }
                Some(Code::Unauthenticated) => {
                    "use the token of an API key that is not revoked: set EDGEWRIGHT_TOKEN or, for a context, run `edgewright login`"
                }
                Some(Code::VersionHeader) => "set --version-header to the name of the server's version header",
                Some(Code::NotFound) if msg.contains("no endpoint at this path") => {
                    url_help(at, "check the path of the URL in --server, or upgrade the server")
                }
                // The message ends with the server's advice, which knows more than the code.
                Some(Code::NotFound | Code::Conflict | Code::Parameter) if msg.contains("; ") => "",
                Some(code) => code.info().cure,
                None => "use the same edgewright version as the server",
            };
            let error = Diagnostic::error(known.unwrap_or(Code::Internal), format!("rejected by the server: {msg}"));
            if help.is_empty() { error } else { error.help(help) }
        };
        Failure::new(self.faults().into_iter().map(|(code, msg, _)| one(code, msg)).collect(), Exit::Error)
    }
}

/// The code of an error, or the denied lint that its message names behind a place, if the lint decides about the exit code.
fn reason(code: Code, msg: &str) -> Name {
    let named = |lint: &&str| msg.starts_with(&format!("{lint}: ")) || msg.contains(&format!(": {lint}: "));
    let lint = [ACCESS_OPENED, INVARIANT_WEAKENED].into_iter().find(named).filter(|_| code == Code::LintDenied);
    lint.map_or(Name::Code(code), Name::Lint)
}

/// The failure for a response that is not from edgewright.
pub(crate) fn foreign_response(at: &str, status: u16) -> Failure {
    let message = format!("unexpected response from {at} (status {status}): not an edgewright server");
    let help = url_help(at, "check the URL in --server and any proxy in front of the server");
    Diagnostic::error(Code::Unreadable, message).help(help).into()
}

/// The help for a URL under which there is no API: it may be copied from a browser.
fn url_help(at: &str, otherwise: &'static str) -> &'static str {
    match at.contains("/ui/") {
        true => "remove `/ui` from the URL in --server: it is the path of the dashboard",
        false => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(code: &str, msg: &str, field: &str) -> Option<ErrorResponse> {
        let code = format!("ERR_EDGEWRIGHT_{code}");
        let body = json!({"error_code": code, "msg": msg, "details": {"field": field}});
        ErrorResponse::parse(body.to_string().as_bytes())
    }

    /// The message and the help of the failure for a response with one error.
    fn failure(code: &str, msg: &str) -> Option<(String, Option<String>)> {
        let mut found = response(code, msg, "")?.failure("http://127.0.0.1:1").diagnostics;
        found.pop().map(|it| (it.message, it.help))
    }

    #[test]
    fn a_refused_plan_has_the_exit_code_of_its_reason() {
        let refused = |code: &str, msg: &str, field: &str| response(code, msg, field).map(|refusal| refusal.exit());
        let text = "/files/3/text";
        assert_eq!(refused("INVARIANT_BROKEN", "the route breaks it", ""), Some(Exit::Invalid));
        assert_eq!(refused("ROUTE_TEST_FAILED", "a.yaml:1:1: the test fails", text), Some(Exit::Invalid));
        assert_eq!(refused("LINT_DENIED", "a.yaml:1:1: shadowed-route: never reached", text), Some(Exit::Invalid));
        assert_eq!(refused("LINT_DENIED", "a.yaml:1:1: access-opened: this opens access", text), Some(Exit::Refused));
        assert_eq!(refused("LINT_DENIED", "invariant-weakened: it is removed", ""), Some(Exit::Refused));
        assert_eq!(refused("UNKNOWN_REFERENCE", "a.yaml:1:1: unknown HttpsEdge", text), Some(Exit::Invalid));
        assert_eq!(refused("TOO_MANY_DELETIONS", "over the limit", ""), Some(Exit::Refused));
        assert_eq!(refused("STALE", "the store has changed", "/expect"), Some(Exit::Stale));
        assert_eq!(refused("REQUIRED", "`source` is required", "/source"), Some(Exit::Error));
        assert_eq!(refused("FORBIDDEN", "not for this key", ""), Some(Exit::Error));
    }

    #[test]
    fn the_lines_after_a_message_are_its_help() {
        let told = |message: &str, help: &str| Some((message.to_owned(), Some(help.to_owned())));
        let found = failure("INVARIANT_BROKEN", "it breaks it; add `oidc`\nway: edge `shop`");
        assert_eq!(found, told("rejected by the server: it breaks it; add `oidc`", "way: edge `shop`"));
        let found = failure("FORBIDDEN", "not for it; ask an admin: usr_1");
        assert_eq!(found, told("rejected by the server: not for it", "ask an admin: usr_1"));
    }

    #[test]
    fn only_some_failures_of_a_server_prove_that_nothing_has_changed() {
        let proves = |code: &str| response(code, "x", "").is_some_and(|it| it.proves_unchanged());
        for code in ["UNAVAILABLE", "RATE_LIMITED", "NOT_THE_WRITER", "NOT_CAUGHT_UP", "STORE_UNAVAILABLE"] {
            assert!(proves(code), "{code}");
        }
        for code in ["STORE_FAILED", "INTERNAL", "WRITER_LOST", "NEWER_THAN_THIS"] {
            assert!(!proves(code), "{code}");
        }
        let waits = response("STORE_UNAVAILABLE", "x", "").is_some_and(|it| it.was_refused_before_start());
        assert!(!waits, "a database may be away for long");
    }

    #[test]
    fn the_advice_of_the_server_is_not_replaced_by_a_general_one() {
        let help = |code: &str, msg: &str| failure(code, msg).and_then(|(_, help)| help);
        assert_eq!(help("NOT_FOUND", "this server follows no source `x`; list the sources"), None);
        assert_eq!(help("CONFLICT", "the configuration file suspends the source; remove `suspend`"), None);
        let url = help("NOT_FOUND", "not found: no endpoint at this path");
        assert!(url.is_some_and(|help| help.contains("the path of the URL in --server")));
        let other = help("NOT_FOUND", "edghts_1 does not exist");
        assert!(other.is_some_and(|help| !help.contains("--server")));
        assert!(help("REVISION_NOT_FOUND", "revision 9 does not exist; the store is at revision 3").is_some());
    }
}
