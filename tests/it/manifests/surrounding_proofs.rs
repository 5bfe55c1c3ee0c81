//! What surrounding manifests (`--with`) mean for proofs and tests: their routes count, and whatever they do not show is never
//! proven (D107, D120).

use serde_json::Value;

use super::invariants::{LOGIN, folder, platform, said, shop};
use crate::support::program::Folder;

/// A route by itself to `/admin/x/`, without a login and with a backend unless `closed`.
fn route(edge: &str, closed: bool) -> String {
    let backend = if closed { "" } else { ", backend: {backend_id: bkd_other}" };
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: open}}\nspec: {{edge: {edge}, match_type: \
         path_prefix, match: /admin/x/{backend}}}\n"
    )
}

/// The answers of a run without a store, by the names of the invariants, with what was not seen.
pub(super) fn answers(folder: &Folder, line: &str) -> Vec<(String, String, String)> {
    let run = folder.run(&format!("prove {line} --format json"));
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.all()));
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let unseen = |it: &Value| it["unseen"].as_array().unwrap().iter().map(text).collect::<Vec<_>>().join("; ");
    let proofs = report["proofs"]["invariants"].as_array().unwrap_or_else(|| panic!("{}", run.all()));
    proofs.iter().map(|it| (text(&it["invariant"]), text(&it["answer"]), unseen(it))).collect()
}

#[test]
fn surrounding_routes_on_edges_of_the_source_count_in_both_directions() {
    let folder = folder();
    folder.write(
        "shop/shop.yaml",
        &shop(LOGIN).replace("spec:\n", "spec:\n  delegates_to: [{source: other, path_prefix: /admin/x/}]\n"),
    );
    for edge in ["shop/shop", "shop"] {
        folder.write("other/route.yaml", &route(edge, false));
        for of_shop in [true, false] {
            let (source, with) = if of_shop { ("shop", "other") } else { ("other", "shop") };
            let run = folder.run(&format!("prove {source} --source {source} --with platform --with {with}"));
            // Surrounding manifests do not tell whether their edge is that of `shop`.
            let is_guess = edge.contains('/') && !of_shop;
            let (code, answer) = if is_guess { (0, "depends") } else { (3, "refuted") };
            assert_eq!(run.code, code, "{edge} {source}: {}", run.all());
            assert!(run.out.contains(answer) && run.out.contains("/admin/x"), "{edge} {source}: {}", run.all());
        }
    }
    // Of which source a surrounding route is, its manifest does not tell.
    let of = |source: &str| platform("").replace("path_prefixes", &format!("sources: [{source}], path_prefixes"));
    folder.write("platform/invariants.yaml", &of("docs"));
    let run = folder.ok("prove shop --source shop --with platform --with other");
    let doubt =
        "depends on the source of the route in the surrounding manifests, which reaches the backend `bkd_other`";
    assert!(run.out.contains(doubt) && run.out.contains("1 depends"), "{}", run.all());
    assert!(!run.err.contains("NOT_DELEGATED"), "{}", run.all());
    // A route that is on no edge is told of.
    folder.write("other/route.yaml", &route("shop/mistyped", false));
    let run = folder.ok("prove shop --source shop --with platform --with other");
    assert!(
        said(&run.err).contains("in the surrounding manifests: unknown HttpsEdge `shop/mistyped`"),
        "{}",
        run.all()
    );
    folder.write("platform/invariants.yaml", &platform(""));
    folder.write("other/route.yaml", &shop(LOGIN).replace("shop", "other"));
    folder.write("other/secret", "hidden-secret");
    let run = folder.ok("prove shop --source shop --with platform --with other");
    assert!(run.out.contains("1 proven"), "{}", run.all());
}

#[test]
fn surrounding_edges_with_one_name_are_what_an_answer_depends_on() {
    let folder = folder();
    for team in ["a", "b"] {
        folder.write(&format!("teams/{team}.yaml"), &shop(LOGIN).replace("shop.ex", &format!("{team}.ex")));
    }
    folder.write("teams/secret", "hidden-secret");
    let elsewhere = platform("").replace("admin-login", "elsewhere").replace("*.example.com", "*.example.org");
    folder.write("platform/elsewhere.yaml", &elsewhere);
    let warning = "in the surrounding manifests: duplicate HttpsEdge `shop`";
    let run = folder.ok("prove platform --source platform --with teams");
    let clause = "depends on HttpsEdge `shop`, which the surrounding manifests declare more than once";
    assert!(run.out.contains(clause) && run.out.ends_with("0 proven, 1 unused, 1 depends\n"), "{}", run.all());
    assert!(said(&run.err).contains(warning), "{}", run.all());
    // Other hosts are those of other edges.
    let found = answers(&folder, "platform --source platform --with teams");
    assert_eq!((&*found[0].0, &*found[0].2), ("elsewhere", ""));
    // A request that breaks the invariant is enough.
    folder.write("teams/a.yaml", &shop(""));
    assert_eq!(folder.run("prove platform --source platform --with teams").code, 3);
    folder.write("teams/a.yaml", &shop(LOGIN));
    folder.edit("platform/invariants.yaml", "  requires_any", "  unproven: deny\n  requires_any");
    let denied = folder.run("prove platform --source platform --with teams --format github");
    assert!(denied.code == 3 && denied.out.contains("::error file=platform/invariants.yaml"), "{}", denied.all());
    // Nothing is judged here.
    folder.write("plain/one.yaml", &shop("").replace("shop.ex", "plain.ex"));
    let run = folder.ok("validate plain --source plain --with teams");
    assert!(!said(&run.err).contains("duplicate"), "{}", run.all());
}

