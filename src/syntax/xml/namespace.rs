//! Namespaces: resolves prefixes and detects duplicate attributes (Namespaces in XML 1.0).

use std::collections::{HashMap, HashSet};

use super::fault::{XmlFault, malformed, unknown_reference};
use super::syntax::{bad_reference, normalized, qualified};
use super::tag::{Attributes, Tag};
use crate::syntax::text::printable;

/// The most attributes of an element.
const MOST_ATTRIBUTES: usize = 256;
/// The most namespace declarations in scope.
const MOST_NAMESPACES: usize = 1000;

const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// The namespaces in scope.
#[derive(Default)]
pub(super) struct Namespaces<'a> {
    /// A number for each namespace name, because comparing long names for each attribute would be slow.
    numbers: HashMap<String, usize>,
    /// The namespace of each prefix, innermost declaration last. The default namespace has an empty prefix.
    bound: HashMap<&'a str, Vec<usize>>,
    /// The prefixes declared by each open element.
    declared: Vec<Vec<&'a str>>,
    in_scope: usize,
}

/// The namespace of an element or attribute: none, that of the prefix `xml`, or a number.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Space {
    None,
    Xml,
    Numbered(usize),
}

impl<'a> Namespaces<'a> {
    /// Enters an element: checks its name and attributes, and opens a scope for its declarations. Returns its
    /// namespace and the local part of its name.
    pub(super) fn open(&mut self, tag: &Tag<'a>) -> Result<(Space, &'a str), XmlFault> {
        let (prefix, local) = qualified(tag.name).ok_or_else(|| bad_name(tag.name))?;
        let mut names = HashSet::new();
        let mut declared = Vec::new();
        let mut attributes = Vec::new();
        for attribute in Attributes(tag.attributes) {
            let attribute = attribute?;
            if names.len() >= MOST_ATTRIBUTES {
                let message = format!("an element can have at most {MOST_ATTRIBUTES} attributes");
                return Err(XmlFault::Refused(message));
            }
            let name = qualified(attribute.name).ok_or_else(|| bad_name(attribute.name))?;
            if !names.insert(attribute.name) {
                return Err(duplicate(attribute.name));
            }
            if let Some(bad) = bad_reference(attribute.value) {
                return Err(unknown_reference(bad));
            }
            let declares = match name {
                ("", "xmlns") => Some(""),
                ("xmlns", prefix) => Some(prefix),
                _ => None,
            };
            match declares {
                Some(prefix) => {
                    self.declare(prefix, normalized(attribute.value))?;
                    declared.push(prefix);
                }
                None => attributes.push((attribute.name, name)),
            }
        }
        self.declared.push(declared);
        // Declarations apply to the whole tag, including what precedes them.
        let space = self.resolve(prefix)?;
        let mut expanded = HashSet::new();
        for (written, (prefix, name)) in attributes {
            // The default namespace applies only to elements.
            let space = if prefix.is_empty() { Space::None } else { self.resolve(prefix)? };
            if !expanded.insert((space, name)) {
                return Err(duplicate(written));
            }
        }
        Ok((space, local))
    }

    /// Whether a namespace has a name.
    pub(super) fn is_called(&self, space: &Space, name: &str) -> bool {
        matches!(space, Space::Numbered(number) if self.numbers.get(name) == Some(number))
    }

    /// Leaves an element.
    pub(super) fn close(&mut self) {
        for prefix in self.declared.pop().unwrap_or_default() {
            self.in_scope = self.in_scope.saturating_sub(1);
            if let Some(numbers) = self.bound.get_mut(prefix) {
                numbers.pop();
            }
        }
    }

    fn declare(&mut self, prefix: &'a str, name: String) -> Result<(), XmlFault> {
        if prefix == "xmlns" || name == XMLNS || (prefix == "xml") != (name == XML) {
            return Err(malformed("the prefixes `xml` and `xmlns` and their namespaces are reserved"));
        }
        if name.is_empty() && !prefix.is_empty() {
            return Err(malformed(format!("the prefix `{}` cannot have an empty namespace", printable(prefix))));
        }
        if self.in_scope >= MOST_NAMESPACES {
            return Err(XmlFault::Refused(format!("at most {MOST_NAMESPACES} namespaces can be in scope")));
        }
        self.in_scope += 1;
        let next = self.numbers.len();
        let number = *self.numbers.entry(name).or_insert(next);
        self.bound.entry(prefix).or_default().push(number);
        Ok(())
    }

    fn resolve(&self, prefix: &str) -> Result<Space, XmlFault> {
        let innermost = self.bound.get(prefix).and_then(|numbers| numbers.last());
        match (prefix, innermost) {
            ("xml", _) => Ok(Space::Xml),
            (_, Some(number)) => Ok(Space::Numbered(*number)),
            ("", None) => Ok(Space::None),
            (_, None) => Err(malformed(format!("the prefix `{}` is not declared", printable(prefix)))),
        }
    }
}

fn bad_name(name: &str) -> XmlFault {
    malformed(format!("invalid name `{}`", printable(name)))
}

fn duplicate(name: &str) -> XmlFault {
    malformed(format!("duplicate attribute `{}`", printable(name)))
}
