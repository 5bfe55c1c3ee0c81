//! A fault with one cause is reported once, not again wherever something depends on it.

use serde_json::Value;

use crate::support::manifests::edge_with;
use crate::support::program::{Folder, rounds};

/// The code, message and number of related places of each diagnostic.
fn told(folder: &Folder) -> Vec<(String, String, usize)> {
    let run = folder.run("validate m --format json");
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()));
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    let diagnostics = report["diagnostics"].as_array().unwrap();
    let of = |it: &Value| (text(it, "code"), text(it, "message"), it["related"].as_array().unwrap().len());
    diagnostics.iter().map(of).collect()
}

fn routes(edge: &str, sets: &str, count: usize) -> String {
    let route = |at: usize| {
        format!(
            "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: r-{at}}}\nspec: {{edge: {edge}, \
             match_type: exact_path, match: /{at}, backend: {{backend_id: bkd_1}}, modules_from: [{sets}]}}\n"
        )
    };
    (0..count).map(route).collect()
}

fn edge(name: &str, hostport: &str) -> String {
    edge_with(name, &format!("{{hostports: [\"{hostport}\"]}}"))
}

#[test]
fn an_unknown_name_is_one_error_with_its_places() {
    let folder = Folder::new();
    folder.write("m/edge.yaml", &edge("shop", "shop.example.com:443"));
    folder.write("m/routes.yaml", &routes("shop", "sharred", 50));
    let expected =
        |message: &str, related| ("ERR_EDGEWRIGHT_UNKNOWN_REFERENCE".to_owned(), message.to_owned(), related);
    assert_eq!(told(&folder), [expected("unknown ModuleSet `sharred` (in 50 places)", 10)]);
    folder.write("m/routes.yaml", &routes("shp", "", 3));
    assert_eq!(told(&folder), [expected("unknown HttpsEdge `shp` (in 3 places)", 2)]);
    folder.write("m/routes.yaml", &routes("shp", "", 1));
    assert_eq!(told(&folder), [expected("unknown HttpsEdge `shp`", 0)]);
}

#[test]
fn a_faulty_edge_is_not_unknown_to_its_routes() {
    for (edge_text, name, code) in [
        (edge("shop", "shop.example.com"), "shop", "INVALID_FORMAT"),
        (edge("Shop", "shop.example.com:443"), "Shop", "INVALID_NAME"),
        (edge("shop", "shop.example.com:443") + "  - x\n", "shop", "SYNTAX"),
        (edge("shop", "shop.example.com:443").replace("spec: {", "spec: {x: {{{"), "shop", "SYNTAX"),
        (
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec: x\n".to_owned(),
            "shop",
            "WRONG_TYPE",
        ),
    ] {
        let folder = Folder::new();
        folder.write("m/edge.yaml", &edge_text);
        folder.write("m/routes.yaml", &routes(name, "", 20));
        let codes: Vec<String> = told(&folder).into_iter().map(|(code, ..)| code).collect();
        assert_eq!(codes, [format!("ERR_EDGEWRIGHT_{code}")], "{edge_text}");
    }
}

#[test]
fn metadata_of_the_wrong_type_does_not_also_lack_a_name() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", "a.example.com:443").replace("{name: a}", "a"));
    let told = told(&folder);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.starts_with("`metadata` must be a mapping"), "{told:?}");
}

const SET: &str = "\
apiVersion: edgewright/v1
kind: ModuleSet
metadata: {name: m}
spec:
  user_agent_filter: {deny: ['(a']}
  oidc: {issuer: 'http://id.example.com', client_id: a, client_secret: {from_file: secret}}
  ip_restriction: {ip_policy_ids: [bkd_1, bkd_1]}
";

fn with_set(set: &str, routes: &str) -> Folder {
    let folder = Folder::new();
    folder.write("m/edge.yaml", &edge("shop", "shop.example.com:443"));
    folder.write("m/routes.yaml", routes);
    folder.write("m/secret", "x");
    folder.write("m/sets.yaml", set);
    folder
}

