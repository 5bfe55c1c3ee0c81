//! A running `edgewright serve`.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use super::run::Run;
use super::until;
use crate::support::http::{HttpAnswer, http};

/// What a process writes, line by line as it comes.
pub(super) struct Pipe {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Pipe {
    pub(super) fn new(from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let mut text = into.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        Self { text, reader: Some(reader) }
    }

    pub(super) fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Everything, once the process has closed its end.
    pub(super) fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

/// A running `edgewright serve`. It is killed when it is dropped.
pub(crate) struct Serve {
    /// Where it listens.
    pub address: String,
    /// The first admin's token.
    pub token: String,
    pub(super) child: Child,
    pub(super) out: Pipe,
    pub(super) err: Pipe,
}

impl Serve {
    /// What it has said on standard error until now.
    pub(crate) fn said(&self) -> String {
        self.err.text()
    }

    /// Waits until it has said something.
    pub(crate) fn wait_for(&self, text: &str) {
        until(text, || self.said().contains(text).then_some(()));
    }

    /// A GET as the admin.
    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        self.call("GET", path, "")
    }

    /// A request as the admin.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.call_as(&self.token, method, path, body)
    }

    /// A request with any token.
    pub(crate) fn call_as(&self, token: &str, method: &str, path: &str, body: &str) -> HttpAnswer {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
        http(&self.address, method, path, &headers, body)
    }

    /// The value of a series on the page of metrics.
    pub(crate) fn metric(&self, series: &str) -> Option<f64> {
        let page = http(&self.address, "GET", "/metrics", &[], "").body;
        page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as an init system does.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn stop(mut self) -> Run {
        // It says its address a moment before it listens to signals; whoever got an answer is past that.
        let _ = self.get("/");
        self.terminate();
        self.ended()
    }

    /// Sends it a signal, if it has not ended by itself.
    pub(crate) fn signal_if_running(&mut self, name: &str) {
        if !self.has_ended() {
            self.signal(name);
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> Run {
        let child = &mut self.child;
        let status = until("the end of serve", || child.try_wait().unwrap());
        Run { code: status.code().unwrap_or(-1), out: self.out.whole(), err: self.err.whole() }
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
