//! The domain model: what resources are, which of them are valid, and how operations change them.
//!
//! A manifest, a request body, a stored record and a plan are about the same resources, so each kind is one type, its Spec.
//! Everything goes the same way:
//!
//! ```text
//! text → node (untyped) → decode → Spec (kind, module) → Operation → Snapshot
//! ```
//!
//! Faults of every step are collected with the paths of their fields (diagnostics). Responses and records are written by
//! json, which alone can reveal what secrets hides.
//!
//! The model never does IO, reads no clock and no randomness: the same input gives the same state everywhere.

pub(crate) mod any_resource;
pub(crate) mod author;
pub(crate) mod base_urls;
pub(crate) mod build;
pub(crate) mod claim;
pub(crate) mod decode;
pub(crate) mod desired;
pub(crate) mod diagnostics;
pub(crate) mod drift;
pub(crate) mod endpoint_offers;
pub(crate) mod external_id;
pub(crate) mod field_rule;
pub(crate) mod host_pattern;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod key_scope;
pub(crate) mod kind;
pub(crate) mod kind_info;
pub(crate) mod lazy_spec;
pub(crate) mod module;
pub(crate) mod names;
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
mod type_erasure;
pub(crate) mod view;

pub use kind::Kind;

// The items that upper layers use most. Files of this module name each other by their own paths.
pub(crate) use self::{
    any_resource::AnyResource,
    author::Author,
    base_urls::BaseUrls,
    claim::Claim,
    desired::Desired,
    diagnostics::{Cause, Code, Diagnostic, Fault, FaultTarget, Place, Segment, Severity, SourceFile},
    id::Id,
    json::JsonError,
    key::Key,
    key_scope::KeyScope,
    kind::{
        api_key::ApiKey,
        certificate_authority::CertificateAuthority,
        https_edge::HttpsEdge,
        https_edge_route::HttpsEdgeRoute,
        ip_restriction::IpRestriction,
        owner::{Owner, Role},
        tls_certificate::TlsCertificate,
        tls_edge::TlsEdge,
    },
    module::{AnyModule, Slot},
    operation::Operation,
    resource::Resource,
    secrets::{Secret, Secrets},
    snapshot::{Entry, Snapshot},
};
