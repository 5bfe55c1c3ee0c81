//! Every text of every manifest and request, with a token in it.

use serde_json::{Value, json};

use super::files_with;
use crate::support::manifests::{edge_with, kind_schemas};
use crate::support::program::{Folder, rounds};

/// The formats of plans, apart from JSON.
const FORMATS: [&str; 5] = ["text", "markdown", "github", "sarif", "junit"];

/// The kinds with a collection that clients can write.
const COLLECTIONS: [(&str, &str); 5] = [
    ("ApiKey", "/api_keys"),
    ("CertificateAuthority", "/certificate_authorities"),
    ("HttpsEdge", "/edges/https"),
    ("IpRestriction", "/ip_restrictions"),
    ("TlsCertificate", "/tls_certificates"),
];

/// Values of a schema, each with a token in another text or key. Secrets can have one.
fn with_token(schema: &Value, definitions: &Value, open: &mut Vec<String>, token: &str) -> Vec<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
        if name == "Text" {
            return vec![json!(token)];
        }
        if name == "Secret" || open.iter().any(|it| it == name) {
            return Vec::new();
        }
        open.push(name.to_owned());
        let found = with_token(&definitions[name], definitions, open, token);
        open.pop();
        return found;
    }
    let mut found = Vec::new();
    for choice in ["anyOf", "oneOf"].iter().flat_map(|choice| schema[choice].as_array().into_iter().flatten()) {
        found.append(&mut with_token(choice, definitions, open, token));
    }
    let is_text =
        schema["type"] == "string" || schema["type"].as_array().is_some_and(|it| it.contains(&json!("string")));
    if is_text && schema["const"].is_null() && schema["enum"].is_null() {
        found.push(json!(token));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let values = with_token(property, definitions, open, token);
        // The others that are required must not be its only fault.
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let others: Vec<&str> = required.filter(|other| other != name).collect();
        found.extend(values.into_iter().map(|value| {
            let mut object = json!({(name.as_str()): value});
            for other in others.iter().filter(|other| schema["properties"][**other]["type"] == "string") {
                object[*other] = json!("/a");
            }
            object
        }));
    }
    if schema["items"].is_object() {
        let values = with_token(&schema["items"], definitions, open, token);
        found.extend(values.into_iter().map(|value| json!([value])));
    }
    match &schema["additionalProperties"] {
        Value::Bool(true) => found.extend([json!({"a": {"b": [token]}}), json!({"a": {(token): 1}})]),
        values @ Value::Object(_) => {
            let values = with_token(values, definitions, open, token);
            found.extend(values.into_iter().map(|value| json!({"x-a": value})));
            found.push(json!({(token): "a"}));
        }
        _ => {}
    }
    found
}

/// The bodies of every kind of manifest with a token in one place.
fn specs_with_token(token: &str) -> Vec<(String, Value)> {
    let mut specs = Vec::new();
    for (kind, schema) in kind_schemas() {
        let found = with_token(&schema["properties"]["spec"], &schema["$defs"], &mut Vec::new(), token);
        specs.extend(found.into_iter().map(|spec| (kind.clone(), spec)));
    }
    assert!(specs.len() > 150, "{specs:?}");
    specs
}

