//! Untyped documents: the common form of request bodies and manifests.

use std::{cell::Cell, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed},
};

use super::{
    code::Code,
    fault::{Fault, MOST_FAULTS, Path, Segment},
    redact::quotable_key,
};
use crate::text::printable;

/// The key of a YAML mapping that takes the entries of another mapping.
pub(crate) const MERGE_KEY: &str = "<<";

/// The longest key of a mapping (D48): a fault holds the path to its field, so keys must be short enough to copy.
const MOST_KEY_BYTES: usize = 4096;

/// A value in a document. Mappings keep their order and duplicate keys, so that duplicates can be reported.
#[derive(Clone, PartialEq)]
pub(crate) enum Node {
    /// Null, or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number that JSON can hold.
    Number(serde_json::Number),
    /// A number that JSON cannot hold: `.inf` or `.nan` in YAML. [`Node::take_faults`] reports and removes it.
    NotFinite,
    /// An integer of more than 64 bits, which would lose digits as a number of JSON. [`Node::take_faults`] reports and
    /// removes it.
    LongInteger,
    /// A text.
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
    pub(crate) fn entries(&self) -> Option<&[(String, Node)]> {
        match self {
            Node::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value of a mapping's key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns the text of a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// Converts to JSON, including nulls; a tagged value becomes null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Node::Null | Node::NotFinite | Node::LongInteger | Node::Tagged(_) => Value::Null,
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
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Node::Null)
    }

    /// What the value is, in words for an error. Texts and tags are not quoted: they may be secret.
    pub(crate) fn describe(&self) -> String {
        match self {
            Node::Bool(value) => format!("the boolean {value}"),
            Node::Number(number) => format!("the number {number}"),
            _ => self.describe_type().into(),
        }
    }

    /// The type of the value, in words for an error about what may be a secret.
    pub(crate) fn describe_type(&self) -> &'static str {
        match self {
            Node::Null => "nothing (null)",
            Node::Bool(_) => "a boolean",
            Node::Number(_) | Node::NotFinite | Node::LongInteger => "a number",
            Node::String(_) => "a string",
            Node::Seq(_) => "a list",
            Node::Map(_) => "a mapping",
            Node::Tagged(_) => "a value with a tag",
        }
    }

    /// Whether there is nothing to remove, report or merge, as in most documents. Allocates nothing.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Node::NotFinite | Node::LongInteger => false,
            Node::Seq(items) => items.iter().all(Node::is_plain),
            Node::Map(entries) => are_plain(entries) && entries.iter().all(|(_, value)| value.is_plain()),
            _ => true,
        }
    }

    /// Removes and reports invalid content: later values of a duplicate key, keys that are too long, and numbers that
    /// JSON cannot represent exactly. Only the first hundred faults are reported, the last one with the number of the
    /// others.
    pub(crate) fn take_faults(&mut self) -> Vec<Fault> {
        let mut found = CappedFaults::default();
        self.visit(&mut Path::root(), &mut found);
        found.into_vec()
    }

    /// `path` leads to this value; it is extended and truncated in place, because copying it for each value would be
    /// slow.
    fn visit(&mut self, path: &mut Path, found: &mut CappedFaults) {
        match self {
            Node::NotFinite => {
                found.add(|| {
                    Fault::new(Code::WrongType, "a number must be finite: JSON has no infinity and no NaN")
                        .at(path.clone())
                        .help("write a finite number, or put the text in quotes")
                });
                *self = Node::Null;
            }
            Node::LongInteger => {
                found.add(|| {
                    Fault::new(Code::OutOfRange, format!("an integer must be from {} to {}", i64::MIN, u64::MAX))
                        .at(path.clone())
                        .help("use a smaller number, or put its digits in quotes")
                });
                *self = Node::Null;
            }
            Node::Seq(items) => {
                for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| item.is_visited()) {
                    path.0.push(Segment::Index(index));
                    item.visit(path, found);
                    path.0.pop();
                }
            }
            Node::Map(entries) => {
                found.in_keys(entries, path);
                for (key, value) in entries.iter_mut().filter(|(_, value)| value.is_visited()) {
                    path.0.push(Segment::Key(key.clone()));
                    value.visit(path, found);
                    path.0.pop();
                }
            }
            _ => {}
        }
    }

    fn is_visited(&self) -> bool {
        matches!(self, Node::Seq(_) | Node::Map(_) | Node::NotFinite | Node::LongInteger)
    }
}

