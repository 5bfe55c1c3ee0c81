//! The `policies` module: applies actions to traffic that matches expressions.

use serde_json::Map;

use super::prelude::*;
use crate::model::field_rule::{FREE_FORM, deserialize_by};

module! {
    /// The policies of an endpoint, evaluated in order for each direction.
    pub struct Policies {
        /// Policies for requests.
        pub inbound: Vec<EndpointPolicy>,
        /// Policies for responses.
        pub outbound: Vec<EndpointPolicy>,
    }
}

/// A policy: actions for the traffic that matches all expressions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointPolicy {
    /// The expressions, which must all be true; an empty list always matches.
    pub expressions: Vec<String>,
    /// The actions.
    pub actions: Vec<EndpointAction>,
    /// A human-readable name.
    pub name: String,
}

/// An action of a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointAction {
    /// The action type, such as `log` or `deny`.
    #[schemars(length(min = 1))]
    pub r#type: String,
    /// The action's configuration: an object with `Metadata` for `log`, null for `deny`.
    #[serde(deserialize_with = "free_form")]
    pub config: Option<Map<String, Value>>,
}

impl EndpointAction {
    /// Whether the action ends every request. A redirect with `from` ends only those whose URL it matches.
    pub(crate) fn ends_requests(&self) -> bool {
        match self.r#type.as_str() {
            "custom-response" | "deny" => true,
            "redirect" => self.config.as_ref().is_none_or(|config| !config.contains_key("from")),
            _ => false,
        }
    }
}

fn free_form<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Map<String, Value>>, D::Error> {
    deserialize_by(FREE_FORM, None, deserializer)
}

impl Check for Policies {
    fn check(&self, faults: &mut Faults) {
        for (field, policies) in [("inbound", &self.inbound), ("outbound", &self.outbound)] {
            faults.each_in(field, policies, |faults, policy| {
                faults.each_in("actions", &policy.actions, |faults, action| {
                    if action.r#type.is_empty() {
                        let help = "set an action type, such as `log` or `deny`";
                        faults.report(Fault::required("type").help(help));
                    }
                });
            });
        }
    }
}

fn names(policies: &[EndpointPolicy]) -> String {
    let names = policies.iter().map(|policy| if policy.name.is_empty() { "(unnamed)" } else { policy.name.as_str() });
    names.collect::<Vec<_>>().join(", ")
}

/// How a policy ends the traffic to which it applies, if it does.
fn ending(policy: &EndpointPolicy) -> Option<StepOutcome> {
    policy.actions.iter().map(outcome_of_action).find(|outcome| *outcome != StepOutcome::GoesOn)
}

/// The certain fate of traffic. Expressions are not evaluated, so only policies without any, and actions that stop
/// nothing, are certain; and policies that all end alike what they apply to, up to one without expressions.
fn outcome(policies: &[EndpointPolicy]) -> StepOutcome {
    let mut earlier = None;
    for policy in policies {
        let Some(end) = ending(policy) else { continue };
        if end == StepOutcome::Unknown || earlier.is_some_and(|earlier| earlier != end) {
            return StepOutcome::Unknown;
        }
        if policy.expressions.is_empty() {
            return end;
        }
        earlier = Some(end);
    }
    if earlier.is_some() { StepOutcome::Unknown } else { StepOutcome::GoesOn }
}

/// Whether policies end every request: one without expressions ends what those before it leave.
fn end_everything(policies: &[EndpointPolicy]) -> bool {
    for policy in policies {
        let decides = |action: &&EndpointAction| outcome_of_action(action) != StepOutcome::GoesOn;
        match policy.actions.iter().find(decides) {
            Some(action) if !action.ends_requests() => return false,
            Some(_) if policy.expressions.is_empty() => return true,
            _ => {}
        }
    }
    false
}

/// The actions that stop no request.
const HARMLESS: [&str; 4] = ["add-headers", "compress-response", "log", "remove-headers"];
/// The actions that stop requests whoever sends them, so that they restrict nobody's access.
const LIMITING: [&str; 2] = ["circuit-breaker", "rate-limit"];
/// The harmless actions that change what later expressions can read.
const CHANGING: [&str; 2] = ["add-headers", "remove-headers"];

fn is_one_of(action: &EndpointAction, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| action.r#type.eq_ignore_ascii_case(kind))
}

