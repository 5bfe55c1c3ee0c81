//! Decodes an untyped [`Node`] to a typed value, and reports every fault at its field instead of only the first.
//!
//! Serde stops at the first error. So each error names the entry that caused it; the decoder sets the entry aside and
//! decodes again without it, until the rest is valid. Null always means "not set" (D6); in a request, so does a null
//! field that is unknown (D62).

mod value;

use std::{cell::RefCell, collections::HashMap, fmt};

use serde::de::{self, DeserializeOwned, Unexpected};
use value::NodeValue;

use super::{
    code::Code,
    fault::{Fault, MOST_FAULTS, Path, Segment, nearest},
    node::Node,
    redact::quotable_key,
};
use crate::text::printable;

/// Resolves values such as `{from_file: certs/a.pem}` (D28).
pub(crate) trait ValueSource {
    /// Returns the text, or a fault with a path relative to the value.
    fn resolve(&self, source: &str, argument: &str) -> Result<String, Fault>;

    /// Receives the document path of each secret in plain text.
    fn plain_secret(&self, _path: Path) {}
}

/// The result of decoding: the value, if any, and all faults.
pub(crate) type Decoded<T> = (Option<T>, Vec<Fault>);

/// The newtype name of a field that accepts any object.
pub(crate) const FREE_FORM: &str = "edgewright::FreeForm";

/// Decodes a document. Returns all faults, and the value without its faulty entries, or `None` if the whole document is
/// faulty.
pub(crate) fn decode<T: DeserializeOwned>(node: &Node, sources: Option<&dyn ValueSource>) -> Decoded<T> {
    decode_with(node, &[], sources)
}

/// Decodes like [`decode`], but skips the top-level fields in `known_elsewhere`. They still count as known fields, also
/// as suggestions for misspelt ones.
pub(crate) fn decode_with<T: DeserializeOwned>(
    node: &Node,
    known_elsewhere: &[&str],
    sources: Option<&dyn ValueSource>,
) -> Decoded<T> {
    run(node, Context { known_elsewhere, sources, ..Context::default() })
}

/// Like [`decode_with`], for the body of a request: a null field is ignored even if it is unknown, because generated
/// clients send every unset field of their own version of the API (D62). The `fixed` top-level fields are known, but
/// never suggested for a misspelt one, because a PATCH cannot change them.
pub(crate) fn decode_request<T: DeserializeOwned>(node: &Node, known_elsewhere: &[&str], fixed: &[&str]) -> Decoded<T> {
    run(node, Context { known_elsewhere, fixed, ignores_null: true, ..Context::default() })
}

fn run<T: DeserializeOwned>(node: &Node, context: Context<'_>) -> Decoded<T> {
    let mut faults = Vec::new();
    let mut aside = Aside::default();
    loop {
        let at = At { parent: None, step: PathStep::Root };
        let value = NodeValue { node, at, context: &context, aside: Some(&aside) };
        match T::deserialize(value) {
            Ok(value) => return (Some(value), faults),
            Err(error) => {
                let entry = error.entry.unwrap_or_default();
                // An entry set aside for its own fault is not missing.
                if !aside.contains(&error.fault.path) {
                    faults.push(*error.fault);
                }
                // If the entry cannot be set aside, the whole document is faulty.
                if entry == Path::root() || !aside.insert(&entry) || faults.len() >= MOST_FAULTS {
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
    /// Whether an unknown field can be null.
    ignores_null: bool,
    sources: Option<&'a dyn ValueSource>,
    /// The values of value sources, so that decoding again does not read a file again.
    resolved: RefCell<HashMap<(String, String), Result<String, Fault>>>,
}

/// The entries set aside, as a tree: each lookup is one step, whatever the depth and the length of the keys.
#[derive(Default)]
struct Aside {
    whole: bool,
    keys: HashMap<String, Aside>,
    items: HashMap<usize, Aside>,
}

impl Aside {
    /// The part below a step.
    fn below(&self, step: PathStep<'_>) -> Option<&Aside> {
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
        let mut here = Some(self);
        for step in &path.0 {
            here = here.and_then(|aside| match step {
                Segment::Key(key) => aside.keys.get(key),
                Segment::Index(index) => aside.items.get(index),
            });
        }
        here.is_some_and(|aside| aside.whole)
    }
}

/// A value's position, linked to its parent. Building a [`Path`] only for errors keeps decoding fast.
#[derive(Clone, Copy)]
struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
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
                PathStep::Root => {}
                PathStep::Key(key) => steps.push(Segment::Key(key.to_owned())),
                PathStep::Index(index) => steps.push(Segment::Index(index)),
            }
            here = at.parent;
        }
        steps.reverse();
        Path(steps)
    }
}

/// A decoding error: a fault whose path comes from the nearest enclosing entry.
#[derive(Debug)]
struct DecodeError {
    fault: Box<Fault>,
    /// The entry to set aside: the innermost entry that the fault invalidates. The fault's path can be deeper.
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
                fault.help("quote it")
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
        let fault =
            Fault::new(Code::UnknownValue, format!("`{}` is not one of {}", printable(variant), list(expected)));
        Self::new(match nearest(variant, expected.iter().copied()) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault,
        })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown_field(field, expected.iter().copied()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Fault::new(Code::Required, format!("`{field}` is required")).of_key().at(Path::root().join(field)))
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

