//! A serializer around another one that writes secrets, URLs and long texts as [`Secrets`] says. Every other serializer masks
//! secrets, so the mode travels with the serialization and not with the thread that runs it.

pub(crate) use std::fmt::Display;

use serde::{
    Serialize, Serializer,
    ser::{self, Error as _},
};

use crate::model::secrets::secret::{Exposed, SOURCED_SECRET, SOURCED_TEXT, Secrets};

/// A serializer that passes everything on, except secrets, passwords of URLs and long texts.
pub(super) struct Writer<'a, S> {
    inner: S,
    secrets: Secrets<'a>,
    within: Within,
}

/// The newtype whose content comes next.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Other,
    Secret,
    Text,
}

impl<'a, S: Serializer> Writer<'a, S> {
    pub(super) fn new(inner: S, secrets: Secrets<'a>) -> Self {
        Self { inner, secrets, within: Within::Other }
    }
}

/// A value inside another one. It gives the inner serializer's own serializers the same [`Writer`].
struct Nested<'a, T: ?Sized> {
    value: &'a T,
    secrets: Secrets<'a>,
}

impl<T: Serialize + ?Sized> Serialize for Nested<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Writer::new(serializer, self.secrets))
    }
}

macro_rules! forward {
    ($($method:ident($type:ty);)*) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )*};
}

impl<'a, S: Serializer> Serializer for Writer<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Compound<'a, S::SerializeSeq>;
    type SerializeTuple = Compound<'a, S::SerializeTuple>;
    type SerializeTupleStruct = Compound<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Compound<'a, S::SerializeTupleVariant>;
    type SerializeMap = Compound<'a, S::SerializeMap>;
    type SerializeStruct = Compound<'a, S::SerializeStruct>;
    type SerializeStructVariant = Compound<'a, S::SerializeStructVariant>;

    forward! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_bytes(&[u8]);
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        match self.within {
            Within::Other => self.inner.serialize_str(&self.secrets.reviewed(text)),
            Within::Text => self.inner.serialize_str(&self.secrets.abridged(text)),
            // serde buffers the content of some enums with a serializer of its own, which masks it.
            Within::Secret => Err(S::Error::custom("a secret was masked before it was written")),
        }
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        match (self.within, self.secrets) {
            (Within::Secret, Secrets::Revealed) => self.inner.collect_str(&Exposed(value)),
            (Within::Secret, Secrets::Located(places)) => {
                let from = places.written();
                let written = self.inner.collect_str(&Exposed(value))?;
                places.add(from);
                Ok(written)
            }
            (Within::Secret, secrets) => self.inner.serialize_str(&secrets.hidden(&Exposed(value).to_string())),
            _ => self.inner.collect_str(value),
        }
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        let within = match name {
            SOURCED_SECRET if !matches!(self.secrets, Secrets::Masked) => Within::Secret,
            SOURCED_TEXT => Within::Text,
            _ => return self.inner.serialize_newtype_struct(name, &Nested { value, secrets: self.secrets }),
        };
        value.serialize(Writer { within, ..self })
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&Nested { value, secrets: self.secrets })
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(self, name: &'static str, index: u32, variant: &'static str) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_variant(name, index, variant, &Nested { value, secrets: self.secrets })
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(Compound { inner: self.inner.serialize_seq(len)?, secrets: self.secrets })
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(Compound { inner: self.inner.serialize_tuple(len)?, secrets: self.secrets })
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        Ok(Compound { inner: self.inner.serialize_tuple_struct(name, len)?, secrets: self.secrets })
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let inner = self.inner.serialize_tuple_variant(name, index, variant, len)?;
        Ok(Compound { inner, secrets: self.secrets })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(Compound { inner: self.inner.serialize_map(len)?, secrets: self.secrets })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        Ok(Compound { inner: self.inner.serialize_struct(name, len)?, secrets: self.secrets })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let inner = self.inner.serialize_struct_variant(name, index, variant, len)?;
        Ok(Compound { inner, secrets: self.secrets })
    }
}

/// A collection of the inner serializer, whose values are [`Nested`].
pub(super) struct Compound<'a, C> {
    inner: C,
    secrets: Secrets<'a>,
}

macro_rules! elements {
    ($($kind:ident, $method:ident;)*) => {$(
        impl<C: ser::$kind> ser::$kind for Compound<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                self.inner.$method(&Nested { value, secrets: self.secrets })
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

elements! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
}

macro_rules! fields {
    ($($kind:ident;)*) => {$(
        impl<C: ser::$kind> ser::$kind for Compound<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), C::Error> {
                self.inner.serialize_field(name, &Nested { value, secrets: self.secrets })
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), C::Error> {
                self.inner.skip_field(name)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

fields! {
    SerializeStruct;
    SerializeStructVariant;
}

impl<C: ser::SerializeMap> ser::SerializeMap for Compound<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inner.serialize_key(&Nested { value: key, secrets: self.secrets })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.inner.serialize_value(&Nested { value, secrets: self.secrets })
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), C::Error> {
        let key = Nested { value: key, secrets: self.secrets };
        self.inner.serialize_entry(&key, &Nested { value, secrets: self.secrets })
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}
