//! Import of what exists: adoption by `metadata.id`, and certificates whose PEM is written in another way (D27, D28).

use crate::support::{
    manifests::edge_with,
    program::{Folder, Run, finish, rounds, until},
    sources::{in_state, replace, status},
};

const CERTIFICATE: &str = include_str!("../data/wildcard.pem");
const KEY: &str = include_str!("../data/wildcard.key.pem");

/// Texts of one PEM that encode the same.
fn forms(pem: &str) -> [String; 4] {
    let bare = pem.trim_end();
    [bare.to_owned(), format!("{bare}\n"), format!("\n{bare}\n\n"), bare.replace('\n', "\r\n")]
}

fn with_key(folder: &Folder, line: &str, key: &str) -> Run {
    let mut command = folder.command(line);
    command.env("CERTIFICATE_1_PRIVATE_KEY_PEM", key).env("WILDCARD_PRIVATE_KEY_PEM", key);
    finish(command, "")
}

#[test]
fn an_imported_certificate_is_adopted_however_its_pem_is_written() {
    for posted in 0..4 {
        let folder = Folder::new();
        let serve = folder.serve("");
        let body = serde_json::json!({
            "description": "wildcard",
            "certificate_pem": forms(CERTIFICATE)[posted],
            "private_key_pem": forms(KEY)[posted],
        });
        let made = serve.call("POST", "/tls_certificates", &body.to_string());
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(serve.stop().code, 0);
        let export = folder.ok("export --adopt out");
        assert!(
            export.err.contains("WILDCARD_PRIVATE_KEY_PEM") && !export.err.contains("line break"),
            "{}",
            export.err
        );
        // A usual run has one form of each, another one than the posted.
        for key in forms(KEY).into_iter().cycle().skip(posted + 1).take(rounds(1, 4)) {
            let plan = with_key(&folder, "plan out", &key);
            assert!(
                plan.code == 0 && plan.out.contains("0 to create, 0 to change, 0 to replace, 1 to adopt"),
                "{}",
                plan.all()
            );
        }
        // The same from a file, which has a final line break or not.
        let exported = folder.read("out/tls-certificates.yaml");
        let (head, rest) = exported.split_once("  certificate_pem:").unwrap();
        let (_, tail) = rest.split_once("  private_key_pem:").unwrap();
        folder
            .write("files/a.yaml", &format!("{head}  certificate_pem: {{from_file: c.pem}}\n  private_key_pem:{tail}"));
        for certificate in forms(CERTIFICATE).into_iter().cycle().skip(posted + 1).take(rounds(1, 4)) {
            folder.write("files/c.pem", &certificate);
            let plan = with_key(&folder, "plan files", KEY);
            assert!(plan.code == 0 && plan.out.contains("1 to adopt"), "{}", plan.all());
        }
        assert_eq!(with_key(&folder, "reconcile files", KEY).code, 0);
        folder.write("files/c.pem", &forms(CERTIFICATE)[posted]);
        let plan = with_key(&folder, "plan files", KEY);
        assert!(plan.out.contains("No changes: 1 unchanged."), "{}", plan.all());
    }
}

#[test]
fn an_id_that_cannot_be_adopted_says_why() {
    let folder = Folder::new();
    folder.write("m/certificate.pem", include_str!("../../../examples/storefront/certs/shop.chain.pem"));
    folder.write("m/key.pem", include_str!("../../../examples/storefront/certs/shop.key.pem"));
    let manifest = |metadata: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {{{metadata}}}\nspec:\n  \
             certificate_pem: {{from_file: certificate.pem}}\n  private_key_pem: {{from_file: key.pem}}\n"
        )
    };
    folder.write("m/a.yaml", &manifest("name: shop"));
    folder.ok("reconcile m");
    let id = folder
        .ok("get TlsCertificate -o wide")
        .out
        .split_whitespace()
        .find(|word| word.starts_with("cert_"))
        .unwrap()
        .to_owned();
    folder.write("m/a.yaml", &manifest(&format!("name: shop, id: {id}")));
    assert!(folder.ok("plan m").out.contains("No changes"));
    // A rotation makes another certificate, which the stated ID would deny.
    folder.write("m/certificate.pem", CERTIFICATE);
    folder.write("m/key.pem", KEY);
    let refused = folder.run("plan m");
    assert!(refused.code == 3 && refused.all().contains("ERR_EDGEWRIGHT_IMMUTABLE"), "{}", refused.all());
    assert!(refused.all().contains("remove `metadata.id` to replace the resource"), "{}", refused.all());
    folder.write("m/a.yaml", &manifest("name: shop"));
    assert!(folder.ok("plan m").out.contains("1 to replace"));
}

