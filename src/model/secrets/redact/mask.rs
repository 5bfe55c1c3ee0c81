//! The bytes of a text that are shown. All others are hidden.

use std::ops::Range;

/// The byte order mark at the start of some files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The bytes that are shown.
pub(super) struct Mask(Vec<bool>);

impl Mask {
    /// Hides a text.
    pub(super) fn over(text: &str) -> Self {
        Self(vec![false; text.len()])
    }

    /// Shows a range.
    pub(super) fn show(&mut self, range: Range<usize>) {
        self.set(range, true);
    }

    /// Hides a range again.
    pub(super) fn hide(&mut self, range: Range<usize>) {
        self.set(range, false);
    }

    fn set(&mut self, range: Range<usize>, is_shown: bool) {
        if let Some(part) = self.0.get_mut(range) {
            part.fill(is_shown);
        }
    }

    /// The hidden parts of a text, without the white space around them, each within a line.
    pub(super) fn hidden(&self, text: &str) -> Vec<Range<usize>> {
        let mut hidden: Vec<Range<usize>> = Vec::new();
        let mut is_open = false;
        for (at, c) in text.char_indices() {
            if self.0.get(at) == Some(&true) || matches!(c, '\n' | '\r') {
                is_open = false;
            } else if !c.is_whitespace() && c != BYTE_ORDER_MARK {
                let end = at + c.len_utf8();
                match hidden.last_mut().filter(|_| is_open) {
                    Some(part) => part.end = end,
                    None => hidden.push(at..end),
                }
                is_open = true;
            }
        }
        hidden
    }
}
