//! Tells systemd when the server is ready, reloads, stops and is alive (D110). Each message is a datagram to the socket in
//! `NOTIFY_SOCKET`; without one, nothing is sent. A crate for these few lines would not be shorter.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;

use crate::cli::prelude::*;

/// The time for one message. A service manager that reads nothing must not stop the server.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of signs of life that systemd gets in the time after which it would restart the server.
const SIGNS: u32 = 3;

/// The service manager that has started the server, if there is one.
#[derive(Debug, Clone)]
pub(super) struct ServiceManager {
    socket: Option<OsString>,
}

impl ServiceManager {
    /// Takes the service manager that the environment names.
    pub(super) fn from_environment() -> Self {
        Self { socket: std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) }
    }

    /// Says that the server serves at a URL, after a start or a reload.
    pub(super) fn ready(&self, url: &str) {
        self.tell(&format!("READY=1\nSTATUS=Serving {}", escaped(url)));
    }

    /// Says that the server reads its configuration again. [`Self::ready`] must follow.
    pub(super) fn reloading(&self) {
        self.tell("RELOADING=1");
    }

    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    pub(super) fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// Returns how often systemd wants a sign of life of this process, if it does.
    pub(super) fn signs_of_life(&self) -> Option<Duration> {
        self.socket.as_ref()?;
        let variable = |name: &str| std::env::var(name).ok();
        interval(variable("WATCHDOG_USEC").as_deref(), variable("WATCHDOG_PID").as_deref(), std::process::id())
    }

    fn tell(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = send(socket, message.as_bytes()) {
            tracing::warn!("cannot notify the service manager: {error}");
        }
    }
}

fn interval(microseconds: Option<&str>, process: Option<&str>, own: u32) -> Option<Duration> {
    if process.is_some_and(|process| process.parse::<u32>() != Ok(own)) {
        return None;
    }
    let microseconds: u64 = microseconds?.parse().ok()?;
    (microseconds > 0).then(|| Duration::from_micros(microseconds) / SIGNS).filter(|interval| !interval.is_zero())
}

fn send(address: &OsStr, message: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
    #[cfg(target_os = "linux")]
    if let Some(name) = address.as_bytes().strip_prefix(b"@") {
        use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
        return socket.send_to_addr(message, &SocketAddr::from_abstract_name(name)?).map(drop);
    }
    if !address.as_bytes().starts_with(b"/") {
        return Err(io::Error::other("NOTIFY_SOCKET has no path"));
    }
    socket.send_to(message, Path::new(address)).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names() {
        let three = Some("3000000");
        assert_eq!(interval(three, None, 7), Some(Duration::from_secs(1)));
        assert_eq!(interval(three, Some("7"), 7), Some(Duration::from_secs(1)));
        assert_eq!(interval(three, Some("8"), 7), None);
        for none in [None, Some("0"), Some("soon")] {
            assert_eq!(interval(none, None, 7), None);
        }
    }

    #[test]
    fn a_message_arrives_at_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager { socket: Some(path.into_os_string()) };
        manager.ready("http://127.0.0.1:1");
        let mut message = [0; 100];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(message.get(..length), Some(b"READY=1\nSTATUS=Serving http://127.0.0.1:1".as_slice()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_message_arrives_at_an_abstract_name() {
        use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
        let name = format!("edgewright-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let manager = ServiceManager { socket: Some(OsString::from(format!("@{name}"))) };
        manager.stopping();
        let mut message = [0; 100];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(message.get(..length), Some(b"STOPPING=1".as_slice()));
    }
}
