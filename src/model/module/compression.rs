//! The `compression` module: compresses responses with gzip.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    base_urls::Site,
    diagnostics::fault::{Check, Faults},
    key::Key,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};

/// Compresses responses for clients that accept it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Compression {
    /// Whether the module applies to traffic.
    pub enabled: bool,
}

impl Default for Compression {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Check for Compression {
    fn check(&self, _faults: &mut Faults) {}
}

impl Module for Compression {
    const SLOT: &'static str = "compression";
    const EMPTY_IS_HARMLESS: bool = true;
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Encoding, StepEffect::Passes, "for clients that accept it")]
    }
}