/// Whether a few keys differ, and none is long or a merge key.
fn are_plain(entries: &[(String, Node)]) -> bool {
    let is_new = |at: usize, key: &String| entries.iter().take(at).all(|(earlier, _)| earlier != key);
    entries.len() <= 32
        && entries
            .iter()
            .enumerate()
            .all(|(at, (key, _))| key.len() <= MOST_KEY_BYTES && key != MERGE_KEY && is_new(at, key))
}

/// The faults of a document: the first hundred, and the number of the others.
#[derive(Default)]
struct CappedFaults {
    faults: Vec<Fault>,
    more: usize,
}

impl CappedFaults {
    fn add(&mut self, fault: impl FnOnce() -> Fault) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault());
        } else {
            self.more += 1;
        }
    }

    /// Removes the entries with duplicate or too long keys. A duplicate key is one fault, however often it occurs.
    fn in_keys(&mut self, entries: &mut Vec<(String, Node)>, path: &Path) {
        let mut seen = HashSet::with_capacity(entries.len());
        let mut reported = HashSet::new();
        entries.retain(|(key, _)| {
            if key.len() > MOST_KEY_BYTES {
                self.add(|| {
                    let message = format!(
                        "the key `{}` has {} bytes, over the limit of {MOST_KEY_BYTES}",
                        printable(&quotable_key(key)),
                        key.len()
                    );
                    Fault::new(Code::TooLong, message).at(path.clone())
                });
                return false;
            }
            let first = seen.insert(key.clone());
            if !first && reported.insert(key.clone()) {
                self.add(|| {
                    Fault::new(Code::DuplicateKey, format!("duplicate key `{}`", printable(&quotable_key(key))))
                        .at(path.join(key.as_str()))
                        .of_key()
                        .help("remove one of them")
                });
            }
            first
        });
    }

    fn into_vec(mut self) -> Vec<Fault> {
        if let Some(last) = self.faults.last_mut().filter(|_| self.more > 0) {
            last.message += &format!(" (and {} more faults in this document)", self.more);
        }
        self.faults
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
        Counted(&Allowance::new(usize::MAX)).deserialize(deserializer)
    }
}

/// As many bytes of a text count as one value more.
pub(crate) const BYTES_OF_A_VALUE: usize = 16;

/// The number of values that may still be read (D48). YAML aliases repeat their value, so a small text can expand to
/// very many values.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: Cell<usize>,
    exceeded: Cell<bool>,
}

impl Allowance {
    /// Creates an allowance of values, including keys and collections.
    pub(crate) fn new(values: usize) -> Self {
        Self { left: Cell::new(values), exceeded: Cell::new(false) }
    }

    /// Whether reading stopped at the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    fn take(&self) -> bool {
        self.take_many(1)
    }

    /// Takes what a text costs: aliases can repeat a long text as well as a long list.
    fn take_text(&self, text: &str) -> bool {
        self.take_many(text.len() / BYTES_OF_A_VALUE)
    }

    fn take_many(&self, values: usize) -> bool {
        match self.left.get().checked_sub(values) {
            Some(left) => self.left.set(left),
            None => self.exceeded.set(true),
        }
        !self.is_exceeded()
    }
}

