//! Decodes an untyped [`Node`] to a typed value, and reports every fault at its field instead of only the first.
//!
//! Serde stops at the first error. So each error names the entry that caused it; the decoder excludes the entry and decodes
//! again without it, until the rest is valid:
//!
//! ```text
//! {matc: /a, match_type: 5}  →  /matc: unknown field, /match_type: wrong type, and a route without both
//! ```
//!
//! Null always means "not set" (D6); in a request, so does a null field that is unknown (D62). The decoder does not check
//! rules between fields: `Check` does, on what was decoded. Its faults never quote a secret.

mod form;
#[cfg(test)]
mod tests;
mod value;

use std::{cell::RefCell, collections::HashMap, fmt};

use super::diagnostics::{Code, Fault, MOST_FAULTS, Path, Segment, nearest, suggest};
use super::field_rule::{BLANK_IS_UNSET, deserialize_by};
use super::secrets::redact::quotable_key;
use crate::syntax::text::{number, printable};
use crate::syntax::yaml::Node;
pub(crate) use form::{list, not_a_list, not_an_entry, one_of};
use serde::de::{self, DeserializeOwned, Unexpected};
use serde::{Deserialize, Deserializer};
use value::NodeValue;

/// Resolves values such as `{from_file: certs/a.pem}` (D28).
pub(crate) trait ValueSource {
    /// Returns the text, or a fault with a path relative to the value.
    fn resolve(&self, source: &str, argument: &str) -> Result<String, Fault>;

    /// Receives the document path of each secret in plain text.
    fn plain_secret(&self, _path: Path) {}

    /// Receives the document path of each null entry of a map, such as a header, which is left out.
    fn null_entry(&self, _path: Path) {}
}

/// The result of decoding: the value, if any, and all faults.
pub(crate) type Decoded<T> = (Option<T>, Vec<Fault>);

/// Deserializes an optional field with variants. In a request, a blank is its default: some clients send one for a field
/// that they were not given (D62).
pub(crate) fn variant_or_blank<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    deserialize_by(BLANK_IS_UNSET, T::default(), deserializer)
}

/// Decodes a document. Returns all faults, and the value without its faulty entries, or `None` if the whole document is
/// faulty.
pub(crate) fn decode<T: DeserializeOwned>(node: Node<'_>, sources: Option<&dyn ValueSource>) -> Decoded<T> {
    decode_with(node, &[], sources)
}

/// Decodes like [`decode`], but skips the top-level fields in `known_elsewhere`. They still count as known fields, also
/// as suggestions for misspelt ones.
pub(crate) fn decode_with<T: DeserializeOwned>(
    node: Node<'_>,
    known_elsewhere: &[&str],
    sources: Option<&dyn ValueSource>,
) -> Decoded<T> {
    run(node, Context { known_elsewhere, sources, ..Context::default() })
}

/// Decodes the body of a request as [`decode_with`] does, except that a null field is ignored even if it is unknown, because
/// generated clients send every unset field of their own version of the API, and a blank can be unset (D62). The `fixed`
/// top-level fields are known, but never suggested for a misspelt one, because a PATCH cannot change them.
pub(crate) fn decode_request<T: DeserializeOwned>(
    node: Node<'_>,
    known_elsewhere: &[&str],
    fixed: &[&str],
) -> Decoded<T> {
    run(node, Context { known_elsewhere, fixed, is_request: true, ..Context::default() })
}

/// Decodes the value of a field as [`decode`] does; faults of the whole value name the field.
pub(crate) fn decode_field<T: DeserializeOwned>(
    node: Node<'_>,
    name: &str,
    sources: Option<&dyn ValueSource>,
) -> Decoded<T> {
    run(node, Context { name: Some(name), sources, ..Context::default() })
}

