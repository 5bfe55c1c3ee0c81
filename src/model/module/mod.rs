//! Traffic modules: one file per module, and the slots of the resources that host them.
//!
//! An edge or a route does to its traffic what its modules say, such as compressing responses. A module is configured,
//! replaced and deleted as a whole, is declared with `module!`, and does not depend on its host:
//!
//! ```text
//! module! { pub struct Compression {} }
//! impl Module for Compression { const SLOT: &'static str = "compression"; … }
//! ```
//!
//! A host lists its slots once, with `slots!`. The router, the OpenAPI document, the JSON Schemas, the diff and the
//! documentation visit that list, and never name a module.

use std::{any::Any, fmt::Debug, iter::once, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    base_urls::Site,
    decode::{Decoded, ValueSource, decode_field, decode_request},
    diagnostics::{Check, Faults, check},
    id::Id,
    json::{self, JsonError},
    key::Key,
    node::Node,
    reference::Reference,
    schema::Constraint,
    secrets::Secrets,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};

pub(crate) mod backend;
pub(crate) mod circuit_breaker;
pub(crate) mod compression;
pub(crate) mod headers;
pub(crate) mod ip_restriction;
pub(crate) mod jwt_validation;
pub(crate) mod mutual_tls;
pub(crate) mod oauth;
pub(crate) mod oidc;
pub(crate) mod policies;
mod prelude;
pub(crate) mod saml;
pub(crate) mod switch;
#[cfg(test)]
#[allow(unreachable_pub)] // The macros write `pub` for the modules and hosts of the library.
pub(crate) mod tests;
pub(crate) mod tls_termination;
pub(crate) mod user_agent_filter;
pub(crate) mod webhook_verification;
pub(crate) mod websocket_tcp_converter;

/// A configuration that can be disabled without removing it.
pub trait Toggle {
    /// Whether the module applies to traffic.
    fn enabled(&self) -> bool;
}

/// The response form of the module `M`.
#[allow(unreachable_pub)] // a bound of a public trait
pub trait ModuleView<M>: Serialize + JsonSchema {
    /// Creates the response form of a module on the host `host`.
    fn new(module: &M, host: &Key, site: &Site) -> Self;
}

impl<M: Module> ModuleView<M> for M {
    fn new(module: &M, _host: &Key, _site: &Site) -> Self {
        module.clone()
    }
}

/// A traffic module, which is configured, replaced and deleted as a whole.
pub trait Module:
    Serialize + DeserializeOwned + JsonSchema + Check + Toggle + PartialEq + Clone + Debug + Send + Sync + 'static
{
    /// The URL segment, manifest key and field name.
    const SLOT: &'static str;

    /// The fields without which the module is invalid; its schema requires them. `Check` reports them.
    const REQUIRED: &'static [&'static str] = &[];

    /// Whether the module is useful with its defaults, and does not change who has access. A PUT without a body
    /// configures such a module (D64).
    const EMPTY_IS_HARMLESS: bool = false;

    /// Whether the module works on decrypted traffic only, so that an edge that passes TLS through cannot apply it (D15).
    const NEEDS_TERMINATION: bool = true;

    /// Whether the module is a login for people; a route can have one.
    const IS_LOGIN: bool = false;

    /// The response form; the module itself if they are equal.
    type View: ModuleView<Self>;

    /// Returns the response form on the host `host`.
    fn view(&self, host: &Key, site: &Site) -> Self::View {
        Self::View::new(self, host, site)
    }

    /// Whether the module, while enabled, restricts access to the backend. A login does.
    fn restricts_access(&self) -> bool {
        Self::IS_LOGIN
    }

    /// Returns the lists that decide who has access, as their fields and lengths. A PATCH that empties one warns (D65).
    fn access_lists(&self) -> Vec<(String, usize)> {
        Vec::new()
    }

    /// Returns what the enabled module does with a request, as a trace shows it (D42). The stages decide the order of
    /// all modules.
    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Dispatch, StepEffect::Depends, "applies to the request")]
    }

    /// Returns an example body for the OpenAPI document. A test sends it to the API.
    fn example() -> Value {
        json!({"enabled": true})
    }

    /// Returns the constraints on the schema's definitions that the types do not express, beyond [`Module::REQUIRED`].
    fn constraints() -> Vec<Constraint> {
        Vec::new()
    }

    /// Visits every reference to a resource of this service.
    fn references(&self, _visit: &mut dyn FnMut(Reference)) {}

    /// Replaces the reference targets, in the order of [`Module::references`]. This turns the names in a manifest into
    /// IDs.
    fn set_references(&mut self, _targets: &[Id]) {}
}

