//! The desired state of resources, with all names resolved to IDs.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use super::claim::Claim;
use super::id::Id;
use super::key::Key;
use super::kind::Kind;
use super::resource::Resource;
use super::resource::any_resource::AnyResource;

/// The desired state of a resource.
#[derive(Debug, Clone)]
pub struct Desired {
    /// The key.
    pub key: Key,
    /// The desired Spec.
    pub spec: Arc<dyn AnyResource>,
    /// The source's claim.
    pub claim: Arc<Claim>,
    /// The position among the resources of its kind, in the order of files and lines.
    pub position: u32,
    /// The file for an API key's token, written once (D27).
    pub token_file: Option<PathBuf>,
    /// The resource that this one replaces although pruning alone would leave it: another source has handed it over, or it
    /// is kept for a transfer (D104).
    pub replaces: Option<Key>,
}

impl Desired {
    /// A resource in the first position, without a token file, that replaces no other one.
    pub(crate) fn new(key: Key, spec: Arc<dyn AnyResource>, claim: Arc<Claim>) -> Self {
        Self { key, spec, claim, position: 0, token_file: None, replaces: None }
    }

    /// The desired resources of a kind.
    pub(crate) fn of_kind(desired: &BTreeMap<Key, Self>, kind: Kind) -> impl Iterator<Item = &Self> {
        let first = Key::new(kind, Id::new(""));
        desired.range(first..).take_while(move |(key, _)| key.kind == kind).map(|(_, wanted)| wanted)
    }

    /// The Spec as its concrete type.
    pub(crate) fn spec_as<R: Resource>(&self) -> Option<&R> {
        self.spec.as_any().downcast_ref()
    }
}
