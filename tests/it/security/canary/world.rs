//! A valid secret in every secret field: what every command prints, what every file has, and what the log of a server
//! has at its most talkative.

use std::{fs, path::Path};

use edgewright::report::Format;

use super::{
    ENTRY, SecretField,
    mark::{MarkForm, Needles, mark},
    secret_fields,
};
use crate::support::program::{Folder, REPOSITORY, Run, copy, finish, rounds, until};

/// What the tests themselves write.
const OWN_FILES: [&str; 5] = ["m", "changed", "hook.secret", "admin.token", "named.yaml"];
/// The secret of the webhooks that the server sends.
const SIGNING_SECRET: &str = "TUZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c=";
/// The count of the webhooks that were not delivered.
const FAILED: &str = "edgewright_notifications_failed_total{target=\"hook\"}";
/// A private key, and the chain that it belongs to.
const PRIVATE_KEY: &str = "examples/storefront/certs/shop.key.pem";
const CHAIN: &str = "examples/storefront/certs/shop.chain.pem";

fn example(path: &str) -> String {
    fs::read_to_string(Path::new(REPOSITORY).join(path)).unwrap()
}

/// The lines of a private key.
fn key_lines() -> Vec<String> {
    let text = example(PRIVATE_KEY);
    text.lines().filter(|line| !line.starts_with("-----") && line.len() >= 16).map(str::to_owned).collect()
}

/// Everything that is searched.
pub(super) fn needles() -> Needles {
    let keys = key_lines();
    assert!(!keys.is_empty());
    let secrets = keys.iter().map(String::as_str).chain([SIGNING_SECRET]);
    Needles::of_marks().and(Needles::from_secrets(secrets))
}

/// What a field needs beside itself to be valid.
fn beside(field: &SecretField) -> &'static str {
    let has = |name: &str| field.parents().iter().any(|parent| parent == name);
    if has("oidc") {
        "issuer: 'https://id.example.com', client_id: a, "
    } else if has("oauth") {
        "client_id: a, "
    } else if has("webhook_verification") {
        "provider: github, "
    } else {
        panic!("say what a manifest with {field:?} needs")
    }
}

/// A module with a secret, such as `oidc: {client_secret: …}`.
fn module(field: &SecretField, secret: &str) -> String {
    let names: Vec<&String> = field.parents().iter().skip_while(|name| *name == "routes" || *name == ENTRY).collect();
    let open: Vec<String> = names.iter().map(|name| format!("{name}: {{")).collect();
    format!("{}{}{}: {secret}{}", open.concat(), beside(field), field.name(), "}".repeat(names.len()))
}

/// Manifests in which every secret field is set. The secrets of two numbers differ.
pub(super) fn manifests(number: usize) -> String {
    let indented = |text: String| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let head = |kind: &str, name: &str| {
        format!("---\napiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n")
    };
    let (mut routes, mut others) = (String::new(), String::new());
    for (at, field) in secret_fields().iter().enumerate() {
        let name = format!("r{at}");
        let secret = mark([MarkForm::Word, MarkForm::Token][at % 2], field.name(), 1000 * number + at);
        let route = |more: &str| {
            format!("name: {name}, match_type: exact_path, match: /{name}, backend: {{backend_id: bkd_1}}, {more}")
        };
        match field.kind.as_str() {
            "HttpsEdge" => routes += &format!("    - {{{}}}\n", route(&module(field, &secret))),
            "HttpsEdgeRoute" => {
                let spec = format!(
                    "  edge: shop\n  match_type: exact_path\n  match: /{name}\n  backend: {{backend_id: bkd_1}}\n  {}\n",
                    module(field, &secret)
                );
                others += &(head(&field.kind, &name) + &spec);
            }
            "ModuleSet" => {
                others += &format!("{}  {}\n", head(&field.kind, &name), module(field, &secret));
                routes += &format!("    - {{{}}}\n", route(&format!("modules_from: [{name}]")));
            }
            "TlsCertificate" if field.parents().is_empty() => {
                let (chain, key) = (indented(example(CHAIN)), indented(example(PRIVATE_KEY)));
                others += &format!(
                    "{}  description: 'number {number}'\n  certificate_pem: |\n{chain}  {}: |\n{key}",
                    head(&field.kind, &name),
                    field.name()
                );
            }
            other => panic!("say what a manifest of the kind {other} needs"),
        }
    }
    let sources = ["{from_env: CANARY_VALUE}", "{from_file: value.txt}"];
    for (at, source) in sources.iter().enumerate() {
        routes += &format!(
            "    - {{name: s{at}, match_type: exact_path, match: /s{at}, backend: {{backend_id: bkd_1}}, \
             oidc: {{issuer: 'https://id.example.com', client_id: a, client_secret: {source}}}}}\n"
        );
    }
    format!("{}  hostports: ['shop.example.com:443']\n  routes:\n{routes}{others}", head("HttpsEdge", "shop"))
}

