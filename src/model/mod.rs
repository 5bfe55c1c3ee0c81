//! The domain model: resources, operations on them, and validation. Pure: no IO, no clock, no randomness.

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod code;
pub(crate) mod decode;
pub(crate) mod desired;
pub(crate) mod diagnostic;
pub(crate) mod digest_key;
pub(crate) mod drift;
pub(crate) mod fault;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod key_scope;
pub(crate) mod kind;
pub(crate) mod lazy_spec;
pub(crate) mod long_integer;
pub(crate) mod module;
pub(crate) mod near;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod places;
pub(crate) mod redact;
pub(crate) mod reference;
pub(crate) mod resource;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod secret;
pub(crate) mod session;
pub(crate) mod site;
pub(crate) mod snapshot;
pub(crate) mod traffic;
pub(crate) mod unbounded;
pub(crate) mod view;

pub use kind::Kind;
