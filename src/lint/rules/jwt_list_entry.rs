//! `jwt-list-entry`: an entry in a list of `jwt_validation` that matches no token, or that the list already has.
//!
//! Issuers and key URLs that are not https URLs are the subject of `plain-http-jwks`.

use std::collections::HashMap;

use super::prelude::*;
use super::shared::blank_text::blank_fault;
use crate::model::diagnostics::check::is_token;
use crate::model::module::jwt_validation::{JwtValidation, Token, TokenMethod};

pub(crate) static LINT: Lint = Lint {
    name: "jwt-list-entry",
    default: Level::Warn,
    summary: "An entry of a `jwt_validation` list is empty, contains white space, is not a header name, or is a duplicate.",
    why: "Issuers, audiences and token names are compared exactly, so an entry with a stray space matches no token. A \
          duplicate is often a copy that was not edited.",
    cure: "List each value once, without white space, and remove empty entries.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    view.judge_modules(findings, |route| route.jwt_validation.as_deref(), check_module);
}

fn check_module(key: &Key, jwt: &JwtValidation, findings: &mut Findings) {
    let module = Path::from("jwt_validation");
    // An empty issuer or audience is an error.
    for (name, list) in [("issuer", &jwt.issuer), ("audience", &jwt.audience)] {
        let path = module.join(name).join("allow_list");
        let values = list.allow_list.iter().map(|allowed| allowed.value.as_str());
        check_texts(key, name, values, |index| path.join(index).join("value"), findings);
    }
    let jws = module.join("jws");
    let algorithms = jws.join("allowed_algorithms");
    let values = jwt.jws.allowed_algorithms.iter().map(String::as_str);
    check_texts(key, "algorithm", values, |index| algorithms.join(index), findings);
    let key_sets = jws.join("keys").join("sources").join("additional_jkus");
    let values = jwt.jws.keys.sources.additional_jkus.iter().map(String::as_str);
    check_texts(key, "key URL", values, |index| key_sets.join(index), findings);
    check_tokens(key, &jwt.http.tokens, &module.join("http").join("tokens"), findings);
}

fn check_texts<'t>(
    key: &Key,
    name: &str,
    texts: impl Iterator<Item = &'t str>,
    place: impl Fn(usize) -> Path,
    findings: &mut Findings,
) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, text) in texts.enumerate() {
        let earlier = *first.entry(text).or_insert(index);
        if earlier < index {
            let message = format!("duplicate {name} `{}`", printable(text));
            findings.report(key, place(index), message).relate(key, place(earlier), "first entry");
        } else if let Some(reason) = blank_fault(text) {
            findings.report(key, place(index), format!("the {name} {reason}"));
        }
    }
}

fn check_tokens(key: &Key, tokens: &[Token], path: &Path, findings: &mut Findings) {
    let mut seen: Vec<(&Token, usize)> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let place = path.join(index);
        if let Some(reason) = blank_fault(&token.name) {
            findings.report(key, place.join("name"), format!("the token's name {reason}"));
        } else if token.method == Some(TokenMethod::Header) && !is_token(&token.name) {
            let message = format!("`{}` is not a valid header name", printable(&token.name));
            findings.report(key, place.join("name"), message);
        } else if let Some((_, earlier)) = seen.iter().find(|(other, _)| is_same(other, token)) {
            let message = format!("duplicate token `{}`", printable(&token.name));
            findings.report(key, place, message).relate(key, path.join(*earlier), "first entry");
        } else if seen.len() < MOST_TOKENS {
            seen.push((token, index));
        }
    }
}

/// Later tokens are compared with this many, so that a long list takes linear time. Few requests have three.
const MOST_TOKENS: usize = 100;

/// Whether two tokens are in the same place of a request. Header names are case-insensitive.
fn is_same(one: &Token, other: &Token) -> bool {
    let names = match one.method {
        Some(TokenMethod::Header) => one.name.eq_ignore_ascii_case(&other.name),
        _ => one.name == other.name,
    };
    names && one.method == other.method && one.r#type == other.r#type && one.prefix == other.prefix
}
