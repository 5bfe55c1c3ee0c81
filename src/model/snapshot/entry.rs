//! What a snapshot has of a resource: its entry, or its tombstone.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;

use super::lazy_spec::LazySpec;
use crate::model::claim::Claim;
use crate::model::key::Key;
use crate::model::resource::Resource;
use crate::model::resource::any_resource::AnyResource;
use crate::model::secrets::Secret;

/// A resource in a snapshot.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The Spec, which may not be decoded yet.
    pub lazy_spec: LazySpec,
    /// The creation time in whole seconds (D13).
    pub created_at: Timestamp,
    /// The creation order, by which lists are sorted newest first (D12).
    pub order: u64,
    /// The claim of the source that owns it, if any (D29).
    pub claim: Option<Arc<Claim>>,
    /// The hash of an API key's token.
    pub token: Option<Secret>,
    /// The cached responses to a GET. Empty after a change of the entry or a child.
    pub rendered: Arc<RenderedForms>,
}

/// The cached responses to a GET of one state of a resource, by what the caller may see.
#[derive(Debug, Default)]
pub struct RenderedForms {
    /// With all secrets.
    pub revealed: OnceLock<Box<Rendered>>,
    /// With masked secrets.
    pub masked: OnceLock<Box<Rendered>>,
}

/// A serialised response form; cheap to clone.
#[derive(Clone)]
pub struct Rendered {
    /// JSON.
    pub body: Bytes,
    /// The strong ETag of these bytes (D25).
    pub etag: Arc<str>,
}

/// Omits the body, which may have secrets.
impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rendered({} bytes)", self.body.len())
    }
}

/// Entries are compared by identity: each change makes a new one.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Entry {
    /// The source that owns it, if any.
    pub fn source(&self) -> Option<&str> {
        self.claim.as_deref().map(|claim| claim.source.as_str())
    }

    /// The name in the manifest of the source that owns it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.claim.as_deref().map(|claim| claim.name.as_str())
    }

    /// Creates the entry of a new resource without a claim.
    pub(crate) fn new(key: Key, spec: Arc<dyn AnyResource>, created_at: Timestamp, order: u64) -> Self {
        let lazy_spec = LazySpec::new(spec);
        Self { key, lazy_spec, created_at, order, claim: None, token: None, rendered: Arc::default() }
    }

    /// Whether a manifest source owns it.
    pub fn is_owned_by(&self, source: &str) -> bool {
        self.source() == Some(source)
    }

    /// The Spec.
    pub fn spec(&self) -> &Arc<dyn AnyResource> {
        self.lazy_spec.spec()
    }

    /// The Spec as its concrete type.
    pub fn spec_as<R: Resource>(&self) -> Option<&R> {
        self.spec().as_any().downcast_ref()
    }
}

/// The record of a deleted resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The `order` of the resource.
    pub order: u64,
    /// The revision that deleted it.
    pub revision: u64,
    /// The source that owned it, if any: its ID stays that of this source (D112). Earlier versions recorded it for implicit
    /// kinds only.
    pub source: Option<Arc<str>>,
}
