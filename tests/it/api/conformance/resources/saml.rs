//! The saml module: what it takes, and the service provider that it makes of a route (D18, D36).

use edgewright::server::Settings;
use serde_json::{Value, json};
use x509_parser::{pem::parse_x509_pem, public_key::PublicKey};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{self, IDP_METADATA},
};
use crate::support::server::{Answer, BASE_URL, Server, VERSION_HEADER};

#[test]
fn saml_modules() {
    hold(rows());
}

const NS: &str = "xmlns='urn:oasis:names:tc:SAML:2.0:metadata' entityID='x'";

pub(super) fn rows() -> Vec<Row> {
    let put = format!("PUT {ROUTE}/saml");
    let with = |changes: Value| samples::with(json!({"idp_metadata": IDP_METADATA}), changes);
    let mut rows = vec![
        row("a short name is no nameid_format")
            .route()
            .send(&put, with(json!({"nameid_format": "persistent"})))
            .fails(400, "UNKNOWN_VALUE", "/nameid_format")
            .send(&put, with(json!({"nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:kerberos"})))
            .fails(400, "UNKNOWN_VALUE", "/nameid_format"),
        row("read-only fields cannot be written")
            .route()
            .send(&put, with(json!({"metadata_url": "https://x", "entity_id": "y"})))
            .fails(400, "UNKNOWN_FIELD", "/metadata_url")
            .also("UNKNOWN_FIELD", "/entity_id"),
        row("flags are true or false, and groups a list")
            .route()
            .send(&put, with(json!({"force_authn": 1, "allow_idp_initiated": "no", "authorized_groups": "staff"})))
            .fails(400, "WRONG_TYPE", "/force_authn")
            .also("WRONG_TYPE", "/allow_idp_initiated")
            .also("WRONG_TYPE", "/authorized_groups")
            .send(&put, with(json!({"authorized_groups": ["a", "b"], "allow_idp_initiated": null})))
            .succeeds(200)
            .shows("/authorized_groups", json!(["a", "b"]))
            .shows("/allow_idp_initiated", json!(true)),
        row("metadata of several providers is taken, and comes back as it was written")
            .route()
            .send(&put, json!({"idp_metadata": format!("<EntitiesDescriptor {NS}>\n</EntitiesDescriptor>\n")}))
            .succeeds(200)
            .shows("/idp_metadata", json!(format!("<EntitiesDescriptor {NS}>\n</EntitiesDescriptor>\n"))),
        row("the metadata is needed").route().send(&put, json!({"idp_metadata": " \n"})).fails(
            400,
            "REQUIRED",
            "/idp_metadata",
        ),
        row("the metadata address needs no token, answers only to GET, and ends with the module")
            .route()
            .call("GET /saml/{route}")
            .without("Authorization")
            .without("Service-Version")
            .fails(404, "NOT_FOUND", "")
            .send(&put, with(json!({})))
            .succeeds(200)
            .keep("certificate", "/request_signing_certificate_pem")
            .call("GET /saml/{route}")
            .without("Authorization")
            .without("Service-Version")
            .succeeds(200)
            .says("entityID=\"{base}/saml/{route}\"")
            .call("POST /saml/{route}")
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .send(&put, with(json!({"force_authn": true})))
            .succeeds(200)
            .shows("/request_signing_certificate_pem", json!("{certificate}"))
            .call(&format!("DELETE {ROUTE}/saml"))
            .succeeds(204)
            .call("GET /saml/{route}")
            .fails(404, "NOT_FOUND", "")
            .send(&put, with(json!({})))
            .succeeds(200)
            .shows("/request_signing_certificate_pem", json!("{certificate}"))
            .call(&format!("DELETE {ROUTE}"))
            .succeeds(204)
            .call("GET /saml/{route}")
            .fails(404, "NOT_FOUND", ""),
    ];
    rows.push(format_row());
    let bad = [
        "not xml".to_owned(),
        format!("<EntityDescriptor {NS}>"),
        format!("<EntityDescriptor {NS}></Other>"),
        format!("<Other {NS}/>"),
        format!("<!DOCTYPE x [<!ENTITY e \"x\">]><EntityDescriptor {NS}>&e;</EntityDescriptor>"),
        format!("<EntityDescriptor {NS}>&undefined;</EntityDescriptor>"),
        format!("<EntityDescriptor {NS}/><EntityDescriptor {NS}/>"),
        format!("<EntityDescriptor {NS} a='1' a='2'/>"),
        samples::SHOP_CHAIN.to_owned(),
    ];
    rows.extend(bad.map(|metadata| {
        let shown = metadata.replace(NS, "…");
        row(format!("{shown:.80} is no metadata (D18)")).route().send(&put, json!({"idp_metadata": metadata})).fails(
            400,
            "INVALID_XML",
            "/idp_metadata",
        )
    }));
    rows
}

