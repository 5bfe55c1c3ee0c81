//! Reads documents in any format of serde.

use std::{cell::Cell, fmt};

use serde::de::{self, DeserializeSeed};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

use super::tape::{Tape, TapeItem};
use crate::background::yield_to_requests;

/// As many bytes of a text count as one value more.
pub(crate) const BYTES_OF_A_VALUE: usize = 16;

/// The number of values that may still be read (D48). YAML aliases repeat their value, so a small text can expand to
/// very many values.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// None once reading stopped at the limit.
    left: Cell<Option<usize>>,
}

impl Allowance {
    /// Creates an allowance of values, including keys and collections.
    pub(crate) fn new(values: usize) -> Self {
        Self { left: Cell::new(Some(values)) }
    }

    /// Whether reading stopped at the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.left.get().is_none()
    }

    fn take(&self, values: usize) -> bool {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(values)));
        !self.is_exceeded()
    }
}

impl<'de> Deserialize<'de> for Tape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TapeSeed(&Allowance::new(usize::MAX)).deserialize(deserializer)
    }
}

/// Reads a [`Tape`] within the allowance.
#[derive(Clone, Copy)]
pub(crate) struct TapeSeed<'a>(pub &'a Allowance);

impl<'de> DeserializeSeed<'de> for TapeSeed<'_> {
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
    fn reborrow(&mut self) -> TapeReader<'_> {
        TapeReader { tape: &mut *self.tape, allowance: self.allowance }
    }

    /// Turns the value at a position into the text of a key.
    fn make_key<E: de::Error>(&mut self, at: u32) -> Result<(), E> {
        let node = self.tape.node(at);
        let text = match node.item() {
            TapeItem::String { .. } => return Ok(()),
            TapeItem::Number(index) => self.tape.numbers.get(index as usize).map(Number::to_string).unwrap_or_default(),
            TapeItem::Bool(value) => value.to_string(),
            TapeItem::Null | TapeItem::Removed => "null".to_owned(),
            TapeItem::NotFinite | TapeItem::LongInteger => {
                return Err(E::custom("a key must be a string, not a number"));
            }
            TapeItem::Seq(_) | TapeItem::Map(_) | TapeItem::Tagged => {
                return Err(E::custom(format!("a key must be a string, not {}", node.describe())));
            }
        };
        let key = self.tape.store_text(&text).ok_or_else(too_large::<E>)?;
        self.tape.replace(at, key);
        Ok(())
    }
}

fn too_large<E: de::Error>() -> E {
    E::custom("the document is larger than 4 GiB")
}

impl<'de> DeserializeSeed<'de> for TapeReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.allowance.take(1) {
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
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.tape.add(TapeItem::Null).ok_or_else(too_large)
    }
    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.tape.add(TapeItem::Null).ok_or_else(too_large)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.tape.add(TapeItem::Bool(value)).ok_or_else(too_large)
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.tape.add_number(value.into()).ok_or_else(too_large)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.tape.add_number(value.into()).ok_or_else(too_large)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        let added = match Number::from_f64(value) {
            Some(number) => self.tape.add_number(number),
            None => self.tape.add_fault(TapeItem::NotFinite),
        };
        added.ok_or_else(too_large)
    }
    // The reader of YAML passes only integers that do not fit in 64 bits.
    fn visit_i128<E: de::Error>(self, _: i128) -> Result<(), E> {
        self.tape.add_fault(TapeItem::LongInteger).ok_or_else(too_large)
    }
    fn visit_u128<E: de::Error>(self, _: u128) -> Result<(), E> {
        self.tape.add_fault(TapeItem::LongInteger).ok_or_else(too_large)
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        // Aliases can repeat a long text as well as a long list.
        if !self.allowance.take(value.len() / BYTES_OF_A_VALUE) {
            return Err(E::custom("aliases expand to too much text"));
        }
        let text = self.tape.store_text(value).ok_or_else(too_large::<E>)?;
        self.tape.add(text).ok_or_else(too_large)
    }
    fn visit_seq<A: de::SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let at = self.tape.open().ok_or_else(too_large::<A::Error>)?;
        while seq.next_element_seed(self.reborrow())?.is_some() {}
        self.tape.close_seq(at).ok_or_else(too_large)
    }
    fn visit_map<A: de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        yield_to_requests();
        let at = self.tape.open().ok_or_else(too_large::<A::Error>)?;
        loop {
            let key = self.tape.next_position().ok_or_else(too_large::<A::Error>)?;
            if map.next_key_seed(self.reborrow())?.is_none() {
                break;
            }
            map.next_value_seed(self.reborrow())?;
            self.make_key::<A::Error>(key)?;
        }
        self.tape.close_map(at).ok_or_else(too_large)
    }
    fn visit_enum<A: de::EnumAccess<'de>>(self, data: A) -> Result<(), A::Error> {
        let (de::IgnoredAny, value) = data.variant()?;
        de::VariantAccess::newtype_variant::<de::IgnoredAny>(value)?;
        self.tape.add(TapeItem::Tagged).ok_or_else(too_large)
    }
}
