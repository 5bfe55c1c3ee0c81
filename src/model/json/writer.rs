//! A serializer around another one that writes secrets, URLs and long texts as [`Secrets`] says. Every other serializer masks
//! secrets, so the mode travels with the serialization and not with the thread that runs it.

use std::fmt::Display;

use serde::ser::{self, Error as _};
use serde::{Serialize, Serializer};

use crate::model::field_rule::{SOURCED_SECRET, SOURCED_TEXT};
use crate::model::secrets::Secrets;
use crate::model::secrets::secret::ExposedText;

/// A serializer that passes everything on, except secrets, passwords of URLs and long texts.
pub(super) struct Writer<'a, S> {
    inner: S,
    secrets: Secrets<'a>,
    rule: TextRule,
}

/// The newtype whose content comes next.
#[derive(Clone, Copy, PartialEq)]
enum TextRule {
    Other,
    Secret,
    Text,
}

impl<'a, S: Serializer> Writer<'a, S> {
    pub(super) fn new(inner: S, secrets: Secrets<'a>) -> Self {
        Self { inner, secrets, rule: TextRule::Other }
    }
}

/// A value inside another one. It gives the inner serializer's own serializers the same [`Writer`].
struct NestedValue<'a, T: ?Sized> {
    value: &'a T,
    secrets: Secrets<'a>,
}

impl<T: Serialize + ?Sized> Serialize for NestedValue<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Writer::new(serializer, self.secrets))
    }
}

/// Methods that pass plain values on.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.inner.$method($($argument),*)
        }
    )*};
}

/// Methods that start a collection, and its type.
macro_rules! compounds {
    ($($kind:ident: $method:ident($($argument:ident: $type:ty),*);)*) => {$(
        type $kind = Compound<'a, S::$kind>;

        fn $method(self, $($argument: $type),*) -> Result<Self::$kind, S::Error> {
            Ok(Compound { inner: self.inner.$method($($argument),*)?, secrets: self.secrets })
        }
    )*};
}

impl<'a, S: Serializer> Serializer for Writer<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    forward! {
        serialize_bool(value: bool); serialize_i8(value: i8); serialize_i16(value: i16); serialize_i32(value: i32);
        serialize_i64(value: i64); serialize_i128(value: i128); serialize_u8(value: u8); serialize_u16(value: u16);
        serialize_u32(value: u32); serialize_u64(value: u64); serialize_u128(value: u128); serialize_f32(value: f32);
        serialize_f64(value: f64); serialize_char(value: char); serialize_bytes(value: &[u8]); serialize_none();
        serialize_unit(); serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    compounds! {
        SerializeSeq: serialize_seq(length: Option<usize>);
        SerializeTuple: serialize_tuple(length: usize);
        SerializeTupleStruct: serialize_tuple_struct(name: &'static str, length: usize);
        SerializeTupleVariant: serialize_tuple_variant(name: &'static str, at: u32, variant: &'static str, length: usize);
        SerializeMap: serialize_map(length: Option<usize>);
        SerializeStruct: serialize_struct(name: &'static str, length: usize);
        SerializeStructVariant: serialize_struct_variant(name: &'static str, at: u32, variant: &'static str, length: usize);
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        match self.rule {
            TextRule::Other => self.inner.serialize_str(&self.secrets.reviewed(text)),
            TextRule::Text => self.inner.serialize_str(&self.secrets.abridged(text)),
            // serde buffers the content of some enums with a serializer of its own, which masks it.
            TextRule::Secret => Err(S::Error::custom("a secret was masked before it was written")),
        }
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        match (self.rule, self.secrets) {
            (TextRule::Secret, Secrets::Revealed) => self.inner.collect_str(&ExposedText(value)),
            (TextRule::Secret, Secrets::Located(places)) => {
                let from = places.written();
                let written = self.inner.collect_str(&ExposedText(value))?;
                places.add(from);
                Ok(written)
            }
            (TextRule::Secret, secrets) => self.inner.serialize_str(&secrets.hidden(&ExposedText(value).to_string())),
            _ => self.inner.collect_str(value),
        }
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        let rule = match name {
            SOURCED_SECRET if !matches!(self.secrets, Secrets::Masked) => TextRule::Secret,
            SOURCED_TEXT => TextRule::Text,
            _ => return self.inner.serialize_newtype_struct(name, &NestedValue { value, secrets: self.secrets }),
        };
        value.serialize(Writer { rule, ..self })
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&NestedValue { value, secrets: self.secrets })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_variant(name, index, variant, &NestedValue { value, secrets: self.secrets })
    }
}

/// A collection of the inner serializer, whose values are [`NestedValue`].
pub(super) struct Compound<'a, C> {
    inner: C,
    secrets: Secrets<'a>,
}

/// The values of a collection; those of a struct have names.
macro_rules! elements {
    ($($kind:ident: $method:ident($($name:ident)?);)*) => {$(
        impl<C: ser::$kind> ser::$kind for Compound<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), C::Error> {
                self.inner.$method($($name,)? &NestedValue { value, secrets: self.secrets })
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

elements! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(name);
    SerializeStructVariant: serialize_field(name);
}

impl<C: ser::SerializeMap> ser::SerializeMap for Compound<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inner.serialize_key(&NestedValue { value: key, secrets: self.secrets })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.inner.serialize_value(&NestedValue { value, secrets: self.secrets })
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}
