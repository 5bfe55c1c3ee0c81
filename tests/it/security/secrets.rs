//! A secret that was written into a manifest is told to nobody, however broken the manifest is.

use edgewright::report::Format;

use crate::support::{
    http::http,
    program::{Folder, rounds, until},
};

#[test]
fn a_password_in_a_url_is_in_no_review() {
    let folder = Folder::new();
    let manifest = |password: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  \
             hostports: ['shop.example.com:443']\n  description: see https://user:{password}@docs.example.com\n  routes:\n    \
             - name: account\n      match_type: path_prefix\n      match: /account\n      backend: {{backend_id: bkd_shop}}\n      \
             oidc:\n        issuer: 'https://user:{password}@id.example.com'\n        client_id: shop\n        \
             client_secret: {{from_file: secret.txt}}\n"
        )
    };
    folder.write("old/secret.txt", "secret");
    folder.write("new/secret.txt", "secret");
    folder.write("old/shop.yaml", &manifest("hunter2"));
    folder.write("new/shop.yaml", &manifest("hunter2-again"));
    let lines = ["validate new", "plan new", "diff old new", "plan --out saved new"];
    for (number, format) in ["text", "json", "markdown", "github", "sarif", "junit"].into_iter().enumerate() {
        for line in lines.into_iter().cycle().skip(2 * number % 4).take(rounds(2, 4)) {
            let run = folder.run(&format!("{line} --format {format}"));
            assert!(run.code == 0 && !run.all().contains("hunter2"), "{line} {format}: {}", run.all());
        }
    }
    assert!(!folder.read("saved").contains("hunter2"));
    let diff = folder.ok("diff old new").out;
    assert!(diff.contains("+ ") && diff.contains("https://user:(secret, changed)@id.example.com"), "{diff}");
    folder.ok("reconcile old");
    let plan = folder.ok("plan new").out;
    assert!(plan.contains("https://user:(secret, changed)@docs.example.com"), "{plan}");
    let trace = folder.ok("trace https://shop.example.com/account").out;
    assert!(trace.contains("https://user:********@id.example.com") && !trace.contains("hunter2"), "{trace}");
    folder.ok("reconcile new");
    assert!(folder.ok("plan new").out.contains("No changes: 2 unchanged."));
    // The field itself is public: clients write back what they read.
    assert!(folder.ok("export").out.contains("hunter2-again@id.example.com"));
}

/// What must not be told: a text, and a number.
const MARKERS: [&str; 2] = ["hunter2", "4412884128"];

/// The fields of an `oidc` module, indented by eight, and what else the manifest says.
const LOGINS: &[(&str, &str)] = &[
    ("unknown", "client_secrt: hunter2\n"),
    ("capital", "Client_Secret: hunter2\n"),
    ("colon", "client_secret hunter2\n"),
    ("blank", "client_secret:hunter2\n"),
    ("blank-in-flow", "scopes: {client_secret:hunter2}\n"),
    ("number", "client_secret: 4412884128\n"),
    ("number-as-source", "client_secret: {from_env: 4412884128}\n"),
    ("tag", "client_secret: !hunter2\n"),
    ("tagged", "client_secret: !!str hunter2\n        scopes: 1\n"),
    ("integer-tag", "client_secret: !!int hunter2\n"),
    ("float-tag", "client_secret: !!float 'hunter2'\n"),
    ("boolean-tag", "client_secret: !!bool hunter2\n"),
    ("null-tag", "client_secret: !!null hunter2\n"),
    ("long-tag", "client_secret: !<tag:yaml.org,2002:int> hunter2\n"),
    ("tag-in-list", "scopes: [!!int hunter2]\n        client_secret: hunter2\n"),
    ("alias", "issuer: &s hunter2\n        client_secret: *s\n        scopes: 1\n"),
    ("unknown-alias", "client_secret: *hunter2\n"),
    ("explicit", "? client_secret\n        : hunter2\n        scopes: 1\n"),
    ("list", "client_secret: [hunter2]\n"),
    ("mapping", "client_secret: {hunter2}\n"),
    ("wrong-source", "client_secret: {value: hunter2}\n"),
    ("two-sources", "client_secret: {from_env: NONE, from_file: hunter2-none}\n        scopes: 1\n"),
    ("not-a-variable", "client_secret: {from_env: hunter2a8f5f167f44f4964e6c998dee827110c}\n"),
    ("not-a-file", "client_secret: {from_file: hunter2a8f5f167f44f4964e6c998dee827110c}\n"),
    ("word-as-variable", "client_secret: {from_env: hunter2}\n"),
    ("word-as-file", "client_secret: {from_file: hunter2}\n"),
    ("alias-as-key", "client_secret: &s hunter2\n        *s : 1\n"),
    ("block", "client_secret: |\nhunter2\n        scopes: [a]\n"),
    ("quote", "client_secret: \"hunter2\n        scopes: [a]\n"),
    ("flow", "scopes: {client_secret: hunter2\n"),
    ("twice", "client_secret: a-hunter2\n        client_secret: b-hunter2\n"),
    ("tab", "client_secret:\n\t hunter2\n"),
    ("crlf", "client_secret: hunter2\r\n        scopes: 1\r\n"),
    ("next", "client_secret: hunter2\n        unknown: 1 # hunter2 is wrong here\n"),
    ("document", "client_secret: |\n---\nhunter2\n"),
];

