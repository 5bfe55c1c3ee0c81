//! What a record did to a resource, read by itself. The record of a large commit has all resources of an estate, and reading their fields
//! takes ten times the memory of the record.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use super::{StoreError, history::Touched, record_head::damaged};
use crate::model::Kind;

/// Reads what a record did to the resource with a path: nothing, one change, or several.
pub(super) fn touched_in(bytes: &[u8], path: &str) -> Result<Vec<Touched>, StoreError> {
    let mut found = Vec::new();
    each_touched(bytes, Some(path), &mut |touched| found.push(touched))?;
    Ok(found)
}

/// Visits what a record did to each resource, or to the one with a path.
pub(super) fn each_touched(bytes: &[u8], path: Option<&str>, visit: &mut dyn FnMut(Touched)) -> Result<(), StoreError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = RecordSeed(WantedResources { path, visit }).deserialize(&mut deserializer);
    read.and_then(|()| deserializer.end()).map_err(damaged)
}

/// The resources that are read, one after the other.
struct WantedResources<'w> {
    path: Option<&'w str>,
    visit: &'w mut dyn FnMut(Touched),
}

/// Reads a record.
struct RecordSeed<'w>(WantedResources<'w>);

/// Reads the resources of a record.
struct ResourcesSeed<'w>(WantedResources<'w>);

/// Reads a resource, if it is wanted.
struct ResourceSeed<'s, 'w>(&'s mut WantedResources<'w>);

/// The fields of [`Touched`] after the kind and the path.
#[derive(Deserialize)]
struct TouchedRest {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    declared_at: Option<String>,
    #[serde(default)]
    reverted_drift: Vec<String>,
    #[serde(default)]
    before: Option<Value>,
    #[serde(default)]
    after: Option<Value>,
}

impl<'de> DeserializeSeed<'de> for RecordSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        let mut wanted = Some(self.0);
        while let Some(name) = fields.next_key::<String>()? {
            match wanted.take_if(|_| name == "resources") {
                Some(wanted) => fields.next_value_seed(ResourcesSeed(wanted))?,
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ResourcesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ResourcesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of resources")
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut resources: S) -> Result<(), S::Error> {
        while resources.next_element_seed(ResourceSeed(&mut self.0))?.is_some() {}
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ResourceSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ResourceSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a resource")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        // Every record is written with these two first.
        if fields.next_key::<&str>()? != Some("kind") {
            return Err(M::Error::custom("a resource without `kind`"));
        }
        let kind: Kind = fields.next_value()?;
        if fields.next_key::<&str>()? != Some("path") {
            return Err(M::Error::custom("a resource without `path`"));
        }
        let path: String = fields.next_value()?;
        if self.0.path.is_some_and(|wanted| wanted != path) {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let rest = TouchedRest::deserialize(MapAccessDeserializer::new(fields))?;
        let TouchedRest { name, source, declared_at, reverted_drift, before, after } = rest;
        (self.0.visit)(Touched { kind, path, name, source, declared_at, reverted_drift, before, after });
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{
        model::operation::Author,
        store::history::{Outcome, Record},
    };

    fn touched(path: &str, text: &str) -> Touched {
        Touched {
            kind: Kind::HttpsEdge,
            path: path.into(),
            name: Some("shop".into()),
            source: None,
            declared_at: None,
            reverted_drift: vec!["/description".into()],
            before: None,
            after: Some(json!({"description": text, "path": "/edges/https/e1"})),
        }
    }

    #[test]
    fn only_the_resource_with_the_path_is_read() {
        let resources = vec![touched("/e\"1", "a"), touched("/e2", "b"), touched("/e\"1", "c")];
        let record = Record {
            position: 7,
            revision: Some(3),
            at: Timestamp::UNIX_EPOCH,
            milliseconds: 1,
            author: Author::Local,
            source: None,
            outcome: Outcome::Applied,
            message: String::new(),
            calls: vec!["POST /e".into()],
            resources,
            changes: "digest".into(),
            scrubbed: Vec::new(),
        };
        let bytes = record.to_bytes().unwrap();
        let whole = Record::from_bytes(&bytes).unwrap();
        let mut all = Vec::new();
        each_touched(&bytes, None, &mut |touched| all.push(touched)).unwrap();
        assert_eq!(format!("{all:?}"), format!("{:?}", whole.resources));
        for path in ["/e\"1", "/e2", "/e3"] {
            let expected: Vec<&Touched> = whole.resources.iter().filter(|it| it.path == path).collect();
            let found = touched_in(&bytes, path).unwrap();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
        assert!(touched_in(bytes.strip_suffix(b"}").unwrap(), "/e2").is_err());
        assert_eq!(
            touched_in(&Record { resources: Vec::new(), ..record }.to_bytes().unwrap(), "/e2").unwrap().len(),
            0
        );
    }
}
