//! TLS of the server: its certificate, its clients' certificates, and what is refused without it (D97).

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, PublicKeyData, SanType, SerialNumber,
    SignatureAlgorithm, SigningKey, date_time_ymd,
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;

use crate::support::{
    http::{HttpAnswer, http, request},
    program::{CONFIG_VARIABLE, Folder, Serve, finish, until},
};

/// A private key.
struct TestKey {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

impl TestKey {
    fn new() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap().as_ref().to_vec();
        Self { pair: EcdsaKeyPair::from_pkcs8(algorithm, &pkcs8, &random).unwrap(), pkcs8 }
    }

    fn pem(&self) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(&self.pkcs8))
    }
}

impl PublicKeyData for TestKey {
    fn der_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }
    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for TestKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec())
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from_slice(&[1, 2, 3]));
    params.not_before = date_time_ymd(2025, 1, 1);
    params.not_after = date_time_ymd(2090, 1, 1);
    params
}

/// The PEM of an authority that expires at the beginning of a day.
pub(crate) fn authority_until(day: jiff::civil::Date) -> String {
    let mut params = params("soon");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs());
    params.self_signed(&TestKey::new()).unwrap().pem()
}

/// An authority that signs certificates.
pub(crate) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, TestKey>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = TestKey::new();
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Its own certificate.
    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate for the loopback address and for a URI, and its key.
    pub(crate) fn sign(&self, uri: &str) -> (String, String) {
        self.sign_as("signed", uri)
    }

    /// The same with a common name.
    pub(crate) fn sign_as(&self, name: &str, uri: &str) -> (String, String) {
        let key = TestKey::new();
        let mut params = params(name);
        params.subject_alt_names =
            vec![SanType::IpAddress([127, 0, 0, 1].into()), SanType::URI(uri.try_into().unwrap())];
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.pem())
    }

    /// Writes a certificate for a server and its key into a folder.
    pub(crate) fn certify(&self, folder: &Folder) {
        let (certificate, key) = self.sign("urn:server");
        folder.write("cert.pem", &certificate);
        folder.write("key.pem", &key);
    }
}

pub(crate) const TLS: &str = "--tls-cert cert.pem --tls-key key.pem";

/// A connection whose handshake has not begun.
fn dial(
    serve: &Serve,
    authority: &Authority,
    identity: Option<&(String, String)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
        }
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(&serve.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    StreamOwned::new(connection, socket)
}

/// The answer to a request over TLS, or why there is none.
pub(crate) fn https(
    serve: &Serve,
    authority: &Authority,
    identity: Option<&(String, String)>,
    text: &str,
) -> Result<HttpAnswer, String> {
    let mut stream = dial(serve, authority, identity);
    stream.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    if let (Err(error), true) = (read, bytes.is_empty()) {
        return Err(error.to_string());
    }
    let text = String::from_utf8(bytes).unwrap();
    HttpAnswer::parse(&text).ok_or_else(|| format!("no answer: {text:?}"))
}

/// A request of the admin.
pub(crate) fn as_admin(serve: &Serve, method: &str, path: &str, body: &str) -> String {
    let bearer = format!("Bearer {}", serve.token);
    request(&serve.address, method, path, &[("Authorization", &bearer), ("Service-Version", "2")], body)
}

/// A request without a token.
fn without_token(serve: &Serve, method: &str, path: &str, body: &str) -> String {
    request(&serve.address, method, path, &[("Service-Version", "2")], body)
}