/// Whole files.
const FILES: &[(&str, &str)] = &[
    (
        "pasted.yaml",
        "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {name: a}\nspec:\n  private_key_pem: |\n\
         -----BEGIN PRIVATE KEY-----\nMIIhunter2\n-----END PRIVATE KEY-----\n",
    ),
    (
        "key-as-certificate.yaml",
        "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {name: b}\nspec:\n  ca_pem: |\n    \
         -----BEGIN PRIVATE KEY-----\n    MIIhunter2\n    -----END PRIVATE KEY-----\n  unknown: 1\n",
    ),
    ("one-line.json", "{\"spec\": {\"client_secret\": \"hunter2\" \"kind\": 1}}"),
    ("many-lines.json", "{\n  \"client_secret\":\n    \"hunter2\"\n  \"kind\": \"HttpsEdge\"\n}\n"),
    ("scalar.yaml", "client_secret hunter2\n"),
    ("merge.yaml", "<<<<<<< HEAD\nclient_secret: hunter2\n=======\nclient_secret: other-hunter2\n>>>>>>> them\n"),
    ("memory.yaml", "kind: a\0EDGEWRIGHT_TOKEN=hunter2\0"),
];

fn login(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  \
         hostports: ['{name}.example.com:443']\n  routes:\n    - name: a\n      match_type: exact_path\n      \
         match: /\n      oidc:\n        {fields}"
    )
}

#[test]
fn no_format_tells_a_secret_of_a_broken_manifest() {
    let logins = LOGINS.iter().map(|(name, fields)| (format!("{name}.yaml"), login(name, fields)));
    let files = FILES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let mut told = Vec::new();
    for (number, (name, text)) in logins.chain(files).enumerate() {
        told.extend(leaking_formats(number, &name, &text));
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// The formats that leak the secret of a file. A usual run has one of them for each file, and another one for the next.
fn leaking_formats(number: usize, name: &str, text: &str) -> Vec<String> {
    let tells = |text: &str| MARKERS.iter().any(|marker| text.contains(marker));
    assert!(tells(text), "{name}");
    let folder = Folder::new();
    folder.write(&format!("m/{name}"), text);
    let formats = Format::ALL.into_iter().cycle().skip(number % Format::ALL.len());
    let told = formats.take(rounds(1, Format::ALL.len())).filter_map(|format| {
        let run = folder.run(&format!("validate --format {} m", format.as_str()));
        assert_eq!(run.code, 3, "{name}: {}", run.all());
        tells(&run.all()).then(|| format!("{name} as {}:\n{}", format.as_str(), run.all()))
    });
    told.collect()
}

/// A secret at every place where a client or a manifest can put one, and the log of a server at its most talkative.
#[test]
fn no_log_tells_a_secret() {
    for form in ["text", "json"] {
        let folder = Folder::new();
        let good = login(
            "good",
            "issuer: https://id.example.com\n        client_id: a\n        client_secret: {from_file: s.txt}\n",
        );
        folder.write("m/s.txt", "hunter2-of-a-file");
        folder.write("m/good.yaml", &good);
        let variables = [("EDGEWRIGHT_LOG", "trace"), ("EDGEWRIGHT_LOG_FORMAT", form)];
        let serve = folder.serve_with("--manifests m", &variables);
        let routes = serve.get("/edges/https").json()["https_edges"][0]["routes"].clone();
        let route = routes[0]["uri"].as_str().unwrap().split_once("/edges/").unwrap().1.to_owned();
        let module = |fields: &str| format!(r#"{{"issuer":"https://id.example.com","client_id":"a",{fields}}}"#);
        let put = |fields: &str| serve.call("PUT", &format!("/edges/{route}/oidc"), &module(fields)).status;
        assert_eq!(put(r#""client_secret":"hunter2""#), 200, "{}", serve.said());
        assert_eq!(put(r#""client_secret":["hunter2"]"#), 400);
        assert_eq!(put(r#""client_secret hunter2":1"#), 400);
        let file = serde_json::json!({"source": "b", "files": [{"name": "a.yaml", "text": login("b", "client_secrt: hunter2\n")}]});
        let refused = serve.call("POST", "/reconciliations", &file.to_string());
        assert_eq!(refused.status, 400, "{}", refused.body);
        for path in [
            "/hunter2",
            "/sources/hunter2",
            "/history/hunter2",
            "/edges/https/hunter2",
            "/edges/https?hunter2=hunter2",
            "/saml/hunter2?a=hunter2",
        ] {
            assert_ne!(serve.get(path).status, 200, "{path}");
        }
        let headers = [("Authorization", "Bearer hunter2"), ("X-Api-Key", "hunter2"), ("Cookie", "a=hunter2")];
        assert_eq!(http(&serve.address, "GET", "/edges/https", &headers, "").status, 401);
        http(&serve.address, "HUNTER2", "/", &[], "");
        folder.write("m/broken.yaml", &login("broken", "client_secret: {hunter2}\n"));
        until("the report", || serve.said().contains("the last good state stays in service").then_some(()));
        let token = serve.token.clone();
        let said = serve.stop().err;
        let tells = |line: &&str| line.to_lowercase().contains("hunter2") || line.contains(&token);
        let told: Vec<&str> = said.lines().filter(tells).collect();
        assert!(told.is_empty(), "{form}:\n{}", told.join("\n"));
        assert!(said.contains("TRACE"), "the log was not at trace");
    }
}
