//! Slots: the fields of a host for its modules, as all other modules visit them.

use std::{any::Any, fmt::Debug, iter::once, sync::Arc};

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::traits::{AnyModule, Module, SharedModule};
use crate::model::decode::{Decoded, ValueSource, decode_field, decode_request};
use crate::model::schema::Constraint;
use crate::syntax::yaml::Node;

/// Makes a decoded module one of any type.
fn erase<M: Module>((module, faults): Decoded<M>) -> Decoded<SharedModule> {
    (module.map(|module| Arc::new(module) as SharedModule), faults)
}

/// A host's field for one module.
pub struct Slot {
    /// The URL segment, manifest key and field name.
    pub name: &'static str,
    /// The fields without which the module is invalid.
    pub(crate) required: &'static [&'static str],
    /// Whether a PUT without a body configures the module with its defaults.
    pub(crate) empty_is_harmless: bool,
    /// Whether the module works on decrypted traffic only.
    pub needs_termination: bool,
    /// Whether the module is a login for people.
    pub is_login: bool,
    /// The settings of the module in other systems that contain the ID of its host.
    pub(crate) settings_with_id: Option<&'static str>,
    /// Returns an example body.
    pub(crate) example: fn() -> Value,
    /// Returns the constraints on the definitions of the write form's schema.
    pub(crate) constraints: fn() -> Vec<Constraint>,
    /// Decodes the module of a manifest.
    pub(crate) decode: fn(Node<'_>, Option<&dyn ValueSource>) -> Decoded<SharedModule>,
    /// Decodes the body of a PUT.
    pub(crate) decode_request: fn(Node<'_>) -> Decoded<SharedModule>,
    /// The schema of the write form.
    pub(crate) spec_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the response form.
    pub(crate) view_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Returns the module in this slot of a host.
    pub(crate) get: fn(&dyn Any) -> Option<&dyn AnyModule>,
    /// Returns the shared module in this slot of a host.
    pub(crate) share: fn(&dyn Any) -> Option<SharedModule>,
    /// Sets or clears the module in this slot of a host.
    pub(crate) set: fn(&mut dyn Any, Option<SharedModule>),
}

impl Slot {
    /// Creates the slot of a module type.
    pub(crate) const fn new<M: Module>(
        get: fn(&dyn Any) -> Option<&dyn AnyModule>,
        share: fn(&dyn Any) -> Option<SharedModule>,
        set: fn(&mut dyn Any, Option<SharedModule>),
    ) -> Slot {
        Slot {
            name: M::SLOT,
            required: M::REQUIRED,
            empty_is_harmless: M::EMPTY_IS_HARMLESS,
            needs_termination: M::NEEDS_TERMINATION,
            is_login: M::IS_LOGIN,
            settings_with_id: M::SETTINGS_WITH_ID,
            example: M::example,
            constraints: || once(Constraint::required(M::schema_name(), M::REQUIRED)).chain(M::constraints()).collect(),
            decode: |node, sources| erase(decode_field::<M>(node, M::SLOT, sources)),
            decode_request: |node| erase(decode_request::<M>(node, &[], &[])),
            spec_schema: |generator| generator.subschema_for::<M>(),
            view_schema: |generator| generator.subschema_for::<M::View>(),
            get,
            share,
            set,
        }
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
