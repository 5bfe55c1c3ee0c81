//! `--isolate`: what is faulty is set aside with what depends on it, and the rest goes on (D44).

use edgewright::resources::Kind;

use crate::support::manifests::edge_with;
use crate::support::program::Folder;

const PEM: &str = include_str!("../../../examples/storefront/certs/staff-devices.pem");

fn edge(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: [\"{name}.example.com:443\"]\n{spec}"
    )
}

fn authority(pem: &str) -> String {
    let indented = pem.replace('\n', "\n    ");
    format!(
        "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {{name: staff}}\nspec:\n  ca_pem: |\n    {indented}\n"
    )
}

fn route(name: &str, of: &str, more: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: {name}}}\nspec:\n  edge: {of}\n  match_type: path_prefix\n  match: /{name}\n  backend: {{backend_id: bkd_1}}\n{more}"
    )
}

/// Names of what the store holds.
fn held(folder: &Folder) -> Vec<String> {
    let snapshot = folder.snapshot("store");
    let claimed = snapshot.iter().filter(|entry| entry.key.kind != Kind::Owner);
    let mut names: Vec<_> = claimed.filter_map(|entry| Some(entry.claim.as_deref()?.name.clone())).collect();
    names.sort();
    names
}

#[test]
fn the_faulty_and_its_dependents_are_left_out_and_the_rest_is_applied() {
    let folder = Folder::new();
    folder.write("m/good.yaml", &edge("good", ""));
    folder.write("m/good-route.yaml", &route("fine", "good", ""));
    folder.write("m/bad.yaml", &edge("bad", "  hostport: []\n"));
    folder.write("m/bad-route.yaml", &route("of-bad", "bad", ""));
    folder.write("m/ca.yaml", &authority("no certificate"));
    folder.write("m/needs-ca.yaml", &edge("needs-ca", "  mutual_tls: {certificate_authority_ids: [staff]}\n"));
    folder.write(
        "m/set.yaml",
        "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: login}\nspec: {oidc: {isuer: x}}\n",
    );
    // Without its login this route would be open to the world.
    folder.write("m/protected.yaml", &route("protected", "good", "  modules_from: [login]\n"));
    let whole = folder.run("reconcile m");
    assert_eq!(whole.code, 3, "{}", whole.all());

    let run = folder.run("reconcile --isolate m");
    assert_eq!(run.code, 1, "{}", run.all());
    for (code, place) in
        [("UNKNOWN_FIELD", "m/bad.yaml:6:3"), ("INVALID_PEM", "m/ca.yaml:5:11"), ("UNKNOWN_FIELD", "m/set.yaml:4:15")]
    {
        assert!(run.err.contains(code) && run.err.contains(place), "{place}: {}", run.err);
    }
    for left_out in ["bad", "bad/of-bad", "staff", "needs-ca", "good/protected"] {
        assert!(
            run.err.lines().any(|line| line.starts_with("Skipped: ") && line.contains(&format!(" {left_out} ("))),
            "{left_out}: {}",
            run.err
        );
    }
    assert_eq!(held(&folder), ["fine", "good"]);
}

#[test]
fn a_document_is_applied_or_skipped_as_a_whole() {
    let folder = Folder::new();
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: login}\nspec: {compression: {}}\n";
    folder.write("m/set.yaml", set);
    let routes = |routes: &[(&str, &str, &str)]| {
        let route = |(name, path, set): &(&str, &str, &str)| {
            format!(
                "  - {{name: {name}, match_type: path_prefix, match: {path}, backend: {{backend_id: bkd_1}}{set}}}\n"
            )
        };
        edge("shop", &format!("  routes:\n{}", routes.iter().map(route).collect::<String>()))
    };
    folder.write("m/shop.yaml", &routes(&[("root", "/", ", modules_from: [login]")]));
    folder.write("m/other.yaml", &edge("other", ""));
    folder.ok("reconcile m");
    // Without the second route, the first one opens its paths.
    folder.write("m/shop.yaml", &routes(&[("root", "/", ""), ("admin", "/admin/", ", modules_from: [logn]")]));
    folder.write("m/other.yaml", &edge("other", "  description: changed\n"));
    let run = folder.run("reconcile --isolate m");
    assert_eq!(run.code, 1, "{}", run.all());
    for left_out in ["shop", "shop/root", "shop/admin"] {
        let says = |line: &str| line.starts_with("Skipped: ") && line.contains(&format!(" {left_out} ("));
        assert!(run.err.lines().any(says), "{left_out}: {}", run.err);
    }
    assert!(run.all().contains("other"), "{}", run.all());
    let trace = folder.run("trace https://shop.example.com/admin/ --store store");
    assert!(trace.out.contains("compression"), "{}", trace.all());
}

