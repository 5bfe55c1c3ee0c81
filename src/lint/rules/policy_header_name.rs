//! `policy-header-name`: a policy action with a header that cannot exist.

use serde_json::Value;

use super::prelude::*;
use crate::model::diagnostics::check::is_token;

pub(crate) static LINT: Lint = Lint {
    name: "policy-header-name",
    default: Level::Warn,
    summary: "An `add-headers` or `remove-headers` action has an invalid header name.",
    why: "A header name consists of letters, digits and some punctuation (RFC 9110, section 5.6.2). With any other, \
          the gateway either rejects the policy or sends a malformed message.",
    cure: "Remove spaces, colons and other separators from the name, as in `X-Shop`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for placed in placed_policies(view) {
        for (index, action) in placed.policy.actions.iter().enumerate() {
            let is_about_headers = matches!(action.r#type.as_str(), "add-headers" | "remove-headers");
            let Some(config) = action.config.as_ref().filter(|_| is_about_headers) else { continue };
            // The specification does not say whether keys are capitalized.
            let headers = config.iter().find(|(name, _)| name.eq_ignore_ascii_case("headers"));
            let Some((field, headers)) = headers else { continue };
            let path = placed.path.join("actions").join(index).join("config").join(field.as_str());
            match headers {
                Value::Object(headers) => {
                    for name in headers.keys().filter(|name| is_invalid(name)) {
                        findings.report(placed.key, path.join(name.as_str()), message(name)).target = FaultTarget::Key;
                    }
                }
                Value::Array(headers) => {
                    for (index, name) in headers.iter().enumerate() {
                        if let Some(name) = name.as_str().filter(|name| is_invalid(name)) {
                            findings.report(placed.key, path.join(index), message(name));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn message(name: &str) -> String {
    format!("`{}` is not a valid header name", printable(name))
}

/// Whether a text is no header name. A text with `${` is an expression, which some gateways evaluate.
fn is_invalid(name: &str) -> bool {
    !is_token(name) && !name.contains("${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_name_is_a_token() {
        for bad in ["", "X Shop", "X-Shop:", "é"] {
            assert!(is_invalid(bad), "{bad}");
        }
        for good in ["X-Shop", "x_shop", "${name}-id"] {
            assert!(!is_invalid(good), "{good}");
        }
    }
}
