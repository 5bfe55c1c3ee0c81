//! What manifests want a store to hold, once every name has become an identifier.

use std::{path::PathBuf, sync::Arc};

use super::{key::Key, operation::Claim, resource::AnyResource};

/// A resource as it should be.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Its key.
    pub key: Key,
    /// What it should be.
    pub spec: Arc<dyn AnyResource>,
    /// What its source says of it.
    pub claim: Claim,
    /// Where an API key's token is written, once (D27).
    pub token_file: Option<PathBuf>,
}