/// The code, place and related places of each diagnostic, and its message.
fn placed(folder: &Folder) -> Vec<(String, String)> {
    let run = folder.run("validate m --format json");
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()));
    let spot = |it: &Value| format!("{}:{}:{}", it["file"].as_str().unwrap(), it["line"], it["column"]);
    let of = |it: &Value| {
        let mut line = format!("{} {}", it["code"].as_str().unwrap(), spot(it));
        for related in it["related"].as_array().unwrap() {
            line += &format!(", {}: {}", related["message"].as_str().unwrap(), spot(related));
        }
        (line, it["message"].as_str().unwrap().to_owned())
    };
    report["diagnostics"].as_array().unwrap().iter().map(of).collect()
}

/// Writes documents as one file, and returns the lines of its diagnostics.
fn of_documents(documents: &[&str]) -> Vec<String> {
    let folder = Folder::new();
    let text: Vec<String> = documents.iter().map(|it| format!("apiVersion: edgewright/v1\n{it}\n")).collect();
    folder.write("m/a.yaml", &text.join("---\n"));
    lines(&folder)
}

fn lines(folder: &Folder) -> Vec<String> {
    placed(folder).into_iter().map(|(line, _)| line).collect()
}

#[test]
fn a_mistake_in_a_module_set_is_one_finding_at_its_line() {
    let folder = with_set(SET, &routes("shop", "m", 2));
    let uses = ", used here: m/routes.yaml:5:100, used here: m/routes.yaml:10:100";
    let found = placed(&folder);
    let mut lines: Vec<&str> = found.iter().map(|(line, _)| line.as_str()).collect();
    lines.sort_unstable();
    let expected = [
        format!("duplicate-entry m/sets.yaml:7:43, first entry: m/sets.yaml:7:36{uses}"),
        format!("invalid-user-agent-pattern m/sets.yaml:5:30{uses}"),
        format!("oidc-incomplete m/sets.yaml:6:18{uses}"),
        format!("wrong-id-prefix m/sets.yaml:7:36{uses}"),
    ];
    assert_eq!(lines, expected);
    assert!(found.iter().all(|(line, _)| line.contains(" m/sets.yaml:")), "{found:?}");
    assert!(found.iter().all(|(_, message)| message.ends_with("(in ModuleSet `m`, used by 2 routes)")), "{found:?}");

    folder.write("m/routes.yaml", &routes("shop", "m", 200));
    let many = placed(&folder);
    assert_eq!(many.len(), found.len(), "{many:?}");
    for (line, message) in many {
        assert!(message.ends_with("used by 200 routes)"), "{message}");
        assert_eq!(line.matches("used here").count(), 10, "{line}");
    }
}

#[test]
fn a_module_set_sets_the_levels_of_its_findings() {
    let note = "metadata: {name: m, annotations: {edgewright/lint.oidc-incomplete: allow, \
                edgewright/lint.duplicate-entry: deny}}";
    let folder = with_set(&SET.replace("metadata: {name: m}", note), &routes("shop", "m", 3));
    let run = folder.run("validate m");
    assert_eq!(run.code, 3, "{}", run.all());
    assert!(run.err.contains("1 error,") && !run.err.contains("oidc-incomplete"), "{}", run.err);

    // The routes that use a set with denied findings are skipped, and no others.
    folder.write("m/edge.yaml", &format!("{}{}", edge("shop", "shop.example.com:443"), routes("shop", "", 1)));
    folder.write(
        "m/routes.yaml",
        &routes("shop", "m", 3).replace("name: r-", "name: s-").replace("match: /", "match: /s"),
    );
    let run = folder.run("reconcile --isolate m");
    assert_eq!(run.code, 1, "{}", run.all());
    let snapshot = folder.snapshot("store");
    let claims = snapshot.iter().filter_map(|entry| Some(entry.claim.as_deref()?.name.clone()));
    let names: Vec<String> = claims.filter(|name| name.starts_with("r-") || name.starts_with("s-")).collect();
    assert_eq!(names, ["r-0"]);
}

