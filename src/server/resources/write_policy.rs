//! The policies of sources for API writes to their resources: the `rest_writes` of a configuration file (D103).

use arc_swap::ArcSwap;

use crate::model::names::names;
use crate::model::nearest;
use crate::reconcile::check_source;
use crate::server::prelude::*;

/// The name that stands for all sources that are not listed.
const ALL_OTHERS: &str = "*";

/// A source's policy for API writes to its resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WritePolicy {
    /// Allowed, and counted as drift.
    #[default]
    Drift,
    /// Refused.
    Refuse,
    /// Allowed with a header that names the source.
    Header,
}

names!(WritePolicy: Drift "drift", Refuse "refuse", Header "header");

/// The policies by source.
pub(crate) type WritePolicies = BTreeMap<String, WritePolicy>;

impl WritePolicy {
    /// Parses the entries of a configuration file. The path of a fault starts at the name of the source.
    pub(crate) fn parse(entries: &BTreeMap<String, String>) -> Result<WritePolicies, Fault> {
        let mut policies = WritePolicies::new();
        for (source, name) in entries {
            // Existing sources can have names that new ones cannot. A pattern would look like a policy for the sources that it
            // seems to select.
            let checked = match source.contains('*') {
                true if source == ALL_OTHERS => Ok(()),
                true => Err(Fault::new(Code::InvalidFormat, format!("`{}` is not a source name", printable(source)))),
                false => check_source(source),
            };
            let help = "name each source, or use `*` for all others";
            checked.map_err(|fault| fault.at(source.as_str()).of_key().help(help))?;
            let policy = Self::from_name(name).ok_or_else(|| {
                let fault = Fault::new(Code::UnknownValue, format!("unknown policy `{}`", printable(name)));
                fault.at(source.as_str()).help("use `drift`, `refuse` or `header`")
            })?;
            policies.insert(source.clone(), policy);
        }
        Ok(policies)
    }
}

/// The warnings of policies for sources that are not known: a misspelt one protects nothing. `fact` says what is known of them.
pub(crate) fn unknown_sources(policies: &WritePolicies, known: &BTreeSet<String>, fact: &str) -> Vec<Fault> {
    let unknown = policies.keys().filter(|source| *source != ALL_OTHERS && !known.contains(*source));
    let warning = |source: &String| {
        let message = format!("`rest_writes` names the source `{}`, which {fact}", printable(source));
        let help = nearest(source, known.iter().map(String::as_str));
        let help = help.map(|near| format!("did you mean `{}`?", printable(near)));
        Fault { help, ..Fault::new(Code::UnknownReference, message) }
    };
    unknown.map(warning).collect()
}

/// The policies that are in effect. Clones share them, so that a reload of the configuration changes all.
#[derive(Debug, Clone, Default)]
pub(crate) struct RestWrites(Arc<ArcSwap<WritePolicies>>);

impl RestWrites {
    /// Replaces the policies.
    pub(crate) fn set(&self, policies: WritePolicies) {
        self.0.store(Arc::new(policies));
    }

    /// The policy of a source.
    pub(super) fn policy(&self, source: &str) -> WritePolicy {
        let policies = self.0.load();
        policies.get(source).or_else(|| policies.get(ALL_OTHERS)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_for_one_source_or_for_all_others() {
        let parse = |text: &str| WritePolicy::parse(&serde_json::from_str(text).unwrap());
        let writes = RestWrites::default();
        assert_eq!(writes.policy("shop"), WritePolicy::Drift);
        writes.set(parse(r#"{"shop": "refuse", "*": "header"}"#).unwrap());
        assert_eq!((writes.policy("shop"), writes.policy("docs")), (WritePolicy::Refuse, WritePolicy::Header));
        assert!(parse(r#"{"two words": "refuse"}"#).is_ok(), "an existing source can have the name");
        for (text, code, path) in [
            (r#"{"shop": "never"}"#, Code::UnknownValue, "/shop"),
            (r#"{"shop-*": "refuse"}"#, Code::InvalidFormat, "/shop-*"),
            (r#"{" ": "refuse"}"#, Code::InvalidFormat, "/ "),
        ] {
            let fault = parse(text).unwrap_err();
            assert_eq!((fault.code, fault.path.to_string().as_str()), (code, path));
        }
    }

    #[test]
    fn a_policy_for_an_unknown_source_is_told_with_the_name_that_may_be_meant() {
        let policies = |names: &[&str]| -> WritePolicies {
            names.iter().map(|name| ((*name).to_owned(), WritePolicy::Refuse)).collect()
        };
        let known = BTreeSet::from(["platform".to_owned(), "shop".to_owned()]);
        let told = |names: &[&str]| unknown_sources(&policies(names), &known, "owns nothing");
        assert!(told(&["platform", "*"]).is_empty());
        let found = told(&["platfrm", "two words"]);
        let message = found.first().map(|fault| fault.message.as_str());
        assert_eq!(message, Some("`rest_writes` names the source `platfrm`, which owns nothing"));
        let helps: Vec<Option<&str>> = found.iter().map(|fault| fault.help.as_deref()).collect();
        assert_eq!(helps, [Some("did you mean `platform`?"), None]);
    }
}
