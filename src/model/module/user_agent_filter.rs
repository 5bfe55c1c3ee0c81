//! The `user_agent_filter` module: restricts access by User-Agent header.

use regex::{Error, Regex, RegexBuilder};

use super::prelude::*;
use crate::syntax::text::printable;

/// The longest pattern that is compiled, in bytes (D46). User agents are shorter.
pub(crate) const LONGEST_PATTERN: usize = 4096;
/// The most patterns that a trace compiles.
const MOST_PATTERNS: usize = 1000;
/// The limit of a compiled pattern's memory, in bytes. It bounds the time to compile, and almost every pattern fits.
const COMPILED_BYTES: usize = 64 << 10;
/// The memory limit for a few costly patterns.
const COSTLY_BYTES: usize = 1 << 20;
const MOST_COSTLY: usize = 20;

module! {
    /// Allows or denies requests by their User-Agent header.
    pub struct UserAgentFilter {
        /// Regular expressions of user agents that have access.
        pub allow: Vec<String>,
        /// Regular expressions of user agents that do not have access.
        pub deny: Vec<String>,
    }
}

impl Check for UserAgentFilter {}

impl UserAgentFilter {
    /// `deny` refuses, unless `allow` makes an exception; with `allow` alone, everybody else is refused.
    fn judge(&self, request: &TracedRequest) -> (StepEffect, String) {
        let Some(agent) = request.user_agent.as_deref().or_else(|| request.header("user-agent")) else {
            return (StepEffect::Depends, "depends on the User-Agent; set it with --user-agent".into());
        };
        let mut compiler = Compiler::default();
        let mut unreadable = None;
        let mut is_match = |pattern: &String| match compiler.compile(pattern) {
            Some(regex) => regex.is_match(agent),
            None => {
                unreadable.get_or_insert_with(|| pattern.clone());
                false
            }
        };
        let mut first = |patterns: &[String]| patterns.iter().find(|&pattern| is_match(pattern)).cloned();
        let (allowed, denied) = (first(&self.allow), first(&self.deny));
        match (allowed, denied, unreadable) {
            (Some(pattern), ..) => (StepEffect::Passes, format!("allowed by {}", printable(&pattern))),
            (None, _, Some(pattern)) => {
                (StepEffect::Depends, format!("unknown: {} is invalid or too costly to evaluate", printable(&pattern)))
            }
            (None, Some(pattern), None) => (StepEffect::Refused, format!("denied by {}", printable(&pattern))),
            (None, None, None) if self.deny.is_empty() && !self.allow.is_empty() => {
                (StepEffect::Refused, "no pattern allows it".into())
            }
            (None, None, None) => (StepEffect::Passes, "no pattern denies it".into()),
        }
    }
}

/// Compiles patterns within bounds: the API accepts any pattern, and a few bytes can take a second (D46).
#[derive(Default)]
struct Compiler {
    tried: usize,
    costly: usize,
}

impl Compiler {
    /// Returns `None` for an invalid pattern, and for one over a limit.
    fn compile(&mut self, pattern: &str) -> Option<Regex> {
        self.tried += 1;
        if pattern.len() > LONGEST_PATTERN || self.tried > MOST_PATTERNS {
            return None;
        }
        let within = |bytes: usize| RegexBuilder::new(pattern).size_limit(bytes).build();
        match within(COMPILED_BYTES) {
            Err(Error::CompiledTooBig(_)) if self.costly < MOST_COSTLY => {
                self.costly += 1;
                within(COSTLY_BYTES).ok()
            }
            compiled => compiled.ok(),
        }
    }
}

impl Module for UserAgentFilter {
    const SLOT: &'static str = "user_agent_filter";
    type View = Self;

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("allow".into(), self.allow.len()), ("deny".into(), self.deny.len())]
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        let (effect, note) = self.judge(request);
        vec![Step::new(Stage::Client, effect, note)]
    }

    fn example() -> Value {
        json!({"allow": ["^shop-app/"], "deny": ["(?i)bot"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(filter: &UserAgentFilter, agent: &str) -> (StepEffect, String) {
        let request = TracedRequest {
            method: "GET".into(),
            host: "a.example".into(),
            port: 443,
            path: "/".into(),
            user_agent: Some(agent.into()),
            ..TracedRequest::default()
        };
        filter.judge(&request)
    }

    #[test]
    fn what_is_over_a_bound_is_not_evaluated() {
        let many: Vec<String> = (0..=MOST_PATTERNS).map(|n| format!("bot{n}")).collect();
        for (deny, what) in [
            (many, "the number of patterns"),
            (vec!["a".repeat(LONGEST_PATTERN + 1)], "a long pattern"),
            (vec!["\\w{100}{10}".to_owned()], "a costly pattern"),
        ] {
            let filter = UserAgentFilter { deny, ..UserAgentFilter::default() };
            let (effect, note) = judged(&filter, "shop-app/1");
            assert_eq!(effect, StepEffect::Depends, "{what}");
            assert!(note.contains("too costly"), "{what}: {note}");
        }
        let mut compiler = Compiler { costly: MOST_COSTLY, ..Compiler::default() };
        assert!(compiler.compile("\\w\\w\\w").is_none() && compiler.compile("bot").is_some());
    }

    #[test]
    fn an_ordinary_list_of_patterns_is_evaluated() {
        let mut deny: Vec<String> = (0..200).map(|n| format!("(?i)^crawler{n}/[0-9.]+")).collect();
        deny.push("(?i)\\bbot\\b.*\\w\\w\\w".into());
        let filter = UserAgentFilter { deny, ..UserAgentFilter::default() };
        assert_eq!(judged(&filter, "a bot of somebody_else").0, StepEffect::Refused);
        assert_eq!(judged(&filter, "shop-app/1").0, StepEffect::Passes);
    }
}
