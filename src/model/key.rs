//! Resource keys: kind, parent and ID.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::{id::Id, kind::Kind};

/// A resource key. Keys sort so that the children of a parent form one range.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The kind; kinds sort in dependency order.
    pub kind: Kind,
    /// The parent's ID: the edge of a route, or the subscription of an event source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Id>,
    /// The ID; for an event source, its type.
    pub id: Id,
}

impl Key {
    /// Creates the key of a resource without a parent.
    pub fn new(kind: Kind, id: Id) -> Self {
        Self { kind, parent: None, id }
    }

    /// Creates the key of a resource with a parent.
    pub fn child(kind: Kind, parent: Id, id: Id) -> Self {
        Self { kind, parent: Some(parent), id }
    }

    /// Returns the key of a resource at an API path, or none if it is not the path of a resource of this kind.
    pub(crate) fn at_path(kind: Kind, path: &str) -> Option<Self> {
        let (collection, id) = path.rsplit_once('/')?;
        let decoded = |segment: &str| Some(Id::new(&percent_decode_str(segment).decode_utf8().ok()?));
        let mut parent = None;
        let mut segments = collection.split('/');
        for expected in kind.facts().collection.split('/') {
            let found = segments.next()?;
            if expected.starts_with('{') {
                parent = Some(decoded(found)?);
            } else if expected != found {
                return None;
            }
        }
        let is_whole = segments.next().is_none();
        is_whole.then_some(Self { kind, parent, id: decoded(id)? })
    }

    /// Returns the parent's key.
    pub fn parent_key(&self) -> Option<Key> {
        Some(Key::new(self.kind.facts().parent?, self.parent.clone()?))
    }

    /// Returns the name of a resource, prefixed with that of its parent, or with the ID of one without a name.
    pub(crate) fn full_name<'n>(&self, own: &str, name_of: impl FnOnce(&Key) -> Option<&'n str>) -> String {
        match self.parent_key() {
            Some(parent) => format!("{}/{own}", name_of(&parent).unwrap_or(parent.id.as_str())),
            None => own.to_owned(),
        }
    }

    /// Returns the API path of the resource's collection.
    pub fn collection_path(&self) -> String {
        let parent = self.parent.as_ref().map(|it| segment(it.as_str()).to_string());
        self.kind.facts().collection_in(parent.as_deref().unwrap_or_default())
    }

    /// Returns the resource's API path, relative to the base URL.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection_path(), segment(self.id.as_str()))
    }
}

/// Derives the ID of a name. `number` is 0, or higher while another resource still has the lower-numbered IDs.
pub(crate) fn derived_id(kind: Kind, parent: Option<&Id>, name: &str, fixed: &[String], number: u32) -> Id {
    let facts = kind.facts();
    let parent = parent.map(Id::as_str).unwrap_or_default();
    let number = (number > 0).then(|| number.to_string());
    let parts = [facts.name, parent, name].into_iter().chain(fixed.iter().map(String::as_str));
    Id::derived(facts.prefix, parts.chain(number.as_deref()).map(str::as_bytes))
}

/// Percent-encodes an ID as a path segment: IDs from other services can contain almost any character.
pub(crate) fn segment(id: &str) -> PercentEncode<'_> {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(id, KEPT)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_owner_of_a_name_has_the_id_that_it_always_had() {
        let id = |number| derived_id(Kind::HttpsEdge, None, "a", &[], number);
        assert_eq!(id(0), Id::derived("edghts_", ["HttpsEdge", "", "a"].map(str::as_bytes)));
        assert!(id(0) != id(1) && id(1) != id(2));
        let fixed = ["1".to_owned()];
        let authority = |fixed: &[String], number| derived_id(Kind::CertificateAuthority, None, "a", fixed, number);
        assert_ne!(authority(&fixed, 0), authority(&fixed, 1));
    }

    #[test]
    fn a_key_is_read_from_its_path() {
        let (edge, route) = (Id::new("edghts_1"), Id::new("edghtsrt_2"));
        for key in [
            Key::new(Kind::HttpsEdge, edge.clone()),
            Key::child(Kind::HttpsEdgeRoute, edge, route),
            Key::new(Kind::TlsEdge, Id::new("a b/c%é")),
            Key::child(Kind::EventSource, Id::new("x/y"), Id::new("ip_policy_created.v0")),
        ] {
            assert_eq!(Key::at_path(key.kind, &key.path()), Some(key));
        }
        for path in ["", "/", "/edges/https", "/edges/https/a/b", "/edges/tls/a", "edges/https/a"] {
            assert_eq!(Key::at_path(Kind::HttpsEdge, path), None, "{path}");
        }
    }
}
