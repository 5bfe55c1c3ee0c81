//! Positions of the YAML parser, which counts characters, as bytes of its text.

use std::borrow::Cow;

/// A text at the byte of the last position that was asked for. Positions mostly move forward, so all of them take time in
/// proportion to the text.
pub(crate) struct YamlCursor<'t> {
    text: &'t str,
    chars: usize,
    bytes: usize,
}

impl<'t> YamlCursor<'t> {
    /// Starts at the first character.
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, chars: 0, bytes: 0 }
    }

    /// The byte of a character.
    pub(crate) fn byte(&mut self, index: usize) -> usize {
        while index < self.chars {
            let Some(c) = self.text.get(..self.bytes).and_then(|before| before.chars().next_back()) else {
                break;
            };
            self.chars -= 1;
            self.bytes -= c.len_utf8();
        }
        while self.chars < index {
            let Some(c) = self.rest(self.bytes).chars().next() else {
                break;
            };
            self.chars += 1;
            self.bytes += c.len_utf8();
        }
        self.bytes
    }

    /// The text from a byte on.
    pub(crate) fn rest(&self, from: usize) -> &'t str {
        self.text.get(from..).unwrap_or_default()
    }

    /// The start of a node's text, after its anchor and tag.
    pub(crate) fn content(&self, from: usize, properties: usize) -> usize {
        let mut rest = self.rest(from);
        for _ in 0..properties {
            let after = match rest.strip_prefix("!<").and_then(|tag| tag.split_once('>')) {
                Some((_, after)) => after,
                None => rest.trim_start_matches(|c: char| !c.is_whitespace() && !",[]{}".contains(c)),
            };
            rest = after.trim_start();
            while rest.starts_with('#') {
                rest = rest.trim_start_matches(|c| c != '\n' && c != '\r').trim_start();
            }
        }
        self.text.len() - rest.len()
    }

    /// The end of the quoted scalar that starts at a byte.
    pub(crate) fn quoted_end(&self, from: usize) -> usize {
        let text = self.rest(from);
        let quote = text.chars().next().unwrap_or_default();
        // The opening quote does not end it.
        let mut is_escaped = true;
        for (at, c) in text.char_indices() {
            let is_doubled = || quote == '\'' && text.get(at + 1..).is_some_and(|rest| rest.starts_with('\''));
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' if quote == '"' => is_escaped = true,
                _ if c == quote && is_doubled() => is_escaped = true,
                _ if c == quote => return from + at + 1,
                _ => {}
            }
        }
        self.text.len()
    }
}

/// Replaces tabs after colons with spaces, which keeps positions: the parser rejects `key:<tab>value`, but `serde_yaml`
/// accepts it.
pub(crate) fn without_tabs_after_colons(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut after = false;
    let replace = |c| {
        after = c == ':' || after && matches!(c, ' ' | '\t');
        if after && c == '\t' { ' ' } else { c }
    };
    Cow::Owned(text.chars().map(replace).collect())
}
