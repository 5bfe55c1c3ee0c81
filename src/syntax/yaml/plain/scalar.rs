//! The type of a plain scalar, by the rules of serde_yaml.

use serde_json::Number;

/// A plain scalar of a certain type.
pub(super) enum PlainScalar<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'t str),
}

/// The digits of an integer that fits in 64 bits, whatever they are.
const MOST_DIGITS: usize = 18;

/// Returns what a plain scalar is, unless that is uncertain.
pub(super) fn resolve(text: &str) -> Option<PlainScalar<'_>> {
    let mut bytes = text.bytes();
    Some(match (bytes.next()?, bytes.next()) {
        (b'0'..=b'9', _) | (b'-', Some(b'0'..=b'9')) => return number(text),
        // Infinity, NaN and numbers with unusual starts.
        (b'+', _) | (b'.', None | Some(b'0'..=b'9' | b'i' | b'I' | b'n' | b'N')) | (b'-', None | Some(b'.')) => {
            return None;
        }
        (b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F', _) => match text {
            "~" | "null" | "Null" | "NULL" => PlainScalar::Null,
            "true" | "True" | "TRUE" => PlainScalar::Bool(true),
            "false" | "False" | "FALSE" => PlainScalar::Bool(false),
            _ => PlainScalar::Text(text),
        },
        _ => PlainScalar::Text(text),
    })
}

/// Returns what a scalar is that starts with a digit, or with a minus sign and a digit.
fn number(text: &str) -> Option<PlainScalar<'_>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Leading zeros make a text, and long integers have types of their own.
        let is_certain = digits.len() <= MOST_DIGITS && (!digits.starts_with('0') || text == "0");
        return is_certain.then(|| text.parse::<i64>().ok())?.map(|number| PlainScalar::Number(number.into()));
    }
    if ["0x", "0o", "0b"].iter().any(|radix| digits.starts_with(*radix)) {
        return None;
    }
    // Not an integer, because not all characters are digits.
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Number::from_f64(number).map(PlainScalar::Number),
        _ => Some(PlainScalar::Text(text)),
    }
}
