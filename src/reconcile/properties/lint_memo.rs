//! What a changed source is judged by, besides the Specs of its resources: levels, hosts, module sets and the time.

use std::{fs, path::Path};

use super::incremental::{options, said, shown};
use crate::model::{Key, Operation, Snapshot};
use crate::reconcile::{Options, Prepared};
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
    open_edges(folder.path(), "", "one", "a");
    let mut last = Prepared::load_again(options(folder.path(), false), None);
    let operations = last.plan(&Snapshot::default()).plan.map(|plan| plan.operations()).unwrap_or_default();
    let mut snapshot = Snapshot::default().apply(&operations, clock::now()).unwrap().0;
    for (annotation, host, description) in [
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
        let again = Prepared::load_again(options(folder.path(), false), Some(last));
        let planned = again.plan(&snapshot);
        let scratch = Prepared::load(options(folder.path(), false)).plan(&snapshot);
        let case = format!("{annotation} {host} {description}");
        assert_eq!(shown(&planned), shown(&scratch), "{case}");
        assert_eq!(said(&planned).contains("unprotected-route"), annotation == warn, "{case}");
        assert_eq!(said(&planned).contains("duplicate-hostport"), host == "two", "{case}");
        let operations = planned.plan.map(|plan| plan.operations()).unwrap_or_default();
        snapshot = snapshot.apply(&operations, clock::now()).unwrap().0;
        last = again;
    }
}

#[test]
fn what_stays_because_nothing_is_deleted_is_judged_with_what_is_declared() {
    let folder = tempfile::tempdir().unwrap();
    let kept = || Options { prune: false, ..options(folder.path(), false) };
    let (mut last, mut snapshot) = (None, Snapshot::default());
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
        if let Some(key) = first.clone().filter(|key| is_gone && snapshot.get(key).is_some()) {
            let deletion = Operation::Delete { key, with_children: true };
            snapshot = snapshot.apply(&[deletion], clock::now()).unwrap().0;
        }
        let again = Prepared::load_again(kept(), last);
        let planned = again.plan(&snapshot);
        let case = format!("{name} {description}");
        assert_eq!(shown(&planned), shown(&Prepared::load(kept()).plan(&snapshot)), "{case}");
        let found = said(&planned);
        assert_eq!(
            found.matches("of source `default` already serves").count(),
            usize::from(is_said),
            "{case}: {found}"
        );
        let operations = planned.plan.map(|plan| plan.operations()).unwrap_or_default();
        snapshot = snapshot.apply(&operations, clock::now()).unwrap().0;
        first = first.or_else(|| old(&snapshot));
        last = Some(again);
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
    let (mut last, mut snapshot) = (None, Snapshot::default());
    for (years, first) in [([2101, 2102], 2101), ([2103, 2102], 2102), ([2103, 2104], 2103), ([2105, 2104], 2104)] {
        logins(folder.path(), years);
        let again = Prepared::load_again(options(folder.path(), false), last);
        let planned = again.plan(&snapshot);
        let until = again.valid_until(&planned);
        assert_eq!(until, again.options.lints.valid_until(&planned.desired), "{years:?}");
        assert_eq!(until, format!("{first}-01-01T00:00:00Z").parse().ok(), "{}", said(&planned));
        let operations = planned.plan.map(|plan| plan.operations()).unwrap_or_default();
        snapshot = snapshot.apply(&operations, clock::now()).unwrap().0;
        last = Some(again);
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
    disabled_module(folder.path(), own, "a");
    let mut last = Prepared::load_again(options(folder.path(), false), None);
    let operations = last.plan(&Snapshot::default()).plan.map(|plan| plan.operations()).unwrap_or_default();
    let mut snapshot = Snapshot::default().apply(&operations, clock::now()).unwrap().0;
    for (own, description) in [(own, "b"), ("", "b"), ("", "c"), (own, "c"), (own, "d")] {
        disabled_module(folder.path(), own, description);
        let again = Prepared::load_again(options(folder.path(), false), Some(last));
        let planned = again.plan(&snapshot);
        let scratch = Prepared::load(options(folder.path(), false)).plan(&snapshot);
        let case = format!("{own:?} {description}");
        assert_eq!(shown(&planned), shown(&scratch), "{case}");
        assert_eq!(said(&planned).contains("disabled"), own.is_empty(), "{case}");
        let operations = planned.plan.map(|plan| plan.operations()).unwrap_or_default();
        snapshot = snapshot.apply(&operations, clock::now()).unwrap().0;
        last = again;
    }
}

#[test]
fn a_module_set_that_is_listed_twice_is_found_although_the_spec_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: base}\nspec: {compression: {}}\n---\n\
                apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  hostports: ['shop.example.com:443']\n  \
                routes: [{name: r, match_type: path_prefix, match: /, backend: {backend_id: bkd_1}, modules_from: [base]}]\n";
    let mut last = None;
    for sets in ["[base]", "[base, base]", "[base]"] {
        fs::write(folder.path().join("a.yaml"), text.replace("[base]", sets)).unwrap();
        let again = Prepared::load_again(options(folder.path(), false), last);
        assert_eq!(said(&again.plan(&Snapshot::default())).contains("duplicate-entry"), sets != "[base]", "{sets}");
        last = Some(again);
    }
}
