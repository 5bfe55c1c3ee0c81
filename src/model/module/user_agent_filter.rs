//! The `user_agent_filter` module: restricts access by User-Agent header.

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Module;
use crate::{
    model::{
        fault::{Check, Faults},
        key::Key,
        site::Site,
        traffic::{Stage, Step, StepEffect, TracedRequest},
    },
    text::printable,
};

/// What a compiled pattern can take, in bytes. The time to compile it grows with this.
const COMPILED_BYTES: usize = 1024 * 1024;

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

impl UserAgentFilter {
    /// `deny` refuses, unless `allow` makes an exception; with `allow` alone, everybody else is refused.
    fn judge(&self, request: &TracedRequest) -> (StepEffect, String) {
        let Some(agent) = request.user_agent.as_deref().or_else(|| request.header("user-agent")) else {
            return (StepEffect::Depends, "depends on the User-Agent; set it with --user-agent".into());
        };
        let mut unreadable = None;
        let mut is_match = |pattern: &String| match RegexBuilder::new(pattern).size_limit(COMPILED_BYTES).build() {
            Ok(regex) => regex.is_match(agent),
            Err(_) => {
                unreadable.get_or_insert_with(|| pattern.clone());
                false
            }
        };
        let mut first = |patterns: &[String]| patterns.iter().find(|&pattern| is_match(pattern)).cloned();
        let (allowed, denied) = (first(&self.allow), first(&self.deny));
        match (allowed, denied, unreadable) {
            (Some(pattern), ..) => (StepEffect::Passes, format!("allowed by {}", printable(&pattern))),
            (None, _, Some(pattern)) => {
                (StepEffect::Depends, format!("unknown: {} cannot be compiled", printable(&pattern)))
            }
            (None, Some(pattern), None) => (StepEffect::Refused, format!("denied by {}", printable(&pattern))),
            (None, None, None) if self.deny.is_empty() && !self.allow.is_empty() => {
                (StepEffect::Refused, "no pattern allows it".into())
            }
            (None, None, None) => (StepEffect::Passes, "no pattern denies it".into()),
        }
    }
}

impl Module for UserAgentFilter {
    const SLOT: &'static str = "user_agent_filter";
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        let (effect, note) = self.judge(request);
        vec![Step::new(Stage::Client, effect, note)]
    }

    fn example() -> Value {
        json!({"allow": ["^shop-app/"], "deny": ["(?i)bot"]})
    }
}
