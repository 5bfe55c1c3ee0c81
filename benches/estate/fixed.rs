//! The reference point of the API: a server that always sends the same bytes, in a process of its own.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, serve::ListenerExt as _};

use crate::process::Guard;

/// The option that makes this program the server.
pub(crate) const OPTION: &str = "--static";

/// A running server of fixed bytes. It is killed when it is dropped.
pub(crate) struct Fixed {
    /// The address it listens on.
    pub address: SocketAddr,
    _guard: Guard,
}

impl Fixed {
    /// Starts a server that responds to every request with these bytes.
    pub(crate) fn start(scratch: &Path, bytes: &[u8]) -> Self {
        let file = scratch.join("static.json");
        fs::write(&file, bytes).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(OPTION).arg(&file).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut guard = Guard(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(guard.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { address: line.trim().parse().unwrap(), _guard: guard }
    }
}

/// Serves the bytes of a file until the process is killed, and prints the address.
pub(crate) fn serve(file: &Path) {
    let bytes = Bytes::from(fs::read(file).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let router: Router = Router::new().fallback(move || {
            let bytes = bytes.clone();
            async move { ([(CONTENT_TYPE, "application/json")], bytes) }
        });
        axum::serve(listener, router).await.unwrap();
    });
}