/// Creates the fault of an unknown field, and suggests the most similar known one.
pub(crate) fn unknown_field<'k>(field: &str, known: impl IntoIterator<Item = &'k str>) -> Fault {
    let known: Vec<&str> = known.into_iter().collect();
    let fault = Fault::new(Code::UnknownField, format!("unknown field `{}`", printable(&quotable_key(field)))).of_key();
    match nearest(field, known.iter().copied()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => fault.help("remove it; no fields are allowed"),
        None => fault.help(format!("use one of {}", list(&known))),
    }
}

/// Formats a list of words for a sentence.
pub(crate) fn list(words: &[&str]) -> String {
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
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a mapping".into(),
        other => other.to_string(),
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
    fn a_fixed_field_is_never_suggested_for_a_misspelt_one() {
        let help = |json: &str, elsewhere: &[&str], fixed: &[&str]| {
            let node = serde_json::from_str::<Node>(json).unwrap_or(Node::Null);
            let (_, faults) = decode_request::<Sample>(&node, elsewhere, fixed);
            faults.into_iter().find_map(|fault| fault.help).unwrap_or_default()
        };
        assert_eq!(help(r#"{"nam": 1}"#, &[], &[]), "did you mean `name`?");
        assert!(!help(r#"{"nam": 1}"#, &[], &["name"]).contains("`name`"));
        let all = help(r#"{"color": 1}"#, &["tags"], &["name"]);
        assert!(all.ends_with("`size`, `tags`"), "{all}");
        assert_eq!(help(r#"{"color": 1}"#, &[], &["name", "size", "tags"]), "remove it; no fields are allowed");
        assert_eq!(help(r#"{"name": "x"}"#, &[], &["name"]), "", "a fixed field is a known one");
    }

    #[test]
    fn null_means_not_given_but_does_not_hide_an_unknown_field() {
        assert_eq!(sample(r#"{"name": null, "tags": null}"#), (Some(Sample::default()), vec![]));
        assert_eq!(sample(r#"{"nam": null}"#).1, [(Code::UnknownField, "/nam".to_owned())]);
    }

    #[test]
    fn a_request_can_have_unknown_fields_that_are_null() {
        let request = |json: &str| {
            let node = serde_json::from_str::<Node>(json).unwrap_or(Node::Null);
            let (value, faults) = decode_request::<Vec<Sample>>(&node, &[], &[]);
            (value, faults.into_iter().map(|f| (f.code, f.path.to_string())).collect::<Vec<_>>())
        };
        let named = Sample { name: "x".into(), ..Sample::default() };
        assert_eq!(request(r#"[{"nam": null, "name": "x"}]"#), (Some(vec![named]), vec![]));
        assert_eq!(request(r#"[{"nam": []}]"#).1, [(Code::UnknownField, "/0/nam".to_owned())]);
    }

    #[test]
    fn many_good_values_before_many_faulty_ones_cost_little() {
        let key = "k".repeat(100_000);
        let list = format!("[{}{}1]", "\"a\",".repeat(20_000), "1,".repeat(200));
        let node = serde_json::from_str::<Node>(&format!(r#"{{"{key}": {list}}}"#)).unwrap_or(Node::Null);
        let (_, faults) = decode::<std::collections::BTreeMap<String, Vec<String>>>(&node, None);
        assert_eq!(faults.len(), MOST_FAULTS);
        let (_, faults) = decode::<Sample>(&node, None);
        assert!(faults.iter().all(|fault| fault.message.len() < 100), "an echo of the key");
    }

    #[test]
    fn the_mask_is_no_secret_whatever_it_comes_from() {
        struct Masked;
        impl ValueSource for Masked {
            fn resolve(&self, _: &str, _: &str) -> Result<String, Fault> {
                Ok("********\n".into())
            }
        }
        let text = r#"{"a": "********", "b": {"from_env": "MASKED"}, "c": "*********"}"#;
        let node = serde_json::from_str::<Node>(text).unwrap_or(Node::Null);
        let (_, faults) =
            decode::<std::collections::BTreeMap<String, crate::model::secret::Secret>>(&node, Some(&Masked));
        let faults: Vec<_> = faults.into_iter().map(|fault| (fault.code, fault.path.to_string())).collect();
        assert_eq!(faults, [(Code::InvalidFormat, "/a".to_owned()), (Code::InvalidFormat, "/b".to_owned())]);
    }

    #[test]
    fn what_may_be_a_secret_is_not_quoted() {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[allow(dead_code)]
        struct Login {
            client_secret: crate::model::secret::Secret,
        }
        struct Nowhere;
        impl ValueSource for Nowhere {
            fn resolve(&self, _: &str, _: &str) -> Result<String, Fault> {
                Ok("value".into())
            }
        }
        for text in [
            r#"{"client_secret": 4711}"#,
            r#"{"client_secret": -4711}"#,
            r#"{"client_secret": 4711.5}"#,
            r#"{"client_secret": [4711]}"#,
            r#"{"client_secret": {"4711": null}}"#,
            r#"{"client_secret": {"from_env": 4711}}"#,
            r#"{"client_secert": 4711}"#,
        ] {
            let node = serde_json::from_str::<Node>(text).unwrap_or(Node::Null);
            for sources in [None, Some(&Nowhere as &dyn ValueSource)] {
                let (_, faults) = decode::<Login>(&node, sources);
                assert_eq!(faults.len(), 1, "{text}");
                assert!(!format!("{faults:?}").contains("4711"), "{text}: {faults:?}");
            }
        }
        let node = serde_json::from_str::<Node>(r#"{"client_secret": true}"#).unwrap_or(Node::Null);
        let messages: Vec<String> = decode::<Login>(&node, None).1.into_iter().map(|fault| fault.message).collect();
        assert_eq!(messages, ["expected a string, found a boolean"]);
    }
}