fn format_row() -> Row {
    let put = format!("PUT {ROUTE}/saml");
    let with = |format: &str| json!({"idp_metadata": IDP_METADATA, "nameid_format": format});
    let formats = [
        "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
        "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
        "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
        "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
    ];
    let mut every = row("four name identifier formats are supported, and an empty one is the persistent").route();
    for format in formats {
        every = every
            .send(&put, with(format))
            .succeeds(200)
            .shows("/nameid_format", json!(format))
            .call("GET /saml/{route}")
            .succeeds(200)
            .says(format);
    }
    every.send(&put, with("")).succeeds(200).shows("/nameid_format", json!(formats[0]))
}

/// A route with a saml module: its id, and the module's answer.
fn route(server: &Server) -> (String, Answer) {
    let edge = server.call("POST", "/edges/https", Some(json!({})));
    let body = json!({"match_type": "path_prefix", "match": "/", "saml": {"idp_metadata": IDP_METADATA}});
    let path = format!("/edges/https/{}/routes", edge.str("/id"));
    let route = server.call("POST", &path, Some(body));
    let id = route.str("/id").to_owned();
    let saml = server.call("GET", &format!("{path}/{id}/saml"), None);
    (id, saml)
}

#[test]
fn the_metadata_is_what_an_identity_provider_needs() {
    let server = Server::start();
    let (id, saml) = route(&server);
    let pem = saml.str("/request_signing_certificate_pem");
    let (_, block) = parse_x509_pem(pem.as_bytes()).unwrap();
    let certificate = block.parse_x509().unwrap();
    let names: Vec<&str> = certificate.subject().iter_common_name().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(names, [format!("edgewright SAML {id}")]);
    assert!(matches!(certificate.public_key().parsed(), Ok(PublicKey::EC(_))));
    let usage = certificate.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && usage.flags.count_ones() == 1, "{usage}");
    let path = saml.str("/metadata_url").strip_prefix(BASE_URL).unwrap().to_owned();
    let metadata = server.send("GET", &path, &[], None);
    assert_eq!((metadata.status, metadata.header("content-type")), (200, Some("application/samlmetadata+xml")));
    // The API takes only well-formed metadata.
    let edge = server.call("POST", "/edges/https", Some(json!({})));
    let body = json!({"match_type": "path_prefix", "match": "/", "saml": {"idp_metadata": metadata.text}});
    let taken = server.call("POST", &format!("/edges/https/{}/routes", edge.str("/id")), Some(body));
    assert_eq!(taken.status, 201, "{}", taken.text);
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    for part in [base64.as_str(), saml.str("/assertion_consumer_service_url"), saml.str("/single_logout_url")] {
        assert!(!part.is_empty() && metadata.text.contains(part), "{part} is not in {}", metadata.text);
    }
}

#[test]
fn hostile_metadata_is_refused_and_the_server_goes_on() {
    let server = Server::start();
    let edge = server.call("POST", "/edges/https", Some(json!({})));
    let routes = format!("/edges/https/{}/routes", edge.str("/id"));
    let body = json!({"match_type": "path_prefix", "match": "/", "saml": {"idp_metadata": IDP_METADATA}});
    let route = format!("{routes}/{}", server.call("POST", &routes, Some(body)).str("/id"));
    let nested = format!("<EntityDescriptor {NS}>{}{}</EntityDescriptor>", "<a>".repeat(4_000), "</a>".repeat(4_000));
    let attributes: String = (0..60_000).map(|n| format!(" a{n}=''")).collect();
    let wide = format!("<EntityDescriptor {NS}{attributes}/>");
    for (metadata, reason) in [(nested, "at most 64 levels"), (wide, "at most 256 attributes")] {
        let saml = json!({"idp_metadata": metadata});
        let put = server.call("PUT", &format!("{route}/saml"), Some(saml.clone()));
        let patch = server.call("PATCH", &route, Some(json!({"saml": saml})));
        for answer in [put, patch] {
            assert_eq!(answer.status, 400, "{}", answer.text);
            assert!(answer.text.contains("INVALID_XML") && answer.text.contains(reason), "{}", answer.text);
        }
    }
    let saml = server.call("GET", &format!("{route}/saml"), None);
    assert_eq!((saml.status, saml.str("/idp_metadata")), (200, IDP_METADATA));
}

#[test]
fn another_route_has_another_certificate_and_so_has_another_store() {
    let (one, other) = (Server::start(), Server::start());
    let certificate = |server: &Server| route(server).1.str("/request_signing_certificate_pem").to_owned();
    let all = [certificate(&one), certificate(&one), certificate(&other)];
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
}

#[test]
fn the_addresses_follow_the_saml_base_url() {
    let server = Server::with(Settings {
        base_url: BASE_URL.into(),
        saml_base_url: "https://login.example.com/sso".into(),
        version_header: VERSION_HEADER.into(),
    });
    let (id, saml) = route(&server);
    let url = format!("https://login.example.com/sso/saml/{id}");
    for (field, wanted) in [
        ("/entity_id", url.clone()),
        ("/metadata_url", url.clone()),
        ("/assertion_consumer_service_url", format!("{url}/acs")),
        ("/single_logout_url", format!("{url}/slo")),
        ("/idp_metadata_url", String::new()),
    ] {
        assert_eq!(saml.str(field), wanted, "{field}");
    }
}
