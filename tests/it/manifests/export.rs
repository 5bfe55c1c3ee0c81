//! `edgewright export`: what a store holds as manifests that plan to nothing.

use std::{collections::BTreeMap, fs};

use crate::support::program::{Folder, Run};

/// Which file of the example holds the secret of a field.
const SECRETS: [(&str, &str); 6] = [
    ("TlsCertificate shop: private_key_pem", "certs/shop.key.pem"),
    ("TlsCertificate wildcard: private_key_pem", "certs/wildcard.key.pem"),
    ("HttpsEdgeRoute storefront/account: oidc.client_secret", "secrets/customer-oidc-client-secret.txt"),
    ("HttpsEdgeRoute storefront/stripe-webhook: webhook_verification.secret", "secrets/stripe-webhook-secret.txt"),
    (
        "HttpsEdgeRoute backoffice/deployments: oauth.provider.github.client_secret",
        "secrets/github-oauth-client-secret.txt",
    ),
    ("HttpsEdgeRoute backoffice/dashboard: oidc.client_secret", "secrets/corporate-oidc-client-secret.txt"),
];

/// The variables that an export asks for, with what the example has for them.
fn variables(folder: &Folder, export: &Run) -> BTreeMap<String, String> {
    let asked = export.err.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let known: BTreeMap<&str, &str> = SECRETS.into_iter().collect();
    asked
        .map(|(name, field)| {
            let file = known.get(field.trim()).unwrap_or_else(|| panic!("{field} in {}", export.err));
            (name.to_owned(), folder.read(&format!("storefront/{file}")).trim().to_owned())
        })
        .collect()
}

fn out_with(folder: &Folder, line: &str, variables: &BTreeMap<String, String>) -> String {
    let output = folder.command(line).envs(variables).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{line}\n{out}\n{err}");
    out
}

#[test]
fn the_example_comes_back_and_plans_to_nothing() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let export = folder.ok("export out");
    assert_eq!(export.out, "", "files are written, nothing is printed");
    let variables = variables(&folder, &export);
    assert_eq!(variables.len(), SECRETS.len(), "{}", export.err);
    assert!(variables.contains_key("STOREFRONT_ACCOUNT_CLIENT_SECRET"), "{variables:?}");
    assert_eq!(out_with(&folder, "plan --detailed-exitcode out", &variables), "No changes: 24 unchanged.\n");

    let stream = folder.ok("export");
    assert_eq!(stream.err, export.err);
    folder.write("stream/all.yaml", &stream.out);
    assert_eq!(out_with(&folder, "plan --detailed-exitcode stream", &variables), "No changes: 24 unchanged.\n");
    for secret in variables.values() {
        let line = secret.lines().nth(1).unwrap_or(secret);
        assert!(!stream.out.contains(line) && !export.err.contains(line), "a secret was exported");
    }
    assert_eq!(folder.ok("fmt --check out").out, "", "an export is formatted");
}

#[test]
fn a_store_made_from_an_export_has_the_same_ids() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let variables = variables(&folder, &folder.ok("export out"));
    out_with(&folder, "reconcile --store other out", &variables);
    let keys = |store: &str| folder.snapshot(store).iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>();
    assert_eq!(keys("other"), keys("store"));
}

#[test]
fn the_texts_are_what_a_person_would_write() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.ok("export out");
    let mut names: Vec<String> =
        fs::read_dir(folder.path("out")).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = [
        "certificate-authorities.yaml",
        "event-subscriptions.yaml",
        "https-edge-backoffice.yaml",
        "https-edge-payments.yaml",
        "https-edge-storefront.yaml",
        "ip-restrictions.yaml",
        "tls-certificates.yaml",
        "tls-edges.yaml",
    ];
    assert_eq!(names, expected);
    let shop = folder.read("out/https-edge-storefront.yaml");
    assert!(shop.starts_with("# Exported from revision 1 for source `default`.\n"), "{shop}");
    for part in [
        "  prevent_destroy: true\n",
        "    - name: search\n",
        "      compression: {}\n",
        "          from_env: STOREFRONT_STRIPE_WEBHOOK_SECRET\n",
    ] {
        assert!(shop.contains(part), "{part}\n{shop}");
    }
    assert!(!shop.contains("enabled:") && !shop.contains("null"), "defaults are left out:\n{shop}");
    let staff = folder.read("out/https-edge-backoffice.yaml");
    assert!(
        staff.contains("- staff-devices\n") && staff.contains("idp_metadata: |"),
        "names and block texts:\n{staff}"
    );
    assert!(folder.read("out/tls-edges.yaml").contains("  id: edgtls_2k9QpostgresPassThrough0001\n"));
}

