//! Import of what exists: adoption by `metadata.id`, and certificates whose PEM is written in another way (D27, D28).

use crate::cli::{Folder, Run, finish};

const CERTIFICATE: &str = include_str!("data/wildcard.pem");
const KEY: &str = include_str!("data/wildcard.key.pem");

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
        for key in forms(KEY) {
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
        for certificate in forms(CERTIFICATE) {
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
    folder.write("m/certificate.pem", include_str!("../../examples/storefront/certs/shop.chain.pem"));
    folder.write("m/key.pem", include_str!("../../examples/storefront/certs/shop.key.pem"));
    let manifest = |metadata: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {{{metadata}}}\nspec:\n  \
             certificate_pem: {{from_file: certificate.pem}}\n  private_key_pem: {{from_file: key.pem}}\n"
        )
    };
    folder.write("m/a.yaml", &manifest("name: shop"));
    folder.ok("reconcile m");
    let id = folder
        .ok("get TlsCertificate")
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
    assert!(refused.all().contains("remove `metadata.id` to replace it"), "{}", refused.all());
    folder.write("m/a.yaml", &manifest("name: shop"));
    assert!(folder.ok("plan m").out.contains("1 to replace"));
}

#[test]
fn an_id_that_is_not_there_is_created_on_request_only() {
    let folder = Folder::new();
    folder.write(
        "m/a.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop, id: edghts_shop1}\nspec: {hostports: ['a.example.com:443']}\n",
    );
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
    assert!(folder.ok("get HttpsEdge").out.contains("edghts_shop1"));
    assert!(folder.ok("plan m").out.contains("No changes"), "the option is needed once");
    // The same through a server.
    let serve = folder.serve("");
    folder.write(
        "m/b.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: docs, id: edghts_docs1}\nspec: {hostports: ['b.example.com:443']}\n",
    );
    let through = |options: &str| {
        let mut command = folder.command(&format!("reconcile {options} m"));
        command.args(["--server", &format!("http://{}", serve.address)]).env("EDGEWRIGHT_TOKEN", &serve.token);
        finish(command, "")
    };
    assert!(through("").all().contains("cannot adopt HttpsEdge edghts_docs1"));
    let applied = through("--recreate-ids");
    assert_eq!(applied.code, 0, "{}", applied.all());
}
