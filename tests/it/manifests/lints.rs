//! Lints: each finds the mistake of its own example, at the level that the catalogue, a configuration or a manifest sets.

use std::collections::BTreeMap;

use edgewright::{
    Diagnostic, Disk, LintLevels,
    report::{LINTS, Level, Lint, Name, Severity},
    validate,
};

use crate::support::manifests::edge_with;
use crate::support::program::{Folder, REPOSITORY};

/// What validation says of a text, with one lint at a level.
fn findings(text: &str, lint: &Lint, level: Level) -> Vec<Diagnostic> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("example.yaml"), text).unwrap();
    let tree = Disk::new([folder.path()]);
    let levels = LintLevels {
        levels: BTreeMap::from([(lint.name.to_owned(), level)]),
        allowed_labels: Some(["team".to_owned()].into()),
        ..LintLevels::default()
    };
    validate(&tree, &levels).diagnostics
}

#[test]
fn every_lint_finds_its_own_example_and_no_rule_does() {
    let mut wrong = Vec::new();
    // These have tests of their own: two find something on some days, two are about plans, and one is about what the store has.
    let elsewhere =
        ["expiring-certificate", "expiring-exemption", "access-opened", "invariant-weakened", "unmanaged-route"];
    for lint in LINTS.iter().filter(|lint| !elsewhere.contains(&lint.name)) {
        let raised = findings(lint.example(), lint, Level::Warn);
        if raised.iter().any(|it| matches!(it.code, Name::Code(_))) {
            wrong.push(format!("{}: its example breaks a rule: {:?}", lint.name, raised[0].message));
        }
        let found: Vec<_> = raised.iter().filter(|it| it.code == Name::Lint(lint.name)).collect();
        if found.is_empty() || found.iter().any(|it| it.severity != Severity::Warning) {
            wrong.push(format!("{}: does not find its own example", lint.name));
        }
        for it in &found {
            if it.message.ends_with('.') || it.help.as_ref().is_none_or(String::is_empty) {
                wrong.push(format!("{}: a sentence without a full stop, and a cure: {:?}", lint.name, it.message));
            }
        }
        if findings(lint.example(), lint, Level::Allow).iter().any(|it| it.code == Name::Lint(lint.name)) {
            wrong.push(format!("{}: is shown although it is allowed", lint.name));
        }
        if lint.summary.is_empty() || lint.why.is_empty() {
            wrong.push(format!("{}: is not explained", lint.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_code_of_warnings_has_no_status() {
    let folder = Folder::new();
    for (code, says) in [
        ("UNREVIEWED_SECRETS", "Severity: warning"),
        ("KNOWN_FINDINGS", "Severity: warning"),
        ("STALE", "HTTP status: "),
    ] {
        let out = folder.ok(&format!("explain ERR_EDGEWRIGHT_{code}")).out;
        assert!(out.contains(says) && out.contains("HTTP status") != (says == "Severity: warning"), "{out}");
    }
}

#[test]
fn names_are_unique_and_explained() {
    let names: std::collections::BTreeSet<_> = LINTS.iter().map(|lint| lint.name).collect();
    assert_eq!(names.len(), LINTS.len());
    let folder = Folder::new();
    for lint in LINTS {
        let run = folder.ok(&format!("explain {}", lint.name));
        for part in [lint.name, lint.why, lint.cure] {
            assert!(run.out.contains(part), "{}: {}", lint.name, run.out);
        }
    }
}

#[test]
fn the_storefront_has_nothing_to_find() {
    let tree = Disk::new([format!("{REPOSITORY}/examples/storefront")]);
    let found = validate(&tree, &LintLevels::default()).diagnostics;
    let shown: Vec<_> = found.iter().map(|it| format!("{:?} {} {}", it.position(), it.code, it.message)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn a_realistic_configuration_has_nothing_to_find() {
    let folder = format!("{REPOSITORY}/tests/clean");
    let text = std::fs::read_to_string(format!("{folder}/edges.yaml")).unwrap();
    assert!(text.matches("match_type:").count() >= 40);
    let found = validate(&Disk::new([folder]), &LintLevels::default()).diagnostics;
    let shown: Vec<_> = found.iter().map(|it| format!("{:?} {} {}", it.position(), it.code, it.message)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

/// Each file is validated on its own, so that lints about several resources see only those that belong together.
#[test]
fn a_dubious_file_has_the_expected_findings_and_no_others() {
    let folder = format!("{REPOSITORY}/tests/dubious");
    let text = std::fs::read_to_string(format!("{folder}/expected.txt")).unwrap();
    let mut expected: Vec<String> = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    // Off by default.
    let levels =
        LintLevels { levels: BTreeMap::from([("open-login".to_owned(), Level::Warn)]), ..LintLevels::default() };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".yaml") {
            let diagnostics = validate(&Disk::new([format!("{folder}/{name}")]), &levels).diagnostics;
            found.extend(diagnostics.iter().map(|it| {
                let (_, line, column) = it.position().unwrap();
                format!("{name}:{line}:{column} {}", it.code)
            }));
        }
    }
    expected.sort();
    found.sort();
    let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    let others: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    assert_eq!(found, expected, "missing: {missing:#?}\nnot expected: {others:#?}");
}

#[test]
fn a_path_without_its_slash_is_told_with_it() {
    let lint = LINTS.iter().find(|lint| lint.name == "unserved-host").unwrap();
    let said = |matched: &str| {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  \
             hostports: ['shop.example.com:443']\n  routes:\n    - name: a\n      match_type: path_prefix\n      \
             match: '{matched}'\n      backend: {{backend_id: bkd_1}}\n"
        );
        let found = findings(&text, lint, Level::Warn);
        found.into_iter().find(|it| it.code == Name::Lint("unserved-host")).map(|it| it.message).unwrap_or_default()
    };
    for (matched, meant) in [("foo", "/foo"), ("api/v1/", "/api/v1/")] {
        let message = said(matched);
        assert!(message.ends_with(&format!("; did you mean `{meant}`?")), "{message}");
    }
    for matched in ["api/*", "wiki.example.org"] {
        let message = said(matched);
        assert!(!message.contains("did you mean"), "{message}");
    }
}

#[test]
fn a_wildcard_that_no_request_meets_is_told_with_and_without_a_port() {
    let lint = LINTS.iter().find(|lint| lint.name == "unserved-host").unwrap();
    let said = |matched: &str| {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  \
             hostports: ['*.example.com:443']\n  routes:\n    - name: a\n      match_type: path_prefix\n      \
             match: '{matched}'\n      backend: {{backend_id: bkd_1}}\n"
        );
        let found = findings(&text, lint, Level::Warn);
        found.into_iter().find(|it| it.code == Name::Lint("unserved-host")).map(|it| it.message).unwrap_or_default()
    };
    for matched in ["*a.example.com/x", "*a.example.com:443/x", "*/x", "*:443/x", "*.example.com:443/x"] {
        assert_eq!(said(matched), "", "{matched}");
    }
    for host in ["*a.example.com:8443", "*:8443", "*a.example.org", "*a.example.org:443"] {
        assert_eq!(said(&format!("{host}/x")), format!("no hostport of this edge covers `{host}`"));
    }
    for host in ["a.*.example.com", "a.*.example.com:443", "**.example.com", "**.example.com:443", "*.*.com:443"] {
        let expected = format!("`{host}` is not a host: a wildcard must be its first character, as in `*.shop.com`");
        assert_eq!(said(&format!("{host}/x")), expected);
    }
    assert!(said("*.example.com:0/x").contains("`*.example.com:0` is read as a host"));
    assert!(said("*a.example.com:0/x").contains("`*a.example.com:0` is read as a host"));
}

#[test]
fn a_manifest_sets_the_level_of_a_lint_for_itself() {
    let folder = Folder::new();
    let route = |annotation: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: a, annotations: {{{annotation}}}}}\nspec:\n  \
             hostports: [a.example.com:443]\n  routes:\n  - {{name: r, match_type: path_prefix, match: /}}\n"
        )
    };
    folder.write("m/a.yaml", &route(""));
    let warned = folder.run("validate m");
    assert_eq!((warned.code, warned.err.contains("route-without-backend")), (0, true), "{}", warned.err);
    folder.write("m/a.yaml", &route("edgewright/lint.route-without-backend: allow"));
    assert!(!folder.ok("validate m").err.contains("route-without-backend"));
    folder.write("m/a.yaml", &route("edgewright/lint.route-without-backend: deny"));
    for verb in ["validate m", "plan m", "reconcile m"] {
        let denied = folder.run(verb);
        assert_eq!(denied.code, 3, "{verb}: {}", denied.err);
        assert!(denied.err.contains("m/a.yaml:7:"), "{verb}: {}", denied.err);
    }
    folder.write("m/a.yaml", &route("edgewright/lint.route-without-backnd: deny"));
    let unknown = folder.run("validate m");
    assert_eq!(unknown.code, 3);
    assert!(unknown.err.contains("route-without-backend`?"), "{}", unknown.err);
}

#[test]
fn what_another_source_has_counts_too() {
    let folder = Folder::new();
    let edge = |name: &str, host: &str| edge_with(name, &format!("{{hostports: [\"{host}:443\"]}}"));
    let route = |name: &str, edge: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: {name}}}\nspec: {{edge: {edge}, match_type: \
             path_prefix, match: /cart, backend: {{backend_id: bkd_1}}}}\n"
        )
    };
    let delegates = "spec: {delegates_to: [{source: b, path_prefix: /}], ";
    folder.write("a/edge.yaml", &edge("shop", "shop.example.com").replace("spec: {", delegates));
    folder.write("a/route.yaml", &route("cart", "shop"));
    folder.ok("reconcile --source a a");

    folder.write("b/route.yaml", &route("basket", "shop"));
    let run = folder.run("reconcile --source b b");
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(run.err.contains("duplicate-match") && run.err.contains("[b/route.yaml:4:"), "{}", run.err);
    assert!(run.err.contains("of source `a` already matches `/cart` on this edge"), "{}", run.err);

    folder.ok("reconcile --source a a");

    // A rollback brings back a hostport that the other source has taken since.
    folder.write("b/route.yaml", &edge("campaign", "Sale.example.com"));
    folder.ok("reconcile --source b b");
    let before = folder.snapshot("store").revision;
    folder.write("b/route.yaml", &edge("campaign", "campaign.example.com"));
    folder.ok("reconcile --source b b");
    folder.write("a/edge.yaml", &edge("shop", "sale.example.com").replace("spec: {", delegates));
    folder.ok("reconcile --source a a");
    folder.ok(&format!("rollback --to {before} --source b"));
    folder.write("b/route.yaml", &edge("campaign", "Sale.example.com"));
    let run = folder.run("reconcile --source b b");
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(run.err.contains("duplicate-hostport") && run.err.contains("of source `a` already serves"), "{}", run.err);
}

