//! The socket that a service manager has opened for the server (D110). systemd passes it as file descriptor 3, and says so in
//! `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`. The crate `listenfd` takes the descriptor, because that needs unsafe code.

use std::net::TcpListener;

use listenfd::ListenFd;

use crate::cli::prelude::*;

/// Takes the listening socket that was passed to this process, if there is one. Children do not inherit it. Call this before
/// other threads start: it removes variables from the environment.
pub(super) fn passed_socket() -> Result<Option<TcpListener>, Diagnostic> {
    let variable = |name: &str| std::env::var(name).ok();
    let process = variable("LISTEN_PID");
    // Checked here because `ListenFd` takes descriptors also if no process is named.
    match count(process.as_deref(), variable("LISTEN_FDS").as_deref(), std::process::id())? {
        0 => return Ok(None),
        1 => {}
        many => {
            let names = variable("LISTEN_FDNAMES").map(|names| format!(" ({})", escaped(&names))).unwrap_or_default();
            return Err(refused(format!("the service manager has passed {many} sockets{names}, but `serve` uses one")));
        }
    }
    // A file or a socket of another kind is an error.
    let socket = ListenFd::from_env().take_tcp_listener(0).map_err(|error| {
        refused(format!("the service manager has not passed a TCP socket: {}", escaped(&error.to_string())))
    })?;
    if socket.as_ref().is_some_and(|socket| rustix::net::getpeername(socket).is_ok()) {
        return Err(refused("the service manager has passed a connection instead of a listening socket".to_owned()));
    }
    Ok(socket)
}

/// The number of file descriptors for this process.
fn count(process: Option<&str>, sockets: Option<&str>, own: u32) -> Result<u32, Diagnostic> {
    let (Some(process), Some(sockets)) = (process, sockets) else { return Ok(0) };
    // A parent's variables can outlive their purpose.
    if process.parse::<u32>() != Ok(own) {
        return Ok(0);
    }
    sockets.parse::<u32>().map_err(|_| refused(format!("`LISTEN_FDS` must be a number (found `{}`)", escaped(sockets))))
}

fn refused(message: String) -> Diagnostic {
    Diagnostic::error(Code::CannotListen, message)
        .help("the socket unit must have one ListenStream= with an IP address and a port, and Accept=no")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::diagnostics::diagnostic::Name;

    #[test]
    fn sockets_are_for_the_process_that_is_named() {
        assert_eq!(count(Some("7"), Some("1"), 7).unwrap(), 1);
        assert_eq!(count(Some("7"), Some("2"), 7).unwrap(), 2);
        let others = [
            (Some("8"), Some("1")),
            (None, Some("1")),
            (Some(""), Some("1")),
            (Some("7"), None),
            (Some("7"), Some("0")),
        ];
        for (process, sockets) in others {
            assert_eq!(count(process, sockets, 7).unwrap(), 0, "{process:?} {sockets:?}");
        }
        for sockets in ["", "-1", "one", "99999999999"] {
            assert_eq!(
                count(Some("7"), Some(sockets), 7).unwrap_err().code,
                Name::Code(Code::CannotListen),
                "{sockets}"
            );
        }
    }
}