#[test]
fn nothing_is_deleted_until_all_is_in_order() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", ""));
    folder.write("m/b.yaml", &edge("b", ""));
    folder.write("m/ca.yaml", &authority(PEM));
    folder.ok("reconcile m");
    std::fs::remove_file(folder.path("m/a.yaml")).unwrap();
    folder.write("m/b.yaml", &edge("b", "  description: [\n"));
    folder.write("m/c.yaml", &edge("c", ""));
    assert_eq!(folder.run("reconcile --isolate m").code, 1);
    assert_eq!(held(&folder), ["a", "b", "c", "staff"]);
    folder.write("m/b.yaml", &edge("b", "  description: mended\n"));
    folder.ok("reconcile --isolate m");
    assert_eq!(held(&folder), ["b", "c", "staff"]);
}

#[test]
fn of_two_declarations_of_one_name_neither_is_applied() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("twice", "  description: one\n"));
    folder.write("m/b.yaml", &format!("{}---\n{}", edge("twice", "  description: two\n"), edge("other", "")));
    let set = |provider: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: login}}\nspec: {{compression: {{enabled: {provider}}}}}\n"
        )
    };
    folder.write("m/one-set.yaml", &set("true"));
    folder.write("m/two-sets.yaml", &set("false"));
    folder.write("m/route.yaml", &route("protected", "other", "  modules_from: [login]\n"));
    folder.write("m/of-twice.yaml", &route("of-twice", "twice", ""));
    let run = folder.run("reconcile --isolate m");
    assert_eq!(run.code, 1, "{}", run.all());
    assert_eq!(run.err.matches("ERR_EDGEWRIGHT_DUPLICATE_NAME").count(), 2, "{}", run.err);
    assert_eq!(held(&folder), ["other"]);
}

#[test]
fn a_broken_file_does_not_switch_off_what_lints_deny() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", ""));
    folder.write("m/two.yaml", &edge("two", "").replace("two.example.com", "one.example.com"));
    folder.write("m/zz.yaml", "apiVersion: [\n");
    let run = folder.run("plan --isolate m");
    assert_eq!((run.code, run.err.contains("duplicate-hostport")), (1, true), "{}", run.all());
    assert_eq!(run.out.matches("+ HttpsEdge ").count(), 1, "{}", run.all());
}

#[test]
fn what_is_skipped_stays_in_service_and_its_hosts_are_taken() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", ""));
    folder.write("m/two.yaml", &edge("two", ""));
    folder.ok("reconcile m");
    folder.write("m/one.yaml", &edge("one", "").replace("one.example.com", "two.example.com"));
    folder.write("m/two.yaml", &edge("two", "  hostport: []\n"));
    let run = folder.run("reconcile --isolate m");
    assert!(run.code == 1 && run.err.contains("duplicate-hostport"), "{}", run.all());
    let trace = folder.run("trace https://one.example.com/ --store store");
    assert!(trace.out.contains("one.example.com"), "{}", trace.all());
}

#[test]
fn what_is_not_deleted_stays_in_service_and_its_hosts_are_taken() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", ""));
    folder.ok("reconcile m");
    folder.write("m/one.yaml", &edge("two", "").replace("two.example.com", "one.example.com"));
    for (verb, code) in [("plan", 3), ("reconcile", 3), ("reconcile --isolate", 1)] {
        let run = folder.run(&format!("{verb} --prune=false m"));
        let said = "of source `default` already serves `one.example.com:443`";
        assert_eq!((run.code, run.err.matches(said).count()), (code, 1), "{verb}: {}", run.all());
    }
    folder.ok("reconcile --max-deletes 100% m");
}

#[test]
fn of_two_renames_of_one_resource_neither_is_applied() {
    let folder = Folder::new();
    let edge = |name: &str, more: &str, host: &str| {
        edge_with(&format!("{name}{more}"), &format!("{{hostports: [\"{host}:443\"]}}"))
    };
    folder.write("m/1.yaml", &edge("a", "", "a.example.com"));
    folder.ok("reconcile m");
    for (first, second) in [("p", "q"), ("q", "p")] {
        folder.write("m/1.yaml", &edge(first, ", renamed_from: a", "first.example.com"));
        folder.write("m/2.yaml", &edge(second, ", renamed_from: a", "second.example.com"));
        let run = folder.run("reconcile --isolate m");
        assert_eq!(run.code, 1, "{}", run.all());
        assert_eq!(folder.snapshot("store").revision, 1, "{}", run.all());
    }
}
