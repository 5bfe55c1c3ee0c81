//! From an untyped [`Node`] to a typed value, with every fault at its own field instead of the first one only.
//!
//! Serde stops at the first error. Here an error names the entry it is about; the entry is set aside and the value is
//! decoded again without it, until what is left is good. Null means "not given" everywhere (D6).

use std::{cell::RefCell, collections::BTreeSet, fmt};

use serde::de::{self, DeserializeOwned, IntoDeserializer, Unexpected, Visitor};

use super::{
    code::Code,
    fault::{Aim, Fault, Path, Segment, nearest},
    node::Node,
    secret::{SOURCED_SECRET, SOURCED_TEXT},
};

/// Where a value like `{from_file: certs/a.pem}` is looked up (D28).
pub trait ValueSource {
    /// The text, or a fault whose path is relative to the value.
    fn resolve(&self, source: &str, argument: &str) -> Result<String, Fault>;
}

/// How many faults of one document are worth reporting.
const MOST: usize = 100;

/// Decodes a document. Returns the value without its faulty entries (nothing, if it is faulty as a whole) and all faults.
pub fn decode<T: DeserializeOwned>(node: &Node, sources: Option<&dyn ValueSource>) -> (Option<T>, Vec<Fault>) {
    decode_with(node, &[], sources)
}

/// Like [`decode`], ignoring the top-level fields that are `known_elsewhere`: they count as known, and are suggested
/// for a misspelt one.
pub fn decode_with<T: DeserializeOwned>(
    node: &Node,
    known_elsewhere: &[&str],
    sources: Option<&dyn ValueSource>,
) -> (Option<T>, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut context = Context { set_aside: BTreeSet::new(), known_elsewhere, sources, resolved: RefCell::default() };
    loop {
        let value = Value { node, at: At { parent: None, step: Step::Root }, context: &context };
        match T::deserialize(value) {
            Ok(value) => return (Some(value), faults),
            Err(error) => {
                let entry = error.entry.unwrap_or_default();
                faults.push(*error.fault);
                // An entry that cannot be set aside, or not once more, spoils the whole.
                if entry == Path::root() || !context.set_aside.insert(entry) || faults.len() >= MOST {
                    return (None, faults);
                }
            }
        }
    }
}

struct Context<'a> {
    set_aside: BTreeSet<Path>,
    known_elsewhere: &'a [&'a str],
    sources: Option<&'a dyn ValueSource>,
    /// What value sources gave, so that decoding again does not read a file again.
    resolved: RefCell<std::collections::HashMap<(String, String), Result<String, Fault>>>,
}

/// The place of a value, linked to its parent: a path is only built when an error needs it.
#[derive(Clone, Copy)]
struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl At<'_> {
    fn path(&self) -> Path {
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(at) = here {
            match at.step {
                Step::Root => {}
                Step::Key(key) => steps.push(Segment::Key(key.to_owned())),
                Step::Index(index) => steps.push(Segment::Index(index)),
            }
            here = at.parent;
        }
        steps.reverse();
        Path(steps)
    }
}

/// A decoding error: a fault that gets its place from the nearest enclosing entry.
#[derive(Debug)]
struct DecodeError {
    fault: Box<Fault>,
    /// The entry to set aside: the innermost one that the fault spoils. The fault's own path may lead further in.
    entry: Option<Path>,
}

impl DecodeError {
    fn new(fault: Fault) -> Self {
        Self { fault: Box::new(fault), entry: None }
    }

    fn place(mut self, at: &At<'_>) -> Self {
        if self.entry.is_none() {
            let entry = at.path();
            self.fault.path = self.fault.path.under(&entry);
            self.entry = Some(entry);
        }
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault.message)
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Fault::new(Code::InvalidFormat, message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        let number = matches!(found, Unexpected::Signed(_) | Unexpected::Unsigned(_));
        if number && INTEGERS.contains(&expected.as_str()) {
            return Self::out_of_range(&expected);
        }
        let fault = Fault::new(Code::WrongType, format!("expected {}, found {}", plain(&expected), kind_of(&found)));
        Self::new(match found {
            Unexpected::Float(_) | Unexpected::Signed(_) | Unexpected::Unsigned(_) | Unexpected::Bool(_)
                if expected.contains("string") =>
            {
                fault.help("put it in quotes")
            }
            _ => fault,
        })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        if INTEGERS.contains(&expected.as_str()) {
            return Self::out_of_range(&expected);
        }
        Self::new(Fault::new(Code::InvalidFormat, format!("expected {}, found {}", plain(&expected), kind_of(&found))))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let fault = Fault::new(Code::UnknownValue, format!("`{variant}` is not one of {}", list(expected)));
        Self::new(match nearest(variant, expected.iter().copied()) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault,
        })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown_field(field, expected.iter().copied()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Fault::new(Code::Required, format!("`{field}` is missing")).of_key())
    }
}

const INTEGERS: &[&str] = &["u8", "u16", "u32", "u64", "i32", "i64"];

