//! Checks that the SAML metadata of identity providers is well-formed XML within limits.
//!
//! # The problem
//!
//! Metadata comes from others and is parsed by whoever runs a login. A document with a DTD, with entities or with a
//! million attributes must not reach it, nor harm the server that stores it.
//!
//! # The idea
//!
//! One pass over the text. The reader of `quick_xml` finds where markup starts and ends; names, attributes, references
//! and namespaces are checked here, as `quick_xml` leaves them to its users. On the way, [`MetadataFacts`] notes what a
//! login needs.
//!
//! # An example
//!
//! `<EntityDescriptor>` without a namespace is accepted, and its facts say that it is outside of the SAML namespace,
//! which the lint `saml-metadata` reports. `<a b="1" b="2"/>` is refused with its line.
//!
//! # What it never does
//!
//! It builds no tree, does not recurse, resolves no external entity, and takes time in proportion to the text.
//!
//! See D18 and D46.

mod facts;
mod fault;
mod namespace;
mod syntax;
mod tag;
#[cfg(test)]
mod tests;

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::Event;

use super::text::printable;
pub(crate) use facts::MetadataFacts;
use facts::{FactsReader, METADATA};
use fault::{XmlFault, malformed, unknown_reference};
use namespace::Namespaces;
use syntax::{SPACE, is_char, is_name, reference};
use tag::{Attributes, Tag};

/// The most bytes of a document.
const MOST_BYTES: usize = 1024 * 1024;
/// The most nested elements.
const MOST_DEPTH: usize = 64;

/// Checks that a text is well-formed XML without a DTD, with an EntityDescriptor or EntitiesDescriptor as its root.
/// The error is one clause with the line.
pub(crate) fn check_entity_descriptor(text: &str) -> Result<MetadataFacts, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("the XML must be at most {MOST_BYTES} bytes long (found {})", text.len()));
    }
    let text = text.trim_start_matches('\u{feff}');
    walk(text).map_err(|(at, fault)| {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        match fault {
            XmlFault::Malformed(reason) => format!("not well-formed XML at line {line}: {reason}"),
            XmlFault::Refused(reason) => format!("{reason} (line {line})"),
        }
    })
}

/// Checks a whole document. An error has the offset of its markup or text.
fn walk(text: &str) -> Result<MetadataFacts, (usize, XmlFault)> {
    if let Some((at, c)) = text.char_indices().find(|(_, c)| !is_char(*c)) {
        return Err((at, malformed(format!("the character U+{:04X} is not allowed", u32::from(c)))));
    }
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut document = DocumentCheck::default();
    loop {
        let start = position(&reader);
        let ahead = text.get(start..).unwrap_or_default();
        // Checked before the reader looks for its end, because a DTD has its own syntax.
        if ahead.get(..9).is_some_and(|head| head.eq_ignore_ascii_case("<!DOCTYPE")) {
            return Err((start, XmlFault::Refused("a document type declaration (DTD) is not accepted".into())));
        }
        let event = reader.read_event().map_err(|error| (start, malformed(reason(&error))))?;
        let part = text.get(start..position(&reader)).unwrap_or_default();
        if matches!(event, Event::Eof) {
            return document.end().map(|()| document.facts.facts).map_err(|fault| (start, fault));
        }
        document.event(&event, part, start == 0).map_err(|fault| (start, fault))?;
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// Rewords common errors of the reader.
fn reason(error: &Error) -> String {
    match error {
        Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
            format!("`</{}>` cannot close `<{}>`", printable(found), printable(expected))
        }
        Error::IllFormed(IllFormedError::UnmatchedEndTag(found)) => {
            format!("`</{}>` has no start tag", printable(found))
        }
        Error::IllFormed(IllFormedError::UnclosedReference) => NO_REFERENCE.to_owned(),
        Error::IllFormed(IllFormedError::DoubleHyphenInComment) => "`--` inside a comment".to_owned(),
        other => printable(&other.to_string()),
    }
}

const NO_REFERENCE: &str = "`&` does not start a reference (use `&amp;`)";

/// The state of the check.
#[derive(Default)]
struct DocumentCheck<'a> {
    /// The names of the open elements.
    open: Vec<&'a str>,
    namespaces: Namespaces<'a>,
    has_root: bool,
    facts: FactsReader,
}

