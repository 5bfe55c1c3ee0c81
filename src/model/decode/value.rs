//! The serde deserializer for a [`Node`], with errors that carry their position.

use serde::de::{self, IntoDeserializer, Unexpected, Visitor};

use super::form::{list, not_a_list, not_a_mapping, sample, scalar_form};
use super::{Context, DecodeError, Exclusions, PathStep, Position, unknown_field, unknown_field_beside};
use crate::model::diagnostics::{Code, Fault, FaultTarget, nearest};
use crate::model::field_rule::{BLANK_IS_UNSET, FREE_FORM, SOURCED_SECRET, SOURCED_TEXT};
use crate::model::secrets::MASK;
use crate::model::secrets::redact::quotable_key;
use crate::model::secrets::unknown_value::is_unknown;
use crate::syntax::text::printable;
use crate::syntax::yaml::{Node, NodeEntries, NodeItems, NodeShape};

#[derive(Clone, Copy)]
pub(super) struct NodeValue<'de, 'p> {
    pub node: Node<'de>,
    pub at: Position<'p>,
    pub context: &'p Context<'p>,
    /// The entries set aside inside this value, if any.
    pub excluded: Option<&'p Exclusions>,
}

impl<'de> NodeValue<'de, '_> {
    fn unexpected(self, expected: &dyn de::Expected) -> DecodeError {
        let found = match self.node.shape() {
            NodeShape::Null => Unexpected::Unit,
            NodeShape::Bool(value) => Unexpected::Bool(value),
            NodeShape::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (_, Some(number)) => Unexpected::Signed(number),
                _ => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
            NodeShape::String(text) => Unexpected::Str(text),
            NodeShape::Seq(_) => Unexpected::Seq,
            NodeShape::Map(_) => Unexpected::Map,
            NodeShape::NotFinite => Unexpected::Other("a number that is not finite"),
            NodeShape::LongInteger => Unexpected::Other("an integer of more than 64 bits"),
            NodeShape::Tagged => return tag_error(),
        };
        de::Error::invalid_type(found, expected)
    }

    /// The owner of the value, as the subject of a sentence, and the name of its field.
    fn subject(self) -> Option<(String, String)> {
        let name = |key: &str| printable(&quotable_key(key));
        match (self.at.step, self.at.parent.map(|parent| parent.step)) {
            (PathStep::Key(key), _) => Some((format!("`{}`", name(key)), name(key))),
            (PathStep::Index(_), Some(PathStep::Key(key))) => {
                Some((format!("each entry of `{}`", name(key)), "-".to_owned()))
            }
            (PathStep::Root, _) => self.context.name.map(|key| (format!("`{key}`"), key.to_owned())),
            (PathStep::Index(_), _) => None,
        }
    }

    /// The error for a value that is not a list.
    fn not_a_list<V: Visitor<'de>>(self, visitor: V) -> DecodeError {
        match (self.node.shape(), self.subject()) {
            (NodeShape::Tagged, _) | (_, None) => self.unexpected(&"a list"),
            (_, Some((subject, name))) => {
                let fields = visitor.visit_seq(Probe).err().and_then(|error| error.fields);
                let sample = fields.and_then(sample);
                DecodeError::new(not_a_list(&subject, &name, sample.as_deref(), self.node))
            }
        }
    }

    /// The error for a value that is not a mapping.
    fn not_a_mapping(self, fields: &[&str]) -> DecodeError {
        match (self.node.shape(), self.subject()) {
            (NodeShape::Tagged, _) | (_, None) => self.unexpected(&"a mapping"),
            (_, Some((subject, name))) => DecodeError::new(not_a_mapping(&subject, &name, fields, self.node)),
        }
    }

    /// Adds the field and its form to the error of a single value of the wrong type.
    fn explain(self, mut error: DecodeError) -> DecodeError {
        // An error with an entry is about a value inside this one.
        if error.entry.is_none()
            && let Some((expected, found)) = error.mismatch.take()
            && let Some((subject, name)) = self.subject()
        {
            error.fault.message = format!("{subject} must be {expected} (found {found})");
            error.fault.help = error.fault.help.take().or_else(|| scalar_form(&name, &expected, self.node));
        }
        error
    }

    fn is_excluded(self, step: PathStep<'_>) -> bool {
        self.excluded.and_then(|excluded| excluded.below(step)).is_some_and(|excluded| excluded.whole)
    }

    /// Fails if a mapping has a field that is neither in `fields` nor known elsewhere. Suggests none that is `fixed`.
    fn check_known(
        self,
        entries: &NodeEntries<'de>,
        fields: &[&str],
        elsewhere: &[&str],
        fixed: &[&str],
    ) -> Result<(), DecodeError> {
        for (key, _) in entries.clone().filter(|(_, node)| !(self.context.is_request && node.is_null())) {
            if fields.contains(&key) || elsewhere.contains(&key) || self.is_excluded(PathStep::Key(key)) {
                continue;
            }
            let others = elsewhere.iter().filter(|field| !fields.contains(*field));
            let known = fields.iter().chain(others).copied().filter(|field| !fixed.contains(field));
            let is_set = |field: &str| entries.clone().any(|(key, node)| key == field && !node.is_null());
            let fault = unknown_field_beside(key, &known.collect::<Vec<_>>(), is_set);
            let at = Position { parent: Some(&self.at), step: PathStep::Key(key) };
            return Err(DecodeError::new(fault).place(&at));
        }
        Ok(())
    }

    /// Visits the entries of a mapping that are not null and not set aside. Rejects fields that are not in `fields`, if
    /// given.
    fn entries<V: Visitor<'de>>(
        self,
        entries: NodeEntries<'de>,
        fields: Option<&[&str]>,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let (elsewhere, fixed) = match self.at.parent {
            None => (self.context.known_elsewhere, self.context.fixed),
            Some(_) => (&[][..], &[][..]),
        };
        if let Some(fields) = fields {
            self.check_known(&entries, fields, elsewhere, fixed)?;
        }
        visitor.visit_map(Entries { rest: entries, elsewhere, next: None, of: &self })
    }

    /// Resolves `{from_env: …}` or `{from_file: …}` to its text, without trailing line breaks.
    fn resolve(self, mut entries: NodeEntries<'de>) -> Result<String, DecodeError> {
        let Some(sources) = self.context.sources else {
            let mut error = self.explain(self.unexpected(&"a string"));
            error.fault.help = Some("send the text itself: only manifests read values from variables and files".into());
            return Err(error);
        };
        let hint = "use a string, `{from_env: NAME}` or `{from_file: path}`";
        let (Some((source, argument)), None) = (entries.next(), entries.next()) else {
            return Err(DecodeError::new(
                Fault::new(Code::WrongType, "expected exactly one of `from_env` and `from_file`").help(hint),
            ));
        };
        let here = |fault: Fault| DecodeError::new(fault.at(source));
        let known = ["from_env", "from_file"];
        if !known.contains(&source) {
            // If it is not a misspelt source, it may be the secret itself in brackets.
            // So neither the message nor the path may contain it.
            return Err(match nearest(source, known) {
                Some(_) => here(unknown_field(source, &known)),
                None => DecodeError::new(Fault::new(Code::UnknownField, "unknown value reference").help(hint)),
            });
        }
        let NodeShape::String(argument) = argument.shape() else {
            return Err(here(Fault::new(
                Code::WrongType,
                format!("expected a string, found {}", argument.describe_type()),
            )));
        };
        if let Some(name) = variable_name(argument).filter(|_| source == "from_env") {
            let fault = Fault::new(Code::InvalidFormat, "`from_env` must be only the name of a variable");
            return Err(here(fault.help(format!("write `{{from_env: {name}}}`"))));
        }
        let mut resolved = self.context.resolved.borrow_mut();
        let answer = resolved
            .entry((source.to_owned(), argument.to_owned()))
            .or_insert_with(|| sources.resolve(source, argument));
        let text = answer.clone().map_err(here)?;
        // Line endings depend on the editor and the checkout. If they counted, a key or certificate would seem changed.
        Ok(text.replace("\r\n", "\n").trim_end_matches('\n').to_owned())
    }
}