/// The values that the manifests take from a variable and from a file.
pub(super) fn sourced() -> [String; 2] {
    [1, 2].map(|number| mark(MarkForm::Word, "client_secret", 9000 + number))
}

fn world() -> Folder {
    let folder = Folder::new();
    for (number, name) in ["m", "changed"].iter().enumerate() {
        folder.write(&format!("{name}/all.yaml"), &manifests(number));
        folder.write(&format!("{name}/value.txt"), &sourced()[1]);
    }
    folder
}

/// Runs the program with the value of the variable.
fn run(folder: &Folder, arguments: &[&str]) -> Run {
    let mut command = folder.command("");
    command.args(arguments).env("CANARY_VALUE", &sourced()[0]);
    finish(command, "")
}

/// The files that tell a secret. Those of the store, and beside its state the security log and what is remembered, are no
/// exception: they have secrets only encrypted.
fn leaking_files(folder: &Folder, needles: &Needles) -> Vec<String> {
    let root = folder.path("");
    let written = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() != 1 || !OWN_FILES.contains(&name.as_ref())
    };
    let entries = walkdir::WalkDir::new(&root).into_iter().filter_entry(written).map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    let told = files.filter_map(|entry| {
        let near = needles.find_in_bytes(&fs::read(entry.path()).unwrap())?;
        Some(format!("{}: {near}", entry.path().display()))
    });
    told.collect()
}

/// Checks that the files of the store are among those that are searched, and that the ones with these names exist.
fn store_is_searched(folder: &Folder, needles: &Needles, names: &[&str]) {
    for name in names {
        assert!(folder.path("store").join(name).exists(), "{name}");
    }
    folder.write("store/probe", &format!("\0{}\0", mark(MarkForm::Token, "probe", 1)));
    assert_eq!(leaking_files(folder, needles).len(), 1, "the files of the store are not searched");
}

