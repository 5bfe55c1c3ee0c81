//! The health of the gateway's configuration and of the server: the line of states at the top of the overview, the invariants, and
//! the page of the server.

pub(super) mod invariants;
pub(super) mod server_health;
pub(super) mod status_line;
