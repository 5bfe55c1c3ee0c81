//! Parses a start tag.

use super::fault::{XmlFault, malformed};
use super::syntax::SPACE;
use crate::syntax::text::printable;

/// The contents of a start tag.
pub(super) struct Tag<'a> {
    /// The element's name.
    pub(super) name: &'a str,
    /// The text after the name.
    pub(super) attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// Parses the text between `<` and `>` or `/>`.
    pub(super) fn new(inside: &'a str) -> Self {
        let (name, attributes) = inside.split_at(inside.find(SPACE).unwrap_or(inside.len()));
        Self { name, attributes }
    }
}

/// An attribute as written.
pub(super) struct Attribute<'a> {
    /// The name with its prefix, unchecked.
    pub(super) name: &'a str,
    /// The text between the quotes, without `<`.
    pub(super) value: &'a str,
}

/// The attributes of a tag, or of the XML declaration: the text after the name, as far as it is not parsed yet.
pub(super) struct Attributes<'a>(pub(super) &'a str);

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, XmlFault>;

    fn next(&mut self) -> Option<Self::Item> {
        // Stop at the first fault.
        let rest = std::mem::take(&mut self.0);
        let text = rest.trim_start_matches(SPACE);
        if text.is_empty() {
            return None;
        }
        if text.len() == rest.len() {
            return Some(Err(malformed("whitespace is missing between attributes")));
        }
        let (name, rest) = text.split_at(text.find(|c: char| c == '=' || SPACE.contains(&c)).unwrap_or(text.len()));
        let fault = |what: &str| Some(Err(malformed(format!("attribute `{}` {what}", printable(name)))));
        let Some(rest) = rest.trim_start_matches(SPACE).strip_prefix('=') else { return fault("has no value") };
        let rest = rest.trim_start_matches(SPACE);
        let quoted = ['"', '\''].into_iter().find_map(|quote| Some((quote, rest.strip_prefix(quote)?)));
        let Some((quote, rest)) = quoted else { return fault("has an unquoted value") };
        let Some((value, rest)) = rest.split_once(quote) else { return fault("has an unterminated value") };
        if value.contains('<') {
            return fault("has `<` in its value (use `&lt;`)");
        }
        self.0 = rest;
        Some(Ok(Attribute { name, value }))
    }
}
