//! The `user_agent_filter` module: restricts access by User-Agent header.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    fault::{Check, Faults},
    key::Key,
    resource::ViewContext,
};

/// Allows or denies requests by their User-Agent header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserAgentFilter {
    /// Whether the module applies to traffic.
    pub enabled: bool,
    /// Regular expressions of user agents that have access.
    pub allow: Vec<String>,
    /// Regular expressions of user agents that do not have access.
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
