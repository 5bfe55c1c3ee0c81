//! The values of a document in one list, and the cursor that reads them.

use std::{fmt, mem::discriminant};

use serde_json::{Number, Value};

use crate::syntax::text::number;

/// A document: its values in order, each collection before its contents, with the texts of all of them in one string.
/// A document takes a few allocations, however many values it has. The default is a document of null. Tapes are compared item
/// by item, which is more than their documents.
#[derive(Default, PartialEq)]
pub(crate) struct Tape {
    pub(crate) items: Vec<TapeItem>,
    pub(super) texts: String,
    pub(super) numbers: Vec<Number>,
    /// Whether a key is a duplicate or too long, or JSON cannot represent a number.
    pub(crate) has_faults: bool,
    /// Whether a mapping has a merge key.
    pub(crate) has_merge_keys: bool,
}

/// A value or the key of a mapping. An entry of a mapping is its key and its value, one after the other. Positions have 32
/// bits, so that an item fits in 12 bytes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TapeItem {
    Null,
    Bool(bool),
    /// An index in the numbers of the tape.
    Number(u32),
    NotFinite,
    LongInteger,
    /// A range of bytes in the texts of the tape.
    String {
        start: u32,
        bytes: u32,
    },
    /// The number of items of the list, including this one.
    Seq(u32),
    /// The number of items of the mapping, including this one.
    Map(u32),
    Tagged,
    /// The key of an entry that was removed.
    Removed,
}

impl TapeItem {
    /// Returns the distance to the next value.
    fn length(self) -> u32 {
        match self {
            TapeItem::Seq(length) | TapeItem::Map(length) => length,
            _ => 1,
        }
    }
}

impl Tape {
    /// Creates the document `{}`.
    pub(crate) fn empty_mapping() -> Self {
        Self { items: vec![TapeItem::Map(1)], ..Self::default() }
    }

    /// Returns the value of the document.
    pub(crate) fn root(&self) -> Node<'_> {
        self.node(0)
    }

    /// Removes the top-level entry of a key.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Some(at) = self.root().get(key).map(Node::key_position) {
            self.replace(at, TapeItem::Removed);
        }
    }

    /// Whether a number is no integer of 64 bits.
    pub(crate) fn has_floats(&self) -> bool {
        self.numbers.iter().any(Number::is_f64)
    }

    /// Replaces the numbers of a JSON document that are integers of more than 64 bits; 0 is the first number. The
    /// indices are sorted.
    pub(crate) fn set_long_integers(&mut self, indices: &[usize]) {
        for item in &mut self.items {
            // In JSON only values are numbers, so they are stored in the order of the text.
            if let TapeItem::Number(index) = *item
                && indices.binary_search(&(index as usize)).is_ok()
            {
                *item = TapeItem::LongInteger;
                self.has_faults = true;
            }
        }
    }

    /// Returns the value at a position.
    pub(super) fn node(&self, at: u32) -> Node<'_> {
        Node { tape: self, at }
    }

    fn item(&self, at: u32) -> TapeItem {
        self.items.get(at as usize).copied().unwrap_or(TapeItem::Null)
    }

    fn text(&self, start: u32, bytes: u32) -> &str {
        let start = start as usize;
        self.texts.get(start..start + bytes as usize).unwrap_or_default()
    }
}

/// A value in a document. Mappings keep their order and duplicate keys, so that duplicates can be reported.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    tape: &'a Tape,
    at: u32,
}

