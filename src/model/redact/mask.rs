//! The bytes of a text to hide, and its lines and words.

use std::ops::Range;

/// The hidden bytes.
pub(super) struct Mask(Vec<bool>);

impl Mask {
    /// Hides no byte of a text yet.
    pub(super) fn over(text: &str) -> Self {
        Self(vec![false; text.len()])
    }

    /// Hides a range.
    pub(super) fn hide(&mut self, range: Range<usize>) {
        if let Some(part) = self.0.get_mut(range) {
            part.fill(true);
        }
    }

    /// Returns the text with a `*` for each hidden character.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for (at, character) in text.char_indices() {
            let hidden = self.0.get(at).is_some_and(|hidden| *hidden) && !character.is_ascii_whitespace();
            match hidden {
                true => shown.extend(std::iter::repeat_n('*', character.len_utf8())),
                false => shown.push(character),
            }
        }
        shown
    }
}

/// Each line with the offset of its first byte, without its line break.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let here = start;
        start += line.len();
        (here, line.trim_end_matches(['\n', '\r']))
    })
}

/// The next letters, digits, `-` and `_` of a line from an offset on.
pub(super) fn next_word(line: &str, from: usize) -> Option<Range<usize>> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let rest = line.get(from..)?;
    let start = from + rest.find(part)?;
    let word = line.get(start..)?;
    Some(start..start + word.find(|c: char| !part(c)).unwrap_or(word.len()))
}
