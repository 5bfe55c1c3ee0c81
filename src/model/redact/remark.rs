//! Secrets in prose: what follows the name of a secret in a comment, or the word `Bearer`.

use std::ops::Range;

/// Words that may stand between the name of a secret and its value.
const VERBS: &[&str] = &["is", "was", "to", "=", "->", "=>", "-"];
/// Signs around a word that are no part of it.
const MARKS: &[char] = &['.', ',', ';', '!', '?', '(', ')', '"', '\'', '`'];

/// Whether a word introduces a token wherever it stands.
pub(super) fn introduces(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer")
}

/// Where the value is in what follows a name, if it is one and not just more words: behind the name of a field, as the
/// last word, or because it looks like no word.
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