impl<'a> DocumentCheck<'a> {
    /// Checks one event.
    fn event(&mut self, event: &Event<'_>, part: &'a str, is_first: bool) -> Result<(), XmlFault> {
        match event {
            Event::Start(_) | Event::Empty(_) => {
                let is_empty = matches!(event, Event::Empty(_));
                let end = if is_empty { "/>" } else { ">" };
                let tag = Tag::new(part.strip_prefix('<').and_then(|part| part.strip_suffix(end)).unwrap_or_default());
                self.start(&tag)?;
                match is_empty {
                    true => self.namespaces.close(),
                    false => self.open.push(tag.name),
                }
                Ok(())
            }
            // The reader compares the name with that of the start tag.
            Event::End(_) => {
                self.open.pop();
                self.namespaces.close();
                Ok(())
            }
            Event::Text(_) if part.contains("]]>") => Err(malformed("`]]>` in text (use `]]&gt;`)")),
            Event::Text(_) if self.open.is_empty() && !part.trim_matches(SPACE).is_empty() => Err(outside_root()),
            Event::CData(_) | Event::GeneralRef(_) if self.open.is_empty() => Err(outside_root()),
            Event::GeneralRef(_) => {
                let name = part.strip_prefix('&').and_then(|part| part.strip_suffix(';')).unwrap_or_default();
                reference(name).map(|_| ()).ok_or_else(|| unknown_reference(name))
            }
            Event::PI(_) => instruction(inside_instruction(part)),
            Event::Decl(_) if is_first => declaration(inside_instruction(part)),
            Event::Decl(_) => Err(malformed("the XML declaration must be at the start")),
            Event::Text(_) | Event::CData(_) | Event::Comment(_) | Event::DocType(_) | Event::Eof => Ok(()),
        }
    }

    /// Opens an element.
    fn start(&mut self, tag: &Tag<'a>) -> Result<(), XmlFault> {
        if self.open.is_empty() && self.has_root {
            return Err(malformed("more than one root element"));
        }
        if self.open.len() >= MOST_DEPTH {
            return Err(XmlFault::Refused(format!("elements can be nested at most {MOST_DEPTH} levels deep")));
        }
        let (space, local) = self.namespaces.open(tag)?;
        let in_namespace = self.namespaces.is_called(&space, METADATA);
        if self.open.is_empty() && !matches!(local, "EntityDescriptor" | "EntitiesDescriptor") {
            let local = printable(local);
            return Err(XmlFault::Refused(format!("the root element is `{local}`, not a SAML EntityDescriptor")));
        }
        self.facts.start(tag, local, in_namespace, self.open.len());
        self.has_root = true;
        Ok(())
    }

    fn end(&self) -> Result<(), XmlFault> {
        match self.open.last() {
            Some(name) => Err(malformed(format!("`<{}>` is not closed", printable(name)))),
            None if !self.has_root => Err(malformed("no root element")),
            None => Ok(()),
        }
    }
}

fn outside_root() -> XmlFault {
    malformed("text outside the root element")
}

fn inside_instruction(part: &str) -> &str {
    part.strip_prefix("<?").and_then(|part| part.strip_suffix("?>")).unwrap_or_default()
}

fn instruction(inside: &str) -> Result<(), XmlFault> {
    let target = inside.split(SPACE).next().unwrap_or_default();
    if is_name(target) && !target.eq_ignore_ascii_case("xml") {
        return Ok(());
    }
    Err(malformed(format!("a processing instruction cannot have the name `{}`", printable(target))))
}

/// Checks the XML declaration. The encoding is ignored, because the text is already decoded.
fn declaration(inside: &str) -> Result<(), XmlFault> {
    let mut known = ["version", "encoding", "standalone"].into_iter();
    let mut has_version = false;
    for attribute in Attributes(inside.strip_prefix("xml").unwrap_or_default()) {
        let name = attribute?.name;
        // Each name removes those before it, so that they appear once and in this order.
        let fits = known.any(|known| known == name) && (has_version || name == "version");
        if !fits {
            return Err(malformed(format!("`{}` is misplaced in the XML declaration", printable(name))));
        }
        has_version = true;
    }
    if has_version { Ok(()) } else { Err(malformed("the XML declaration has no `version`")) }
}