#[test]
fn an_id_that_is_not_there_is_created_on_request_only() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("shop, id: edghts_shop1", "{hostports: ['a.example.com:443']}"));
    for line in ["plan m", "reconcile m"] {
        let refused = folder.run(line);
        assert!(
            refused.code == 3 && refused.all().contains("cannot adopt HttpsEdge edghts_shop1: not found"),
            "{}",
            refused.all()
        );
        assert!(refused.all().contains("--recreate-ids"), "{}", refused.all());
    }
    assert_eq!(folder.run("validate m").code, 0, "without a store, nobody knows");
    folder.ok("reconcile --recreate-ids m");
    assert!(folder.ok("get HttpsEdge -o wide").out.contains("edghts_shop1"));
    assert!(folder.ok("plan m").out.contains("No changes"), "the option is needed once");
    // The same through a server.
    let serve = folder.serve("");
    folder.write("m/b.yaml", &edge_with("docs, id: edghts_docs1", "{hostports: ['b.example.com:443']}"));
    let through = |options: &str| {
        let mut command = folder.command(&format!("reconcile {options} m"));
        command.args(["--server", &format!("http://{}", serve.address)]).env("EDGEWRIGHT_TOKEN", &serve.token);
        finish(command, "")
    };
    assert!(through("").all().contains("cannot adopt HttpsEdge edghts_docs1"));
    let applied = through("--recreate-ids");
    assert_eq!(applied.code, 0, "{}", applied.all());
}

#[test]
fn a_followed_source_has_the_same_rule_for_an_id_that_is_not_there() {
    let edge = |metadata: &str, host: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{{metadata}}}\nspec: {{hostports: ['{host}:443']}}\n"
        )
    };
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("name: one", "one.example.com"));
    let config = |more: &str| format!("sources:\n- {{name: shop, path: shop, interval: 1s{more}}}\n");
    folder.write("edgewright.config.yaml", &config(""));
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    folder.write("shop/two.yaml", &edge("name: two, id: edghts_two1", "two.example.com"));
    until("the error", || status(&serve, "shop").to_string().contains("edghts_two1: not found").then_some(()));
    assert_eq!(serve.get("/edges/https/edghts_two1").status, 404);
    replace(&folder, &config(", recreate_ids: true"));
    until("the edge", || (serve.get("/edges/https/edghts_two1").status == 200).then_some(()));
    // What somebody deletes is put back without the option, which nobody needs any longer.
    replace(&folder, &config(""));
    in_state(&serve, "shop", "Synced");
    assert_eq!(serve.call("DELETE", "/edges/https/edghts_two1", "").status, 204);
    until("the edge", || (serve.get("/edges/https/edghts_two1").status == 200).then_some(()));
}

#[test]
fn an_id_of_a_route_on_another_edge_is_an_error_that_says_where_it_is() {
    let folder = Folder::new();
    let edge = |name: &str| edge_with(name, &format!("{{hostports: ['{name}.example.com:443']}}"));
    let route = |metadata: &str, edge: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: cart{metadata}}}\nspec:\n  edge: {edge}\n  \
             match_type: path_prefix\n  match: /\n  backend: {{backend_id: bkd_1}}\n"
        )
    };
    folder.write("m/edges.yaml", &format!("{}---\n{}", edge("one"), edge("two")));
    folder.write("m/route.yaml", &route("", "one"));
    folder.ok("reconcile m");
    let listed = folder.ok("get HttpsEdgeRoute -o wide").out;
    let id = listed.split_whitespace().find(|word| word.starts_with("edghtsrt_")).unwrap().to_owned();
    folder.write("m/route.yaml", &route(&format!(", id: {id}"), "two"));
    for line in ["plan m", "plan --recreate-ids m", "reconcile --recreate-ids m"] {
        let run = folder.run(line);
        let said = format!("cannot adopt HttpsEdgeRoute {id}: it belongs to HttpsEdge one of source");
        assert!(run.code == 3 && run.all().contains(&said), "{line}: {}", run.all());
    }
    folder.write("m/route.yaml", &route(&format!(", id: {id}"), "one"));
    assert!(folder.ok("plan m").out.contains("No changes"));
}

