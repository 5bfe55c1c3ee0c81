//! Secrets in prose: a value after the name of a secret in a comment, or after the word `Bearer`.

use std::ops::Range;

/// Words between the name of a secret and its value.
const VERBS: &[&str] = &["is", "was", "to", "=", "->", "=>", "-"];
/// Punctuation around a word.
const MARKS: &[char] = &['.', ',', ';', '!', '?', '(', ')', '"', '\'', '`'];

/// Whether a word introduces a token anywhere in a text.
pub(super) fn introduces(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer")
}

/// Finds the value in the text after a name. More prose is not a value, but the last word is, as is anything after a
/// field's name and anything that does not look like a word.
pub(super) fn value(name: &str, behind: &str) -> Option<Range<usize>> {
    let mut rest = behind.strip_prefix([' ', '\t'])?.trim_start();
    if let Some(behind_verb) = VERBS.iter().find_map(|verb| rest.strip_prefix(verb)?.strip_prefix([' ', '\t'])) {
        rest = behind_verb.trim_start();
    }
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (word, more) = rest.split_at_checked(end)?;
    let more = more.trim_start();
    let last = more.is_empty() || more.starts_with("*/");
    if word.trim_matches(MARKS).is_empty() || word == "*/" {
        return None;
    }
    let start = behind.len() - rest.len();
    if name.contains('_') {
        return Some(start..behind.len());
    }
    (last || !is_word(word.trim_matches(MARKS))).then_some(start..start + word.len())
}

/// Whether a text is a word of prose.
fn is_word(text: &str) -> bool {
    let tail: String = text.chars().skip(1).collect();
    text.chars().all(|c| c.is_alphabetic() || "-\'/:".contains(c)) && !tail.contains(char::is_uppercase)
}
