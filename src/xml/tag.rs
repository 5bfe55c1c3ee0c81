//! A start tag, taken apart.

use super::{Fault, malformed, syntax::SPACE};
use crate::text::printable;

/// The inside of a start tag.
pub(super) struct Tag<'a> {
    /// The element's name.
    pub(super) name: &'a str,
    /// What follows the name.
    pub(super) attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// From what stands between `<` and `>` or `/>`.
    pub(super) fn new(inside: &'a str) -> Self {
        let (name, attributes) = inside.split_at(inside.find(SPACE).unwrap_or(inside.len()));
        Self { name, attributes }
    }
}

/// An attribute as it is written.
pub(super) struct Attribute<'a> {
    /// The name with its prefix, unchecked.
    pub(super) name: &'a str,
    /// What stands between the quotes; without `<`.
    pub(super) value: &'a str,
}

/// The attributes of a tag, or of the XML declaration.
pub(super) struct Attributes<'a> {
    rest: &'a str,
}

impl<'a> Attributes<'a> {
    /// From what follows the name of the tag.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        // After a fault there is nothing more to find.
        let rest = std::mem::take(&mut self.rest);
        let text = rest.trim_start_matches(SPACE);
        if text.is_empty() {
            return None;
        }
        if text.len() == rest.len() {
            return Some(Err(malformed("white space is missing between attributes")));
        }
        let (name, rest) = text.split_at(text.find(|c: char| c == '=' || SPACE.contains(&c)).unwrap_or(text.len()));
        let fault = |what: &str| Some(Err(malformed(format!("attribute `{}` {what}", printable(name)))));
        let Some(rest) = rest.trim_start_matches(SPACE).strip_prefix('=') else { return fault("has no value") };
        let rest = rest.trim_start_matches(SPACE);
        let quoted = ['"', '\''].into_iter().find_map(|quote| Some((quote, rest.strip_prefix(quote)?)));
        let Some((quote, rest)) = quoted else { return fault("has a value without quotes") };
        let Some((value, rest)) = rest.split_once(quote) else { return fault("has a value without an end") };
        if value.contains('<') {
            return fault("has `<` in its value (write `&lt;`)");
        }
        self.rest = rest;
        Some(Ok(Attribute { name, value }))
    }
}
