//! Traffic modules: one file each, and the slots that hosts hold them in.
//!
//! A module knows nothing of who hosts it. A host lists its slots once, with `slots!`; the router, the OpenAPI
//! document, the JSON Schemas, the diff and the documentation are visitors of that list.

use std::{any::Any, fmt::Debug, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    decode::{ValueSource, decode},
    fault::{Check, Faults},
    id::Id,
    json::{self, JsonError},
    key::Key,
    node::Node,
    resource::{Decoded, Reference, ViewContext},
};

pub mod backend;
pub mod circuit_breaker;
pub mod compression;
pub mod ip_restriction;
pub mod jwt_validation;
pub mod mutual_tls;
pub mod oauth;
pub mod oidc;
pub mod policies;
pub mod request_headers;
pub mod response_headers;
pub mod saml;
pub mod tls_termination;
pub mod user_agent_filter;
pub mod webhook_verification;
pub mod websocket_tcp_converter;

/// A traffic module: it is configured, replaced and deleted as a whole.
pub trait Module:
    Serialize + DeserializeOwned + JsonSchema + Check + PartialEq + Clone + Debug + Send + Sync + 'static
{
    /// URL segment, manifest key and field name.
    const SLOT: &'static str;

    /// The response form; the module itself where the two agree.
    type View: Serialize + JsonSchema;

    /// The response form on the host `host`.
    fn view(&self, host: &Key, cx: &ViewContext<'_>) -> Self::View;

    /// Names every resource of this service that the module points at.
    fn references(&self, _visit: &mut dyn FnMut(Reference)) {}

    /// Exchanges what the references are written with, in the order in which [`Module::references`] names them: a
    /// manifest writes names, and they become identifiers.
    fn set_references(&mut self, _targets: &[Id]) {}
}

/// A [`Module`] of any type.
pub trait AnyModule: Any + Debug + Send + Sync {
    /// Its slot's name.
    fn slot(&self) -> &'static str;
    /// Reports what is wrong with it.
    fn check(&self, faults: &mut Faults);
    /// Whether both are the same module with the same values.
    fn same(&self, other: &dyn AnyModule) -> bool;
    /// The write form; secrets are written as the current thread's mode has it.
    fn to_json(&self) -> Result<Value, JsonError>;
    /// The response form as bytes of JSON.
    fn view_json(&self, host: &Key, cx: &ViewContext<'_>) -> Result<Vec<u8>, JsonError>;
    /// Names every resource of this service that it points at.
    fn references(&self, visit: &mut dyn FnMut(Reference));
    /// The same module with other targets of its references, in their order.
    fn with_references(&self, targets: &[Id]) -> Arc<dyn AnyModule>;
    /// A copy to keep.
    fn to_shared(&self) -> Arc<dyn AnyModule>;
    /// For a downcast.
    fn as_any(&self) -> &dyn Any;
}

impl<M: Module> AnyModule for M {
    fn slot(&self) -> &'static str {
        M::SLOT
    }
    fn check(&self, faults: &mut Faults) {
        Check::check(self, faults);
    }
    fn same(&self, other: &dyn AnyModule) -> bool {
        other.as_any().downcast_ref::<M>() == Some(self)
    }
    fn to_json(&self) -> Result<Value, JsonError> {
        json::value(self)
    }
    fn view_json(&self, host: &Key, cx: &ViewContext<'_>) -> Result<Vec<u8>, JsonError> {
        json::bytes(&self.view(host, cx))
    }
    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        Module::references(self, visit);
    }
    fn with_references(&self, targets: &[Id]) -> Arc<dyn AnyModule> {
        let mut changed = self.clone();
        changed.set_references(targets);
        Arc::new(changed)
    }
    fn to_shared(&self) -> Arc<dyn AnyModule> {
        Arc::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Decodes a module from a request body or manifest.
pub type DecodeModule = fn(&Node, Option<&dyn ValueSource>) -> Decoded<Arc<dyn AnyModule>>;

/// A host's place for one module.
pub struct Slot {
    /// URL segment, manifest key and field name.
    pub name: &'static str,
    /// Decodes a request body.
    pub decode: DecodeModule,
    /// The schema of the write form.
    pub spec_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the response form.
    pub view_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The module in this slot of a host.
    pub get: fn(&dyn Any) -> Option<&dyn AnyModule>,
    /// Puts a module into this slot of a host, or empties it.
    pub set: fn(&mut dyn Any, Option<&dyn AnyModule>),
}

impl Slot {
    /// The slot of a module type.
    pub const fn of<M: Module>(
        get: fn(&dyn Any) -> Option<&dyn AnyModule>,
        set: fn(&mut dyn Any, Option<&dyn AnyModule>),
    ) -> Slot {
        Slot {
            name: M::SLOT,
            decode: |node, sources| {
                let (module, faults) = decode::<M>(node, sources);
                (module.map(|module| Arc::new(module) as Arc<dyn AnyModule>), faults)
            },
            spec_schema: |generator| generator.subschema_for::<M>(),
            view_schema: |generator| generator.subschema_for::<M::View>(),
            get,
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

/// Declares a host: its plain fields, then its slots, one line each. It writes the Spec with a typed optional field a
/// slot, the struct of the slots' Views, and the list of [`Slot`]s; it emits no behaviour.
macro_rules! slots {
    (
        $(#[$meta:meta])*
        pub struct $host:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
        }
        $(#[$views_meta:meta])*
        pub struct $views:ident {
            $($(#[$slot_meta:meta])* $slot:ident: $module:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $host {
            $($(#[$field_meta])* pub $field: $type,)*
            $($(#[$slot_meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $slot: Option<$module>,)*
        }

        $(#[$views_meta])*
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        pub struct $views {
            $($(#[$slot_meta])* pub $slot: Option<<$module as $crate::model::module::Module>::View>,)*
        }

        impl $host {
            /// The modules that this kind can hold.
            pub const SLOTS: &'static [$crate::model::module::Slot] = &[
                $($crate::model::module::Slot::of::<$module>(
                    |host| Some(host.downcast_ref::<$host>()?.$slot.as_ref()?),
                    |host, module| {
                        if let Some(host) = host.downcast_mut::<$host>() {
                            host.$slot = module.and_then(|module| module.as_any().downcast_ref()).cloned();
                        }
                    },
                ),)*
            ];

            /// The response forms of the modules; null where a slot is empty.
            pub fn module_views(
                &self,
                host: &$crate::model::key::Key,
                cx: &$crate::model::resource::ViewContext<'_>,
            ) -> $views {
                use $crate::model::module::Module as _;
                $views { $($slot: self.$slot.as_ref().map(|module| module.view(host, cx)),)* }
            }
        }
    };
}
pub(crate) use slots;