/// The shape of a [`Node`].
pub(crate) enum NodeShape<'a> {
    /// Null, or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number that JSON can hold.
    Number(&'a Number),
    /// A number that JSON cannot hold: `.inf` or `.nan` in YAML. `model::node` reports and removes it.
    NotFinite,
    /// An integer of more than 64 bits, which would lose digits as a number of JSON. `model::node` reports and removes it.
    LongInteger,
    /// A text.
    String(&'a str),
    /// A list.
    Seq(NodeItems<'a>),
    /// A mapping.
    Map(NodeEntries<'a>),
    /// A value with a YAML tag, which no field accepts.
    Tagged,
}

impl<'a> Node<'a> {
    /// Returns what the value is.
    pub(crate) fn shape(self) -> NodeShape<'a> {
        let tape = self.tape;
        match self.item() {
            TapeItem::Null | TapeItem::Removed => NodeShape::Null,
            TapeItem::Bool(value) => NodeShape::Bool(value),
            TapeItem::Number(index) => match tape.numbers.get(index as usize) {
                Some(number) => NodeShape::Number(number),
                None => NodeShape::Null,
            },
            TapeItem::NotFinite => NodeShape::NotFinite,
            TapeItem::LongInteger => NodeShape::LongInteger,
            TapeItem::String { start, bytes } => NodeShape::String(tape.text(start, bytes)),
            TapeItem::Seq(length) => NodeShape::Seq(NodeItems { tape, next: self.at + 1, end: self.at + length }),
            TapeItem::Map(length) => NodeShape::Map(NodeEntries { tape, next: self.at + 1, end: self.at + length }),
            TapeItem::Tagged => NodeShape::Tagged,
        }
    }

    /// Returns the entries of a mapping.
    pub(crate) fn entries(self) -> Option<NodeEntries<'a>> {
        if let NodeShape::Map(entries) = self.shape() { Some(entries) } else { None }
    }

    /// Returns the items of a list.
    pub(crate) fn items(self) -> Option<NodeItems<'a>> {
        if let NodeShape::Seq(items) = self.shape() { Some(items) } else { None }
    }

    /// Returns the value of a mapping's key.
    pub(crate) fn get(self, key: &str) -> Option<Node<'a>> {
        self.entries()?.find(|(name, _)| *name == key).map(|(_, node)| node)
    }

    /// Returns the text of a string.
    pub(crate) fn as_str(self) -> Option<&'a str> {
        if let NodeShape::String(text) = self.shape() { Some(text) } else { None }
    }

    /// Converts to JSON, including nulls; a tagged value becomes null.
    pub(crate) fn to_json(self) -> Value {
        match self.shape() {
            NodeShape::Null | NodeShape::NotFinite | NodeShape::LongInteger | NodeShape::Tagged => Value::Null,
            NodeShape::Bool(value) => Value::Bool(value),
            NodeShape::Number(number) => Value::Number(number.clone()),
            NodeShape::String(text) => Value::String(text.to_owned()),
            NodeShape::Seq(items) => Value::Array(items.map(Node::to_json).collect()),
            NodeShape::Map(entries) => {
                Value::Object(entries.map(|(key, node)| (key.to_owned(), node.to_json())).collect())
            }
        }
    }

    /// Whether the value is null, which means "not set" (D6).
    pub(crate) fn is_null(self) -> bool {
        matches!(self.item(), TapeItem::Null)
    }

    /// Describes the value for an error. Texts, tags and long numbers are not quoted: they may be secret.
    pub(crate) fn describe(self) -> String {
        match self.shape() {
            NodeShape::Bool(value) => format!("the boolean {value}"),
            NodeShape::Number(found) => number(found),
            _ => self.describe_type().into(),
        }
    }

    /// The type of the value, in words for an error about what may be a secret.
    pub(crate) fn describe_type(self) -> &'static str {
        match self.item() {
            TapeItem::Null | TapeItem::Removed => "nothing (null)",
            TapeItem::Bool(_) => "a boolean",
            TapeItem::Number(_) | TapeItem::NotFinite | TapeItem::LongInteger => "a number",
            TapeItem::String { .. } => "a string",
            TapeItem::Seq(_) => "a list",
            TapeItem::Map(_) => "a mapping",
            TapeItem::Tagged => "a value with a tag",
        }
    }

    /// Returns the position in the tape.
    pub(crate) fn position(self) -> u32 {
        self.at
    }

    /// Returns the position of the key, if the value is that of a mapping's entry.
    pub(crate) fn key_position(self) -> u32 {
        self.at.saturating_sub(1)
    }

    /// Returns the item of the key, if the value is that of a mapping's entry.
    pub(crate) fn key(self) -> TapeItem {
        self.tape.item(self.key_position())
    }

    /// Returns the item of the value.
    pub(crate) fn item(self) -> TapeItem {
        self.tape.item(self.at)
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.shape(), other.shape()) {
            (NodeShape::Bool(one), NodeShape::Bool(other)) => one == other,
            (NodeShape::Number(one), NodeShape::Number(other)) => one == other,
            (NodeShape::String(one), NodeShape::String(other)) => one == other,
            (NodeShape::Seq(one), NodeShape::Seq(other)) => one.eq(other),
            (NodeShape::Map(one), NodeShape::Map(other)) => one.eq(other),
            (one, other) => discriminant(&one) == discriminant(&other),
        }
    }
}

/// Shows only the structure, because strings may be secrets.
impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape() {
            NodeShape::Seq(items) => f.debug_list().entries(items).finish(),
            NodeShape::Map(entries) => f.debug_map().entries(entries).finish(),
            _ => f.write_str(&self.describe()),
        }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.root(), f)
    }
}

/// The items of a list.
#[derive(Clone)]
pub(crate) struct NodeItems<'a> {
    tape: &'a Tape,
    next: u32,
    end: u32,
}

impl<'a> Iterator for NodeItems<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        if self.next >= self.end {
            return None;
        }
        let node = self.tape.node(self.next);
        self.next += node.item().length();
        Some(node)
    }
}

/// The entries of a mapping, without those that were removed.
#[derive(Clone)]
pub(crate) struct NodeEntries<'a> {
    tape: &'a Tape,
    next: u32,
    end: u32,
}

impl<'a> Iterator for NodeEntries<'a> {
    type Item = (&'a str, Node<'a>);

    fn next(&mut self) -> Option<(&'a str, Node<'a>)> {
        while self.next < self.end {
            let key = self.tape.item(self.next);
            let node = self.tape.node(self.next + 1);
            self.next += 1 + node.item().length();
            if let TapeItem::String { start, bytes } = key {
                return Some((self.tape.text(start, bytes), node));
            }
        }
        None
    }
}
