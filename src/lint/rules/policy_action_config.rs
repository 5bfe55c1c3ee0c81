//! `policy-action-config`: the configuration of a policy action with a misspelt key or an impossible value.
//!
//! The API specification describes the configuration of `log` and `deny` only. For other actions, a key is reported only
//! if it looks like a misspelt known one.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::prelude::*;
use super::shared::cidr_range::{cidr_fault, is_range};
use super::shared::match_pattern::pattern_fault;

pub(crate) static LINT: Lint = Lint {
    name: "policy-action-config",
    default: Level::Warn,
    summary: "The `config` of a policy action has an unknown key, or an impossible status code, address, CIDR range or regular expression.",
    why: "The gateway reads the configuration of an action only when it loads the policy. It then ignores the key, or \
          rejects the whole policy.",
    cure: "Correct the key or value.",
    check: LintCheck::Edge(check),
};

/// The only key of a `log` action.
const METADATA: &str = "Metadata";
/// How to fix the configuration of a `log` action.
const LOG_HELP: &str = "The configuration of `log` has one key, `Metadata`, with an object.";

/// How to fix the configuration of a `deny` action.
const DENY_HELP: &str =
    "Remove the key. The configuration of `deny` is null, or has a `status_code` for some gateways.";
/// How to fix an entry of `restrict-ips`.
const RANGE_HELP: &str =
    "Write an address such as `192.0.2.1`, or a CIDR range such as `10.0.0.0/8` or `2001:db8::/32`.";

/// Other words for a key.
const SYNONYMS: &[(&str, &str, &str)] =
    &[("custom-response", "code", "status_code"), ("custom-response", "status", "status_code")];

/// Common keys of actions, to find misspelt ones.
const KEYS: &[(&str, &[&str])] = &[
    ("add-headers", &["headers"]),
    ("basic-auth", &["credentials", "enforce", "realm"]),
    ("compress-response", &["algorithms"]),
    ("custom-response", &["body", "content", "headers", "status_code"]),
    ("deny", &["status_code"]),
    ("rate-limit", &["algorithm", "bucket_key", "capacity", "name", "rate"]),
    ("redirect", &["from", "headers", "status_code", "to"]),
    ("remove-headers", &["headers"]),
    ("restrict-ips", &["allow", "deny", "enforce"]),
    ("url-rewrite", &["from", "to"]),
];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for placed in placed_policies(view) {
        for (index, action) in placed.policy.actions.iter().enumerate() {
            let Some(config) = &action.config else { continue };
            let path = placed.path.join("actions").join(index).join("config");
            if action.r#type == "log" {
                check_log(placed.key, &path, config, findings);
            } else {
                check_keys(placed.key, &path, &action.r#type, config, findings);
                check_values(placed.key, &path, &action.r#type, config, findings);
            }
        }
    }
}

fn check_log(key: &Key, path: &Path, config: &Map<String, Value>, findings: &mut Findings) {
    for (name, value) in config {
        let at = path.join(name.as_str());
        if name != METADATA {
            let near = findings.suggestions.nearest(name, [METADATA]);
            let finding = findings.report(key, at, unknown_word("key", name, near));
            (finding.target, finding.help) = (FaultTarget::Key, Some(LOG_HELP));
        } else if !value.is_object() && !value.is_null() {
            findings.report(key, at, "`Metadata` must be an object").help = Some(LOG_HELP);
        }
    }
}

fn check_keys(key: &Key, path: &Path, action: &str, config: &Map<String, Value>, findings: &mut Findings) {
    let known = KEYS.iter().find(|(it, _)| *it == action);
    let Some((_, known)) = known else { return };
    for name in config.keys() {
        // `StatusCode` and `status_code` are spellings of one key, and which one is right is unknown.
        if known.iter().any(|known| plain(known) == plain(name)) {
            continue;
        }
        let near = findings.suggestions.nearest(name, known.iter().copied());
        let is_misspelt = |near: &&str| strsim::damerau_levenshtein(&plain(near), &plain(name)) <= 1 + near.len() / 8;
        let synonym = SYNONYMS.iter().find(|(of, word, _)| *of == action && *word == plain(name));
        let near = near.filter(is_misspelt).or(synonym.map(|(.., known)| *known));
        if near.is_some() || action == "deny" {
            let finding = findings.report(key, path.join(name.as_str()), unknown_word("key", name, near));
            finding.target = FaultTarget::Key;
            finding.help = (action == "deny" && near.is_none()).then_some(DENY_HELP);
        }
    }
}