#[test]
fn a_server_with_a_certificate_speaks_tls_and_nothing_else() {
    let folder = Folder::new();
    let authority = Authority::new("one");
    authority.certify(&folder);
    let serve = folder.serve(TLS);
    assert!(serve.said().contains("Serving https://127.0.0.1:"), "{}", serve.said());
    let created = r#"{"hostports":["one.example.com:443"]}"#;
    let made = https(&serve, &authority, None, &as_admin(&serve, "POST", "/edges/https", created)).unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    let edge = made.json();
    assert!(edge["uri"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{edge}");
    // A client that forgets the `s` is told.
    let plain = http(&serve.address, "GET", "/healthz", &[], "");
    assert_eq!((plain.status, plain.code().as_str()), (400, "ERR_EDGEWRIGHT_MALFORMED_REQUEST"), "{}", plain.body);
    assert!(plain.body.contains("https"), "{}", plain.body);
    let page = https(&serve, &authority, None, &as_admin(&serve, "GET", "/metrics", "")).unwrap().body;
    for line in [
        "edgewright_certificate_expiry_timestamp_seconds{id=\"server\",name=\"\"} 3786912000\n",
        "edgewright_tls_handshake_failures_total 1\n",
    ] {
        assert!(page.contains(line), "no {line}\n{page}");
    }
    // Another authority is not trusted, which is up to the client.
    assert!(https(&serve, &Authority::new("two"), None, &as_admin(&serve, "GET", "/healthz", "")).is_err());
    serve.terminate();
    let mut serve = serve;
    assert_eq!(serve.ended().code, 0);
}

#[test]
fn a_certificate_is_loaded_again_when_it_changes_and_a_bad_one_is_not_used() {
    let folder = Folder::new();
    let (first, second) = (Authority::new("one"), Authority::new("two"));
    first.certify(&folder);
    let serve = folder.serve(TLS);
    let probe = |authority: &Authority| https(&serve, authority, None, &as_admin(&serve, "GET", "/readyz", ""));
    let ready = probe(&first).unwrap();
    assert_eq!((ready.status, ready.body.as_str()), (200, "ready\n"));
    second.certify(&folder);
    until("the new certificate", || probe(&second).is_ok().then_some(()));
    assert!(probe(&first).is_err());

    // The certificate of another key.
    let (certificate, _) = second.sign("urn:other");
    folder.write("cert.pem", &certificate);
    serve.signal("HUP");
    let warned = until("the warning", || probe(&second).ok().filter(|answer| answer.body != "ready\n"));
    assert!(warned.status == 200 && warned.body.contains("warning: cannot load the TLS files"), "{warned:?}");
    serve.wait_for("ERR_EDGEWRIGHT_KEY_MISMATCH");
    first.certify(&folder);
    until("the certificate after that", || (probe(&first).ok()?.body == "ready\n").then_some(()));
}

#[test]
fn clients_need_a_certificate_if_there_is_an_authority_for_them() {
    let folder = Folder::new();
    let (authority, other) = (Authority::new("clients"), Authority::new("others"));
    authority.certify(&folder);
    folder.write("clients.pem", &authority.pem());
    let serve = folder.serve(&format!("{TLS} --tls-client-ca clients.pem"));
    let list = as_admin(&serve, "GET", "/edges/https", "");
    assert_eq!(https(&serve, &authority, Some(&authority.sign("urn:one")), &list).unwrap().status, 200);
    assert!(https(&serve, &authority, None, &list).is_err());
    assert!(https(&serve, &authority, Some(&other.sign("urn:one")), &list).is_err());
    // A certificate that nothing maps is no token.
    let unmapped = without_token(&serve, "GET", "/edges/https", "");
    assert_eq!(https(&serve, &authority, Some(&authority.sign("urn:one")), &unmapped).unwrap().status, 401);
}

#[test]
fn a_mapped_certificate_acts_as_its_owner_and_a_token_wins() {
    let folder = Folder::new();
    let authority = Authority::new("clients");
    authority.certify(&folder);
    folder.write("clients.pem", &authority.pem());
    folder.ok("keys create --role viewer --owner bot_reader");
    folder.ok("keys create --role editor --owner bot_ci");
    folder.write(
        "named.yaml",
        "client_certificates:\n- {subject_alt_name: 'uri:urn:ci', owner: bot_ci}\n\
         - {subject_alt_name: 'uri:urn:reader', owner: bot_reader}\n- {subject_alt_name: 'uri:urn:gone', owner: bot_gone}\n",
    );
    let options = format!("{TLS} --tls-client-ca clients.pem --tls-client-auth optional");
    let serve = folder.serve_with(&options, &[("EDGEWRIGHT_CONFIG", "named.yaml")]);
    let identity = |uri: &str| authority.sign(uri);
    let create = |number: u8| format!(r#"{{"hostports":["e{number}.example.com:443"]}}"#);
    let post = |number: u8| without_token(&serve, "POST", "/edges/https", &create(number));
    let edge = https(&serve, &authority, Some(&identity("urn:ci")), &post(1)).unwrap();
    assert_eq!(edge.status, 201, "{}", edge.body);
    let edge = edge.json();
    for (uri, status) in [("urn:reader", 403), ("urn:gone", 401), ("urn:unknown", 401)] {
        assert_eq!(https(&serve, &authority, Some(&identity(uri)), &post(2)).unwrap().status, status, "{uri}");
    }
    assert_eq!(https(&serve, &authority, None, &post(2)).unwrap().status, 401);
    // An editor changes keys of editors and viewers.
    let create_key = without_token(&serve, "POST", "/api_keys", "{}");
    let key = https(&serve, &authority, Some(&identity("urn:ci")), &create_key).unwrap();
    assert_eq!(key.status, 201, "{}", key.body);
    let key = key.json();
    assert_eq!(key["owner_id"], "bot_ci");
    let path = format!("/api_keys/{}", key["id"].as_str().unwrap());
    let delete = without_token(&serve, "DELETE", &path, "");
    assert_eq!(https(&serve, &authority, Some(&identity("urn:reader")), &delete).unwrap().status, 403);
    assert_eq!(https(&serve, &authority, Some(&identity("urn:ci")), &delete).unwrap().status, 204);
    // The admin's token, over the connection of a viewer.
    let as_admin_too = as_admin(&serve, "POST", "/edges/https", &create(3));
    assert_eq!(https(&serve, &authority, Some(&identity("urn:reader")), &as_admin_too).unwrap().status, 201);
    let read = as_admin(&serve, "GET", &format!("/resources/{}", edge["id"].as_str().unwrap()), "");
    let origin = https(&serve, &authority, None, &read).unwrap().json();
    let by = &origin["changed_by"];
    assert_eq!((&by["owner_id"], &by["key_id"]), (&Value::from("bot_ci"), &Value::from("certificate:uri:urn:ci")));
    assert!(serve.said().contains("actor=\"certificate:uri:urn:ci\""), "{}", serve.said());
}

#[test]
fn a_new_authority_of_clients_ends_the_connections_of_the_old_one() {
    let folder = Folder::new();
    let (authority, other) = (Authority::new("clients"), Authority::new("others"));
    authority.certify(&folder);
    folder.write("clients.pem", &authority.pem());
    let serve = folder.serve(&format!("{TLS} --tls-client-ca clients.pem"));
    let mut kept = dial(&serve, &authority, Some(&authority.sign("urn:one")));
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"ok\n") {
        let mut byte = [0];
        kept.read_exact(&mut byte).unwrap();
        read.extend(byte);
    }
    folder.write("clients.pem", &other.pem());
    serve.signal("HUP");
    let ended = kept.read(&mut [0]);
    let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(matches!(&ended, Ok(0)) || ended.as_ref().is_err_and(|error| !timed_out(error)), "{ended:?}");
    let healthz = without_token(&serve, "GET", "/healthz", "");
    assert_eq!(https(&serve, &authority, Some(&other.sign("urn:one")), &healthz).unwrap().status, 200);
    assert!(https(&serve, &authority, Some(&authority.sign("urn:one")), &healthz).is_err());
}

#[test]
fn an_expired_certificate_does_not_replace_a_good_one() {
    let folder = Folder::new();
    let authority = Authority::new("one");
    authority.certify(&folder);
    let serve = folder.serve(TLS);
    let key = TestKey::new();
    let mut expired = params("expired");
    expired.not_after = date_time_ymd(2025, 2, 1);
    expired.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
    folder.write("cert.pem", &expired.signed_by(&key, &authority.issuer).unwrap().pem());
    folder.write("key.pem", &key.pem());
    serve.signal("HUP");
    serve.wait_for("expired at 2025-02-01T00:00:00Z");
    let probe = https(&serve, &authority, None, &without_token(&serve, "GET", "/readyz", "")).unwrap();
    assert!(probe.status == 200 && probe.body.contains("warning: cannot load the TLS files"), "{probe:?}");
}

#[test]
fn addresses_of_others_need_tls() {
    let folder = Folder::new();
    let run = folder.run("serve --listen 0.0.0.0:0");
    assert_eq!(run.code, 1, "{}", run.all());
    for word in ["ERR_EDGEWRIGHT_INSECURE_TRANSPORT", "--tls-cert", "--insecure-http"] {
        assert!(run.err.contains(word), "{word}\n{}", run.err);
    }
    assert!(!folder.path("store").exists(), "nothing is made");
    Authority::new("one").certify(&folder);
    for options in ["--insecure-http", TLS] {
        let line = format!("serve --listen 0.0.0.0:0 --admin-token-file admin.token {options}");
        let mut child = folder.command(&line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let said: Vec<String> =
            lines.take_while(|line| !line.contains("Stopped")).take(50).fold(Vec::new(), |mut said, line| {
                if line.contains("listening on 0.0.0.0:") {
                    child.kill().unwrap();
                }
                said.push(line);
                said
            });
        let _ = child.kill();
        child.wait().unwrap();
        assert!(said.iter().any(|line| line.contains("listening on 0.0.0.0:")), "{options}: {said:?}");
    }
}

#[test]
fn files_of_tls_that_cannot_be_used_are_named() {
    let folder = Folder::new();
    Authority::new("one").certify(&folder);
    folder.write("no.pem", "nothing\n");
    for (options, code, word) in [
        ("--tls-cert cert.pem", "PARAMETER", "--tls-key"),
        ("--tls-key key.pem", "PARAMETER", "--tls-cert"),
        ("--tls-client-ca cert.pem", "PARAMETER", "--tls-cert"),
        ("--tls-cert none.pem --tls-key key.pem", "UNREADABLE", "none.pem"),
        ("--tls-cert no.pem --tls-key key.pem", "INVALID_PEM", "no.pem"),
        ("--tls-cert cert.pem --tls-key no.pem", "INVALID_PEM", "no.pem"),
        ("--tls-cert cert.pem --tls-key key.pem --tls-client-ca no.pem", "INVALID_PEM", "no.pem"),
    ] {
        let run = folder.run(&format!("serve --listen 127.0.0.1:0 {options}"));
        assert_eq!(run.code, 1, "{}", run.all());
        assert!(
            run.err.contains(&format!("ERR_EDGEWRIGHT_{code}")) && run.err.contains(word),
            "{options}\n{}",
            run.err
        );
    }
    folder.write("edgewright.config.yaml", "client_certificates: [{subject_alt_name: 'dns:a', owner: bot_a}]\n");
    let mut command = folder.command("serve --listen 127.0.0.1:0");
    command.env_remove(CONFIG_VARIABLE);
    let run = finish(command, "");
    assert!(run.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED") && run.err.contains("client_certificates"), "{}", run.err);
    folder.write("named.yaml", "client_certificates: [{subject_alt_name: 'a', owner: bot_a}]\n");
    let named = folder.command("validate m").env("EDGEWRIGHT_CONFIG", "named.yaml").output().unwrap();
    let said = String::from_utf8(named.stderr).unwrap();
    assert!(said.contains("/client_certificates/0/subject_alt_name (line 1)"), "{said}");
}

#[test]
fn a_client_that_never_finishes_its_handshake_is_closed() {
    let folder = Folder::new();
    Authority::new("one").certify(&folder);
    let serve = folder.serve(&format!("{TLS} --head-timeout 1s"));
    for first in [&b""[..], &[22], &[22, 3, 1, 2, 0, 1]] {
        let mut connection = TcpStream::connect(&serve.address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection.write_all(first).unwrap();
        let ended = connection.read_to_end(&mut Vec::new());
        assert!(ended.is_ok_and(|length| length == 0), "after {first:?}");
    }
}

#[test]
fn a_context_trusts_the_authorities_in_its_file() {
    let folder = Folder::new();
    let (authority, other) = (Authority::new("one"), Authority::new("two"));
    authority.certify(&folder);
    folder.write("ca.pem", &authority.pem());
    folder.write("other.pem", &other.pem());
    folder.write("none.pem", "nothing\n");
    let serve = folder.serve(TLS);
    let user = |line: &str| {
        let mut command = folder.command(line);
        command.env("XDG_CONFIG_HOME", folder.path("config")).env_remove("EDGEWRIGHT_STORE");
        finish(command, &serve.token)
    };
    let login = format!("login one --server https://{}", serve.address);
    for (file, message) in
        [("other.pem", "cannot reach"), ("none.pem", "no certificate found"), ("gone.pem", "gone.pem")]
    {
        let refused = user(&format!("{login} --ca-file {file}"));
        assert!(refused.code == 1 && refused.err.contains(message), "{}", refused.all());
    }
    let done = user(&format!("{login} --ca-file ca.pem"));
    assert_eq!(done.code, 0, "{}", done.all());
    let read = user("keys list");
    assert_eq!((read.code, read.out.lines().count()), (0, 2), "{}", read.all());
}