fn outcome_of_action(action: &EndpointAction) -> StepOutcome {
    match action.r#type.as_str() {
        _ if is_one_of(action, &HARMLESS) => StepOutcome::GoesOn,
        "deny" => StepOutcome::Refused,
        "redirect" if action.ends_requests() => StepOutcome::Redirected,
        _ => StepOutcome::Unknown,
    }
}

/// Whether an action can keep somebody out.
fn keeps_some_out(action: &EndpointAction) -> bool {
    !is_one_of(action, &HARMLESS) && !is_one_of(action, &LIMITING)
}

/// Whether policies have former ones in the same order, and beside them only such that refuse what they apply to.
fn only_refuse_more(former: &[EndpointPolicy], policies: &[EndpointPolicy]) -> bool {
    let mut rest = former.iter().peekable();
    let is_known = policies
        .iter()
        .all(|policy| rest.next_if_eq(&policy).is_some() || ending(policy) == Some(StepOutcome::Refused));
    is_known && rest.next().is_none()
}

impl Policies {
    /// Whether some action can keep somebody out. Outbound policies run after the backend has handled the request.
    fn can_keep_out(&self) -> bool {
        self.inbound.iter().flat_map(|policy| &policy.actions).any(keeps_some_out)
    }

    /// The inbound policies that can decide who is admitted, without their names.
    fn deciding(&self) -> Vec<EndpointPolicy> {
        let decides = |action: &EndpointAction| keeps_some_out(action) || is_one_of(action, &CHANGING);
        let deciding = self.inbound.iter().filter(|policy| policy.actions.iter().any(decides)).cloned();
        deciding.map(|policy| EndpointPolicy { name: String::new(), ..policy }).collect()
    }
}

impl Module for Policies {
    const SLOT: &'static str = "policies";
    const NEEDS_TERMINATION: bool = false;
    type View = Self;

    fn access_lists(&self) -> Vec<(String, usize)> {
        vec![("inbound".into(), self.inbound.len())]
    }

    fn restricts_access(&self) -> bool {
        self.can_keep_out()
    }

    fn admits(&self) -> Admittance {
        match end_everything(&self.inbound) {
            true => Admittance::Nobody,
            false if self.can_keep_out() => Admittance::Unknown,
            false => Admittance::Everybody,
        }
    }

    fn access_change(&self, former: &Self) -> AccessChange {
        let (had, has) = (former.deciding(), self.deciding());
        match (only_refuse_more(&had, &has), only_refuse_more(&has, &had)) {
            _ if had == has => AccessChange::Same,
            (true, _) => AccessChange::Narrower,
            (_, true) => AccessChange::Wider,
            _ => AccessChange::Unknown,
        }
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        let directions = [
            (Stage::Inbound, "policies inbound", &self.inbound),
            (Stage::Outbound, "policies outbound", &self.outbound),
        ];
        let used = directions.into_iter().filter(|(.., policies)| !policies.is_empty());
        used.map(|(stage, name, policies)| {
            let outcome = outcome(policies);
            let (effect, note) = match outcome {
                StepOutcome::Refused => (StepEffect::Refused, names(policies)),
                StepOutcome::Redirected => (StepEffect::Refused, format!("redirects: {}", names(policies))),
                _ => (StepEffect::Depends, names(policies)),
            };
            Step { name: Some(name), outcome, ..Step::new(stage, effect, note) }
        })
        .collect()
    }

    fn example() -> Value {
        json!({
            "inbound": [{
                "name": "log-admin",
                "expressions": ["req.URL.contains('/admin')"],
                "actions": [{"type": "log", "config": {"Metadata": {"area": "admin"}}}, {"type": "deny"}],
            }],
            "outbound": [],
        })
    }