fn run<T: DeserializeOwned>(node: Node<'_>, context: Context<'_>) -> Decoded<T> {
    let mut faults: Vec<Fault> = Vec::new();
    let mut excluded = Exclusions::default();
    loop {
        let at = Position { parent: None, step: PathStep::Root };
        let value = NodeValue { node, at, context: &context, excluded: Some(&excluded) };
        match T::deserialize(value) {
            Ok(value) => return (Some(value), faults),
            Err(error) => {
                let entry = error.entry.unwrap_or_default();
                // An entry set aside for its own fault is not missing, and neither is a misspelt one.
                let is_misspelt = faults.iter().any(|known| known.meant().is_some_and(|it| it == error.fault.path));
                if !excluded.contains(&error.fault.path) && !is_misspelt {
                    faults.push(*error.fault);
                }
                if let Some(Segment::Index(_)) = entry.0.last()
                    && let Some(cause) = faults.iter_mut().find(|fault| fault.path.0.starts_with(&entry.0))
                {
                    cause.left_out = Some(Box::new(entry.clone()));
                }
                // If the entry cannot be set aside, the whole document is faulty.
                if entry == Path::root() || !excluded.insert(&entry) || faults.len() >= MOST_FAULTS {
                    return (None, faults);
                }
            }
        }
    }
}

#[derive(Default)]
struct Context<'a> {
    known_elsewhere: &'a [&'a str],
    /// Known fields that are not suggested.
    fixed: &'a [&'a str],
    /// Whether an unknown field can be null, and an optional variant blank.
    is_request: bool,
    sources: Option<&'a dyn ValueSource>,
    /// The name of the whole value, if it is the value of a field.
    name: Option<&'a str>,
    /// The values of value sources, so that decoding again does not read a file again.
    resolved: RefCell<HashMap<(String, String), Result<String, Fault>>>,
}

/// The entries set aside, as a tree: each lookup is one step, whatever the depth and the length of the keys.
#[derive(Default)]
struct Exclusions {
    whole: bool,
    keys: HashMap<String, Exclusions>,
    items: HashMap<usize, Exclusions>,
}

impl Exclusions {
    /// The part below a step.
    fn below(&self, step: PathStep<'_>) -> Option<&Exclusions> {
        match step {
            PathStep::Root => Some(self),
            PathStep::Key(key) => self.keys.get(key),
            PathStep::Index(index) => self.items.get(&index),
        }
    }

    /// Sets an entry aside; false if it was before.
    fn insert(&mut self, path: &Path) -> bool {
        let mut here = self;
        for step in &path.0 {
            here = match step {
                Segment::Key(key) => here.keys.entry(key.clone()).or_default(),
                Segment::Index(index) => here.items.entry(*index).or_default(),
            };
        }
        !std::mem::replace(&mut here.whole, true)
    }

    fn contains(&self, path: &Path) -> bool {
        let entry = path.0.iter().try_fold(self, |excluded, step| match step {
            Segment::Key(key) => excluded.keys.get(key),
            Segment::Index(index) => excluded.items.get(index),
        });
        entry.is_some_and(|excluded| excluded.whole)
    }
}

/// A value's position, linked to its parent. Building a [`Path`] only for errors keeps decoding fast.
#[derive(Clone, Copy)]
struct Position<'a> {
    parent: Option<&'a Position<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl Position<'_> {
    fn path(&self) -> Path {
        let mut path = self.parent.map(|parent| parent.path()).unwrap_or_default();
        match self.step {
            PathStep::Root => {}
            PathStep::Key(key) => path.0.push(Segment::Key(key.to_owned())),
            PathStep::Index(index) => path.0.push(Segment::Index(index)),
        }
        path
    }
}

/// A decoding error: a fault whose path comes from the nearest enclosing entry.
#[derive(Debug, thiserror::Error)]
#[error("{}", .fault.message)]
struct DecodeError {
    fault: Box<Fault>,
    /// The entry to set aside: the innermost entry that the fault invalidates. The fault's path can be deeper.
    entry: Option<Path>,
    /// The expected type and the one found, if the fault is the type of a value.
    mismatch: Option<(String, String)>,
    /// The fields of the mapping that was expected.
    fields: Option<&'static [&'static str]>,
}

