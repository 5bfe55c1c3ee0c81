//! A document as it was written, before it has a type: the common form of request bodies and manifests.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use super::{
    code::Code,
    fault::{Fault, Path},
    redact::quotable_key,
};

/// One value of a document. Mappings keep their order and their repeated keys, so that both can be reported.
#[derive(Clone, PartialEq)]
pub enum Node {
    /// Null, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(serde_json::Number),
    /// A text.
    String(String),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping.
    Map(Vec<(String, Node)>),
    /// A value with a YAML tag, which no field takes.
    Tagged(String),
}

impl Node {
    /// The entries of a mapping.
    pub fn entries(&self) -> Option<&[(String, Node)]> {
        match self {
            Node::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value as plain JSON, nulls included; a tagged value has no JSON form.
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

    /// Whether nothing was given (D6).
    pub fn is_null(&self) -> bool {
        matches!(self, Node::Null)
    }

    /// What the value is, in words for an error. Texts and tags are not quoted: they may be secret.
    pub fn describe(&self) -> String {
        match self {
            Node::Bool(value) => format!("the boolean {value}"),
            Node::Number(number) => format!("the number {number}"),
            _ => self.shape().into(),
        }
    }

    /// The same without any value.
    pub fn shape(&self) -> &'static str {
        match self {
            Node::Null => "nothing (null)",
            Node::Bool(_) => "a boolean",
            Node::Number(_) => "a number",
            Node::String(_) => "a string",
            Node::Seq(_) => "a list",
            Node::Map(_) => "a mapping",
            Node::Tagged(_) => "a value with a tag",
        }
    }

    /// Removes the second and later values of repeated keys and reports each.
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
                            Fault::new(
                                Code::DuplicateKey,
                                format!("the key `{}` stands twice in one mapping", quotable_key(key)),
                            )
                            .at(path.join(key.as_str()))
                            .of_key()
                            .help("keep one of the two"),
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

/// Shows the shape only, for the texts may be secret.
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
        // YAML's .inf and .nan have no JSON form; as text they are refused wherever a number is meant.
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