    fn constraints() -> Vec<Constraint> {
        vec![Constraint::required("EndpointAction", &["type"])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_action_that_depends_on_the_sender_restricts_access() {
        let policies = |inbound: &[&str], outbound: &[&str]| {
            let list = |kinds: &[&str]| {
                let action = |kind: &&str| EndpointAction { r#type: (*kind).to_owned(), config: None };
                vec![EndpointPolicy { actions: kinds.iter().map(action).collect(), ..EndpointPolicy::default() }]
            };
            Policies { enabled: true, inbound: list(inbound), outbound: list(outbound) }
        };
        assert!(policies(&["log", "deny"], &[]).restricts_access());
        assert!(!policies(&["log"], &["deny"]).restricts_access());
        assert!(!policies(&[], &[]).restricts_access());
        let harmless = policies(&["add-headers", "remove-headers", "Log", "compress-response"], &["deny"]);
        assert!(!harmless.restricts_access() && Module::admits(&harmless) == Admittance::Everybody);
        // A limit stops requests, and admits everybody.
        let limit = policies(&["log", "rate-limit", "circuit-breaker"], &[]);
        assert!(!limit.restricts_access() && Module::admits(&limit) == Admittance::Everybody);
        for unknown in ["deny", "redirect", "custom-response", "jwt-validation", "of-tomorrow"] {
            assert_eq!(Module::admits(&policies(&["rate-limit", unknown], &[])), Admittance::Unknown, "{unknown}");
        }
    }

    #[test]
    fn only_what_needs_no_expression_is_certain() {
        let policy = |expressions: &[&str], actions: &[&str]| EndpointPolicy {
            expressions: expressions.iter().map(|it| (*it).to_owned()).collect(),
            actions: actions.iter().map(|it| EndpointAction { r#type: (*it).to_owned(), config: None }).collect(),
            name: String::new(),
        };
        let always = |actions: &[&str]| outcome(&[policy(&[], actions)]);
        assert_eq!(always(&["log", "add-headers"]), StepOutcome::GoesOn);
        assert_eq!(always(&["log", "deny"]), StepOutcome::Refused);
        assert_eq!(always(&["redirect"]), StepOutcome::Redirected);
        assert_eq!(always(&["rate-limit", "deny"]), StepOutcome::Unknown);
        assert_eq!(outcome(&[policy(&["a"], &["log"])]), StepOutcome::GoesOn);
        assert_eq!(outcome(&[policy(&["a"], &["deny"])]), StepOutcome::Unknown);
        assert_eq!(outcome(&[policy(&["a"], &["deny"]), policy(&[], &["deny"])]), StepOutcome::Refused);
        assert_eq!(outcome(&[policy(&["a"], &["redirect"]), policy(&[], &["deny"])]), StepOutcome::Unknown);
        assert_eq!(outcome(&[policy(&["a"], &["log"]), policy(&[], &["deny"])]), StepOutcome::Refused);
        let admits =
            |inbound: &[EndpointPolicy]| Module::admits(&Policies { inbound: inbound.to_vec(), ..Policies::default() });
        assert_eq!(admits(&[policy(&["a"], &["log"]), policy(&[], &["deny"])]), Admittance::Nobody);
        assert_eq!(admits(&[policy(&[], &["redirect"]), policy(&["a"], &["deny"])]), Admittance::Nobody);
        assert_eq!(admits(&[policy(&["a"], &["deny"])]), Admittance::Unknown);
        assert_eq!(admits(&[policy(&[], &["custom-response"])]), Admittance::Nobody);
        for ends in ["custom-response", "redirect", "deny"] {
            assert_eq!(admits(&[policy(&["a"], &[ends]), policy(&[], &["deny"])]), Admittance::Nobody, "{ends}");
        }
        // Nobody knows what another action does to the requests that it applies to.
        assert_eq!(admits(&[policy(&["a"], &["of-tomorrow"]), policy(&[], &["deny"])]), Admittance::Unknown);
    }

    #[test]
    fn only_policies_that_deny_make_access_narrower() {
        use AccessChange::{Narrower, Same, Unknown, Wider};
        // Policies with an expression and an action.
        let policies = |text: &str| {
            let policy = |part: &str| {
                let (expression, action) = part.split_once(':').unwrap_or(("", part));
                let actions = vec![EndpointAction { r#type: action.to_owned(), config: None }];
                EndpointPolicy { expressions: vec![expression.to_owned()], actions, name: text.to_owned() }
            };
            Policies { inbound: text.split_whitespace().map(policy).collect(), ..Policies::default() }
        };
        for (was, is, change) in [
            ("a:deny", "a:deny", Same),
            ("a:deny", "b:log a:deny c:rate-limit", Same),
            ("a:deny", "b:deny a:deny", Narrower),
            ("a:deny b:deny", "b:deny", Wider),
            ("a:deny", "b:deny", Unknown),
            ("a:deny b:deny", "b:deny a:deny", Unknown),
            ("a:deny", "a:deny b:custom-response", Unknown),
            // An expression can read the header.
            ("a:deny", "b:add-headers a:deny", Unknown),
        ] {
            assert_eq!(Module::access_change(&policies(is), &policies(was)), change, "{was} {is}");
        }
    }
}