/// Rejects the mask as a secret: a masked value that is read and written back would replace the secret.
fn refuse_mask(secret: &str) -> Result<&str, DecodeError> {
    if secret != MASK {
        return Ok(secret);
    }
    let fault = Fault::new(Code::InvalidFormat, format!("`{MASK}` is the mask of a secret, not its value"));
    Err(DecodeError::new(fault.help("set the secret itself; viewers see the mask instead")))
}

/// Rejects a variable as templates and shells write it: its text would be the value.
fn refuse_variable(text: &str) -> Result<(), DecodeError> {
    let Some(name) = variable_name(text) else { return Ok(()) };
    let fault = Fault::new(
        Code::InvalidFormat,
        "variables in strings are not expanded: the value would be this literal string",
    );
    Err(DecodeError::new(fault.help(format!("write `{{from_env: {name}}}`"))))
}

/// The name of a variable that a text consists of, or `NAME` if the name may be a part of a secret.
fn variable_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let within = |start: &str, end: &str| text.strip_prefix(start)?.strip_suffix(end);
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let braced = within("${", "}").or_else(|| within("$(", ")")).or_else(|| within("{{", "}}"));
    let plain = || text.strip_prefix('$').or_else(|| within("%", "%")).filter(|name| is_name(name));
    let name = braced.or_else(plain).map(str::trim).filter(|name| !name.is_empty())?;
    Some(if is_name(name) { name } else { "NAME" })
}