impl DecodeError {
    fn out_of_range(integer: &str) -> Self {
        let most = match integer {
            "u8" => u64::from(u8::MAX),
            "u16" => u64::from(u16::MAX),
            "u32" => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        Self::new(Fault::new(Code::OutOfRange, format!("expected a whole number from 0 to {most}")))
    }
}

/// The fault of a field that nobody knows, with the nearest known one.
pub fn unknown_field<'k>(field: &str, known: impl IntoIterator<Item = &'k str>) -> Fault {
    let known: Vec<&str> = known.into_iter().collect();
    let fault = Fault::new(Code::UnknownField, format!("unknown field `{field}`")).of_key();
    match nearest(field, known.iter().copied()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => fault.help("this takes no fields"),
        None => fault.help(format!("the fields here are {}", list(&known))),
    }
}

/// A list of words for a sentence.
pub fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn plain(expected: &str) -> String {
    if INTEGERS.contains(&expected) {
        return "a whole number".into();
    }
    match expected {
        "f64" => "a number".into(),
        "a sequence" => "a list".into(),
        "a map" | "unit" => "a mapping".into(),
        "a boolean" => "true or false".into(),
        other if other.starts_with("struct ") => "a mapping".into(),
        other if other.starts_with("enum ") || other == "variant identifier" => "a string".into(),
        other => other.into(),
    }
}

fn kind_of(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("the boolean {value}"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Str(_) | Unexpected::Char(_) => "a string".into(),
        Unexpected::Unit | Unexpected::Option => "nothing (null)".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a mapping".into(),
        other => other.to_string(),
    }
}

#[derive(Clone, Copy)]
struct Value<'de, 'p> {
    node: &'de Node,
    at: At<'p>,
    context: &'p Context<'p>,
}

impl<'de> Value<'de, '_> {
    fn unexpected(self, expected: &dyn de::Expected) -> DecodeError {
        let found = match self.node {
            Node::Null => Unexpected::Unit,
            Node::Bool(value) => Unexpected::Bool(*value),
            Node::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => Unexpected::Unsigned(number),
                (_, Some(number), _) => Unexpected::Signed(number),
                (.., number) => Unexpected::Float(number.unwrap_or_default()),
            },
            Node::String(text) => Unexpected::Str(text),
            Node::Seq(_) => Unexpected::Seq,
            Node::Map(_) => Unexpected::Map,
            Node::Tagged(_) => return self.tagged(),
        };
        de::Error::invalid_type(found, expected)
    }

    fn tagged(self) -> DecodeError {
        let tag = if let Node::Tagged(tag) = self.node { tag.as_str() } else { "" };
        DecodeError::new(
            Fault::new(Code::Tag, format!("the tag `!{}` has no meaning here", tag.trim_start_matches('!')))
                .help("remove the tag"),
        )
    }

    fn is_set_aside(self, step: Step<'_>) -> bool {
        !self.context.set_aside.is_empty()
            && self.context.set_aside.contains(&At { parent: Some(&self.at), step }.path())
    }

    /// The entries of a mapping that take part: given, and not set aside. With a list of fields, others are refused.
    fn entries<V: Visitor<'de>>(
        self,
        entries: &'de [(String, Node)],
        fields: Option<&[&str]>,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let elsewhere = if self.at.parent.is_none() { self.context.known_elsewhere } else { &[] };
        if let Some(fields) = fields {
            for (key, _) in entries {
                let known = fields.contains(&key.as_str()) || elsewhere.contains(&key.as_str());
                if !known && !self.is_set_aside(Step::Key(key)) {
                    let fault = unknown_field(key, fields.iter().chain(elsewhere).copied());
                    return Err(DecodeError::new(fault).place(&At { parent: Some(&self.at), step: Step::Key(key) }));
                }
            }
        }
        let rest = entries
            .iter()
            .filter(|(key, node)| {
                !node.is_null() && !elsewhere.contains(&key.as_str()) && !self.is_set_aside(Step::Key(key))
            })
            .map(|(key, node)| (key.as_str(), node))
            .collect::<Vec<_>>()
            .into_iter();
        visitor.visit_map(Entries { rest, next: None, of: &self })
    }

    /// The text that a `{from_env: …}` or `{from_file: …}` stands for.
    fn resolve(self, entries: &[(String, Node)]) -> Result<String, DecodeError> {
        let Some(sources) = self.context.sources else {
            return Err(self.unexpected(&"a string"));
        };
        let hint = "write a string, `{from_env: NAME}` or `{from_file: path}`";
        let [(source, argument)] = entries else {
            return Err(DecodeError::new(
                Fault::new(Code::WrongType, "a value comes from exactly one place").help(hint),
            ));
        };
        let here = |fault: Fault| DecodeError::new(fault.at(Path::root().join(source.as_str())));
        if !["from_env", "from_file"].contains(&source.as_str()) {
            return Err(here(unknown_field(source, ["from_env", "from_file"])));
        }
        let Node::String(argument) = argument else {
            return Err(here(Fault::new(Code::WrongType, format!("expected a string, found {}", argument.describe()))));
        };
        let mut resolved = self.context.resolved.borrow_mut();
        let answer =
            resolved.entry((source.clone(), argument.clone())).or_insert_with(|| sources.resolve(source, argument));
        answer.clone().map_err(here)
    }
}