#[test]
fn a_module_of_the_route_is_found_in_the_route() {
    let own = routes("shop", "m", 1).replace("modules_from", "user_agent_filter: {deny: ['(b']}, modules_from");
    let folder = with_set(SET, &own);
    let found = lines(&folder);
    let of_pattern: Vec<&String> = found.iter().filter(|it| it.starts_with("invalid-user-agent-pattern")).collect();
    assert_eq!(of_pattern.len(), 1, "{found:?}");
    assert!(of_pattern[0].starts_with("invalid-user-agent-pattern m/routes.yaml:5:"), "{found:?}");
    assert!(found.iter().any(|it| it.starts_with("oidc-incomplete m/sets.yaml:6:18")), "{found:?}");
}

#[test]
fn a_finding_about_a_route_with_the_module_of_a_set_stays_at_the_route() {
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: m}\n\
               spec: {backend: {enabled: false, backend_id: bkd_1}}\n";
    let with_backend = routes("shop", "m", 2);
    let folder = with_set(set, &with_backend.replace("backend: {backend_id: bkd_1}, ", ""));
    let found: Vec<String> = lines(&folder).into_iter().filter(|it| it.starts_with("route-without-backend")).collect();
    let at = "from this module set: m/sets.yaml:4:27";
    assert_eq!(found, [5, 10].map(|line| format!("route-without-backend m/routes.yaml:{line}:70, {at}")),);

    // Two logins, of which only one is from the set.
    let login = "oauth: {provider: {google: {email_domains: [example.com]}}}, modules_from";
    let folder = with_set(SET, &with_backend.replace("modules_from", login));
    let found: Vec<String> =
        lines(&folder).into_iter().filter(|it| it.starts_with("conflicting-authentication")).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|it| it.contains(" m/routes.yaml:") && it.contains(" m/sets.yaml:6:")), "{found:?}");
}

#[test]
fn a_module_that_an_edge_cannot_apply_is_found_where_the_route_takes_it() {
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: m}\nspec: {compression: {}}\n";
    let folder = with_set(set, &routes("shop", "m", 1));
    let passing =
        edge("shop", "shop.example.com:443").replace("spec: {", "spec: {tls_termination: {terminate_at: upstream}, ");
    folder.write("m/edge.yaml", &passing);
    let found = lines(&folder);
    let of_set = "ERR_EDGEWRIGHT_NOT_ALLOWED m/routes.yaml:5:100, from this module set: m/sets.yaml:4:8";
    assert!(found.iter().any(|it| it == of_set), "{found:?}");
}

#[test]
fn unknown_names_of_one_file_are_limited_and_counted() {
    let folder = Folder::new();
    folder.write("m/edge.yaml", &edge("shop", "shop.example.com:443"));
    let count = rounds(500, 3_000);
    let text: String = (0..count)
        .map(|at| {
            routes("shop", &format!("x{at}"), 1)
                .replace("r-0", &format!("r-{at}"))
                .replace("match: /0", &format!("match: /{at}"))
        })
        .collect();
    folder.write("m/routes.yaml", &text);
    let told = told(&folder);
    assert_eq!(told.len(), 100);
    assert!(told[99].1.ends_with(&format!(" (and {} more errors in this file)", count - 100)), "{:?}", told[99]);
    let run = folder.run("validate m");
    for part in [
        format!("2 files read: {count} errors"),
        format!("… and {} more in m/routes.yaml", count - 20),
        "Use --format json to list up to 100 errors and 100 warnings per file.".to_owned(),
    ] {
        assert!(run.err.contains(&part), "{part}: {}", run.err);
    }
}