impl DecodeError {
    fn new(fault: Fault) -> Self {
        Self { fault: Box::new(fault), entry: None, mismatch: None, fields: None }
    }

    fn place(mut self, at: &Position<'_>) -> Self {
        if self.entry.is_none() {
            let entry = at.path();
            self.fault.path = self.fault.path.under(&entry);
            self.entry = Some(entry);
        }
        self
    }
}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Fault::new(Code::InvalidFormat, message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        let number = matches!(found, Unexpected::Signed(_) | Unexpected::Unsigned(_));
        if number && INTEGERS.contains(&expected.as_str()) {
            return Self::out_of_range(&expected, &found);
        }
        let mismatch = (plain(&expected), kind_of(&found));
        let fault = Fault::new(Code::WrongType, format!("expected {}, found {}", mismatch.0, mismatch.1));
        let is_unquoted =
            (number || matches!(found, Unexpected::Float(_) | Unexpected::Bool(_))) && expected.contains("string");
        let fault = if is_unquoted { fault.help("quote it") } else { fault };
        Self { mismatch: Some(mismatch), ..Self::new(fault) }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        if INTEGERS.contains(&expected.as_str()) {
            return Self::out_of_range(&expected, &found);
        }
        Self::new(Fault::new(Code::InvalidFormat, format!("expected {}, found {}", plain(&expected), kind_of(&found))))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let fault =
            Fault::new(Code::UnknownValue, format!("`{}` is not one of {}", printable(variant), list(expected)));
        Self::new(fault.help(suggest(variant, expected.iter().copied(), "write one of the listed values")))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown_field(field, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Fault::required(field).of_key())
    }
}

const INTEGERS: &[&str] = &["u8", "u16", "u32", "u64", "i32", "i64"];

impl DecodeError {
    fn out_of_range(integer: &str, found: &Unexpected<'_>) -> Self {
        let most = match integer {
            "u8" => u64::from(u8::MAX),
            "u16" => u64::from(u16::MAX),
            "u32" => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        let mismatch = (format!("a whole number from 0 to {most}"), kind_of(found));
        let fault = Fault::new(Code::OutOfRange, format!("expected {}", mismatch.0));
        let fault = fault.help("set a number in this range, without a fraction");
        Self { mismatch: Some(mismatch), ..Self::new(fault) }
    }
}

/// Creates the fault of an unknown field, and suggests the most similar known one.
pub(crate) fn unknown_field(field: &str, known: &[&str]) -> Fault {
    unknown_field_beside(field, known, |_| false)
}

/// Creates the fault of an unknown field like [`unknown_field`], but suggests none that is set beside it.
fn unknown_field_beside(field: &str, known: &[&str], is_set: impl Fn(&str) -> bool) -> Fault {
    let fault = Fault::new(Code::UnknownField, format!("unknown field `{}`", printable(&quotable_key(field)))).of_key();
    let (set, unset): (Vec<&str>, Vec<&str>) = known.iter().copied().partition(|field| is_set(field));
    match (nearest(field, unset), nearest(field, set)) {
        (Some(near), _) => Fault { meant: Some(near.into()), ..fault.help(format!("did you mean `{near}`?")) },
        (None, Some(near)) => fault.help(format!("remove it, or correct its name: `{near}` is already set")),
        (None, None) if known.is_empty() => fault.help("remove it; no fields are allowed"),
        (None, None) => fault.help(format!("use one of {}", list(known))),
    }
}

fn plain(expected: &str) -> String {
    if INTEGERS.contains(&expected) {
        return "a whole number".into();
    }
    match expected {
        "f64" => "a number".into(),
        "path string" => "a string".into(),
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
        Unexpected::Unsigned(found) => number(found),
        Unexpected::Signed(found) => number(found),
        Unexpected::Float(found) => number(found),
        Unexpected::Str(_) | Unexpected::Char(_) => "a string".into(),
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a mapping".into(),
        other => other.to_string(),
    }
}