/// Forwards the numeric and textual requests: the node says what it is, the visitor says whether it takes it.
macro_rules! forward {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.deserialize_any(visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Value<'de, '_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Node::String(text) => visitor.visit_borrowed_str(text),
            Node::Seq(items) => visitor.visit_seq(Items { items: items.iter().enumerate(), of: &self }),
            Node::Map(entries) => self.entries(entries, None, visitor),
            Node::Tagged(_) => Err(self.tagged()),
        }
    }

    forward! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_identifier
    }

    /// JSON has one kind of number: 5.0 is the whole number 5.
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::Number(number) => match number.as_f64() {
                Some(float)
                    if number.is_f64() && float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&float) =>
                {
                    visitor.visit_u64(float as u64)
                }
                _ => self.deserialize_any(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::Map(entries) if name == SOURCED_TEXT => visitor.visit_str(&self.resolve(entries)?),
            Node::Map(entries) if name == SOURCED_SECRET => {
                // Editors and `echo` end a file with a line break that is no part of the secret.
                let text = self.resolve(entries)?;
                let text = text.strip_suffix('\n').unwrap_or(&text);
                visitor.visit_str(text.strip_suffix('\r').unwrap_or(text))
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::Seq(_) => self.deserialize_any(visitor),
            _ => Err(self.unexpected(&"a list")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::Map(entries) => self.entries(entries, None, visitor),
            _ => Err(self.unexpected(&"a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::Map(entries) => self.entries(entries, Some(fields), visitor),
            _ => Err(self.unexpected(&"a mapping")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.node {
            Node::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(self.unexpected(&"a string")),
        }
    }
}

/// Decodes an entry; what goes wrong inside is placed there.
fn descend<'de, T: de::DeserializeSeed<'de>>(
    of: &Value<'de, '_>,
    node: &'de Node,
    step: Step<'de>,
    seed: T,
) -> Result<T::Value, DecodeError> {
    let at = At { parent: Some(&of.at), step };
    seed.deserialize(Value { node, at, context: of.context }).map_err(|error| error.place(&at))
}

struct Entries<'de, 'v, 'p> {
    rest: std::vec::IntoIter<(&'de str, &'de Node)>,
    next: Option<(&'de str, &'de Node)>,
    of: &'v Value<'de, 'p>,
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.next = self.rest.next();
        let Some((key, _)) = self.next else { return Ok(None) };
        let at = At { parent: Some(&self.of.at), step: Step::Key(key) };
        let key = de::value::BorrowedStrDeserializer::new(key);
        seed.deserialize(key).map(Some).map_err(|mut error: DecodeError| {
            error.fault.aim = Aim::Key;
            error.place(&at)
        })
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        match self.next.take() {
            Some((key, node)) => descend(self.of, node, Step::Key(key), seed),
            None => Err(de::Error::custom("a value without a key")),
        }
    }
}

struct Items<'de, 'v, 'p> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
    of: &'v Value<'de, 'p>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        for (index, node) in self.items.by_ref() {
            if !self.of.is_set_aside(Step::Index(index)) {
                return descend(self.of, node, Step::Index(index), seed).map(Some);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Sample {
        name: String,
        size: Option<u32>,
        tags: Vec<String>,
    }

    fn sample(json: &str) -> (Option<Sample>, Vec<(Code, String)>) {
        let node = serde_json::from_str::<Node>(json).unwrap_or(Node::Null);
        let (value, faults) = decode(&node, None);
        (value, faults.into_iter().map(|f| (f.code, f.path.to_string())).collect())
    }

    #[test]
    fn every_fault_is_reported_at_its_own_field_and_the_rest_is_kept() {
        let (value, faults) = sample(r#"{"nam": 1, "name": "x", "size": -1, "tags": ["a", 2, "b", null]}"#);
        assert_eq!(value, Some(Sample { name: "x".into(), size: None, tags: vec!["a".into(), "b".into()] }));
        assert_eq!(
            faults,
            [
                (Code::UnknownField, "/nam".to_owned()),
                (Code::OutOfRange, "/size".to_owned()),
                (Code::WrongType, "/tags/1".to_owned()),
                (Code::WrongType, "/tags/3".to_owned())
            ]
        );
    }

    #[test]
    fn null_means_not_given_but_does_not_hide_an_unknown_field() {
        assert_eq!(sample(r#"{"name": null, "tags": null}"#), (Some(Sample::default()), vec![]));
        assert_eq!(sample(r#"{"nam": null}"#).1, [(Code::UnknownField, "/nam".to_owned())]);
    }
}