#[test]
fn an_error_hides_no_finding_in_other_resources() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", "a.example.com:443"));
    folder.write("m/b.yaml", &edge("b", "a.example.com:443"));
    folder.write("m/c.yaml", &edge("c", "c.example.com:443").replace("hostports", "hostprots"));
    folder.write("m/routes.yaml", &routes("a", "", 1).replace("backend: {backend_id: bkd_1}, ", ""));
    // Its route may be in a document with errors.
    folder.write(
        "m/set.yaml",
        "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: m}\nspec: {compression: {}}\n",
    );
    let wanted = [
        "duplicate-hostport m/b.yaml:4:20, the other edge: m/a.yaml:4:20",
        "ERR_EDGEWRIGHT_UNKNOWN_FIELD m/c.yaml:4:8",
        "route-without-backend m/routes.yaml:5:48",
    ];
    assert_eq!(lines(&folder), wanted);
    for verb in ["validate m", "plan m", "plan --isolate m"] {
        let run = folder.run(verb);
        assert_eq!(run.code, if verb.contains("isolate") { 1 } else { 3 }, "{}", run.all());
        for part in ["duplicate-hostport\n", "route-without-backend\n", "UNKNOWN_FIELD\n"] {
            assert_eq!(run.err.matches(part).count(), 1, "{verb}: {part}: {}", run.err);
        }
        assert!(!run.err.contains("unused-module-set"), "{verb}: {}", run.err);
    }

    folder.edit("m/c.yaml", "hostprots", "hostports");
    let found = lines(&folder);
    assert!(found.iter().any(|line| line.starts_with("unused-module-set m/set.yaml:")), "{found:?}");
}

#[test]
fn a_resource_with_errors_is_not_judged_and_neither_are_its_dependents() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", "*.example.com").replace("spec: {", "spec: {mutual_tls: {}, "));
    folder.write("m/b.yaml", &edge("b", "b.example.com:443").replace("spec: {", "spec: {mutual_tls: {}, "));
    folder.write("m/routes.yaml", &routes("a", "", 1).replace("backend: {backend_id: bkd_1}, ", ""));
    let found = lines(&folder);
    let codes: Vec<&str> = found.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(codes, ["ERR_EDGEWRIGHT_INVALID_FORMAT", "empty-mutual-tls"], "{found:?}");
}

#[test]
fn a_repeated_id_is_one_error_at_its_place() {
    let tls = |name: &str| {
        format!("kind: TlsEdge\nmetadata:\n  name: {name}\n  id: edgtls_1\nspec: {{backend: {{backend_id: bkd_1}}}}")
    };
    let repeated = ["ERR_EDGEWRIGHT_DUPLICATE_NAME m/a.yaml:12:7, first here: m/a.yaml:5:7"];
    assert_eq!(of_documents(&[&tls("a"), &tls("b")]), repeated);
    let subscription = |name: &str| {
        format!(
            "kind: EventSubscription\nmetadata:\n  name: {name}\n  id: evs_1\nspec: {{sources: [{{type: ip_policy_created.v0}}, {{type: ip_policy_updated.v0}}]}}"
        )
    };
    let found = of_documents(&[&subscription("a"), &subscription("b")]);
    let errors: Vec<&String> = found.iter().filter(|line| line.starts_with("ERR_")).collect();
    assert_eq!(errors, repeated.iter().collect::<Vec<_>>(), "{found:?}");
    // The document as a whole is repeated.
    let copied = of_documents(&[&tls("a"), &tls("a")]);
    assert_eq!(copied, ["ERR_EDGEWRIGHT_DUPLICATE_NAME m/a.yaml:11:9, first here: m/a.yaml:4:9"]);
}

#[test]
fn a_prefix_that_hides_another_route_is_one_finding() {
    let edge = |other: &str| {
        format!(
            "kind: HttpsEdge\nmetadata: {{name: app}}\nspec:\n  hostports: ['app.example.com:443']\n  routes:\n  \
             - {{match_type: exact_path, match: /admin, backend: {{backend_id: bkd_1}}}}\n  \
             - {{match_type: path_prefix, match: {other}, backend: {{backend_id: bkd_2}}}}"
        )
    };
    let found = of_documents(&[&edge("app.example.com/a")]);
    assert_eq!(found, ["partial-segment-prefix m/a.yaml:8:38, the other route: m/a.yaml:7:37"]);
    let found = of_documents(&[&edge("app.example.com/")]);
    assert_eq!(found, ["shadowed-route m/a.yaml:7:37, the other route: m/a.yaml:8:38"]);
}
