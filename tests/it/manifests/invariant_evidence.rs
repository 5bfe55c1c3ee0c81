//! What an answer about an invariant rests on: requests that clients send, and an earlier state for what it `keeps` (D120).

use serde_json::{Value, json};

use crate::support::{
    git::git,
    program::{Folder, Run},
};

use super::invariants::said;

/// An edge with one route, and an invariant.
fn manifest(matched: &str, modules: &str, requires: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  hostports: ['shop.example.com:443']\n  \
         routes:\n    - {{name: all, match_type: path_prefix, match: '{matched}', backend: {{backend_id: bkd_shop}}{modules}}}\n\
         ---\napiVersion: edgewright/v1\nkind: Invariant\nmetadata: {{name: guarded}}\n\
         spec: {{description: Guarded, {requires}}}\n"
    )
}

fn judged(folder: &Folder) -> Value {
    let run = folder.run("prove m --format json");
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.all()));
    report["proofs"]["invariants"][0].clone()
}

#[test]
fn a_request_that_refutes_an_invariant_is_one_that_a_trace_sends_to_the_route() {
    let folder = Folder::new();
    for matched in ["/a|b", "/caf%C3%A9", "/.", "/"] {
        folder.write("m/all.yaml", &manifest(matched, "", "requires_any: [oidc]"));
        let proof = judged(&folder);
        assert_eq!(proof["answer"], "refuted", "{matched}: {proof}");
        let url = proof["requests"][0]["url"].as_str().unwrap();
        let traced = folder.ok(&format!("trace {url} --manifests m"));
        assert!(said(&traced.out).contains("route all by path_prefix"), "{url}: {}", traced.all());
    }
    // Most clients encode or resolve these in a URL, and the route takes no other spelling.
    for matched in ["/a b", "/é", "/{id}", "/a/../b"] {
        folder.write("m/all.yaml", &manifest(matched, "", "requires_any: [oidc]"));
        let proof = judged(&folder);
        assert_eq!((&proof["answer"], &proof["requests"][0]["certain"]), (&json!("depends"), &json!(false)), "{proof}");
        let pattern = format!("https://shop.example.com{matched}*");
        assert_eq!(proof["requests"][0]["url"], pattern.as_str(), "{proof}");
    }
    let encoded = folder.run("trace https://shop.example.com/a/%2E%2E/b --manifests m");
    assert!(encoded.out.contains("No route matches."), "{}", encoded.all());
}

#[test]
fn what_an_invariant_keeps_is_compared_between_revisions_without_a_store() {
    const FILTER: &str = ", user_agent_filter: {deny: [bot]}";
    let folder = Folder::new();
    let write = |modules: &str| folder.write("m/all.yaml", &manifest("/", modules, "keeps: [user_agent_filter]"));
    write(FILTER);
    git(&folder, "init -q -b main");
    git(&folder, "add .");
    git(&folder, "commit -q -m first");
    let broken = |run: &Run, clause: &str| {
        assert_eq!(run.code, 3, "{}", run.all());
        let told = said(&run.err);
        assert!(told.contains("INVARIANT_BROKEN") && told.contains(clause), "{}", run.all());
        assert!(told.contains("m/all.yaml:7:"), "{}", run.all());
    };
    for (modules, clause) in [
        ("", "`GET https://shop.example.com/` loses `user_agent_filter` on its way"),
        (
            ", user_agent_filter: {}",
            "`GET https://shop.example.com/` is restricted less by `user_agent_filter` on its way",
        ),
    ] {
        write(modules);
        // The manifests of the base are only asked for their warnings.
        assert_eq!(folder.run("validate m --base main").code, 0, "{modules}");
        broken(&folder.run("diff m --rev main"), clause);
    }
    write(", user_agent_filter: {deny: [spider]}");
    let unknown = folder.ok("diff m --rev main");
    assert!(
        said(&unknown.err).contains("depends on whom the changed `user_agent_filter` would admit"),
        "{}",
        unknown.all()
    );
    write(", user_agent_filter: {deny: [bot, spider]}");
    let narrower = folder.ok("diff m --rev main");
    assert!(!narrower.err.contains("INVARIANT"), "{}", narrower.all());
    // A store has the earlier state, too.
    write(FILTER);
    folder.ok("reconcile m");
    write(", user_agent_filter: {}");
    broken(&folder.run("plan m"), "is restricted less by `user_agent_filter`");
}

#[test]
fn programs_read_the_invariant_and_the_request_in_fields() {
    let folder = Folder::new();
    folder.write("m/all.yaml", &manifest("/", ", compression: {}", "requires_any: [oidc]"));
    let read = |format: &str| {
        let run = folder.run(&format!("validate m --source shop --format {format}"));
        assert_eq!(run.code, 3, "{}", run.all());
        serde_json::from_str::<Value>(&run.out).unwrap_or_else(|_| panic!("{}", run.all()))
    };
    let broken = |items: &Value, code: &str| {
        let found = items.as_array().unwrap().iter().find(|it| it[code] == "ERR_EDGEWRIGHT_INVARIANT_BROKEN");
        found.cloned().unwrap_or_else(|| panic!("{items}"))
    };
    let told = json!({
        "name": "guarded",
        "source": "shop",
        "description": "Guarded",
        "certain": true,
        "method": "GET",
        "url": "https://shop.example.com/",
        "reason": "reaches the backend `bkd_shop` without `oidc`",
        "way": "edge `shop` → route `shop/all` (path_prefix /) → backend `bkd_shop`; response: `compression`",
    });
    assert_eq!(broken(&read("json")["diagnostics"], "code")["invariant"], told);
    let sarif = read("sarif");
    assert_eq!(broken(&sarif["runs"][0]["results"], "ruleId")["properties"]["invariant"], told);
    // A failure is in one case: that of the invariant.
    let junit = folder.run("prove m --source shop --format junit").out;
    assert!(junit.contains("failures=\"1\"") && junit.matches("<failure").count() == 1, "{junit}");
    assert!(junit.contains("m/all.yaml:7: add `oidc` to the route"), "{junit}");
}

#[test]
fn invariants_that_another_source_has_are_judged_twice_and_that_is_said() {
    let folder = Folder::new();
    let invariant = "apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {name: modern-tls}\n\
                     spec: {description: Modern, min_tls_version: '1.2'}\n";
    folder.write("platform/invariants.yaml", invariant);
    folder.ok("reconcile platform --source platform");
    let twice = folder.ok("prove platform --store store");
    let hint = "source `platform` has the same invariants: if these are its manifests, use `--source platform`.";
    assert!(said(&twice.err).contains(hint), "{}", twice.all());
    assert!(!folder.ok("prove platform --store store --source platform").err.contains("--source"));
}
