//! The domain model: what resources are, which of them are valid, and how operations change them.
//!
//! A manifest, a request body, a stored record and a plan are about the same resources, so each kind is one type, its Spec.
//! Everything goes the same way:
//!
//! ```text
//! text → tape (untyped) → decode → Spec (kind, module) → Operation → Snapshot
//! ```
//!
//! Faults of every step are collected with the paths of their fields (diagnostics). Responses and records are written by
//! json, which alone can reveal what secrets hides.
//!
//! The model never does IO, reads no clock and no randomness: the same input gives the same state everywhere.

pub(crate) mod author;
pub(crate) mod base_urls;
pub(crate) mod build;
pub(crate) mod claim;
pub(crate) mod decode;
pub(crate) mod desired;
pub(crate) mod diagnostics;
pub(crate) mod drift;
pub(crate) mod external_id;
pub(crate) mod field_rule;
pub(crate) mod host_pattern;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod key_scope;
pub(crate) mod kind;
pub(crate) mod module;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod reference;
pub(crate) mod required_secrets;
pub(crate) mod resource;
pub(crate) mod route_test;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod snapshot;
pub(crate) mod traffic;

pub use kind::Kind;

// The items that upper layers use most. Files of this module name each other by their own paths.
pub(crate) use self::author::{Author, CommitAuthor};
pub(crate) use self::base_urls::BaseUrls;
pub(crate) use self::claim::Claim;
pub(crate) use self::desired::Desired;
pub(crate) use self::diagnostics::suggestions::{Suggestions, misspelt};
pub(crate) use self::diagnostics::{
    Cause, Code, Diagnostic, Fault, FaultTarget, Faults, FieldPath, MOST_FAULTS, Name, Path, Place, Segment, Severity,
    SourceFile, nearest, suggest,
};
pub(crate) use self::drift::{Drift, DriftState, DriftedResource};
pub(crate) use self::id::{Id, is_name};
pub(crate) use self::json::JsonError;
pub(crate) use self::key::Key;
pub(crate) use self::key_scope::KeyScope;
pub(crate) use self::kind::api_key::ApiKey;
pub(crate) use self::kind::certificate_authority::CertificateAuthority;
pub(crate) use self::kind::event_source::EventSource;
pub(crate) use self::kind::https_edge::HttpsEdge;
pub(crate) use self::kind::https_edge_route::{HttpsEdgeRoute, MatchType};
pub(crate) use self::kind::invariant::Invariant;
pub(crate) use self::kind::ip_restriction::IpRestriction;
pub(crate) use self::kind::owner::{Owner, Role};
pub(crate) use self::kind::tls_certificate::TlsCertificate;
pub(crate) use self::kind::tls_edge::TlsEdge;
pub(crate) use self::module::{AnyModule, Module, SharedModule, Slot};
pub(crate) use self::operation::Operation;
pub(crate) use self::resource::Resource;
pub(crate) use self::resource::any_resource::AnyResource;
pub(crate) use self::resource::kind_info::KindInfo;
pub(crate) use self::secrets::digest_key::DigestKey;
pub(crate) use self::secrets::{MASK, Secret, Secrets};
pub(crate) use self::snapshot::entry::{Entry, Rendered};
pub(crate) use self::snapshot::lazy_spec::LazySpec;
pub(crate) use self::snapshot::rules;
pub(crate) use self::snapshot::{Refusal, Snapshot};
pub(crate) use self::traffic::host_port;
