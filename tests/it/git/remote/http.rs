//! A Git server over HTTP: `git http-backend` behind a small HTTP server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};

/// A running server. Its thread ends with the process.
pub(super) struct GitServer {
    address: SocketAddr,
    is_online: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
}

/// What each connection needs.
struct Hosting {
    root: PathBuf,
    /// The expected Authorization header.
    authorization: Option<String>,
    is_online: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
}

impl GitServer {
    /// Serves the repositories in a folder, to a user with a password if there is one.
    pub(super) fn start(root: &Path, user: Option<(&str, &str)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_online, requests) = (Arc::new(AtomicBool::new(true)), Arc::<AtomicUsize>::default());
        let authorization =
            user.map(|(name, password)| format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))));
        let hosting = Arc::new(Hosting {
            root: root.to_owned(),
            authorization,
            is_online: Arc::clone(&is_online),
            requests: Arc::clone(&requests),
        });
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let hosting = Arc::clone(&hosting);
                std::thread::spawn(move || hosting.answer(&connection));
            }
        });
        Self { address, is_online, requests }
    }

    /// The URL of a repository.
    pub(super) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// The URL of a repository over the dumb protocol.
    pub(super) fn dumb_url(&self, name: &str) -> String {
        self.url(&format!("dumb/{name}"))
    }

    /// The URL of a repository at another port, from where each request is redirected here.
    pub(super) fn redirected_url(&self, name: &str) -> String {
        let (listener, to) = (TcpListener::bind("127.0.0.1:0").unwrap(), self.url(""));
        let url = format!("http://{}/{name}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut connection in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(connection.try_clone().unwrap()).lines().map_while(Result::ok);
                let target = lines.next().and_then(|line| Some(line.split_whitespace().nth(1)?.to_owned()));
                let _ = lines.find(String::is_empty);
                let path = target.unwrap_or_default();
                let answer = format!(
                    "HTTP/1.1 302 Found\r\nLocation: {to}{}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    path.trim_start_matches('/')
                );
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        url
    }

    /// Ends an outage, or begins one: all connections are then closed without an answer.
    pub(super) fn set_online(&self, is_online: bool) {
        self.is_online.store(is_online, Ordering::SeqCst);
    }

    /// The number of requests until now.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Hosting {
    fn answer(&self, connection: &TcpStream) -> Option<()> {
        if !self.is_online.load(Ordering::SeqCst) {
            return None;
        }
        self.requests.fetch_add(1, Ordering::SeqCst);
        connection.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let (mut reader, mut writer) = (BufReader::new(connection), connection);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        if self.authorization.is_some() && header("authorization") != self.authorization.as_deref() {
            let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return writer.write_all(refusal.as_bytes()).ok();
        }
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        // Without the name of a service, Git serves files.
        let (path, query) = path.strip_prefix("/dumb").map_or((path, query), |path| (path, ""));
        let mut command = Command::new("git");
        command
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", &method)
            .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
            .env("CONTENT_LENGTH", length.to_string())
            .env("REMOTE_ADDR", "127.0.0.1");
        if let Some(encoding) = header("content-encoding") {
            command.env("HTTP_CONTENT_ENCODING", encoding);
        }
        let mut backend = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        // A request for a fetch is small, so that it fits into the pipe.
        backend.stdin.take()?.write_all(&body).ok()?;
        let output = backend.wait_with_output().ok()?.stdout;
        let end = output.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        let rest: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status: ")).collect();
        let body = &output[end + 4..];
        let answer = format!(
            "HTTP/1.1 {status}\r\n{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            rest.join("\r\n"),
            body.len()
        );
        writer.write_all(answer.as_bytes()).ok()?;
        writer.write_all(body).ok()
    }
}