#[test]
fn what_nobody_owns_is_adopted_on_request_only() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let edge = r#"{"hostports":["hand.example.com:443"],"description":"Made by hand!"}"#;
    let id = serve.call("POST", "/edges/https", edge).json()["id"].as_str().unwrap().to_owned();
    let route = r#"{"match_type":"exact_path","match":"/x","backend":{"backend_id":"bkd_1"}}"#;
    assert_eq!(serve.call("POST", &format!("/edges/https/{id}/routes"), route).status, 201);
    drop(serve);

    let export = folder.ok("export");
    assert_eq!(export.out, "");
    assert!(export.err.contains("not owned by any source (2); use --adopt"), "{}", export.err);
    assert!(export.err.contains("API keys not owned by any source (1)"), "{}", export.err);
    folder.ok("export --adopt out");
    let text = folder.read("out/https-edge-made-by-hand.yaml");
    assert!(text.contains(&format!("  name: made-by-hand\n  id: {id}\n")), "{text}");
    let adopted = folder.ok("reconcile out");
    assert!(adopted.calls().is_empty() && adopted.summary().contains("2 to adopt"), "{}", adopted.out);
    assert_eq!(folder.ok("plan out").out, "No changes: 2 unchanged.\n");
    assert_eq!(folder.ok("export again").err.lines().count(), 1, "only the admin's key is left out");
    assert_eq!(folder.ok("plan again").out, "No changes: 2 unchanged.\n");
}