#[test]
fn no_command_and_no_file_tells_a_valid_secret() {
    let (folder, needles) = (world(), needles());
    let mut told = Vec::new();
    let mut ask = |line: &str, codes: &[i32]| {
        let run = run(&folder, &line.split_whitespace().collect::<Vec<_>>());
        assert!(codes.contains(&run.code), "{line}: {}", run.all());
        told.extend(needles.find_in(&run.all()).map(|near| format!("{line}: {near}")));
    };
    // A usual run has two formats of each line, and others of the next.
    let in_formats = |ask: &mut dyn FnMut(&str, &[i32]), number: usize, line: &str| {
        let formats = Format::ALL.into_iter().cycle().skip(2 * number % Format::ALL.len());
        for format in formats.take(rounds(2, Format::ALL.len())) {
            let name = format.as_str();
            let output = format!("{}.{name}", line.replace([' ', '-'], "_"));
            ask(&format!("{line} --format {name} --output {output}"), &[0]);
            assert!(folder.path(&output).exists(), "{output}");
        }
    };
    for (number, line) in ["validate m", "plan m", "reconcile --dry-run m", "diff m changed"].into_iter().enumerate() {
        in_formats(&mut ask, number, line);
    }
    ask("trace https://shop.example.com/r0 --manifests m", &[0]);
    ask("plan m --out plan.json", &[0]);
    ask("reconcile --plan plan.json m", &[0]);
    in_formats(&mut ask, 4, "reconcile --dry-run changed");
    ask("reconcile changed --format json", &[0]);
    for line in [
        "trace https://shop.example.com/r1",
        "get edges -o json",
        "get edges -o yaml",
        "get routes -o json",
        "get routes -o wide",
        "get tls-certificates -o yaml",
        "get routes --at 1 -o json",
        "get api-keys -o json",
        "history --changes",
        "history --format json --changes",
        "history show 1",
        "history show 2 --format json",
        "history verify",
        "blame edge shop",
        "export out",
        "export -",
        "rollback --to 1 --dry-run",
        "rollback --to 1",
        "store rekey",
        "backup all.backup",
        "store check",
        "store check all.backup",
        "store repair",
        "store scrub",
        "restore all.backup --store restored --master-key-file store.master.key",
        "store check --store restored --master-key-file store.master.key",
        "export again --store restored --master-key-file store.master.key",
        "keys list",
        "owners list",
        "reconcile --dry-run m",
        "schema",
        "explain",
    ] {
        ask(line, &[0]);
    }
    // A store that is damaged, and what is saved of it.
    copy(&folder.path("store"), &folder.path("damaged"));
    let history = folder.path("damaged/log.0000000001");
    let mut bytes = fs::read(&history).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&history, bytes).unwrap();
    ask("store check --store damaged", &[1]);
    ask("history verify --store damaged", &[1]);
    ask("store repair --store damaged", &[2]);
    ask("store repair --apply --store damaged", &[0]);
    ask("store check --store damaged", &[0]);
    ask(&format!("blame tls-certificate r{} --format json", secret_fields().len() - 1), &[0]);
    ask("fmt m", &[0, 1]);
    // A secret in the place of an argument.
    let secret = mark(MarkForm::Word, "argument", 1);
    for line in ["--client-secret=MARK validate m", "get routes --filter obj.oidc.client_secret=='MARK'"] {
        let run = run(&folder, &line.replace("MARK", &secret).split_whitespace().collect::<Vec<_>>());
        told.extend(needles.find_in(&run.out).map(|near| format!("{line}: {near}")));
    }
    told.extend(leaking_files(&folder, &needles));
    assert!(told.is_empty(), "{}", told.join("\n"));
    for name in ["plan.json", "out", "again", "all.backup"] {
        assert!(folder.path(name).exists(), "{name}");
    }
    store_is_searched(&folder, &needles, &["log.0000000001", "keys"]);
}

/// Bodies that a client could send by mistake.
pub(super) fn bodies(field: &str, secret: &str) -> Vec<String> {
    let mut bodies: Vec<String> = [
        r#"{"KEY": ["MARK"]}"#,
        r#"{"KEY": [["MARK"]]}"#,
        r#"{"KEY": {"value": "MARK"}}"#,
        r#"{"KEY": {"from_env": "MARK"}}"#,
        r#"{"KEY": {"from_file": "MARK"}}"#,
        r#"{"KEY": {"from_env": "A", "value": "MARK"}}"#,
        r#"{"KEYx": "MARK"}"#,
        r#"{"KEY ": "MARK"}"#,
        r#"{"KEY MARK": 1}"#,
        r#"{"KEY:MARK": 1}"#,
        r#"{"KEY=MARK": 1}"#,
        r#"{"password": "MARK"}"#,
        r#"{"KEY": "MARK", "KEY": "MARK"}"#,
        r#"{"KEY": "MARK", "unknown": 1}"#,
        r#"{"KEY": "MARK"#,
        r#"{"KEY": MARK}"#,
        r#"{"KEY" "MARK"}"#,
        r#"{"KEY": "\ud800MARK"}"#,
        r#"{"KEY": "\qMARK"}"#,
        r#"["KEY", "MARK"]"#,
        r#""MARK""#,
        "MARK",
        "KEY=MARK&a=b",
        "KEY: MARK",
    ]
    .map(|body| body.replace("KEY", field).replace("MARK", secret))
    .into();
    bodies.push(format!("{{\"{field}\": \"\u{1}{secret}\"}}"));
    bodies.push(format!("{{\"{field}\": \"{}\", \"unknown\": 1}}", secret.repeat(1_000)));
    bodies
}

