//! A module for tests with nothing but what every module must have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Module, slots};
use crate::model::{
    base_urls::Site,
    diagnostics::fault::{Check, Faults},
    key::Key,
};

/// Limits nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MadeUp {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// A number.
    pub rate: u32,
}

impl Default for MadeUp {
    fn default() -> Self {
        Self { enabled: true, rate: 0 }
    }
}

impl Check for MadeUp {
    fn check(&self, _faults: &mut Faults) {}
}

impl Module for MadeUp {
    const SLOT: &'static str = "made_up";
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }
}

slots! {
    /// A host of the module.
    pub struct Host {}

    /// The response form of the host's modules.
    pub struct HostModules {
        /// Limits nothing.
        made_up: MadeUp,
    }
}
