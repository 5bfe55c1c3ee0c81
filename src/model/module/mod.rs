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

pub(crate) mod admission;
pub(crate) mod agent_patterns;
pub(crate) mod backend;
pub(crate) mod circuit_breaker;
pub(crate) mod compression;
pub(crate) mod headers;
pub(crate) mod ip_restriction;
pub(crate) mod jwt_validation;
mod macros;
pub(crate) mod mutual_tls;
pub(crate) mod oauth;
pub(crate) mod oidc;
pub(crate) mod policies;
mod prelude;
pub(crate) mod saml;
mod session_fields;
pub(crate) mod slot;
pub(crate) mod switch;
#[cfg(test)]
#[allow(unreachable_pub)] // The macros write `pub` for the modules and hosts of the library.
pub(crate) mod tests;
pub(crate) mod tls_termination;
pub(crate) mod traits;
pub(crate) mod user_agent_filter;
pub(crate) mod webhook_verification;
pub(crate) mod websocket_tcp_converter;

pub(crate) use self::macros::slots;
pub(crate) use self::slot::Slot;
pub(crate) use self::traits::{AnyModule, Module, SharedModule};