#[test]
fn no_log_metric_or_notification_tells_a_secret() {
    let needles = needles();
    let token_in_url = mark(MarkForm::Word, "query", 1);
    for form in ["text", "json"] {
        let folder = world();
        folder.write("hook.secret", &format!("whsec_{SIGNING_SECRET}\n"));
        let config = format!(
            "notifications:\n  webhooks:\n    - {{name: hook, url: 'http://127.0.0.1:9/{token_in_url}?token={token_in_url}', \
             allow_http: true, secret_file: hook.secret}}\n  files: [{{name: notes, path: notes.jsonl}}]\n"
        );
        folder.write("named.yaml", &config);
        let [from_env, _] = sourced();
        let variables = [
            ("EDGEWRIGHT_LOG", "trace"),
            ("EDGEWRIGHT_LOG_FORMAT", form),
            ("EDGEWRIGHT_CONFIG", "named.yaml"),
            ("NO_PROXY", "127.0.0.1"),
            ("CANARY_VALUE", from_env.as_str()),
        ];
        let serve = folder.serve_with("--manifests m", &variables);
        let edge = serve.get("/edges/https").json()["https_edges"][0].clone();
        let route = edge["routes"][0]["uri"].as_str().unwrap().split_once("/edges/").unwrap().1.to_owned();
        let secret = mark(MarkForm::Word, "client_secret", 5000);
        let paths = [
            format!("/edges/{route}/oidc"),
            format!("/edges/{route}"),
            "/tls_certificates".to_owned(),
            "/reconciliations".to_owned(),
            "/rollbacks".to_owned(),
        ];
        for path in &paths {
            for body in bodies("client_secret", &secret) {
                let method = if path.matches('/').count() > 1 { "PUT" } else { "POST" };
                assert_ne!(serve.call(method, path, &body).status / 100, 2, "{method} {path} {body:.80}");
            }
        }
        let valid = format!(r#"{{"issuer":"https://id.example.com","client_id":"a","client_secret":"{secret}"}}"#);
        assert_eq!(serve.call("PUT", &paths[0], &valid).status, 200);
        serve.call_as(&secret, "GET", "/edges/https", "");
        serve.get(&format!("/edges/https?client_secret={secret}"));
        folder.write("m/all.yaml", &manifests(1).replace("client_secret:", "client_secrt:"));
        until("the report", || serve.said().contains("the last good state stays in service").then_some(()));
        let ask = |line: &str| {
            let mut command = folder.command(line);
            let server = format!("http://{}", serve.address);
            command.env("EDGEWRIGHT_SERVER", server).env("EDGEWRIGHT_TOKEN", &serve.token);
            let run = finish(command, "");
            assert!([0, 2].contains(&run.code), "{line}: {}", run.all());
            assert_eq!(needles.find_in(&run.all()), None, "{line}");
            run.out
        };
        until("the status", || ask("status").contains("Invalid").then_some(()));
        assert!(ask("status -o json").contains("client_secrt"));
        folder.write("m/all.yaml", &manifests(2));
        // A mark of this form is the same in every field.
        let newest = mark(MarkForm::Word, "", 2000);
        until("the change", || serve.get("/edges/https").body.contains(&newest).then_some(()));
        until("a refused webhook", || {
            let metrics = serve.get("/metrics").body;
            let failed = metrics.lines().find_map(|line| line.strip_prefix(FAILED)?.trim().parse::<f64>().ok());
            failed.filter(|count| *count > 0.0)
        });
        until("a notification", || {
            let notes = fs::read_to_string(folder.path("notes.jsonl")).unwrap_or_default();
            (notes.contains("source.invalid") && notes.contains("source.recovered")).then_some(())
        });
        ask("store rekey");
        assert!(ask("security-log show").contains("authentication_failed"));
        let told = needles.find_in(&serve.get("/metrics").body);
        assert_eq!(told, None, "metrics");
        let token = Needles::from_secrets([serve.token.as_str()]);
        let said = serve.stop().all();
        assert!(said.contains("TRACE"), "the log was not at trace");
        assert_eq!(needles.find_in(&said).or(token.find_in(&said)), None, "{form}");
        assert_eq!(leaking_files(&folder, &needles), Vec::<String>::new());
        store_is_searched(&folder, &needles, &["security.log", "notifications", "transitions", "keys"]);
    }
}
