//! The addresses that secrets are sent to: this machine, and clients of the server's own TLS.

use axum::{extract::ConnectInfo, http::Extensions};

use super::tls::OverTls;
use crate::server::auth::caller::Caller;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::security::event::SecurityEvent;

/// Returns the address of a client to which `what` can be sent. A header could claim to come from anywhere, so only the
/// socket counts; a server that does not know it sends nothing.
pub(crate) fn safe_peer(extensions: &Extensions, caller: &Caller, what: &str) -> Result<SocketAddr, ApiError> {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| *peer);
    let is_secured = extensions.get::<OverTls>().is_some();
    peer.filter(|peer| is_secured || peer.ip().to_canonical().is_loopback()).ok_or_else(|| {
        let message = format!("{what}, and is sent only over TLS or to a loopback address");
        let help = "start the server with --tls-cert and --tls-key, or read it on the server's machine";
        let note = caller.note(SecurityEvent::PermissionRefused, "no TLS, and not a loopback address");
        ApiError::new(Fault::new(Code::InsecureTransport, message).help(help)).noted(note)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{id::Id, kind::owner::Role};

    fn is_safe(remote: &str, is_secured: bool) -> bool {
        let caller = Caller { key: Id::new("ak_a"), owner: Id::new("usr_a"), role: Role::Admin, scope: None };
        // What a proxy or a client writes into a request is not in the extensions.
        let mut extensions = Extensions::new();
        if let Ok(peer) = remote.parse::<SocketAddr>() {
            extensions.insert(ConnectInfo(peer));
        }
        if is_secured {
            extensions.insert(OverTls);
        }
        let found = safe_peer(&extensions, &caller, "it is secret");
        let refused = found.as_ref().err().map(ApiError::code);
        assert!(found.is_ok() || refused == Some(Code::InsecureTransport), "{remote}");
        found.is_ok()
    }

    #[test]
    fn secrets_stay_on_this_machine_or_inside_tls() {
        for local in ["127.0.0.1:4000", "127.9.9.9:4000", "[::1]:4000", "[::ffff:127.0.0.1]:4000"] {
            assert!(is_safe(local, false), "{local}");
        }
        for remote in ["192.0.2.7:4000", "10.0.0.1:4000", "[2001:db8::1]:4000", "[::ffff:192.0.2.7]:4000"] {
            assert!(!is_safe(remote, false), "{remote}");
            assert!(is_safe(remote, true), "{remote}");
        }
        // The address must be known for the log.
        assert!(!is_safe("none", true));
    }
}
