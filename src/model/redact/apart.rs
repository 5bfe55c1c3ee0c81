//! Secrets separated from their keys by a line break, a comma or quotes, secrets in place of their keys, and secrets in
//! URLs.

use std::ops::Range;

use super::{
    fields::Fields,
    mask::{Mask, next_word},
    shape,
};
use crate::text::url_passwords;

/// The key that gives the value in a pair such as `{name: client_secret, value: …}`.
const VALUE_KEY: &str = "value";
/// The longest quoted value that is hidden as a whole; a longer one is hidden line by line.
const LONGEST_QUOTE: usize = 4096;

/// Hides each value that is separated from its key, and returns the values.
pub(super) fn hide<'t>(text: &'t str, fields: &Fields, mask: &mut Mask) -> Vec<&'t str> {
    let mut values = Vec::new();
    let mut at = 0;
    while let Some(word) = next_word(text, at) {
        at = word.end;
        let (Some(before), Some(name), Some(behind)) =
            (text.get(..word.start), text.get(word.clone()), text.get(word.end..))
        else {
            break;
        };
        let key = if fields.names_secret(name) { swapped(before, behind, fields) } else { None };
        if let Some(key) = key {
            mask.hide(key.clone());
            values.extend(text.get(key));
        }
        let Some(rest) = following(before, behind) else { continue };
        if !(before.ends_with('*') || fields.is_secret(name)) {
            continue;
        }
        let value = rest.trim_start_matches(|c: char| c.is_whitespace() || "[{(".contains(c));
        let start = text.len() - value.len();
        let end = start + length(value);
        mask.hide(start..end);
        values.extend(text.get(start..end));
        at = end.max(at);
    }
    values
}

/// Finds the key of a word that is a whole value. If the word is the name of a secret, the two are swapped.
fn swapped(before: &str, behind: &str, fields: &Fields) -> Option<Range<usize>> {
    let next = behind.trim_start_matches(['"', '\'', ' ', '\t', '\r']);
    if !(next.is_empty() || next.starts_with(['\n', ',', '}'])) {
        return None;
    }
    let pair = before.trim_end_matches([' ', '\t', '"', '\'']).strip_suffix(':')?;
    let key = pair.trim_end().trim_end_matches(['"', '\'']);
    let line = key.rfind(['\n', '{', '[', ',']).map_or(0, |at| at + 1);
    let bare = key.get(line..)?.trim_start_matches([' ', '\t', '-', '?', '"', '\'']);
    (!bare.is_empty() && !fields.knows(bare)).then_some(key.len() - bare.len()..key.len())
}

/// Returns the text from the value on, if a word is the key of a separated value. Values after a colon on the same line
/// are found elsewhere.
fn following<'t>(before: &str, behind: &'t str) -> Option<&'t str> {
    let (rest, quotes) = shape::closing(behind);
    let here = rest.trim_start_matches([' ', '\t']);
    match here.chars().next()? {
        '\n' | '\r' => {
            let next = here.trim_start();
            if let Some(value) = next.strip_prefix(':') {
                return Some(value);
            }
            let pair = shape::key(next) == Some(VALUE_KEY) && before.trim_end_matches([' ', '"', '\'']).ends_with(':');
            let separated = next.starts_with(['"', '\'', '[', ',']);
            (pair || (quotes > 0 && separated)).then_some(next)
        }
        '"' | '\'' | '[' | '{' if quotes > 0 => Some(here),
        ',' => {
            let before = before.trim_end_matches([' ', '\t']);
            let first = before.is_empty() || before.ends_with(['{', '[', ',', ':', '"', '\'', '?', '\n', '-']);
            first.then(|| here.trim_start_matches([',', ' ', '\t', '\r', '\n']))
        }
        // Quotes with nothing between them: the key's last one, and the value's first one.
        _ if quotes > 1 && here.len() == rest.len() && !here.starts_with([':', '=', '}', ']']) => Some(here),
        _ => None,
    }
}

/// Bytes of a value: to the end of its line, or of the line that closes its quotes.
fn length(value: &str) -> usize {
    let near = value.get(..value.floor_char_boundary(LONGEST_QUOTE)).unwrap_or_default();
    let quote = value.chars().next().filter(|first| ['"', '\''].contains(first));
    let closed = quote.and_then(|quote| shape::closing_quote(near, quote)).unwrap_or_default();
    let rest = value.get(closed..).unwrap_or_default();
    closed + rest.find(['\n', '\r']).unwrap_or(rest.len())
}

/// Hides the password of each URL, and returns the passwords.
pub(super) fn hide_userinfo<'t>(text: &'t str, mask: &mut Mask) -> Vec<&'t str> {
    let places = url_passwords(text);
    places.iter().for_each(|place| mask.hide(place.clone()));
    places.into_iter().filter_map(|place| text.get(place)).collect()
}
