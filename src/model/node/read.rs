//! Reads documents in any format of serde.

use std::{cell::Cell, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed},
};
use serde_json::Number;

use super::{
    faults::MOST_KEY_BYTES,
    merge::MERGE_KEY,
    tape::{NodeEntries, Tape, TapeContent, TapeItem},
};

/// As many bytes of a text count as one value more.
pub(crate) const BYTES_OF_A_VALUE: usize = 16;

/// The keys of a mapping that are compared in pairs, which is faster than hashing them.
const FEW_KEYS: usize = 16;

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

impl<'de> Deserialize<'de> for Tape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Counted(&Allowance::new(usize::MAX)).deserialize(deserializer)
    }
}

/// Reads a [`Tape`] within the allowance.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a>(pub &'a Allowance);

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Tape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tape, D::Error> {
        let mut tape = Tape::default();
        TapeReader { tape: &mut tape, allowance: self.0 }.deserialize(deserializer)?;
        Ok(tape)
    }
}

/// Appends one value to a tape.
struct TapeReader<'t> {
    tape: &'t mut Tape,
    allowance: &'t Allowance,
}

impl TapeReader<'_> {
    /// Returns a reader for the next value.
    fn again(&mut self) -> TapeReader<'_> {
        TapeReader { tape: &mut *self.tape, allowance: self.allowance }
    }

    fn add<E: de::Error>(&mut self, content: TapeContent) -> Result<(), E> {
        position::<E>(self.tape.items.len() + 1)?;
        self.tape.items.push(TapeItem::of(content));
        Ok(())
    }

    fn add_number<E: de::Error>(&mut self, number: Number) -> Result<(), E> {
        let index = position::<E>(self.tape.numbers.len())?;
        self.tape.numbers.push(number);
        self.add(TapeContent::Number(index))
    }

    /// Adds a number that JSON cannot represent.
    fn add_fault<E: de::Error>(&mut self, content: TapeContent) -> Result<(), E> {
        self.tape.has_faults = true;
        self.add(content)
    }

    fn text<E: de::Error>(&mut self, text: &str) -> Result<TapeContent, E> {
        let end = position::<E>(self.tape.texts.len() + text.len())?;
        let bytes = position::<E>(text.len())?;
        self.tape.texts.push_str(text);
        Ok(TapeContent::String { start: end - bytes, bytes })
    }

    /// Starts a collection and returns its position.
    fn open<E: de::Error>(&mut self) -> Result<u32, E> {
        let at = position::<E>(self.tape.items.len())?;
        // The length is known only at the end.
        self.add::<E>(TapeContent::Null)?;
        Ok(at)
    }

    /// Ends the collection at a position.
    fn close<E: de::Error>(&mut self, at: u32, content: fn(u32) -> TapeContent) -> Result<(), E> {
        let end = position::<E>(self.tape.items.len())?;
        self.replace(at, content(end - at));
        Ok(())
    }

    fn replace(&mut self, at: u32, content: TapeContent) {
        if let Some(item) = self.tape.items.get_mut(at as usize) {
            item.content = content;
        }
    }

    /// Turns the value at a position into the text of a key.
    fn make_key<E: de::Error>(&mut self, at: u32) -> Result<(), E> {
        let node = self.tape.node(at);
        let text = match node.item().content {
            TapeContent::String { .. } => return Ok(()),
            TapeContent::Number(index) => {
                self.tape.numbers.get(index as usize).map(Number::to_string).unwrap_or_default()
            }
            TapeContent::Bool(value) => value.to_string(),
            TapeContent::Null => "null".to_owned(),
            TapeContent::NotFinite | TapeContent::LongInteger => {
                return Err(E::custom("a key must be a string, not a number"));
            }
            TapeContent::Seq(_) | TapeContent::Map(_) | TapeContent::Tagged => {
                return Err(E::custom(format!("a key must be a string, not {}", node.describe())));
            }
        };
        let key = self.text::<E>(&text)?;
        self.replace(at, key);
        Ok(())
    }

    /// Notes what the keys of the mapping at a position require, so that most documents need no further visit.
    fn note_keys(&mut self, at: u32) {
        let Some(entries) = self.tape.node(at).entries() else { return };
        let (has_faults, has_merge_keys) = check_keys(entries);
        self.tape.has_faults |= has_faults;
        self.tape.has_merge_keys |= has_merge_keys;
    }
}