/// A key in a form that is the same in `CamelCase`, `snake_case` and `kebab-case`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn check_values(key: &Key, path: &Path, action: &str, config: &Map<String, Value>, findings: &mut Findings) {
    for (name, value) in config {
        let at = path.join(name.as_str());
        let is_status = plain(name) == "statuscode";
        let is_pattern = matches!(action, "redirect" | "url-rewrite") && name == "from";
        if is_status && let Some(message) = status_fault(action, value) {
            findings.report(key, at, message);
        } else if is_pattern && let Some(reason) = value.as_str().and_then(pattern_fault) {
            findings.report(key, at, format!("`from` is not a regular expression: {reason}"));
        } else if action == "restrict-ips" && matches!(plain(name).as_str(), "allow" | "deny") {
            check_addresses(key, &at, value, findings);
        } else {
            check_ranges(key, at, value, findings);
        }
    }
}

/// Reports entries of `restrict-ips` that are no address and no range.
fn check_addresses(key: &Key, at: &Path, value: &Value, findings: &mut Findings) {
    for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
        let Some(text) = entry.as_str().filter(|text| !is_address(text)) else { continue };
        let message = match cidr_fault(text) {
            Some(message) => message.to_owned(),
            None => format!("`{}` is not an IP address or CIDR range", printable(text)),
        };
        findings.report(key, at.join(index), message).help = Some(RANGE_HELP);
    }
}

/// Whether a text is an address, a range, or something else that stands for addresses: an expression or an ID.
fn is_address(text: &str) -> bool {
    let text = text.trim();
    let is_plain = |text: &str| text.trim().parse::<IpAddr>().is_ok();
    is_range(text)
        || is_plain(text)
        || text.split_once('-').is_some_and(|(first, last)| is_plain(first) && is_plain(last))
        || text.contains(['$', '{'])
        || text.starts_with("ipp_")
}

/// Reports impossible CIDR ranges in a value, however deep it is.
fn check_ranges(key: &Key, at: Path, value: &Value, findings: &mut Findings) {
    // A path is made only for what needs a look, because a list can be long.
    let needs_look = |value: &Value| match value {
        Value::String(text) => cidr_fault(text).is_some(),
        Value::Array(_) | Value::Object(_) => true,
        _ => false,
    };
    let mut open = vec![(at, value)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::String(text) => {
                if let Some(message) = cidr_fault(text) {
                    findings.report(key, at, message);
                }
            }
            Value::Array(items) => {
                let items = items.iter().enumerate().filter(|(_, item)| needs_look(item));
                open.extend(items.map(|(index, item)| (at.join(index), item)));
            }
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(_, field)| needs_look(field));
                open.extend(fields.map(|(name, field)| (at.join(name.as_str()), field)));
            }
            _ => {}
        }
    }
}

/// Returns what is wrong with a status code. A text may be an expression, so only numbers and words count.
fn status_fault(action: &str, value: &Value) -> Option<String> {
    let code = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => match text.trim().parse::<i32>() {
            Ok(code) => f64::from(code),
            Err(_) if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return Some(format!("the status code must be a number (found `{}`)", printable(text)));
            }
            Err(_) => return None,
        },
        Value::Bool(value) => return Some(format!("the status code must be a number (found {value})")),
        _ => return None,
    };
    let (least, most) = if action == "redirect" { (300.0, 399.0) } else { (100.0, 599.0) };
    let is_status = (least..=most).contains(&code) && code.fract() == 0.0;
    (!is_status).then(|| format!("the status code must be from {least} to {most} (found {code})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_code_is_in_the_range_of_its_action() {
        let bad = [
            ("deny", json!(600)),
            ("deny", json!(-1)),
            ("deny", json!(403.5)),
            ("deny", json!("abc")),
            ("deny", json!(true)),
            ("redirect", json!("200")),
        ];
        for (action, code) in bad {
            assert!(status_fault(action, &code).is_some(), "{action} {code}");
        }
        let good = [("deny", json!(403)), ("redirect", json!(308)), ("deny", json!("${code}")), ("deny", json!([]))];
        for (action, code) in good {
            assert_eq!(status_fault(action, &code), None, "{action} {code}");
        }
    }

    #[test]
    fn restricted_addresses_are_addresses() {
        for good in ["10.0.0.0/8", "::/0", "1.2.3.4", "2001:db8::1", "10.0.0.1 - 10.0.0.9", "${office}", "ipp_1"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["10.0.0/8", "10.0.0.0/-1", "10.0.0.0/8/8", "2001:zz::/32", "not-an-ip", "10.0.0.0/33", ""] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    #[test]
    fn spellings_of_a_key_are_one_key() {
        assert!(["StatusCode", "status_code", "status-code"].iter().all(|name| plain(name) == "statuscode"));
    }
}
