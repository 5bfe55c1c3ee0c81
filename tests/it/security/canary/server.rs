//! What the API answers to each role: secrets in the configuration of routes are for admins and editors, and private
//! keys for nobody.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use edgewright::{
    resources::Role,
    server::{Action, endpoints},
};
use serde_json::{Value, json};

use super::{
    mark::{MarkForm, mark},
    secret_fields,
    world::{bodies, manifests, needles, sourced},
};
use crate::support::{
    program::rounds,
    server::{BASE_URL, Server, usual_headers},
};

/// Answers that have no secret for anybody.
const PUBLIC: [&str; 9] = [
    "/tls_certificates",
    "/history?limit=100",
    "/history/2",
    "/history/3",
    "/reconciliations",
    "/sources",
    "/metrics",
    "/readyz",
    "/api_keys",
];

/// A server with every secret field set, and changed once.
pub(super) fn server() -> Server {
    let server = Server::start();
    for number in [0, 1] {
        let [from_env, from_file] = sourced();
        let values = json!([
            {"from_env": "CANARY_VALUE", "value": from_env},
            {"from_file": "value.txt", "value": from_file},
        ]);
        let file = json!({"name": "all.yaml", "text": manifests(number), "values": values});
        let answer = server.call("POST", "/reconciliations", Some(json!({"files": [file], "source": "all"})));
        assert_eq!(answer.status, 201, "{}", answer.text);
        assert_eq!(needles().find_in(&answer.text), None, "POST /reconciliations");
    }
    server
}

/// The paths of every resource in an answer.
fn paths_in(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let uri = members.get("uri").and_then(Value::as_str).and_then(|uri| uri.strip_prefix(BASE_URL));
            found.extend(uri.filter(|uri| !uri.starts_with("/backends/")).map(str::to_owned));
            members.values().for_each(|member| paths_in(member, found));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| paths_in(entry, found)),
        _ => {}
    }
}

#[test]
fn each_role_sees_the_secrets_that_it_may() {
    let server = server();
    let needles = needles();
    let mut paths: BTreeSet<String> = BTreeSet::new();
    for path in ["/edges/https", "/tls_certificates", "/api_keys", "/history?limit=100", "/reconciliations"] {
        paths_in(&server.call("GET", path, None).json, &mut paths);
        paths.insert(path.to_owned());
    }
    let slots: BTreeSet<&str> = endpoints()
        .iter()
        .filter_map(|endpoint| match endpoint.action {
            Action::GetModule(slot) => Some(slot.name),
            _ => None,
        })
        .collect();
    let fields = secret_fields();
    let secret_slots: Vec<&str> = slots
        .into_iter()
        .filter(|slot| fields.iter().any(|field| field.parents().iter().any(|it| it == slot)))
        .collect();
    assert!(secret_slots.len() >= 3, "{secret_slots:?}");
    let routes: Vec<String> = paths.iter().filter(|path| path.contains("/routes/")).cloned().collect();
    assert!(routes.len() >= fields.len() - 1, "{routes:?}");
    for route in &routes {
        paths.extend(secret_slots.iter().map(|slot| format!("{route}/{slot}")));
    }
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let mut told = Vec::new();
    let mut revealed = 0;
    for path in &paths {
        for (who, token) in [("viewer", &server.viewer), ("gateway", &gateway)] {
            let answer = server.call_as(token, "GET", path, None);
            told.extend(needles.find_in(&answer.text).map(|near| format!("{who} {path}: {near}")));
        }
        let answer = server.call_as(&server.editor, "GET", path, None);
        revealed += usize::from(needles.find_in(&answer.text).is_some());
    }
    // Otherwise the search would prove nothing.
    assert!(revealed > routes.len(), "editors see only {revealed} secrets");
    for path in PUBLIC {
        for token in [&server.admin, &server.editor, &server.viewer] {
            let answer = server.call_as(token, "GET", path, None);
            assert!(answer.status < 500, "{path}: {}", answer.text);
            told.extend(needles.find_in(&answer.text).map(|near| format!("{path}: {near}")));
        }
    }
    // Whoever has no role of the gateway does not see its configuration.
    for token in [&server.editor, &server.viewer, "ew_ak_nobody"] {
        let answer = server.call_as(token, "GET", "/gateway/configuration", None);
        assert_eq!((answer.status / 100, needles.find_in(&answer.text)), (4, None), "{}", answer.text);
    }
    told.extend(needles.find_in(&watched(&server)).map(|near| format!("/watch: {near}")));
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// The changes that a viewer is told of.
fn watched(server: &Server) -> String {
    let mut connection = TcpStream::connect(server.address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut request = "GET /watch?since=1 HTTP/1.0\r\nHost: x\r\n".to_owned();
    for (name, value) in usual_headers(&server.viewer) {
        request += &format!("{name}: {value}\r\n");
    }
    connection.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(connection).lines();
    // One event ends each of the two revisions.
    while text.matches("event: revision").count() < 2 {
        text += &lines.next().unwrap().unwrap();
        text.push('\n');
    }
    text
}

#[test]
fn no_error_repeats_a_secret() {
    let server = server();
    let needles = needles();
    let route = server.call("GET", "/edges/https", None);
    let route = route.str("/https_edges/0/routes/0/uri").strip_prefix(BASE_URL).unwrap().to_owned();
    let edge = route.split("/routes/").next().unwrap().to_owned();
    let fields: BTreeSet<(String, Option<String>)> = secret_fields()
        .iter()
        .map(|field| {
            (
                field.name().to_owned(),
                field
                    .parents()
                    .iter()
                    .find(|it| ["oidc", "oauth", "webhook_verification"].contains(&it.as_str()))
                    .cloned(),
            )
        })
        .collect();
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let tokens = [&server.admin, &server.viewer, &gateway];
    let (mut told, mut requests) = (Vec::new(), 0);
    for (number, (field, module)) in fields.iter().enumerate() {
        let secret = mark(MarkForm::Word, field, 7000 + number);
        let module = module.as_deref().unwrap_or("oidc");
        // A usual run sends each third body of a field, other ones of the next field, and each request as one of the roles.
        for body in bodies(field, &secret).into_iter().skip(rounds(number % 3, 0)).step_by(rounds(3, 1)) {
            for (method, path) in [
                ("PUT", format!("{route}/{module}")),
                ("PATCH", route.clone()),
                ("PATCH", edge.clone()),
                ("POST", "/edges/https".to_owned()),
                ("POST", "/tls_certificates".to_owned()),
                ("POST", "/reconciliations".to_owned()),
                ("POST", "/rollbacks".to_owned()),
                ("POST", "/sources/nothing/destroy".to_owned()),
                ("POST", "/store/rekey".to_owned()),
                ("POST", "/transfers".to_owned()),
            ] {
                requests += 1;
                for token in tokens.into_iter().cycle().skip(requests % 3).take(rounds(1, 3)) {
                    let mut headers = usual_headers(token);
                    headers.push(("Content-Type".into(), "application/json".into()));
                    let answer = server.send(method, &path, &headers, Some(body.clone().into_bytes()));
                    assert!(answer.status >= 400, "{method} {path} {body:.80}: {}", answer.text);
                    let near = needles.find_in(&answer.text);
                    told.extend(near.map(|near| format!("{method} {path} {body:.80}: {near}")));
                }
            }
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