#[test]
fn what_no_manifest_can_declare_is_left_out_and_told() {
    let folder = Folder::new();
    let serve = folder.serve("");
    for (subscription, kind) in [
        ("host.example.com", "ip_policy_created.v0"),
        ("host.example.com", "ip_policy_deleted.v0"),
        ("__", "ip_policy_created.v0"),
    ] {
        let path = format!("/event_subscriptions/{subscription}/sources");
        let made = serve.call("POST", &path, &format!(r#"{{"type":"{kind}"}}"#));
        assert_eq!(made.status, 201, "{}", made.body);
    }
    drop(serve);

    let export = folder.ok("export --adopt out");
    let said = "skipped: EventSubscription `host.example.com` cannot be declared: \
                the ID of an EventSubscription must contain `_`\n";
    assert_eq!(export.err.matches(said).count(), 1, "{}", export.err);
    assert!(!export.err.contains("--adopt"), "{}", export.err);
    // An ID without letters and digits has a name all the same.
    let text = folder.read("out/event-subscriptions.yaml");
    assert!(text.contains("  name: unnamed\n") && !text.contains("host.example.com"), "{text}");
    let adopted = folder.ok("reconcile out");
    assert!(adopted.summary().contains("1 to adopt"), "{}", adopted.out);
    assert_eq!(folder.ok("plan out").out, "No changes: 1 unchanged.\n");
    // Without the option, it counts like everything else that nobody owns.
    assert!(folder.ok("export again").err.contains("not owned by any source (2); use --adopt"));
}

#[test]
fn a_folder_with_files_is_not_written_into_by_accident() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.write("out/mine.txt", "mine");
    let refused = folder.run("export out");
    assert_eq!((refused.code, refused.err.contains("--force")), (1, true), "{}", refused.all());
    assert_eq!(fs::read_dir(folder.path("out")).unwrap().count(), 1);
    folder.ok("export --force out");
    assert_eq!(folder.read("out/mine.txt"), "mine");
    // An export that was killed has only begun to write.
    folder.write("next/.edgewright-export.0", "begun");
    folder.ok("export next");
    assert!(!folder.path("next/.edgewright-export.0").exists() && folder.path("next/tls-edges.yaml").exists());
    assert!(folder.path("out/tls-edges.yaml").exists());
    assert_eq!(folder.run("export --store nowhere").code, 1);
}

#[test]
fn keys_routes_without_names_and_routes_of_other_edges_come_back() {
    let folder = Folder::new();
    let head =
        |kind: &str, name: &str| format!("---\napiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
    let key = head("ApiKey", "ci") + "spec: {description: for ci, token_file: ../ci.token}\n";
    let edge = head("HttpsEdge", "one")
        + "spec: {hostports: [\"one.example.com:443\"], delegates_to: [{source: team, path_prefix: /}], routes: [{match_type: exact_path, match: /, backend: {backend_id: bkd_1}}]}\n";
    folder.write("m/all.yaml", &(key + &edge));
    folder.ok("reconcile m");
    let route = head("HttpsEdgeRoute", "team").replace("{name: team}", "{name: team, prevent_destroy: true}")
        + "spec: {edge: one, match_type: path_prefix, match: /t, backend: {backend_id: bkd_1}}\n";
    folder.write("team/route.yaml", &route);
    folder.ok("reconcile --source team team");

    let export = folder.ok("export out");
    assert!(export.err.contains("owned by source `team` (1)"), "{}", export.err);
    assert_eq!(folder.ok("plan out").out, "No changes: 3 unchanged.\n");
    folder.ok("export --source team theirs");
    let misspelt = folder.run("export --source taem nothing");
    assert_eq!((misspelt.code, misspelt.out.as_str()), (1, ""), "{}", misspelt.all());
    for said in ["ERR_EDGEWRIGHT_NOT_FOUND", "source `taem` owns nothing", "did you mean `team`?"] {
        assert!(misspelt.err.contains(said), "{}", misspelt.err);
    }
    let history = folder.ok("history --source taem");
    assert!(history.err.ends_with("source `taem` owns nothing; did you mean `team`?\n"), "{}", history.err);
    let text = folder.read("theirs/routes-of-other-edges.yaml");
    assert!(text.contains("  edge: edghts_") && text.contains("prevent_destroy: true"), "{text}");
    assert_eq!(folder.ok("plan --source team theirs").out, "No changes: 1 unchanged.\n");
}

#[test]
fn what_is_adopted_has_readable_names_that_stay() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let edge = r#"{"hostports":["shop.example.com:443"],"description":"All that customers of the shop ever see"}"#;
    for _ in 0..2 {
        let id = serve.call("POST", "/edges/https", edge).json()["id"].as_str().unwrap().to_owned();
        for path in ["/checkout", "/checkout/", "/"] {
            let route = format!(
                r#"{{"match_type":"path_prefix","match":"{path}","backend":{{"backend_id":"bkd_1"}},
                "webhook_verification":{{"provider":"github","secret":"s-{path}"}}}}"#
            );
            assert_eq!(serve.call("POST", &format!("/edges/https/{id}/routes"), &route).status, 201);
        }
    }
    drop(serve);

    let first = folder.ok("export --adopt");
    assert_eq!(folder.ok("export --adopt").all(), first.all(), "a second export gives the same");
    let names: Vec<&str> = first.out.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    let routes = ["checkout", "checkout-2", "root"];
    let expected = [&["shop-example-com-2"], &routes[..], &["shop-example-com"], &routes[..]].concat();
    assert_eq!(names, expected, "{}", first.out);
    let variables: Vec<&str> =
        first.err.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let expected = ["CHECKOUT", "CHECKOUT_2", "ROOT"];
    let of = |edge: &str| expected.map(|route| format!("{edge}_{route}_SECRET"));
    assert_eq!(variables, [of("SHOP_EXAMPLE_COM"), of("SHOP_EXAMPLE_COM_2")].concat());
}
