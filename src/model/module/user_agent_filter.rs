//! The `user_agent_filter` module: restricts access by User-Agent header.

use super::agent_patterns::{CompiledPatterns, TriedPatterns};
use super::prelude::*;
use crate::syntax::text::printable;

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

/// Patterns that match every text. `.` and `.+` match every text but an empty one, which is a usual condition.
const MATCHES_ALL: &[&str] = &["", "$", "(.*)", ".*", ".*$", ".*?", "^", "^.*", "^.*$", "(?i).*", "^(.*)$"];

/// Whether a pattern is known to match every user agent, and a request without one.
pub(crate) fn matches_every_agent(pattern: &str) -> bool {
    MATCHES_ALL.contains(&pattern)
}

impl UserAgentFilter {
    /// The pattern that refuses every request, if there is one and `allow` makes no exceptions.
    fn denies_all(&self) -> Option<&String> {
        self.deny.iter().find(|pattern| matches_every_agent(pattern)).filter(|_| self.allow.is_empty())
    }

    /// Whether everybody is admitted who is not denied; otherwise only who is allowed is.
    fn admits_others(&self) -> bool {
        self.allow.is_empty() || !self.deny.is_empty()
    }

    /// Whether the filter is known to admit everybody that another one does.
    fn admits_all_of(&self, other: &Self) -> bool {
        let are_within = |some: &[String], others: &[String]| some.iter().all(|pattern| others.contains(pattern));
        let is_open = self.allow.is_empty() && self.deny.is_empty();
        let keeps_others = || self.admits_others() && are_within(&self.deny, &other.deny);
        is_open || (are_within(&other.allow, &self.allow) && (!other.admits_others() || keeps_others()))
    }

    /// `deny` refuses, unless `allow` makes an exception; with `allow` alone, everybody else is refused.
    fn judge(&self, request: &TracedRequest, patterns: &mut CompiledPatterns) -> (StepEffect, String) {
        let Some(agent) = request.user_agent.as_deref().or_else(|| request.header("user-agent")) else {
            return match self.denies_all() {
                Some(pattern) => (StepEffect::Refused, format!("denied by {}", printable(pattern))),
                None => (StepEffect::Depends, "depends on the User-Agent; set it with --user-agent".into()),
            };
        };
        let mut tried = TriedPatterns::new(patterns);
        let mut unreadable = None;
        let mut is_match = |pattern: &String| {
            tried.is_match(pattern, agent).unwrap_or_else(|| {
                unreadable.get_or_insert_with(|| pattern.clone());
                false
            })
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

impl Module for UserAgentFilter {
    const SLOT: &'static str = "user_agent_filter";
    type View = Self;

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("allow".into(), self.allow.len()), ("deny".into(), self.deny.len())]
    }

    fn admits(&self) -> Admittance {
        match self.allow.is_empty() && self.deny.is_empty() {
            true => Admittance::Everybody,
            false if self.denies_all().is_some() => Admittance::Nobody,
            false => Admittance::Somebody,
        }
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        match (self.admits_all_of(former), former.admits_all_of(self)) {
            (true, true) => AccessChange::Same,
            (true, false) => AccessChange::Wider,
            (false, true) => AccessChange::Narrower,
            (false, false) => AccessChange::Unknown,
        }
    }

    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        self.steps_with(request, &mut CompiledPatterns::default())
    }

    fn steps_with(&self, request: &TracedRequest, patterns: &mut CompiledPatterns) -> Vec<Step> {
        let (effect, note) = self.judge(request, patterns);
        vec![Step::new(Stage::Client, effect, note)]
    }

    fn example() -> Value {
        json!({"allow": ["^shop-app/"], "deny": ["(?i)bot"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::module::agent_patterns::{LONGEST_PATTERN, MOST_PATTERNS};

    fn judged(filter: &UserAgentFilter, agent: &str) -> (StepEffect, String) {
        let request = TracedRequest {
            method: "GET".into(),
            host: "a.example".into(),
            port: 443,
            path: "/".into(),
            user_agent: Some(agent.into()),
            ..TracedRequest::default()
        };
        filter.judge(&request, &mut CompiledPatterns::default())
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
    }

    #[test]
    fn a_pattern_that_denies_every_agent_admits_nobody() {
        let filter = |allow: &[&str], deny: &[&str]| {
            let [allow, deny] = [allow, deny].map(|list| list.iter().map(|it| (*it).to_owned()).collect());
            UserAgentFilter { allow, deny, ..UserAgentFilter::default() }
        };
        assert_eq!(Module::admits(&filter(&[], &["bot", ".*"])), Admittance::Nobody);
        let (effect, _) = filter(&[], &[".*"]).judge(&TracedRequest::default(), &mut CompiledPatterns::default());
        assert_eq!(effect, StepEffect::Refused, "whatever the User-Agent is");
        for some in [filter(&["shop"], &[".*"]), filter(&[], &["bot"]), filter(&[".*"], &[])] {
            assert_eq!(Module::admits(&some), Admittance::Somebody, "{some:?}");
        }
    }

    #[test]
    fn a_filter_that_lets_more_agents_pass_admits_more() {
        use AccessChange::{Narrower, Same, Unknown, Wider};
        let filter = |(allow, deny): (&str, &str)| {
            let [allow, deny] = [allow, deny].map(|list| list.split_whitespace().map(str::to_owned).collect());
            UserAgentFilter { allow, deny, ..UserAgentFilter::default() }
        };
        for (was, is, change) in [
            (("", "bot"), ("", ""), Wider),
            (("", "bot spy"), ("", "spy"), Wider),
            (("app", ""), ("", ""), Wider),
            (("app", ""), ("app web", ""), Wider),
            (("", "bot"), ("good-bot", "bot"), Wider),
            // Without `deny`, only who is allowed has access.
            (("app", ""), ("app", "bot"), Wider),
            (("app", ""), ("web", ""), Unknown),
            (("", "bot"), ("", "spy"), Unknown),
            (("app", ""), ("", "bot"), Unknown),
            (("app web", "bot spy"), ("web app", "spy bot"), Same),
        ] {
            assert_eq!(Module::access_change(&filter(is), &filter(was)), change, "{was:?} {is:?}");
            let back = if change == Wider { Narrower } else { change };
            assert_eq!(Module::access_change(&filter(was), &filter(is)), back, "{is:?} {was:?}");
        }
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
