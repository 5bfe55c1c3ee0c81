//! Error responses of a server, as failures of commands.

use crate::cli::prelude::*;
use crate::plan::exposure::ACCESS_OPENED;
use crate::plan::weakened_invariant::INVARIANT_WEAKENED;

/// A server's error response (D9).
#[derive(Deserialize)]
pub(super) struct ErrorResponse {
    error_code: String,
    msg: String,
    #[serde(default)]
    details: ErrorDetails,
    #[serde(default)]
    errors: Vec<ErrorItem>,
    #[serde(default)]
    missing: Vec<String>,
}

#[derive(Default, Deserialize)]
struct ErrorDetails {
    #[serde(default)]
    field: String,
}

#[derive(Deserialize)]
struct ErrorItem {
    error_code: String,
    msg: String,
    #[serde(default)]
    field: String,
}

impl ErrorResponse {
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The exit code of a command whose plan is refused like this.
    pub(super) fn exit(&self) -> Exit {
        let first = (&self.error_code, &self.msg, &self.details.field);
        let others = self.errors.iter().map(|it| (&it.error_code, &it.msg, &it.field));
        let mut exits = std::iter::once(first).chain(others).filter_map(|(code, msg, field)| {
            let is_in_manifest = field.starts_with("/files/") && field.ends_with("/text");
            Some(Exit::of_refusal(reason(Code::from_name(code)?, msg), is_in_manifest))
        });
        exits.find(|exit| *exit != Exit::Error).unwrap_or(Exit::Error)
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

pub(super) fn error_response(at: &str, status: u16, text: &[u8]) -> Failure {
    let Some(refusal) = ErrorResponse::parse(text) else { return foreign_response(at, status) };
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
    let diagnostics = match refusal.errors.as_slice() {
        [] => vec![one(&refusal.error_code, &refusal.msg)],
        several => several.iter().map(|it| one(&it.error_code, &it.msg)).collect(),
    };
    Failure::new(diagnostics, Exit::Error)
}

/// Whether the server itself refused the request before starting on it. A proxy's 503 does not prove that.
pub(super) fn was_refused_before_start(text: &[u8]) -> bool {
    let code = ErrorResponse::parse(text).and_then(|response| Code::from_name(&response.error_code));
    matches!(code, Some(Code::Unavailable | Code::RateLimited | Code::NotTheWriter | Code::NotCaughtUp))
}

/// The digests of the texts that the server lacks, if it answered that (D72).
pub(super) fn missing_files(text: &[u8]) -> Option<Vec<String>> {
    let refusal = ErrorResponse::parse(text)?;
    (Code::from_name(&refusal.error_code) == Some(Code::MissingFiles)).then_some(refusal.missing)
}

/// Whether the server does not know a field of the request, because it is older.
pub(super) fn rejects_field(text: &[u8], is_it: impl Fn(&str) -> bool) -> bool {
    let Some(refusal) = ErrorResponse::parse(text) else { return false };
    let rejects = |code: &str, field: &str| Code::from_name(code) == Some(Code::UnknownField) && is_it(field);
    rejects(&refusal.error_code, &refusal.details.field)
        || refusal.errors.iter().any(|it| rejects(&it.error_code, &it.field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_plan_has_the_exit_code_of_its_reason() {
        let refused = |code: &str, msg: &str, field: &str| {
            let (code, details) = (format!("ERR_EDGEWRIGHT_{code}"), json!({"field": field}));
            let body = json!({"error_code": code, "msg": msg, "details": details}).to_string();
            ErrorResponse::parse(body.as_bytes()).map(|refusal| refusal.exit())
        };
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
        let (code, msg) = ("ERR_EDGEWRIGHT_INVARIANT_BROKEN", "it breaks it; add `oidc`\nway: edge `shop`");
        let body = json!({"error_code": code, "msg": msg}).to_string();
        let found = error_response("http://127.0.0.1:1", 409, body.as_bytes()).diagnostics;
        let told = found.first().map(|it| (it.message.as_str(), it.help.as_deref()));
        assert_eq!(told, Some(("rejected by the server: it breaks it; add `oidc`", Some("way: edge `shop`"))));
        let body =
            json!({"error_code": "ERR_EDGEWRIGHT_FORBIDDEN", "msg": "not for it; ask an admin: usr_1"}).to_string();
        let found = error_response("http://127.0.0.1:1", 403, body.as_bytes()).diagnostics;
        let told = found.first().map(|it| (it.message.as_str(), it.help.as_deref()));
        assert_eq!(told, Some(("rejected by the server: not for it", Some("ask an admin: usr_1"))));
    }

    #[test]
    fn the_advice_of_the_server_is_not_replaced_by_a_general_one() {
        let help = |code: &str, msg: &str| {
            let body = format!(r#"{{"error_code": "ERR_EDGEWRIGHT_{code}", "msg": "{msg}"}}"#);
            let mut found = error_response("http://127.0.0.1:1", 400, body.as_bytes()).diagnostics;
            found.pop().and_then(|error| error.help)
        };
        assert_eq!(help("NOT_FOUND", "this server follows no source `x`; list the sources"), None);
        assert_eq!(help("CONFLICT", "the configuration file suspends the source; remove `suspend`"), None);
        let url = help("NOT_FOUND", "not found: no endpoint at this path");
        assert!(url.is_some_and(|help| help.contains("the path of the URL in --server")));
        let other = help("NOT_FOUND", "edghts_1 does not exist");
        assert!(other.is_some_and(|help| !help.contains("--server")));
        assert!(help("REVISION_NOT_FOUND", "revision 9 does not exist; the store is at revision 3").is_some());
    }
}
