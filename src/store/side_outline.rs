//! A resource before or after a change, without its values.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::{history::OwnerOutline, touched::OWNED_BY};

/// The fields of one side of a change.
#[derive(Debug, Default)]
pub(super) struct SideOutline {
    /// The names of the fields.
    pub(super) names: BTreeSet<String>,
    /// The names of those whose value is not null.
    pub(super) set: BTreeSet<String>,
    /// The ownership, if it is one of the fields.
    pub(super) owner: Option<OwnerOutline>,
}

impl<'de> Deserialize<'de> for SideOutline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SideVisitor)
    }
}

/// Reads the names, and skips the values.
struct SideVisitor;

impl<'de> Visitor<'de> for SideVisitor {
    type Value = SideOutline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a resource")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SideOutline, A::Error> {
        let mut side = SideOutline::default();
        while let Some(name) = map.next_key::<String>()? {
            let is_set = if name == OWNED_BY {
                side.owner = map.next_value()?;
                side.owner.is_some()
            } else {
                map.next_value::<Option<IgnoredAny>>()?.is_some()
            };
            if is_set {
                side.set.insert(name.clone());
            }
            side.names.insert(name);
        }
        Ok(side)
    }
}
