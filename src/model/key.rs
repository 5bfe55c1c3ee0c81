//! The address of a resource inside the product: kind, parent, id.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::{Kind, id::Id};

/// Kind, parent and id. Keys sort so that the children of a parent are one range.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The kind; kinds sort in dependency order.
    pub kind: Kind,
    /// The owning edge of a route, the subscription of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Id>,
    /// The identifier; of an event source, its type.
    pub id: Id,
}

impl Key {
    /// The key of a resource that stands by itself.
    pub fn new(kind: Kind, id: Id) -> Self {
        Self { kind, parent: None, id }
    }

    /// The key of a resource inside another one.
    pub fn child(kind: Kind, parent: Id, id: Id) -> Self {
        Self { kind, parent: Some(parent), id }
    }

    /// The key of the resource that this one is part of.
    pub fn parent_key(&self) -> Option<Key> {
        Some(Key::new(self.kind.info().parent?, self.parent.clone()?))
    }

    /// The path of the collection that the resource is in, as the API has it.
    pub fn collection_path(&self) -> String {
        let template = self.kind.info().collection;
        match &self.parent {
            Some(parent) => fill(template, parent),
            None => template.to_owned(),
        }
    }

    /// The path of the resource, as the API has it; the base URL goes in front.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection_path(), segment(self.id.as_str()))
    }
}

/// An id as one segment of a path. Those of other owners may hold any character but slash, space and controls.
pub fn segment(id: &str) -> PercentEncode<'_> {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(id, KEPT)
}

/// Puts an id in the place of a path template's parameter.
fn fill(template: &str, id: &Id) -> String {
    match (template.find('{'), template.find('}')) {
        (Some(start), Some(end)) => {
            let (before, after) =
                (template.get(..start).unwrap_or_default(), template.get(end + 1..).unwrap_or_default());
            format!("{before}{}{after}", segment(id.as_str()))
        }
        _ => template.to_owned(),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
