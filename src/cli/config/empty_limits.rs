//! Limits without a value, such as what is left of a list when its last entry is commented out. The decoder takes null as unset,
//! and a limit that is unset allows everything.

use crate::cli::prelude::*;
use crate::model::Faults;
use crate::syntax::yaml::Node;

/// The lists in the `scope` of a source.
const SCOPE: [&str; 4] = ["kinds", "adopt", "hosts", "roles"];

/// Returns a fault for each limit without a value in a configuration file.
pub(super) fn faults(root: Node<'_>) -> Vec<Fault> {
    let mut faults = Faults::new();
    faults.within("openid_connect", |faults| {
        let roles = root.get("openid_connect").and_then(|provider| provider.get("roles"));
        faults.each_in("roles", items(roles), |faults, role| check(faults, role, &["sources"], "write `[]` for none"));
    });
    faults.each_in("sources", items(root.get("sources")), |faults, source| {
        check(faults, source, &["scope", "verify"], "set its keys");
        let Some(scope) = source.get("scope") else { return };
        faults.within("scope", |faults| check(faults, scope, &SCOPE, "write `[]` for none"));
    });
    faults.into_vec()
}

fn items<'a>(list: Option<Node<'a>>) -> impl Iterator<Item = Node<'a>> {
    list.and_then(Node::items).into_iter().flatten()
}

fn check(faults: &mut Faults, entry: Node<'_>, limits: &[&str], help: &str) {
    for limit in limits.iter().filter(|limit| entry.get(limit).is_some_and(Node::is_null)) {
        let fault = Fault::new(Code::Required, format!("`{limit}` has no value, and would limit nothing")).at(*limit);
        faults.report(fault.help(format!("{help}, or remove the key")));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::syntax::yaml::Tape;

    #[test]
    fn a_limit_without_a_value_is_an_error() {
        let places = |text: &str| -> Vec<String> {
            let content: Tape = serde_yaml::from_str(text).unwrap();
            faults(content.root()).into_iter().map(|fault| fault.path.to_string()).collect()
        };
        let role = "claim: a, value: b, role: editor";
        let roles = format!("openid_connect:\n  roles: [{{{role}}}, {{{role}, sources: []}}, {{{role}, sources: }}]\n");
        assert_eq!(places(&roles), ["/openid_connect/roles/2/sources"]);
        let sources = "sources:\n- {name: a, scope: {kinds: [], adopt: [], hosts: [], roles: []}}\n\
                       - name: b\n  verify:\n  scope:\n    kinds:\n    # - HttpsEdge\n\
                       \x20   adopt: ~\n    hosts: null\n    roles:\n\
                       - {name: c, scope: }\n";
        let expected = ["1/verify", "1/scope/kinds", "1/scope/adopt", "1/scope/hosts", "1/scope/roles", "2/scope"];
        assert_eq!(places(sources), expected.map(|place| format!("/sources/{place}")));
        for none in ["openid_connect: {}", "openid_connect:", "sources:", "sources: [a, {scope: [kinds]}]", "[a]", "a"]
        {
            assert!(places(none).is_empty(), "{none}");
        }
        let found = crate::cli::config::Config::parse(Path::new("c.yaml"), &roles).unwrap();
        let messages: Vec<_> = found.errors.iter().flat_map(|(_, it)| &it.diagnostics).map(|it| &it.message).collect();
        assert!(messages.iter().any(|it| it.contains("at /openid_connect/roles/2/sources (line 2)")), "{messages:?}");
    }
}
