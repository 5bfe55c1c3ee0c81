//! A server in this process, the program of `examples/nginx` that serves its configuration, and backends that tell what they get.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    process::Command,
    sync::Arc,
    time::Duration,
};

use edgewright::{
    DeletionBudget, LintLevels, Options, Sent, SentFile, Snapshot, apply, plan,
    report::{LINTS, Level},
    resources::Role,
};
use serde_json::{Map, Value, json};

use super::{
    estate::{BACKENDS, Estate, POLICIES},
    request::Request,
};
use crate::support::{
    http::{HttpAnswer, connect_from, read_answer},
    program::{Folder, REPOSITORY, finish, has},
    server::Server,
};

/// The headers of a backend that modules can change. nginx must not rewrite the address.
pub(super) const OLD: [(&str, &str); 3] =
    [("X-Powered-By", "php"), ("x-old", "1"), ("Location", "http://edgewright_backend_0/a")];

/// nginx in front of backends. It stops when it is dropped.
pub(super) struct Gateway {
    /// The ports that estates can use.
    pub ports: [u16; 2],
    server: Server,
    folder: Folder,
}

impl Gateway {
    /// Starts the server and the backends.
    pub(super) fn start() -> Self {
        let (server, folder) = (Server::start(), Folder::new());
        folder.write("gateway.token", &server.key_of("bot_gateway", Role::Gateway));
        let backends: BTreeMap<&str, String> = BACKENDS.split(", ").map(|name| (name, backend(name))).collect();
        let addresses =
            |numbers: &[u8]| -> Vec<String> { numbers.iter().map(|number| format!("127.0.0.{number}/32")).collect() };
        let policies = POLICIES
            .into_iter()
            .map(|(id, allow, deny)| (id.to_owned(), json!({"allow": addresses(allow), "deny": addresses(deny)})));
        let policies: Map<String, Value> = policies.collect();
        let mapping = json!({"backends": backends, "ip_policies": policies});
        folder.write("mapping.json", &mapping.to_string());
        Self { ports: free_ports(), server, folder }
    }

    /// Serves an estate instead of the one before, and returns its revision. The program names the routes that it closes.
    pub(super) fn serve(&self, estate: &Estate) -> Arc<Snapshot> {
        let store = self.server.store();
        let tree = Sent::new(vec![SentFile::new("estate.yaml", estate.manifests.as_str())], None);
        let levels = LINTS.iter().map(|lint| (lint.name.to_owned(), Level::Allow)).collect();
        let lints = LintLevels { levels, ..LintLevels::default() };
        let options = Options { budget: DeletionBudget::Percent(100.0), lints, ..Options::new(tree) };
        let planned = plan(&options, &store.snapshot());
        let applied = apply(store, &options, &planned);
        assert!(applied.is_ok(), "{applied:?}\n{:?}\n{}", planned.diagnostics, estate.manifests);
        let mut program = Command::new("python3");
        program.current_dir(format!("{REPOSITORY}/examples/nginx")).env("PYTHONDONTWRITEBYTECODE", "1");
        program.args(["-m", "edgewright_nginx", "--once", "--server", &format!("http://{}", self.server.address)]);
        let files = [("--token-file", "gateway.token"), ("--mapping", "mapping.json"), ("--folder", "gateway")];
        for (option, name) in files {
            program.arg(option).arg(self.folder.path(name));
        }
        let run = finish(program, "");
        assert_eq!(run.code, i32::from(!estate.closed.is_empty()), "{}\n{}", run.all(), estate.manifests);
        let closed: Vec<String> = estate.closed.iter().map(|name| format!("route {name} (")).collect();
        has(&run, &closed.iter().map(String::as_str).collect::<Vec<_>>());
        store.snapshot()
    }

    /// Sends a request from the address of its client.
    pub(super) fn send(&self, request: &Request) -> HttpAnswer {
        exchange(Ipv4Addr::new(127, 0, 0, request.client), request.port, &request.text())
    }

    /// Sends a method and a target.
    pub(super) fn answer(&self, port: u16, line: &str) -> HttpAnswer {
        exchange(Ipv4Addr::LOCALHOST, port, &format!("{line} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // nginx goes on without the program that started it.
        if let Ok(pid) = fs::read_to_string(self.folder.path("gateway/nginx.pid")) {
            let _ = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

fn exchange(source: Ipv4Addr, port: u16, request: &str) -> HttpAnswer {
    let mut connection = connect_from(source, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    // A compressed body is no text.
    let text = String::from_utf8_lossy(&read_answer(&mut connection)).into_owned();
    HttpAnswer::parse(&text).unwrap_or_else(|| panic!("no answer to {request:?}: {text:?}"))
}

/// Starts a backend, and returns its address. nginx must not follow the last header.
fn backend(name: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let old: String = OLD.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        for mut connection in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(connection.try_clone().unwrap()).lines().map_while(Result::ok);
            let got: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n{old}");
            let told = format!("X-Backend: {name}\r\nX-Got: {}\r\nX-Accel-Redirect: /\r\n", json!(got));
            let answer = format!("{head}{told}Content-Length: 100\r\n\r\n{}", "x".repeat(100));
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    address
}

/// Ports below those that the system gives out, so that nobody takes them while nginx does not listen on them.
fn free_ports() -> [u16; 2] {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut free = (first..32_000).filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    [free.next().unwrap(), free.next().unwrap()]
}
