//! Display of untrusted text, without characters that change what a terminal or review shows.

mod token;
mod url;
pub(crate) mod yaml;
pub(crate) mod yaml_cursor;

use std::{borrow::Cow, fmt};

pub(crate) use token::{has_token, key_of_token, token_secrets, without_tokens};
pub(crate) use url::url_passwords;

/// The most characters of a value quoted in a message.
const QUOTED_CHARS: usize = 60;
/// The most characters of a number shown in a message. A longer one may be a secret in the place of something else.
const NUMBER_CHARS: usize = 5;
/// The most characters of a path quoted in a message.
const PATH_CHARS: usize = 255;

/// Shortens a value for a message, and escapes control, line-break and bidirectional characters. Otherwise a manifest
/// could change what a reviewer's terminal or log shows.
pub(crate) fn printable(text: &str) -> String {
    cut(text, QUOTED_CHARS)
}

/// Like [`printable`], for a file path: longer, because its end matters more than its start.
pub(crate) fn printable_path(text: &str) -> String {
    cut(text, PATH_CHARS)
}

/// Describes a number that is in the place of another value.
pub(crate) fn number(number: &dyn fmt::Display) -> String {
    let digits = number.to_string();
    if digits.len() > NUMBER_CHARS { "a number".to_owned() } else { format!("the number {digits}") }
}

fn cut(text: &str, most: usize) -> String {
    // A part of a token would be no token, and still too much of it.
    let text = &*without_tokens(text);
    let mut printable: String = text.chars().take(most).flat_map(char::escape_debug).collect();
    if text.chars().nth(most).is_some() {
        printable.push('…');
    }
    printable
}

/// Whether a character changes how text is shown: control characters, line breaks, direction marks and invisible
/// characters, except joiners, which scripts and emoji need.
pub(crate) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character has no shape of its own, so that two texts with and without it look the same. Unlike [`steers`], it
/// includes joiners, fillers and variation selectors.
pub(crate) fn is_invisible(c: char) -> bool {
    steers(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        )
        || matches!(c, '\u{200c}' | '\u{200d}' | '\u{3164}' | '\u{ffa0}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Hides API tokens, and escapes the characters for which [`steers`] is true, so that the value is on one line.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    match without_tokens(text) {
        Cow::Borrowed(text) => on_one_line(text),
        Cow::Owned(text) => Cow::Owned(on_one_line(&text).into_owned()),
    }
}

fn on_one_line(text: &str) -> Cow<'_, str> {
    // Most texts have only printable ASCII characters, of which none steers.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            escaped.extend(c.escape_debug());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Replaces each character for which [`steers`] is true, except line breaks, with a placeholder of the same length, so
/// that positions stay the same.
pub(crate) fn tamed(text: &str) -> String {
    let keeps = |c: char| matches!(c, '\n' | '\r' | '\t') || !steers(c);
    let tame = |c: char| match c.len_utf8() {
        _ if keeps(c) => c,
        1 => '?',
        2 => '¿',
        3 => '\u{fffd}',
        _ => '\u{1f6ab}',
    };
    text.chars().map(tame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_short_and_cannot_steer_a_terminal() {
        for (text, expected) in [
            ("plain", "plain"),
            ("two\nlines\r", "two\\nlines\\r"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("abc\u{202e}cba\u{2066}", "abc\\u{202e}cba\\u{2066}"),
            ("\u{2028}", "\\u{2028}"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable(&"ü".repeat(61)), "ü".repeat(60) + "…");
    }

    #[test]
    fn a_whole_value_loses_nothing_but_what_steers() {
        for (text, expected) in [
            ("a \"quoted\" C:\\path, it's fine", "a \"quoted\" C:\\path, it's fine"),
            ("हिन्दी é 👩\u{200d}💻", "हिन्दी é 👩\u{200d}💻"),
            ("two\nlines\r\t", "two\\nlines\\r\\t"),
            ("\u{1b}]0;x\u{7}\u{9b}1m", "\\u{1b}]0;x\\u{7}\\u{9b}1m"),
            ("abc\u{202e}cba\u{2066}\u{2028}", "abc\\u{202e}cba\\u{2066}\\u{2028}"),
            ("\u{200b}\u{feff}\u{e0041}", "\\u{200b}\\u{feff}\\u{e0041}"),
            ("a\tew_ak_1_Zirnp3rqEUFId13vm5Ms2LsUY6D", "a\\tew_ak_1_***"),
        ] {
            assert_eq!(escaped(text), expected);
        }
        let long = "ü".repeat(1000);
        assert_eq!(escaped(&long), long);
    }

    #[test]
    fn a_tamed_text_keeps_its_lines_and_its_length() {
        let text = "a: \u{1b}[31m\n\u{85}b\t\u{202e}\r\n\u{e0041}ü";
        let tamed = tamed(text);
        assert_eq!(tamed, "a: ?[31m\n¿b\t\u{fffd}\r\n\u{1f6ab}ü");
        assert_eq!(tamed.len(), text.len());
    }
}
