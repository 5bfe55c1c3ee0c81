//! Keys of a configuration file without a value, such as what is left of a list when its last entry is commented out. The decoder
//! takes null as unset, and a limit that is unset allows everything.

use crate::cli::prelude::*;
use crate::model::Path as FieldPath;
use crate::syntax::yaml::Node;

pub(super) fn faults(root: Node<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    collect(root, &FieldPath::root(), &mut faults);
    faults
}

fn collect(node: Node<'_>, path: &FieldPath, faults: &mut Vec<Fault>) {
    for (key, value) in node.entries().into_iter().flatten() {
        let place = path.join(key);
        if value.is_null() {
            let message = format!("`{}` has no value", printable(key));
            let fault = Fault::new(Code::Required, message).at(place);
            faults.push(fault.help("write one, such as `[]` for an empty list, or remove the key"));
        } else {
            collect(value, &place, faults);
        }
    }
    for (index, item) in node.items().into_iter().flatten().enumerate() {
        collect(item, &path.join(index), faults);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::syntax::yaml::Tape;

    #[test]
    fn a_key_without_a_value_is_an_error() {
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
        assert_eq!(
            places("rest_writes:\n  shop: # refuse\nlints: {old-tls-version: }"),
            ["/rest_writes/shop", "/lints/old-tls-version"]
        );
        for none in ["openid_connect: {}", "sources: []", "sources: [a, {scope: [kinds]}]", "[a]", "a"] {
            assert!(places(none).is_empty(), "{none}");
        }
        let found = crate::cli::config::Config::parse(Path::new("c.yaml"), &roles).unwrap();
        let messages: Vec<_> = found.errors.iter().flat_map(|(_, it)| &it.diagnostics).map(|it| &it.message).collect();
        assert!(messages.iter().any(|it| it.contains("at /openid_connect/roles/2/sources (line 2)")), "{messages:?}");
    }
}
