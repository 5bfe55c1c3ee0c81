//! JSON deserialization without serde_json's nesting limit, for text with a known depth. A stored record nests a
//! request body one level deeper, so with the limit the store could not read back a body that was just accepted.

use serde::de::{Deserialize, DeserializeOwned};
use serde_json::de::{Deserializer, Read};

/// Deserializes bytes whose nesting was checked before.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    read(Deserializer::from_slice(bytes))
}

/// Deserializes text whose nesting was checked before.
pub(crate) fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    read(Deserializer::from_str(text))
}

fn read<'de, T: Deserialize<'de>>(mut deserializer: Deserializer<impl Read<'de>>) -> Result<T, serde_json::Error> {
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// An exceeded limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitError {
    /// The offset of the first bracket that nests too deep.
    Levels(usize),
    /// The offset of the first value over the limit.
    Values(usize),
}

/// Checks the size of a JSON text before it is read, as reading recurses with the depth and takes memory for each value.
/// Values are counted from the separators, keys and collections included.
pub(crate) fn check_limits(bytes: &[u8], most_levels: usize, most_values: usize) -> Option<LimitError> {
    let (mut levels, mut values, mut in_text, mut escaped) = (0usize, 1usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                (levels, values) = (levels + 1, values + 1);
                if levels > most_levels {
                    return Some(LimitError::Levels(at));
                }
            }
            b']' | b'}' => levels = levels.saturating_sub(1),
            b',' | b':' => values += 1,
            _ => {}
        }
        if values > most_values {
            return Some(LimitError::Values(at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_values_are_counted_outside_of_texts() {
        let excess = |text: &str| check_limits(text.as_bytes(), 2, 6);
        assert_eq!(excess(r#"{"[[[,,,,,:\"[[[": [1, 2]}"#), None);
        assert_eq!(excess(r#"{"a": [1, [2]]}"#), Some(LimitError::Levels(10)));
        assert_eq!(excess("[1, 2, 3, 4, 5, 6]"), Some(LimitError::Values(14)));
    }
}