fn tag_error() -> DecodeError {
    // The message does not show the tag: an unquoted secret that starts with `!` is read as a tag.
    DecodeError::new(
        Fault::new(Code::Tag, "YAML tags are not supported in manifests")
            .help("remove the tag, or quote text that starts with `!`"),
    )
}

/// Forwards requests for numbers and strings: the node reports its type, and the visitor accepts or rejects it.
macro_rules! forward {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.deserialize_any(visitor).map_err(|error| self.explain(error))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for NodeValue<'de, '_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.shape() {
            NodeShape::Null => visitor.visit_unit(),
            NodeShape::Bool(value) => visitor.visit_bool(value),
            NodeShape::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (_, Some(number)) => visitor.visit_i64(number),
                _ => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            NodeShape::String(text) => visitor.visit_borrowed_str(text),
            NodeShape::Seq(items) => visitor.visit_seq(Items { items: items.enumerate(), of: &self }),
            NodeShape::Map(entries) => self.entries(entries, None, visitor),
            NodeShape::NotFinite | NodeShape::LongInteger => Err(self.unexpected(&visitor)),
            NodeShape::Tagged => Err(tag_error()),
        }
    }

    forward! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_identifier
    }

    /// Accepts 5.0 as the integer 5, because JSON has only one number type.
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if let NodeShape::Number(number) = self.node.shape()
            && let Some(float) = number.as_f64().filter(|_| number.is_f64())
            && float.fract() == 0.0
            && (0.0..=f64::from(u32::MAX)).contains(&float)
        {
            return visitor.visit_u64(float as u64);
        }
        self.deserialize_any(visitor).map_err(|error| self.explain(error))
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
        match self.node.shape() {
            NodeShape::Map(entries) if name == SOURCED_TEXT => visitor.visit_str(&(self.resolve(entries)? + "\n")),
            NodeShape::String(text) if is_unknown(text) && (name == SOURCED_TEXT || name == SOURCED_SECRET) => {
                let fault = Fault::new(Code::InvalidFormat, "a value cannot start with the character U+F5ED");
                Err(DecodeError::new(fault.help("remove it: edgewright marks unknown values with it")))
            }
            NodeShape::String(text) if name == SOURCED_SECRET && !text.is_empty() => {
                let text = refuse_mask(text)?;
                if let Some(sources) = self.context.sources {
                    refuse_variable(text)?;
                    sources.plain_secret(self.at.path());
                }
                visitor.visit_str(text)
            }
            NodeShape::String(text) if name == SOURCED_TEXT && self.context.sources.is_some() => {
                refuse_variable(text)?;
                visitor.visit_newtype_struct(self)
            }
            NodeShape::Map(entries) if name == SOURCED_SECRET => {
                visitor.visit_str(refuse_mask(&self.resolve(entries)?)?)
            }
            // The number may be an unquoted secret.
            NodeShape::Number(_) | NodeShape::NotFinite | NodeShape::LongInteger | NodeShape::Bool(_)
                if name == SOURCED_SECRET =>
            {
                let found = self.node.describe_type();
                let fault = Fault::new(Code::WrongType, format!("expected a string, found {found}")).help("quote it");
                let mismatch = Some(("a string".to_owned(), found.to_owned()));
                Err(self.explain(DecodeError { mismatch, ..DecodeError::new(fault) }))
            }
            NodeShape::String(text) if name == BLANK_IS_UNSET && text.is_empty() && self.context.is_request => {
                visitor.visit_none()
            }
            // In this position null is data rather than unset.
            NodeShape::Map(_) if name == FREE_FORM => {
                visitor.visit_newtype_struct(self.node.to_json()).map_err(de::Error::custom)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.shape() {
            NodeShape::Seq(_) => self.deserialize_any(visitor),
            _ => Err(self.not_a_list(visitor)),
        }
    }

    // No document has these.
    serde::forward_to_deserialize_any! { tuple tuple_struct unit_struct }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.node.shape() {
            NodeShape::Map(entries) => {
                if let Some(sources) = self.context.sources {
                    let nulls = entries.clone().filter(|(_, node)| node.is_null());
                    nulls.for_each(|(key, _)| sources.null_entry(self.at.path().join(key)));
                }
                self.entries(entries, None, visitor)
            }
            _ => Err(self.not_a_mapping(&[])),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.node.shape() {
            NodeShape::Map(entries) => self.entries(entries, Some(fields), visitor),
            _ => Err(self.not_a_mapping(fields)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if let NodeShape::String(text) = self.node.shape() {
            return visitor.visit_enum(text.into_deserializer());
        }
        let mut error = self.explain(self.unexpected(&"a string"));
        let is_no_variant = match self.node.shape() {
            NodeShape::Seq(_) | NodeShape::Map(_) | NodeShape::Bool(_) => true,
            NodeShape::Number(number) => variants.iter().all(|variant| *variant != number.to_string()),
            _ => false,
        };
        if is_no_variant {
            error.fault.help = Some(format!("use one of {}", list(variants)));
        }
        Err(error)
    }
}

/// A list with one entry, and that entry. It is no value, but reports what the entries of the list must be.
struct Probe;

impl<'de> de::SeqAccess<'de> for Probe {
    type Error = DecodeError;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        seed.deserialize(Probe).map(Some)
    }
}

impl<'de> de::Deserializer<'de> for Probe {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        Err(de::Error::invalid_type(Unexpected::Unit, &visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_any(visitor).map_err(|error| DecodeError { fields: Some(fields), ..error })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Decodes an entry, and adds its position to an error.
fn descend<'de, T: de::DeserializeSeed<'de>>(
    of: &NodeValue<'de, '_>,
    node: Node<'de>,
    step: PathStep<'de>,
    seed: T,
) -> Result<T::Value, DecodeError> {
    let at = Position { parent: Some(&of.at), step };
    let excluded = of.excluded.and_then(|excluded| excluded.below(step));
    seed.deserialize(NodeValue { node, at, context: of.context, excluded }).map_err(|error| error.place(&at))
}

struct Entries<'de, 'v, 'p> {
    rest: NodeEntries<'de>,
    /// The fields that are skipped.
    elsewhere: &'v [&'v str],
    next: Option<(&'de str, Node<'de>)>,
    of: &'v NodeValue<'de, 'p>,
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_, '_> {
    type Error = DecodeError;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.next = self.rest.find(|(key, node)| {
            !node.is_null() && !self.elsewhere.contains(key) && !self.of.is_excluded(PathStep::Key(key))
        });
        let Some((key, _)) = self.next else { return Ok(None) };
        let at = Position { parent: Some(&self.of.at), step: PathStep::Key(key) };
        let key = de::value::BorrowedStrDeserializer::new(key);
        seed.deserialize(key).map(Some).map_err(|mut error: DecodeError| {
            error.fault.target = FaultTarget::Key;
            error.place(&at)
        })
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        match self.next.take() {
            Some((key, node)) => descend(self.of, node, PathStep::Key(key), seed),
            None => Err(de::Error::custom("value without a key")),
        }
    }
}

struct Items<'de, 'v, 'p> {
    items: std::iter::Enumerate<NodeItems<'de>>,
    of: &'v NodeValue<'de, 'p>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_, '_> {
    type Error = DecodeError;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        for (index, node) in self.items.by_ref() {
            if !self.of.is_excluded(PathStep::Index(index)) {
                return descend(self.of, node, PathStep::Index(index), seed).map(Some);
            }
        }
        Ok(None)
    }

    /// Most lists have few entries, and many are kept as long as the manifests, so none gets room for more.
    fn size_hint(&self) -> Option<usize> {
        Some(self.items.clone().count())
    }
}
