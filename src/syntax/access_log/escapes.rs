//! The escapes in the fields of access logs: those of JSON, and `\xHH`, which Apache and nginx write.

use std::borrow::Cow;

/// Replaces the escapes in a field. What is no known escape stands for the character behind the backslash.
pub(super) fn unescaped(field: &[u8]) -> Cow<'_, [u8]> {
    if !field.contains(&b'\\') {
        return Cow::Borrowed(field);
    }
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let Some((escape, after)) = rest.split_first() else { break };
        rest = after;
        match escape {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'v' => text.push(11),
            b'x' => match hexadecimal(rest, 2) {
                Some(code) => {
                    text.push(u8::try_from(code).unwrap_or_default());
                    rest = rest.get(2..).unwrap_or_default();
                }
                None => text.push(b'x'),
            },
            b'u' => match character(rest) {
                Some((c, length)) => {
                    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = rest.get(length..).unwrap_or_default();
                }
                None => text.push(b'u'),
            },
            other => text.push(*other),
        }
    }
    Cow::Owned(text)
}

/// The number in this many hexadecimal digits.
fn hexadecimal(digits: &[u8], length: usize) -> Option<u32> {
    let digits = digits.get(..length)?;
    digits.iter().try_fold(0, |sum: u32, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

/// The character of the four digits behind `\u`, or of two such escapes, and the length of what stands for it.
fn character(rest: &[u8]) -> Option<(char, usize)> {
    let first = hexadecimal(rest, 4)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 4));
    }
    let low = rest.get(4..).and_then(|rest| rest.strip_prefix(b"\\u")).and_then(|rest| hexadecimal(rest, 4));
    let pair = low.filter(|low| (0xdc00..0xe000).contains(low) && first < 0xdc00).and_then(|low| {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
        char::from_u32(code)
    });
    Some(pair.map_or((char::REPLACEMENT_CHARACTER, 4), |c| (c, 10)))
}