#[test]
fn an_unowned_certificate_is_adopted_before_it_is_replaced() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let pem = include_str!("../../../examples/storefront/certs/shop.chain.pem");
    let key = include_str!("../../../examples/storefront/certs/shop.key.pem");
    let made = serve.call(
        "POST",
        "/tls_certificates",
        &serde_json::json!({"certificate_pem": pem, "private_key_pem": key}).to_string(),
    );
    let id = made.json()["id"].as_str().unwrap().to_owned();
    serve.stop();
    folder.write("m/a/certificate.pem", CERTIFICATE);
    folder.write("m/a/key.pem", KEY);
    folder.write("m/b/certificate.pem", pem);
    folder.write("m/b/key.pem", key);
    let declare = |metadata: &str, of: &str| {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {{name: shop{metadata}}}\nspec:\n  \
             certificate_pem: {{from_file: {of}/certificate.pem}}\n  private_key_pem: {{from_file: {of}/key.pem}}\n"
        );
        folder.write("m/a.yaml", &text);
    };
    declare(&format!(", id: {id}"), "a");
    let refused = folder.run("plan m");
    let help = format!("if you remove `metadata.id` now, {id} stays next to the new resource");
    let said = refused.all().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(refused.code == 3 && said.contains(&help) && said.contains("use its `certificate_pem`"), "{said}");
    // What the help says.
    declare(&format!(", id: {id}"), "b");
    folder.ok("reconcile m");
    declare("", "a");
    folder.ok("reconcile m --max-deletes 100%");
    let listed = folder.ok("get TlsCertificate -o wide").out;
    assert!(!listed.contains(&id) && listed.matches("cert_").count() == 1, "{listed}");
}

#[test]
fn what_the_api_accepted_and_a_lint_refuses_is_adopted_at_the_first_try() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let post = |path: &str, body: serde_json::Value| {
        let made = serve.call("POST", path, &body.to_string());
        assert_eq!(made.status, 201, "{}", made.body);
        made.json()["id"].as_str().unwrap().to_owned()
    };
    let edge = post("/edges/https", serde_json::json!({"hostports": ["shop.example.com:443"]}));
    post("/edges/https", serde_json::json!({"hostports": ["shop.example.com:443", "docs.example.com:443"]}));
    let routes = format!("/edges/https/{edge}/routes");
    let route = |matched: &str, module: &str, value: serde_json::Value| {
        let backend = serde_json::json!({"backend_id": "bkd_1"});
        post(
            &routes,
            serde_json::json!({"match_type": "path_prefix", "match": matched, "backend": backend, (module): value}),
        )
    };
    route("/", "ip_restriction", serde_json::json!({"ip_policy_ids": []}));
    route("/", "compression", serde_json::json!({}));
    route("/cb", "circuit_breaker", serde_json::json!({"enabled": true}));
    route("/fine", "compression", serde_json::json!({}));
    serve.stop();
    folder.ok("export --adopt out");
    let plan = folder.run("plan out");
    assert!(plan.code == 0 && plan.out.contains("6 to adopt"), "{}", plan.all());
    let files: String = std::fs::read_dir(folder.path("out"))
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    for lint in ["empty-ip-restriction", "circuit-breaker-zero"] {
        assert_eq!(files.matches(&format!("edgewright/lint.{lint}: warn")).count(), 1, "{files}");
    }
    // Both of two duplicates, whichever is first in the files.
    for lint in ["duplicate-match", "duplicate-hostport"] {
        assert_eq!(files.matches(&format!("edgewright/lint.{lint}: warn")).count(), 2, "{files}");
    }
    assert_eq!(files.matches("# The API accepts this").count(), 5, "{files}");
    let fine = files.split("---").find(|document| document.contains("/fine")).unwrap();
    assert!(!fine.contains("annotations"), "{fine}");
}
