//! The tokens of a CEL expression.

use std::fmt;

use super::error::CelError;
use crate::syntax::text::printable;

/// A token of an expression.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum CelToken<'a> {
    /// A name, or one of the words `true`, `false` and `null`.
    Word(&'a str),
    /// A number or string, as it is written.
    Literal(&'a str),
    /// An operator, bracket or other symbol.
    Symbol(&'a str),
}

/// Literals are not quoted, because they may be secrets.
impl fmt::Display for CelToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CelToken::Word(text) => write!(f, "`{}`", printable(text)),
            CelToken::Literal(_) => f.write_str("a string or number"),
            CelToken::Symbol(text) => write!(f, "`{text}`"),
        }
    }
}

/// Symbols, longest first, so that `==` is not read as two tokens.
const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", ".?", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "<", ">", "!", "+",
    "-", "*", "/", "%",
];

/// An iterator over the tokens of a text with their offsets; it yields an error at the first invalid one.
pub(crate) struct CelTokens<'a> {
    /// The length of the whole text.
    length: usize,
    rest: &'a str,
}

impl<'a> CelTokens<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { length: text.len(), rest: text }
    }

    /// Skips blanks and comments, and returns the offset and text of what follows.
    fn next_text(&mut self) -> (usize, &'a str) {
        let mut text = self.rest.trim_start();
        while let Some(comment) = text.strip_prefix("//") {
            text = comment.split_once('\n').map_or("", |(_, next)| next).trim_start();
        }
        self.rest = text;
        (self.length - text.len(), text)
    }

    fn token(&mut self, text: &'a str) -> Result<Option<CelToken<'a>>, String> {
        let Some(first) = text.chars().next() else { return Ok(None) };
        if let Some(rest) = after_text(text)?.or_else(|| after_number(text)) {
            self.rest = rest;
            return Ok(Some(CelToken::Literal(text.get(..text.len() - rest.len()).unwrap_or_default())));
        } else if let Some(rest) = after_word(text) {
            self.rest = rest;
            let word = text.get(..text.len() - rest.len()).unwrap_or_default();
            return Ok(Some(if word == "in" { CelToken::Symbol(word) } else { CelToken::Word(word) }));
        }
        let symbol = SYMBOLS.iter().find_map(|symbol| Some((symbol, text.strip_prefix(symbol)?)));
        let (symbol, rest) = symbol.ok_or_else(|| match first {
            '=' | '&' | '|' => format!("unexpected character `{first}`: use `{first}{first}`"),
            _ => format!("unexpected character `{}`", printable(&first.to_string())),
        })?;
        self.rest = rest;
        Ok(Some(CelToken::Symbol(symbol)))
    }
}

impl<'a> Iterator for CelTokens<'a> {
    type Item = Result<(usize, CelToken<'a>), CelError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (at, text) = self.next_text();
        let token = self.token(text).map_err(|message| CelError::new(at, message));
        token.map(|token| token.map(|token| (at, token))).transpose()
    }
}

/// Returns the text after a string literal: one or three quotes, with optional `r` (raw) and `b` (bytes) prefixes.
fn after_text(text: &str) -> Result<Option<&str>, String> {
    let body = text.trim_start_matches(['r', 'R', 'b', 'B']);
    let prefix = text.get(..text.len() - body.len()).unwrap_or_default();
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote));
    let Some(quote) = quote.filter(|_| prefix.len() <= 2) else { return Ok(None) };
    let raw = prefix.contains(['r', 'R']);
    let inner = body.get(quote.len()..).unwrap_or_default();
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        if quote.len() == 1 && matches!(c, '\n' | '\r') {
            break;
        }
        if escaped || (c == '\\' && !raw) {
            escaped = !escaped;
        } else if let Some(rest) = inner.get(at..).and_then(|rest| rest.strip_prefix(quote)) {
            return Ok(Some(rest));
        }
    }
    Err("unclosed string".into())
}

/// Returns the text after a number literal: decimal or hexadecimal, with an optional `u` (unsigned) suffix.
fn after_number(text: &str) -> Option<&str> {
    let digit = |c: char| c.is_ascii_digit();
    let hex = text.strip_prefix("0x").map(|text| text.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    let mut rest = hex.unwrap_or_else(|| text.trim_start_matches(digit));
    if let Some(fraction) = rest.strip_prefix('.').filter(|fraction| fraction.starts_with(digit)) {
        rest = fraction.trim_start_matches(digit);
    }
    if rest.len() == text.len() {
        return None;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        rest = if exponent.starts_with(digit) { exponent.trim_start_matches(digit) } else { rest };
    }
    Some(rest.strip_prefix(['u', 'U']).unwrap_or(rest))
}

/// Returns the text after a name; field names may be quoted in backticks.
fn after_word(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('`') {
        return quoted.split_once('`').map(|(_, rest)| rest);
    }
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_name.then(|| text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}
