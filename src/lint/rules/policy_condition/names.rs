//! The documented variables and standard functions, and what a misspelt name probably means.

use super::inferred_type::InferredType;
use crate::model::nearest;

/// Macros whose first arguments name new variables.
pub(super) const BINDERS: &[&str] =
    &["all", "bind", "exists", "existsOne", "exists_one", "filter", "map", "transformList", "transformMap"];

/// The variables in the examples of the documentation.
const VARIABLES: &[&str] = &["conn", "res", "req"];
/// The full names of variables, which other gateways use.
const LONG_NAMES: &[(&str, &str)] = &[("connection", "conn"), ("request", "req"), ("response", "res")];

/// The fields of variables in the examples of the documentation: the variable, the name, and the type.
const FIELDS: &[(&str, &str, InferredType)] = &[
    ("conn", "ClientIP", InferredType::Text),
    ("conn", "Geo", InferredType::Unknown),
    ("conn.Geo", "CountryCode", InferredType::Text),
    ("req", "Method", InferredType::Text),
    ("req", "URL", InferredType::Text),
    ("res", "StatusCode", InferredType::Number),
];
/// Other words for a field.
const SYNONYMS: &[(&str, &str, &str)] = &[("res", "Status", "StatusCode")];
/// Words that are like a field, but mean something else.
const OTHERS: &[&str] = &["ClientID"];

/// Fields that people write without their variable, in lower case and without underscores.
const BARE: &[(&str, &str)] = &[
    ("clientip", "conn.ClientIP"),
    ("countrycode", "conn.Geo.CountryCode"),
    ("method", "req.Method"),
    ("statuscode", "res.StatusCode"),
    ("url", "req.URL"),
];

/// The functions of the language and its usual extensions, and those for CIDR ranges.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "all", "bool", "bytes", "charAt", "contains", "double", "duration", "dyn", "endsWith", "exists", "existsOne",
    "exists_one", "filter", "format", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear",
    "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds", "has", "inCidr", "inCidrRange",
    "inCidrRanges", "inCidrs", "indexOf", "int", "join", "lastIndexOf", "lowerAscii", "map", "matches", "quote",
    "replace", "reverse", "size", "split", "startsWith", "string", "substring", "timestamp", "transformList",
    "transformMap", "trim", "type", "uint", "upperAscii",
];

/// Returns the variable that the misspelt receiver of a call probably means. It can also be a namespace, such as `re`.
pub(super) fn receiver_meant(name: &str) -> Option<&'static str> {
    if VARIABLES.contains(&name) {
        return None;
    }
    let folded = name.replace('_', "");
    BARE.iter().find(|(bare, _)| bare.eq_ignore_ascii_case(&folded)).map(|(_, known)| *known)
}

/// Returns the variable that a misspelt one probably means.
pub(super) fn variable_meant(name: &str) -> Option<&'static str> {
    if VARIABLES.contains(&name) {
        return None;
    }
    let long = LONG_NAMES.iter().find_map(|(long, known)| (*long == name).then_some(*known));
    let other_case = || VARIABLES.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
    let misspelt =
        || nearest(name, VARIABLES.iter().copied()).filter(|near| strsim::damerau_levenshtein(near, name) == 1);
    receiver_meant(name).or(long).or_else(other_case).or_else(misspelt)
}

/// Returns the type of a documented field.
pub(super) fn field_type(parent: &str, field: &str) -> Option<InferredType> {
    FIELDS.iter().find(|(of, name, _)| *of == parent && *name == field).map(|(.., r#type)| *r#type)
}

/// Returns the field that a misspelt one probably means.
pub(super) fn field_meant(parent: &str, field: &str) -> Option<&'static str> {
    if OTHERS.contains(&field) {
        return None;
    }
    let synonym = SYNONYMS.iter().find(|(of, word, _)| *of == parent && *word == field).map(|(.., known)| *known);
    let mut names = FIELDS.iter().filter(|(of, ..)| *of == parent).map(|(_, name, _)| *name);
    let most = |known: &str| match known.len() {
        0..=3 => 0,
        4..=5 => 1,
        _ => 2,
    };
    synonym.or_else(|| names.find(|known| is_near(field, known, most(known))))
}

/// Returns the function that a misspelt one probably means. Gateways have functions of their own.
pub(super) fn function_meant(name: &str) -> Option<&'static str> {
    if FUNCTIONS.contains(&name) {
        return None;
    }
    let most = |known: &str| match known.len() {
        0..=5 => 0,
        6..=9 => 1,
        _ => 2,
    };
    // The other case is nearer than another letter.
    let other_case = || FUNCTIONS.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
    other_case().or_else(|| FUNCTIONS.iter().copied().find(|known| is_near(name, known, most(known))))
}

/// Whether a word differs from a known one by case and at most so many letters.
fn is_near(word: &str, known: &str, most: usize) -> bool {
    let (word, known) = (word.to_ascii_lowercase(), known.to_ascii_lowercase());
    word.len().abs_diff(known.len()) <= most && strsim::damerau_levenshtein(&word, &known) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_like_a_known_one() {
        for (parent, field, known) in [
            ("req", "Methd", Some("Method")),
            ("req", "method", Some("Method")),
            ("req", "url", Some("URL")),
            ("conn", "ClientIp", Some("ClientIP")),
            ("conn.Geo", "ContryCode", Some("CountryCode")),
            ("res", "Status", Some("StatusCode")),
            ("req", "Headers", None),
            ("req", "URI", None),
            ("conn", "ClientPort", None),
            ("conn", "ClientID", None),
            ("conn.Geo", "Country", None),
            ("vars", "method", None),
        ] {
            assert_eq!(field_meant(parent, field), known, "{parent}.{field}");
        }
        for (name, known) in [
            ("inCidrz", Some("inCidr")),
            ("startswith", Some("startsWith")),
            ("StartWith", Some("startsWith")),
            ("containz", Some("contains")),
            ("hasReqHeader", None),
            ("getReqHeader", None),
            ("rand", None),
            ("inCidrs", None),
            ("maps", None),
        ] {
            assert_eq!(function_meant(name), known, "{name}");
        }
        for (name, is_receiver, known) in [
            ("REQ", false, Some("req")),
            ("rec", false, Some("req")),
            ("request", false, Some("req")),
            ("method", false, Some("req.Method")),
            ("url", true, Some("req.URL")),
            ("client_ip", false, Some("conn.ClientIP")),
            ("re", true, None),
            ("vars", false, None),
            ("res", false, None),
        ] {
            let found = if is_receiver { receiver_meant(name) } else { variable_meant(name) };
            assert_eq!(found, known, "{name}");
        }
    }
}