#[test]
fn each_open_port_of_a_protected_host_is_reported() {
    let folder = Folder::new();
    let edge = |index: u16| {
        let restriction = if index.is_multiple_of(2) { "" } else { ", ip_restriction: {ip_policy_ids: [ipp_office]}" };
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: e{index}}}\nspec:\n  hostports: \
             ['a.example.com:{}']\n  routes:\n  - {{name: r, match_type: path_prefix, match: /, backend: {{backend_id: \
             bkd_a}}{restriction}}}\n---\n",
            1000 + index
        )
    };
    folder.write("m/a.yaml", &(0..100).map(edge).collect::<String>());
    let found = validate(&Disk::new([folder.path("m")]), &LintLevels::default()).diagnostics;
    let open = found.iter().filter(|it| it.code == Name::Lint("bypassed-protection")).count();
    assert_eq!(open, 50, "{found:#?}");
}

#[test]
fn of_two_duplicates_the_later_one_is_reported() {
    let document = |kind: &str, name: &str, spec: &str| {
        format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
    };
    let edge = "hostports: ['a.example.com:443']";
    let restriction = "type: api, ip_policy_ids: [ipp_1]";
    // IDs depend on names, so several names have IDs in either order.
    for names in [["e", "f"], ["e", "g"], ["e", "j"], ["f", "e"], ["g", "e"], ["j", "e"]] {
        for (lint, kind, spec) in
            [("duplicate-hostport", "HttpsEdge", edge), ("duplicate-restriction", "IpRestriction", restriction)]
        {
            let folder = Folder::new();
            let [first, second] = names.map(|name| document(kind, name, spec));
            folder.write("m/a.yaml", &first);
            folder.write("m/b.yaml", &second);
            let found = findings_in(&folder, "m/b.yaml m/a.yaml", lint);
            assert_eq!(found, ["m/b.yaml:4 m/a.yaml:4"], "{lint} {names:?}");
        }
        let [one, two] = names
            .map(|name| format!("{{name: {name}, match_type: path_prefix, match: /, backend: {{backend_id: bkd_1}}}}"));
        let folder = Folder::new();
        folder.write("m/a.yaml", &document("HttpsEdge", "shop", &format!("{edge}, routes: [\n{one},\n{two}]")));
        assert_eq!(findings_in(&folder, "m", "duplicate-match"), ["m/a.yaml:6 m/a.yaml:5"], "{names:?}");
    }
}

/// The files and lines of a lint's findings, each with its related ones.
fn findings_in(folder: &Folder, paths: &str, lint: &str) -> Vec<String> {
    let run = folder.run(&format!("validate {paths} --format json"));
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let spot = |it: &serde_json::Value| format!("{}:{}", it["file"].as_str().unwrap(), it["line"]);
    let found = report["diagnostics"].as_array().unwrap().iter().filter(|it| it["code"] == lint);
    let lines = found.map(|it| {
        let related = it["related"].as_array().unwrap().iter().map(spot);
        std::iter::once(spot(it)).chain(related).collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}
