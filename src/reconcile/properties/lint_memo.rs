//! What a changed source is judged by, besides the Specs of its resources: levels, hosts, module sets and the time.

use std::{fs, path::Path};

use super::incremental::{Followed, options, said};
use crate::model::{Key, Operation, Snapshot};
use crate::reconcile::{LintLevels, Options};
use crate::store::clock;

/// Two edges in files of their own, whose routes are open. The lint about that is off unless an annotation sets its level.
fn open_edges(folder: &Path, annotation: &str, host: &str, description: &str) {
    for (name, annotation, host) in [("one", annotation, host), ("two", "", "two")] {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}, annotations: {{{annotation}}}}}\n\
             spec:\n  hostports: ['{host}.example.com:443']\n  routes:\n    - {{name: r, description: {description}, \
             match_type: path_prefix, match: /, backend: {{backend_id: bkd_1}}}}\n"
        );
        fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    }
}

#[test]
fn a_changed_edge_is_judged_by_its_level_and_with_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let warn = "edgewright/lint.unprotected-route: warn";
    let mut source = Followed::new(options(folder.path(), false));
    for (annotation, host, description) in [
        ("", "one", "a"),
        ("", "one", "b"),
        (warn, "one", "b"),
        (warn, "one", "c"),
        ("", "one", "c"),
        (warn, "two", "c"),
        (warn, "two", "d"),
        ("", "one", "d"),
        (warn, "one", "e"),
    ] {
        open_edges(folder.path(), annotation, host, description);
        let case = format!("{annotation} {host} {description}");
        let found = said(&source.sync(&case));
        assert_eq!(found.contains("unprotected-route"), annotation == warn, "{case}");
        assert_eq!(found.contains("duplicate-hostport"), host == "two", "{case}");
    }
}

#[test]
fn what_stays_because_nothing_is_deleted_is_judged_with_what_is_declared() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Followed::new(Options { prune: false, ..options(folder.path(), false) });
    let old =
        |snapshot: &Snapshot| snapshot.iter().find(|entry| entry.source().is_some()).map(|entry| entry.key.clone());
    let mut first: Option<Key> = None;
    for (name, description, is_gone, is_said) in [
        ("old", "a", false, false),
        ("old", "b", false, false),
        ("new", "b", false, true),
        ("new", "c", false, true),
        ("new", "d", true, false),
        ("new", "e", true, false),
    ] {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}, annotations: \
             {{edgewright/lint.duplicate-hostport: warn}}}}\nspec: {{hostports: ['shop.example.com:443'], description: \
             {description}}}\n"
        );
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        if let Some(key) = first.clone().filter(|key| is_gone && source.snapshot.get(key).is_some()) {
            let deletion = Operation::Delete { key, with_children: true };
            source.snapshot = source.snapshot.apply(&[deletion], clock::now()).unwrap().0;
        }
        let case = format!("{name} {description}");
        let found = said(&source.sync(&case));
        assert_eq!(
            found.matches("of source `default` already serves").count(),
            usize::from(is_said),
            "{case}: {found}"
        );
        first = first.or_else(|| old(&source.snapshot));
    }
}

/// Two edges with a login, whose metadata ends in these years.
fn logins(folder: &Path, years: [u16; 2]) {
    for (name, year) in ["one", "two"].into_iter().zip(years) {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  \
             hostports: ['{name}.example.com:443']\n  routes:\n    - name: r\n      match_type: path_prefix\n      \
             match: /\n      backend: {{backend_id: bkd_1}}\n      saml:\n        idp_metadata: >-\n          \
             <EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://id.example.com\" \
             validUntil=\"{year}-01-01T00:00:00Z\"><IDPSSODescriptor \
             protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\"><KeyDescriptor/>\
             <SingleSignOnService Location=\"https://id.example.com/sso\"/></IDPSSODescriptor></EntityDescriptor>\n"
        );
        fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    }
}

#[test]
fn findings_that_are_kept_hold_as_long_as_those_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Followed::new(options(folder.path(), false));
    for (years, first) in [([2101, 2102], 2101), ([2103, 2102], 2102), ([2103, 2104], 2103), ([2105, 2104], 2104)] {
        logins(folder.path(), years);
        let planned = source.sync(&format!("{years:?}"));
        let until = source.last.as_ref().unwrap().valid_until(&planned);
        assert_eq!(until, LintLevels::default().valid_until(&planned.desired), "{years:?}");
        assert_eq!(until, format!("{first}-01-01T00:00:00Z").parse().ok(), "{}", said(&planned));
    }
}

/// An edge whose route takes a disabled module from a set, for which the lint about that is on, unless the route has the
/// same module of its own.
fn disabled_module(folder: &Path, own: &str, description: &str) {
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\n\
               metadata: {name: base, annotations: {edgewright/lint.disabled-module: warn}}\n\
               spec: {compression: {enabled: false}}\n";
    let edge = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  description: {description}\n  \
         hostports: ['shop.example.com:443']\n  routes:\n    - {{name: r, match_type: path_prefix, match: /, \
         backend: {{backend_id: bkd_1}}, {own}modules_from: [base]}}\n"
    );
    fs::write(folder.join("set.yaml"), set).unwrap();
    fs::write(folder.join("edge.yaml"), edge).unwrap();
}

#[test]
fn a_module_that_moves_between_a_route_and_its_set_is_judged_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let own = "compression: {enabled: false}, ";
    let mut source = Followed::new(options(folder.path(), false));
    for (own, description) in [(own, "a"), (own, "b"), ("", "b"), ("", "c"), (own, "c"), (own, "d")] {
        disabled_module(folder.path(), own, description);
        let case = format!("{own:?} {description}");
        let found = said(&source.sync(&case));
        assert_eq!(found.contains("disabled"), own.is_empty(), "{case}");
    }
}

#[test]
fn a_module_set_that_is_listed_twice_is_found_although_the_spec_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: base}\nspec: {compression: {}}\n---\n\
                apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  hostports: ['shop.example.com:443']\n  \
                routes: [{name: r, match_type: path_prefix, match: /, backend: {backend_id: bkd_1}, modules_from: [base]}]\n";
    let mut source = Followed::new(options(folder.path(), false));
    for sets in ["[base]", "[base, base]", "[base]"] {
        fs::write(folder.path().join("a.yaml"), text.replace("[base]", sets)).unwrap();
        assert_eq!(said(&source.plan()).contains("duplicate-entry"), sets != "[base]", "{sets}");
    }
}
