//! The domain model: resources, operations on them, and validation. Pure: no IO, no clock, no randomness.

pub mod check;
pub mod code;
pub mod content;
pub mod decode;
pub mod desired;
pub mod diagnostic;
pub mod fault;
pub mod id;
pub mod json;
pub mod key;
pub mod kind;
pub mod module;
pub mod node;
pub mod operation;
pub mod redact;
pub mod reference;
pub mod resource;
pub mod rules;
pub mod schema;
pub mod secret;
pub mod session;
pub mod site;
pub mod snapshot;
pub mod traffic;
pub mod unbounded;

pub use kind::Kind;
