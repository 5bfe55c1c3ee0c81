//! The description of a kind, from which its endpoints, schemas and decoders follow.

use std::{ops::Deref, sync::Arc};

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::any_resource::AnyResource;
use super::endpoint_offers::Offers;
use crate::model::decode::{Decoded, ValueSource};
use crate::model::kind::{Kind, KindFacts};
use crate::model::module::Slot;
use crate::model::schema::Constraint;
use crate::syntax::yaml::Node;

pub(super) type SpecArc = Arc<dyn AnyResource>;
/// Decodes a spec from a manifest, ignoring the given fields that are known elsewhere.
pub(crate) type DecodeSpec = fn(Node<'_>, &[&str], Option<&dyn ValueSource>) -> Decoded<SpecArc>;

/// The fields of a PATCH next to which a blank means "not given" (D65).
pub(crate) enum BlankContext {
    /// Any other field.
    Anything,
    /// A blank in any of these.
    BlankOf(&'static [&'static str]),
}

/// The description of a kind. [`Kind::all`] lists all kinds.
pub struct KindInfo {
    /// The kind.
    pub kind: Kind,
    /// The names and addresses, which are also fields of the description.
    pub facts: KindFacts,
    /// The immutable fields: a change requires a new resource.
    pub fixed: &'static [&'static str],
    /// The fields without which a Spec is invalid; its schema requires them. `Check` reports them.
    pub required: &'static [&'static str],
    /// The fields that only manifests set: no request or response has them.
    pub(crate) hidden: &'static [&'static str],
    /// Further constraints on the definitions of its schema.
    pub(crate) constraints: fn() -> Vec<Constraint>,
    /// The fields that clients send empty when they mean "not given" (D6).
    pub(crate) blank_is_unset: &'static [&'static str],
    /// The other fields of which a blank in a PATCH may stand for nothing, because clients write it whatever they were
    /// given (D65).
    pub(crate) unmeant_blanks: &'static [(&'static str, BlankContext)],
    /// The endpoints.
    pub offers: Offers,
    /// The module slots.
    pub slots: &'static [Slot],
    /// Returns an example body that creates a resource.
    pub example: fn() -> Option<Value>,
    /// Returns an example body that changes a resource.
    pub patch_example: fn() -> Value,
    /// Returns an empty spec.
    pub(crate) empty: fn() -> SpecArc,
    /// Decodes a manifest's `spec`, ignoring the given fields that are known elsewhere.
    pub(crate) decode: DecodeSpec,
    /// Decodes the body of a POST or PATCH, ignoring the fields of the first list, and never suggesting those of the second.
    pub(crate) decode_request: fn(Node<'_>, &[&str], &[&str]) -> Decoded<SpecArc>,
    /// Decodes the spec of a stored record.
    pub(crate) restore: fn(&str) -> Result<SpecArc, serde_json::Error>,
    /// The schema of the write form.
    pub(crate) spec_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the response form.
    pub(crate) view_schema: fn(&mut SchemaGenerator) -> Schema,
}

impl KindInfo {
    /// The module slot with a name.
    pub fn slot(&self, name: &str) -> Option<&'static Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }
}

impl Deref for KindInfo {
    type Target = KindFacts;

    fn deref(&self) -> &KindFacts {
        &self.facts
    }
}
