//! The domain model: resources, operations on them, and validation. Pure: no IO, no clock, no randomness.

pub(crate) mod base_urls;
pub(crate) mod build;
pub(crate) mod decode;
pub(crate) mod desired;
pub(crate) mod diagnostics;
pub(crate) mod drift;
pub(crate) mod external_id;
pub(crate) mod host_pattern;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod key_scope;
pub(crate) mod kind;
pub(crate) mod lazy_spec;
pub(crate) mod module;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod reference;
pub(crate) mod resource;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod session_fields;
pub(crate) mod snapshot;
pub(crate) mod traffic;
pub(crate) mod view;

pub use kind::Kind;
