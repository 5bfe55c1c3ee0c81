//! The `user_agent_filter` module: which user agents may access the endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    fault::{Check, Faults},
    key::Key,
    resource::ViewContext,
};

/// Lets requests through or refuses them by their User-Agent header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserAgentFilter {
    /// True if the module is applied to traffic.
    pub enabled: bool,
    /// Patterns of user agents that may access the endpoint.
    pub allow: Vec<String>,
    /// Patterns of user agents that may not.
    pub deny: Vec<String>,
}

impl Default for UserAgentFilter {
    fn default() -> Self {
        Self { enabled: true, allow: Vec::new(), deny: Vec::new() }
    }
}

impl Check for UserAgentFilter {
    fn check(&self, _faults: &mut Faults) {}
}

impl Module for UserAgentFilter {
    const SLOT: &'static str = "user_agent_filter";
    type View = Self;

    fn view(&self, _host: &Key, _cx: &ViewContext<'_>) -> Self {
        self.clone()
    }
}