/// A traffic module of any type.
pub trait AnyModule: Any + Debug + Send + Sync {
    /// Returns the slot's name.
    fn slot(&self) -> &'static str;
    /// Whether the module applies to traffic.
    fn enabled(&self) -> bool;
    /// Whether the module, while enabled, restricts access to the backend.
    fn restricts_access(&self) -> bool;
    /// Returns the lists that decide who has access, as their fields and lengths.
    fn access_lists(&self) -> Vec<(String, usize)>;
    /// Returns what the enabled module does with a request.
    fn steps(&self, request: &TracedRequest) -> Vec<Step>;
    /// Reports all faults.
    fn check(&self, faults: &mut Faults);
    /// Whether both are modules of the same type with equal values.
    fn same(&self, other: &dyn AnyModule) -> bool;
    /// Writes the write form.
    fn to_json(&self, secrets: Secrets<'_>) -> Result<Value, JsonError>;
    /// Writes the response form.
    fn view_json(&self, host: &Key, site: &Site, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError>;
    /// Visits every reference to a resource of this service.
    fn references(&self, visit: &mut dyn FnMut(Reference));
    /// Returns a copy with other reference targets, in the order of the references.
    fn with_references(&self, targets: &[Id]) -> Arc<dyn AnyModule>;
    /// Returns the module for a downcast.
    fn as_any(&self) -> &dyn Any;
    /// Returns the shared module for a downcast.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Module> AnyModule for M {
    fn slot(&self) -> &'static str {
        M::SLOT
    }
    fn enabled(&self) -> bool {
        Toggle::enabled(self)
    }
    fn restricts_access(&self) -> bool {
        Module::restricts_access(self)
    }
    fn access_lists(&self) -> Vec<(String, usize)> {
        Module::access_lists(self)
    }
    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        Module::steps(self, request)
    }
    fn check(&self, faults: &mut Faults) {
        Check::check(self, faults);
        check::tokens(faults, M::SLOT, self);
    }
    fn same(&self, other: &dyn AnyModule) -> bool {
        other.as_any().downcast_ref::<M>() == Some(self)
    }
    fn to_json(&self, secrets: Secrets<'_>) -> Result<Value, JsonError> {
        json::value(self, secrets)
    }
    fn view_json(&self, host: &Key, site: &Site, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
        json::bytes(&self.view(host, site), secrets)
    }
    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        Module::references(self, visit);
    }
    fn with_references(&self, targets: &[Id]) -> Arc<dyn AnyModule> {
        let mut changed = self.clone();
        changed.set_references(targets);
        Arc::new(changed)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A module that several hosts can share, such as those that take it from one module set.
pub(crate) type SharedModule = Arc<dyn AnyModule>;

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

/// Declares a module: a struct with the field `enabled`, which is true by default, and others with their defaults. `..login`
/// stands for the fields of every login.
macro_rules! module {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)*
            $(..login, $($(#[$own_meta:meta])* pub $own:ident: $own_type:ty $(= $own_default:expr)?,)*)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// Whether the module applies to traffic.
            pub enabled: bool,
            $($(#[$field_meta])* pub $field: $type,)*
            $(
                /// Whether HTTP OPTIONS requests pass without authentication, as CORS requires.
                pub options_passthrough: bool,
                /// The prefix of session cookie names; defaults to `edgewright.`.
                #[serde(deserialize_with = "crate::model::session_fields::cookie_prefix")]
                #[schemars(extend("pattern" = crate::model::session_fields::COOKIE_PREFIX_PATTERN))]
                pub cookie_prefix: String,
                /// Seconds of inactivity after which users must log in again.
                pub inactivity_timeout: u32,
                /// Maximum length of a session in seconds, after which users must log in again.
                pub maximum_duration: u32,
                $($(#[$own_meta])* pub $own: $own_type,)*
            )?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    enabled: true,
                    $($field: $crate::model::module::module!(@default $($default)?),)*
                    $(
                        options_passthrough: false,
                        cookie_prefix: $crate::model::session_fields::COOKIE_PREFIX.into(),
                        inactivity_timeout: 0,
                        maximum_duration: 0,
                        $($own: $crate::model::module::module!(@default $($own_default)?),)*
                    )?
                }
            }
        }

        impl $crate::model::module::Toggle for $name {
            fn enabled(&self) -> bool {
                self.enabled
            }
        }
    };
    (@default) => {
        Default::default()
    };
    (@default $value:expr) => {
        $value
    };
}
pub(crate) use module;

/// Declares a host: its plain fields, then one line per slot. Generates the Spec with a typed optional field per slot,
/// a struct of the slots' Views, and the list of [`Slot`]s, but no behaviour.
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
            $($(#[$slot_meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $slot: Option<std::sync::Arc<$module>>,)*
        }

        $(#[$views_meta])*
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        pub(crate) struct $views {
            $($(#[$slot_meta])* pub $slot: Option<<$module as $crate::model::module::Module>::View>,)*
        }

        impl $host {
            /// The module slots of this kind.
            pub const SLOTS: &'static [$crate::model::module::Slot] = &[
                $($crate::model::module::Slot::new::<$module>(
                    |host| Some(host.downcast_ref::<$host>()?.$slot.as_deref()?),
                    |host| Some(host.downcast_ref::<$host>()?.$slot.clone()?),
                    |host, module| {
                        if let Some(host) = host.downcast_mut::<$host>() {
                            host.$slot = module.and_then(|module| module.into_any().downcast().ok());
                        }
                    },
                ),)*
            ];

            /// Returns the response forms of the modules; empty slots are null.
            pub(crate) fn module_views(
                &self,
                host: &$crate::model::key::Key,
                site: &$crate::model::base_urls::Site,
            ) -> $views {
                use $crate::model::module::Module as _;
                $views { $($slot: self.$slot.as_ref().map(|module| module.view(host, site)),)* }
            }
        }
    };
}
pub(crate) use slots;