#[test]
fn no_text_of_a_manifest_takes_a_token() {
    let folder = Folder::new();
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let secret = token.rsplit_once('_').unwrap().1;
    let file = |number: usize| format!("m/{}/{number:04}.json", number % FORMATS.len());
    // The second one has no start.
    let specs = [specs_with_token(&token), specs_with_token(&token[3..])].concat();
    for (number, (kind, spec)) in specs.iter().enumerate() {
        let metadata = json!({"name": format!("a{number}")});
        let manifest = json!({"apiVersion": "edgewright/v1", "kind": kind, "metadata": metadata, "spec": spec});
        folder.write(&file(number), &manifest.to_string());
    }
    let transfer = json!({"name": "transferred", "transfer_from": token});
    let manifest = json!({"apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": transfer, "spec": {}});
    folder.write(&file(specs.len()), &manifest.to_string());
    let run = folder.run("validate m --format json");
    assert!(run.code != 0 && !run.all().contains(secret), "{}", run.all());
    assert!(!run.out.contains("is not a valid ID"), "the token is the reason: {}", run.out);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let is_refused = |file: &str| {
        let mut of_file = report["diagnostics"].as_array().unwrap().iter().filter(|it| it["file"] == file);
        of_file.any(|it| it["message"].as_str().unwrap().contains("contains an API token"))
    };
    for number in 0..=specs.len() {
        let file = file(number);
        assert!(is_refused(&file), "{file}: {}", folder.read(&file));
    }
    // A usual run has a part of the manifests in each format.
    for (number, format) in FORMATS.into_iter().enumerate() {
        let part = rounds(format!("m/{number}"), "m".to_owned());
        let run = folder.run(&format!("plan {part} --format {format}"));
        assert!(run.code != 0 && !run.all().contains(secret), "{}", run.all());
    }
}

#[test]
fn no_text_of_a_request_takes_a_token() {
    let folder = Folder::new();
    let token = folder.ok("keys create --role editor").out.trim().to_owned();
    let secret = token.rsplit_once('_').unwrap().1;
    let serve = folder.serve("");
    let created = |path: &str, body: Value| {
        let answer = serve.call("POST", path, &body.to_string());
        assert_eq!(answer.status, 201, "{}", answer.body);
        format!("{path}/{}", answer.json()["id"].as_str().unwrap())
    };
    let edge = created("/edges/https", json!({"hostports": ["a.example.com:443"]}));
    let routes = format!("{edge}/routes");
    let route = created(&routes, json!({"match_type": "path_prefix", "match": "/"}));
    let hosts = [("HttpsEdge", edge.as_str()), ("HttpsEdgeRoute", route.as_str()), ("TlsEdge", "/edges/tls/edgtls_1")];
    let mut said = String::new();
    let mut is_refused = |method: &str, path: &str, body: &Value| {
        let answer = serve.call(method, path, &body.to_string());
        // Some fields are only those of manifests.
        let names_reason = ["contains an API token", "unknown field"].iter().any(|it| answer.body.contains(it));
        assert!(answer.status == 400 && names_reason, "{method} {path} {body}: {}", answer.body);
        said += &format!("{answer:?}");
    };
    for (kind, spec) in specs_with_token(&token) {
        let collection = COLLECTIONS.iter().find(|(name, _)| *name == kind).map(|(_, path)| *path);
        let collection = if kind == "HttpsEdgeRoute" { Some(routes.as_str()) } else { collection };
        if let Some(path) = collection {
            is_refused("POST", path, &spec);
        }
        let (name, value) = spec.as_object().unwrap().iter().next().unwrap();
        if let Some((_, host)) = hosts.iter().find(|(name, _)| *name == kind)
            && value.is_object()
        {
            is_refused("PUT", &format!("{host}/{name}"), value);
            if kind != "TlsEdge" {
                is_refused("PATCH", host, &spec);
            }
        }
    }
    let commit = json!({
        "source": "a",
        "files": [{"name": format!("{token}.yaml"), "text": edge_with("a", "{}")}],
        "commit": token,
        "commit_author_name": format!("Ada {token}"),
        "commit_author_email": format!("{token}@example.com"),
        "commit_message": token,
    });
    let applied = serve.call("POST", "/reconciliations", &commit.to_string());
    assert!(applied.status < 300, "{}", applied.body);
    said += &applied.body;
    for path in ["/history", "/edges/https", "/api_keys", "/sources"] {
        said += &serve.get(path).body;
    }
    let history = serve.get("/history").json();
    said += &serve.get(&format!("/history/{}", history["history"][0]["id"].as_str().unwrap())).body;
    said += &serve.stop().all();
    assert!(!said.contains(secret), "{said}");
    assert_eq!(files_with(&folder, secret), [""; 0]);
}