/// Reads a [`Node`] within the allowance.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a>(pub &'a Allowance);

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        if !self.0.take() {
            return Err(de::Error::custom("aliases expand to too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for Counted<'_> {
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
        deserializer.deserialize_any(self)
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
        Ok(serde_json::Number::from_f64(value).map_or(Node::NotFinite, Node::Number))
    }
    // The reader of YAML passes only integers that do not fit in 64 bits.
    fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
        Ok(Node::LongInteger)
    }
    fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
        Ok(Node::LongInteger)
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        if !self.0.take_text(value) {
            return Err(de::Error::custom("aliases expand to too much text"));
        }
        Ok(Node::String(value.to_owned()))
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Node::Seq(items))
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry_seed(self, self)? {
            let key = match key {
                Node::String(text) => text,
                Node::Number(number) => number.to_string(),
                Node::Bool(value) => value.to_string(),
                Node::Null => "null".to_owned(),
                Node::NotFinite | Node::LongInteger => {
                    return Err(de::Error::custom("a key must be a string, not a number"));
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(Code, String, String)> {
        let mut node: Node = serde_yaml::from_str(text).unwrap_or(Node::Null);
        node.take_faults().into_iter().map(|fault| (fault.code, fault.path.to_string(), fault.message)).collect()
    }

    #[test]
    fn repeated_keys_are_reported_once_each_and_the_first_values_stay() {
        let mut node: Node = serde_yaml::from_str("a: 1\na: 2\nb: {c: 1, c: 2, c: 3}\na: 4\n").unwrap_or(Node::Null);
        let paths: Vec<String> = node.take_faults().iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["/a", "/b/c"]);
        assert_eq!(node.to_json(), serde_json::json!({"a": 1, "b": {"c": 1}}));
    }

    #[test]
    fn very_many_faults_are_counted_in_little_time() {
        let text: String = (0..50_000).map(|at| format!("k{at}: 1\nk{at}: 2\n")).collect();
        let found = faults(&text);
        assert_eq!(found.len(), MOST_FAULTS);
        let last = found.last().map(|(.., message)| message.as_str()).unwrap_or_default();
        assert_eq!(last, "duplicate key `k99` (and 49900 more faults in this document)");
    }

    #[test]
    fn numbers_without_a_form_in_json_are_faults_at_their_places() {
        let found = faults("a: .inf\nb: [1, -.INF, {c: .nan}]\nd: '.nan'\n");
        let found: Vec<(Code, &str)> = found.iter().map(|(code, path, _)| (*code, path.as_str())).collect();
        assert_eq!(found, [(Code::WrongType, "/a"), (Code::WrongType, "/b/1"), (Code::WrongType, "/b/2/c")]);
    }

    #[test]
    fn integers_of_more_than_64_bits_are_faults_at_their_places() {
        let found = faults(
            "a: 18446744073709551616\nb: [1, -9223372036854775809, {c: 0x10000000000000000}]\nd: '18446744073709551616'\n\
             e: [18446744073709551615, -9223372036854775808, 1e22, 18446744073709551616.0]\n",
        );
        let found: Vec<(Code, &str)> = found.iter().map(|(code, path, _)| (*code, path.as_str())).collect();
        assert_eq!(found, [(Code::OutOfRange, "/a"), (Code::OutOfRange, "/b/1"), (Code::OutOfRange, "/b/2/c")]);
    }

    #[test]
    fn a_long_key_is_neither_kept_nor_repeated() {
        let found = faults(&format!("a:\n  ? {}\n  : 1\n", "k".repeat(100_000)));
        assert_eq!(found.len(), 1);
        assert!(
            found.iter().all(|(code, path, message)| {
                (*code, path.as_str()) == (Code::TooLong, "/a") && message.len() < 200
            })
        );
    }

    #[test]
    fn an_allowance_ends_the_reading() {
        let read = |most: usize| {
            let allowance = Allowance::new(most);
            let node = Counted(&allowance).deserialize(serde_yaml::Deserializer::from_str("a: &a [1, 2]\nb: *a\n"));
            (node.is_ok(), allowance.is_exceeded())
        };
        assert_eq!(read(9), (true, false));
        assert_eq!(read(8), (false, true));
    }
}
