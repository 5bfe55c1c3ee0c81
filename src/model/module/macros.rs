//! The declarations of modules and of their hosts.

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
                #[serde(deserialize_with = "crate::model::module::session_fields::cookie_prefix")]
                #[schemars(extend("pattern" = crate::model::module::session_fields::COOKIE_PREFIX_PATTERN))]
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
                    $($field: $crate::model::module::macros::module!(@default $($default)?),)*
                    $(
                        options_passthrough: false,
                        cookie_prefix: $crate::model::module::session_fields::COOKIE_PREFIX.into(),
                        inactivity_timeout: 0,
                        maximum_duration: 0,
                        $($own: $crate::model::module::macros::module!(@default $($own_default)?),)*
                    )?
                }
            }
        }

        impl $crate::model::module::traits::Toggle for $name {
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
/// a struct of the slots' Views, and the list of [`Slot`](super::slot::Slot)s, but no behaviour.
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
            $($(#[$slot_meta])* pub $slot: Option<<$module as $crate::model::module::traits::Module>::View>,)*
        }

        impl $host {
            /// The module slots of this kind.
            pub const SLOTS: &'static [$crate::model::module::slot::Slot] = &[
                $($crate::model::module::slot::Slot::new::<$module>(
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
                base_urls: &$crate::model::base_urls::BaseUrls,
            ) -> $views {
                use $crate::model::module::traits::Module as _;
                $views { $($slot: self.$slot.as_ref().map(|module| module.view(host, base_urls)),)* }
            }
        }
    };
}
pub(crate) use slots;
