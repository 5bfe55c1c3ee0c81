//! Query parameters: rejects unknown and repeated ones (D56).

use percent_encoding::percent_decode_str;

use super::api_error::ApiError;
use crate::model::decode::one_of;
use crate::server::prelude::*;

/// Returns the name of a parameter that a client may have sent under another one.
fn canonical(name: &str) -> &str {
    match name {
        // A client in TypeScript sends the name of its own parameter.
        "beforeId" => "before_id",
        other => other,
    }
}

/// Rejects a query with an unknown or repeated parameter. If a misspelt `limit` were ignored, the response would
/// contain more than requested, and a script that deletes the listed resources would delete too much.
pub(crate) fn check(query: Option<&str>, known: &[&str]) -> Result<(), ApiError> {
    let decoded = |part: &&str| percent_decode_str(part).decode_utf8().is_ok();
    if let Some(part) = query.unwrap_or_default().split('&').find(|part| !decoded(part)) {
        let name = part.split('=').next().unwrap_or_default();
        let message = format!("the query parameter `{}` is not UTF-8", printable(name));
        if known.is_empty() {
            return Err(ApiError::with_code(Code::Parameter, message));
        }
        let read = percent_decode_str(name).decode_utf8();
        return Err(ApiError::new(at(read.as_deref().map_or(name, canonical), message)));
    }
    let mut counts: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for (name, _) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let known_as = canonical(&name);
        let name = if known.contains(&known_as) { Cow::Owned(known_as.to_owned()) } else { name };
        *counts.entry(name).or_default() += 1;
    }
    let faults = counts.iter().filter_map(|(name, count)| {
        let name: &str = name;
        match known.contains(&name) {
            false => Some(unknown(name, known)),
            true if *count > 1 => Some(at(name, format!("duplicate query parameter `{name}`"))),
            true => None,
        }
    });
    ApiError::check(faults)
}

/// Returns the value of a parameter, if the query has it.
pub(crate) fn value(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(known, _)| canonical(known) == name).map(|(_, value)| value.into_owned())
}

/// Parses the value of a parameter, if the query has it. `message` is that of the error for a value.
pub(crate) fn parsed<T>(
    query: Option<&str>,
    name: &str,
    parse: impl FnOnce(&str) -> Option<T>,
    message: impl FnOnce(&str) -> String,
) -> Result<Option<T>, ApiError> {
    let parse = |value: String| parse(&value).ok_or_else(|| ApiError::new(at(name, message(&value))));
    value(query, name).map(parse).transpose()
}

/// Creates the fault of a known parameter.
pub(crate) fn at(name: &str, message: String) -> Fault {
    Fault::new(Code::Parameter, message).at(name)
}

fn unknown(name: &str, known: &[&str]) -> Fault {
    let message = format!("unknown query parameter `{}`", printable(name));
    if known.is_empty() {
        // Without a path, because it would refer to a field of the body.
        return Fault::new(Code::Parameter, message).help("remove it; this endpoint has no query parameters");
    }
    at(name, message).help(one_of(name, known))
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn only_known_parameters_pass_and_each_of_them_once() {
        let known = ["limit", "before_id"];
        for query in [
            None,
            Some(""),
            Some("&"),
            Some("limit=1"),
            Some("before_id=x&limit=1"),
            Some("%6Cimit=1"),
            Some("beforeId=x"),
        ] {
            assert!(check(query, &known).is_ok(), "{query:?}");
        }
        for query in [
            "limt=1",
            "LIMIT=1",
            "limit=1&limit=1",
            "limit=1&%6cimit=2",
            "before_id=x&beforeId=x",
            "beforeid=x",
            "=",
            "x",
            "limit=1&x=2",
            "limit=%FF",
            "%C3%28=1",
        ] {
            let error = check(Some(query), &known).err().map(|error| error.into_response().status());
            assert_eq!(error.map(|status| status.as_u16()), Some(400), "{query}");
        }
        assert!(check(None, &[]).is_ok());
        assert!(check(Some("limit=1"), &[]).is_err());
        assert!(check(Some("beforeId=x"), &["limit"]).is_err());
    }
}