#[test]
fn an_edge_that_no_manifest_declares_is_what_an_answer_depends_on() {
    let folder = folder();
    folder.write("other/route.yaml", &route("edghts_elsewhere", false));
    let clause = "the edge `edghts_elsewhere`, which no manifest declares: add --store or --server";
    let of_other_paths = platform("").replace("admin-login", "docs").replace("/admin", "/docs");
    folder.write("platform/docs.yaml", &of_other_paths);
    // Whether the route is one of the source or a surrounding one.
    for line in ["other shop --with platform", "shop --source shop --with other --with platform"] {
        let found = answers(&folder, line);
        let found: Vec<_> = found.iter().map(|(name, answer, unseen)| (&**name, &**answer, &**unseen)).collect();
        // The route has no other paths.
        assert_eq!(found, [("docs", "proven", ""), ("admin-login", "depends", clause)], "{line}");
    }
    // Without a route, the answer is about everything that there is.
    assert_eq!(answers(&folder, "shop --source shop --with platform")[1].1, "proven");
}

#[test]
fn a_source_before_the_name_of_a_surrounding_edge_is_what_an_answer_depends_on() {
    let folder = folder();
    folder.write(
        "shop/shop.yaml",
        &shop(LOGIN).replace("spec:\n", "spec:\n  delegates_to: [{source: other, path_prefix: /admin/x/}]\n"),
    );
    folder.write("other/route.yaml", &route("bogus/shop", true));
    let answer = || answers(&folder, "other --source other --with platform --with shop");
    let clause = "whether the surrounding edge `shop` is of source `bogus`: add --store or --server";
    assert_eq!((answer()[0].1.as_str(), answer()[0].2.as_str()), ("depends", clause));
    folder.write("other/route.yaml", &route("shop", true));
    assert_eq!(answer()[0].1, "proven");
    // Surrounding manifests are of other sources.
    folder.write("other/route.yaml", &route("other/shop", true));
    let own = folder.run("validate other --source other --with shop");
    assert!(own.code == 3 && said(&own.err).contains("unknown HttpsEdge `other/shop`"), "{}", own.all());
}

#[test]
fn each_invariant_of_one_name_is_answered() {
    let folder = folder();
    let login = |host: &str| platform("").replace("*.example.com", host);
    folder.write("platform/invariants.yaml", &login("shop.example.com"));
    folder.write("teams/a.yaml", &login("a.example.com"));
    folder.write("teams/b.yaml", &login("b.example.com"));
    // The same one again is not another one.
    folder.write("teams/copy.yaml", &login("b.example.com"));
    folder.write("shop/shop.yaml", &shop("").replace("shop.ex", "b.ex"));
    let answered = |line: &str| {
        let answers = answers(&folder, line).into_iter();
        answers.map(|(name, answer, _)| format!("{name} {answer}")).collect::<Vec<_>>()
    };
    let surrounding = ["admin-login unused", "admin-login refuted"];
    assert_eq!(answered("shop --source shop --with teams"), surrounding);
    // Beside those of the source, and of a store.
    let own = [surrounding.as_slice(), &["admin-login unused"][..]].concat();
    assert_eq!(answered("shop platform --source shop --with teams"), own);
    folder.ok("reconcile platform --source platform");
    let stored = [&["admin-login unused"][..], surrounding.as_slice()].concat();
    assert_eq!(answered("shop --source shop --with teams --store store"), stored);
    assert_eq!(answered("shop --source shop --with teams --with platform --store store"), stored);
}

#[test]
fn answers_are_in_the_order_of_files_and_lines() {
    let folder = folder();
    let named = |name: &str| platform("").replace("admin-login", name);
    let names = ["zebra", "ant", "mole", "bee"];
    folder.write(
        "platform/invariants.yaml",
        &names[..3].iter().map(|name| named(name)).collect::<Vec<_>>().join("---\n"),
    );
    folder.write("platform/more.yaml", &named(names[3]));
    for line in ["platform shop", "shop --source shop --with platform"] {
        let answered: Vec<String> = answers(&folder, line).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(answered, names, "{line}");
    }
}

#[test]
fn a_test_of_a_surrounding_edge_does_not_pass_by_the_name_of_a_source() {
    let folder = folder();
    let tests = |edge: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: RouteTest\nmetadata: {{name: portal}}\nspec:\n  requests:\n    \
             - url: https://shop.example.com/admin\n      expect: {{edge: {edge}}}\n"
        )
    };
    folder.write("team/tests.yaml", &tests("shop"));
    folder.ok("test team --source team --with shop");
    folder.write("team/tests.yaml", &tests("bogus/shop"));
    let run = folder.run("test team --source team --with shop");
    assert_eq!(run.code, 3, "{}", run.all());
    let told = said(&run.out);
    for part in [
        "failed team/tests.yaml:6",
        "the edge `shop` of the surrounding manifests takes it, not `bogus/shop`: surrounding manifests do not tell their source",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let validated = folder.run("validate team --source team --with shop");
    assert!(validated.code == 3 && validated.err.contains("team/tests.yaml:7"), "{}", validated.all());
}