/// The form in which a tape stores positions and lengths. The limits of files and request bodies (D39, D48) are far
/// below this one, which protects readers without such limits.
fn position<E: de::Error>(count: usize) -> Result<u32, E> {
    u32::try_from(count).map_err(|_| E::custom("the document is larger than 4 GiB"))
}

/// Whether a key is a duplicate or too long, and whether one is a merge key.
fn check_keys(entries: NodeEntries<'_>) -> (bool, bool) {
    let (mut has_faults, mut has_merge_keys) = (false, false);
    let mut few = [""; FEW_KEYS];
    let mut many: HashSet<&str> = HashSet::new();
    for (count, (key, _)) in entries.enumerate() {
        let is_new = match few.get(..count) {
            Some(earlier) if count < FEW_KEYS => !earlier.contains(&key),
            _ => {
                if many.is_empty() {
                    many.extend(few);
                }
                many.insert(key)
            }
        };
        if let Some(slot) = few.get_mut(count) {
            *slot = key;
        }
        has_faults |= !is_new || key.len() > MOST_KEY_BYTES;
        has_merge_keys |= key == MERGE_KEY;
    }
    (has_faults, has_merge_keys)
}

impl<'de> DeserializeSeed<'de> for TapeReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.allowance.take() {
            return Err(de::Error::custom("aliases expand to too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for TapeReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E: de::Error>(mut self) -> Result<(), E> {
        self.add(TapeContent::Null)
    }
    fn visit_none<E: de::Error>(mut self) -> Result<(), E> {
        self.add(TapeContent::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E: de::Error>(mut self, value: bool) -> Result<(), E> {
        self.add(TapeContent::Bool(value))
    }
    fn visit_i64<E: de::Error>(mut self, value: i64) -> Result<(), E> {
        self.add_number(value.into())
    }
    fn visit_u64<E: de::Error>(mut self, value: u64) -> Result<(), E> {
        self.add_number(value.into())
    }
    fn visit_f64<E: de::Error>(mut self, value: f64) -> Result<(), E> {
        match Number::from_f64(value) {
            Some(number) => self.add_number(number),
            None => self.add_fault(TapeContent::NotFinite),
        }
    }
    // The reader of YAML passes only integers that do not fit in 64 bits.
    fn visit_i128<E: de::Error>(mut self, _: i128) -> Result<(), E> {
        self.add_fault(TapeContent::LongInteger)
    }
    fn visit_u128<E: de::Error>(mut self, _: u128) -> Result<(), E> {
        self.add_fault(TapeContent::LongInteger)
    }
    fn visit_str<E: de::Error>(mut self, value: &str) -> Result<(), E> {
        if !self.allowance.take_text(value) {
            return Err(E::custom("aliases expand to too much text"));
        }
        let text = self.text::<E>(value)?;
        self.add(text)
    }
    fn visit_seq<A: de::SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let at = self.open::<A::Error>()?;
        while seq.next_element_seed(self.again())?.is_some() {}
        self.close(at, TapeContent::Seq)
    }
    fn visit_map<A: de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let at = self.open::<A::Error>()?;
        loop {
            let key = position::<A::Error>(self.tape.items.len())?;
            if map.next_key_seed(self.again())?.is_none() {
                break;
            }
            map.next_value_seed(self.again())?;
            self.make_key::<A::Error>(key)?;
        }
        self.close::<A::Error>(at, TapeContent::Map)?;
        self.note_keys(at);
        Ok(())
    }
    fn visit_enum<A: de::EnumAccess<'de>>(mut self, data: A) -> Result<(), A::Error> {
        let (de::IgnoredAny, value) = data.variant()?;
        de::VariantAccess::newtype_variant::<de::IgnoredAny>(value)?;
        self.add(TapeContent::Tagged)
    }
}
