//! Display of untrusted text, without characters that change what a terminal or review shows.
//!
//! # The problem
//!
//! Names, messages and paths come from manifests and requests. A direction mark or an escape sequence in them can make
//! a review show something else than what is applied, and a token in the wrong field would end up in a log.
//!
//! # The idea
//!
//! Whoever writes such a text calls [`printable`] for a quoted value, which is short, or [`escaped`] for a whole line.
//! Both hide API tokens.
//!
//! # An example
//!
//! `printable("shop\u{202e}")` is `shop\u{202e}` in visible characters, and `printable` of a certificate ends after 60
//! characters with `…`.
//!
//! # What it never does
//!
//! It does not know what a text is about, and never fails.

mod token;
mod url;

use std::borrow::{Borrow, Cow};
use std::{fmt, ops::Range};

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
    truncate(text, QUOTED_CHARS)
}

/// Like [`printable`], for a file path: longer, because its end matters more than its start.
pub(crate) fn printable_path(text: &str) -> String {
    truncate(text, PATH_CHARS)
}

/// Describes a number that is in the place of another value.
pub(crate) fn number(number: &dyn fmt::Display) -> String {
    let digits = number.to_string();
    if digits.len() > NUMBER_CHARS { "a number".to_owned() } else { format!("the number {digits}") }
}

/// A number of things, such as `2 routes`.
pub(crate) fn number_of(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {}", plural(noun)) }
}

/// The plural of a name or of words.
pub(crate) fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

/// The first of some names, and how many more there are, such as `a, b and 2 more`.
pub(crate) fn first_of<N: Borrow<str>>(names: impl ExactSizeIterator<Item = N>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    and_more(names.take(most), more)
}

/// Some names, and how many more there are.
pub(crate) fn and_more<N: Borrow<str>>(names: impl Iterator<Item = N>, more: usize) -> String {
    let named = names.collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// The first characters of a text, with `…` for the others.
pub(crate) fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

fn truncate(text: &str, most: usize) -> String {
    // A part of a token would be no token, and still too much of it.
    let text = &*without_tokens(text);
    let mut printable = String::new();
    for c in text.chars().take(most) {
        // Only what steers a terminal is escaped, and quotes do not.
        match c {
            '\'' | '"' => printable.push(c),
            _ => printable.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(most).is_some() {
        printable.push('…');
    }
    printable
}

/// Replaces parts of a text, which are in its order.
pub(crate) fn replace_parts(
    text: &str,
    parts: impl IntoIterator<Item = Range<usize>>,
    replacement: impl Fn(&str) -> Cow<'static, str>,
) -> String {
    let (mut replaced, mut at) = (String::with_capacity(text.len()), 0);
    for part in parts {
        replaced.push_str(text.get(at..part.start).unwrap_or_default());
        at = part.end;
        replaced.push_str(&replacement(text.get(part).unwrap_or_default()));
    }
    replaced.push_str(text.get(at..).unwrap_or_default());
    replaced
}

/// Whether a character changes how text is shown: control characters, line breaks, direction marks and invisible
/// characters, except joiners, which scripts and emoji need.
pub(crate) fn alters_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character has no shape of its own, so that two texts with and without it look the same. Unlike [`alters_display`], it
/// includes joiners, fillers and variation selectors.
pub(crate) fn is_invisible(c: char) -> bool {
    alters_display(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        )
        || matches!(c, '\u{200c}' | '\u{200d}' | '\u{3164}' | '\u{ffa0}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Hides API tokens, and escapes the characters for which [`alters_display`] is true, so that the value is on one line.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    match without_tokens(text) {
        Cow::Borrowed(text) => on_one_line(text),
        Cow::Owned(text) => Cow::Owned(on_one_line(&text).into_owned()),
    }
}

/// A word in a command that a message shows, quoted for a shell if it needs that, and [`escaped`].
pub(crate) fn shell_word(word: &str) -> String {
    let word = escaped(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Like [`escaped`], for a text of several lines.
pub(crate) fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

fn on_one_line(text: &str) -> Cow<'_, str> {
    // Most texts have only printable ASCII characters, of which none alters_display.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(alters_display) {
        return Cow::Borrowed(text);
    }
    let altering = text.char_indices().filter(|(_, c)| alters_display(*c)).map(|(at, c)| at..at + c.len_utf8());
    Cow::Owned(replace_parts(text, altering, |part| part.escape_debug().to_string().into()))
}

/// Replaces each character for which [`alters_display`] is true, except line breaks, with a placeholder of the same length, so
/// that positions stay the same.
pub(crate) fn without_display_changes(text: &str) -> String {
    let keeps = |c: char| matches!(c, '\n' | '\r' | '\t') || !alters_display(c);
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
            ("the team's \"new\" page", "the team's \"new\" page"),
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
    fn what_follows_the_first_characters_is_left_out() {
        assert_eq!(["", "äö", "äöü"].map(|text| beginning(text, 2).into_owned()), ["", "äö", "äö…"]);
    }

    #[test]
    fn things_are_counted_and_only_the_first_are_named() {
        let counted = [number_of(0, "error"), number_of(1, "API key"), number_of(2, "authority")];
        assert_eq!(counted, ["0 errors", "1 API key", "2 authorities"]);
        let names = |names: &'static [&str]| first_of(names.iter().copied(), 2);
        assert_eq!(names(&["a", "b"]), "a, b");
        assert_eq!(names(&["a", "b", "c"]), "a, b and 1 more");
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
        assert_eq!(escaped_lines("a\tb\nc\r"), "a\\tb\nc\\r");
    }

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        for (word, expected) in [
            ("shop", "shop"),
            ("team-a/shop.v2", "team-a/shop.v2"),
            ("my shop", "'my shop'"),
            ("it's", r"'it'\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
    }

    #[test]
    fn a_tamed_text_keeps_its_lines_and_its_length() {
        let text = "a: \u{1b}[31m\n\u{85}b\t\u{202e}\r\n\u{e0041}ü";
        let without_display_changes = without_display_changes(text);
        assert_eq!(without_display_changes, "a: ?[31m\n¿b\t\u{fffd}\r\n\u{1f6ab}ü");
        assert_eq!(without_display_changes.len(), text.len());
    }
}
