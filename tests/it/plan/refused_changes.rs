//! A rollback, a transfer and the end of a source that an invariant refuses say what they would do to requests, as a plan of
//! manifests does (D113, D120).

use serde_json::Value;

use crate::support::{
    program::{Folder, Run},
    users::through,
};

const SHOP: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  \
                    hostports: ['shop.example.com:443']\n  delegates_to: [{source: guides, path_prefix: /guides/}]\n  routes:\n    \
                    - {name: all, match_type: path_prefix, match: /, backend: {backend_id: bkd_shop}}\n";
const ADMIN: &str = "    - {name: admin, match_type: path_prefix, match: /admin/, backend: {backend_id: bkd_shop}, oidc: \
                     {issuer: 'https://id.example.com', client_id: shop, client_secret: {from_file: secret}}}\n";
const GUIDES: &str = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: guides}\nspec: {edge: shop/shop, \
                      match_type: path_prefix, match: /guides/, backend: {backend_id: bkd_guides}, oidc: \
                      {issuer: 'https://id.example.com', client_id: shop, client_secret: {from_file: secret}}}\n";
const INVARIANTS: &str = "apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {name: login}\n\
                          spec: {description: Log in, scope: {path_prefixes: [/admin/, /guides/]}, requires_any: [oidc]}\n\
                          ---\napiVersion: edgewright/v1\nkind: Invariant\nmetadata: {name: docs-login}\n\
                          spec: {description: Log in to docs, scope: {sources: [docs]}, requires_any: [oidc]}\n";

/// A store in which each of the changes breaks an invariant. At revision 1, the shop has no admin page.
fn folder() -> Folder {
    let folder = Folder::new();
    for source in ["shop", "guides"] {
        folder.write(&format!("{source}/secret"), "hidden-secret");
    }
    folder.write("shop/shop.yaml", SHOP);
    folder.ok("reconcile shop --source shop");
    folder.write("shop/shop.yaml", &format!("{SHOP}{ADMIN}"));
    folder.write("guides/guides.yaml", GUIDES);
    folder.write("platform/invariants.yaml", INVARIANTS);
    for source in ["shop", "guides", "platform"] {
        folder.ok(&format!("reconcile {source} --source {source}"));
    }
    folder
}

#[test]
fn a_change_that_an_invariant_refuses_says_what_it_would_do_to_requests() {
    const OPENS: &str =
        "Behaviour: 1 change in how requests are treated, of which 1 opens access.\n! `https://shop.example.com/";
    const NOTHING: &str = "Behaviour: no request is treated differently.";
    let changes = [
        ("rollback --to 1 --source shop", OPENS),
        ("destroy --source guides", OPENS),
        ("transfer --from shop --to docs --all", NOTHING),
    ];
    let folder = folder();
    let refused = |run: &Run, told: &str| {
        assert_eq!(run.code, 3, "{}", run.all());
        assert!(run.err.contains("INVARIANT_BROKEN") && run.out.contains(told), "{}", run.all());
    };
    for (line, told) in changes {
        refused(&folder.run(&format!("{line} --dry-run --behaviour")), told);
        let run = folder.run(&format!("{line} --dry-run"));
        refused(&run, "");
        assert!(!run.out.contains("Behaviour"), "it was not asked for: {}", run.out);
        let run = folder.run(&format!("{line} --dry-run --behaviour --format json"));
        let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.all()));
        let changes = report["plan"]["behaviour"]["changes"].as_array().unwrap();
        let opens: Vec<bool> = changes.iter().map(|it| it["opens"] == true).collect();
        assert_eq!(opens, if told == OPENS { vec![true] } else { Vec::new() }, "{report}");
        assert_eq!(report["refusals"][0]["code"], "ERR_EDGEWRIGHT_INVARIANT_BROKEN", "{report}");
    }
    let serve = folder.serve("");
    for (line, told) in changes {
        refused(&through(&folder, &serve, &format!("{line} --dry-run --behaviour")), told);
    }
}

#[test]
fn a_change_that_a_limit_refuses_says_nothing_of_requests() {
    let folder = folder();
    let run = folder.run("destroy --source guides --max-deletes 0 --dry-run --behaviour");
    assert_eq!((run.code, run.out.contains("Behaviour")), (4, false), "{}", run.all());
}
