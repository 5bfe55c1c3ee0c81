//! Untyped documents: the common form of request bodies and manifests.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use super::{
    code::Code,
    fault::{Fault, Path},
};

/// A value in a document. Mappings keep their order and duplicate keys, so that duplicates can be reported.
#[derive(Clone, PartialEq)]
pub enum Node {
    /// Null, or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(serde_json::Number),
    /// A string.
    String(String),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping.
    Map(Vec<(String, Node)>),
    /// A value with a YAML tag, which no field accepts.
    Tagged(String),
}

impl Node {
    /// Returns the entries of a mapping.
    pub fn entries(&self) -> Option<&[(String, Node)]> {
        match self {
            Node::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// Converts to JSON, including nulls; a tagged value becomes null.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Node::Null | Node::Tagged(_) => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(number) => Value::Number(number.clone()),
            Node::String(text) => Value::String(text.clone()),
            Node::Seq(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Node::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_json())).collect())
            }
        }
    }

    /// Whether the value is null, which means "not set" (D6).
    pub fn is_null(&self) -> bool {
        matches!(self, Node::Null)
    }

    /// Describes the value for an error message. Strings are not quoted, because they may be secrets.
    pub fn describe(&self) -> String {
        match self {
            Node::Null => "null".into(),
            Node::Bool(value) => format!("the boolean {value}"),
            Node::Number(number) => format!("the number {number}"),
            Node::String(_) => "a string".into(),
            Node::Seq(_) => "a list".into(),
            Node::Map(_) => "a mapping".into(),
            Node::Tagged(tag) => format!("a value with the tag {tag}"),
        }
    }

    /// Removes all but the first value of each duplicate key, and reports each removal.
    pub fn take_duplicates(&mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.visit_duplicates(&Path::root(), &mut faults);
        faults
    }

    fn visit_duplicates(&mut self, path: &Path, faults: &mut Vec<Fault>) {
        match self {
            Node::Seq(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if matches!(item, Node::Seq(_) | Node::Map(_)) {
                        item.visit_duplicates(&path.join(index), faults);
                    }
                }
            }
            Node::Map(entries) => {
                let mut seen = std::collections::HashSet::new();
                entries.retain(|(key, _)| {
                    let first = seen.insert(key.clone());
                    if !first {
                        faults.push(
                            Fault::new(Code::DuplicateKey, format!("duplicate key `{key}`"))
                                .at(path.join(key.as_str()))
                                .of_key()
                                .help("keep one of the two entries"),
                        );
                    }
                    first
                });
                for (key, value) in entries {
                    if matches!(value, Node::Seq(_) | Node::Map(_)) {
                        value.visit_duplicates(&path.join(key.as_str()), faults);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Shows only the structure, because strings may be secrets.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Seq(items) => f.debug_list().entries(items).finish(),
            Node::Map(entries) => f.debug_map().entries(entries.iter().map(|(k, v)| (k, v))).finish(),
            other => f.write_str(&other.describe()),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> de::Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        // YAML's .inf and .nan have no JSON form; as strings they are rejected wherever a number is required.
        Ok(serde_json::Number::from_f64(value).map_or_else(|| Node::String(value.to_string()), Node::Number))
    }
    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Node, E> {
        self.visit_f64(value as f64)
    }
    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Node, E> {
        self.visit_f64(value as f64)
    }
    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::String(value))
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::Seq(items))
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<Node, Node>()? {
            let key = match key {
                Node::String(text) => text,
                Node::Number(number) => number.to_string(),
                Node::Bool(value) => value.to_string(),
                Node::Null => "null".to_owned(),
                other => return Err(de::Error::custom(format!("a key must be a string, not {}", other.describe()))),
            };
            entries.push((key, value));
        }
        Ok(Node::Map(entries))
    }
    fn visit_enum<A: de::EnumAccess<'de>>(self, data: A) -> Result<Node, A::Error> {
        let (tag, value) = data.variant::<String>()?;
        de::VariantAccess::newtype_variant::<de::IgnoredAny>(value)?;
        Ok(Node::Tagged(tag))
    }
}
