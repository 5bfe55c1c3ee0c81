//! Integers of more than 64 bits in a JSON text. Its reader would round them to a float without a word.

use crate::syntax::yaml::Tape;

/// Marks the integers of more than 64 bits in a document, which was read from this JSON text and is otherwise unchanged.
pub(crate) fn mark(document: &mut Tape, json: &[u8]) {
    // Long integers were read as floats, and most documents have none.
    if document.has_floats() {
        document.set_long_integers(&positions(json));
    }
}

/// Returns which numbers of a valid JSON text are such integers: 0 is the first number.
fn positions(json: &[u8]) -> Vec<usize> {
    let (mut found, mut count) = (Vec::new(), 0);
    let (mut in_text, mut escaped) = (false, false);
    let mut start = None;
    // A number can be the end of the text.
    for (at, byte) in json.iter().chain(b"\n").enumerate() {
        if let Some(from) = start {
            if matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
                continue;
            }
            if json.get(from..at).is_some_and(is_long) {
                found.push(count);
            }
            (start, count) = (None, count + 1);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'0'..=b'9' | b'-' if !in_text => start = Some(at),
            _ => {}
        }
    }
    found
}

fn is_long(number: &[u8]) -> bool {
    let Ok(number) = std::str::from_utf8(number) else { return false };
    let is_integer = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_integer && number.parse::<u64>().is_err() && number.parse::<i64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::json::deserialize;

    #[test]
    fn long_integers_are_found_among_numbers_and_texts() {
        let json = br#"{"a": 1, "18446744073709551616": "-9 18446744073709551616 \" 1", "b": [1.5, true, false, -0,
            18446744073709551615, 18446744073709551616, -9223372036854775808, -9223372036854775809, 1e22,
            18446744073709551616.0, null], "c": 99999999999999999999}"#;
        assert_eq!(positions(json), [4, 6, 9]);
        let mut document = deserialize::from_slice::<Tape>(json).unwrap_or_default();
        mark(&mut document, json);
        let paths: Vec<String> = document.take_faults().iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["/b/5", "/b/7", "/c"]);
        assert_eq!(positions(b"18446744073709551616"), [0]);
    }
}
