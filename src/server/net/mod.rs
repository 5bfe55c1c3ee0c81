//! Sockets: listening, TLS, the limits of connections, and how a server lets go of its clients when it stops (D97).
//!
//! What a connection carries is nobody's business here; requests begin in [`http`](super::http).

pub(crate) mod connections;
pub(crate) mod drain;
pub(crate) mod listener;
pub(crate) mod peer;
pub(crate) mod tls;
