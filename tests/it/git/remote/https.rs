//! Repositories behind HTTPS: which authorities are trusted.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::{GitServer, configure, has, pushed, serve, until_shown};
use crate::support::{
    program::{CONFIG, Folder, finish},
    sources::in_state,
};

/// Creates a key and a certificate for this machine that is its own authority.
fn create_certificate(folder: &Folder, name: &str) {
    let mut command = std::process::Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "30", "-subj", "/CN=git", "-addext", "subjectAltName=IP:127.0.0.1"]);
    command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
    let output = command.current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Serves what a server without TLS serves. Returns the address.
fn start_tls(folder: &Folder, certificate: &str, server: &GitServer) -> String {
    let read = |name: String| fs::read(folder.path(&name)).unwrap();
    let certificates = vec![CertificateDer::from_pem_slice(&read(format!("{certificate}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(&read(format!("{certificate}.key"))).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(certificates, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let behind = server.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let (config, behind) = (Arc::clone(&config), behind.clone());
            std::thread::spawn(move || relay(config, connection, &behind));
        }
    });
    format!("https://{address}/edge.git")
}

/// Sends one request to the server behind, and its answer back.
fn relay(config: Arc<ServerConfig>, connection: TcpStream, behind: &str) -> Option<()> {
    let mut secured = StreamOwned::new(ServerConnection::new(config).ok()?, connection);
    let mut request = Vec::new();
    let mut reader = BufReader::new(&mut secured);
    let mut length: usize = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        request.extend_from_slice(line.as_bytes());
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    drop(reader);
    request.extend_from_slice(&body);
    let mut server = TcpStream::connect(behind).ok()?;
    server.write_all(&request).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    secured.write_all(&answer).ok()?;
    secured.conn.send_close_notify();
    secured.flush().ok()
}

#[test]
fn a_server_of_a_private_authority_is_trusted_by_the_sources_that_name_it() {
    if !has("openssl", "version") {
        eprintln!("not tried: openssl is not installed");
        return;
    }
    let folder = pushed();
    create_certificate(&folder, "own");
    create_certificate(&folder, "other");
    let server = GitServer::start(&folder.path("srv"), None);
    let url = start_tls(&folder, "own", &server);
    for (file, said) in
        [("nowhere.pem", "cannot read `ca_file` nowhere.pem"), ("own.key", "cannot use `ca_file` own.key")]
    {
        configure(&folder, &format!("repository: \"{url}\", ca_file: {file}"));
        let mut command = folder.command("serve --listen 127.0.0.1:0 --store other");
        command.env("EDGEWRIGHT_CONFIG", CONFIG);
        let run = finish(command, "");
        assert_eq!((run.code, run.err.contains(said)), (1, true), "{}", run.err);
    }
    configure(&folder, &format!("repository: \"{url}\", interval: 1s, ca_file: other.pem"));
    let first = serve(&folder);
    let found = in_state(&first, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("certificate"), "{message}");
    // Another authority for one source, without a restart.
    configure(&folder, &format!("repository: \"{url}\", interval: 1s, ca_file: own.pem"));
    until_shown(&first, "a");
    in_state(&first, "shop", "Synced");
    assert_eq!(first.stop().code, 0);

    // The authorities of the whole process.
    configure(&folder, &format!("repository: \"{url}\", interval: 1s"));
    for (file, state) in [("own.pem", "Synced"), ("other.pem", "Failed")] {
        let (home, authorities) = (folder.path("").display().to_string(), folder.path(file).display().to_string());
        let variables =
            [("HOME", home.as_str()), ("EDGEWRIGHT_CONFIG", CONFIG), ("SSL_CERT_FILE", authorities.as_str())];
        in_state(&folder.serve_with("", &variables), "shop", state);
    }
}
